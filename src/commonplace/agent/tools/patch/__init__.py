"""`apply_patch`: changes to files, all or nothing.

`parse` reads the text, `match` finds places, `change` makes new texts, `files` writes. Everything is computed before
anything is written: the operations of a patch work, in their order, on what earlier ones would leave behind.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import anyio.to_thread
import msgspec

from commonplace.agent.tools.arguments import schema
from commonplace.agent.tools.described import description
from commonplace.agent.tools.patch import change, files
from commonplace.agent.tools.patch.files import Found, Place, Write
from commonplace.agent.tools.patch.parse import Add, Delete, Operation, Update, parse
from commonplace.agent.tools.registry import Action, Call, Context, Definition, Edit, FreeText, Output, failed, text_of
from commonplace.errors import ToolError


class Changed(msgspec.Struct, frozen=True):
    """One file that a patch changed."""

    path: str
    """As the patch names it."""
    kind: Literal["add", "update", "delete"]
    to: str | None = None
    """Where it moved."""
    added: int = 0
    removed: int = 0

    def line(self) -> str:
        """Return it as a line of a summary."""
        if self.kind == "update":
            counts = f" (+{self.added} -{self.removed})"
            return f"R {self.path} -> {self.to}{counts}" if self.to else f"M {self.path}{counts}"
        return f"{'A' if self.kind == 'add' else 'D'} {self.path}"


class Changes(msgspec.Struct, frozen=True):
    """What a patch changed; the detail of an output."""

    files: tuple[Changed, ...]


class Planned(msgspec.Struct, frozen=True):
    """What a patch would change, computed and not yet written."""

    writes: tuple[Write, ...]
    changes: Changes


class ApplyPatch:
    """Changes files."""

    aliases = ()
    parallel = False
    mutates = True
    asks = True

    def __init__(self) -> None:
        self.definition = Definition("apply_patch", "custom", description("apply_patch"), schema(FreeText))

    async def run(self, call: Call, context: Context) -> Output:
        """Apply a patch."""
        operations = parse(text_of(call))
        planned = await anyio.to_thread.run_sync(plan, operations, context.cwd, context.roots)
        paths = tuple(str(each.place.path) for each in planned.writes)
        edits = tuple(Edit(str(context.cwd / each.path), each.kind, each.to) for each in planned.changes.files)
        action = Action(call.id, "apply_patch", "change", context.cwd, paths=paths, edits=edits)
        if (why := await context.approve(action)) is not None:
            return failed(f"Nothing was changed: {why}")
        # The thread is not abandoned when the call is cancelled: the patch is applied, or it is not.
        await anyio.to_thread.run_sync(files.write, planned.writes)
        lines = [each.line() for each in planned.changes.files]
        return Output(content="\n".join(["Done. Changed files:", *lines]), detail=planned.changes)


def apply(text: str, cwd: Path, roots: Sequence[Path] = ()) -> Changes:
    """Apply a patch.

    Raises:
        ToolError: it cannot be applied; nothing was changed.
    """
    planned = plan(parse(text), cwd, roots)
    files.write(planned.writes)
    return planned.changes


def plan(operations: Sequence[Operation], cwd: Path, roots: Sequence[Path] = ()) -> Planned:
    """Compute what a patch changes (raises ToolError: it does not fit what is there)."""
    tree = _Tree(cwd, roots)
    done: list[Changed] = []
    for operation in operations:
        match operation:
            case Add():
                done.append(tree.add(operation))
            case Delete():
                done.append(tree.delete(operation))
            case Update():
                done.append(tree.update(operation))
    return Planned(tree.writes(), Changes(tuple(done)))


class _State(msgspec.Struct):
    before: Found | None
    data: bytes | None
    mode: int | None = None


class _Tree:
    """The files that a patch names, as they would be after the operations so far."""

    def __init__(self, cwd: Path, roots: Sequence[Path]) -> None:
        self._cwd = cwd
        self._roots = roots
        self._states: dict[Path, tuple[Place, _State]] = {}

    def writes(self) -> tuple[Write, ...]:
        """Return the files that come out different, new contents before those that go."""
        changed = [
            Write(place, state.before, state.data, state.mode)
            for place, state in self._states.values()
            if state.data != (state.before.data if state.before is not None else None)
        ]
        return tuple(sorted(changed, key=lambda write: write.after is None))

    def _state(self, text: str) -> _State:
        place = files.place_of(text, self._cwd, self._roots)
        known = self._states.get(place.path)
        if known is None:
            before = files.read(place)
            known = (place, _State(before, before.data if before is not None else None))
            self._states[place.path] = known
        return known[1]

    def add(self, operation: Add) -> Changed:
        state = self._state(operation.path)
        if state.data is not None:
            raise ToolError("exists", f"{operation.path} is there already; change it with `*** Update File:`")
        state.data = _encoded(change.new_text(operation.lines))
        return Changed(operation.path, "add", added=len(operation.lines))

    def delete(self, operation: Delete) -> Changed:
        state = self._there(operation.path)
        lines = (state.data or b"").count(b"\n")
        state.data = None
        return Changed(operation.path, "delete", removed=lines)

    def update(self, operation: Update) -> Changed:
        state = self._there(operation.path)
        text = (state.data or b"").decode("utf-8", "surrogateescape")
        data = _encoded(change.updated(operation.path, text, operation.hunks))
        mode = state.before.mode if state.before is not None else state.mode
        moves = operation.to is not None and files.place_of(operation.to, self._cwd, self._roots) != files.place_of(
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
        return Changed(operation.path, "update", to, signs.count("+"), signs.count("-"))

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
    """Return a word on files of the same name in the same folder, in another spelling."""
    place = cwd / path
    try:
        names = os.listdir(place.parent)
    except OSError:
        return "; its folder is not there either"
    alike = [name for name in names if name.lower() == place.name.lower()]
    return f"; did you mean {alike[0]}?" if alike else ""
