"""Ordinary work goes on under every way to confine commands: files, programs, pipes, codes, groups, the background."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from confined import PYTHON, Box

from commonplace.agent.sandbox import SandboxPolicy, SandboxSupport, confine
from commonplace.agent.tools import processes as processes_module
from commonplace.agent.tools.process_table import group_members
from commonplace.agent.tools.processes import Launch

pytestmark = pytest.mark.anyio


def _repository(folder: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("echo new > new && cat new", "new\n"),
        ("mkdir -p a/b && echo x > a/b/c && mv a d && cat d/b/c && rm -r d", "x\n"),
        ("echo more >> file && wc -l < file", "2\n"),
        ("ln file second && ln -s file third && cat second third | wc -l && chmod +x file && test -x file", "2\n"),
        ("mkfifo pipe && (echo through > pipe &) && cat pipe", "through\n"),
        ("echo lost > /dev/null && head -c 3 /dev/zero | wc -c && head -c 3 /dev/urandom | wc -c", "3\n3\n"),
        ("yes | head -n 2", "y\ny\n"),
        ("cat /dev/stdin | wc -c", "0\n"),
        ("cat <(echo one) - <<< two", "one\ntwo\n"),
        ("cd / && pwd && test -r /etc/passwd && echo read", "/\nread\n"),
        ('x=$(mktemp -p .) && echo kept > "$x" && cat "$x"', "kept\n"),
        ("(exit 3) & wait $!; echo $?", "3\n"),
        ("sleep 600 & kill $! && wait $! 2> /dev/null; echo $?", "143\n"),
        ("trap 'echo heard; exit 0' USR1; kill -USR1 $$; echo not", "heard\n"),
    ],
)
async def test_scripts_do_what_they_always_do(box: Box, script: str, printed: str) -> None:
    assert (0, printed) == await box.run(script)


@pytest.mark.parametrize(("script", "code"), [("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill $$", 143)])
async def test_the_code_is_the_command_s_own(box: Box, script: str, code: int) -> None:
    assert (code, "") == await box.run(script)


async def test_a_program_that_is_not_there_is_told_as_shells_tell_it(box: Box) -> None:
    code, printed = await box.finish(box.start("no-such-program"))

    assert (127, "no-such-program: No such file or directory\n") == (code, printed)


async def test_what_is_printed_arrives_whole(box: Box) -> None:
    code, printed = await box.run("seq 1 200000")

    assert (0, "".join(f"{n}\n" for n in range(1, 200_001))) == (code, printed)


async def test_words_arrive_as_they_are(box: Box) -> None:
    words = ("--", "", "a b", "ü", "$x", "-n", "parent", "*")

    assert (0, "".join(f"[{word}]" for word in words)) == await box.run('printf "[%s]" "$@"', *words)


async def test_variables_arrive_as_they_are(box: Box) -> None:
    code, printed = await box.finish(box.start("env", "-0"))

    told = dict(each.split("=", 1) for each in printed.split("\0") if each)
    told.pop("PWD", None)  # shells and bwrap tell where they are
    assert (0, box.environment) == (code, {k: v for k, v in told.items() if k not in ("OLDPWD", "SHLVL", "_")})


async def test_git_tells_the_state_of_a_repository(box: Box) -> None:
    _repository(box.project)

    code, printed = await box.run("git status --short && git log; git diff")

    assert 0 == code, printed
    assert "?? ./" in printed


async def test_git_finds_a_repository_above_the_project(box: Box) -> None:
    _repository(box.project.parent)

    code, printed = await box.run("git rev-parse --show-toplevel")

    assert (0, f"{box.project.parent.resolve()}\n") == (code, printed)


async def test_python_runs_with_children_and_pipes(box: Box) -> None:
    script = """
import os, sys
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, b"from a child")
    os._exit(0)
print(os.read(reader, 100).decode(), os.wait()[1], os.getcwd() == sys.argv[1])
"""
    assert (0, "from a child 0 True\n") == await box.python(script, box.folder.resolve())


async def test_new_things_are_made_in_the_project_itself(mounted_box: Box) -> None:
    code, printed = await mounted_box.run("cd .. && echo new > new && mkdir folder && mv new folder/ && cat folder/new")

    assert (0, "new\n") == (code, printed)
    assert (mounted_box.project / "folder" / "new").exists()


async def test_further_roots_and_temporary_folders_can_be_written(box: Box, tmp_path: Path) -> None:
    root, temporary = tmp_path / "root", tmp_path / "temporary"
    (root / "inside").mkdir(parents=True)
    temporary.mkdir()
    script = 'echo x > "$1/inside/x" && TMPDIR="$2" mktemp > /dev/null'

    assert (0, "") == await box.run(script, root, temporary, roots=(root,), tmpdir=temporary)
    assert [1, 1] == [len(os.listdir(folder)) for folder in (root / "inside", temporary)]
    code, _ = await box.run(script, root, temporary, roots=(root,), tmpdir=temporary, exclude_tmpdir_env_var=True)
    assert code != 0


async def test_a_root_that_is_a_link_or_missing_is_no_matter(box: Box, tmp_path: Path) -> None:
    real = tmp_path / "real" / "inside"
    real.mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    roots = (tmp_path / "link", tmp_path / "missing")

    assert (0, "") == await box.run('echo x > "$1/inside/x"', tmp_path / "link", roots=roots)


async def test_commands_have_locks_and_terminals_of_their_own(mounted_box: Box) -> None:
    script = "import multiprocessing, os; multiprocessing.Lock(); os.openpty(); print('both')"

    assert (0, "both\n") == await mounted_box.finish(mounted_box.start(sys.executable, "-c", script))


async def test_a_command_can_talk_to_its_own_server(mounted_box: Box) -> None:
    if not mounted_box.level.own_network:
        pytest.skip("this kernel gives no network of one's own")
    script = """
import _socket as s
server = s.socket(s.AF_INET, s.SOCK_STREAM)
server.bind(("127.0.0.1", 0))
server.listen()
client = s.socket(s.AF_INET, s.SOCK_STREAM)
client.connect(server.getsockname())
print("through")
"""
    assert (0, "through\n") == await mounted_box.python(script)


async def test_what_a_command_leaves_behind_ends_with_it(box: Box) -> None:
    running = box.start("/bin/bash", "-c", "sleep 600 & sleep 600 & exit 2")

    code, _ = await box.finish(running)

    assert (2, []) == (code, group_members(running.group))


async def test_in_the_background_it_goes_on_as_long_as_something_may_print(box: Box) -> None:
    running = box.start("/bin/bash", "-c", "(read word; echo got $word) <&0 & exit 6", background=True)

    await running.write("it\n", 60)
    code, printed = await box.finish(running)

    assert (6, "got it\n") == (code, printed)


async def test_in_the_background_too_what_cannot_print_ends_with_the_command(box: Box) -> None:
    running = box.start("/bin/bash", "-c", "sleep 600 < /dev/null > /dev/null 2>&1 & exit 6", background=True)

    assert (6, "") == await box.finish(running)
    assert [] == group_members(running.group)


async def test_a_process_in_the_background_is_written_to(box: Box) -> None:
    running = box.start("/bin/sh", "-c", "cat; echo over", background=True)

    await running.write("hello\n", 60)
    running.close_input()

    assert (0, "hello\nover\n") == await box.finish(running)


WAITS = """
import signal
signals = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("ready", flush=True)
print("tidied after", signal.sigwait(signals))
raise SystemExit(8)
"""


async def test_a_command_that_is_asked_to_end_can_end_in_its_own_way(box: Box) -> None:
    running = box.start(PYTHON, "-I", "-S", "-c", WAITS)
    with anyio.fail_after(60):
        await running.settled(0.0)

    await running.end()

    assert (8, "ready\ntidied after 15\n") == (running.code, running.output.text())


async def test_an_interrupt_reaches_the_command(box: Box) -> None:
    running = box.start(PYTHON, "-I", "-S", "-c", WAITS)
    with anyio.fail_after(60):
        await running.settled(0.0)

    running.signal(signal.SIGINT)

    assert (8, "ready\ntidied after 2\n") == await box.finish(running)


async def test_a_command_that_will_not_end_is_killed_with_all_its_children(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes_module, "GRACE_SECONDS", 0.2)
    running = box.start("/bin/bash", "-c", "trap '' TERM; sleep 600 & echo ready; wait; sleep 600")
    with anyio.fail_after(60):
        await running.settled(0.0)

    await running.end()

    assert (137, []) == (running.code, group_members(running.group))


def test_a_command_ends_when_this_process_is_killed(level: SandboxSupport, policy: SandboxPolicy) -> None:
    """Everything that the command started holds the output: its end shows that nothing is left."""
    way = "bubblewrap" if level.bwrap else "namespaces" if level.spaces else "landlock"
    script = "setsid sleep 600 & sleep 600 & echo ready; wait"
    words = [sys.executable, str(Path(__file__).with_name("starter_program.py")), way, str(policy.cwd), script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert b"ready\n" == process.stdout.readline()

        process.stdin.close()

        assert b"" == process.stdout.read()


def test_full_access_changes_nothing(level: SandboxSupport, policy: SandboxPolicy) -> None:
    launch = Launch((PYTHON, "-c", "pass"), policy.cwd, {})

    assert launch is confine(launch, SandboxPolicy(mode="danger-full-access", cwd=policy.cwd), level)
