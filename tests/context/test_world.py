"""The world state: what is told at the beginning of a turn, in which messages, and what the ledger notes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context import injected_messages, sections, world_state
from commonplace.context.environment import Environment, Environments
from commonplace.context.injected_messages import InjectedText, Item
from commonplace.context.instructions import Instructions
from commonplace.context.permissions import Permissions
from commonplace.context.sections import AgentsMd, Collaboration, ModelSection, Personality, StandingText
from commonplace.context.world_state import (
    Absent,
    InjectedState,
    KnownSnapshot,
    Section,
    SectionName,
    Unknown,
    WorldStateUpdate,
)
from commonplace.protocol import items
from commonplace.protocol.rollout import TurnContext


def section(
    name: str, text: str = "", role: Any = "developer", *, alone: bool = False, lapses: bool = False
) -> StandingText:
    told = InjectedText(role, text or name, f"{name}.instructions", alone)
    return StandingText(name=SectionName(name, name, lapses), remembered=text or name, text=told)


def shape(found: Sequence[Item]) -> list[tuple[str, list[str]]]:
    return [(item["role"], [part["text"] for part in item["content"]]) for item in found]


def context(turn_id: str = "1", cwd: str = "/repo") -> TurnContext:
    return TurnContext(turn_id=turn_id, cwd=cwd, model="m")


def held(found: Sequence[Item]) -> dict[str, str]:
    return injected_messages.injected_kinds(items.view(msgspec.json.encode(item)) for item in found)


# --- What was known.


@pytest.mark.parametrize(
    ("baseline", "texts", "lapses", "before"),
    [
        ({"x": 1}, {"x": "t"}, False, KnownSnapshot(1)),
        ({"x": 1}, {"x": "t"}, True, KnownSnapshot(1)),
        ({"x": 1}, {}, False, KnownSnapshot(1)),
        ({"x": 1}, {}, True, Absent()),
        ({"x": None}, {}, False, KnownSnapshot(None)),
        ({}, {"x": "t"}, False, Unknown("t")),
        ({}, {"x": "t"}, True, Unknown("t")),
        ({}, {}, False, Absent()),
        (None, {"x": "t"}, False, Unknown("t")),
        (None, {}, True, Absent()),
    ],
)
def test_a_snapshot_is_believed_and_some_only_while_their_text_stands(
    baseline: dict[str, Any] | None, texts: dict[str, str], lapses: bool, before: world_state.Before
) -> None:
    assert before == InjectedState(baseline, texts).before(section("x", lapses=lapses))


def test_the_history_is_asked_for_the_newest_text_of_each_kind() -> None:
    texts = [
        InjectedText("user", "<environment_context>1</environment_context>", "k"),
        InjectedText("developer", "<model_switch>\nx\n</model_switch>", "k"),
        InjectedText("user", "<environment_context>2</environment_context>", "k"),
        InjectedText("user", "a person who writes <environment_context> somewhere", "k"),
    ]

    assert {
        "environment_context": "<environment_context>2</environment_context>",
        "model_switch": "<model_switch>\nx\n</model_switch>",
    } == held(injected_messages.messages(texts))


# --- Messages.


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ("", []),
        ("d", ["d"]),
        ("dd", ["dd"]),
        ("du", ["d", "u"]),
        ("ddud", ["dd", "u", "d"]),
        ("Dd", ["D", "d"]),
        ("dD", ["d", "D"]),
        ("DD", ["D", "D"]),
        ("dDd", ["d", "D", "d"]),
        ("uuU", ["uu", "U"]),
    ],
)
def test_neighbours_of_one_role_share_a_message_unless_one_stands_alone(texts: str, expected: list[str]) -> None:
    roles: dict[str, Any] = {"d": "developer", "u": "user"}
    found = injected_messages.messages(
        InjectedText(roles[char.lower()], char, f"kind.{char}", char.isupper()) for char in texts
    )

    assert expected == ["".join(part["text"] for part in item["content"]) for item in found]
    assert [[f"kind.{char}" for char in text] for text in expected] == [
        item[items.PASSTHROUGH]["content_item_kinds"] for item in found
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("user", "a\r\nb"), ("user", "a\nb"), True),
        (("user", "a"), ("developer", "a"), False),
        (("user", "a"), ("user", "a "), False),
    ],
)
def test_the_hash_of_a_text_tells_role_and_words_but_not_line_ends(
    one: tuple[Any, str], other: tuple[Any, str], same: bool
) -> None:
    assert same == (InjectedText(*one, "k").digest() == InjectedText(*other, "other kind").digest())


EVERYTHING = (
    Environments(environments={"local": Environment(cwd="/r")}),
    AgentsMd(Instructions("Rules.")),
    section("their user section", role="user"),
    section("their section"),
    Collaboration("m", "plan"),
    Permissions("Permissions."),
    section("host_skills"),
    Personality("m", "friendly"),
    ModelSection("m", "Be brief.", "old"),
)
OTHERS = (
    InjectedText("user", "their user text", "x.y"),
    InjectedText("developer", "their separate text", "x.y", alone=True),
    InjectedText("developer", "session instructions", "x.y"),
)


def opening(text: str) -> str:
    return text.partition("\n")[0].partition(">")[0]


def test_everything_is_told_in_one_order_whatever_order_it_is_given_in() -> None:
    found = world_state.full_items(EVERYTHING, OTHERS)

    assert shape(world_state.full_items(reversed(EVERYTHING), OTHERS)) == shape(found)
    assert [
        (
            "developer",
            [
                "<model_switch",
                "session instructions",
                "<personality_spec",
                "host_skills",
                "<permissions instructions",
                "<collaboration_mode",
                "their section",
            ],
        ),
        ("developer", ["their separate text"]),
        ("user", ["their user text", "# AGENTS.md instructions", "<environment_context", "their user section"]),
    ] == [(role, [opening(text) for text in texts]) for role, texts in shape(found)]


def test_a_new_model_is_announced_alone_between_turns() -> None:
    so_far = InjectedState({"model": "old", "host_skills": "old"}, {"model_switch": "<model_switch>"})

    found = world_state.step([section("host_skills"), ModelSection("m", "Be brief.")], so_far)

    assert [["<model_switch"], ["host_skills"]] == [
        [opening(text) for text in texts] for _, texts in shape(found.items)
    ]


# --- The beginning of a turn.


Told = tuple[list[str], bool | None, dict[str, Any] | None, bool]
BEGINNINGS: list[tuple[TurnContext | None, dict[str, Any] | None, TurnContext, Told]] = [
    # No reference: everything, whatever was known.
    (None, None, context("1"), (["new", "t"], True, {"x": "new"}, True)),
    (None, {"x": "new"}, context("1"), (["new", "t"], True, {"x": "new"}, True)),
    # A reference: what changed, and turn texts where the context is another.
    (context("1"), {"x": "old"}, context("2"), (["new", "t"], False, {"x": "new"}, True)),
    (context("1"), {"x": "new"}, context("2"), (["t"], None, None, True)),
    (context("1"), {"x": "old"}, context("1"), (["new"], False, {"x": "new"}, True)),
    # Only the snapshot changed: no turn context.
    (context("1"), {"x": "new", "gone": 1}, context("1"), ([], False, {"gone": None}, False)),
    # Nothing at all: nothing is written.
    (context("1"), {"x": "new"}, context("1"), ([], None, None, False)),
    # No baseline: the whole snapshot is noted again.
    (context("1"), None, context("1"), (["new"], True, {"x": "new"}, True)),
]


@pytest.mark.parametrize(("reference", "baseline", "current", "expected"), BEGINNINGS)
def test_a_turn_tells_and_notes_what_is_new(
    reference: TurnContext | None, baseline: dict[str, Any] | None, current: TurnContext, expected: Told
) -> None:
    turn = [InjectedText("developer", "t", "x.t", alone=True)]

    found = world_state.begin([section("x", "new")], InjectedState(baseline), current, reference, turn=turn)

    texts = [part for _, parts in shape(found.items) for part in parts]
    full, state = (found.world["full"], found.world["state"]) if found.world else (None, None)
    assert expected == (texts, full, state, found.turn_context)
    assert {"x": "new"} == found.baseline


def test_a_step_within_a_turn_writes_no_turn_context() -> None:
    found = world_state.step([section("x", "new")], InjectedState({"x": "old"}))

    assert [("developer", ["new"])] == shape(found.items)
    assert ({"full": False, "state": {"x": "new"}}, False) == (found.world, found.turn_context)


def test_a_snapshot_leaves_out_nulls_and_sections_without_one() -> None:
    nulls = StandingText(name=SectionName("b", "b"), remembered={"k": None, "o": {"n": None}})

    assert {"a": "a", "b": {"o": {}}} == world_state.snapshot(
        [nulls, section("a"), StandingText(name=SectionName("c", "c"))]
    )


# --- Patches.


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {}, {"a": None}),
        ({}, {"a": 1}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": 2}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": [1]}, {"a": [True]}, {"a": [True]}),
        ({"b": 1}, {"a": 1}, {"b": None, "a": 1}),
    ],
)
def test_a_patch_says_only_what_changed(before: dict[str, Any], after: dict[str, Any], changed: dict[str, Any]) -> None:
    found = world_state.patch(before, after)

    assert msgspec.json.encode(changed) == msgspec.json.encode(found)
    assert after == world_state.apply(before, found)


NAMES = st.text("abc", max_size=2)
LEAVES = st.booleans() | st.integers(-2, 2) | st.text("xy", max_size=2)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
SNAPSHOTS = st.dictionaries(NAMES, VALUES, max_size=4)


@given(before=SNAPSHOTS, after=SNAPSHOTS)
def test_a_patch_applied_gives_the_newer_snapshot(before: dict[str, Any], after: dict[str, Any]) -> None:
    changed = world_state.patch(before, after)

    assert msgspec.json.encode(after, order="sorted") == msgspec.json.encode(
        world_state.apply(before, changed), order="sorted"
    )
    assert {} == world_state.patch(after, after)


# --- A whole session.


class State(msgspec.Struct, frozen=True):
    """What the surroundings are in one turn."""

    model: str
    rules: str
    cwd: str
    mode: sections.Mode
    tone: sections.Tone | None

    def sections(self, previous: str | None) -> list[Section]:
        return [
            ModelSection(self.model, f"You are {self.model}.", previous),
            AgentsMd(Instructions(self.rules, self.cwd if self.rules else None)),
            Environments(environments={"local": Environment(cwd=self.cwd)}),
            Collaboration(self.model, self.mode),
            Personality(self.model, self.tone),
        ]


STATES = st.builds(
    State,
    model=st.sampled_from(["m", "n"]),
    rules=st.sampled_from(["", "one", "two"]),
    cwd=st.sampled_from(["/a", "/b"]),
    mode=st.sampled_from(["default", "plan", "execute"]),
    tone=st.sampled_from([None, "none", "friendly"]),
)


def play(states: Sequence[State], resets: Sequence[bool]) -> tuple[list[Item], list[WorldStateUpdate]]:
    history: list[Item] = []
    updates: list[WorldStateUpdate] = []
    baseline: dict[str, Any] | None = None
    for number, state in enumerate(states):
        reference = None if number == 0 or resets[number] else context(str(number - 1))
        if reference is None:
            history = []
        previous = states[number - 1].model if number else None
        so_far = InjectedState(baseline if reference else None, held(history))
        update = world_state.begin(state.sections(previous), so_far, context(str(number)), reference)
        updates.append(update)
        history += update.items
        baseline = update.baseline
    return history, updates


@given(turns=st.lists(st.tuples(STATES, st.booleans()), min_size=1, max_size=6))
def test_after_any_changes_the_ledger_and_the_history_know_the_newest_state(turns: list[tuple[State, bool]]) -> None:
    states = [state for state, _ in turns]
    history, updates = play(states, [reset for _, reset in turns])

    replayed: dict[str, Any] = {}
    for update in updates:
        if update.world is not None:
            state = update.world["state"]
            replayed = state if update.world["full"] else world_state.apply(replayed, state)
    now, texts = states[-1], held(history)
    assert world_state.snapshot(now.sections(None)) == replayed
    assert f"<cwd>{now.cwd}</cwd>" in texts["environment_context"]
    newest = texts.get("agents_md")
    if now.rules:
        assert newest is not None
        assert newest.endswith(f"\n{now.rules}\n</INSTRUCTIONS>")
    else:
        assert newest in (None, AgentsMd(Instructions()).tell(Unknown("x"))[0].text)
    mode = texts.get("collaboration_mode")
    if mode is None:
        assert "default" == now.mode
    else:
        assert f"# Mode: {now.mode}\n" in mode


@given(turns=st.lists(st.tuples(STATES, st.booleans()), min_size=1, max_size=4))
def test_what_did_not_change_is_not_told_again(turns: list[tuple[State, bool]]) -> None:
    states, resets = [state for state, _ in turns], [reset for _, reset in turns]

    _, updates = play([*states, states[-1]], [*resets, False])

    assert ([], None, True) == (updates[-1].items, updates[-1].world, updates[-1].turn_context)
