"""The catalogue: credential formats that show by themselves, as tables by family.

Formats without a prefix of their own (32 hexadecimal digits, say) are no part of it: only a name before them shows them
(`names`).
"""

from __future__ import annotations

from collections.abc import Iterator

from commonplace.redact.catalogue import ai, cloud, hosting, keys, messaging, monitoring, payments, saas
from commonplace.redact.catalogue.formats import Format

__all__ = ["Format", "formats"]


def formats() -> Iterator[Format]:
    """Yield every row of every family."""
    for family in (ai, cloud, hosting, keys, messaging, monitoring, payments, saas):
        yield from family.FORMATS
