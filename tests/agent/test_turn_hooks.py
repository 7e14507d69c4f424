"""Hooks in a session: what they are told at each moment, and what their answers do there."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from consent_doubles import Gate, Listener, answering, warnings
from scripted_session import Doing, Model, Stage, stage, used
from session_invariants import Json

import commonplace
from commonplace.agent import events, user_input
from commonplace.agent.hooks.config import HookCommand
from commonplace.agent.hooks.session_hooks import MOST_REFUSALS
from commonplace.agent.tools.registry import ToolContext, ToolInvocation
from commonplace.models.base import Request
from commonplace.models.scripted import Answer, answer, call, custom, say

LONG = "word " * 6_000
FULL = used(95_000)
STOPS = {"continue": False, "stopReason": "enough"}


@pytest.fixture
def hook(tmp_path: Path) -> Listener:
    return Listener(tmp_path / "told.jsonl")


def context(text: str) -> Json:
    return {"hookSpecificOutput": {"additionalContext": text}}


def roles(here: Stage, at: int = -1) -> list[tuple[str, str]]:
    """The kind and the text of each item of a request, without what the model is told of its surroundings."""
    found: list[tuple[str, str]] = []
    for item in here.items(at):
        texts = [part.get("text", "") for part in item.get("content") or ()]
        said = [text for text in texts if not text.startswith(("<perm", "<env", "<token", "# AGENTS"))]
        if item["type"] != "message":
            found.append((item["type"], item["call_id"]))
        elif said:
            found.append((item["role"], said[0]))
    return found


def recorded(here: Stage) -> str:
    return here.path.read_text("utf-8")


# --- session_start


async def test_a_session_that_begins_goes_on_or_was_compacted_says_so_once_each(tmp_path: Path, hook: Listener) -> None:
    steps = [
        answer(say(LONG * 5)),
        answer(say("Again.")),
        answer(say("Yes.")),
        answer(say("A summary.")),
        answer(say(".")),
    ]
    async with stage(tmp_path, *steps, hooks={"session_start": (hook.says("Be kind."),)}) as here:
        await here.run("One.")
        assert ["startup"] == hook.field("source")
        assert [("developer", "Be kind."), ("user", "One.")] == roles(here)
        await here.run("Two.")
        await here.resume()
        await here.run("Three.")
        assert ["startup", "resume"] == hook.field("source")
        assert [("developer", "Be kind."), ("user", "Three.")] == roles(here)[-2:]
        await here.compact()
        await here.run("Four.")

        assert ["startup", "resume", "compact"] == hook.field("source")
        assert [("developer", "Be kind."), ("user", "Four.")] == roles(here)[-2:]


async def test_a_resumed_thread_that_is_compacted_first_says_both(tmp_path: Path, hook: Listener) -> None:
    steps = [answer(say(LONG), usage=FULL), answer(say("A summary.")), answer(say("Yes."))]
    async with stage(tmp_path, *steps, hooks={"session_start": (hook.says(matcher="resume|compact"),)}) as here:
        await here.run("One.")
        await here.resume()
        await here.run("Two.")

        assert ["resume", "compact"] == hook.field("source")


async def test_a_compaction_in_the_middle_of_a_turn_is_told_before_the_next_request(
    tmp_path: Path, hook: Listener
) -> None:
    first = answer(say(LONG), call("shell", {"command": "echo 1"}, "c1"), usage=FULL)
    hooks = {"session_start": (hook.says("Remember.", matcher="compact"),)}
    async with stage(tmp_path, first, answer(say("A summary.")), answer(say("Done.")), hooks=hooks) as here:
        await here.run("Work.")

        assert ["compact"] == hook.field("source")
        assert ("developer", "Remember.") == roles(here)[-1]


async def test_a_start_that_is_stopped_ends_the_turn_without_a_word(tmp_path: Path, hook: Listener) -> None:
    async with stage(tmp_path, answer(say("Now.")), hooks={"session_start": (hook.says(STOPS),)}) as here:
        end = await here.run("One.")

        assert isinstance(end, events.TurnCompleted)
        assert (None, []) == (end.message, warnings(here))
        assert [] == here.requests
        assert "One." not in recorded(here)
        await here.run("Two.")
        assert [("user", "Two.")] == roles(here)


# --- user_prompt_submit


async def test_what_a_hook_adds_to_a_prompt_comes_after_it_in_the_order_of_the_settings(
    tmp_path: Path, hook: Listener
) -> None:
    hooks = {"user_prompt_submit": (hook.says("First."), hook.says(context("Second.")))}
    async with stage(tmp_path, answer(say("Yes.")), hooks=hooks) as here:
        await here.run("Hello.")

        assert [("user", "Hello."), ("developer", "First."), ("developer", "Second.")] == roles(here)
        assert ["Hello."] * 2 == hook.field("prompt")


@pytest.mark.parametrize(
    "refusal", [{"decision": "block", "reason": "not that"}, {"continue": False, "stopReason": "not that"}]
)
async def test_of_a_blocked_prompt_only_what_the_hook_added_is_recorded(
    tmp_path: Path, hook: Listener, refusal: Json
) -> None:
    hooks = {"user_prompt_submit": (hook.says({**refusal, **context("He tried.")}),)}
    async with stage(tmp_path, hooks=hooks) as here:
        end = await here.run("My key is 1234.")

        assert isinstance(end, events.TurnCompleted)
        assert [] == here.requests
        assert ["A hook refused the prompt: not that"] == warnings(here)
        assert "1234" not in recorded(here)
        assert "He tried." in recorded(here)
        assert [] == here.completed()


def blocks(word: str, hook: Listener) -> tuple[str, ...]:
    script = 'cat >> "$1"; grep -q "$2" "$1" || exit 0; echo no >&2; exit 2'
    return ("/bin/sh", "-c", script, "hook", str(hook.log), word)


async def test_a_blocked_word_in_between_does_not_end_the_turn_that_works(tmp_path: Path, hook: Listener) -> None:
    async def steer(_: ToolInvocation, __: ToolContext) -> str:
        here.session.steer(user_input.text("secret"))
        return "done"

    steps = [answer(call("steer", {}, "c1")), answer(say("So."))]
    hooks = {"user_prompt_submit": (HookCommand(blocks("secret", hook)),)}
    async with stage(tmp_path, *steps, tools=[Doing("steer", steer)], hooks=hooks) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert "So." == end.message
        assert "secret" not in recorded(here)


async def test_a_turn_that_was_over_does_not_go_on_for_a_blocked_word(tmp_path: Path, hook: Listener) -> None:
    def first(_: Request) -> Answer:
        here.session.steer(user_input.text("secret"))
        return answer(say("Done."))

    async with stage(tmp_path, first, hooks={"user_prompt_submit": (HookCommand(blocks("secret", hook)),)}) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert 1 == len(here.requests)


# --- pre_tool_use and post_tool_use


@pytest.mark.parametrize(
    "denial",
    [
        {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no echo"}},
        {"decision": "block", "reason": "no echo"},
        {"continue": False, "stopReason": "no echo"},
    ],
)
async def test_a_denied_call_is_answered_with_the_reason(tmp_path: Path, hook: Listener, denial: Json) -> None:
    ends = "continue" in denial
    steps = [answer(call("shell", {"command": "echo x > f"}, "c1")), *([] if ends else [answer(say("So."))])]
    hooks = {"pre_tool_use": (hook.says(denial, matcher="shell"),), "post_tool_use": (hook.says(),)}
    async with stage(tmp_path, *steps, hooks=hooks) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert not (here.cwd / "f").exists()
        assert "A hook refused this call: no echo" in recorded(here)
        assert ends or "A hook refused this call: no echo" == here.outputs()["c1"]
        assert ends == ("A hook ended the turn: no echo" in warnings(here))
        assert ["PreToolUse"] == hook.field("hook_event_name"), "what did not run has no answer to be told"
        (item,) = [item for item in here.completed() if isinstance(item, events.ToolCall)]
        assert "declined" == item.status
        assert "snapshot" not in recorded(here)


PATCH = "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch"
BY_OTHER_NAMES = [
    pytest.param(call(name, {key: "echo x > f"}, "c1"), "shell", id=f"{name} {key}")
    for name in ("shell", "exec_command", "shell_command", "local_shell", "container.exec", "bash")
    for key in ("command", "cmd")
]
PATCHES = [
    pytest.param(custom("apply_patch", PATCH, "c1"), "apply_patch", id="a patch"),
    pytest.param(call("apply_patch", {"input": PATCH}, "c1"), "apply_patch", id="a patch as a function"),
    pytest.param(call("shell", {"command": ["apply_patch", PATCH]}, "c1"), "apply_patch", id="words"),
    pytest.param(call("bash", {"command": ["applypatch", PATCH]}, "c1"), "apply_patch", id="other words"),
    pytest.param(
        call("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}, "c1"), "apply_patch", id="a script"
    ),
    pytest.param(
        call("shell", {"command": ["bash", "-lc", f"apply_patch <<EOF\n{PATCH}\nEOF\n"]}, "c1"),
        "apply_patch",
        id="a script of a shell",
    ),
]


@pytest.mark.parametrize(("wanted", "tool"), [*BY_OTHER_NAMES, *PATCHES])
async def test_a_hook_sees_a_call_by_the_name_of_the_tool_that_answers_it(
    tmp_path: Path, hook: Listener, wanted: Json, tool: str
) -> None:
    hooks = {"pre_tool_use": (hook.refuses("no", matcher=tool), hook.says(matcher="nothing|bash|exec_command"))}
    async with stage(tmp_path, answer(wanted), answer(say("So.")), hooks=hooks, sandbox="workspace-write") as here:
        await here.run("Work.")

        assert "A hook refused this call: no" == here.outputs()["c1"]
        assert [tool] == hook.field("tool_name")
        assert not (here.cwd / "f").exists()


@pytest.mark.parametrize("decision", ["approved", "denied"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("shell", {"command": "echo x > f"}),
        ("update_plan", {"plan": [{"step": "one", "status": "pending"}]}),
    ],
)
async def test_a_hook_can_have_a_person_asked_where_nobody_else_would(
    tmp_path: Path, hook: Listener, decision: str, tool: str, arguments: Json
) -> None:
    asks = {"hookSpecificOutput": {"permissionDecision": "ask"}}
    steps = [answer(call(tool, arguments, "c1")), answer(say("So."))]
    async with stage(tmp_path, *steps, approval="on-request", hooks={"pre_tool_use": (hook.says(asks),)}) as here:
        asked = answering(here, "approved" if decision == "approved" else "denied")
        await here.run("Work.")

        assert ["c1"] == [each.item_id for each in asked]
        assert ("did not allow it" in here.outputs()["c1"]) == (decision == "denied")
        assert (here.cwd / "f").exists() == (decision == "approved" and tool == "shell")


async def test_what_a_hook_wants_asked_is_refused_where_nobody_can_be(tmp_path: Path, hook: Listener) -> None:
    asks = {"hookSpecificOutput": {"permissionDecision": "ask"}}
    steps = [answer(call("shell", {"command": "echo x > f"}, "c1"), call("update_plan", {"plan": []}, "c2"))]
    async with stage(tmp_path, *steps, answer(say("So.")), hooks={"pre_tool_use": (hook.says(asks),)}) as here:
        await here.run("Work.")

        assert all("nobody can be asked" in text for text in here.outputs().values())
        assert not (here.cwd / "f").exists()


async def test_what_hooks_say_to_calls_comes_after_all_outputs_and_before_the_next_request(
    tmp_path: Path, hook: Listener
) -> None:
    calls = [call("shell", {"command": "echo 1"}, "c1"), call("shell", {"command": "echo 2"}, "c2")]
    objects = {"decision": "block", "reason": "too loud", **context("It was logged.")}
    hooks = {
        "pre_tool_use": (hook.says(context("Careful.")),),
        "post_tool_use": (Listener(tmp_path / "after").says(objects),),
    }
    async with stage(tmp_path, answer(*calls), answer(say("Done.")), hooks=hooks) as here:
        await here.run("Work.")

        said = ["Careful.", "It was logged.", "A hook objects to what was just done: too loud"]
        called = [("function_call", "c1"), ("function_call", "c2")]
        outputs = [("function_call_output", "c1"), ("function_call_output", "c2")]
        told = [("developer", text) for text in said * 2]
        assert [("user", "Work."), *called, *outputs, *told] == roles(here)


async def test_a_stop_after_a_tool_ends_the_turn_with_its_output_recorded(tmp_path: Path, hook: Listener) -> None:
    async with stage(
        tmp_path,
        answer(call("shell", {"command": "echo 1"}, "c1")),
        answer(say("Again.")),
        hooks={"post_tool_use": (hook.says(STOPS),)},
    ) as here:
        assert isinstance(await here.run("Work."), events.TurnCompleted)
        assert 1 == len(here.requests)
        assert ["A hook ended the turn: enough"] == warnings(here)
        await here.run("And?")
        assert "1" in here.outputs()["c1"]


# --- pre_compact and post_compact


async def test_a_hook_can_refuse_a_compaction_that_a_person_wants(tmp_path: Path, hook: Listener) -> None:
    async with stage(tmp_path, answer(say(LONG)), hooks={"pre_compact": (hook.refuses("not now"),)}) as here:
        await here.run("Talk.")
        end = await here.compact()

        assert isinstance(end, events.TurnFailed)
        assert "A hook refused to compact: not now" == end.error.message
        assert ["manual"] == hook.field("trigger")


async def test_a_hook_cannot_refuse_a_compaction_that_is_needed(tmp_path: Path, hook: Listener) -> None:
    steps = [answer(say(LONG), usage=FULL), answer(say("A summary.")), answer(say("Go on."))]
    hooks = {"pre_compact": (hook.refuses("not now"),), "post_compact": (hook.says(context("It was compacted.")),)}
    async with stage(tmp_path, *steps, hooks=hooks) as here:
        await here.run("Talk.")
        end = await here.run("What now?")

        assert isinstance(end, events.TurnCompleted)
        assert ["A hook minds the compaction, which is needed: not now"] == warnings(here)
        assert [("PreCompact", "auto"), ("PostCompact", "auto")] == [
            (each["hook_event_name"], each["trigger"]) for each in hook.told
        ]
        assert ("developer", "It was compacted.") in roles(here)


# --- stop


async def test_a_turn_that_may_not_end_goes_on_with_the_reason(tmp_path: Path, hook: Listener) -> None:
    script = (
        'grep -q . "$1" && { cat >> "$1"; echo >> "$1"; exit 0; }; cat >> "$1"; echo >> "$1"; echo "a < b" >&2; exit 2'
    )
    hook.log.touch()
    hooks = {"stop": (HookCommand(("/bin/sh", "-c", script, "hook", str(hook.log))),)}
    async with stage(tmp_path, answer(say("Done.")), answer(say("Really.")), hooks=hooks) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert "Really." == end.message
        role, text = roles(here)[-1]
        assert "user" == role
        assert text.startswith("<hook_prompt hook_run_id=")
        assert text.endswith(">a &lt; b</hook_prompt>")
        assert [False, True] == hook.field("stop_hook_active")
        assert ["Done.", "Really."] == hook.field("last_assistant_message")


async def test_hooks_keep_a_turn_from_ending_only_so_often(tmp_path: Path, hook: Listener) -> None:
    steps = [answer(say(str(number))) for number in range(MOST_REFUSALS + 1)]
    async with stage(tmp_path, *steps, hooks={"stop": (hook.refuses("more"),)}) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert MOST_REFUSALS + 1 == len(here.requests)
        assert [f"Hooks kept the turn from ending {MOST_REFUSALS} times; it ends now."] == warnings(here)


async def test_what_is_said_while_a_stop_hook_runs_is_answered_in_the_same_turn(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with (
        stage(tmp_path, answer(say("Done.")), answer(say("That too.")), hooks={"stop": (gate.hook,)}) as here,
        anyio.create_task_group() as tasks,
    ):

        async def speak() -> None:
            await gate.reached()
            here.session.steer(user_input.text("And that?"))
            await gate.opens()
            await gate.reached()
            await gate.opens()

        tasks.start_soon(speak)
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert "That too." == end.message


# --- What they are told, and where they are configured


async def test_a_hook_is_told_where_it_is(tmp_path: Path, hook: Listener) -> None:
    moments = ("session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "stop")
    hooks = {moment: (hook.says(),) for moment in moments}
    steps = [answer(call("shell", {"command": "echo 1"}, "c1")), answer(say("Done."))]
    async with stage(tmp_path, *steps, hooks=hooks) as here:
        end = await here.run("Work.")

        names = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
        assert names == hook.field("hook_event_name")
        for each in hook.told:
            assert (here.session.thread_id, end.turn_id) == (each["session_id"], each["turn_id"])
            assert (str(here.path), str(here.cwd)) == (each["transcript_path"], each["cwd"])
            assert ("scripted-1", "never") == (each["model"], each["permission_mode"])
        before, after = hook.told[2:4]
        assert {"command": "echo 1"} == before["tool_input"] == after["tool_input"]
        assert ("shell", "c1") == (before["tool_name"], before["tool_use_id"])
        assert "1" in after["tool_response"]
        assert after["success"] is True


async def test_hooks_of_the_settings_are_asked(tmp_path: Path, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text(
        '[[hooks.pre_tool_use]]\nmatcher = "shell"\ncommand = "echo \'not here\' >&2; exit 2"\n'
    )
    (tmp_path / "project").mkdir()
    steps = [answer(call("shell", {"command": "echo x > f"}, "c1")), answer(say("So."))]
    async with Model(*steps) as model, commonplace.open() as book:
        thread = await book.start(cwd=tmp_path / "project", speaker=model, sandbox="danger-full-access")
        await thread.turn("Work.")

        assert b"A hook refused this call: not here" in model.requests[1].input[-1]
        assert not (tmp_path / "project" / "f").exists()
