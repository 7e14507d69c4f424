"""The tool `apply_patch`. The operations of a patch work, in their order, on what earlier ones would leave behind."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import anyio.to_thread
import msgspec

from commonplace.agent.tools.arguments import schema
from commonplace.agent.tools.patch import change, files
from commonplace.agent.tools.patch.files import FileContent, FileWrite, PatchPath
from commonplace.agent.tools.patch.parse import AddFile, DeleteFile, Operation, UpdateFile, parse
from commonplace.agent.tools.registry import (
    Action,
    FileEdit,
    FreeText,
    ToolContext,
    ToolDefinition,
    ToolInvocation,
    ToolOutput,
    description,
    failed,
    text_of,
)
from commonplace.errors import ToolError


class ChangedFile(msgspec.Struct, frozen=True):
    """One file that a patch changed."""

    path: str
    """As the patch names it."""
    kind: Literal["add", "update", "delete"]
    to: str | None = None
    """Where it moved."""
    added: int = 0
    removed: int = 0
    diff: str = ""
    """The text of a file that is added or deleted, else the difference as a unified diff."""

    def line(self) -> str:
        """Return it as a line of a summary."""
        if self.kind == "update":
            counts = f" (+{self.added} -{self.removed})"
            return f"R {self.path} -> {self.to}{counts}" if self.to else f"M {self.path}{counts}"
        return f"{'A' if self.kind == 'add' else 'D'} {self.path}"


class PlannedPatch(msgspec.Struct, frozen=True):
    """The changes of a patch, computed and not yet written."""

    writes: tuple[FileWrite, ...]
    changes: tuple[ChangedFile, ...]


class ApplyPatch:
    """Applies patches to files."""

    aliases = ()
    parallel = False
    mutates = True
    asks = True

    def __init__(self) -> None:
        self.definition = ToolDefinition("apply_patch", "custom", description("apply_patch"), schema(FreeText))

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Apply a patch."""
        operations = parse(text_of(call))
        planned = await anyio.to_thread.run_sync(plan_patch, operations, context.cwd, context.roots)
        paths = tuple(str(each.place.path) for each in planned.writes)
        edits = tuple(FileEdit(str(context.cwd / each.path), each.kind, each.to, each.diff) for each in planned.changes)
        action = Action(call.id, "change", context.cwd, paths=paths, edits=edits)
        if (why := await context.approve(action)) is not None:
            return failed(f"Nothing was changed: {why}")
        # A cancelled call waits for the thread: the patch is applied as a whole, or not at all.
        await anyio.to_thread.run_sync(files.write, planned.writes)
        lines = [each.line() for each in planned.changes]
        return ToolOutput(content="\n".join(["Done. Changed files:", *lines]))


def plan_patch(operations: Sequence[Operation], cwd: Path, roots: Sequence[Path] = ()) -> PlannedPatch:
    """Compute the changes of a patch (raises ToolError: it does not fit the files)."""
    tree = _Tree(cwd, roots)
    done: list[ChangedFile] = []
    for operation in operations:
        match operation:
            case AddFile():
                done.append(tree.add(operation))
            case DeleteFile():
                done.append(tree.delete(operation))
            case UpdateFile():
                done.append(tree.update(operation))
    return PlannedPatch(tree.writes(), tuple(done))


class _State(msgspec.Struct):
    before: FileContent | None
    data: bytes | None
    mode: int | None = None


class _Tree:
    """The files of a patch as they would be after the operations so far."""

    def __init__(self, cwd: Path, roots: Sequence[Path]) -> None:
        self._cwd = cwd
        self._roots = roots
        self._states: dict[Path, tuple[PatchPath, _State]] = {}

    def writes(self) -> tuple[FileWrite, ...]:
        """Return the files that change: first those that get new contents, then those that are deleted."""
        changed = [
            FileWrite(place, state.before, state.data, state.mode)
            for place, state in self._states.values()
            if state.data != (state.before.data if state.before is not None else None)
        ]
        return tuple(sorted(changed, key=lambda write: write.after is None))

    def _state(self, text: str) -> _State:
        place = files.patch_path(text, self._cwd, self._roots)
        known = self._states.get(place.path)
        if known is None:
            before = files.read(place)
            known = (place, _State(before, before.data if before is not None else None))
            self._states[place.path] = known
        return known[1]

    def add(self, operation: AddFile) -> ChangedFile:
        state = self._state(operation.path)
        if state.data is not None:
            raise ToolError("exists", f"{operation.path} is there already; change it with `*** Update File:`")
        text = change.new_text(operation.lines)
        state.data = _encoded(text)
        return ChangedFile(operation.path, "add", added=len(operation.lines), diff=text)

    def delete(self, operation: DeleteFile) -> ChangedFile:
        state = self._there(operation.path)
        data, state.data = state.data or b"", None
        text = data.decode("utf-8", "replace")
        return ChangedFile(operation.path, "delete", removed=data.count(b"\n"), diff=text)

    def update(self, operation: UpdateFile) -> ChangedFile:
        state = self._there(operation.path)
        text = (state.data or b"").decode("utf-8", "surrogateescape")
        data = _encoded(change.updated_text(operation.path, text, operation.hunks))
        mode = state.before.mode if state.before is not None else state.mode
        moves = operation.to is not None and files.patch_path(operation.to, self._cwd, self._roots) != files.patch_path(
            operation.path, self._cwd, self._roots
        )
        if moves and operation.to is not None:
            target = self._state(operation.to)
            if target.data is not None:
                raise ToolError("exists", f"{operation.path} cannot move to {operation.to}, which is there already")
            state.data = None
            state = target
        state.data, state.mode = data, mode
        signs = [sign for hunk in operation.hunks for sign, _ in hunk.lines]
        to = operation.to if moves else None
        diff = change.unified(text, data.decode("utf-8", "surrogateescape"))
        return ChangedFile(operation.path, "update", to, signs.count("+"), signs.count("-"), diff)

    def _there(self, path: str) -> _State:
        state = self._state(path)
        if state.data is None:
            near = _near(self._cwd, path)
            raise ToolError("not_found", f"there is no file {path}{near}")
        return state


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ToolError("bad_patch", "the patch holds halves of surrogate pairs, which are no text") from None


def _near(cwd: Path, path: str) -> str:
    """Return a hint: a file in the same folder whose name differs only in case."""
    place = cwd / path
    try:
        names = os.listdir(place.parent)
    except OSError:
        return "; its folder is not there either"
    alike = [name for name in names if name.lower() == place.name.lower()]
    return f"; did you mean {alike[0]}?" if alike else ""
