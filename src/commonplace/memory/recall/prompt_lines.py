"""A prompt's section line by line: what each line costs, which entry it tells, and why that entry is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from commonplace.context.truncate import approximate_tokens
from commonplace.memory.entries import Entry
from commonplace.memory.recall.section import Prompt, harmless
from commonplace.patterns import regex

_LEAD: Final = regex(r"^- (?:L\d+ )?")


class PromptLine(msgspec.Struct, frozen=True):
    """A line of the section."""

    text: str
    tokens: int
    entry: str | None = None
    reason: str = ""


def explained(prompt: Prompt, entries: Iterable[Entry], clean: Callable[[str], str]) -> list[PromptLine]:
    """Return the lines of a section, each with the entry that it tells."""
    included = set(prompt.included)
    by_text = {harmless(clean(each.text)): each for each in entries if each.id in included}
    found: list[PromptLine] = []
    for line in prompt.text.split("\n") if prompt.text else ():
        told = _LEAD.sub("", line)
        entry = by_text.get(told) or by_text.get(told.rpartition(" (")[0]) if line.startswith("- ") else None
        tokens = approximate_tokens(line + "\n")
        found.append(PromptLine(line, tokens, entry.id if entry else None, reason(entry) if entry else ""))
    return found


def reason(entry: Entry) -> str:
    """Return why an entry is told, in words."""
    if entry.pinned:
        return "you pinned it"
    if entry.is_by_hand:
        return "you wrote it"
    taught = "taught once" if entry.support <= 1 else f"taught {entry.support} times"
    return f"{taught}, a check that comes first" if entry.kind == "verify" else taught
