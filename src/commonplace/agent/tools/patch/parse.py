"""Parse the text of a patch into operations on files. Pure; every error names the line of the patch that is wrong.

    *** Begin Patch
    *** Add File: PATH            then lines with `+`
    *** Delete File: PATH
    *** Update File: PATH         then perhaps `*** Move to: PATH`, then hunks
    @@ LINE                       any number of lines that stand above, each further in; then lines with ` `, `-`, `+`
    *** End of File               the hunk before it ends where the file ends
    *** End Patch

Models wrap a patch in a code fence, in a here-document, or write the hunk headers of `diff`. Text around the outer
lines is ignored, and so are the line numbers of a header: the context lines say where a change belongs.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.errors import ToolError
from commonplace.patterns import regex

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_ADD: Final = "*** Add File: "
_DELETE: Final = "*** Delete File: "
_UPDATE: Final = "*** Update File: "
_MOVE: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"
_NUMBERS: Final = regex(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)")
_NO_NEWLINE: Final = "\\ No newline at end of file"


class Hunk(msgspec.Struct, frozen=True):
    """One change: lines of the file that stay or are removed, and new lines."""

    number: int
    """Its number among the hunks of its file, from 1."""
    above: tuple[str, ...]
    """Lines that stand somewhere above it, outermost first."""
    lines: tuple[tuple[str, str], ...]
    """Sign and text."""
    at_end: bool = False

    def old(self) -> list[str]:
        """Return the lines that the file must contain."""
        return [text for sign, text in self.lines if sign != "+"]


class AddFile(msgspec.Struct, frozen=True):
    """A new file."""

    path: str
    lines: tuple[str, ...]


class DeleteFile(msgspec.Struct, frozen=True):
    """A file that is deleted."""

    path: str


class UpdateFile(msgspec.Struct, frozen=True):
    """A file that changes, or only moves."""

    path: str
    to: str | None
    hunks: tuple[Hunk, ...]


Operation = AddFile | DeleteFile | UpdateFile


def parse(text: str) -> list[Operation]:
    """Return the operations of a patch, in their order.

    Raises:
        ToolError: it is no patch.
    """
    lines = text.split("\n")
    if lines and all(line.endswith("\r") for line in lines if line):  # the patch as a whole came with CRLF
        lines = [line.removesuffix("\r") for line in lines]
    first = next((at for at, line in enumerate(lines) if line.strip() == _BEGIN), None)
    if first is None:
        raise _wrong(f"there is no line `{_BEGIN}`")
    last = next((at for at in range(len(lines) - 1, first, -1) if lines[at].strip() == _END), None)
    if last is None:
        raise _wrong(f"there is no line `{_END}`; the patch may have been cut off")
    reader = _PatchReader(lines, first + 1, last)
    operations: list[Operation] = []
    while (line := reader.peek()) is not None:
        if not line.strip():
            reader.skip()
        else:
            operations.append(_operation(reader, line))
    if not operations:
        raise _wrong("it changes nothing")
    return operations


class _PatchReader:
    """Reads the lines between the first and the last line of a patch."""

    def __init__(self, lines: list[str], first: int, end: int) -> None:
        self._lines = lines
        self._end = end
        self.at = first

    def peek(self) -> str | None:
        return self._lines[self.at] if self.at < self._end else None

    def skip(self) -> None:
        self.at += 1

    def wrong(self, reason: str) -> ToolError:
        line = self.peek()
        shown = "" if line is None else f": {line[:200]!r}"
        return _wrong(f"line {self.at + 1} of the patch{shown}: {reason}")


def _wrong(reason: str) -> ToolError:
    return ToolError("bad_patch", f"the patch cannot be read: {reason}")


def _operation(reader: _PatchReader, line: str) -> Operation:
    for head, build in ((_ADD, _add), (_DELETE, _delete), (_UPDATE, _update)):
        if line.strip().startswith(head.rstrip()):
            path = line.strip().removeprefix(head.rstrip()).strip()
            if not path:
                raise reader.wrong("it names no file")
            reader.skip()
            return build(reader, path)
    raise reader.wrong("expected `*** Add File:`, `*** Update File:` or `*** Delete File:`")


def _add(reader: _PatchReader, path: str) -> AddFile:
    lines: list[str] = []
    while (line := reader.peek()) is not None and not line.startswith("*** "):
        if not line.startswith("+"):
            if _ends(reader):
                break
            raise reader.wrong("each line of a new file begins with `+`")
        lines.append(line[1:])
        reader.skip()
    return AddFile(path, tuple(lines))


def _ends(reader: _PatchReader) -> bool:
    """Skip empty lines; return whether the operations on this file end here."""
    begin = reader.at
    while (line := reader.peek()) is not None and not line.rstrip("\r"):
        reader.skip()
    if reader.at > begin and (line is None or (line.startswith("*** ") and line.strip() != _END_OF_FILE)):
        return True
    reader.at = begin
    return False


def _delete(reader: _PatchReader, path: str) -> DeleteFile:
    return DeleteFile(path)


def _update(reader: _PatchReader, path: str) -> UpdateFile:
    to: str | None = None
    line = reader.peek()
    if line is not None and line.startswith(_MOVE.rstrip()):
        to = line.removeprefix(_MOVE.rstrip()).strip()
        if not to:
            raise reader.wrong("it names no file")
        reader.skip()
    hunks: list[Hunk] = []
    while (line := reader.peek()) is not None and (not line.startswith("*** ") or line.strip() == _END_OF_FILE):
        if _ends(reader):
            break
        hunks.append(_hunk(reader, len(hunks) + 1))
    if not hunks and to is None:
        raise reader.wrong(f"nothing is changed in {path}")
    return UpdateFile(path, to, tuple(hunks))


def _hunk(reader: _PatchReader, number: int) -> Hunk:
    above: list[str] = []
    while (line := reader.peek()) is not None and line.startswith("@@"):
        numbered = _NUMBERS.match(line)
        # The text behind the numbers is what `diff` takes for an enclosing line: often right, never sure.
        text = "" if numbered else line[2:].removeprefix(" ")
        if text.strip():
            above.append(text)
        reader.skip()
    lines: list[tuple[str, str]] = []
    at_end = False
    while (line := reader.peek()) is not None and not line.startswith("@@"):
        if line.rstrip() == _END_OF_FILE:
            at_end = True
            reader.skip()
            break
        if line.startswith("*** ") or _ends(reader):
            break
        if line[:1] in (" ", "-", "+"):
            lines.append((line[0], line[1:]))
        elif not line.strip("\r"):
            lines.append((" ", ""))
        elif line != _NO_NEWLINE:
            raise reader.wrong("a line of a hunk begins with a blank, `-` or `+`")
        reader.skip()
    if not any(sign != " " for sign, _ in lines):
        raise reader.wrong(f"hunk {number} before it has no line with `-` or `+`")
    return Hunk(number, tuple(above), tuple(lines), at_end)
