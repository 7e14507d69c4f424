"""Lines of Markdown, and which of them stand in a fence: there, nothing that looks like a mark is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commonplace.patterns import regex

_FENCE: Final = regex(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>.*)")


def lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line without its newline, and whether it stands in a fence or opens or closes one.

    A fence that is never closed is none: the text after it counts as what it looks like.
    """
    everything = text.split("\n")
    place = 0
    unclosed: dict[str, int] = {}
    """Of each kind of fence, the shortest that no line closes any more: it is looked for once."""
    while place < len(everything):
        fence = _FENCE.match(everything[place])
        marks = fence["marks"] if fence is not None else ""
        end = None
        if marks and len(marks) < unclosed.get(marks[0], len(marks) + 1):
            end = _closing(everything, place, marks)
            if end is None:
                unclosed[marks[0]] = len(marks)
        if end is None:
            yield everything[place], False
            place += 1
        else:
            yield from ((line, True) for line in everything[place : end + 1])
            place = end + 1


def _closing(everything: list[str], start: int, marks: str) -> int | None:
    for place in range(start + 1, len(everything)):
        fence = _FENCE.match(everything[place])
        if fence is not None and fence["marks"].startswith(marks) and not fence["info"].strip():
            return place
    return None


def fenced(text: str) -> str:
    """Return what stands in the fences of a text."""
    kept: list[str] = []
    inside = False
    for line, is_fenced in lines(text):
        if is_fenced and _FENCE.match(line) and not inside:
            inside = True
        elif is_fenced and inside and (fence := _FENCE.match(line)) and not fence["info"].strip():
            inside = False
        elif is_fenced:
            kept.append(line)
    return "\n".join(kept)
