"""Going on from the file is as good as never having stopped: the next request is the same, whatever happened before."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from scripted_session import BASE, Doing, Stage, choice, stage, used
from session_invariants import Json, kinds, recorded_wrongly

from commonplace.agent import events, open_session, stored_thread, user_input
from commonplace.agent.tools.registry import ToolContext, ToolInvocation
from commonplace.app.book import Book
from commonplace.errors import BadInput, NotAuthorised, StreamBroken, ThreadBusy
from commonplace.models import base
from commonplace.models.base import Request
from commonplace.models.scripted import Answer, answer, call, compaction, custom, say, think
from commonplace.protocol.items import Message
from pictures import png

LONG = "word " * 8_000
FULL = used(95_000)
Scene = Callable[[Stage], Awaitable[object]]


async def plain(here: Stage) -> None:
    here.model.add(answer(think("Hm."), say("One."), usage=used(900)), answer(say("Two."), usage=used(1_000)))
    await here.run("First.")
    await here.run("Second.")


async def uncounted(here: Stage) -> None:
    here.model.add(answer(say(LONG)))
    await here.run("First.")


async def calls(here: Stage) -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch"
    here.model.add(
        answer(call("shell", {"command": "seq 1 30000"}, "c1"), custom("apply_patch", patch, "c2")),
        answer(call("nothing", {}, "c3"), usage=used(12_000)),
        answer(say("Done."), usage=used(21_000)),
    )
    await here.run("Work.")


async def stopped(here: Stage, kind: type[Any], told: type[Any], part: Json) -> None:
    here.model.add(answer(part))
    here.model.stalls = kind
    async with anyio.create_task_group() as group:
        group.start_soon(here.run, "Work.")
        await here.until(told)
        await here.session.interrupt()


async def stopped_at_once(here: Stage) -> None:
    await stopped(here, base.ItemAdded, events.ItemStarted, say("Never said."))


async def stopped_in_text(here: Stage) -> None:
    await stopped(here, base.TextDelta, events.TextDelta, say("Some words that are cut off."))


async def stopped_in_command(here: Stage) -> None:
    here.model.add(answer(say("I run."), call("shell", {"command": "echo begun; sleep 300"}, "c1")))
    async with anyio.create_task_group() as group:
        group.start_soon(here.run, "Work.")
        await here.until(events.OutputDelta)
        await here.session.interrupt()


async def failed(here: Stage) -> None:
    here.model.add(NotAuthorised("Wrong key.", hint=""))
    await here.run("Work.")


async def broke_off(here: Stage) -> None:
    lost = StreamBroken("Lost.", hint="")
    here.model.add(answer(say("Half."), call("shell", {"command": "echo 1"}, "c1"), breaks=lost), answer(say("Whole.")))
    await here.run("Work.")


async def compacted_before(here: Stage) -> None:
    here.model.add(answer(say(LONG), usage=FULL), answer(say("The summary.")), answer(say("On."), usage=used(3_000)))
    await here.run("Talk.")
    await here.run("More.")


async def compacted_within(here: Stage) -> None:
    here.model.add(
        answer(say(LONG), call("shell", {"command": "echo 1"}, "c1"), usage=FULL),
        answer(say("The summary.")),
        answer(call("shell", {"command": "echo 2"}, "c2"), usage=used(3_000)),
        answer(say("Done."), usage=used(3_100)),
    )
    await here.run("Work.")


async def compacted_by_hand(here: Stage) -> None:
    here.model.add(answer(say(LONG * 4), usage=used(60_000)), answer(say("The summary.")))
    await here.run("Talk.")
    await here.compact()


async def about_to_compact(here: Stage) -> None:
    here.model.add(answer(say(LONG), usage=FULL))
    await here.run("Talk.")


async def compacted_remotely(here: Stage) -> None:
    here.session.profile = here.profile = replace(here.profile, remote_compaction=True)
    here.model.add(answer(say(LONG), usage=FULL), answer(compaction("secret")), answer(say("On."), usage=used(3_000)))
    await here.run("Talk.")
    await here.run("More.")


async def rolled_back(here: Stage) -> None:
    here.model.add(answer(say("One."), usage=used(900)), answer(say("Two."), usage=used(1_000)))
    await here.run("First.")
    (here.cwd / "AGENTS.md").write_text("Be thorough.")
    await here.run("Second.")
    await here.session.roll_back(1)


async def rolled_back_everything(here: Stage) -> None:
    await plain(here)
    await here.session.roll_back(5)


async def rolled_back_into_a_summary(here: Stage) -> None:
    await compacted_before(here)
    await here.session.roll_back(1)


async def rolled_back_a_new_model(here: Stage) -> None:
    here.model.add(answer(say("One.")), answer(say("Two.")))
    await here.run("First.")
    here.profile = replace(here.profile, choice=choice("scripted-2"))
    await here.run("Second.", here.profile)
    await here.session.roll_back(1)


async def steered(here: Stage) -> None:
    def first(_: Request) -> Answer:
        here.session.steer(user_input.text("And this."))
        return answer(say("One."))

    here.model.add(first, answer(say("Two.")))
    await here.run("First.")


async def changed(here: Stage) -> None:
    here.model.add(answer(say("One.")), answer(say("Two.")))
    await here.run("First.")
    here.clock.pass_days(1)
    (here.cwd / "AGENTS.md").write_text("Be thorough.")
    here.profile = replace(here.profile, choice=choice("scripted-2"), sandbox="workspace-write")
    await here.run("Second.", here.profile)


async def long_words(here: Stage) -> None:
    here.session.profile = here.profile = replace(here.profile, choice=choice(window=1_000_000))
    here.model.add(answer(say("Long. " * 20_000), call("nothing", {"text": "x" * 100_000}, "c1")), answer(say("So.")))
    await here.run("A long text: " + "abc " * 40_000)


async def a_picture(here: Stage) -> None:
    here.model.add(answer(say("I see.")))
    picture = here.home.parent / "one.png"
    picture.write_bytes(png(4, 4, 200_000))
    await here.run(user_input.text("Look.", [picture]))


async def full_disk(here: Stage) -> None:
    here.model.add(answer(say("One.")))
    await here.run("First.")
    assert here.session.ledger.recorder is not None
    appender = here.session.ledger.recorder._appender
    real, appender._write = appender._write, _no_room
    await here.run("Second.")
    appender._write = real


def _no_room(descriptor: int, data: bytes) -> int:
    raise OSError(28, os.strerror(28))


SCENES: list[Scene] = [
    *[plain, uncounted, calls, stopped_at_once, stopped_in_text, stopped_in_command, failed, broke_off, steered],
    *[compacted_before, compacted_within, compacted_by_hand, compacted_remotely, about_to_compact, changed],
    *[rolled_back, rolled_back_everything, rolled_back_into_a_summary, rolled_back_a_new_model],
    *[a_picture, full_disk],
]


async def played(root: Path, scene: Scene, *, resumed: bool) -> list[Json]:
    """Play a scene and one more turn; return the last request's items, without what differs from run to run."""
    root.mkdir()
    async with stage(root) as here:
        await scene(here)
        if resumed:
            await here.resume()
        for _ in range(2 if scene is about_to_compact else 1):
            here.model.add(answer(say("And on.")))
        end = await here.run("What now?")
        assert isinstance(end, events.TurnCompleted)
        request = here.requests[-1]
        assert BASE == request.instructions
        return [neutral(json.loads(raw), root) for raw in request.input]


def neutral(item: Json, root: Path) -> Json:
    return json.loads(
        json.dumps({key: value for key, value in item.items() if key != "id"}).replace(str(root), "/root")
    )


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_the_next_request_is_the_same_after_a_resume(tmp_path: Path, scene: Scene) -> None:
    going_on = await played(tmp_path / "one", scene, resumed=False)
    resumed = await played(tmp_path / "two", scene, resumed=True)

    assert going_on == resumed


async def test_words_beyond_the_bound_come_back_as_their_head_and_tail(tmp_path: Path) -> None:
    """The contract of spilled payloads: text keeps head and tail in its line, the blob has all of it."""
    said = "A long text: " + "abc " * 40_000
    async with stage(tmp_path) as here:
        await long_words(here)
        assert said in here.texts()
        await here.resume()
        messages = [entry.view for entry in here.session.history.entries if isinstance(entry.view, Message)]
        (came_back,) = [view.text() for view in messages if view.text().startswith("A long text: ")]
        assert len(came_back) < len(said)
        assert came_back.endswith(said[-1_000:])
        assert said.encode() in [path.read_bytes() for path in (here.home / "blobs").iterdir()]


# --- Rolling back


async def test_what_was_told_in_a_turn_that_is_rolled_back_is_told_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await rolled_back(here)
        here.model.add(answer(say("Three.")))
        await here.run("Third.")

        assert 1 == sum("Be thorough." in text for text in here.texts())
        assert ["First.", "One.", "Third."] == [text for text in here.said() if "Be thorough" not in text]


@pytest.mark.parametrize("turns", [0, -1])
async def test_no_turns_cannot_be_rolled_back(tmp_path: Path, turns: int) -> None:
    async with stage(tmp_path) as here:
        with pytest.raises(BadInput):
            await here.session.roll_back(turns)


async def test_a_rolled_back_turn_stays_in_the_file(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await plain(here)
        await here.session.roll_back(1)

        assert "Second." in here.path.read_text()
        assert "Second." not in str(here.session.history.for_prompt())
        assert "thread_rolled_back" in kinds(here.lines())


async def test_an_ephemeral_session_rolls_back_too(tmp_path: Path) -> None:
    async with stage(tmp_path, ephemeral=True) as here:
        await rolled_back(here)
        here.model.add(answer(say("Three.")))
        await here.run("Third.")

        assert "Second." not in here.said()
        assert any("Be thorough." in text for text in here.texts())


# --- One writer, forks, no file


async def test_a_thread_that_is_open_cannot_be_opened_twice(tmp_path: Path) -> None:

    async with stage(tmp_path, answer(say("One."))) as here:
        await here.run("First.")
        found = stored_thread.read(here.path, [here.home])
        with pytest.raises(ThreadBusy):
            await open_session.resume(found, here.profile, here.model, here.environment, here.tasks, here.options)


@pytest.mark.parametrize("copy", [False, True], ids=["referring", "copied"])
@pytest.mark.parametrize("scene", [plain, compacted_within, stopped_in_command], ids=lambda scene: scene.__name__)
async def test_a_fork_goes_on_as_its_parent_would(tmp_path: Path, scene: Scene, copy: bool) -> None:
    from commonplace import config

    going_on = await played(tmp_path / "one", scene, resumed=False)
    root = tmp_path / "two"
    root.mkdir()
    async with stage(root) as here:
        await scene(here)
        parent = here.path
        await here.session.close()
        before = parent.read_bytes()
        book = Book(config.load({"COMMONPLACE_HOME": str(here.home)}))
        forked = await book.sessions.fork(str(parent), copy=copy)
        await book.close()
        await here.resume(Path(forked.path))
        here.model.add(answer(say("And on.")))
        await here.run("What now?")

        assert going_on == [neutral(json.loads(raw), root) for raw in here.requests[-1].input]
        assert forked.thread_id == here.session.thread_id
        assert before == parent.read_bytes()
        assert [] == recorded_wrongly(parent)


async def test_a_session_without_a_file_leaves_nothing_under_the_home(tmp_path: Path) -> None:
    async def look(which: ToolInvocation, _: ToolContext) -> str:
        return "seen " * 100_000

    async with stage(
        tmp_path,
        answer(say(LONG), call("look", {}, "c1"), usage=FULL),
        answer(say("The first part.")),  # what came in since the server counted takes more than its window
        answer(say("The summary.")),
        answer(say("Done.")),
        ephemeral=True,
        tools=[Doing("look", look)],
    ) as here:
        end = await here.run("Look.")
        assert isinstance(end, events.TurnCompleted)
        assert any(isinstance(item, events.ContextCompaction) for item in here.completed())

    assert [] == ([*here.home.rglob("*")] if here.home.exists() else [])
