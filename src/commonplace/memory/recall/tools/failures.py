"""What goes wrong in a memory tool, each kind with the sentence that the model gets.

A text of the caller's stands in the sentence as it came, except that what is no text (halves of surrogate pairs) is
replaced and what is very long is cut, so that an error can always be sent.
"""

from __future__ import annotations

import os
from typing import Final

from commonplace.errors import ToolError

MAX_QUOTED: Final = 1024
"""How much of a caller's text an error repeats."""

LINK: Final = "must not be a symlink"
OUTSIDE: Final = "must stay within the memories root"
THROUGH: Final = "traverses through a non-directory component"
NOT_A_FOLDER: Final = "must be a directory"


def quoted(text: str) -> str:
    """Return a caller's text so that it can stand in an error."""
    plain = text.encode("utf-8", "replace").decode("utf-8")
    return f"'{plain}'" if len(plain) <= MAX_QUOTED else f"'{plain[:MAX_QUOTED]}…'"


def not_found(path: str) -> ToolError:
    """Return the error for a path that does not exist or may not be seen."""
    return ToolError("not_found", f"path {quoted(path)} was not found", path=path)


def invalid_path(path: str, reason: str) -> ToolError:
    """Return the error for a path that no tool may follow."""
    return ToolError("invalid_path", f"path {quoted(path)} {reason}", path=path)


def not_file(path: str) -> ToolError:
    """Return the error for a path whose content cannot be read line by line."""
    return ToolError("not_file", f"path {quoted(path)} is not a file", path=path)


def invalid_cursor(cursor: str, reason: str) -> ToolError:
    """Return the error for a cursor that no page gave."""
    return ToolError("invalid_cursor", f"cursor {quoted(cursor)} {reason}", cursor=cursor)


def invalid_filename(filename: str, reason: str) -> ToolError:
    """Return the error for a name that a note may not have."""
    return ToolError("invalid_filename", f"filename {quoted(filename)} {reason}", filename=filename)


def bad_arguments(reason: str) -> ToolError:
    """Return the error for arguments that the tool does not take."""
    return ToolError("bad_arguments", reason)


def io(cause: OSError | str) -> ToolError:
    """Return the error for a failure of the operating system."""
    reason = cause if isinstance(cause, str) else os.strerror(cause.errno) if cause.errno else str(cause)
    return ToolError("io", f"I/O error while reading memories: {reason}")
