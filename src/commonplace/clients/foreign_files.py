"""Changing files that belong to other programs: planned, shown, checked, and replaced in one step.

A file is changed as text, so that comments, order and spacing stay. Its meaning outside our own part is compared before
and after the change, and nothing is planned unless it is the same. A symbolic link is followed: people keep these files
elsewhere and link to them. A file that is write-protected stays as it is. A byte order mark at the start stays.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import stat
import tempfile
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from commonplace.errors import BadInput

_UNCHANGED: Final = "Correct it first; nothing was changed."
_MARK: Final = "\ufeff"
_MAX_BYTES: Final = 64 * 1024 * 1024
"""No file of settings is larger."""


class PlannedChange(msgspec.Struct, frozen=True):
    """The planned change of one file; `before` is None if the file does not exist yet."""

    path: Path
    before: str | None
    after: str

    @property
    def is_one(self) -> bool:
        """Whether anything would change."""
        return (self.before or "") != self.after

    def diff(self) -> str:
        """Return the change as people read it."""
        before, after = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        lines = difflib.unified_diff(before, after, str(self.path), str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def text_of(path: Path) -> str | None:
    """Return the text of a file; None if there is none.

    Raises:
        BadInput: it is not text, or not a file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe is not waited for
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadInput(f"{path} is not a file.", hint=_UNCHANGED)
            return file.read(_MAX_BYTES).decode("utf-8")
    except FileNotFoundError:
        if path.is_symlink():
            raise BadInput(f"{path} is a link to nothing.", hint=_UNCHANGED) from None
        return None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8.", hint=_UNCHANGED) from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", hint=_UNCHANGED) from None


def parsed(parse: Callable[[str], Any], text: str, path: Path, kind: str) -> dict[str, Any]:
    """Return what a text means.

    Raises:
        BadInput: it is not valid, or not an object.
    """
    try:
        value = parse(text.removeprefix(_MARK))
    except (ValueError, RecursionError) as wrong:
        raise BadInput(f"{path} is not valid {kind}: {wrong}.", hint=_UNCHANGED) from None
    if not isinstance(value, dict):
        raise BadInput(f"{path} holds no {kind} object.", hint=_UNCHANGED)
    return cast("dict[str, Any]", value)


def json_file(path: Path, parse: Callable[[str], Any] = json.loads) -> tuple[str | None, dict[str, Any]]:
    """Return the text of a JSON file and what it means; a missing or empty file counts as `{}` (raises BadInput)."""
    text = text_of(path)
    return text, parsed(parse, object_text(text), path, "JSON")


def object_text(text: str | None) -> str:
    """Return a text that holds a JSON object: an empty file counts as an empty object."""
    return text if text and text.removeprefix(_MARK).strip() else "{}\n"


def inner_table(table: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    """Return a table in a table, an empty one if there is none (raises BadInput: it is something else)."""
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise misunderstood(path)
    return cast("dict[str, Any]", found)


def misunderstood(path: Path) -> BadInput:
    """Return the error for a file whose content has another shape than its program documents."""
    return BadInput(f"{path} does not say what it should say.", hint=_UNCHANGED)


def set_inside(table: dict[str, Any], outer: str, inner: str, value: Any, *, keep: bool = False) -> None:
    """Put a value into a table of tables, or take it out together with a table that held only it, unless that stays."""
    inside = table.setdefault(outer, {})
    if value is not None:
        inside[inner] = value
        return
    inside.pop(inner, None)
    if not inside and not keep:
        del table[outer]


def checked(change: PlannedChange, parse: Callable[[str], Any], wanted: dict[str, Any], what: str) -> PlannedChange:
    """Return a change whose result means what it should (raises BadInput: it does not)."""
    try:
        meant: Any = parse(change.after.removeprefix(_MARK)) if change.after else {}
    except ValueError:
        meant = None
    if meant != wanted:
        hint = f"Change {what} there by hand."
        raise BadInput(f"{change.path} is written in a way that is not changed safely.", hint=hint)
    return change


def check_unchanged(change: PlannedChange) -> None:
    """Check that a planned change can still be made.

    Raises:
        BadInput: the file changed after the plan was made, or is write-protected.
    """
    if not change.is_one:
        return
    if text_of(change.path) != change.before:
        raise BadInput(f"{change.path} was changed meanwhile.", hint="Run the command again.")
    if change.before is not None and not change.path.stat().st_mode & stat.S_IWUSR:
        raise BadInput(f"{change.path} is write-protected.", hint="Make it writable first; nothing was changed.")


def replace(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace a file in one step; its permissions and owner stay, or `mode` sets the permissions."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            with contextlib.suppress(FileNotFoundError):
                state = target.stat()
                os.fchmod(file.fileno(), state.st_mode & 0o7777)
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), state.st_uid, state.st_gid)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def taken_back(before: str, after: str, now: str) -> str | None:
    """Return a text without the change from `before` to `after` that it contains; None if those lines changed since."""
    old, base, new = (text.splitlines(keepends=True) for text in (before, after, now))
    edits = sorted(
        (start, end, other[first:last])
        for other in (old, new)
        for kind, start, end, first, last in difflib.SequenceMatcher(None, base, other).get_opcodes()
        if kind != "equal"
    )
    if any(second[0] < first[1] or second[:2] == first[:2] for first, second in pairwise(edits)):
        return None
    place, lines = 0, list[str]()
    for start, end, instead in edits:
        lines += [*base[place:start], *instead]
        place = end
    return "".join([*lines, *base[place:]])


def keep_copy(path: Path, text: str, now: datetime) -> Path:
    """Write a copy beside a file, under a name that is free; only its owner can read it.

    Raises:
        BadInput: there are too many copies.
    """
    target = path.resolve()
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    for number in range(1, 1000):
        name = f"{target.name}.backup-{stamp}" + (f"-{number}" if number > 1 else "")
        try:
            descriptor = os.open(target.with_name(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
        return target.with_name(name)
    raise BadInput(f"There are too many copies of {target}.", hint="Remove some of them.")
