"""What the real Codex sent to its model is what its files reconstruct to.

Each folder of recordings holds session files and the input of every request. A file is cut after each of its lines
and reconstructed; a request must be found among those results, in the right order and place, and what stands before
each answer in a file must be a request that was made.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from commonplace.context.reconstruct import reconstruct
from commonplace.protocol.items import PASSTHROUGH
from commonplace.rollout.chain import open_ledger
from commonplace.rollout.checkpoint import Tail
from ledgers import Json

DATA = Path(__file__).parent.parent / "data"
FOLDERS = sorted(path.parent for path in DATA.glob("codex_*/*/model_inputs.json"))
MODEL_MADE = {"reasoning", "function_call", "custom_tool_call", "tool_search_call", "web_search_call"}


@dataclass(frozen=True)
class Request:
    """What one request carried after the base instructions."""

    items: list[Json]
    thread_id: str | None
    window_number: int | None
    is_compaction: bool


@dataclass(frozen=True)
class Moment:
    """A session file as it was after so many of its lines."""

    file: str
    lines: int
    items: list[Json]
    thread_id: str
    window_number: int


@dataclass(frozen=True)
class Recording:
    lines: dict[str, list[Json]]
    moments: list[Moment]
    requests: list[Request]

    def matches(self, request: Request) -> list[Moment]:
        return [
            moment
            for moment in self.moments
            if moment.items == request.items and request.thread_id in (None, moment.thread_id)
        ]


def sent(item: Json) -> Json:
    """An item without its bookkeeping, which only some providers are sent."""
    return {key: value for key, value in item.items() if key != PASSTHROUGH}


def read_requests(folder: Path, held: set[str]) -> list[Request]:
    """Base instructions head a request and stand in no file, unless a compaction's replacement took them in."""
    inputs: list[list[Json]] = json.loads((folder / "model_inputs.json").read_text("utf-8"))
    noted = folder / "requests.json"
    about: list[Json] = json.loads(noted.read_text("utf-8")) if noted.exists() else [{} for _ in inputs]
    requests: list[Request] = []
    for raw, note in zip(inputs, about, strict=True):
        whole = [sent(item) for item in raw]
        own = whole if whole[0]["id"] in held else whole[1:]
        asks = "CONTEXT CHECKPOINT COMPACTION" in json.dumps(own[-1]) or own[-1]["type"] == "compaction_trigger"
        assert asks == (note.get("request_kind", "compaction" if asks else "turn") == "compaction")
        items = own[:-1] if asks else own
        requests.append(Request(items, note.get("thread_id"), note.get("window_number"), asks))
    return requests


@pytest.fixture(params=FOLDERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def recording(request: pytest.FixtureRequest) -> Recording:
    return read_recording(request.param)


@cache
def read_recording(source: Path) -> Recording:
    """Reconstruct every moment of a recording."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "files"  # forks refer to their siblings, so the whole folder is copied
        shutil.copytree(source, folder)
        return reconstructed(source, folder)


def reconstructed(source: Path, folder: Path) -> Recording:
    lines: dict[str, list[Json]] = {}
    moments: list[Moment] = []
    for path in sorted(folder.glob("rollout-*.jsonl")):
        whole = path.read_bytes()
        pieces = whole.splitlines(keepends=True)
        lines[path.name] = [json.loads(piece) for piece in pieces]
        for count in range(1, len(pieces) + 1):
            path.write_bytes(b"".join(pieces[:count]))
            ledger = open_ledger(path)
            found = reconstruct(Tail(ledger), ledger.meta)
            items = [sent(json.loads(item)) for item in found.history.for_prompt()]
            moments.append(Moment(path.name, count, items, ledger.meta.id, found.window.number))
        path.write_bytes(whole)
    held = {item["id"] for moment in moments for item in moment.items if "id" in item}
    return Recording(lines, moments, read_requests(source, held))


def is_model_made(line: Json) -> bool:
    payload: Json = line["payload"]
    made = payload.get("type") in MODEL_MADE or payload.get("role") == "assistant"
    return line["type"] == "response_item" and made


def answers(lines: list[Json]) -> list[int]:
    """How many lines stand before each answer: a run of items that a model made while a turn was running."""
    found: list[int] = []
    running = answering = False
    for place, line in enumerate(lines):
        if line["type"] == "event_msg":
            kind = line["payload"]["type"]
            running = kind == "task_started" or (running and kind not in ("task_complete", "turn_aborted"))
        elif line["type"] in ("response_item", "compacted"):
            was, answering = answering, is_model_made(line)
            if running and answering and not was:
                found.append(place)
    return found


def test_every_request_is_reproduced_in_its_own_thread_and_window(recording: Recording) -> None:
    found = [recording.matches(request) for request in recording.requests]

    assert [] == [place for place, moments in enumerate(found) if not moments]
    for request, moments in zip(recording.requests, found, strict=True):
        assert 1 == len({moment.file for moment in moments})
        if request.window_number is not None:
            assert {request.window_number} == {moment.window_number for moment in moments}


def test_requests_of_a_file_are_reproduced_in_the_order_they_were_made(recording: Recording) -> None:
    ends: dict[str, list[int]] = {}
    for request in recording.requests:
        last = recording.matches(request)[-1]
        ends.setdefault(last.file, []).append(last.lines)

    assert {name: sorted(places) for name, places in ends.items()} == ends


def test_what_stands_before_every_answer_was_sent_to_the_model(recording: Recording) -> None:
    asked = [request.items for request in recording.requests]
    unasked = [
        (moment.file, moment.lines)
        for moment in recording.moments
        if moment.lines in answers(recording.lines[moment.file]) and moment.items not in asked
    ]

    assert [] == unasked


def test_the_last_request_of_a_thread_is_what_stands_before_the_last_answer(recording: Recording) -> None:
    for name, lines in recording.lines.items():
        before = answers(lines)[-1]
        moment = next(moment for moment in recording.moments if (moment.file, moment.lines) == (name, before))
        own = [request for request in recording.requests if name in {m.file for m in recording.matches(request)}]

        assert own[-1].items == moment.items
