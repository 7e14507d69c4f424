"""Servers and disks that fail: what was finished stays, is not done twice, and the thread goes on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from dialects import RESPONSES, Said, framed, patient
from msgspec.structs import replace
from scripted_http import Reply, serve, whole
from scripted_session import Doing, Stage, choice, stage, used
from session_invariants import kinds, ledger

from commonplace.agent import events
from commonplace.agent.tools.registry import ToolContext, ToolInvocation
from commonplace.errors import (
    ContextTooLong,
    ModelError,
    ModelUnavailable,
    NotAuthorised,
    QuotaExceeded,
    RateLimited,
    RequestRefused,
    StreamBroken,
)
from commonplace.models.scripted import answer, call, say, think

LONG = "word " * 8_000


def broken() -> StreamBroken:
    return StreamBroken("The connection was lost.", hint="")


def retries(here: Stage) -> list[int]:
    return [event.attempt for event in here.events if isinstance(event, events.Retrying)]


async def test_an_answer_that_breaks_off_is_asked_for_again_and_finished_calls_are_not_run_twice(
    tmp_path: Path,
) -> None:
    async with stage(
        tmp_path,
        answer(
            think("Hm."), say("I write."), call("shell", {"command": "echo x >> log; cat log"}, "c1"), breaks=broken()
        ),
        answer(call("shell", {"command": "cat log"}, "c2")),
        answer(say("Once.")),
    ) as here:
        end = await here.run("Write.")

        assert isinstance(end, events.TurnCompleted)
        assert "x\n" == (here.cwd / "log").read_text()
        assert ["reasoning", "message", "function_call", "function_call_output"] == [
            item["type"] for item in here.items(1)[-4:]
        ]
        assert [1] == retries(here)
        assert 1 == len(here.slept)


async def test_half_a_sentence_of_an_answer_that_breaks_off_is_shown_and_not_sent(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("The whole sentence.")), answer(say("The whole sentence."))) as here:
        here.model.cuts = broken()
        end = await here.run("Speak.")

        assert isinstance(end, events.TurnCompleted)
        assert "The whole sentence." == end.message
        assert "The whole senten" not in here.texts()
        shown = [item.text for item in here.completed() if isinstance(item, events.AgentMessage)]
        assert ["The whole senten", "The whole sentence."] == shown


async def test_an_answer_that_breaks_off_again_and_again_ends_the_turn(tmp_path: Path) -> None:
    steps = [answer(say(f"Try {number}."), breaks=broken()) for number in range(6)]
    async with stage(tmp_path, *steps) as here:
        end = await here.run("Speak.")

        assert isinstance(end, events.TurnFailed)
        assert "stream_broken" == end.error.code
        assert [1, 2, 3, 4, 5] == retries(here)
        here.model.add(answer(say("Here I am.")))
        assert isinstance(await here.run("Still there?"), events.TurnCompleted)


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("Down.", hint=""),
        RateLimited("Slow down.", hint=""),
        StreamBroken("Lost before it began.", hint=""),
        QuotaExceeded("Nothing left.", hint=""),
        NotAuthorised("Wrong key.", hint="Set the key."),
        RequestRefused("No.", hint=""),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_before_anything_was_said_ends_the_turn_without_another_try(
    tmp_path: Path, error: ModelError
) -> None:
    async with stage(tmp_path, error) as here:
        end = await here.run("Speak.")

        assert isinstance(end, events.TurnFailed)
        assert (error.code, error.message) == (end.error.code, end.error.message)
        assert [] == here.slept
        ended = here.lines()[-1]["payload"]
        assert "task_complete" == ended["type"]
        assert error.code == ended["error"]["code"]
        here.model.add(answer(say("Yes.")))
        await here.resume()
        assert isinstance(await here.run("Again."), events.TurnCompleted)
        assert ["Speak.", "Again."] == here.said()


async def test_a_quota_that_is_used_up_in_the_middle_ends_the_turn_and_keeps_what_was_said(tmp_path: Path) -> None:
    error = QuotaExceeded("Nothing left.", hint="")
    async with stage(
        tmp_path, answer(say("So far."), call("shell", {"command": "echo 1"}, "c1"), breaks=error)
    ) as here:
        end = await here.run("Speak.")

        assert isinstance(end, events.TurnFailed)
        here.model.add(answer(say("Yes.")))
        await here.run("Again.")
        assert ["Speak.", "So far.", "Again."] == here.said()
        assert "1\n" in here.outputs()["c1"]


# --- No room


def too_long() -> ContextTooLong:
    return ContextTooLong("Too long.", hint="")


async def test_a_request_that_has_no_room_is_compacted_and_sent_once_more(tmp_path: Path) -> None:
    async with stage(
        tmp_path, answer(say(LONG)), too_long(), answer(say("The summary.")), answer(say("It fits now."))
    ) as here:
        await here.run("Talk.")
        end = await here.run("What now?")

        assert isinstance(end, events.TurnCompleted)
        assert "What now?" in here.said()
        assert LONG not in here.texts()
        assert "compacted" in kinds(here.lines())


async def test_a_second_refusal_in_a_row_fails_the_turn_and_the_thread_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say(LONG)), too_long(), answer(say("The summary.")), too_long()) as here:
        await here.run("Talk.")
        end = await here.run("What now?")

        assert isinstance(end, events.TurnFailed)
        assert "context_too_long" == end.error.code
        here.model.add(answer(say("It fits.")))
        assert isinstance(await here.run("And now?"), events.TurnCompleted)


async def test_a_room_that_one_model_did_not_have_is_not_held_against_another(tmp_path: Path) -> None:
    async with stage(
        tmp_path, answer(say(LONG)), too_long(), answer(say("The summary.")), answer(say("It fits now."))
    ) as here:
        await here.run("Talk.")
        await here.run("What now?")
        here.model.add(answer(say(LONG)), answer(say("Nothing was summed up.")))
        larger = replace(here.profile, choice=choice("scripted-large"))
        await here.run("Talk again.", larger)
        await here.run("And again.")

        assert LONG in here.texts()


# --- A disk that fails


class Full:
    """A disk that has room for so many bytes, until somebody makes more."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(self, descriptor: int, data: bytes) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = os.write(descriptor, data[: self.room])
        self.room -= taken
        return taken


ROOM = [0, 1, 500, 2_000, 4_000, 6_000, 7_000, 7_500, 8_000, 8_500, 9_000]


@pytest.mark.parametrize("room", ROOM)
async def test_a_full_disk_fails_the_turn_and_the_next_one_writes_everything(tmp_path: Path, room: int) -> None:
    disk = Full(room)

    async def look(which: ToolInvocation, _: ToolContext) -> str:
        return "seen " * 100

    async with stage(
        tmp_path,
        *[answer(call("look", "{}", f"c{number}")) for number in range(1, 5)],
        answer(say("All seen.")),
        write=disk,
        tools=[Doing("look", look)],
    ) as here:
        here.model.check = lambda: None  # how far it comes depends on the room
        end = await here.run("Look.")
        assert isinstance(end, events.TurnFailed)
        assert "write_failed" == end.error.code
        assert "No space left" in end.error.message

        disk.room = 10**9
        here.model.instead(answer(say("Here.")))
        assert isinstance(await here.run("And now?"), events.TurnCompleted)
        assert "Look." in here.said()
        ends = [line["payload"] for line in here.lines() if line["payload"].get("type") == "task_complete"]
        assert 2 == len(ends)


async def test_a_file_that_another_program_took_away_does_not_lose_the_turn(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("One.")), answer(say("Two."))) as here:
        await here.run("First.")
        before = ledger(here.path)
        here.path.unlink()
        await here.run("Second.")

        assert before == ledger(here.path)[: len(before)]


# --- Real sockets


async def test_a_connection_that_is_lost_in_the_middle_is_made_again_and_calls_are_not_run_twice(
    tmp_path: Path,
) -> None:
    spoken = RESPONSES.spoken(Said(calls=(("shell", '{"command": "echo x >> log"}', "c1"),)))
    cut = spoken[: spoken.index(b"event: response.completed")]
    replies = [Reply(whole(cut), ends=False), Reply(whole(framed(RESPONSES.frames(Said("Once.")))))]
    async with serve(*replies) as server, stage(tmp_path) as here:
        here.session.model = RESPONSES.model(server.base_url, patient())
        end = await here.run("Write.")

        assert isinstance(end, events.TurnCompleted)
        assert "x\n" == (here.cwd / "log").read_text()
        assert ["function_call", "function_call_output"] == [item["type"] for item in server.seen[1].body["input"][-2:]]
        assert "gpt" not in server.seen[0].body["model"]
        await here.session.model.aclose()


async def test_counts_of_a_server_that_counts_nothing_are_estimated(tmp_path: Path) -> None:
    async with stage(
        tmp_path, answer(say(LONG)), answer(say("Short.")), answer(say("Counted."), usage=used(700))
    ) as here:
        await here.run("Talk.")
        estimated = here.session.history.used()
        await here.run("More.")
        assert estimated >= 10_000
        assert here.session.history.used() > estimated
        await here.run("More.")

        assert 700 == here.session.history.used()
