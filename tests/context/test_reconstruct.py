"""Reconstruction: which compaction a replay starts from, what rollbacks do to it, and what else a session was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from commonplace.context.reconstruct import Reconstruction, WindowIdentity, reconstruct
from commonplace.protocol import rollout
from commonplace.protocol.fragments import OWN_SUMMARY_PREFIX
from commonplace.protocol.rollout import Line, LineError, PreviousSettings, Skipped
from ledgers import Json, Script, assistant, function_call, message, user

CONTEXT = message("developer", "<permissions instructions>ctx", "ctx")
ENVIRONMENT = user("<environment_context>ctx</environment_context>", "env")
W0, W1, W2 = (f"0198c0de-0000-7000-8000-0000000000a{number}" for number in range(3))


def lines_of(script: Script) -> list[Line]:
    found: list[Line] = []
    offset = 0
    for raw in script.lines:
        try:
            line = rollout.decode(raw)
        except LineError:
            pass
        else:
            line.offset = offset
            found.append(line)
        offset += len(raw) + 1
    return found


def rebuild(script: Script) -> Reconstruction:
    lines = lines_of(script)
    return reconstruct(reversed(lines), rollout.session_meta(lines[0]))


def ids_of(found: Reconstruction) -> list[str]:
    """The items by their ids; those that were made up have none and are told by their text."""
    return [entry.view.id or json.loads(entry.raw)["content"][0]["text"] for entry in found.history.entries]


# --- A notation for threads: each step adds to a script.

Step = Callable[[Script], Any]


def said(name: str, *more: Json) -> Step:
    """A turn with a message and its answer: `said("1")` gives the items u1 and a1."""
    return lambda script: script.turn(*more, user(name, f"u{name}"), assistant(name, f"a{name}"))


def steered(name: str) -> Step:
    first, work, second, answer = user("x", f"u{name}"), assistant("x", "w"), user("x", "steer"), assistant("x", "a")
    return lambda script: script.turn(first, work, second, answer)


def bare(name: str) -> Step:
    """The same without any events."""
    return lambda script: script.item(user(name, f"u{name}"), assistant(name, f"a{name}"))


def kept(*names: str) -> list[Json]:
    return [user("kept", name) for name in names]


def compaction(*names: str, **more: Any) -> Step:
    """A compaction to the items of these names, in a turn of its own."""

    def step(script: Script) -> None:
        script.event("task_started", turn_id=f"compact-{names}")
        script.compacted(kept(*names), **more)
        script.event("task_complete", turn_id=f"compact-{names}")

    return step


def bare_compaction(*names: str, **more: Any) -> Step:
    return lambda script: script.compacted(kept(*names), **more)


def old_compaction(summary: str) -> Step:
    def step(script: Script) -> None:
        script.event("task_started", turn_id=f"compact-{summary}")
        script.compacted(None, summary)
        script.event("task_complete", turn_id=f"compact-{summary}")

    return step


def bare_old_compaction(summary: str) -> Step:
    return lambda script: script.compacted(None, summary)


def turn_with_compaction(name: str, *names: str, before: bool, killed: bool = False) -> Step:
    """A compaction inside a turn: before its message, or between its message and its answer."""

    def step(script: Script) -> None:
        script.event("task_started", turn_id=f"turn-{name}")
        parts: list[Step] = [lambda s: s.item(user(name, f"u{name}")), bare_compaction(*names)]
        for part in reversed(parts) if before else parts:
            part(script)
        if not killed:
            script.item(assistant(name, f"a{name}"))
            script.event("task_complete", turn_id=f"turn-{name}")

    return step


def rollback(turns: int) -> Step:
    return lambda script: script.rollback(turns)


def thread(*steps: Step, paginated: bool = False, **meta: Any) -> Script:
    script = Script(paginated=paginated, **meta)
    for step in steps:
        step(script)
    return script


FIRST = said("1", CONTEXT)


def final(script: Script) -> None:
    """A compaction that no rollback undoes, in files of either mode."""
    script.compacted(kept("F"), window_number=1, resume_metadata={})


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([FIRST, said("2")], "ctx u1 a1 u2 a2"),
        ([FIRST, said("2"), rollback(0)], "ctx u1 a1 u2 a2"),
        ([FIRST, said("2"), rollback(1)], "ctx u1 a1"),
        ([FIRST, said("2"), rollback(1), rollback(1)], "ctx"),
        ([FIRST, said("2"), rollback(9)], "ctx"),
        ([FIRST, said("2"), rollback(1), said("3")], "ctx u1 a1 u3 a3"),
        ([FIRST, said("2", ENVIRONMENT), rollback(1)], "ctx u1 a1"),
        # A compaction that a rollback does not reach stands.
        ([FIRST, said("2"), compaction("u1", "u2", "S"), said("3")], "u1 u2 S u3 a3"),
        ([FIRST, said("2"), compaction("u1", "u2", "S"), said("3"), rollback(1)], "u1 u2 S"),
        # One that it reaches is undone, and the turns before it are counted in full.
        ([FIRST, said("2"), compaction("u1", "u2", "S"), said("3"), rollback(2)], "ctx u1 a1"),
        ([FIRST, said("2"), compaction("u1", "u2", "S"), said("3"), rollback(3)], "ctx"),
        ([FIRST, said("2"), compaction("u1", "u2", "S"), rollback(1)], "ctx u1 a1"),
        ([FIRST, said("2"), compaction("u1", "S"), said("3"), rollback(2), said("4")], "ctx u1 a1 u4 a4"),
        ([FIRST, said("2"), turn_with_compaction("3", "S", before=False), rollback(1)], "ctx u1 a1 u2 a2"),
        ([FIRST, said("2"), turn_with_compaction("3", "S", before=True), rollback(1)], "ctx u1 a1 u2 a2"),
        # So is one in a turn whose process died.
        (
            [FIRST, said("2"), turn_with_compaction("3", "S", before=False, killed=True), rollback(1)],
            "ctx u1 a1 u2 a2",
        ),
        # An older one that is not reached remains the base.
        ([FIRST, compaction("u1", "S1"), said("2"), compaction("S2"), said("3"), rollback(2)], "u1 S1"),
        ([FIRST, compaction("u1", "S1"), said("2"), compaction("S2"), said("3"), rollback(3)], "ctx"),
        (
            [FIRST, compaction("S1"), said("2"), said("3"), compaction("S2"), said("4"), rollback(2)],
            "S1 u2 a2",
        ),
        # Steering: a rollback drops messages, but turns decide whether it reaches a compaction.
        ([FIRST, steered("2"), rollback(1)], "ctx u1 a1 u2 w"),
        ([FIRST, compaction("u1", "S1"), steered("2"), rollback(1)], "u1 S1 u2 w"),
        ([FIRST, compaction("u1", "S1"), steered("2"), rollback(2)], "ctx u1 a1"),
        # Compactions of the old format are always replayed; their summary counts as a turn.
        ([FIRST, said("2"), old_compaction("LEG"), said("3")], "u1 u2 LEG u3 a3"),
        ([FIRST, said("2"), old_compaction("LEG"), said("3"), rollback(1)], "u1 u2 LEG"),
        ([FIRST, said("2"), old_compaction("LEG"), said("3"), rollback(2)], "u1 u2"),
        ([bare("1"), bare_old_compaction("LEG"), bare("2"), rollback(1)], "u1 LEG"),
        ([bare("1"), bare_old_compaction("LEG"), bare("2"), rollback(2)], "u1"),
        # Without any turn events, a compaction belongs to no turn and stands.
        ([bare("1"), bare_compaction("u1", "S"), bare("2"), rollback(1)], "u1 S"),
        ([bare("1"), bare_compaction("u1", "S"), bare("2"), rollback(1), bare("3")], "u1 S u3 a3"),
        ([bare("1"), bare_compaction("S1"), bare("2"), bare_compaction("S2"), bare("3"), rollback(1)], "S2"),
        # Events from before the last one that stands are not looked at.
        ([FIRST, said("2"), final, bare_compaction("S"), bare("3"), rollback(1)], "S"),
        # A turn event anywhere before it is enough to tell.
        ([FIRST, bare_compaction("u1", "S"), bare("2"), rollback(1)], "ctx u1 a1"),
        ([FIRST, compaction()], ""),
    ],
)
@pytest.mark.parametrize("paginated", [False, True], ids=["legacy", "paginated"])
def test_rollbacks_and_compactions_leave(steps: list[Step], expected: str, paginated: bool) -> None:
    assert expected == " ".join(ids_of(rebuild(thread(*steps, paginated=paginated))))


def final_compaction(**more: Any) -> Step:
    """Like a real one of today: context before the last message, a summary that can be recognised."""
    summary = user(f"{OWN_SUMMARY_PREFIX}\nS", "S")
    replacement = [user("1", "u1"), CONTEXT, ENVIRONMENT, user("2", "u2"), summary]

    def step(script: Script) -> None:
        script.event("task_started", turn_id="compact")
        script.compacted(replacement, **more)
        script.event("task_complete", turn_id="compact")

    return step


@pytest.mark.parametrize(("turns", "expected"), [(1, "u1 ctx env u2 S"), (2, "u1"), (3, ""), (9, "")], ids=str)
@pytest.mark.parametrize(
    ("paginated", "more"),
    [
        (False, {"window_number": 1, "resume_metadata": {}}),
        (True, {"window_number": 1, "resume_metadata": {}}),
        (True, {"window_number": 1}),
    ],
    ids=["legacy", "paginated", "paginated without metadata"],
)
def test_a_rollback_past_a_final_compaction_works_on_what_that_left(
    turns: int, expected: str, paginated: bool, more: Json
) -> None:
    script = thread(FIRST, said("2"), final_compaction(**more), said("3"), rollback(turns), paginated=paginated)

    assert expected == " ".join(ids_of(rebuild(script)))


@pytest.mark.parametrize(
    ("paginated", "more"),
    [
        (False, {}),
        (False, {"window_number": 1}),
        (False, {"resume_metadata": {}}),
        (False, {"window_number": 1, "resume_metadata": None}),
        (False, {"window_id": 1, "resume_metadata": {}}),
        (True, {}),
        (True, {"resume_metadata": {}}),
    ],
    ids=str,
)
def test_a_rollback_past_any_other_compaction_undoes_it(paginated: bool, more: Json) -> None:
    script = thread(FIRST, said("2"), final_compaction(**more), said("3"), rollback(2), paginated=paginated)

    assert "ctx u1 a1" == " ".join(ids_of(rebuild(script)))


def test_nothing_before_a_final_compaction_is_pulled_once_all_is_known() -> None:
    settings = {"model": "m", "comp_hash": "h", "collaboration_mode": {"mode": "plan"}}
    script = thread(said("1"), final_compaction(window_number=1, resume_metadata={"previous_turn_settings": settings}))
    lines = lines_of(script)
    pulled: list[Line] = []

    def newest_first() -> Any:
        for line in reversed(lines):
            pulled.append(line)
            yield line

    found = reconstruct(newest_first(), rollout.session_meta(lines[0]))

    assert PreviousSettings("m", "h", {"mode": "plan"}) == found.previous
    assert ["event_msg", "compacted", "event_msg"] == [line.type for line in pulled]


def test_settings_are_looked_for_only_a_little_before_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    script = thread(said("1"), lambda s: s.item(assistant("x" * 5000)), compaction("S", window_number=1))
    assert rebuild(script).previous is not None
    monkeypatch.setattr("commonplace.context.reconstruct.SLACK_BYTES", 5000)

    found = rebuild(script)

    assert (["S"], None) == (ids_of(found), found.previous)


def test_no_more_than_a_bound_of_lines_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    script = thread(*(bare(str(number)) for number in range(9)))
    lines = lines_of(script)
    monkeypatch.setattr("commonplace.context.reconstruct.LIVE_BYTES", sum(line.size for line in lines[-4:]) - 1)

    found = rebuild(script)

    assert ["u7", "a7", "u8", "a8"] == ids_of(found)
    assert [Skipped(0, lines[-4].offset, "beyond_bound")] == found.skipped


# --- Items.


def test_older_mail_between_agents_becomes_an_item_and_a_turn() -> None:
    script = Script().item(user("1", "u1"))
    mail: Json = {
        "author": "/lead",
        "recipient": "/lead/a",
        "other_recipients": [],
        "content": "do it",
        "trigger_turn": True,
    }
    script.line("inter_agent_communication", {"id": "amsg_1", **mail})
    script.line("inter_agent_communication", {**mail, "content": "", "encrypted_content": "gAAA"})
    script.line("inter_agent_communication_metadata", {"trigger_turn": True})

    found = rebuild(script)

    ends = {"type": "agent_message", "author": "/lead", "recipient": "/lead/a"}
    assert [
        user("1", "u1"),
        {**ends, "content": [{"type": "input_text", "text": "do it"}], "id": "amsg_1"},
        {**ends, "content": [{"type": "encrypted_content", "encrypted_content": "gAAA"}]},
    ] == [json.loads(entry.raw) for entry in found.history.entries]
    assert 3 == found.turns


def test_the_limit_beside_an_output_is_honoured_in_a_replay() -> None:
    script = Script().item(function_call("c"))
    out = {"type": "function_call_output", "call_id": "c", "output": "x" * 400}
    script.line("response_item", out, metadata={"fallback_token_limit_override": 1})

    outputs = [json.loads(entry.raw).get("output") for entry in rebuild(script).history.entries]

    assert [None, "xx…99 tokens truncated…xx"] == outputs


# --- Damage.


DAMAGED: list[tuple[str, Any]] = [
    ("response_item", {"type": "message", "role": "user", "content": "a string"}),
    ("response_item", {"type": "message", "role": "user"}),
    ("response_item", {"no": "type"}),
    ("response_item", "text"),
    ("event_msg", {"type": "thread_rolled_back", "num_turns": "one"}),
    ("event_msg", {"type": "task_started", "turn_id": 5}),
    ("event_msg", {}),
    ("compacted", {"replacement_history": []}),
    ("compacted", {"message": "m", "replacement_history": [], "replacement_history_metadata": [{}]}),
    ("compacted", {"message": "m", "replacement_history_metadata": [{}]}),
    ("compacted", {"message": "m", "replacement_history": "all"}),
    ("turn_context", {"model": 5}),
]


@pytest.mark.parametrize(("line_type", "payload"), DAMAGED, ids=str)
def test_a_damaged_line_changes_nothing_and_is_reported(line_type: str, payload: Any) -> None:
    script = thread(said("1"))
    whole = rebuild(script)
    offset = len(script.data())
    script.line(line_type, payload)

    found = rebuild(script)

    assert ids_of(whole) == ids_of(found)
    assert (whole.previous, whole.reference, whole.window) == (found.previous, found.reference, found.window)
    assert [Skipped(offset, len(script.lines[-1]), "bad_item")] == found.skipped


@pytest.mark.parametrize(
    ("line_type", "payload"),
    [
        ("commonplace", {"kind": "retention"}),
        ("security_risk_score", {"scores": {"a": 1.0}}),
        ("token_usage_record", {}),
        ("of_the_future", [1]),
        ("event_msg", {"type": "of_the_future", "turn_id": 5}),
        ("event_msg", {"type": "token_count", "info": "odd"}),
        ("event_msg", {"type": "thread_rolled_back"}),
        ("session_meta", {"id": "another", "context_window": {"window_id": W2}}),
        ("response_item", {"type": "of_the_future"}),
    ],
    ids=str,
)
def test_lines_that_nobody_replays_change_nothing(line_type: str, payload: Any) -> None:
    script = thread(said("1"))
    whole = rebuild(script)

    found = rebuild(script.line(line_type, payload))

    assert ids_of(whole) == ids_of(found)
    assert (whole.previous, whole.window, whole.turns) == (found.previous, found.window, found.turns)
    assert [] == found.skipped


def test_a_damaged_item_inside_a_replacement_is_left_out_and_reported() -> None:
    script = thread(said("1"))
    offset = len(script.data())
    script.compacted([{"type": "message"}, user("kept", "k")])

    found = rebuild(script)

    assert ["k"] == ids_of(found)
    assert [Skipped(offset, len(script.lines[-1]), "bad_item")] == found.skipped


def test_damage_before_the_checkpoint_is_no_concern() -> None:
    script = Script().line("response_item", {"type": "message"}).compacted([user("kept", "k")])

    found = rebuild(script)

    assert ["k"] == ids_of(found)
    assert [] == found.skipped


# --- What the last turn ran with, and what the model was told.


def context(model: str, turn_id: str | None = None) -> Json:
    return {"cwd": "/repo", "model": model, **({"turn_id": turn_id} if turn_id else {})}


def started(turn_id: str | None = "t") -> Step:
    return lambda script: script.event("task_started", turn_id=turn_id)


def completed(turn_id: str | None = "t") -> Step:
    return lambda script: script.event("task_complete", turn_id=turn_id)


def aborted(turn_id: str | None) -> Step:
    return lambda script: script.event("turn_aborted", turn_id=turn_id, reason="interrupted")


def told(model: str, turn_id: str | None = "t") -> Step:
    return lambda script: script.line("turn_context", context(model, turn_id))


def heard(script: Script) -> None:
    script.item(user("words"))


def shown(script: Script) -> None:
    script.event("user_message", message="words")


def mailed(script: Script) -> None:
    script.line("inter_agent_communication", {"author": "a", "recipient": "b", "content": "c"})


def soft(script: Script) -> None:
    script.compacted([])


def old(script: Script) -> None:
    script.compacted(None)


@pytest.mark.parametrize(
    ("steps", "previous", "reference"),
    [
        ([], None, None),
        ([started(), told("m"), heard, completed()], "m", "m"),
        ([started(), told("m"), heard], "m", "m"),
        ([told("m"), heard], "m", "m"),
        ([started(), told("m"), shown, completed()], "m", "m"),
        ([started(), told("m"), mailed, completed()], "m", "m"),
        ([started(), told("m"), completed()], None, None),
        ([told("m")], None, None),
        ([started(), told("m"), heard, aborted("t")], "m", "m"),
        ([started(), told("m"), heard, aborted(None)], "m", "m"),
        ([started(), told("m", None), heard, completed()], "m", "m"),
        ([started(), told("m"), heard, completed(None)], "m", "m"),
        ([started(None), told("m"), heard, completed()], "m", "m"),
        # Within a turn the first settings are those it ran with, the last those the model was told.
        ([started(), told("m1"), heard, told("m2"), completed()], "m1", "m2"),
        # Settings of another turn do not count, even when their line stands inside this one.
        ([started(), told("m"), heard, told("x", "other"), completed()], "m", "m"),
        ([started(), heard, aborted("other"), told("m"), completed()], "m", "m"),
        ([started(), told("m"), heard, aborted("other")], None, None),
        ([started(), told("m"), heard, told("x", "other")], "x", "x"),
        # A turn in which nobody spoke leaves those of the one before.
        ([started(), told("m"), heard, completed(), started("n"), told("x", "n"), completed("n")], "m", "m"),
        # Compactions.
        ([started(), told("m"), heard, completed(), started("n"), soft, completed("n")], "m", None),
        ([started(), told("m"), heard, soft, completed()], "m", None),
        ([started(), told("m"), heard, soft], "m", None),
        ([started(), told("m"), heard, soft, told("m2"), completed()], "m", "m2"),
        ([started(), soft, told("m"), heard, completed()], "m", "m"),
        ([started(), told("m"), heard, completed(), started("n"), old, completed("n")], "m", None),
        (
            [started(), told("m"), heard, old, completed(), started("n"), told("n", "n"), heard, completed("n")],
            "n",
            None,
        ),
    ],
)
def test_settings_and_reference_come_from_the_last_user_turn(
    steps: list[Step], previous: str | None, reference: str | None
) -> None:
    found = rebuild(thread(*steps))

    assert previous == (found.previous.model if found.previous else None)
    assert reference == (found.reference.model if found.reference else None)


@pytest.mark.parametrize(
    ("steps", "model"),
    [
        ([said("1"), said("2")], "model-2"),
        ([said("1"), said("2"), rollback(1)], "model-1"),
        ([said("1"), started("x"), told("x", "x"), heard, rollback(1)], "model-1"),
        ([said("1"), said("2"), compaction("S"), rollback(1)], "model-1"),
        ([said("1"), said("2"), rollback(2)], None),
        ([said("1"), said("2"), rollback(1), said("3")], "model-3"),
    ],
)
def test_a_rollback_takes_the_settings_of_the_undone_turns_with_it(steps: list[Step], model: str | None) -> None:
    found = rebuild(thread(*steps))

    assert model == (found.previous.model if found.previous else None)
    assert model == (found.reference.model if found.reference else None)


def test_context_that_a_rollback_took_along_must_be_told_again() -> None:
    bundle: Json = {**CONTEXT, "content": [*CONTEXT["content"], {"type": "input_text", "text": "free words"}]}
    script = thread(said("1"), said("2", bundle), rollback(1))

    found = rebuild(script)

    assert ["u1", "a1"] == ids_of(found)
    assert found.reference is None
    assert found.previous is not None


@pytest.mark.parametrize(
    ("steps", "model"),
    [
        ([], "noted"),
        ([started(), told("m"), heard, completed()], "m"),
    ],
    ids=["at the checkpoint", "a turn since"],
)
def test_a_checkpoint_notes_the_settings_of_the_turn_before_it(steps: list[Step], model: str) -> None:
    noted = {"previous_turn_settings": {"model": "noted", "comp_hash": "h", "realtime_active": True}}
    script = thread(final_compaction(window_number=1, resume_metadata=noted), *steps)

    found = rebuild(script)

    assert found.previous is not None
    assert model == found.previous.model


# --- The state of the world.


def world(*, full: bool, **state: Any) -> Step:
    return lambda script: script.line("world_state", {"full": full, "state": state})


def damaged_world(script: Script) -> None:
    script.line("world_state", {"full": "yes"})


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], None),
        ([world(full=True, a=1)], {"a": 1}),
        ([world(full=False, a=1)], None),
        ([world(full=True, a=1, b={"c": 1, "d": 2}), world(full=False, a=None, b={"c": 3})], {"b": {"c": 3, "d": 2}}),
        ([world(full=True, a=1), world(full=False, b={"c": 1, "d": None})], {"a": 1, "b": {"c": 1}}),
        ([world(full=True, a=[1, 2]), world(full=False, a=[3])], {"a": [3]}),
        ([world(full=True, a={"b": 1}), world(full=False, a=2)], {"a": 2}),
        ([world(full=True, a=1), world(full=True, b=2)], {"b": 2}),
        ([world(full=True, a=1), soft], None),
        ([world(full=True, a=1), soft, world(full=False, b=2)], None),
        ([world(full=True, a=1), soft, world(full=True, b=2), world(full=False, c=3)], {"b": 2, "c": 3}),
        ([world(full=True, a=1), damaged_world], {"a": 1}),
    ],
)
def test_the_world_state_is_the_last_snapshot_with_its_patches(steps: list[Step], expected: Json | None) -> None:
    assert expected == rebuild(thread(*steps)).world_state


def test_a_rollback_takes_the_world_state_of_undone_turns_with_it() -> None:
    script = thread(started("a"), world(full=True, a=1), heard, completed("a"))
    for step in (started("b"), world(full=False, a=2), heard, completed("b"), rollback(1)):
        step(script)

    assert {"a": 1} == rebuild(script).world_state


# --- Windows.


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([FIRST], WindowIdentity(0, W0, None, W0)),
        (
            [FIRST, compaction("S", window_number=1, first_window_id=W0, previous_window_id=W0, window_id=W1)],
            WindowIdentity(1, W0, W0, W1),
        ),
        (
            [FIRST, compaction("S", window_number=1, window_id=W1), compaction("S", window_number=2, window_id=W2)],
            WindowIdentity(2, None, None, W2),
        ),
        ([FIRST, compaction("S", window_number=1, first_window_id="odd", window_id="odd")], WindowIdentity(1)),
        ([FIRST, compaction("S", window_id=7)], WindowIdentity(7)),
        ([FIRST, compaction("S"), compaction("S")], WindowIdentity(2)),
        ([FIRST, old_compaction("S"), said("2")], WindowIdentity(1)),
        (
            [FIRST, compaction("S", window_number=1, window_id=W1), said("2"), rollback(1)],
            WindowIdentity(1, None, None, W1),
        ),
        # The window goes with the compaction that a rollback undid …
        (
            [FIRST, compaction("S", window_number=1, window_id=W1), said("2"), rollback(2)],
            WindowIdentity(0, W0, None, W0),
        ),
        # … and stays with one that it could not undo.
        (
            [FIRST, final_compaction(window_number=5, window_id=W1, resume_metadata={}), said("2"), rollback(2)],
            WindowIdentity(5, None, None, W1),
        ),
        (
            [bare("1"), bare_compaction("S", window_number=5, window_id=W1), bare("2"), rollback(1)],
            WindowIdentity(5, None, None, W1),
        ),
    ],
)
def test_the_window_is_that_of_the_newest_compaction_that_stands(steps: list[Step], expected: WindowIdentity) -> None:
    assert expected == rebuild(thread(*steps, context_window={"window_id": W0})).window


def test_a_thread_without_noted_window_begins_with_number_zero() -> None:
    assert WindowIdentity(0) == rebuild(thread(FIRST)).window


# --- What a receipt tells.


@pytest.mark.parametrize(
    ("steps", "turns"),
    [
        ([], 0),
        ([said("1"), said("2")], 2),
        ([said("1"), said("2"), rollback(1)], 1),
        ([said("1"), rollback(5), said("2")], 1),
        ([said("1"), steered("2")], 2),
        ([said("1"), compaction("S")], 0),
        ([said("1"), compaction("S"), said("2")], 1),
        ([said("1"), turn_with_compaction("2", "S", before=False), said("3")], 2),
        ([bare("1"), bare("2")], 2),
        ([bare("1"), bare("2"), rollback(1)], 1),
        ([bare("1"), bare_compaction("S"), bare("2")], 1),
    ],
)
def test_turns_since_the_checkpoint_are_counted_after_rollbacks(steps: list[Step], turns: int) -> None:
    assert turns == rebuild(thread(*steps)).turns


def test_the_checkpoint_is_the_line_that_the_replay_started_from() -> None:
    script = thread(said("1"), bare_compaction("S1"), said("2"))
    offset = len(script.data())
    bare_compaction("S2")(script)
    said("3")(script)

    found = rebuild(script)

    assert found.checkpoint is not None
    assert offset == found.checkpoint.offset


@pytest.mark.parametrize(
    ("items", "last"),
    [([], None), ([user("x", "a"), assistant("y", "b")], "b"), ([user("x", "a"), assistant("y")], "a")],
)
def test_the_last_id_is_that_of_the_newest_item_that_has_one(items: list[Json], last: str | None) -> None:
    assert last == rebuild(Script().item(*items)).last_id


def test_a_rollback_in_a_file_without_turn_events_does_not_make_the_whole_file_be_read() -> None:
    script = Script()
    for _ in range(600):
        script.item(user("x" * 20_000), assistant("y"))
    script.compacted([user("kept", "k")]).item(user("later", "l")).rollback(1)
    pulled = 0

    def counted() -> Any:
        nonlocal pulled
        for line in reversed(lines_of(script)):
            pulled += line.size
            yield line

    found = reconstruct(counted(), rollout.session_meta(lines_of(script)[0]))

    assert ids_of(found) == ["k"]
    assert found.skipped == []
    assert pulled < 9 * 2**20 < len(script.data())
