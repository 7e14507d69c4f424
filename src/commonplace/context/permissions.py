"""The permissions section: the model is told all rules, or only the commands that were approved since.

The text itself is whoever's who enforces it; here it is wrapped, and told again when it changed. A person who approves
commands one after the other would otherwise pay for the whole text each time, so additions have a short form.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from commonplace.context.injected_messages import InjectedText
from commonplace.context.world_state import Before, KnownSnapshot, SectionName, Unknown

Prefix = tuple[str, ...]
"""The first words of a command, such as `("git", "commit")`."""

MAX_PREFIXES: Final = 100
"""How many approved prefixes a prompt lists."""
MAX_PREFIX_BYTES: Final = 5_000
"""How many bytes that list may have."""
_SAVED: Final = "Approved command prefix saved:"
_KIND: Final = "permissions.instructions"


class Permissions(msgspec.Struct, frozen=True):
    """The section `permissions`: a text, and the command prefixes that were approved."""

    text: str
    prefixes: tuple[Prefix, ...] = ()

    @property
    def name(self) -> SectionName:
        return SectionName("permissions", "permissions", lapses=True)

    def snapshot(self) -> dict[str, Any]:
        """Return the hash of the rules, and the prefixes, which are compared one by one."""
        return {"instructions": _rules(self.text).digest(), "approved_command_prefixes": _listed(self.prefixes)}

    def tell(self, before: Before) -> list[InjectedText]:
        """Return nothing, the new prefixes, or everything."""
        whole = _rules("\n".join(part for part in (self.text, listing(self.prefixes)) if part))
        if isinstance(before, Unknown):
            return [] if before.text.strip() == whole.text else [whole]
        if not isinstance(before, KnownSnapshot):
            return [whole]
        now, value = self.snapshot(), before.value
        if isinstance(value, str):  # the older form: only the hash
            return [] if value == now["instructions"] else [whole]
        old = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        had = cast("list[list[str]]", old.get("approved_command_prefixes") or [])
        has: list[list[str]] = now["approved_command_prefixes"]
        if old.get("instructions") != now["instructions"] or any(prefix not in has for prefix in had):
            return [whole]
        return _saved([tuple(prefix) for prefix in has if prefix not in had])


def listing(prefixes: tuple[Prefix, ...]) -> str:
    """Return the prefixes a line each, within bounds; a last line says that there are more."""
    lines: list[str] = []
    room = MAX_PREFIX_BYTES
    for prefix in sorted(set(prefixes)):
        line = f"- {msgspec.json.encode(list(prefix)).decode()}"
        room -= len(line.encode()) + 1
        if len(lines) == MAX_PREFIXES or room < 0:
            return "\n".join([*lines, "- … (more were approved than are listed)"])
        lines.append(line)
    return "\n".join(lines)


def _rules(text: str) -> InjectedText:
    return InjectedText("developer", f"<permissions instructions>\n{text}\n</permissions instructions>", _KIND)


def _saved(added: list[Prefix]) -> list[InjectedText]:
    return [InjectedText("developer", f"{_SAVED}\n{listing(tuple(added))}", _KIND)] if added else []


def _listed(prefixes: tuple[Prefix, ...]) -> list[list[str]]:
    return [list(prefix) for prefix in sorted(set(prefixes))]
