"""`read`: lines of one file, in a budget.

Only `\\n` ends a line; a `\\r` stays. Lines that this reader may not see are blank before anything is counted, so that
numbers of lines hold and nothing of them is left in what is cut out of the middle.
"""

from __future__ import annotations

from typing import Final

from commonplace.context.truncate import truncate
from commonplace.errors import ToolError
from commonplace.memory.recall.tools import failures, files
from commonplace.memory.recall.tools.arguments import ReadArguments
from commonplace.memory.recall.tools.results import Reading
from commonplace.memory.recall.visibility import OwnershipFiles, Visibility, visible_text

BUDGET_TOKENS: Final = 20_000
"""The most tokens of one `read`."""


def read(root: files.MemoryRoot, arguments: ReadArguments, view: Visibility, beside: OwnershipFiles) -> Reading:
    """Read lines of a file.

    Raises:
        ToolError: the numbers or the path cannot be used, or the file cannot be read as text.
    """
    first = 1 if arguments.line_offset is None else arguments.line_offset
    if first == 0:
        raise ToolError("invalid_line_offset", "line_offset must be 1-indexed")
    if arguments.max_lines == 0:
        raise ToolError("invalid_max_lines", "max_lines must be positive")
    with root.find(arguments.path) as target:
        if target.kind == "missing":
            raise failures.not_found(arguments.path)
        if target.kind == "link":
            raise failures.invalid_path(target.path, failures.LINK)
        if target.kind != "file":
            raise failures.not_file(arguments.path)
        if target.error is not None:
            raise failures.io(target.error)
        data = files.read(target.descriptor)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise failures.io("the file is not UTF-8 text") from None
    return cut(arguments.path, visible_text(view, target.path, text, beside), first, arguments.max_lines)


def cut(path: str, text: str, first: int, count: int | None) -> Reading:
    """Return lines of a text, from the first that is wanted."""
    start = _after(text, 0, first - 1)
    if start is None:
        raise ToolError("line_offset_exceeds_file_length", "line_offset exceeds the length of the file")
    stop = None if count is None else _after(text, start, count)
    end = len(text) if stop is None else stop
    wanted = text[start:end]
    content = truncate(wanted, BUDGET_TOKENS)
    return Reading(path, first, content, end < len(text) or content != wanted)


def _after(text: str, start: int, lines: int) -> int | None:
    """Return where the text goes on after so many line ends; None if it has fewer."""
    if lines > len(text):
        return None
    for _ in range(lines):
        start = text.find("\n", start) + 1
        if not start:
            return None
    return start
