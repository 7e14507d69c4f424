"""Modes and what else a turn may change: by code and not by words only, from one turn to the next, after a resume."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import anyio
import msgspec
import pytest
from scripted_session import Doing, Model, stage, used
from session_invariants import Json, kinds, ledger

import commonplace
from commonplace.agent import events
from commonplace.agent.thread import Thread
from commonplace.agent.tools.registry import Action, ToolContext, ToolInvocation
from commonplace.app.book import Book
from commonplace.config import Mode
from commonplace.context.notices import notice
from commonplace.context.sections import Collaboration, mode_of
from commonplace.errors import BadInput, BadSetting
from commonplace.models.base import Limit, RateLimits, Request
from commonplace.models.scripted import Answer, answer, call, custom, say
from commonplace.surfaces.cli import exec as exec_command

PATCH = "*** Begin Patch\n*** Add File: made.txt\n+one\n*** End Patch"
MODES: tuple[Mode, ...] = get_args(Mode)
OK = answer(say("Yes."))


def modes(texts: list[str]) -> list[str]:
    return [text for text in texts if text.startswith("<collaboration_mode>")]


def told(mode: str) -> str:
    return f"<collaboration_mode>{notice(f'mode_{mode}')}</collaboration_mode>"


# --- Plan mode holds back whatever may change something.


async def note(given: ToolInvocation, context: ToolContext) -> str:
    """A call that needs consent in every mode, as a note of the memory does."""
    return (
        await context.approve(Action(given.id, "call", context.cwd, ("tool", "own", "note", "{}"), escalated=True))
        or "noted"
    )


HELD_BACK: dict[str, Json] = {
    "a patch": custom("apply_patch", PATCH, "c1"),
    "a patch in a shell": call("shell", {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}, "c1"),
    "a command that writes": call("shell", {"command": "echo one > made.txt"}, "c1"),
    "a command that nobody knows": call("shell", {"command": "touch made.txt"}, "c1"),
    "one that reads and one that writes": call("shell", {"command": "ls && touch made.txt"}, "c1"),
    "a reader with an option that writes": call("shell", {"command": "sort -o made.txt /etc/passwd"}, "c1"),
    "one that asks to run unconfined": call("shell", {"command": "touch made.txt", "escalate": True}, "c1"),
    "one in the background": call("shell", {"command": "touch made.txt", "background": True}, "c1"),
}


@pytest.mark.parametrize("sandbox", ["danger-full-access", "workspace-write"])
@pytest.mark.parametrize("name", HELD_BACK)
async def test_plan_mode_refuses_what_may_change_something(tmp_path: Path, name: str, sandbox: str) -> None:
    steps = [answer(HELD_BACK[name]), answer(say("I plan."))]
    async with stage(tmp_path, *steps, mode="plan", sandbox=sandbox, approval="on-request") as here:
        end = await here.run("Make it.")

        assert isinstance(end, events.TurnCompleted)
        assert "plan mode is on" in here.outputs()["c1"]
        assert not (here.cwd / "made.txt").exists()
        assert not [event for event in here.events if isinstance(event, events.Asked)]  # nobody could allow it


@pytest.mark.parametrize("command", ["cat here.txt", "ls", "grep -n one here.txt | head -2"])
async def test_plan_mode_runs_what_only_reads(tmp_path: Path, command: str) -> None:
    steps = [answer(call("shell", {"command": command}, "c1")), answer(say("I see."))]
    async with stage(tmp_path, *steps, mode="plan") as here:
        (here.cwd / "here.txt").write_text("one\n")
        await here.run("Look.")

        assert "plan mode is on" not in here.outputs()["c1"]
        assert "Exit code: 0" in here.outputs()["c1"]


async def test_a_person_s_consent_does_not_end_plan_mode(tmp_path: Path) -> None:
    """What was allowed for good in this folder is refused too."""
    steps = [answer(call("shell", {"command": "touch made.txt"}, "c1")), answer(say("I plan."))]
    touch = ("/usr/bin/touch",)
    async with stage(tmp_path, *steps, mode="plan", sandbox="read-only", allowed=(touch, ("/bin/touch",))) as here:
        await here.run("Make it.")

        assert "plan mode is on" in here.outputs()["c1"]
        assert not (here.cwd / "made.txt").exists()


async def test_plan_mode_refuses_notes_and_input_for_a_process(tmp_path: Path) -> None:
    begin = call("shell", {"command": "cat > made.txt", "background": True}, "c1")
    wait = call("process", {"id": 1, "wait_ms": 0}, "c2")
    feed = call("process", {"id": 1, "input": "one\n"}, "c3")
    shut = call("process", {"id": 1, "close_input": True}, "c4")
    end = call("process", {"id": 1, "end": True}, "c5")
    async with stage(tmp_path, answer(begin), OK, answer(wait, feed, shut, end), OK) as here:
        await here.run("Begin.")
        await here.run("Plan.", msgspec.structs.replace(here.profile, mode="plan"))
        outputs = here.outputs()

        assert "plan mode is on" not in outputs["c2"] + outputs["c5"]
        assert "plan mode is on" in outputs["c3"]
        assert "plan mode is on" in outputs["c4"]
        assert "" == (here.cwd / "made.txt").read_text()


async def test_plan_mode_refuses_a_call_that_needs_consent(tmp_path: Path) -> None:
    tool = Doing("note", note)
    async with stage(tmp_path, answer(call("note", {}, "c1")), OK, mode="plan", tools=[tool]) as here:
        await here.run("Note it.")

        assert "plan mode is on" in here.outputs()["c1"]


async def test_another_mode_lets_it_through_again(tmp_path: Path) -> None:
    steps = [answer(custom("apply_patch", PATCH, "c1")), OK, answer(custom("apply_patch", PATCH, "c2")), OK]
    async with stage(tmp_path, *steps, mode="plan") as here:
        await here.run("Plan.")
        assert not (here.cwd / "made.txt").exists()
        await here.run("Do it.", msgspec.structs.replace(here.profile, mode="execute"))

        assert "one\n" == (here.cwd / "made.txt").read_text()
        assert [told("plan"), told("execute")] == modes(here.texts())


# --- Modes in a home: at the start, per turn, after a resume.


@asynccontextmanager
async def talking(tmp_path: Path, *steps: Answer | Any, **settings: Any) -> AsyncGenerator[tuple[Book, Model]]:
    async with Model(*steps) as model, commonplace.open(flags=settings) as book:
        yield book, model


async def started(book: Book, tmp_path: Path, model: Model, **wishes: Any) -> Thread:
    (tmp_path / "project").mkdir(exist_ok=True)
    wanted: dict[str, Any] = {"cwd": tmp_path / "project", "speaker": model, "sandbox": "danger-full-access", **wishes}
    return await book.start(**wanted)


def texts(model: Model, at: int = -1) -> list[str]:
    items: list[Json] = [msgspec.json.decode(raw) for raw in model.requests[at].input]
    return [part.get("text", "") for item in items for part in item.get("content") or ()]


@pytest.mark.parametrize("mode", MODES)
async def test_a_mode_is_chosen_at_the_start_and_comes_back_with_the_thread(tmp_path: Path, mode: Mode) -> None:
    async with talking(tmp_path, OK, OK) as (book, model):
        thread = await started(book, tmp_path, model, mode=mode)
        await thread.turn("One.")
        expected = [] if mode == "default" else [told(mode)]
        assert expected == modes(texts(model))
        name = thread.id
        await thread.close()
        again = await book.resume(name, cwd=tmp_path / "project", speaker=model)

        assert mode == again.profile.mode
        await again.turn("Two.")
        assert expected == modes(texts(model))  # it is known already, and told once


async def test_a_resumed_thread_is_held_back_as_before(tmp_path: Path) -> None:
    async with talking(tmp_path, OK, answer(custom("apply_patch", PATCH, "c1")), OK) as (book, model):
        thread = await started(book, tmp_path, model, mode="plan")
        await thread.turn("Plan.")
        await thread.close()
        again = await book.resume(thread.id, cwd=tmp_path / "project", speaker=model, sandbox="danger-full-access")
        await again.turn("Now write.")

        assert not (tmp_path / "project" / "made.txt").exists()


async def test_a_mode_survives_a_compaction_before_the_resume(tmp_path: Path) -> None:
    long = answer(say("word " * 4_000), usage=used(5_000))
    async with talking(tmp_path, long, long, answer(say("A summary.")), **{"compaction.remote": False}) as (
        book,
        model,
    ):
        thread = await started(book, tmp_path, model, mode="execute")
        await thread.turn("One.")
        await thread.turn("Two.")
        await thread.compact()
        assert thread.path is not None
        assert "compacted" in kinds(ledger(thread.path))
        await thread.close()
        again = await book.resume(thread.id, cwd=tmp_path / "project", speaker=model)

        assert "execute" == again.profile.mode


async def test_what_is_asked_for_now_counts_before_what_the_thread_had_and_that_before_the_setting(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, OK) as (book, model):
        thread = await started(book, tmp_path, model, mode="plan")
        await thread.turn("One.")
        await thread.close()
        here: dict[str, Any] = {"cwd": tmp_path / "project", "speaker": model}
        asked = await book.resume(thread.id, mode="default", **here)
        assert "default" == asked.profile.mode
        await asked.close()
        fork = await book.sessions.fork(thread.id)
        assert "plan" == (await book.resume(fork.thread_id, **here)).profile.mode
    (book.home / "config.toml").write_text('mode = "execute"\n')
    async with Model() as model, commonplace.open() as book:
        here["speaker"] = model
        assert "plan" == (await book.resume(thread.id, **here)).profile.mode
        assert "execute" == (await book.start(**here)).profile.mode
    async with Model() as model, commonplace.open(flags={"mode": "pair_programming"}) as book:
        here["speaker"] = model
        assert "pair_programming" == (await book.resume(thread.id, **here)).profile.mode


def test_the_command_line_offers_every_mode() -> None:
    assert MODES == exec_command.WAYS


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_in_a_ledger_is_read_back(mode: Mode) -> None:
    assert (mode, None) == mode_of(Collaboration("m", mode).setting("low"))
    assert (mode if mode == "plan" else "default", "Be brief.") == mode_of(
        Collaboration("m", mode, "Be brief.").setting()
    )


@pytest.mark.parametrize(
    ("setting", "mode"),
    [(None, "default"), ("plan", "plan"), ({"mode": "code"}, "default"), ([], "default"), ({"settings": 3}, "default")],
)
def test_a_mode_that_is_not_ours_is_the_default_one(setting: Any, mode: str) -> None:
    assert (mode, None) == mode_of(setting)


# --- What else a turn may change.


async def test_each_setting_changes_with_a_turn_and_stays(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "AGENTS.md").write_text("Be kind over there.\n")
    look = answer(call("shell", {"command": "pwd"}, "c1"))
    async with talking(tmp_path, OK, look, OK, OK) as (book, model):
        thread = await started(book, tmp_path, model)
        await thread.turn("One.")
        await thread.turn(
            "Two.",
            mode="execute",
            effort="high",
            personality="friendly",
            sandbox="danger-full-access",
            approval="never",
            cwd=other,
        )
        here = texts(model)
        outputs = [msgspec.json.decode(raw) for raw in model.requests[-1].input]
        assert told("execute") in here
        assert any(text.startswith("<personality_spec>") for text in here)
        assert any("Be kind over there." in text for text in here)
        assert any(f"<cwd>{other}</cwd>" in text for text in here)
        assert any(str(other) in each["output"] for each in outputs if each["type"] == "function_call_output")
        assert ["high", "high"] == [request.effort for request in model.requests[1:3]]
        await thread.turn("Three.")
        assert (other, "high", "execute") == (thread.profile.cwd, thread.profile.effort, thread.profile.mode)
        assert thread.path is not None
        contexts = [line["payload"] for line in ledger(thread.path) if line["type"] == "turn_context"]
        seen = [
            (each["cwd"], each["approval_policy"], each.get("personality"), each.get("effort")) for each in contexts
        ]
        assert (str(other), "never", "friendly", "high") == seen[1] == seen[2]
        assert seen[0][0] == str(tmp_path / "project")


async def test_a_smaller_sandbox_holds_from_the_turn_on(tmp_path: Path) -> None:
    patch = answer(custom("apply_patch", PATCH, "c1"))
    async with talking(tmp_path, OK, patch, OK) as (book, model):
        thread = await started(book, tmp_path, model, approval="never")
        await thread.turn("One.")
        await thread.turn("Two.", sandbox="read-only")

        assert not (tmp_path / "project" / "made.txt").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "chaos"},
        {"sandbox": "none"},
        {"approval": "often"},
        {"personality": "rude"},
        {"cwd": "nowhere"},
        {"x": 1},
    ],
)
async def test_a_change_that_cannot_be_made_changes_nothing(tmp_path: Path, changes: dict[str, Any]) -> None:
    async with talking(tmp_path) as (book, model):
        thread = await started(book, tmp_path, model)
        before = thread.profile
        with pytest.raises(BadInput):
            await thread.turn("One.", **changes)
        with pytest.raises(BadInput):
            [event async for event in thread.run("One.", **changes)]
        with pytest.raises(BadSetting):
            thread.change(model="nobody:knows", mode="plan")

        assert before == thread.profile
        assert [] == model.requests


async def test_a_queued_turn_runs_under_what_was_changed_before_it(tmp_path: Path) -> None:
    asked, go = anyio.Event(), anyio.Event()

    def first(_: Request) -> Answer:
        asked.set()
        return answer(say("Done."), hold=go)

    async with talking(tmp_path, first, answer(custom("apply_patch", PATCH, "c1")), OK) as (book, model):
        thread = await started(book, tmp_path, model)
        async with anyio.create_task_group() as group:
            group.start_soon(thread.turn, "One.")
            await asked.wait()
            thread.change(mode="plan")
            thread.queue("Write.")
            go.set()

        assert told("plan") in texts(model)
        assert not (tmp_path / "project" / "made.txt").exists()


async def test_a_turn_that_is_refused_because_one_runs_changes_nothing(tmp_path: Path) -> None:
    asked, go = anyio.Event(), anyio.Event()

    def first(_: Request) -> Answer:
        asked.set()
        return answer(say("Done."), hold=go)

    async with talking(tmp_path, first) as (book, model):
        thread = await started(book, tmp_path, model)
        async with anyio.create_task_group() as group:
            group.start_soon(thread.turn, "One.")
            await asked.wait()
            with pytest.raises(BadInput, match="A turn is running"):
                await thread.turn("Two.", mode="plan")
            go.set()

        assert "default" == thread.profile.mode


# --- Rate limits


async def test_rate_limits_come_back_with_a_thread(tmp_path: Path) -> None:
    limits = (Limit("primary", 91.5, window_minutes=300, resets_at=1_794_000_000.0),)
    async with stage(tmp_path, answer(say("One."), usage=used(900), limits=RateLimits(limits)), OK) as here:
        await here.run("One.")
        await here.resume()

        assert limits == here.session.usage.limits
        await here.run("Two.")
        counts = [line["payload"] for line in here.lines() if line["payload"].get("type") == "token_count"]
        assert [91.5, 91.5] == [each["rate_limits"]["limits"][0]["used_percent"] for each in counts]
