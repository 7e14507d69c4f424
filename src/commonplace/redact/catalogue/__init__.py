"""The catalogue: credential formats that show by themselves, as tables by family (`formats` says how rows are read)."""

from __future__ import annotations

from collections.abc import Iterator

from commonplace.redact.catalogue import ai, cloud, hosting, keys, messaging, monitoring, payments, saas
from commonplace.redact.catalogue.formats import Format, rows, shape_of

__all__ = ["Format", "formats", "rows", "shape_of"]


def formats() -> Iterator[Format]:
    """Yield every row of every family."""
    for family in (ai, cloud, hosting, keys, messaging, monitoring, payments, saas):
        yield from family.FORMATS
