"""Compaction: the contract holds for every history and every summariser, and compacting again changes nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context import compaction
from commonplace.context.compaction import FLOOR_TOKENS, CompactionLimits, kept_messages, sizes
from commonplace.context.compaction.summaries import SummaryInputTooLong, SummaryRequest
from commonplace.context.digest.tally import Tally
from commonplace.context.history import History
from commonplace.context.history_items import HistoryEntry
from commonplace.errors import CommonplaceError, WindowTooSmall
from commonplace.protocol import fragments, items

pytestmark = pytest.mark.anyio
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 4000}
Item = dict[str, Any]


def user(text: str, *parts: Item) -> Item:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}, *parts]}


def answer(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call(number: int, command: str) -> Item:
    arguments = msgspec.json.encode({"cmd": command}).decode()
    return {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": f"c{number}"}


def output(number: int, text: str) -> Item:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": text}


def summary(text: str) -> Item:
    return user(f"{fragments.OWN_SUMMARY_PREFIX}\n{text}")


def history(*given: Item) -> list[HistoryEntry]:
    found = History()
    found.replace(msgspec.json.encode(item) for item in given)
    return list(found.entries)


def tally(entries: Sequence[HistoryEntry]) -> Tally:
    found = Tally("/repo")
    for entry in entries:
        found.see(entry.view)
    return found


class Scripted:
    """A summariser that says what it was told to."""

    def __init__(self, *answers: str | Exception, window: int = 100_000) -> None:
        self.window = window
        self.asked: list[SummaryRequest] = []
        self._answers = list(answers)

    def room(self, beside: int) -> int:
        return max(1, self.window - beside)

    async def summarise(self, ask: SummaryRequest) -> str:
        self.asked.append(ask)
        told = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(told, Exception):
            raise told
        return told


LONG = [
    user("please fix src/auth.py, never touch src/legacy.py"),
    *(
        part
        for n in range(60)
        for part in (call(n, f"sed -n 1,50p src/mod_{n}.py"), output(n, f"def handler_{n}():\n" * 40))
    ),
    answer("the cause is in handler_7 because it forgets the token"),
    user("now run the tests with pytest -q tests/test_auth.py"),
]


async def test_a_history_below_its_target_is_unchanged() -> None:
    entries = history(user("hi"), answer("hello"))
    made = await compaction.compact(entries, tally(entries), CompactionLimits(10_000))
    assert made.status == "unchanged"
    assert made.items == [entry.raw for entry in entries]


async def test_the_digest_alone_keeps_the_request_and_what_was_laid_down() -> None:
    entries = history(*LONG)
    made = await compaction.compact(entries, tally(entries), CompactionLimits(8_000))
    assert made.status == "compacted"
    assert made.fallback
    assert all(made.contract.values())
    text = b"".join(made.items).decode()
    assert "now run the tests with pytest -q tests/test_auth.py" in text
    assert "never touch src/legacy.py" in text
    assert "handler_7" in text
    assert made.tokens_after <= 2_400 < made.tokens_before


async def test_a_models_summary_stands_beside_the_digest() -> None:
    entries = history(*LONG)
    made = await compaction.compact(
        entries, tally(entries), CompactionLimits(8_000), Scripted("The token is lost in handler_7.")
    )
    assert not made.fallback
    assert all(made.contract.values())
    assert "The token is lost in handler_7." in made.message
    assert made.digest
    assert made.digest in made.message


@pytest.mark.parametrize(
    "answers",
    [
        ("",),
        ("   \n",),
        ("word " * 100_000,),
        (CommonplaceError("the provider is down"),),
        (TimeoutError(),),
        (SummaryInputTooLong(),),
        (OSError("broken"),),
        ("<oai-mem-citation>x</oai-mem-citation>",),
        (fragments.OWN_SUMMARY_PREFIX,),
    ],
    ids=["empty", "blank", "giant", "error", "stall", "too long", "io", "only a citation", "only an opening"],
)
async def test_whatever_a_summariser_does_the_digest_steps_in(answers: tuple[str | Exception, ...]) -> None:
    entries = history(*LONG)
    scripted = Scripted(*answers)
    made = await compaction.compact(entries, tally(entries), CompactionLimits(8_000), scripted)
    assert made.fallback
    assert all(made.contract.values())


async def test_a_summariser_gets_one_more_try_with_a_tighter_request() -> None:
    entries = history(*LONG)
    scripted = Scripted("word " * 50_000, "short and good")
    made = await compaction.compact(entries, tally(entries), CompactionLimits(8_000), scripted)
    assert not made.fallback
    assert "short and good" in made.message
    assert len(scripted.asked) == 2
    assert len(scripted.asked[1].request) > len(scripted.asked[0].request)


async def test_a_history_that_does_not_fit_is_summarised_in_pieces_that_are_folded() -> None:
    entries = history(*LONG)
    scripted = Scripted(*(f"part {n}" for n in range(40)), "the end", window=4_000)
    made = await compaction.compact(entries, tally(entries), CompactionLimits(8_000), scripted)
    assert len(scripted.asked) > 2
    assert "part 0" in scripted.asked[1].request
    assert all(sizes.total(ask.items) <= 4_000 for ask in scripted.asked)
    assert all(made.contract.values())


def calls_and_outputs(ask: SummaryRequest) -> tuple[list[str], list[str]]:
    views = [items.view(raw) for raw in ask.items]
    calls = [view.call_id for view in views if isinstance(view, items.FunctionCall)]
    return calls, [view.call_id or "" for view in views if isinstance(view, items.FunctionCallOutput)]


@pytest.mark.parametrize("together", [1, 2, 5])
async def test_no_piece_parts_a_call_from_its_output(together: int) -> None:
    groups = [range(start, start + together) for start in range(0, 60, together)]
    side_by_side = [
        item
        for group in groups
        for item in (*(call(n, "make check") for n in group), *(output(n, "line\n" * 200) for n in group))
    ]
    entries = history(user("go"), *side_by_side, call(99, "sleep 1000"), user("stop"))
    scripted = Scripted("so far", window=4_000)
    await compaction.compact(entries, tally(entries), CompactionLimits(8_000), scripted)
    assert len(scripted.asked) > 2
    for ask in scripted.asked:
        calls, outputs = calls_and_outputs(ask)
        assert [name for name in calls if name != "c99"] == outputs
        assert sizes.total(ask.items) <= 4_000
    assert [f"c{n}" for n in (*range(60), 99)] == [name for ask in scripted.asked for name in calls_and_outputs(ask)[0]]


async def test_one_call_that_no_window_holds_is_shown_with_its_output_cut() -> None:
    entries = history(user("go"), call(1, "cat big"), output(1, "big " * 40_000), answer("done"), user("next"))
    scripted = Scripted("so far", window=4_000)
    await compaction.compact(entries, tally(entries), CompactionLimits(8_000), scripted)
    (ask,) = [ask for ask in scripted.asked if calls_and_outputs(ask)[0]]
    assert (["c1"], ["c1"]) == calls_and_outputs(ask)
    assert any(b"tokens truncated" in raw for raw in ask.items)
    assert sizes.total(ask.items) <= 4_000


async def test_only_the_piece_that_failed_is_asked_for_again_and_one_that_is_too_long_is_split() -> None:
    entries = history(*LONG)
    scripted = Scripted("one", CommonplaceError("down"), "two", SummaryInputTooLong(), "rest", window=4_000)
    made = await compaction.compact(entries, tally(entries), CompactionLimits(8_000), scripted)
    assert "rest" in made.message
    first, failed, again, long, *rest = scripted.asked
    assert failed.items == again.items != first.items
    assert [raw for ask in rest for raw in ask.items][: len(long.items)] == long.items
    assert all("one" in ask.request for ask in (failed, again))


async def test_a_handover_between_pieces_is_bounded() -> None:
    entries = history(*LONG)
    scripted = Scripted("word " * 1_000, window=4_000)
    await compaction.compact(entries, tally(entries), CompactionLimits(8_000), scripted)
    own_words, room = 600, 8_000 * 30 // 100 * 35 // 100
    assert all(len(ask.request) // 4 <= room + own_words for ask in scripted.asked)


async def test_a_request_that_is_too_long_is_cut_and_the_rest_is_said_to_be_gone() -> None:
    text = "begin " + "x" * 100_000 + " end"
    entries = history(user(text), answer("ok"))
    made = await compaction.compact(entries, tally(entries), CompactionLimits(8_000))
    assert all(made.contract.values())
    kept = next(raw.decode() for raw in made.items if b"begin " in raw)
    assert "tokens truncated" in kept
    assert " end" in kept


async def test_only_the_media_of_the_last_request_are_carried_along() -> None:
    entries = history(user("first", IMAGE), answer("a" * 40_000), user("what is in this?", IMAGE))
    made = await compaction.compact(entries, tally(entries), CompactionLimits(40_000))
    assert all(made.contract.values())
    assert sum(raw.count(b"input_image") for raw in made.items) == 1


async def test_earlier_summaries_are_folded_in_and_none_is_nested() -> None:
    entries = history(summary("the flag is --frobnicate because of the old parser"), *LONG)
    made = await compaction.compact(entries, tally(entries), CompactionLimits(12_000))
    assert all(made.contract.values())
    assert sum(fragments.OWN_SUMMARY_PREFIX.encode() in raw for raw in made.items) == 1
    assert "--frobnicate" in made.message


async def test_injected_context_is_not_kept_it_comes_anew() -> None:
    told = user("<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>")
    entries = history(told, *LONG)
    made = await compaction.compact(entries, tally(entries), CompactionLimits(8_000))
    assert all(made.contract.values())
    assert not any(b"<environment_context>" in raw for raw in made.items)


async def test_a_target_that_can_hold_nothing_is_a_named_error() -> None:
    entries = history(*LONG)
    with pytest.raises(WindowTooSmall):
        await compaction.compact(entries, tally(entries), CompactionLimits(FLOOR_TOKENS * 3))


anything = st.text(max_size=300) | st.text('abcXYZ_/.- \n"\\…é测🙂', max_size=2_000)
big = st.integers(1, 20_000).map(lambda size: "data " * size)
told = anything | big
numbers = st.integers(0, 5)
made_items: st.SearchStrategy[Item] = st.one_of(
    told.map(user),
    told.map(answer),
    st.builds(call, numbers, anything),
    st.builds(output, numbers, told),
    told.map(summary),
    anything.map(lambda text: user(text, IMAGE)),
    anything.map(lambda text: user(f"<environment_context>{text}</environment_context>")),
    anything.map(
        lambda text: {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}
    ),
    anything.map(lambda text: {"type": "reasoning", "summary": [], "encrypted_content": text}),
    anything.map(lambda text: {"type": "custom_tool_call", "call_id": "x", "name": "apply_patch", "input": text}),
    anything.map(
        lambda text: {
            "type": "agent_message",
            "author": "a",
            "recipient": "b",
            "content": [{"type": "input_text", "text": text}],
        }
    ),
)
bad: st.SearchStrategy[str | Exception] = st.one_of(
    st.just(""), told, st.just(SummaryInputTooLong()), st.just(TimeoutError()), st.just(CommonplaceError("no")),
    anything.map(lambda text: f"{fragments.OWN_SUMMARY_PREFIX}\n{text}"),
    st.just("<environment_context>x</environment_context>"),
    st.just("# AGENTS.md instructions\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>"),
)  # fmt: skip


@given(st.lists(made_items, max_size=12), st.integers(FLOOR_TOKENS * 4, 20_000), st.none() | bad)
async def test_the_contract_holds_for_every_history_and_every_summariser(
    given_items: list[Item], window: int, says: str | Exception | None
) -> None:
    entries = history(*given_items)
    known = tally(entries)
    options = CompactionLimits(window)
    summarisers = [Scripted(says)] if says is not None else []
    made = await compaction.compact(entries, known, options, *summarisers)
    if made.status == "unchanged":
        assert made.items == [entry.raw for entry in entries]
        return
    assert all(made.contract.values()), made.contract
    assert sizes.total(made.items) <= options.target
    assert made.tokens_after < made.tokens_before
    again = history(*(msgspec.json.decode(raw) for raw in made.items))
    assert (await compaction.compact(again, known, options, *summarisers)).status == "unchanged"


@given(st.lists(st.tuples(told, told), min_size=1, max_size=6), st.integers(1_000, 8_000))
async def test_a_session_that_compacts_again_and_again_converges(turns: list[tuple[str, str]], window: int) -> None:
    known, current = Tally("/repo"), history()
    options = CompactionLimits(window)
    for said, replied in turns:
        added = history(user(said), answer(replied))
        for entry in added:
            known.see(entry.view)
        made = await compaction.compact([*current, *added], known, options)
        current = history(*(msgspec.json.decode(raw) for raw in made.items))
        assert sizes.total(entry.raw for entry in current) <= max(options.target, made.tokens_before)
        assert (
            sum(
                fragments.is_summary(kept_messages.message_text(v))
                for e in current
                if isinstance(v := e.view, items.Message)
            )
            <= 1
        )
