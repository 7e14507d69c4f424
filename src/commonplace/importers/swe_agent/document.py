"""What both forms of a trajectory share: the document's fields, contents, tool calls, and names for its threads."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.importers.converter import SessionHead, thread_id_for
from commonplace.importers.items import Text
from commonplace.importers.json_values import MANY, as_text, elements_of, first_byte, joined, text_of, time_at, word_of

SOURCE: Final = "swe-agent"
_NONE: Final = msgspec.Raw()


class TrajectoryDocument(msgspec.Struct, gc=False):
    """A trajectory, or one attempt in it."""

    trajectory: msgspec.Raw = _NONE
    history: msgspec.Raw = _NONE
    info: msgspec.Raw = _NONE
    attempts: msgspec.Raw = _NONE
    messages: msgspec.Raw = _NONE
    replay_config: msgspec.Raw = _NONE


class TrajectoryCall(msgspec.Struct, gc=False):
    """A call as model APIs write it, nested or flat."""

    id: msgspec.Raw = _NONE
    call_id: msgspec.Raw = _NONE
    function: msgspec.Raw = _NONE
    name: msgspec.Raw = _NONE
    arguments: msgspec.Raw = _NONE


class _Texts(msgspec.Struct, gc=False):
    text: msgspec.Raw = _NONE


_document = msgspec.json.Decoder(TrajectoryDocument)
_tool_call = msgspec.json.Decoder(TrajectoryCall)
_texts = msgspec.json.Decoder(_Texts)


def decode(raw: bytes | msgspec.Raw) -> TrajectoryDocument:
    """Return a document (raises msgspec.DecodeError, RecursionError)."""
    return _document.decode(raw)


@functools.cache
def _only(name: str) -> msgspec.json.Decoder[Any]:
    """Return a decoder that builds one field of an object, whatever else the object has."""
    fields = [("value", msgspec.Raw, msgspec.field(default=_NONE, name=name))]
    return msgspec.json.Decoder(msgspec.defstruct("_Only", fields))


def field(raw: msgspec.Raw, *path: str) -> msgspec.Raw:
    """Return a value inside objects inside objects, or an empty one."""
    for name in path:
        raw = _only(name).decode(raw).value if first_byte(raw) == b"{" else _NONE
    return raw


def content(raw: msgspec.Raw) -> Text | None:
    """Return the text of a message's content: a string, or a list of parts (raises TooDense)."""
    if first_byte(raw) != b"[":
        return text_of(raw)
    parts = [text_of(_texts.decode(part).text) for part in elements_of(raw, MANY) if first_byte(part) == b"{"]
    found = [part for part in parts if part is not None]
    return joined(found, "\n") if found else None


def calls(raw: msgspec.Raw, spare_id: str) -> list[tuple[str, str, Text]]:
    """Return the id, name and arguments of each call in a list (raises TooDense)."""
    found: list[tuple[str, str, Text]] = []
    for place, element in enumerate(elements_of(raw, MANY)):
        if first_byte(element) != b"{":
            continue
        call = _tool_call.decode(element)
        call_id = word_of(call.call_id) or word_of(call.id) or f"{spare_id}-{place}"
        if first_byte(call.function) == b"{":
            call = _tool_call.decode(call.function)
        arguments = as_text(call.arguments) if call.arguments else "{}"
        found.append((call_id, word_of(call.name) or "bash", arguments))
    return found


def command(action: Text) -> Text:
    """Return the arguments of a call that runs a command."""
    if isinstance(action, str):
        return msgspec.json.encode({"command": action}).decode()
    return as_text(msgspec.Raw(b'{"command":' + bytes(action) + b"}"))


def modified_at(path: Path) -> float:
    """Return when a file was last written, to the millisecond."""
    return path.stat().st_mtime_ns // 1_000_000 / 1000


def session_of(path: Path) -> str:
    """Return what a run is called: its file's name, and the attempt if the file is one of several."""
    stem = path.name.removesuffix(".json").removesuffix(".traj")
    attempt = path.parent.name.removeprefix("attempt_")
    return f"{stem}#{attempt}" if path.parent.name.startswith("attempt_") and attempt.isdecimal() else stem


def head(path: Path, session: str, started: float, cwd: str, version: str, program: str) -> SessionHead:
    """Return the head of one run."""
    return SessionHead(
        source=SOURCE,
        thread_id=thread_id_for(SOURCE, session),
        session_id=session,
        started=time_at(started),
        path=str(path),
        cwd=cwd,
        version=version,
        entrypoint=program,
    )
