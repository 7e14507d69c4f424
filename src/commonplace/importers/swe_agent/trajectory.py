"""SWE-agent: `trajectory` has the steps, `history` what was said around them.

The only words of a person are the first item of the history that is neither the system's nor a demonstration: the task,
in a template. Each step is a thought, an action and an observation; how the action was called stands in the history, if
the model called a tool for it, and otherwise it is a command. `query` (once `messages`) repeats the whole prompt at
every step and is never looked at. Demonstrations are another task's and left out.

An agent that tries again lists its `attempts`, and beside them repeats the best: each attempt becomes one thread.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from commonplace.importers import items, json_lines
from commonplace.importers.converter import Converted, ConvertedRecord, Payload
from commonplace.importers.items import Text
from commonplace.importers.json_values import TooDense, elements_of, first_byte, is_blank, text_of, time_at, word_of
from commonplace.importers.swe_agent.document import (
    TrajectoryDocument,
    calls,
    command,
    content,
    decode,
    field,
    head,
    modified_at,
    session_of,
)
from commonplace.protocol.rollout import Origin, Skipped

_NONE: Final = msgspec.Raw()
_LONGEST_STEP: Final = 86400.0
"""The longest time that a step may claim, in seconds: one day."""
_AHEAD: Final = 8
"""How far the history is searched for a step: between two steps it may have what the agent said about errors."""


class _Step(msgspec.Struct, gc=False):
    thought: msgspec.Raw = _NONE
    action: msgspec.Raw = _NONE
    observation: msgspec.Raw = _NONE
    response: msgspec.Raw = _NONE
    state: msgspec.Raw = _NONE
    execution_time: msgspec.Raw = _NONE


class _HistoryMessage(msgspec.Struct, gc=False):
    role: msgspec.Raw = _NONE
    content: msgspec.Raw = _NONE
    message_type: msgspec.Raw = _NONE
    is_demo: msgspec.Raw = _NONE
    action: msgspec.Raw = _NONE
    tool_calls: msgspec.Raw = _NONE


_step = msgspec.json.Decoder(_Step)
_said = msgspec.json.Decoder(_HistoryMessage)


def convert(path: Path, document: TrajectoryDocument) -> Converted:
    """Yield the threads of a SWE-agent trajectory."""
    session, end = session_of(path), modified_at(path)
    attempts = [raw for raw in elements_of(document.attempts) if first_byte(raw) == b"{"]
    for number, raw in enumerate(attempts):
        yield from _run(path, f"{session}#{number}", decode(raw), end)
    if not attempts:
        yield from _run(path, session, document, end)


def _run(path: Path, session: str, run: TrajectoryDocument, end: float) -> Converted:
    elements = elements_of(run.trajectory)
    asked, acts = _history(run)
    if not elements and asked is None:
        return
    now, cwd = end, ""
    for raw in elements:  # the steps are decoded one at a time, twice, because all of them at once may be too many
        step = _decoded(raw)
        now -= _duration(step)
        cwd = cwd or word_of(field(_state(step), "working_dir"))
    version = word_of(field(run.info, "swe_agent_version"))
    thread = head(path, session, now, cwd, version, "swe-agent")
    yield thread
    if asked is not None and not is_blank(asked):
        payloads = [items.message("user", [(items.USER, asked)], Origin(id="0"))]
        model = word_of(field(_replay(run), "agent", "model", "name"))
        if model:
            payloads.insert(0, items.settings(model, cwd))
        yield ConvertedRecord(thread.thread_id, "0", thread.started, payloads)
    for number, raw in enumerate(elements, 1):
        step = _decoded(raw)
        now += _duration(step)
        try:
            payloads = _payloads(step, _matching_message(step, acts), Origin(id=str(number)))
        except TooDense:
            yield Skipped(0, len(memoryview(raw)), json_lines.TOO_DENSE)
            continue
        if payloads:
            yield ConvertedRecord(thread.thread_id, str(number), time_at(now), payloads)
        elif first_byte(raw) != b"{":
            yield Skipped(0, len(memoryview(raw)), json_lines.NOT_A_RECORD)


def _history(run: TrajectoryDocument) -> tuple[Text | None, deque[msgspec.Raw]]:
    """Return the task, and what the model said, undecoded."""
    asked, acts = None, deque[msgspec.Raw]()
    for raw in elements_of(run.history):
        said = _said.decode(raw) if first_byte(raw) == b"{" else _HistoryMessage()
        role = "" if _is_demo(said) else word_of(said.role)
        if role == "user" and asked is None:
            try:
                asked = content(said.content)
            except TooDense:
                continue
        elif role == "assistant":
            acts.append(raw)
    return asked, acts


def _is_demo(message: _HistoryMessage) -> bool:
    return bytes(message.is_demo) == b"true" or word_of(message.message_type) == "demonstration"


def _matching_message(step: _Step, acts: deque[msgspec.Raw]) -> _HistoryMessage | None:
    """Take what the history says about a step; both are in order, but either may lack some of the other's."""
    action = text_of(step.action)
    for place, raw in enumerate(islice(acts, _AHEAD)):
        said = _said.decode(raw)
        if action is not None and _same(text_of(said.action), action):
            for _ in range(place + 1):
                acts.popleft()
            return said
    return None


def _same(one: Text | None, other: Text) -> bool:
    if isinstance(one, msgspec.Raw) and isinstance(other, msgspec.Raw):
        return bytes(one) == bytes(other)
    return one == other


def _payloads(step: _Step, acted: _HistoryMessage | None, origin: Origin) -> list[Payload]:
    thought, action = text_of(step.thought), text_of(step.action)
    seen, found = text_of(step.observation), list[Payload]()
    if is_blank(action) and is_blank(thought):
        thought = text_of(step.response)
    if thought is not None and not is_blank(thought):
        found.append(items.answer(thought, origin))
    if action is not None and not is_blank(action):
        spare = f"call_{origin.id}"
        made = calls(acted.tool_calls, spare) if acted is not None else []
        call_id, name, arguments = made[0] if made else (spare, "bash", command(action))
        found.append(items.call(name, arguments, call_id, origin))
        if seen is not None:
            found.append(items.output(call_id, seen, origin))
    elif seen is not None and not is_blank(seen):
        found.append(items.message("user", [(items.imported_kind("injected"), seen)], origin))
    return found


def _decoded(raw: msgspec.Raw) -> _Step:
    return _step.decode(raw) if first_byte(raw) == b"{" else _Step()


def _duration(step: _Step) -> float:
    """Return how long a step ran, in seconds."""
    try:
        seconds = float(word_of(step.execution_time) or 0)
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_STEP) if math.isfinite(seconds) else 0.0


def _state(step: _Step) -> msgspec.Raw:
    """Return the state of a step, which in old files is JSON in a string."""
    return _unwrapped(step.state)


def _replay(run: TrajectoryDocument) -> msgspec.Raw:
    return _unwrapped(run.replay_config)


def _unwrapped(raw: msgspec.Raw) -> msgspec.Raw:
    text = text_of(raw)
    if not isinstance(text, str):
        return raw
    try:
        return msgspec.json.decode(json_lines.repair(text.encode()), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return _NONE
