"""Compaction in a session: before a turn, in the middle of one, when asked for; what comes back and what is noted."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from scripted_session import Doing, Stage, choice, stage, used
from session_invariants import Json, kinds

from commonplace.agent import events
from commonplace.agent.tools.registry import ToolContext, ToolInvocation
from commonplace.errors import ModelUnavailable
from commonplace.models.base import Request
from commonplace.models.scripted import Answer, answer, call, compaction, say
from commonplace.protocol.fragments import OWN_SUMMARY_PREFIX

LONG = "word " * 8_000
FULL = used(95_000)


def of(here: Stage, kind: str) -> list[Json]:
    return [line["payload"] for line, name in zip(here.lines(), kinds(here.lines()), strict=True) if name == kind]


def summaries(here: Stage) -> list[str]:
    return [text for text in here.texts() if text.startswith(OWN_SUMMARY_PREFIX)]


def told(here: Stage, mark: str) -> int:
    return sum(text.startswith(mark) for text in here.texts())


async def test_before_a_turn_the_past_is_summed_up_and_the_new_words_are_no_part_of_that(tmp_path: Path) -> None:
    def summary(request: Request) -> Answer:
        assert b"What now?" not in b"".join(request.input)
        assert () == request.tools
        return answer(say("We talked of words."))

    async with stage(tmp_path, answer(say(LONG), usage=FULL), summary, answer(say("Go on."))) as here:
        await here.run("Talk.")
        await here.run("What now?")

        (text,) = summaries(here)
        assert "We talked of words." in text
        assert "What now?" == here.said()[-1]
        assert "Talk." in here.said()
        assert (1, 1) == (told(here, "<environment_context>"), told(here, "<permissions"))
        assert here.texts().index(text) < here.texts().index("What now?")
        order = kinds(here.lines())
        assert (
            order.index("compacted") < order.index("retention") < order.index("turn_context", order.index("retention"))
        )


async def test_in_the_middle_of_a_turn_the_context_goes_back_in_before_the_last_request(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        answer(say(LONG), call("shell", {"command": "echo src/first.py"}, "c1"), usage=FULL),
        answer(say("We looked at a file.")),
        answer(say("Done."), usage=used(2_000)),
    ) as here:
        end = await here.run("Look at the files.")

        assert isinstance(end, events.TurnCompleted)
        (text,) = summaries(here)
        assert "We looked at a file." in text
        assert "src/first.py" in text, "the digest stands beside the model's words"
        shown = here.texts()
        assert shown.index("Look at the files.") < shown.index(text)
        context = [place for place, each in enumerate(shown) if each.startswith(("<perm", "<env"))]
        assert max(context) < shown.index("Look at the files.")
        order = kinds(here.lines())
        at = order.index("compacted")
        assert ["compacted", "retention", "world_state", "turn_context", "token_count", "item_completed"] == order[
            at : at + 6
        ]


async def test_the_room_that_a_compaction_made_is_told_as_it_is(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        answer(say(LONG), call("shell", {"command": "echo 1"}, "c1"), usage=FULL),
        answer(say("The summary.")),
        answer(say("Done."), usage=used(2_000)),
        answer(say("Yes."), usage=used(2_100)),
    ) as here:
        await here.run("Look.")
        await here.run("And now?")

        budget = [text for text in here.texts() if text.startswith("<token_budget>")]
        assert 1 == len(budget)
        assert "About 95," not in budget[0], "what was before the compaction is over"


async def test_a_model_that_cannot_sum_up_costs_nothing_but_its_words(tmp_path: Path) -> None:
    down = [ModelUnavailable("Down.", hint="") for _ in range(2)]
    async with stage(
        tmp_path,
        answer(say(LONG), call("shell", {"command": "echo src/first.py"}, "c1"), usage=FULL),
        *down,
        answer(say("Done.")),
    ) as here:
        end = await here.run("Look at the files.")

        assert isinstance(end, events.TurnCompleted)
        assert "src/first.py" in summaries(here)[0]
        shown = next(item for item in here.completed() if isinstance(item, events.ContextCompaction))
        assert shown.fallback
        assert 0 < shown.after < shown.before
        (noted,) = of(here, "retention")
        assert noted["fallback"]
        assert noted["score"]


async def test_windows_are_numbered_and_linked(tmp_path: Path) -> None:
    steps = [
        *[answer(say(LONG), usage=FULL), answer(say("First summary.")), answer(say("One."), usage=used(2_000))],
        *[answer(say(LONG), usage=FULL), answer(say("Second summary.")), answer(say("Done."))],
    ]
    async with stage(tmp_path, *steps) as here:
        first = here.session.prompt.window.id
        for words in ("A.", "B.", "C.", "D."):
            await here.run(words)
        one, two = of(here, "compacted")

        assert [1, 2] == [one["window_number"], two["window_number"]]
        assert first == one["first_window_id"] == one["previous_window_id"] == two["first_window_id"]
        assert one["window_id"] == two["previous_window_id"] != two["window_id"]
        assert [2, two["window_id"]] == [here.session.prompt.window.number, here.session.prompt.window.id]
        await here.resume()
        assert [2, two["window_id"]] == [here.session.prompt.window.number, here.session.prompt.window.id]


async def test_a_turn_that_compacts_and_then_only_repeats_itself_is_stopped(tmp_path: Path) -> None:
    async def same(which: ToolInvocation, _: ToolContext) -> str:
        return "the same " * 4_000

    def again(request: Request) -> Answer:
        if not request.tools:
            return answer(say("A summary."))
        return answer(call("same", "{}", f"c{len(here.requests)}"), usage=FULL)

    async with stage(tmp_path, *[again] * 40, tools=[Doing("same", same)]) as here:
        here.model.check = lambda: None
        end = await here.run("Go.")

        assert isinstance(end, events.TurnFailed)
        assert "no_progress" == end.error.code
        assert len(here.requests) < 15
        here.model.instead(*[answer(say("A summary."))] * 2, answer(say("Yes.")))
        assert isinstance(await here.run("Stop that."), events.TurnCompleted)


async def test_a_thread_can_be_compacted_when_somebody_asks(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say(LONG * 4)), answer(say("The summary.")), answer(say("Yes."))) as here:
        await here.run("Talk.")
        end = await here.compact()
        assert isinstance(end, events.TurnCompleted)
        await here.run("And now?")

        assert 1 == len(summaries(here))
        assert 3 == len(of(here, "task_complete"))
        assert 1 == told(here, "<environment_context>")


async def test_a_short_history_is_summed_up_where_a_person_asks_for_it(tmp_path: Path) -> None:
    """As with Codex, which asks its model each time."""
    async with stage(tmp_path, answer(say("Short.")), answer(say("Words.")), answer(say("Yes."))) as here:
        await here.run("Talk.")
        await here.compact()
        await here.run("And now?")

        (text,) = summaries(here)
        assert "Words." in text
        assert ["Talk.", text, "And now?"] == here.said()
        assert 1 == len(of(here, "compacted"))


async def test_a_short_history_stays_as_it_is_where_no_summary_can_be_had(tmp_path: Path) -> None:
    down = [ModelUnavailable("Down.", hint="") for _ in range(2)]
    async with stage(tmp_path, answer(say(LONG)), *down) as here:
        await here.run("Talk.")
        before = here.session.history.for_prompt()
        end = await here.compact()

        assert isinstance(end, events.TurnCompleted)
        assert before == here.session.history.for_prompt()


async def test_a_smaller_model_takes_over_after_a_compaction(tmp_path: Path) -> None:
    async with stage(
        tmp_path, answer(say(LONG), usage=used(60_000)), answer(say("The summary.")), answer(say("Yes."))
    ) as here:
        await here.run("Talk.")
        small = replace(here.profile, choice=choice("scripted-small", window=32_000))
        end = await here.run("And now?", small)

        assert isinstance(end, events.TurnCompleted)
        assert 1 == len(summaries(here))
        assert 1 == told(here, "<model_switch>")
        assert ["scripted-1", "scripted-1", "scripted-small"] == [request.model for request in here.requests]


async def test_if_the_model_before_cannot_sum_up_the_smaller_one_is_asked(tmp_path: Path) -> None:
    down = ModelUnavailable("Down.", hint="")
    async with stage(
        tmp_path, answer(say(LONG), usage=used(60_000)), down, down, answer(say("By the new one.")), answer(say("Yes."))
    ) as here:
        await here.run("Talk.")
        small = replace(here.profile, choice=choice("scripted-small", window=64_000))
        end = await here.run("And now?", small)

        assert isinstance(end, events.TurnCompleted)
        assert "By the new one." in summaries(here)[0]
        assert ["scripted-1"] * 3 + ["scripted-small"] * 2 == [request.model for request in here.requests]


async def test_a_history_that_fits_the_window_is_summed_up_by_one_request(tmp_path: Path) -> None:
    async with stage(
        tmp_path, answer(say(LONG * 9), usage=used(90_000)), answer(say("In one.")), answer(say("Yes."))
    ) as here:
        await here.run("Talk.")
        await here.run("And now?")

        assert "In one." in summaries(here)[0]
        assert 3 == len(here.requests)


# --- By the server


async def test_a_server_that_sums_up_itself_is_asked_to(tmp_path: Path) -> None:
    def summed(request: Request) -> Answer:
        assert b"compaction_trigger" in request.input[-1]
        return answer(compaction("secret"))

    async with stage(
        tmp_path, answer(say(LONG), usage=FULL), summed, answer(say("Yes.")), remote_compaction=True
    ) as here:
        await here.run("Talk.")
        await here.run("And now?")

        kept = [item for item in here.items() if item["type"] == "compaction"]
        assert ["secret"] == [item["encrypted_content"] for item in kept]
        assert "Talk." in here.said()
        assert LONG not in here.texts()
        (line,) = of(here, "compacted")
        assert "" == line["message"]
        assert "compaction" == line["replacement_history"][-1]["type"]


@pytest.mark.parametrize("failing", ["error", "nothing"])
async def test_a_server_that_cannot_sum_up_is_replaced_by_our_own_summary(tmp_path: Path, failing: str) -> None:
    wrong = ModelUnavailable("Down.", hint="") if failing == "error" else answer()
    async with stage(
        tmp_path,
        answer(say(LONG), usage=FULL),
        wrong,
        answer(say("Our own.")),
        answer(say("Yes.")),
        remote_compaction=True,
    ) as here:
        await here.run("Talk.")
        await here.run("And now?")

        assert "Our own." in summaries(here)[0]
