"""Copilot CLI: a session is a log of events, one JSON line each (`session.start`, `user.message`, …).

Sessions stand in `session-state/SESSION/events.jsonl` of Copilot's folder, in older versions in
`session-state/SESSION.jsonl`. An event has a type, an id, a time and its data:

* `user.message` holds what was typed (`content`), beside what was sent (`transformedContent`). A message with a
  `source` of its own was written by the program.
* Calls stand in `assistant.message`, results in `tool.execution_complete`. A shell's result ends with its exit code.
* Events of a sub-agent carry the call that started it (`parentToolCallId`) and become a thread of their own.
* `session.snapshot_rewind` takes back the turns from an event on; `abort` ends a turn that the person stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.importers import items, json_lines
from commonplace.importers.converter import (
    Converted,
    ConvertedRecord,
    Payload,
    SessionHead,
    thread_id_for,
    title_note,
)
from commonplace.importers.items import Part, Text
from commonplace.importers.json_values import (
    MANY,
    TooDense,
    as_text,
    decoded,
    elements_of,
    first_byte,
    is_blank,
    opening,
    text_of,
    time_of,
    word_of,
)
from commonplace.patterns import regex
from commonplace.protocol.memory_traces import is_memory_text, is_memory_tool, reads_memory
from commonplace.protocol.rollout import Origin, Skipped

SOURCE: Final = "copilot"
_NONE: Final = msgspec.Raw()
_FOLDER: Final = "session-state"
_EVENTS: Final = "events.jsonl"
_SHELLS: Final = frozenset({"bash", "powershell", "local_shell"})
_EXITED: Final = regex(r"<exited with exit code (\d{1,5})>\s*$")
_TAIL: Final = 200
"""How much of an output is searched for an exit code."""
_ANSWERED: Final = "User responded: "
_REFUSED: Final = frozenset({"rejected", "denied"})


class _CopilotEvent(msgspec.Struct, gc=False):
    type: str = ""
    id: msgspec.Raw = _NONE
    timestamp: msgspec.Raw = _NONE
    data: msgspec.Raw = _NONE


class _Data(msgspec.Struct, gc=False, rename="camel"):
    """The fields of every type of event that is used."""

    session_id: msgspec.Raw = _NONE
    copilot_version: msgspec.Raw = _NONE
    start_time: msgspec.Raw = _NONE
    selected_model: msgspec.Raw = _NONE
    new_model: msgspec.Raw = _NONE
    context: msgspec.Raw = _NONE
    content: msgspec.Raw = _NONE
    source: msgspec.Raw = _NONE
    attachments: msgspec.Raw = _NONE
    reasoning_text: msgspec.Raw = _NONE
    tool_requests: msgspec.Raw = _NONE
    tool_call_id: msgspec.Raw = _NONE
    tool_name: msgspec.Raw = _NONE
    name: msgspec.Raw = _NONE
    arguments: msgspec.Raw = _NONE
    success: msgspec.Raw = _NONE
    result: msgspec.Raw = _NONE
    error: msgspec.Raw = _NONE
    code: msgspec.Raw = _NONE
    message: msgspec.Raw = _NONE
    parent_tool_call_id: msgspec.Raw = _NONE
    summary_content: msgspec.Raw = _NONE
    up_to_event_id: msgspec.Raw = _NONE
    reason: msgspec.Raw = _NONE
    title: msgspec.Raw = _NONE
    prompt: msgspec.Raw = _NONE
    question: msgspec.Raw = _NONE
    type: msgspec.Raw = _NONE
    path: msgspec.Raw = _NONE
    display_name: msgspec.Raw = _NONE
    mime_type: msgspec.Raw = _NONE
    data: msgspec.Raw = _NONE
    cwd: msgspec.Raw = _NONE
    git_root: msgspec.Raw = _NONE
    branch: msgspec.Raw = _NONE
    repository: msgspec.Raw = _NONE
    repository_host: msgspec.Raw = _NONE


_event = msgspec.json.Decoder(_CopilotEvent)
_data = msgspec.json.Decoder(_Data)


class _Call(msgspec.Struct, gc=False):
    name: str
    arguments: Text
    recalled: bool


def default_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that Copilot CLI would use."""
    if chosen := environment.get("COPILOT_HOME"):
        return Path(chosen).expanduser()
    base = environment.get("XDG_STATE_HOME") or environment.get("HOME")
    return (Path(base).expanduser() if base else Path.home()) / ".copilot"


def find(path: Path) -> Iterator[Path]:
    """Yield the sessions at a path: Copilot's folder, its `session-state`, a folder of sessions, or a file."""
    if path.is_file():
        yield path
        return
    place = path / _FOLDER if (path / _FOLDER).is_dir() else path
    if place.name == _FOLDER:  # a session keeps files of its own beside its events, which may be of any kind
        yield from sorted([*place.glob("*.jsonl"), *place.glob(f"*/{_EVENTS}")])
    else:
        yield from (file for file in json_lines.walk(place) if file.suffix == ".jsonl")


def convert(path: Path) -> Converted:
    """Yield the threads of a session; see `converter`."""
    reader = _EventReader(path)
    for line in json_lines.read_lines(path):
        if isinstance(line, Skipped):
            yield line
        else:
            yield from reader.see(*line)


def _fields(raw: msgspec.Raw) -> _Data:
    return _data.decode(raw) if first_byte(raw) == b"{" else _Data()


class _EventReader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.head: SessionHead | None = None
        self.time = ""
        self.calls: dict[str, _Call] = {}
        self.children: dict[str, str] = {}
        """The thread of each sub-agent, by the call that started it."""
        self.turns: list[tuple[str, bool]] = []
        """The events that count, and whether a turn begins with each."""
        self.reasoning = 0
        self.model = ""

    def see(self, offset: int, raw: bytes) -> Converted:
        event = decoded(_event.decode, offset, raw)
        if isinstance(event, Skipped):
            yield event
            return
        if not event.type or (self.head is None and event.type != "session.start"):
            yield Skipped(offset, len(raw), json_lines.NOT_A_RECORD)
            return
        self.time = time_of(event.timestamp) or self.time
        data = _fields(event.data)
        if self.head is None:
            self.head = self._head(data)
            yield self.head
            self.model = word_of(data.selected_model)
            return
        key = word_of(event.id) or f"@{offset}"
        try:
            payloads = self._payloads(event.type, data, Origin(id=key, offset=offset))
        except TooDense:
            yield Skipped(offset, len(raw), json_lines.TOO_DENSE)
            return
        if payloads:
            parent = word_of(data.parent_tool_call_id)
            if parent and parent not in self.children:
                yield from self._child(parent)
            yield ConvertedRecord(self.children.get(parent, self.head.thread_id), key, self.time, payloads)

    def _head(self, data: _Data) -> SessionHead:
        place = _fields(data.context)
        session = word_of(data.session_id) or (self.path.parent.name if self.path.name == _EVENTS else self.path.stem)
        name, host = word_of(place.repository), word_of(place.repository_host) or "github.com"
        cwd, root = word_of(place.cwd), word_of(place.git_root)
        return SessionHead(
            source=SOURCE,
            thread_id=thread_id_for(SOURCE, session),
            session_id=session,
            started=time_of(data.start_time) or self.time,
            path=str(self.path),
            cwd=cwd or root,
            made_from=root if root != cwd else "",
            version=word_of(data.copilot_version),
            branch=word_of(place.branch) or None,
            repository=f"https://{host}/{name}" if "/" in name else "",
            provider="github",
        )

    def _child(self, call_id: str) -> Iterator[SessionHead | ConvertedRecord]:
        """Begin the thread of a sub-agent, with what it was asked to do."""
        assert self.head is not None
        session = f"{self.head.session_id}/{call_id}"
        child = thread_id_for(SOURCE, session)
        self.children[call_id] = child
        yield msgspec.structs.replace(
            self.head,
            thread_id=child,
            session_id=session,
            started=self.time,
            parent=self.head.thread_id,
            agent_id=call_id,
        )
        call = self.calls.get(call_id)
        prompt = _argument(call, "prompt") if call is not None else None
        if prompt is not None:
            said = items.message(
                "user", [(items.imported_kind("subagent_prompt"), prompt)], Origin(id=f"{call_id}#prompt")
            )
            yield ConvertedRecord(child, f"{call_id}#prompt", self.time, [said])

    def _payloads(self, kind: str, data: _Data, origin: Origin) -> list[Payload]:
        match kind:
            case "user.message":
                return self._asked(data, origin)
            case "assistant.reasoning":
                return self._thought(data.content, origin)
            case "assistant.message":
                return self._answered(data, origin)
            case "tool.execution_start":
                known = word_of(data.tool_call_id) in self.calls
                return [] if known else self._called(data, word_of(data.tool_name), origin)
            case "tool.execution_complete":
                return self._result(data, origin)
            case "skill.invoked" | "system.notification":
                return _injected(data, origin)
            case "session.compaction_complete":
                return _compacted(data)
            case "session.title_changed":
                return [title_note(title, chosen=False)] if (title := word_of(data.title)) else []
            case "session.model_change":
                self.model = word_of(data.new_model) or self.model
                return []
            case "session.snapshot_rewind":
                return self._rewound(word_of(data.up_to_event_id))
            case "abort":
                words = word_of(data.reason) or "abort"
                return [items.message("user", [(items.imported_kind("interrupt"), words)], origin)]
            case _:
                return []

    def _asked(self, data: _Data, origin: Origin) -> list[Payload]:
        parts: list[Part] = []
        media: list[dict[str, Any]] = []
        writer, text = word_of(data.source), text_of(data.content)
        is_program = writer not in ("", "user") or bool(word_of(data.parent_tool_call_id))
        if text is not None and not is_blank(text):
            kind = items.imported_kind("injected") if is_program else items.USER
            parts.append(("memory.injected" if is_memory_text(opening(text)) else kind, text))
        for raw in elements_of(data.attachments, MANY):
            attached = _fields(raw)
            mime, content = word_of(attached.mime_type), text_of(attached.data)
            if mime.startswith("image/") and isinstance(content, str):
                media.append(items.image(mime, content))
            elif name := word_of(attached.path) or word_of(attached.display_name):
                parts.append((items.imported_kind("file"), name))
        if not parts and not media:
            return []
        begins = any(kind == items.USER for kind, _ in parts) or (not parts and bool(media))
        self.turns.append((origin.id, begins))
        assert self.head is not None
        settings = [items.settings(self.model, self.head.cwd)] if self.model and begins else []
        recalled = all(kind.startswith("memory.") for kind, _ in parts) and not media
        noted = msgspec.structs.replace(origin, memory=recalled)
        return [*settings, items.message("user", parts, noted, media)]

    def _thought(self, raw: msgspec.Raw, origin: Origin) -> list[Payload]:
        text = text_of(raw)
        if text is None or is_blank(text):
            return []
        content = hash(text if isinstance(text, str) else bytes(text))
        if content == self.reasoning:  # an answer repeats the reasoning that an event of its own had
            return []
        self.reasoning = content
        return [items.reasoning(text, origin)]

    def _answered(self, data: _Data, origin: Origin) -> list[Payload]:
        said = self._thought(data.reasoning_text, origin)
        text = text_of(data.content)
        if text is not None and not is_blank(text):
            said.append(items.answer(text, origin))
        for raw in elements_of(data.tool_requests, MANY):
            request = _fields(raw)
            said.extend(self._called(request, word_of(request.name), origin))
        return said

    def _called(self, data: _Data, name: str, origin: Origin) -> list[Payload]:
        call_id = word_of(data.tool_call_id)
        if not call_id:
            return []
        arguments = as_text(data.arguments) if first_byte(data.arguments) in (b"{", b'"') else "{}"
        recalled = _is_memory_tool(name) or (isinstance(arguments, str) and reads_memory(arguments))
        self.calls[call_id] = _Call(name, arguments, recalled)
        noted = msgspec.structs.replace(origin, memory=recalled)
        return [items.call(name or "tool", arguments, call_id, noted)]

    def _result(self, data: _Data, origin: Origin) -> list[Payload]:
        call_id = word_of(data.tool_call_id)
        call = self.calls.get(call_id)
        if call is None:
            return []
        worked = bytes(data.success) == b"true"
        text = text_of(_fields(data.result).content)
        error = _fields(data.error)
        if text is None:
            text = text_of(error.message) or text_of(data.error) or ""
        refused = word_of(error.code) in _REFUSED
        ok = worked and not _exit_code(call.name, text)
        noted = msgspec.structs.replace(origin, ok=ok, memory=call.recalled, refused=refused)
        given = [items.output(call_id, text, noted)]
        if call.name == "ask_user" and isinstance(text, str) and text.startswith(_ANSWERED):
            question = _argument(call, "question") or ""
            words = f"{question} {text.removeprefix(_ANSWERED)}".strip()
            given.append(items.message("user", [(items.imported_kind("reply"), words)], origin))
        return given

    def _rewound(self, event: str) -> list[Payload]:
        place = next((n for n, (key, _) in enumerate(self.turns) if key == event), None)
        if place is None:
            return []
        turns = sum(begins for _, begins in self.turns[place:])
        del self.turns[place:]
        return [items.rolled_back(turns)] if turns else []


def _injected(data: _Data, origin: Origin) -> list[Payload]:
    text = text_of(data.content)
    if text is None or is_blank(text):
        return []
    return [items.message("user", [(items.imported_kind("injected"), text)], origin)]


def _compacted(data: _Data) -> list[Payload]:
    text = text_of(data.summary_content)
    if bytes(data.success) == b"false" or text is None or is_blank(text):
        return []
    summary = text if isinstance(text, str) else msgspec.json.decode(text, type=str)
    return [items.compacted(summary, [items.summary_item(summary)])]


def _argument(call: _Call, name: str) -> Text | None:
    if not isinstance(call.arguments, str) or not call.arguments.startswith("{"):
        return None
    return text_of(getattr(_data.decode(call.arguments.encode()), name))


def _exit_code(tool: str, text: Text) -> int:
    """Return the code that a shell's output says it ended with; 0 where it says none."""
    if tool not in _SHELLS:
        return 0
    tail = text[-_TAIL:] if isinstance(text, str) else msgspec.json.decode(text, type=str)[-_TAIL:]
    code = _EXITED.search(tail)
    return int(code[1]) if code is not None else 0


def _is_memory_tool(name: str) -> bool:
    """Say whether a tool is one of a memory server; Copilot names tools of servers `SERVER-TOOL`."""
    server, _, tool = name.partition("-")
    return is_memory_tool(name) or (bool(tool) and is_memory_tool(f"mcp__{server}__{tool}"))
