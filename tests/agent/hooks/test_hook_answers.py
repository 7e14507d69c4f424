"""What hooks' answers mean, row by row; how they are configured."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from commonplace.agent.hooks import config
from commonplace.agent.hooks.config import HookAnswer, HookCommand, Moment, answer_of, configured
from commonplace.errors import BadSetting


def _said(**fields: Any) -> str:
    return msgspec.json.encode(fields).decode()


ROWS: list[tuple[str, Moment, int, str, str, HookAnswer]] = [
    ("nothing said, go on", "pre_tool_use", 0, "", "", HookAnswer()),
    ("exit code 2 refuses", "pre_tool_use", 2, "", "not here\n", HookAnswer(refused="not here")),
    ("exit code 2 without a word", "stop", 2, "ignored", "", HookAnswer(refused="a hook refused it")),
    ("text at the start is context", "session_start", 0, "It is Monday.\n", "", HookAnswer(context=("It is Monday.",))),
    ("text with a prompt is context", "user_prompt_submit", 0, "ticket 7", "", HookAnswer(context=("ticket 7",))),
    ("text elsewhere is nothing", "post_tool_use", 0, "formatted 3 files", "", HookAnswer()),
    ("block", "user_prompt_submit", 0, _said(decision="block", reason="no"), "", HookAnswer(refused="no")),
    ("block without a reason", "stop", 0, _said(decision="block"), "", HookAnswer(refused="a hook refused it")),
    ("approve is nothing", "pre_tool_use", 0, _said(decision="approve"), "", HookAnswer()),
    ("stop", "stop", 0, '{"continue": false, "stopReason": "enough"}', "", HookAnswer(stop="enough")),
    ("stop, with a reason", "stop", 0, '{"continue": false, "reason": "late"}', "", HookAnswer(stop="late")),
    (
        "deny",
        "pre_tool_use",
        0,
        _said(hookSpecificOutput={"permissionDecision": "deny", "permissionDecisionReason": "prod"}),
        "",
        HookAnswer(refused="prod"),
    ),
    ("ask", "pre_tool_use", 0, _said(hookSpecificOutput={"permissionDecision": "ask"}), "", HookAnswer(ask=True)),
    ("allow", "pre_tool_use", 0, _said(hookSpecificOutput={"permissionDecision": "allow"}), "", HookAnswer()),
    (
        "context",
        "post_tool_use",
        0,
        _said(hookSpecificOutput={"additionalContext": "c"}),
        "",
        HookAnswer(context=("c",)),
    ),
    ("context on top", "session_start", 0, _said(additionalContext="c"), "", HookAnswer(context=("c",))),
    ("a message for the person", "stop", 0, _said(systemMessage="hello"), "", HookAnswer(warnings=("hello",))),
]


@pytest.mark.parametrize(
    ("moment", "code", "out", "err", "wanted"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_what_a_hook_says_means_one_thing(moment: Moment, code: int, out: str, err: str, wanted: HookAnswer) -> None:
    assert answer_of(moment, code, out, err) == wanted


@pytest.mark.parametrize("out", ["{", '{"continue": "perhaps"}', '{"decision": 7}', "{" * 5000])
def test_an_answer_that_cannot_be_read_changes_nothing_and_is_told(out: str) -> None:
    answer = answer_of("pre_tool_use", 0, out, "")
    assert answer.refused is None
    assert answer.stop is None
    assert "cannot be read" in answer.errors[0]


def test_a_hook_that_fails_changes_nothing_and_is_told() -> None:
    answer = answer_of("pre_tool_use", 1, "", "boom")
    assert answer.refused is None
    assert answer.errors == ("A pre_tool_use hook failed with exit code 1: boom",)


def test_several_answers_add_up_and_the_first_refusal_counts() -> None:
    one = HookAnswer(context=("a",))
    two = HookAnswer(refused="first", context=("b",))
    three = HookAnswer(refused="second", stop="s", ask=True)
    assert one + two + three == HookAnswer("first", True, ("a", "b"), "s")


def test_long_context_is_cut_in_the_middle() -> None:
    text = "x" * (config.CONTEXT_CHARACTERS + 10)
    (context,) = answer_of("session_start", 0, text, "").context
    assert "10 characters left out" in context
    assert len(context) < len(text) + 60


@pytest.mark.parametrize(
    ("matcher", "subject", "heard"),
    [("", "shell", True), ("*", "x", True), ("shell|apply_patch", "shell", True), ("she", "shell", False)],
)
def test_a_matcher_matches_whole_names(matcher: str, subject: str, heard: bool) -> None:
    assert HookCommand("true", matcher).matches(subject) is heard


def test_hooks_are_configured_by_moment() -> None:
    found = configured({"stop": [{"command": "a"}, {"command": ["b", "c"], "timeout": 5}]})
    assert found == {"stop": (HookCommand("a"), HookCommand(("b", "c"), timeout=5))}
    assert configured(None) == {}


@pytest.mark.parametrize(
    "table",
    [
        {"before_everything": [{"command": "a"}]},
        {"stop": [{"command": ""}]},
        {"stop": [{"command": "a", "timeout": 0}]},
        {"stop": [{"command": "a", "timeout": 100_000}]},
        {"stop": [{"command": "a", "matcher": "("}]},
        {"stop": [{"command": "a", "unknown": 1}]},
        {"stop": {"command": "a"}},
        "nonsense",
    ],
)
def test_what_cannot_be_a_hook_is_refused_with_a_hint(table: Any) -> None:
    with pytest.raises(BadSetting) as refused:
        configured(table)
    assert refused.value.hint
