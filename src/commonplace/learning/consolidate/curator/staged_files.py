"""The staged workspace, as a model may use it: reading below it, writing only what is the memory's.

Paths are names from the workspace down; parents, absolute paths, hidden names and links are refused, as the memory's
own tools refuse them (`memory.tools.files`): each name is opened in the folder that was opened before it, never through
a link, so that nothing can be swapped between looking and opening. Writing goes the same way. Files are replaced and
never written in place, since a staged file shares its content with the one that people read.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Final

from commonplace.errors import ToolError
from commonplace.memory.files import validation
from commonplace.memory.recall.tools import failures, files
from commonplace.memory.workspace import layout

MAX_BYTES: Final = 4 * 2**20
"""A file that is larger is neither read nor changed."""
_SKILL: Final = re.compile(r"skills/([a-z0-9][a-z0-9-]{0,63})/SKILL\.md")
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def read(root: Path, path: str) -> str:
    """Return the text of a file.

    Raises:
        ToolError: the path leads out, through a link or to no text.
    """
    with files.MemoryRoot(root) as opened, opened.find(path) as found:
        if found.kind == "missing":
            raise failures.not_found(path)
        if found.kind != "file":
            raise failures.not_file(path)
        if found.error is not None:
            raise failures.io(found.error)
        data = files.read(found.descriptor, MAX_BYTES)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise failures.io("the file is not UTF-8 text") from None


def skill_of(path: str) -> str | None:
    """Return the name of the skill that a path is the file of; None for any other."""
    found = _SKILL.fullmatch(path)
    return found[1] if found else None


def may_write(path: str, owned: Collection[str]) -> None:
    """Return if a file is the memory's own.

    Raises:
        ToolError: it is not, or a person made it theirs.
    """
    plain = "/".join(files.components(path))
    name = skill_of(plain)
    if plain not in (layout.MEMORY, layout.SUMMARY) and name is None:
        allowed = f"{layout.MEMORY}, {layout.SUMMARY} and skills/<name>/SKILL.md"
        raise ToolError("read_only", f"path {failures.quoted(path)} may not be written; only {allowed} may")
    if plain in owned or (name is not None and validation.is_owned(name, owned)):
        raise ToolError("read_only", f"path {failures.quoted(path)} is a person's own and stays as it is")


def write(root: Path, path: str, text: str, owned: Collection[str]) -> None:
    """Replace a file of the memory, or make it.

    Raises:
        ToolError: it is not one that may be written, or something else is in its place.
    """
    may_write(path, owned)
    *above, name = files.components(path)
    with files.MemoryRoot(root) as opened:
        for count in range(len(above)):
            _folder(opened, above[:count], above[count])
        with opened.find("/".join(above)) as folder:
            if folder.kind != "folder" or folder.descriptor < 0:
                raise failures.invalid_path(path, failures.THROUGH)
            with opened.find("/".join([*above, name])) as found:
                if found.kind not in ("file", "missing"):
                    raise failures.not_file(path)
            _put(folder.descriptor, name, text.encode("utf-8", "replace"))


def _folder(opened: files.MemoryRoot, above: list[str], name: str) -> None:
    with opened.find("/".join(above)) as folder, opened.find("/".join([*above, name])) as found:
        if found.kind == "missing":
            os.mkdir(name, 0o700, dir_fd=folder.descriptor)


def _put(folder: int, name: str, data: bytes) -> None:
    part = f".{os.getpid()}-{threading.get_ident()}{layout.PART}"
    try:
        descriptor = os.open(part, _FLAGS, 0o600, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        raise failures.io(error) from None
