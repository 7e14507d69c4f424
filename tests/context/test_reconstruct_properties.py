"""Whatever happened in a thread, and however it is stored, its reconstruction is what a plain forward walk gives."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.context.reconstruct import Reconstruction, reconstruct
from commonplace.protocol.fragments import OWN_SUMMARY_PREFIX
from commonplace.rollout import reader
from commonplace.rollout.chain import open_ledger
from commonplace.rollout.checkpoint import Tail
from ledgers import Json, Script, assistant, function_call, function_output, message, user

# --- What can happen in a thread.

Compaction = Literal["hard", "numbered", "soft", "legacy"]
Ending = Literal["complete", "aborted", "killed"]

MALFORMED = [
    b"",
    b"  ",
    b"{",
    b"no json",
    b"[1]",
    b'{"type":"response_item"}',
    b'{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":"text"}}',
    b'{"timestamp":"t","type":"response_item","payload":{"type":"ghost_snapshot","id":"g"}}',
    b'{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"system","content":[]}}',
    b'{"timestamp":"t","type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":"many"}}',
    b'{"timestamp":"t","type":"event_msg","payload":{"type":"thread_rolled_back"}}',
    b'{"timestamp":"t","type":"event_msg","payload":{"type":"task_started","turn_id":5}}',
    b'{"timestamp":"t","type":"compacted","payload":{"replacement_history":[]}}',
    b'{"timestamp":"t","type":"compacted","payload":{"message":"m","replacement_history":"all"}}',
    b'{"timestamp":"t","type":"compacted","payload":{"message":"m","replacement_history_metadata":[{}]}}',
    b'{"timestamp":"t","type":"commonplace","payload":{"kind":"note"}}',
    b"\xff\xfe",
]


@dataclass(frozen=True)
class Turn:
    """A turn: what was said in it, and what else it held."""

    marked: bool
    says: int
    context: bool
    note: bool
    call: bool
    compaction: Compaction | None
    ending: Ending


@dataclass(frozen=True)
class Rollback:
    turns: int


@dataclass(frozen=True)
class Malformed:
    data: bytes


@dataclass(frozen=True)
class Fork:
    """From here on in a new thread, which inherits this share of the lines."""

    share: float


Step = Turn | Rollback | Malformed | Fork

COMPACTIONS: list[Compaction | None] = [None, None, "hard", "numbered", "soft", "legacy"]
ENDINGS: list[Ending] = ["complete", "complete", "aborted", "killed"]
TURNS = st.builds(
    Turn,
    marked=st.booleans(),
    says=st.integers(0, 2),
    context=st.booleans(),
    note=st.booleans(),
    call=st.booleans(),
    compaction=st.sampled_from(COMPACTIONS),
    ending=st.sampled_from(ENDINGS),
)
STEPS = st.one_of(
    TURNS,
    TURNS,
    TURNS,
    st.builds(Rollback, turns=st.integers(0, 3)),
    st.builds(Malformed, data=st.sampled_from(MALFORMED)),
    st.builds(Fork, share=st.floats(0, 1)),
)
THREADS = st.lists(STEPS, max_size=14)


# --- Writing it down.


@dataclass
class Writer:
    """Plays steps into a chain of scripts, oldest first."""

    paginated: bool
    scripts: list[Script] = field(default_factory=list[Script])
    inherited: list[bytes] = field(default_factory=list[bytes])
    """Lines that the newest script takes from those before it."""
    count: int = 0

    def __post_init__(self) -> None:
        self.scripts.append(Script(thread_id(0), paginated=self.paginated))

    def play(self, step: Step) -> None:
        script = self.scripts[-1]
        match step:
            case Turn():
                self._turn(script, step)
            case Rollback(turns):
                script.rollback(turns)
            case Malformed(data):
                script.raw(data)
            case Fork(share):
                self._fork(script, round(share * len(script.lines)))

    def lines(self) -> list[bytes]:
        """Return every line of the newest thread, inherited ones first."""
        return [*self.inherited, *self.scripts[-1].lines]

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}-{self.count}"

    def _turn(self, script: Script, turn: Turn) -> None:
        turn_id = self._name("turn")
        if turn.marked:
            script.event("task_started", turn_id=turn_id)
            script.line("turn_context", {"turn_id": turn_id, "cwd": "/", "model": "m"})
        if turn.context:
            script.item(message("developer", "<permissions instructions> all", self._name("context")))
            script.item(user("<environment_context>x</environment_context>", self._name("context")))
        if turn.note:
            script.item(message("developer", "a note", self._name("note")))
        for place in range(turn.says):
            if place == 1 and turn.compaction:
                self._compact(script, turn.compaction)
            script.item(user("something said", self._name("said")))
            script.item(assistant("an answer", self._name("answer")))
        if turn.call:
            call_id = self._name("call")
            script.item(function_call(call_id), function_output(call_id))
        if turn.says < 2 and turn.compaction:
            self._compact(script, turn.compaction)
        if turn.marked and turn.ending != "killed":
            script.event("task_complete" if turn.ending == "complete" else "turn_aborted", turn_id=turn_id)

    def _compact(self, script: Script, kind: Compaction) -> None:
        summary = self._name("summary")
        if kind == "legacy":
            script.compacted(None, summary)
            return
        replacement = [
            user("kept words", self._name("said")),
            message("system", "kept as well", self._name("system")),
            user(f"{OWN_SUMMARY_PREFIX}\n{summary}" if self.count % 2 else summary, self._name("summary")),
        ]
        more: Json = {} if kind == "soft" else {"window_number": self.count}
        script.compacted(replacement, summary, **more, **({"resume_metadata": {}} if kind == "hard" else {}))

    def _fork(self, parent: Script, cut: int) -> None:
        kept = parent.lines[:cut]
        base: Json = {
            "thread_id": parent.thread_id,
            "end_byte_offset": sum(len(line) + 1 for line in kept),
            "end_ordinal_exclusive": cut,
        }
        self.inherited = [*self.inherited, *kept]
        self.scripts.append(Script(thread_id(len(self.scripts)), paginated=self.paginated, history_base=base))


def thread_id(number: int) -> str:
    return f"0198c0de-0000-7000-8000-{number:012x}"


def write(scripts: list[Script], folder: Path, *, compressed: bool) -> Path:
    path = folder
    for script in scripts:
        path = script.write(folder)
        if compressed:
            packed = path.with_name(path.name + ".zst")
            packed.write_bytes(zstandard.ZstdCompressor(level=1).compress(path.read_bytes()))
            path.unlink()
            path = packed
    return path


# --- The forward walk.


def walk(raws: list[bytes], *, paginated: bool) -> list[Json]:
    """Return the history after all lines: a list that grows, is replaced by compactions and cut by rollbacks."""
    lines = list(understood(raws))
    undone = undone_compactions(lines, paginated=paginated)
    history: list[Json] = []
    for place, (kind, payload) in enumerate(lines):
        if kind == "item":
            history.append(payload)
        elif kind == "rollback":
            history = rolled_back(history, payload["num_turns"])
        elif kind == "compacted" and place not in undone:
            replacement = payload.get("replacement_history")
            history = list(replacement) if replacement is not None else [*filter(is_said, history), summary_of(payload)]
    return history


def understood(raws: list[bytes]) -> Iterator[tuple[str, Json]]:
    for raw in raws:
        if raw in MALFORMED:
            continue
        line: Json = json.loads(raw)
        kinds = {"response_item": "item", "compacted": "compacted"}
        events = {
            "task_started": "start",
            "task_complete": "end",
            "turn_aborted": "end",
            "thread_rolled_back": "rollback",
        }
        yield kinds.get(line["type"]) or events.get(line["payload"].get("type"), "other"), line["payload"]


def undone_compactions(lines: list[tuple[str, Json]], *, paginated: bool) -> set[int]:
    """Return the places of compactions that a rollback took with it.

    A rollback reaches a compaction when it undoes more turns than began since. A firm one stands nevertheless; and
    without turn events since the last that stands, none can be said to be part of a turn.
    """
    whole = [place for place, (_, payload) in enumerate(lines) if "replacement_history" in payload]
    reached = {
        place for place in whole if not is_firm(lines[place][1], paginated=paginated) and is_reached(lines, place)
    }
    standing = max([-1, *(place for place in whole if place not in reached)])
    has_events = any(kind in ("start", "end") for kind, _ in lines[standing + 1 :])
    return reached if has_events else set()


def is_firm(payload: Json, *, paginated: bool) -> bool:
    return "window_number" in payload and (paginated or "resume_metadata" in payload)


def is_reached(lines: list[tuple[str, Json]], place: int) -> bool:
    since = 0
    for later in range(place + 1, len(lines)):
        kind, payload = lines[later]
        if kind == "start":
            since += is_user_turn(lines, later)
        elif kind == "rollback":
            if payload["num_turns"] > since:
                return True
            since -= payload["num_turns"]
    return False


def is_user_turn(lines: list[tuple[str, Json]], start: int) -> bool:
    for kind, payload in lines[start + 1 :]:
        if kind == "start":
            break
        if kind == "item" and is_said(payload):
            return True
    return False


def is_said(item: Json) -> bool:
    if item["type"] != "message" or item["role"] != "user":
        return False
    return not item["content"][0]["text"].startswith(("<", OWN_SUMMARY_PREFIX))


def is_context(item: Json) -> bool:
    return item["type"] == "message" and item["content"][0]["text"].startswith("<")


def summary_of(payload: Json) -> Json:
    return user(payload["message"])


def rolled_back(history: list[Json], turns: int) -> list[Json]:
    starts = [place for place, item in enumerate(history) if is_said(item)]
    if turns == 0 or not starts:
        return history
    cut = starts[max(0, len(starts) - turns)]
    while cut > starts[0] and is_context(history[cut - 1]):
        cut -= 1
    return history[:cut]


# --- The properties.


def rebuilt(scripts: list[Script], *, compressed: bool = False) -> Reconstruction:
    with tempfile.TemporaryDirectory() as folder:
        ledger = open_ledger(write(scripts, Path(folder), compressed=compressed))
        return reconstruct(Tail(ledger), ledger.meta)


def items_of(found: Reconstruction) -> list[Json]:
    return [json.loads(entry.raw) for entry in found.history.entries]


def played(steps: list[Step], *, paginated: bool) -> Writer:
    writer = Writer(paginated)
    for step in steps:
        writer.play(step)
    return writer


def check_forward_walk(steps: list[Step], paginated: bool) -> None:
    writer = played(steps, paginated=paginated)

    assert walk(writer.lines(), paginated=paginated) == items_of(rebuilt(writer.scripts))


def check_storage(steps: list[Step], paginated: bool, chunk: int) -> None:
    writer = played(steps, paginated=paginated)
    whole = rebuilt(writer.scripts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_FIRST_CHUNK", chunk)
        patch.setattr(reader, "_LARGEST_CHUNK", chunk * 2)
        in_pieces = rebuilt(writer.scripts)
    unpacked = rebuilt(writer.scripts, compressed=True)

    assert told(whole) == told(in_pieces) == told(unpacked)


def told(found: Reconstruction) -> list[object]:
    """Everything that a reconstruction says."""
    place = found.checkpoint.offset if found.checkpoint else None
    rest = [found.window, found.turns, found.previous, found.reference, found.world_state, place, found.skipped]
    return [items_of(found), *rest]


@given(THREADS, st.booleans())
def test_a_reconstruction_is_what_a_forward_walk_over_all_lines_gives(steps: list[Step], paginated: bool) -> None:
    check_forward_walk(steps, paginated)


@given(THREADS, st.booleans(), st.integers(2, 300))
def test_a_reconstruction_does_not_depend_on_chunks_or_compression(
    steps: list[Step], paginated: bool, chunk: int
) -> None:
    check_storage(steps, paginated, chunk)


@pytest.mark.soak
@settings(max_examples=20_000)
@given(st.lists(STEPS, max_size=40), st.booleans())
def test_long_threads_reconstruct_to_what_a_forward_walk_gives(steps: list[Step], paginated: bool) -> None:
    check_forward_walk(steps, paginated)


@pytest.mark.soak
@settings(max_examples=5_000)
@given(st.lists(STEPS, max_size=40), st.booleans(), st.integers(2, 3000))
def test_long_threads_do_not_depend_on_chunks_or_compression(steps: list[Step], paginated: bool, chunk: int) -> None:
    check_storage(steps, paginated, chunk)
