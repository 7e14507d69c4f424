"""The `<filesystem>` element: which paths may be read and written, as the model is told.

The element is one line, and the snapshot of an environment keeps it as it is, so that a change of anything in it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})


def escape(value: str) -> str:
    """Return a text fit for the inside of an element or an attribute."""
    return value.translate(_ESCAPES)


class FilesystemRule(msgspec.Struct, frozen=True, kw_only=True):
    """What may be done with a path, a pattern, or a place with a name (`:root`, `:minimal`, `:tmpdir`, …)."""

    access: Literal["read", "write", "deny"]
    target: Literal["path", "glob", "special"]
    value: str

    def element(self) -> str:
        """Return the rule's element."""
        final = ' escalatable="false"' if self.access == "deny" else ""
        return f'<entry access="{self.access}"{final}><{self.target}>{escape(self.value)}</{self.target}></entry>'


class FilesystemProfile(msgspec.Struct, frozen=True):
    """Who guards the files: this program (`managed`), nobody (`disabled`), or what it runs in (`external`)."""

    type: Literal["managed", "disabled", "external"]
    rules: tuple[FilesystemRule, ...] | None = None
    """For `managed`: None lets everything be written."""


def element(roots: Sequence[str], profile: FilesystemProfile) -> str:
    """Return the whole element; a rule that was given twice is told once."""
    where = "".join(f"<root>{escape(root)}</root>" for root in roots)
    inside = f"<workspace_roots>{where}</workspace_roots>" if roots else ""
    if profile.type == "external":
        files = '<file_system type="external" />'
    elif profile.type == "managed" and profile.rules is not None:
        rules = "".join(dict.fromkeys(rule.element() for rule in profile.rules))
        files = f'<file_system type="restricted">{rules}</file_system>'
    else:
        files = '<file_system type="unrestricted" />'
    return f'<filesystem>{inside}<permission_profile type="{profile.type}">{files}</permission_profile></filesystem>'
