"""The lines of `exec --json`, row by row, from events made by hand (spec §C.1)."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.agent import events
from commonplace.context.usage import TokenInfo, TokenUsage
from commonplace.surfaces.cli.exec_lines import EventLines

Json = dict[str, Any]
TURN = "turn_1"
NOTHING = {
    "input_tokens": 0,
    "cached_input_tokens": 0,
    "cache_write_input_tokens": 0,
    "output_tokens": 0,
    "reasoning_output_tokens": 0,
}


def told(*given: events.Event) -> list[Json]:
    lines = EventLines()
    return [line for event in given for line in lines.of(event)]


def started(item: events.Item) -> events.ItemStarted:
    return events.ItemStarted(turn_id=TURN, item=item)


def updated(item: events.Item) -> events.ItemUpdated:
    return events.ItemUpdated(turn_id=TURN, item=item)


def completed(item: events.Item) -> events.ItemCompleted:
    return events.ItemCompleted(turn_id=TURN, item=item)


def message(text: str, item_id: str = "msg_1") -> events.AgentMessage:
    return events.AgentMessage(id=item_id, text=text)


def plan(*steps: tuple[str, bool]) -> events.Plan:
    return events.Plan(
        id="plan", steps=tuple(events.Step(text, "completed" if done else "pending") for text, done in steps)
    )


RUN = events.CommandExecution(id="c1", command=("/bin/bash", "-c", "echo 'a b'"), cwd="/repo")
RAN = events.CommandExecution(
    id="c1", command=RUN.command, cwd="/repo", output="a b\n", exit_code=0, seconds=0.1, status="completed"
)
CHANGE = events.FileChange(
    id="c1",
    changes=(
        events.Change("/repo/a", "add"),
        events.Change("/repo/b", "update", to="/repo/c"),
        events.Change("/repo/d", "delete"),
    ),
)
CHANGED = [
    {"path": "/repo/a", "kind": "add"},
    {"path": "/repo/b", "kind": "update"},
    {"path": "/repo/d", "kind": "delete"},
]


def own(status: events.Status, output: str | None, arguments: str = '{"query": "x"}') -> events.ToolCall:
    return events.ToolCall(id="c1", tool="recall", arguments=arguments, output=output, status=status)


def mcp(status: events.Status, **fields: Any) -> events.McpToolCall:
    return events.McpToolCall(id="c1", server="docs", tool="find", arguments={"q": 1}, status=status, **fields)


OWN = {"type": "mcp_tool_call", "server": "commonplace", "tool": "recall", "arguments": {"query": "x"}}
MCP = {"type": "mcp_tool_call", "server": "docs", "tool": "find", "arguments": {"q": 1}}
RESULT = {"content": [{"type": "text", "text": "found"}], "structured_content": None}
COMMAND = {"type": "command_execution", "command": "/bin/bash -c 'echo '\"'\"'a b'\"'\"''"}

ROWS: dict[str, tuple[events.Item, Json]] = {
    "a message": (message("Hi."), {"type": "agent_message", "text": "Hi."}),
    "an empty message": (message(""), {"type": "agent_message", "text": ""}),
    "reasoning, its summaries on lines": (
        events.Reasoning(id="r", summary=["One.", "Two."], text=["raw"]),
        {"type": "reasoning", "text": "One.\nTwo."},
    ),
    "reasoning without summaries": (events.Reasoning(id="r", text=["raw"]), {"type": "reasoning", "text": "raw"}),
    "a command": (RAN, {**COMMAND, "aggregated_output": "a b\n", "exit_code": 0, "status": "completed"}),
    "a command that failed": (
        events.CommandExecution(id="c1", command=("false",), cwd="/", exit_code=1, status="failed"),
        {"type": "command_execution", "command": "false", "aggregated_output": "", "exit_code": 1, "status": "failed"},
    ),
    "a command that was declined": (
        events.CommandExecution(id="c1", command=RUN.command, cwd="/", status="declined"),
        {**COMMAND, "aggregated_output": "", "exit_code": None, "status": "declined"},
    ),
    "changes to files": (
        events.FileChange(id="c1", changes=CHANGE.changes, status="completed"),
        {"type": "file_change", "changes": CHANGED, "status": "completed"},
    ),
    "changes that were declined have failed": (
        events.FileChange(id="c1", changes=CHANGE.changes, status="declined"),
        {"type": "file_change", "changes": CHANGED, "status": "failed"},
    ),
    "a tool of a server": (
        mcp("completed", result={"content": [], "structured_content": {"a": 1}}),
        {**MCP, "result": {"content": [], "structured_content": {"a": 1}}, "error": None, "status": "completed"},
    ),
    "a tool of a server that failed": (
        mcp("failed", error="no"),
        {**MCP, "result": None, "error": {"message": "no"}, "status": "failed"},
    ),
    "a tool of our own": (own("completed", "found"), {**OWN, "result": RESULT, "error": None, "status": "completed"}),
    "a tool of our own that failed": (
        own("failed", "no"),
        {**OWN, "result": None, "error": {"message": "no"}, "status": "failed"},
    ),
    "a tool that was declined has failed": (
        own("declined", "not allowed"),
        {**OWN, "result": None, "error": {"message": "not allowed"}, "status": "failed"},
    ),
    "arguments that are no JSON": (
        own("failed", "no", "{half"),
        {**OWN, "arguments": "{half", "result": None, "error": {"message": "no"}, "status": "failed"},
    ),
    "a search": (
        events.WebSearch(id="w", query="x", action={"type": "search", "query": "x"}),
        {"type": "web_search", "query": "x", "action": {"type": "search", "query": "x"}},
    ),
    "a search of an unknown kind": (
        events.WebSearch(id="w", query=""),
        {"type": "web_search", "query": "", "action": {"type": "other"}},
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_an_item_is_told_as(row: str) -> None:
    item, fields = ROWS[row]

    assert told(completed(item)) == [{"type": "item.completed", "item": {"id": "item_0", **fields}}]


SILENT: dict[str, events.Event] = {
    "what the person said": completed(events.UserMessage(id="u", content=[{"type": "input_text", "text": "x"}])),
    "a compaction": completed(events.ContextCompaction(id="k", before=10, after=5)),
    "a picture that the model looks at": completed(events.ToolCall(id="v", tool="view_image", arguments="{}")),
    "blank reasoning": completed(events.Reasoning(id="r", summary=["  "])),
    "a message that begins": started(message("")),
    "reasoning that begins": started(events.Reasoning(id="r", summary=["x"])),
    "words as they come": events.TextDelta(turn_id=TURN, item_id="m", text="x"),
    "thoughts as they come": events.ReasoningDelta(turn_id=TURN, item_id="r", text="x"),
    "output as it comes": events.OutputDelta(turn_id=TURN, item_id="c1", text="x"),
    "a count of tokens": events.TokenCount(turn_id=TURN, info=None),
    "a question": events.Asked(turn_id=TURN, request_id="1", kind="run"),
}


@pytest.mark.parametrize("what", SILENT)
def test_nothing_is_told_of(what: str) -> None:
    assert told(SILENT[what]) == []


def test_the_first_line_names_the_thread() -> None:
    assert EventLines().opening("t") == {"type": "thread.started", "thread_id": "t"}


def test_a_turn_begins_with_a_line() -> None:
    assert told(events.TurnStarted(turn_id=TURN)) == [{"type": "turn.started"}]


def test_an_item_has_one_id_from_its_beginning_to_its_end() -> None:
    lines = told(started(RUN), started(CHANGE_2), completed(RAN), completed(message("Hi.")), completed(CHANGE_2))

    assert [(line["type"], line["item"]["id"]) for line in lines] == [
        ("item.started", "item_0"),
        ("item.started", "item_1"),
        ("item.completed", "item_0"),
        ("item.completed", "item_2"),
        ("item.completed", "item_1"),
    ]
    assert lines[0]["item"] == {
        "id": "item_0",
        **COMMAND,
        "aggregated_output": "",
        "exit_code": None,
        "status": "in_progress",
    }


CHANGE_2 = events.FileChange(id="c2", changes=CHANGE.changes)


def test_an_id_that_a_server_uses_again_is_another_item() -> None:
    lines = told(
        completed(message("One.", "")), completed(message("Two.", "")), started(RUN), completed(RAN), started(RUN)
    )

    assert [line["item"]["id"] for line in lines] == ["item_0", "item_1", "item_2", "item_2", "item_3"]


def test_silent_items_take_no_number() -> None:
    lines = told(completed(events.ContextCompaction(id="k")), completed(message("Hi.")))

    assert lines[0]["item"]["id"] == "item_0"


def test_a_plan_is_started_updated_and_completed_with_the_turn() -> None:
    lines = told(
        started(plan(("look", False), ("mend", False))),
        updated(plan(("look", True), ("mend", False))),
        completed(plan(("look", True), ("mend", False))),
        events.TurnCompleted(turn_id=TURN, message=None),
    )

    assert [line["type"] for line in lines] == ["item.started", "item.updated", "item.completed", "turn.completed"]
    assert {line["item"]["id"] for line in lines[:3]} == {"item_0"}
    assert [line["item"]["items"] for line in lines[:3]] == [
        [{"text": "look", "completed": False}, {"text": "mend", "completed": False}],
        [{"text": "look", "completed": True}, {"text": "mend", "completed": False}],
        [{"text": "look", "completed": True}, {"text": "mend", "completed": False}],
    ]


ENDS: dict[str, tuple[events.End, list[Json]]] = {
    "completed": (
        events.TurnCompleted(turn_id=TURN, message="x"),
        [{"type": "turn.completed", "usage": NOTHING}],
    ),
    "failed": (
        events.TurnFailed(turn_id=TURN, error=events.Problem("refused", "It failed.", "Try again.")),
        [
            {"type": "error", "message": "It failed. Try again."},
            {"type": "turn.failed", "error": {"message": "It failed. Try again."}},
        ],
    ),
    "interrupted": (events.TurnAborted(turn_id=TURN), []),
}


@pytest.mark.parametrize("how", ENDS)
def test_the_end_of_a_turn_that_was(how: str) -> None:
    end, lines = ENDS[how]

    assert told(end) == lines


@pytest.mark.parametrize("how", ENDS)
def test_what_was_begun_is_completed_before_the_end_of_a_turn_that_was(how: str) -> None:
    end, lines = ENDS[how]
    before = told(started(RUN))[0]["item"]

    assert told(started(RUN), end)[1:] == [{"type": "item.completed", "item": before}, *lines]


def test_the_usage_is_that_of_the_whole_thread() -> None:
    total = TokenUsage(
        input_tokens=5, cached_input_tokens=4, output_tokens=3, reasoning_output_tokens=2, total_tokens=8
    )
    info = TokenInfo(total_token_usage=total, last_token_usage=TokenUsage(input_tokens=1), model_context_window=None)

    (line,) = told(events.TurnCompleted(turn_id=TURN, message=None, info=info))

    assert line["usage"] == {
        "input_tokens": 5,
        "cached_input_tokens": 4,
        "cache_write_input_tokens": 0,
        "output_tokens": 3,
        "reasoning_output_tokens": 2,
    }


def test_warnings_are_items_each_with_a_number() -> None:
    lines = told(*[events.Warned(turn_id=TURN, message=text) for text in ("one", "one")], completed(message("Hi.")))

    assert lines[:2] == [
        {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "one"}},
        {"type": "item.completed", "item": {"id": "item_1", "type": "error", "message": "one"}},
    ]
    assert lines[2]["item"]["id"] == "item_2"


def test_a_request_that_is_sent_again_is_an_error_that_ends_nothing() -> None:
    (line,) = told(events.Retrying(turn_id=TURN, attempt=1, limit=5, reason="the stream broke"))

    assert line == {"type": "error", "message": "Reconnecting... 1/5 (the stream broke)"}


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        ("spawn_agent", "spawn_agent"),
        ("send_input", "send_input"),
        ("resume_agent", "wait"),
        ("wait", "wait"),
        ("close_agent", "close_agent"),
    ],
)
def test_a_call_about_agents_is_told_with_their_statuses(tool: events.AgentTool, shown: str) -> None:
    item = events.AgentCall(
        id="c1",
        tool=tool,
        sender="p",
        receivers=(("a", "Ada"), ("b", None)),
        prompt="Count.",
        states={"a": {"completed": "7."}, "b": "running"},
        status="completed",
    )
    begun = events.AgentCall(id="c1", tool=tool, sender="p", prompt="Count.")
    first, last = told(started(begun), completed(item))

    fields = {"id": "item_0", "type": "collab_tool_call", "tool": shown, "sender_thread_id": "p", "prompt": "Count."}
    assert first["item"] == {**fields, "receiver_thread_ids": [], "agents_states": {}, "status": "in_progress"}
    assert last["item"] == {
        **fields,
        "receiver_thread_ids": ["a", "b"],
        "agents_states": {
            "a": {"status": "completed", "message": "7."},
            "b": {"status": "running", "message": None},
        },
        "status": "completed",
    }


def test_a_command_that_goes_on_is_told_when_it_ends_and_not_with_its_turn() -> None:
    begun = events.CommandExecution(id="c1", command=("sleep", "9"), cwd="/")
    over = events.TurnCompleted(turn_id=TURN, message=None)
    ended = events.CommandExecution(
        id="c1", command=("sleep", "9"), cwd="/", process=1, exit_code=0, status="completed"
    )

    assert [line["type"] for line in told(started(begun), updated(begun), over)] == ["item.started", "turn.completed"]
    lines = told(started(begun), updated(begun), completed(ended), over)
    assert [(line["type"], line.get("item", {}).get("id")) for line in lines] == [
        ("item.started", "item_0"),
        ("item.completed", "item_0"),
        ("turn.completed", None),
    ]
