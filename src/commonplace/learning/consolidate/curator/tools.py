"""The tools of the restricted agent and their limits: `list`, `read`, `search`, `edit`, `write`, `done`.

All of them work on the staged workspace and nothing else (`staged_files`). Secrets are removed from what is shown and
from what is written. A `CuratorTools` serves one conversation: it counts calls and bytes, and stops a model that asks
for the same again and again or whose every call fails. `done` ends the conversation at once, in the same answer as the
edits before it; after an edit that failed it does not, so that the model sees the mistake.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import msgspec

from commonplace.agent.tools import arguments
from commonplace.agent.tools.registry import Tool, ToolContext, ToolDefinition, ToolInvocation, ToolOutput
from commonplace.errors import ToolError
from commonplace.learning.consolidate.curator import prompts, staged_files
from commonplace.learning.consolidate.curator.limits import CuratorLimits
from commonplace.memory.recall.tools import file_cache, files, list_files, search_files
from commonplace.memory.recall.tools.arguments import ListArguments, SearchArguments
from commonplace.memory.recall.visibility import OwnershipFiles, SessionOwners, Visibility
from commonplace.redact import redact

SAME: Final = 3
"""How often the same call with the same answer is borne."""
FAILURES: Final = 8
"""How many calls in a row may fail."""
_LINES: Final = 120
"""How many lines one `read` shows."""
_MATCHES: Final = 20
"""How many matches one `search` shows."""
_MATCH_CHARS: Final = 400
"""How many characters of a match are shown."""
_ENTRIES: Final = 200
"""How many names one `list` shows."""


class _ListCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str = ""


class _ReadCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    line: int = 1
    lines: int = _LINES


class _SearchCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: str
    path: str = ""


class _Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    old: str
    new: str


class _EditCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    changes: list[_Change]


class _WriteCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    text: str


class _FinishCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class CuratorTools:
    """The tools of one conversation, with counts of how much of its limits it has used."""

    def __init__(self, root: Path, owned: Collection[str], settings: CuratorLimits) -> None:
        self._root = root
        self._owned = owned
        self._settings = settings
        self._calls = self._shown = self._written = 0
        self._again: Counter[bytes] = Counter()
        self._failed_in_a_row = 0
        self._is_broken = False
        """The last change failed, and the model may not have seen it yet."""
        self.is_done = False
        self.problem: str | None = None
        """Why the conversation was stopped."""
        self.on_end: Callable[[str], None] = lambda _: None
        """Called when no further answer is wanted."""

    def tools(self) -> list[Tool]:
        """Return the tools as they are offered."""
        kinds: dict[str, tuple[type[msgspec.Struct], Callable[[Any], str]]] = {
            "list": (_ListCall, self._list),
            "read": (_ReadCall, self._read),
            "search": (_SearchCall, self._search),
            "edit": (_EditCall, self._edit),
            "write": (_WriteCall, self._write),
            "done": (_FinishCall, self._done),
        }
        return [_Tool(self, name, kind, act) for name, (kind, act) in kinds.items()]

    def begin_turn(self) -> None:
        """Begin the next turn of the conversation."""
        self.is_done = self._is_broken = False
        self._failed_in_a_row = 0

    async def answer_call(self, call: ToolInvocation, act: Callable[[], str]) -> ToolOutput:
        """Answer a call, if there may be one more."""
        self._calls += 1
        if self.problem is None and self._calls > self._settings.calls:
            self._stop(f"it made more than {self._settings.calls} calls")
        if self.problem is not None:
            return ToolOutput(content=f"Stopped: {self.problem}.", ok=False)
        try:
            text, ok = await anyio.to_thread.run_sync(act), True
        except ToolError as error:
            text, ok = f"{call.name}: {error.sentence()}", False
        except OSError as error:
            text, ok = f"{call.name} failed: {error.strerror}", False
        self._note(call, text, ok)
        return ToolOutput(content=self._bounded(text), ok=ok)

    def _note(self, call: ToolInvocation, text: str, ok: bool) -> None:
        self._failed_in_a_row = 0 if ok else self._failed_in_a_row + 1
        if call.name in ("edit", "write"):
            self._is_broken = not ok
        key = hashlib.blake2b(f"{call.key}\0{call.arguments}\0{text}".encode("utf-8", "replace")).digest()
        self._again[key] += 1
        if self._again[key] > SAME:
            self._stop("it asks for the same again and again")
        elif self._failed_in_a_row >= FAILURES:
            self._stop(f"{FAILURES} calls in a row failed")
        elif self.is_done:
            self.on_end("done")

    def _stop(self, why: str) -> None:
        self.problem = why
        self.on_end(why)

    def _bounded(self, text: str) -> str:
        left = self._settings.shown_bytes - self._shown
        data = redact(text).encode("utf-8", "replace")
        most = max(min(left, self._settings.read_bytes), 0)
        self._shown += min(len(data), most)
        if len(data) <= most:
            return data.decode()
        return data[:most].decode("utf-8", "ignore") + "\n" + prompts.text("cut" if most else "no_more")

    def _list(self, call: _ListCall) -> str:
        with files.MemoryRoot(self._root) as root:
            found = list_files.listing(
                root, ListArguments(call.path or None, None, _ENTRIES), Visibility(), _ownership_files(root)
            )
        lines = [each.path + ("/" if each.entry_type == "directory" else "") for each in found.entries]
        return "\n".join([*lines, *(["…"] if found.truncated else [])]) or "(nothing)"

    def _read(self, call: _ReadCall) -> str:
        if call.line < 1 or call.lines < 1:
            raise arguments.bad_arguments("line and lines count from 1")
        lines = staged_files.read(self._root, call.path).split("\n")
        wanted = lines[call.line - 1 : call.line - 1 + min(call.lines, _LINES)]
        return "\n".join(f"{number}: {line}" for number, line in enumerate(wanted, call.line)) or "(no such line)"

    def _search(self, call: _SearchCall) -> str:
        wanted = SearchArguments(
            [call.words], path=call.path or None, case_sensitive=False, normalized=True, max_results=_MATCHES
        )
        with files.MemoryRoot(self._root) as root:
            found = search_files.search(root, file_cache.FileCache(), wanted, Visibility(), _ownership_files(root))
        lines = [f"{each.path}:{each.match_line_number}: {each.content[:_MATCH_CHARS]}" for each in found.matches]
        return "\n".join([*lines, *(["…"] if found.truncated else [])]) or "(nothing)"

    def _edit(self, call: _EditCall) -> str:
        staged_files.may_write(call.path, self._owned)
        text = staged_files.read(self._root, call.path)
        if not call.changes:
            raise arguments.bad_arguments("there is no change in changes")
        for change in call.changes:
            times = text.count(change.old) if change.old else 0
            if times != 1:
                shown = change.old if len(change.old) <= 100 else f"{change.old[:100]}…"
                raise ToolError(
                    "not_once", f"old must stand in the file exactly once, it does {times} times: {shown!r}"
                )
            text = text.replace(change.old, self._taken(change.new))
        staged_files.write(self._root, call.path, text, self._owned)
        return "changed"

    def _write(self, call: _WriteCall) -> str:
        staged_files.may_write(call.path, self._owned)
        if staged_files.skill_of(call.path) is None:
            raise ToolError("read_only", f"{call.path} is changed with edit, not written anew")
        staged_files.write(self._root, call.path, self._taken(call.text), self._owned)
        return "written"

    def _taken(self, text: str) -> str:
        """Return a text as it may be written, and count its bytes."""
        size = len(text.encode("utf-8", "replace"))
        if size > self._settings.edit_bytes:
            raise ToolError("too_large", f"a text has {size} bytes, and {self._settings.edit_bytes} is the most")
        self._written += size
        if self._written > self._settings.written_bytes:
            raise ToolError("too_large", f"more than {self._settings.written_bytes} bytes were written")
        return redact(text)

    def _done(self, call: _FinishCall) -> str:
        if self._is_broken:
            self._is_broken = False
            raise ToolError("not_done", "the change before this failed; put it right, or call done once more")
        self.is_done = True
        return "ok"


def _ownership_files(root: files.MemoryRoot) -> OwnershipFiles:
    return OwnershipFiles(root.text, SessionOwners())


class _Tool:
    """One of the curator's tools."""

    aliases: tuple[str, ...] = ()
    parallel = False
    mutates = False

    def __init__(self, tools: CuratorTools, name: str, kind: type[msgspec.Struct], act: Callable[[Any], str]) -> None:
        self._tools = tools
        self._kind = kind
        self._act = act
        schema = {"additionalProperties": False, **arguments.schema(kind)}
        schema.pop("title", None)
        self.definition = ToolDefinition(name, "function", prompts.text(f"tool_{name}"), schema)

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Do what was asked."""
        return await self._tools.answer_call(call, lambda: self._act(arguments.decode(call.arguments, self._kind)))
