"""The new text of a file, from its text and the hunks of a patch. Pure.

Context lines keep their bytes, however the patch spells them. New lines end as their neighbours do, so that CRLF stays
CRLF. A file without a line end at its end keeps that, and a byte order mark stays.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.agent.tools.patch.match import LineIndex
from commonplace.agent.tools.patch.parse import Hunk
from commonplace.errors import ToolError

_BOM: Final = "\ufeff"
_MOST_SHOWN: Final = 12
"""Lines that an error shows of the patch and of the file."""


class _TextLine(msgspec.Struct, frozen=True):
    text: str
    end: str


def unified(before: str, after: str) -> str:
    """Return the difference of two texts as the hunks of a unified diff; bytes that are no text become marks."""
    import difflib  # slow to import, and most turns change nothing

    hunks = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True))
    lines = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in hunks)
    text = "".join(line for number, line in enumerate(lines) if number > 1)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def new_text(lines: tuple[str, ...]) -> str:
    """Return the text of a new file."""
    return "".join(f"{line}\n" for line in lines)


def updated_text(path: str, text: str, hunks: tuple[Hunk, ...]) -> str:
    """Return a text with hunks applied.

    Raises:
        ToolError: a hunk does not fit.
    """
    bom = _BOM if text.startswith(_BOM) else ""
    there = _split(text[len(bom) :])
    lines = LineIndex([line.text for line in there])
    result: list[_TextLine] = []
    done = 0
    for hunk in hunks:
        begin = _place(path, lines, hunk, done, len(hunks))
        result += there[done:begin]
        done = begin
        removed: list[str] = []
        for sign, words in hunk.lines:
            if sign == "+":
                end = removed.pop(0) if removed else ""
                result.append(_fitted(words, end or _end_near(there, done)))
                continue
            if sign == " ":
                result.append(there[done])
                removed.clear()
            else:
                removed.append(there[done].end)
            done += 1
    result += there[done:]
    return bom + _joined(result, there)


def _split(text: str) -> list[_TextLine]:
    pieces = text.split("\n")
    lines = [_TextLine(piece.removesuffix("\r"), "\r\n" if piece.endswith("\r") else "\n") for piece in pieces[:-1]]
    return [*lines, _TextLine(pieces[-1], "")] if pieces[-1] else lines


def _fitted(words: str, end: str) -> _TextLine:
    """Return a new line; the patch may have a stray carriage return at its end."""
    return _TextLine(words.removesuffix("\r") if end == "\r\n" else words, end)


def _end_near(there: list[_TextLine], place: int) -> str:
    """Return the line end at a place: that of the line there, else of the nearest line before it."""
    near = range(min(place, len(there) - 1), -1, -1)
    return next((there[at].end for at in near if there[at].end), "\n")


def _joined(lines: list[_TextLine], before: list[_TextLine]) -> str:
    """Return lines as a text that ends as the old text did, with or without a line end."""
    if not lines:
        return ""
    usual = next((line.end for line in before if line.end), "\n")
    ended = [f"{line.text}{line.end or usual}" for line in lines[:-1]]
    open_end = bool(before) and not before[-1].end
    return "".join([*ended, lines[-1].text, "" if open_end else lines[-1].end or usual])


def _place(path: str, lines: LineIndex, hunk: Hunk, start: int, count: int) -> int:
    """Return where a hunk begins."""
    name = f"hunk {hunk.number} of {count} for {path}"
    below = start
    for text in hunk.above:
        found = lines.find([text], below)
        if found is None:
            raise _missing(f"{name}: its line after @@ was not found below line {below}", [text], lines, below)
        below = found + 1
    old = hunk.old()
    if not old:
        return below if hunk.above and not hunk.at_end else len(lines.lines)
    found = lines.find(old, below, at_end=hunk.at_end)
    if found is None and hunk.above:  # what is named after @@ may also be the first line of the hunk itself
        found = lines.find(old, below - 1, at_end=hunk.at_end) if below > start else None
    if found is None:
        where = " at the end of the file" if hunk.at_end else f" below line {below}" if below else ""
        raise _missing(f"{name} does not fit: its lines were not found{where}", old, lines, below)
    return found


def _missing(reason: str, wanted: list[str], lines: LineIndex, below: int) -> ToolError:
    """Return the error for lines that were not found, with the most similar lines of the file."""
    text = [f"{reason}. Looked for:", *_shown(wanted)]
    nearest = lines.nearest(wanted)
    above = lines.find(wanted, 0)
    if above is not None and above < below:
        text.append(f"They stand at line {above + 1}, above what is already changed: give hunks in the file's order.")
    elif nearest is not None:
        first, last = nearest
        last = min(last, first + _MOST_SHOWN - 1)
        text.append(f"The nearest lines are {first + 1} to {last + 1}:")
        text += _shown(list(lines.lines[first : last + 1]))
    else:
        text.append(f"Nothing in the file ({len(lines.lines)} lines) is like them; read it again.")
    return ToolError("no_match", "\n".join(text), hint="\nNothing was changed.")


def _shown(lines: list[str]) -> list[str]:
    shown = [f"  {line[:300]}" for line in lines[:_MOST_SHOWN]]
    return shown if len(lines) <= _MOST_SHOWN else [*shown, f"  (and {len(lines) - _MOST_SHOWN} more)"]
