"""What must hold of every scene: of a request, of what listeners are told, of a ledger. Each says what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from commonplace.agent import events, stored_thread
from commonplace.protocol import items
from commonplace.protocol.rollout import Line
from commonplace.rollout import reader
from commonplace.sessions import inspection

Json = dict[str, Any]
LEDGER_ENDS = ("task_complete", "turn_aborted")


# --- What must hold of a request


def well_formed(request: Sequence[bytes]) -> list[str]:
    """Return what is wrong with the items of a request: calls and outputs must pair, and nothing of ours be in it."""
    problems: list[str] = []
    open_calls: Counter[tuple[str, str]] = Counter()
    answered: Counter[tuple[str, str]] = Counter()
    for place, raw in enumerate(request):
        item = msgspec.json.decode(raw, type=Json)
        kind = item.get("type", "")
        if items.PASSTHROUGH in item:
            problems.append(f"{place}: bookkeeping is sent")
        if kind == "message":
            problems += _message_problems(place, item)
        elif kind in ("function_call", "local_shell_call", "custom_tool_call"):
            open_calls[_family(kind), item["call_id"]] += 1
        elif kind.endswith("_call_output"):
            key = (_family(kind), item["call_id"])
            answered[key] += 1
            if answered[key] > open_calls[key]:
                problems.append(f"{place}: an output too many for {key[1]}")
    problems += [f"no output for {key[1]}" for key in open_calls if open_calls[key] != answered[key]]
    return problems


def _family(kind: str) -> str:
    return "custom" if kind.startswith("custom") else "function"


def _message_problems(place: int, item: Json) -> list[str]:
    if item.get("role") not in ("user", "assistant", "developer"):
        return [f"{place}: a message of {item.get('role')}"]
    return [] if item.get("content") else [f"{place}: a message without content"]


# --- What must hold of events


def left_open(told: Sequence[events.Event]) -> list[str]:
    """Return the commands that went on in the background and were not completed, also when the session was closed."""
    open_items: list[tuple[str, str]] = []
    for event in told:
        match event:
            case events.ItemUpdated(item=events.CommandExecution()):
                open_items.append((event.turn_id, event.item.id))
            case events.ItemCompleted() if (event.turn_id, event.item.id) in open_items:
                open_items.remove((event.turn_id, event.item.id))
            case _:
                pass
    return [f"{turn} {item}" for turn, item in open_items]


def told_wrongly(told: Sequence[events.Event]) -> list[str]:
    """Return what is wrong with what a listener was told."""
    problems: list[str] = []
    turn: str | None = None
    started: set[str] = set()
    texts: dict[str, str] = {}
    for event in told:
        match event:
            case events.TurnStarted():
                problems += [f"{event.turn_id} began inside another turn"] if turn else []
                turn, started = event.turn_id, set()
            case events.ItemStarted():
                started.add(event.item.id)
            case events.ItemUpdated(item=events.CommandExecution()):
                started.discard(event.item.id)  # it goes on in the background: `left_open` says whether it ended
            case events.TextDelta():
                texts[event.item_id] = texts.get(event.item_id, "") + event.text
            case events.ItemCompleted():
                started.discard(event.item.id)
                problems += _said_otherwise(event.item, texts)
            case events.TurnCompleted() | events.TurnFailed() | events.TurnAborted():
                problems += [f"{item_id} never completed" for item_id in started]
                problems += [] if turn == event.turn_id else [f"{event.turn_id} ended and had not begun"]
                turn = None
            case _:
                problems += [] if turn or isinstance(event, events.Warned) else [f"{event} outside a turn"]
    return problems + ([f"{turn} never ended"] if turn else [])


def _said_otherwise(item: events.Item, texts: Mapping[str, str]) -> list[str]:
    if not isinstance(item, events.AgentMessage) or item.id not in texts or texts[item.id] == item.text:
        return []
    return [f"deltas said {texts[item.id]!r}, the item {item.text!r}"]


# --- What must hold of a ledger


def ledger(path: Path) -> list[Json]:
    """Return the lines of a file."""
    found = [record for record in reader.forward(path) if isinstance(record, Line)]
    return [
        {"type": line.type, "ordinal": line.ordinal, "payload": msgspec.json.decode(line.payload)} for line in found
    ]


def kinds(lines: Sequence[Json]) -> list[str]:
    """Return what each line is, in one word."""
    return [str(line["payload"].get("type") or line["payload"].get("kind") or line["type"]) for line in lines]


def recorded_wrongly(path: Path, *, torn: bool = False) -> list[str]:
    """Return what is wrong with a ledger; a torn one may have turns that nobody ended, and lines that are cut off."""
    lines = ledger(path)
    problems = [] if lines and lines[0]["type"] == "session_meta" else ["no session_meta first"]
    ordinals = [line["ordinal"] for line in lines]
    first: int = ordinals[0] if ordinals else 0
    if ordinals != list(range(first, first + len(ordinals))):
        problems.append(f"ordinals have a gap: {ordinals}")
    turn: str | None = None
    for line in lines:
        payload = line["payload"]
        if line["type"] != "event_msg":
            continue
        if payload["type"] == "task_started":
            problems += [f"{turn} was never ended"] if turn and not torn else []
            turn = payload["turn_id"]
        elif payload["type"] in LEDGER_ENDS:
            problems += [] if turn == payload["turn_id"] else [f"{payload['turn_id']} ended and had not begun"]
            turn = None
    return problems + ([f"{turn} never ended"] if turn and not torn else [])


def prompt_of(path: Path, home: Path) -> list[bytes]:
    """Return the items that `sessions context` prints."""
    found = stored_thread.read(path, [home])
    store = inspection.BlobStore(home)
    told = [bytes(item) for item in inspection.context(found.ledger, store).items]
    assert told == found.state.history.for_prompt()
    return told
