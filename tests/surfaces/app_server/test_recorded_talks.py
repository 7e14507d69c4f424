"""What clients said to the real Codex, as it was recorded, is said to our server: it answers and tells the same."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
from app_server.app_client import AppClient

from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, reply, say
from exec_driver import Place, make_place

Json = dict[str, Any]
RECORDINGS = Path(__file__).parents[2] / "data" / "codex_fixtures"
ANYWHERE = {"remoteControl/status/changed"}
"""What the real server tells at a moment of its own choice."""


class Story:
    """What the model answers in a recording; `held` is let go once the client has said everything."""

    def __init__(self, held: threading.Event) -> None:
        summary = reply("The number is 42.")
        self.answers: dict[str, list[Answer]] = {
            "e_compact_manual": [reply("Noted: 42."), summary, reply("It is 42.")],
            "g_fork": [reply("fork answer")],
            "i_additional_context": [
                *[reply("main.py is open.")] * 3,
                answer(say("Did X."), hold=held),
                reply("Did Y as well."),
            ],
            "k_legacy_history": [
                answer(call("exec_command", {"cmd": "echo hi"}, "c1")),
                reply("Ran it.", input_tokens=24_900),
                summary,
                reply("Answer.", input_tokens=3000),
                reply("Answer.", input_tokens=3000),
            ],
        }


def recorded(name: str) -> list[Json]:
    lines = (RECORDINGS / name / "rpc.jsonl").read_text("utf-8").splitlines()
    return [cast("Json", json.loads(line)) for line in lines]


def kind(message: Json) -> str:
    """Return what a message is: its method, the kind of its item, the status it tells."""
    if "method" not in message:
        return "result" if "result" in message else "error"
    params: Json = message.get("params") or {}
    told: list[Any] = [message["method"], params.get("item", {}).get("type"), params.get("turn", {}).get("status")]
    status = params.get("status")
    told.append(status.get("type") if isinstance(status, dict) else None)  # pyright: ignore[reportUnknownMemberType]
    return " ".join(str(each) for each in told if each is not None)


def expected(talk: list[Json]) -> list[str]:
    return [kind(each) for each in talk if each["dir"] == "in" and each.get("method") not in ANYWHERE]


def missing(wanted: list[str], told: list[str]) -> list[str]:
    """Return the first of `wanted` that does not follow, in `told`, the ones before it, and what stands there."""
    rest = iter(told)
    for number, each in enumerate(wanted):
        if not any(each == found for found in rest):
            return wanted[: number + 1]
    return []


class Replay:
    """Says the client's lines of a recording, with the ids that the server chose now."""

    def __init__(self, client: AppClient, place: Place, talk: list[Json], held: threading.Event) -> None:
        self._client = client
        self._talk = talk
        self._names = {"/repo/demo": str(place.cwd)}
        self._held = held
        self.heard: Counter[str] = Counter()

    def play(self) -> None:
        last = max(number for number, each in enumerate(self._talk) if each["dir"] == "out")
        for number, message in enumerate(self._talk):
            if message["dir"] == "out":
                self._say({key: value for key, value in message.items() if key != "dir"})
            else:
                self._hear(message)
            if number == last:
                self._client.answer(message["id"])  # else the model may be done before the server has read it
                self._held.set()

    def _say(self, message: Json) -> None:
        text = json.dumps(message)
        for then, now in self._names.items():
            text = text.replace(then, now)
        self._client.line(text.encode())

    def _hear(self, message: Json) -> None:
        if "method" not in message:
            now = self._client.answer(message["id"])
            assert "result" in now, now
            self._learn(message["result"], now["result"])
            return
        wanted = kind(message)
        if not wanted.startswith(("turn/completed", "item/completed userMessage")):
            return  # whoever said this line then had not waited for it
        self.heard[wanted] += 1
        self._client.wait(lambda _: sum(kind(each) == wanted for each in self._client.told) >= self.heard[wanted])

    def _learn(self, then: Json, now: Json) -> None:
        for name in ("thread", "turn"):
            if name in then:
                self._names[then[name]["id"]] = now[name]["id"]


def with_fork_source(place: Place, name: str) -> None:
    """Give our home the ledger that the recorded client forks."""
    for path in (RECORDINGS / name).glob("rollout-*.jsonl"):
        if name == "g_fork" and path.stem.endswith("0d2194eb5588"):
            folder = place.home / "sessions" / "2026" / "11" / "15"
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder)


@pytest.mark.parametrize("name", ["e_compact_manual", "g_fork", "i_additional_context", "k_legacy_history"])
def test_a_recorded_talk_goes_the_same_way(tmp_path: Path, name: str) -> None:
    held = threading.Event()
    talk = recorded(name)
    with ScriptedResponses(Story(held).answers[name]) as model:
        settings = {"compaction.at_tokens": 20_000} if name == "k_legacy_history" else {}
        place = make_place(tmp_path, model.base_url, settings=settings)
        with_fork_source(place, name)
        with AppClient(place, hello=False) as client:
            Replay(client, place, talk, held).play()
            assert client.end() == 0

    told = [kind(each) for each in client.told]
    answers = [kind(each) for each in talk if each["dir"] == "in" and "method" not in each]
    assert missing(expected(talk), told) == [], told
    assert {kind(each) for each in talk if each["dir"] == "in"} <= {*told}
    assert [each for each in told if each in ("result", "error")] == answers
