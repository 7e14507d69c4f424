"""Commands: what they are given, what is told of them, and that nothing of them stays."""

from __future__ import annotations

import errno
import json
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from commonplace.agent.tools import shell_environment
from commonplace.agent.tools.command_output import CommandOutput
from commonplace.agent.tools.memory_reads import MemoryRead
from commonplace.agent.tools.patch.tool import ApplyPatch
from commonplace.agent.tools.process_table import group_members
from commonplace.agent.tools.processes import Processes
from commonplace.agent.tools.registry import Action, Registry, ToolContext, ToolInvocation, ToolOutput
from commonplace.agent.tools.shell import Shell, patch_in
from commonplace.context.truncate import TruncationPolicy
from commonplace.errors import ToolError
from commonplace.protocol import commands
from redact import made
from waiting import until

Run = Callable[..., Awaitable[ToolOutput]]


def gone(group: int) -> bool:
    """Whether a process group has no living member."""
    return group_members(group) == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shell", {"command": "echo hi; echo oops >&2; exit 3"}),
        ("shell", {"command": ["bash", "-c", "echo hi; echo oops >&2; exit 3"]}),
        ("exec_command", {"cmd": "echo hi; echo oops >&2; exit 3", "login": True}),
        ("shell_command", {"command": "echo hi; echo oops >&2; exit 3", "timeout": 60_000}),
    ],
)
async def test_a_command_tells_code_time_and_output(run: Run, name: str, arguments: dict[str, Any]) -> None:
    times = iter([0.0, 1.0, 3.26, 4.0])

    output = await run(name, arguments, now=lambda: next(times))

    assert "Exit code: 3\nWall time: 2.3 seconds\nOutput:\nhi\noops\n" == output.content
    assert (False, 3) == (output.ok, output.exit_code)
    assert output.command_output is not None
    assert "hi\noops\n" == output.command_output.text()
    assert commands.Ended(3, "hi\noops\n") == commands.ended(str(output.content))


async def test_a_list_is_a_program_and_no_shell_reads_it(run: Run) -> None:
    output = await run("shell", {"command": ["echo", "$HOME", "a;b", "*"]})

    assert str(output.content).endswith("Output:\n$HOME a;b *\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"command": []}, "cannot be used"),
        ({"command": ""}, "empty"),
        ({"command": "  "}, "empty"),
        ({"command": [""]}, "empty"),
        ({"command": "echo \0"}, "NUL"),
        ({"command": 3}, "Expected"),
        ({"command": "ls", "timeout_ms": 0}, ">= 1"),
        ({"command": ["no-such-program-here"]}, "No such file"),
        ({"command": "ls", "workdir": "no/such/folder"}, "No such file"),
    ],
)
async def test_what_cannot_be_started_is_told(run: Run, arguments: dict[str, Any], said: str) -> None:
    output = await run("shell", arguments)

    assert not output.ok
    assert said in str(output.content)


async def test_a_command_runs_in_the_folder_it_names(run: Run, folder: Path) -> None:
    (folder / "inner").mkdir()

    output = await run("shell", {"command": "pwd", "workdir": "inner"})

    assert str(output.content).endswith(f"{folder / 'inner'}\n")


async def test_a_foreground_command_has_no_input(run: Run) -> None:
    output = await run("shell", {"command": "cat; echo done"})

    assert str(output.content).endswith("Output:\ndone\n")


async def test_bytes_that_are_no_text_are_replaced_and_characters_are_never_split(run: Run) -> None:
    # Each half of a letter comes in a write of its own.
    script = "import os\nfor part in (b'\\xc3', b'\\xa4', b'\\xff', b'\\xe2\\x82'): os.write(1, part)"
    heard: list[str] = []

    output = await run("shell", {"command": ["python3", "-c", script]}, emit=heard.append)

    assert "ä\ufffd\ufffd" == "".join(heard)
    assert str(output.content).endswith("Output:\nä\ufffd\ufffd")


async def test_output_is_heard_while_the_command_runs(run: Run, folder: Path) -> None:
    os.mkfifo(folder / "go")
    heard: list[str] = []

    def emit(text: str) -> None:
        heard.append(text)
        if "".join(heard) == "first\n":  # only now may it go on
            descriptor = os.open(folder / "go", os.O_RDWR)
            os.write(descriptor, b"x\n")
            opened.append(descriptor)

    opened: list[int] = []
    try:
        output = await run("shell", {"command": "echo first; read line < go; echo second"}, emit=emit)
    finally:
        for descriptor in opened:
            os.close(descriptor)

    assert "first\nsecond\n" == "".join(heard)
    assert output.ok


async def test_a_listener_that_breaks_does_not_lose_the_command(run: Run) -> None:
    def emit(text: str) -> None:
        raise ZeroDivisionError("nobody home")

    output = await run("shell", {"command": "echo heard"}, emit=emit)

    assert output.ok
    assert str(output.content).endswith("heard\n[the output was no longer shown: ZeroDivisionError: nobody home]")


PATCH = "*** Begin Patch\n*** Add File: a\n+$x\n*** End Patch"


@pytest.mark.parametrize(
    "command",
    [
        ["apply_patch", PATCH],
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\n",
        ["bash", "-lc", f'apply_patch << "E"\n{PATCH}\nE'],
    ],
)
async def test_a_patch_that_is_given_to_the_shell_is_applied(
    processes: Processes, surrounded: Callable[..., ToolContext], folder: Path, command: Any
) -> None:
    call = ToolInvocation("1", "shell", json.dumps({"command": command}))

    output = await Registry([Shell(processes, patch=ApplyPatch())]).run(call, surrounded())

    assert output.ok
    assert "$x\n" == (folder / "a").read_text()


@pytest.mark.parametrize(
    "command",
    ["apply_patch", ["apply_patch"], f"cd x && apply_patch <<E\n{PATCH}\nE", f"apply_patch <<E\n{PATCH}\nE\nrm a"],
)
def test_only_a_patch_and_nothing_else_is_taken_from_the_shell(command: Any) -> None:
    assert patch_in(command) is None


@pytest.mark.parametrize(
    "script", ["sleep 1000", "trap '' TERM; echo up; sleep 1000 & wait", "sleep 1000 & sleep 1000"]
)
async def test_what_takes_too_long_is_ended_with_all_its_children(run: Run, script: str) -> None:
    output = await run("shell", {"command": f"echo $$; {script}", "timeout_ms": 1000})

    assert output.command_output is not None
    assert gone(int(output.command_output.text().split()[0]))
    assert (False, 124) == (output.ok, output.exit_code)
    assert str(output.content).endswith("[ended after 1 seconds, with all its children; it took too long]")


async def test_what_a_command_leaves_behind_is_ended_and_told(run: Run) -> None:
    output = await run("shell", {"command": "echo $$; sleep 1000 >/dev/null 2>&1 & sleep 1000 & true"})

    assert output.command_output is not None
    assert gone(int(output.command_output.text().split()[0]))
    assert output.ok
    assert "[2 processes that it left behind were ended; use `background` to keep them]" in str(output.content)


async def test_a_command_that_is_killed_has_the_code_that_shells_tell(run: Run) -> None:
    output = await run("shell", {"command": "kill -KILL $$"})

    assert 137 == output.exit_code


@pytest.mark.parametrize("how", ["call", "task", "session"])
async def test_cancelling_leaves_no_process_in_the_group(
    how: str, surrounded: Callable[..., ToolContext], folder: Path
) -> None:
    groups: list[int] = []
    around = anyio.CancelScope()
    context = surrounded()

    def emit(text: str) -> None:
        groups.append(int(text.split(maxsplit=1)[0]))
        (context.scope if how == "call" else around).cancel()

    context.emit = emit
    command = "(trap '' TERM INT; sleep 1000) & trap '' TERM; echo $$; sleep 1000 & wait; wait"
    outputs: list[ToolOutput] = []
    if how == "session":
        with around:
            async with Processes() as processes:
                outputs.append(await _call(processes, command, context))
    else:
        async with Processes() as processes:
            with around:
                outputs.append(await _call(processes, command, context))
            with pytest.raises(ToolError, match="there is no process"):
                processes.find(1)
            assert gone(groups[0])

    await until(lambda: gone(groups[0]))  # all were killed before this; the last of them takes a moment to end
    if how == "call":
        assert outputs[0].content == f"aborted; it had printed:\n{groups[0]}\n"


async def _call(processes: Processes, command: str, context: ToolContext) -> ToolOutput:
    text = f'{{"command": "{command}"}}'
    return await Registry([Shell(processes)]).run(ToolInvocation("1", "shell", text), context)


async def test_a_long_output_is_cut_for_the_model_and_whole_for_the_ledger(run: Run) -> None:
    output = await run("shell", {"command": "seq 1 20000"}, policy=TruncationPolicy("tokens", 100))

    whole = "".join(f"{number}\n" for number in range(1, 20001))
    assert output.command_output is not None
    assert whole == output.command_output.text()
    assert "Total output lines: 20000\nOutput:\n1\n2\n" in str(output.content)
    assert "…27124 tokens truncated…" in str(output.content)
    assert len(str(output.content)) < 600


async def test_a_model_may_ask_for_less(run: Run) -> None:
    output = await run("shell", {"command": "seq 1 20000", "max_output_tokens": 10})

    assert len(str(output.content)) < 200


async def test_who_refuses_a_command_is_told_what_it_is(run: Run, folder: Path) -> None:
    asked: list[Action] = []

    async def approve(action: Action) -> str | None:
        asked.append(action)
        return "not on a Sunday"

    output = await run("shell", {"command": "touch made", "justification": "to see"}, approve=approve)

    assert not output.ok
    assert "The command was not run: not on a Sunday" == output.content
    assert not (folder / "made").exists()
    assert ("run", "touch made", "to see") == (asked[0].kind, asked[0].command[-1], asked[0].reason)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("OPENAI_API_KEY", True),
        ("GITHUB_TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("PGPASSWORD", True),
        ("LOCAL_KEY", True),
        ("DATABASE_URL", True),
        ("PATH", False),
        ("HOME", False),
        ("LANG", False),
        ("SSH_AUTH_SOCK", False),
        ("MAX_TOKENS", False),
        ("KEYBOARD_LAYOUT", False),
    ],
)
def test_variables_that_look_like_secrets_are_withheld(name: str, secret: bool) -> None:
    variables = shell_environment.command_variables({name: "value"})

    assert secret == (name not in variables)
    assert name not in shell_environment.command_variables({name: "value"}, withheld=[name])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("REDIS_URL", "redis://:<A16>@cache.acme.test:6379/0"),
        ("MONGODB_URI", "mongodb+srv://app:<A16>@cluster0.acme.test/shop"),
        ("BW_SESSION", "<B86>=="),
        ("NPM_CONFIG__AUTH", "<A30>=="),
        ("HTTPS_PROXY", "http://kim:<A14>@proxy.acme.test:3128"),
        ("PLAIN", "ghp_<A36>"),
        ("CONFIG", '{"db": {"password": "<A16>"}}'),
        ("NOTE", "the password is <A16>"),
        ("AMQP", "app:<A16>@mq.acme.test:5672/"),
        ("CONNECTION", "Server=db;User Id=sa;Password=<A16>;Encrypt=true"),
        ("WEBHOOK", "https://hooks.slack.com/services/T<U9>/B<U9>/<A24>"),
        ("CURL_ARGS", "-H 'Authorization: Bearer <A40>'"),
        ("IDENTITY", "-----BEGIN PRIVATE KEY-----\n<B64>\n<B64>\n-----END PRIVATE KEY-----"),
    ],
)
def test_variables_with_values_that_redaction_would_change_are_withheld_whatever_their_name(
    name: str, shape: str
) -> None:
    value = made.make(shape, random.Random(name))
    variables = {"HOME": "/home/kim", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "EDITOR": "vi"}

    assert name not in shell_environment.command_variables({**variables, name: value})
    assert variables.items() <= shell_environment.command_variables({**variables, name: value}).items()


async def test_a_command_sees_no_secret(run: Run) -> None:
    environment = {**os.environ, "OPENAI_API_KEY": "sk-hidden", "PLAIN": "seen"}

    output = await run("shell", {"command": "env"}, environment=environment)

    assert "seen" in str(output.content)
    assert "sk-hidden" not in str(output.content)


async def test_reading_memory_with_the_shell_counts(run: Run, home: Path) -> None:
    output = await run("shell", {"command": f"cat {home}/memories/MEMORY.md"})

    assert (MemoryRead("memory_md", "read", "MEMORY.md"),) == output.memory_reads


async def test_many_commands_at_once_keep_apart(run: Run) -> None:
    outputs: dict[int, ToolOutput] = {}

    async def one(number: int) -> None:
        outputs[number] = await run("shell", {"command": f"seq {number * 1000} {number * 1000 + 999}"})

    async with anyio.create_task_group() as tasks:
        for number in range(1, 9):
            tasks.start_soon(one, number)

    for number, output in outputs.items():
        assert output.command_output is not None
        assert [str(number * 1000 + each) for each in range(1000)] == output.command_output.text().split()


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_system_without_process_descriptors_works_too(
    surrounded: Callable[..., ToolContext], monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    context = surrounded()
    if cancelled:
        context.emit = lambda _: context.scope.cancel()

    async with Processes() as processes:
        output = await _call(processes, "echo $$; cat /dev/zero > /dev/null" if cancelled else "echo $$", context)

    assert cancelled == str(output.content).startswith("aborted")
    assert cancelled or output.ok
    assert output.command_output is not None
    assert gone(int(output.command_output.text()))


async def test_output_for_which_there_is_no_room_is_told_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: CommandOutput, text: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(CommandOutput, "add", full)

    output = await run("shell", {"command": "echo lost"})

    assert output.ok
    assert str(output.content).endswith("[some of the output was not kept: No space left on device]")
