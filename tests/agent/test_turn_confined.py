"""Commands of a session, confined: what they can change, what is asked, what the model is told of it."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import msgspec
import pytest
from consent_doubles import answering, warnings
from manifests import commit, repository
from scripted_session import Model, Stage, stage
from server_fixtures import left
from session_invariants import Json

import commonplace
from commonplace.agent import events, sandbox
from commonplace.agent.sandbox import SandboxSupport, detection
from commonplace.agent.session_environment import IsolatedEnvironment
from commonplace.agent.thread import Thread
from commonplace.app.book import Book
from commonplace.config import Approval
from commonplace.models.scripted import answer, call, custom, say
from commonplace.rollout import decisions

REFUSED = ("Read-only file system", "Permission denied", "Operation not permitted")
NONE = SandboxSupport(mechanism="none", detail="nothing works here.")


@pytest.fixture
def confined() -> None:
    """Skip where no command can be confined."""
    found = sandbox.detect()
    if found.mechanism == "none":
        pytest.skip(found.detail)


@pytest.fixture
def elsewhere() -> Generator[Path]:
    """A folder that is no folder for temporary files, as far as the sandbox goes."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def shell(script: str, number: int = 1, **more: Any) -> Json:
    return call("shell", {"command": script, **more}, f"c{number}")


def patch(*lines: str) -> Json:
    return custom("apply_patch", "\n".join(("*** Begin Patch", *lines, "*** End Patch")), "c1")


def permissions(here: Stage, at: int = -1) -> list[str]:
    return [text for text in here.texts(at) if text.startswith("<permissions")]


def is_refused(text: str) -> bool:
    return any(reason in text for reason in REFUSED)


@pytest.mark.usefixtures("confined")
async def test_who_may_only_read_cannot_write_and_the_model_sees_why(tmp_path: Path) -> None:
    steps = [answer(shell("echo x > f")), answer(say("So."))]
    async with stage(tmp_path, *steps, sandbox="read-only") as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert not (here.cwd / "f").exists()
        assert is_refused(here.outputs()["c1"])
        (item,) = [item for item in here.completed() if isinstance(item, events.CommandExecution)]
        assert "failed" == item.status
        assert ("bash" in item.command[0], "echo x > f") == (True, item.command[-1]), "a person sees the command itself"


@pytest.mark.usefixtures("confined")
async def test_a_workspace_can_be_written_and_nothing_else(tmp_path: Path, elsewhere: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        scripts = [
            "echo x > f",
            f"echo x > {elsewhere}/f",
            "echo x > .git/hooks/pre-commit",
            f"echo x > {tmp_path}/home/config.toml",
            f"echo x > /dev/tcp/127.0.0.1/{port}",
        ]
        calls = [shell(script, number) for number, script in enumerate(scripts)]
        async with stage(tmp_path, answer(*calls), answer(say("So.")), sandbox="workspace-write") as here:
            (here.cwd / ".git" / "hooks").mkdir(parents=True)
            await here.run("Work.")

            outputs = here.outputs()
            assert "x\n" == (here.cwd / "f").read_text()
            assert [] == [*elsewhere.iterdir(), *(here.cwd / ".git" / "hooks").iterdir()]
            assert not (tmp_path / "home" / "config.toml").exists()
            assert all(is_refused(outputs[f"c{number}"]) for number in (1, 2, 3))
            assert "Exit code: 0" not in outputs["c4"]


@pytest.mark.usefixtures("confined")
@pytest.mark.parametrize(
    ("approval", "decision", "runs"),
    [("on-request", "approved", True), ("on-request", "denied", False), ("never", "approved", False)],
)
async def test_what_asks_to_run_unconfined_does_as_the_person_says(
    tmp_path: Path, elsewhere: Path, approval: Approval, decision: Any, runs: bool
) -> None:
    wanted = shell(f"echo x > {elsewhere}/f", escalate=True, justification="because")
    async with stage(
        tmp_path, answer(wanted), answer(say("So.")), sandbox="workspace-write", approval=approval
    ) as here:
        asked = answering(here, decision)
        await here.run("Work.")

        assert (["because"] if approval == "on-request" else []) == [each.reason for each in asked]
        assert runs == (elsewhere / "f").exists()
        told = {("on-request", True): "Exit code: 0", ("on-request", False): "did not allow it"}
        assert told.get((approval, runs), "nobody can be asked") in here.outputs()["c1"]


@pytest.mark.parametrize("approval", ["on-request", "never"])
@pytest.mark.parametrize("target", [".git/config", "HOME/config.toml"])
async def test_a_patch_to_what_is_guarded_is_asked_about_or_refused(
    tmp_path: Path, target: str, approval: Approval
) -> None:
    path = target.replace("HOME", str(tmp_path / "home"))
    steps = [answer(patch(f"*** Add File: {path}", "+[core]")), answer(say("So."))]
    async with stage(tmp_path, *steps, sandbox="workspace-write", approval=approval, roots=(tmp_path,)) as here:
        (here.cwd / ".git").mkdir()
        asked = answering(here, "denied")
        await here.run("Work.")

        assert not (here.cwd / path).exists()
        assert "Nothing was changed" in here.outputs()["c1"]
        assert (1 if approval == "on-request" else 0) == len(asked)
        assert all("protected" in str(each.problem) for each in asked)


@pytest.mark.parametrize("approval", ["on-request", "never"])
async def test_a_patch_outside_all_folders_is_refused(tmp_path: Path, elsewhere: Path, approval: Approval) -> None:
    steps = [answer(patch(f"*** Add File: {elsewhere}/f", "+x")), answer(say("So."))]
    async with stage(tmp_path, *steps, sandbox="workspace-write", approval=approval) as here:
        answering(here, "approved")
        await here.run("Work.")

        assert [] == [*elsewhere.iterdir()]
        assert "Done" not in here.outputs()["c1"]


@pytest.mark.parametrize(("approval", "changes"), [("untrusted", True), ("on-request", True), ("never", False)])
async def test_a_patch_where_nothing_may_be_written_is_asked_about(
    tmp_path: Path, approval: Approval, changes: bool
) -> None:
    steps = [answer(patch("*** Add File: f", "+x")), answer(say("So."))]
    async with stage(tmp_path, *steps, sandbox="read-only", approval=approval) as here:
        asked = answering(here, "approved")
        await here.run("Work.")

        assert changes == (here.cwd / "f").exists()
        assert changes == bool(asked)


@pytest.mark.usefixtures("confined")
@pytest.mark.parametrize("background", [False, True])
async def test_nothing_is_left_of_confined_commands(tmp_path: Path, background: bool) -> None:
    token = f"token-{uuid4().hex}"
    command = shell(f"echo begun; sleep 300; : {token}", background=background)
    steps = [answer(command), *([answer(say("So."))] if background else [])]
    async with stage(tmp_path, *steps, sandbox="workspace-write") as here, anyio.create_task_group() as tasks:

        async def stop() -> None:
            await here.until(events.OutputDelta)
            await here.session.interrupt()

        if not background:
            tasks.start_soon(stop)
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted if background else events.TurnAborted)
        assert background == bool(left(token))
    assert [] == left(token)


@pytest.mark.usefixtures("confined")
async def test_keys_are_withheld_from_confined_commands(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-1", "MINE": "sk-2", "PLAIN": "seen"}
    steps = [answer(shell("env")), answer(say("So."))]
    async with stage(
        tmp_path, *steps, sandbox="read-only", environment=IsolatedEnvironment(environment), withheld=("MINE",)
    ) as here:
        await here.run("Work.")

        assert "PLAIN=seen" in here.outputs()["c1"]
        assert "sk-" not in here.outputs()["c1"]


@pytest.mark.parametrize(
    ("mode", "more", "wire", "words"),
    [
        ("read-only", {}, {"type": "read-only"}, ["`read-only`", "There is no network", "Nobody can be asked"]),
        (
            "workspace-write",
            {"approval": "on-request", "network": True, "roots": (Path("/var/tmp"),)},
            {
                "type": "workspace-write",
                "writable_roots": ["/var/tmp"],
                "network_access": True,
                "exclude_tmpdir_env_var": False,
                "exclude_slash_tmp": False,
            },
            ["`workspace-write`", "- /var/tmp", "The network can be used", "say why in `justification`"],
        ),
        ("danger-full-access", {"approval": "untrusted"}, {"type": "danger-full-access"}, ["without a sandbox"]),
    ],
)
async def test_the_model_and_the_ledger_are_told_what_may_be_done(
    tmp_path: Path, mode: str, more: dict[str, Any], wire: Json, words: list[str]
) -> None:
    async with stage(tmp_path, answer(say("So.")), sandbox=mode, **more) as here:
        await here.run("Work.")

        (text,) = permissions(here)
        assert [] == [word for word in words if word not in text]
        (line,) = [line["payload"] for line in here.lines() if line["type"] == "turn_context"]
        assert wire == line["sandbox_policy"]
        assert more.get("approval", "never") == line["approval_policy"]


@pytest.mark.parametrize("approval", ["untrusted", "on-request", "never"])
async def test_where_nothing_can_be_confined_every_command_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approval: Approval
) -> None:
    monkeypatch.setattr(detection, "detect", lambda: NONE)
    steps = [answer(shell("ls", 1), shell("echo x > f", 2)), answer(say("So."))]
    async with stage(tmp_path, *steps, sandbox="workspace-write", approval=approval) as here:
        asked = answering(here, "approved")
        await here.run("Work.")

        assert (approval != "never") == (here.cwd / "f").exists()
        assert ([] if approval == "never" else ["c1", "c2"]) == [each.item_id for each in asked]
        assert all("cannot be confined" in str(each.problem) for each in asked)
        before, after = permissions(here)
        assert [before] == permissions(here, 0)
        assert "a person is asked before each command" not in before
        assert "a person is asked before each command" in after


@pytest.mark.usefixtures("confined")
async def test_what_holds_the_place_of_git_is_not_taken_for_a_repository(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        answer(shell("echo begun; sleep 300", background=True)),
        answer(say("So.")),
        answer(shell("echo x > f", 2)),
        answer(say("Yes.")),
        sandbox="workspace-write",
        cwd=tmp_path / "project" / "sub",
    ) as here:
        commit(repository(here.cwd))
        (here.cwd / "AGENTS.md").write_text("Be kind.")
        (here.cwd / "sub").mkdir()
        await here.run("Work.")
        await here.run("And now?")

        assert 1 == sum("# AGENTS.md" in text for text in here.texts())
        trees = {line["payload"]["tree"] for line in here.lines() if line["payload"].get("kind") == "snapshot"}
        assert {str(here.cwd)} == trees
        assert [] == warnings(here)


# --- What a person allowed for good


async def thread_in(book: Book, folder: Path, model: Model) -> tuple[Thread, list[events.Asked]]:
    folder.mkdir(exist_ok=True)
    thread = await book.start(cwd=folder, speaker=model, sandbox="workspace-write", approval="untrusted")
    asked: list[events.Asked] = []

    def listen(event: events.Event) -> None:
        if isinstance(event, events.Asked):
            asked.append(event)
            thread.session.decide(event.request_id, "approved_always")

    thread.listen(listen)
    return thread, asked


async def test_what_is_allowed_for_good_counts_in_this_folder_and_in_no_other(tmp_path: Path, home: Path) -> None:
    project, other = tmp_path / "one", tmp_path / "two"
    repository(project)
    touch = shutil.which("touch", path="/usr/bin:/bin")
    steps = [answer(shell(f"touch f{number}")) for number in range(3)]
    model = Model(steps[0], answer(say("1")), steps[1], answer(say("2")), steps[2], answer(say("3")))
    async with model, commonplace.open() as book:
        first, asked = await thread_in(book, project, model)
        await first.turn("Work.")
        assert [((touch,),)] == [each.prefixes for each in asked]
        assert f'- [\\"{touch}\\"]'.encode() in b"".join(model.requests[1].input)
        assert [(touch,)] == decisions.allowed_commands(home, str(project))

        again, asked = await thread_in(book, project, model)
        await again.turn("Work.")
        assert [] == asked
        assert b"touch" in b"".join(model.requests[2].input), "the rules name it from the beginning"
        assert b"prefix saved" not in b"".join(model.requests[3].input)

        elsewhere, asked = await thread_in(book, other, model)
        await elsewhere.turn("Work.")
        assert 1 == len(asked)
        assert [(touch,)] == decisions.allowed_commands(home, str(other))


ATTACKS = [
    pytest.param({"command": ["./bash", "-c", "git commit -m x"]}, id="a shell of the model's"),
    pytest.param({"command": ["bash", "-c", "git commit -m x"], "workdir": "sub"}, id="hooks of the model's"),
    pytest.param({"command": "git commit -m x", "workdir": "sub"}, id="hooks of the model's, in a script"),
    pytest.param({"command": "cd sub && git commit -m x"}, id="another folder"),
    pytest.param({"command": "git -C sub commit -m x"}, id="another folder by an option"),
    pytest.param({"command": "sort -uo OUT f; git commit -m x"}, id="an option in a cluster"),
    pytest.param({"command": "git grep -nO'touch OUT' x; git commit -m x"}, id="a pager"),
    pytest.param({"command": "sed -n 1p f '-e1e touch OUT'; git commit -m x"}, id="an expression of sed"),
    pytest.param({"command": "git -c core.fsmonitor='touch OUT' commit -m x"}, id="a setting"),
    pytest.param({"command": "git commit -m x; ./bash"}, id="another command"),
    pytest.param({"command": "PATH=. git commit -m x"}, id="another path"),
    pytest.param({"command": ["./git", "commit", "-m", "x"]}, id="a program by its path"),
    pytest.param({"command": "touch OUT"}, id="another program"),
]


@pytest.mark.parametrize("attack", ATTACKS)
async def test_an_answer_always_is_no_way_out_where_nobody_is_asked(
    tmp_path: Path, elsewhere: Path, attack: dict[str, Any]
) -> None:
    git = shutil.which("git", path="/usr/bin:/bin")
    text = msgspec.json.encode(attack).decode().replace("OUT", str(elsewhere / "out"))
    wanted = {**msgspec.json.decode(text), "escalate": True}
    async with stage(
        tmp_path,
        *[answer(call("shell", wanted, "c1")), answer(say("So."))],
        sandbox="workspace-write",
        allowed=((git, "commit"), (git, "grep"), ("/usr/bin/sort",), ("git", "commit")),
        environment=IsolatedEnvironment({"PATH": "/usr/bin:/bin"}),
    ) as here:
        (here.cwd / "f").write_text("x\n")
        commit(repository(here.cwd))
        repository(here.cwd / "sub")
        for path in ("bash", "git", "sub/.git/hooks/pre-commit", "sub/.git/hooks/post-commit"):
            (here.cwd / path).parent.mkdir(exist_ok=True)
            (here.cwd / path).write_text(f"#!/bin/sh\ntouch {elsewhere}/out\n")
            (here.cwd / path).chmod(0o755)
        await here.run("Work.")

        assert "nobody can be asked" in here.outputs()["c1"]
        assert [] == [*elsewhere.iterdir()]


async def test_a_program_that_changes_while_a_person_reads_the_question_does_not_run(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        *[answer(shell("sort f")), answer(say("So."))],
        sandbox="read-only",
        approval="untrusted",
        environment=IsolatedEnvironment({"PATH": f"{tmp_path}/project/bin:/usr/bin:/bin", "HOME": str(tmp_path)}),
        cwd=tmp_path / "project",
    ) as here:
        seen: list[events.Asked] = []

        def listen(event: events.Event) -> None:
            if isinstance(event, events.Asked):
                seen.append(event)
                planted = here.cwd / "bin" / "mine"
                planted.parent.mkdir()
                planted.write_text("#!/bin/sh\ntouch out\n")
                planted.chmod(0o755)
                here.session.decide(event.request_id, "approved")

        here.listeners.append(listen)
        here.model.instead(answer(shell("mine")), answer(say("So.")))
        await here.run("Work.")

        assert "mine" in seen[0].programs
        assert "another program" in here.outputs()["c1"]
        assert not (here.cwd / "out").exists()


async def test_what_cannot_be_noted_is_allowed_for_the_session(tmp_path: Path, home: Path) -> None:
    model = Model(answer(shell("touch f")), answer(say("1")))
    async with model, commonplace.open() as book:
        thread, _ = await thread_in(book, tmp_path / "one", model)
        (home / decisions.FILE).mkdir()
        await thread.turn("Work.")

        assert (tmp_path / "one" / "f").exists()
