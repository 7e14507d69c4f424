"""Trajectories of SWE-agent and mini-swe-agent, in every form that they have had."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.importers import swe_agent
from commonplace.importers.converter import TORN, ConvertedRecord, SessionHead, thread_id_for
from commonplace.protocol.items import PASSTHROUGH
from commonplace.protocol.rollout import Skipped

Json = dict[str, Any]
Found = SessionHead | ConvertedRecord | Skipped

WRITTEN = 1794733200.5
"""2026-11-15T09:00:00.500Z"""
SYSTEM = {"role": "system", "content": "You are an agent.", "agent": "main", "message_type": "system_prompt"}
DEMO = {"role": "user", "content": "another task", "agent": "main", "is_demo": True, "message_type": "demonstration"}
TASK = {
    "role": "user",
    "content": [{"type": "text", "text": "Fix the issue."}],
    "agent": "main",
    "message_type": "observation",
}


def step(thought: str = "I look.", action: str = "ls -F\n", observation: str = "a.py", **more: Any) -> Json:
    found = {"thought": thought, "action": action, "observation": observation, "response": f"{thought}\n{action}"}
    return {**found, "state": {"working_dir": "/testbed", "open_file": "n/a"}, "execution_time": 1.5, **more}


def run(*steps: Json, history: list[Json] | None = None, **more: Any) -> Json:
    return {
        "trajectory": list(steps),
        "history": [SYSTEM, DEMO, TASK] if history is None else history,
        "info": {},
        **more,
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "django__django-1.traj"


def converted(file: Path, document: Any) -> list[Found]:
    file.write_text(json.dumps(document, indent=2))
    os.utime(file, (WRITTEN, WRITTEN))
    return list(swe_agent.convert(file))


def told(found: list[Found]) -> list[str]:
    return [
        word
        for item in found
        if isinstance(item, ConvertedRecord)
        for payload in item.payloads
        if (word := _told(payload.type, payload.value))
    ]


def _told(kind: str, value: Json) -> str:
    if kind == "turn_context":
        return f"model {value['model']} in {value['cwd']}"
    if value["type"] == "message":
        kinds = value.get(PASSTHROUGH, {}).get("content_item_kinds", ["assistant"])
        return " | ".join(f"{kind}: {part['text']}" for kind, part in zip(kinds, value["content"], strict=True))
    if value["type"] == "function_call":
        return f"calls {value['call_id']} {value['name']} {value['arguments']}"
    return f"gives {value['call_id']} {value['output']}"


def worked(found: list[Found]) -> list[bool | None]:
    payloads = [payload for item in found if isinstance(item, ConvertedRecord) for payload in item.payloads]
    return [
        payload.origin.ok for payload in payloads if payload.origin and payload.value["type"] == "function_call_output"
    ]


def test_each_step_is_a_thought_an_action_and_an_observation(file: Path) -> None:
    config = json.dumps({"agent": {"model": {"name": "gpt-4o"}}, "env": {}})
    found = converted(
        file,
        run(
            step(),
            step("Done.", "submit", "", execution_time=0.5),
            info={"swe_agent_version": "1.1.0", "exit_status": "submitted"},
            replay_config=config,
            environment="swe_main",
        ),
    )

    assert [
        "model gpt-4o in /testbed",
        "user.text: Fix the issue.",
        "assistant: I look.",
        'calls call_1 bash {"command":"ls -F\\n"}',
        "gives call_1 a.py",
        "assistant: Done.",
        'calls call_2 bash {"command":"submit"}',
        "gives call_2 ",
    ] == told(found)
    head = found[0]
    assert isinstance(head, SessionHead)
    assert ("django__django-1", thread_id_for("swe-agent", "django__django-1"), "/testbed", "1.1.0", None) == (
        head.session_id, head.thread_id, head.cwd, head.version, head.parent,
    )  # fmt: skip
    assert "2026-11-15T08:59:58.500Z" == head.started
    times = [(piece.record, piece.time[11:]) for piece in found if isinstance(piece, ConvertedRecord)]
    assert [("0", "08:59:58.500Z"), ("1", "09:00:00.000Z"), ("2", "09:00:00.500Z")] == times


@pytest.mark.parametrize(
    ("history", "task"),
    [
        ([SYSTEM, DEMO, TASK], "Fix the issue."),
        (
            [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "Old form."},
                {"role": "user", "content": "seen"},
            ],
            "Old form.",
        ),
        ([{"role": "user", "content": "demo", "is_demo": True}, {"role": "user", "content": "Mine."}], "Mine."),
        (
            [
                {"role": "user", "content": "demo", "message_type": "demonstration"},
                {"role": "user", "content": "Mine."},
            ],
            "Mine.",
        ),
        (
            [
                {"role": "assistant", "content": "a"},
                {"role": "tool", "content": "b"},
                {"role": "user", "content": "Late."},
            ],
            "Late.",
        ),
        ([SYSTEM, DEMO], None),
        ([], None),
        ([3, None, {"role": 5}], None),
    ],
)
def test_only_the_first_user_item_that_is_no_demonstration_is_a_persons(
    file: Path, history: list[Json], task: str | None
) -> None:
    found = told(converted(file, run(step(), history=history)))

    assert ([f"user.text: {task}"] if task else []) == [word for word in found if word.startswith("user.")]
    assert not any("demo" in word or "another task" in word or "seen" in word for word in found)


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        (step(thought="", action="ls"), ['calls call_1 bash {"command":"ls"}', "gives call_1 a.py"]),
        (step(action="", observation="Exited"), ["assistant: I look.", "imported.injected: Exited"]),
        (step(thought="", action="", observation="", response="only this"), ["assistant: only this"]),
        ({"thought": "t", "action": "a"}, ["assistant: t", 'calls call_1 bash {"command":"a"}']),
        ({"thought": 5, "action": None, "observation": []}, []),
        ({}, []),
    ],
)
def test_a_step_that_lacks_something_gives_the_rest(file: Path, steps: Json, shown: list[str]) -> None:
    assert ["user.text: Fix the issue.", *shown] == told(converted(file, run(steps)))


def test_how_a_tool_was_called_is_taken_from_the_history(file: Path) -> None:
    def acted(action: str, call_id: str, name: str, arguments: str) -> Json:
        calls = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]
        return {"role": "assistant", "content": "", "thought": "", "action": action, "tool_calls": calls}

    history = [
        SYSTEM,
        TASK,
        acted("bad", "c0", "bash", '{"command":"bad"}'),
        acted("view a", "c1", "str_replace_editor", '{"command": "view", "path": "a"}'),
        {"role": "tool", "content": "seen", "tool_call_ids": ["c1"]},
        acted("ls", "c2", "bash", '{"command": "ls"}'),
    ]

    found = told(converted(file, run(step("", "view a"), step("", "pwd"), step("", "ls"), history=history)))

    assert [
        'calls c1 str_replace_editor {"command": "view", "path": "a"}',
        'calls call_2 bash {"command":"pwd"}',
        'calls c2 bash {"command": "ls"}',
    ] == [word for word in found if word.startswith("calls")]


@pytest.mark.parametrize(
    ("state", "cwd"),
    [
        ({"working_dir": "/a"}, "/a"),
        ('{"open_file": "n/a", "working_dir": "/b"}\n', "/b"),
        ("not json", ""),
        (None, ""),
        ([], ""),
        ({"working_dir": 5}, "5"),
    ],
)
def test_the_working_directory_is_the_state_even_where_that_is_json_in_a_string(
    file: Path, state: Any, cwd: str
) -> None:
    head = converted(file, run(step(state=state)))[0]

    assert isinstance(head, SessionHead)
    assert cwd == head.cwd


@pytest.mark.parametrize("took", [None, "soon", -5, 1e300, {}, []])
def test_a_step_without_a_sensible_duration_took_no_time_or_a_day(file: Path, took: Any) -> None:
    head = converted(file, run(step(execution_time=took)))[0]

    assert isinstance(head, SessionHead)
    assert head.started in ("2026-11-15T09:00:00.500Z", "2026-11-14T09:00:00.500Z")


def test_each_attempt_is_a_thread_and_the_best_is_not_taken_twice(file: Path) -> None:
    one, two = run(step("first try")), run(step("second try"))

    found = converted(file, {"attempts": [one, two], **two})

    heads = [item for item in found if isinstance(item, SessionHead)]
    assert [("django__django-1#0", None), ("django__django-1#1", None)] == [
        (head.session_id, head.parent) for head in heads
    ]
    assert 1 == sum(word == "assistant: second try" for word in told(found))


def test_a_file_of_one_attempt_is_the_same_thread_as_in_the_whole(tmp_path: Path) -> None:
    (tmp_path / "attempt_1").mkdir()

    head = converted(tmp_path / "attempt_1" / "x.traj", run(step()))[0]

    assert isinstance(head, SessionHead)
    assert "x#1" == head.session_id


def test_what_every_prompt_repeats_is_never_built(file: Path) -> None:
    query = [{"role": "user", "content": "x" * 2000} for _ in range(40)]
    file.write_text(json.dumps(run(*[step(query=query, messages=query) for _ in range(300)])))
    size = file.stat().st_size

    tracemalloc.start()
    count = sum(isinstance(item, ConvertedRecord) for item in swe_agent.convert(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert 301 == count
    assert size > 40 * 2**20
    assert peak < size + 4 * 2**20


def test_a_document_above_the_limit_is_refused(file: Path) -> None:
    with file.open("wb") as out:
        out.truncate(65 * 2**20)

    assert [Skipped(0, 65 * 2**20, "too_long")] == list(swe_agent.convert(file))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", TORN),
        (b'{"trajectory": [', TORN),
        (b"nonsense", "not_json"),
        (b"[]", "not_a_record"),
        (b"{}", "unknown_type"),
        (b"\xff", "invalid_utf8"),
    ],
)
def test_a_document_that_cannot_be_used_is_reported(file: Path, data: bytes, reason: str) -> None:
    file.write_bytes(data)

    assert [Skipped(0, len(data), reason)] == list(swe_agent.convert(file))


def test_a_document_cut_at_every_byte_gives_nothing_until_it_is_whole(file: Path) -> None:
    whole = converted(file, run(step(thought="é😀")))
    data = file.read_bytes()

    for cut in range(len(data)):
        file.write_bytes(data[:cut])
        (found,) = swe_agent.convert(file)
        assert isinstance(found, Skipped)
    file.write_bytes(data)
    os.utime(file, (WRITTEN, WRITTEN))
    assert whole == list(swe_agent.convert(file))


def mini(*messages: Json, **more: Any) -> Json:
    config = {
        "environment": {"cwd": "/testbed"},
        "model": {"model_name": "deepseek"},
        "agent": {"system_template": "x" * 70_000},
    }
    info = {"config": config, "mini_version": "2.3.0", "exit_status": "Submitted", "submission": "diff"}
    return {"info": info, "messages": list(messages), "trajectory_format": "mini-swe-agent-1.1", **more}


ASKED = ({"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Fix it."})


MANNERS: list[tuple[list[Json], list[str], list[bool]]] = [
    (
        [
            {"role": "assistant", "content": "THOUGHT: look\n```bash\nls -la\n```"},
            {"role": "user", "content": "<returncode>0</returncode>\na.py"},
        ],
        [
            "assistant: THOUGHT: look\n```bash\nls -la\n```",
            'calls call_2-0 bash {"command":"ls -la"}',
            "gives call_2-0 <returncode>0</returncode>\na.py",
        ],
        [True],
    ),
    (
        [
            {"role": "assistant", "content": "no command at all"},
            {
                "role": "user",
                "content": "Please always provide EXACTLY ONE action.",
                "extra": {"interrupt_type": "FormatError"},
            },
        ],
        ["assistant: no command at all", "imported.injected: Please always provide EXACTLY ONE action."],
        [],
    ),
    (
        [
            {"role": "assistant", "content": "x", "extra": {"actions": [{"command": "false"}], "timestamp": 10.0}},
            {"role": "user", "content": "out", "extra": {"returncode": 1, "raw_output": "out", "timestamp": 14.0}},
        ],
        ["assistant: x", 'calls call_2-0 bash {"command":"false"}', "gives call_2-0 out"],
        [False],
    ),
    (
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "a"}'}},
                    {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": '{"command": "b"}'}},
                ],
                "extra": {"actions": [{"command": "a", "tool_call_id": "c1"}]},
            },
            {"role": "tool", "tool_call_id": "c2", "content": "B", "extra": {"returncode": 0}},
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": [{"type": "text", "text": "A"}],
                "extra": {"returncode": -1},
            },
        ],
        ['calls c1 bash {"command": "a"}', 'calls c2 bash {"command": "b"}', "gives c2 B", "gives c1 A"],
        [True, False],
    ),
    (
        [
            {
                "object": "response",
                "output": [
                    {"type": "reasoning", "summary": []},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hm"}]},
                    {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "a"}'},
                ],
            },
            {"type": "function_call_output", "call_id": "c1", "output": "A", "extra": {"returncode": 0}},
        ],
        ["assistant: hm", 'calls c1 bash {"command": "a"}', "gives c1 A"],
        [True],
    ),
    (
        [
            {
                "role": "assistant",
                "content": "x",
                "extra": {"actions": [{"command": "submit", "tool_call_id": "c"}]},
            },
            {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}},
        ],
        ["assistant: x", 'calls c bash {"command":"submit"}', "gives c diff"],
        [True],
    ),
    ([{"role": "exit", "content": "", "extra": {"exit_status": "LimitsExceeded"}}], [], []),
    (
        [
            {
                "role": "user",
                "content": "Interrupted by user: use tabs: always",
                "extra": {"interrupt_type": "UserInterruption"},
            }
        ],
        ["imported.interrupt: Interrupted by user:  | user.text: use tabs: always"],
        [],
    ),
    (
        [
            {
                "role": "user",
                "content": "Interrupted by user: Temporary interruption caught.",
                "extra": {"interrupt_type": "UserInterruption"},
            }
        ],
        ["imported.interrupt: Interrupted by user: Temporary interruption caught."],
        [],
    ),
    (
        [
            {
                "role": "user",
                "content": "The user added a new task: more",
                "extra": {"interrupt_type": "UserNewTask"},
            }
        ],
        ["imported.interrupt: The user added a new task:  | user.text: more"],
        [],
    ),
]


@pytest.mark.parametrize(("messages", "shown", "ok"), MANNERS)
def test_every_manner_of_mini_swe_agent_is_understood(
    tmp_path: Path, messages: list[Json], shown: list[str], ok: list[bool]
) -> None:
    found = converted(tmp_path / "x.traj.json", mini(*ASKED, *messages))

    assert ["model deepseek in /testbed", "user.text: Fix it.", *shown] == told(found)
    assert ok == worked(found)
    head = found[0]
    assert isinstance(head, SessionHead)
    assert ("x", "/testbed", "2.3.0", "mini-swe-agent") == (head.session_id, head.cwd, head.version, head.entrypoint)


def test_the_times_that_mini_swe_agent_notes_are_used(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "x", "extra": {"timestamp": 1794700000.25}}

    found = converted(tmp_path / "x.traj.json", mini(*ASKED, message))

    assert ["2026-11-14T23:46:40.250Z"] * 2 == [piece.time for piece in found if isinstance(piece, ConvertedRecord)]


def test_a_message_of_no_known_kind_is_reported(tmp_path: Path) -> None:
    found = converted(tmp_path / "x.traj.json", mini(*ASKED, {"role": "oracle", "content": "x"}))

    assert ["unknown_type"] == [item.reason for item in found if isinstance(item, Skipped)]


@given(data=st.data())
def test_no_damage_to_any_value_is_an_error(tmp_path: Path, data: st.DataObject) -> None:
    names = st.sampled_from(["text", "function", "id"])
    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=5,
    )

    def damaged(value: Json) -> Json:
        return {key: data.draw(junk) if data.draw(st.booleans()) else held for key, held in value.items()}

    history = [damaged(dict(item)) for item in (SYSTEM, DEMO, TASK)]
    calls = [{"id": "c", "function": damaged({"name": "bash", "arguments": "{}"})}]
    spoken = damaged(
        {"role": "assistant", "content": "x", "tool_calls": calls, "extra": damaged({"actions": [], "timestamp": 1})}
    )
    answered = damaged({"role": "tool", "tool_call_id": "c", "content": "y", "extra": damaged({"returncode": 0})})
    for document in (
        damaged(run(damaged(step()), history=history, replay_config="{}")),
        {"attempts": [damaged(run(step())), 5]},
        damaged(mini(*ASKED, spoken, answered)),
    ):
        for item in converted(tmp_path / "any.traj", document):
            assert isinstance(item, SessionHead | ConvertedRecord | Skipped)


def test_trajectories_are_found_below_a_folder_each_attempt_once(tmp_path: Path) -> None:
    for name in (
        "u/exp/i/i.traj",
        "u/exp/i/i.config.yaml",
        "u/exp/r/r.traj",
        "u/exp/r/attempt_0/r.traj",
        "u/exp/s/attempt_0/s.traj",
        "m/m.traj.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")

    found = [str(path.relative_to(tmp_path)) for path in swe_agent.find(tmp_path)]

    assert ["m/m.traj.json", "u/exp/i/i.traj", "u/exp/r/r.traj", "u/exp/s/attempt_0/s.traj"] == found
    assert [tmp_path / "m/m.traj.json"] == list(swe_agent.find(tmp_path / "m/m.traj.json"))
