"""What new users stumbled over: closed pipes, other encodings, Ctrl-C, cut lists, folders that are only looked at."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import click
import pytest
from command import Command
from talking import teach

from commonplace.learning.learn import LearningPlan, learn
from commonplace.memory.recall import section_cache
from commonplace.surfaces.cli import output, root
from ledgers import Script, assistant, user

THREAD = "0198c0de-0000-7000-8000-0000000000e1"


@pytest.mark.parametrize("words", [["demo"], ["--help"], ["memory", "list"], ["config", "show"]])
def test_a_reader_that_goes_away_ends_a_command_quietly(words: list[str], home: Path) -> None:
    teach(home)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", *words], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)

    assert done.returncode in (1, 128 + signal.SIGPIPE)
    assert done.stderr == b""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_what_an_encoding_lacks_becomes_a_question_mark(encoding: str, home: Path, commonplace: Command) -> None:
    commonplace.ok("memory", "note", "Preise stehen in € — immer.", "--global")
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "memory", "list"], env=environment, capture_output=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert "Preise stehen in" in done.stdout.decode(encoding)


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["learn"], KeyboardInterrupt(), "Stopped. What was done so far is kept; run the command again to go on.\n"),
        (["memory", "run"], KeyboardInterrupt(), "Stopped. What was done so far is kept; run the command again"),
        (["memory", "list"], KeyboardInterrupt(), ""),
        (["memory", "reset"], click.Abort(), "Nothing was changed.\n"),
    ],
)
def test_what_is_left_is_said_when_a_person_stops_a_command(
    words: list[str], error: BaseException, says: str, commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(root.LazyGroup, "invoke", stop)
    ran = commonplace(*words)

    assert ran.code == 130
    assert ran.err.lstrip("\n").removeprefix("commonplace: ").startswith(says)
    assert bool(ran.err.strip()) == bool(says)


def test_a_list_in_a_pipe_is_not_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(sys, "__stdout__", None)
    output.columns([("a", "word " * 200)], ("name", "text"))

    assert capsys.readouterr().out.count("word") == 200


async def test_learning_says_how_many_sessions_it_found_so_far(tmp_path: Path, home: Path) -> None:
    from commonplace.app import book as books

    folder = tmp_path / "claude" / "projects" / "-repo"
    folder.mkdir(parents=True)
    for number in range(250):
        (folder / f"{number:08}-0000-4000-8000-000000000000.jsonl").write_text("", "utf-8")
    heard: list[tuple[str, int]] = []

    def hear(step: str, done: int, total: int | None, size: tuple[int, int] = (0, 0)) -> None:
        heard.append((step, done))

    async with books.open() as book:
        await learn(book.state, book.importer, LearningPlan("claude-code", (tmp_path / "claude",)), hear)
    assert [done for name, done in heard if name == "looking for sessions"] == [100, 200]


@pytest.mark.parametrize(
    "words",
    [
        ["sessions", "list"], ["sessions", "show", THREAD], ["sessions", "context", THREAD],
        ["sessions", "verify", THREAD], ["sessions", "reindex"], ["sessions", "search", "login"],
        ["sessions", "compact", THREAD, "--dry-run"], ["sessions", "compact", THREAD], ["sessions", "fork", THREAD],
        ["sessions", "rename", THREAD, "mine"], ["sessions", "archive", THREAD], ["sessions", "unarchive", THREAD],
        ["sessions", "delete", THREAD], ["sessions", "rollback", THREAD, "--turns", "1"], ["sessions", "undo", THREAD],
    ],
)  # fmt: skip
def test_a_home_that_is_only_looked_at_is_never_written_to(
    words: list[str], tmp_path: Path, commonplace: Command
) -> None:
    other = tmp_path / "codex"
    Script(THREAD, cwd="/repo/demo").turn(user("fix the login test"), assistant("Done.")).write_home(other)

    def tree() -> dict[str, tuple[int, bytes]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in sorted(other.rglob("*"))
        }

    before = tree()
    ran = commonplace(*words, "--home", other)

    assert ran.code in (0, 1, 2)
    assert "Traceback" not in ran.err
    assert tree() == before


@pytest.mark.parametrize("width", [50, 80, 140])
def test_a_list_of_the_memory_fits_the_terminal(
    width: int, home: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    teach(home)
    commonplace.ok("memory", "note", "Ask before you change anything below the folder vendor, " * 3)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = commonplace("memory", "list").out.splitlines()

    assert max(map(len, lines)) <= width
    assert any(line.endswith("…") for line in lines)


def test_a_list_of_the_memory_in_a_pipe_is_not_cut(commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    folders = "vendor, third_party, generated, fixtures, migrations, locales, snapshots and assets"
    text = f"Ask before you change anything below the folders {folders}, please"
    commonplace.ok("memory", "note", text, "--global")

    assert f'"{text}"\n' in commonplace("memory", "list").out


def test_a_repository_without_a_remote_is_called_by_its_folder(
    home: Path, tmp_path: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bakery"
    folder.mkdir()
    author = ("-c", "user.name=Ines", "-c", "user.email=ines@example.org")
    for words in (("init", "--quiet"), (*author, "commit", "--quiet", "--allow-empty", "-m", "Begin")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    said = "Always use pnpm instead of npm in this repo."
    Script(THREAD, cwd=str(folder)).turn(user(said), assistant("Yes.")).write_home(home)
    report = commonplace.ok("memory", "run")
    section = commonplace("worker", "--once", "--background", "--import", "--section", folder, "claude-code")
    ready = section_cache.read(str(home), str(folder), "claude-code", os.environ)

    assert [each["name"] for each in report["projects"]] == ["bakery"]
    assert [each["name"] for each in commonplace.ok("projects", "list")["projects"]] == ["bakery"]
    assert "# Task Group: bakery\n" in (home / "memories" / "MEMORY.md").read_text("utf-8")
    assert section.code == 0
    assert (ready or {})["project"] == "bakery"
    assert len(commonplace.ok("memory", "list", "--project", "bakery")["entries"]) == 1
    monkeypatch.setenv("COLUMNS", "80")
    assert "  bakery  " in commonplace("sessions", "list").out
    assert "bakery\n" in commonplace("memory", "list").out
    assert "  bakery\n" in commonplace("sessions", "search", "pnpm").out
    assert "  bakery  " in commonplace("memory", "search", "pnpm").out
    assert "bakery  1\n" in commonplace("learn").out
    assert "project  bakery\n" in commonplace("sessions", "show", THREAD).out


def test_a_note_does_not_repeat_what_never_fitted(home: Path, commonplace: Command) -> None:
    script = Script(THREAD, cwd="/repo/shop")
    for topic in ("colour", "harbour", "violin", "granite", "pepper", "cloud", "anchor", "needle"):
        script.turn(user(f"Always ask me before you change the {topic} table."), assistant("I will."))
    script.write_home(home)
    commonplace.ok("config", "set", "memory.lines_per_project", "5")

    assert "did not fit" in " ".join(commonplace.ok("memory", "run")["warnings"])
    assert commonplace("memory", "note", "Prices are in cents.", "--global").err == ""


def test_ctrl_c_says_once_what_is_kept(commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(anyio, "run", stop)
    ran = commonplace("learn")

    assert ran.code == 130
    assert ran.err.count("Stopped.") == 1


def test_an_empty_list_of_another_home_says_which_homes_there_are(commonplace: Command, tmp_path: Path) -> None:
    assert "sessions import --path PATH" in commonplace("sessions", "list", "--home", tmp_path).out
    assert commonplace("sessions", "list").out == "No threads here yet.\n"
    for options in (("--source", "claud"), ("--since", "3d"), ("--archived",)):
        assert commonplace("sessions", "list", *options).out == "No thread here is what the options ask for.\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_with_the_script(shell: str, tmp_path: Path, commonplace: Command) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not here")
    script = tmp_path / f"commonplace.{shell}"
    script.write_text(commonplace("completion", shell).out, "utf-8")
    called = tmp_path / "commonplace"
    called.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m commonplace "$@"\n', "utf-8")
    called.chmod(0o755)
    code = {
        "bash": f"source {script}; COMP_WORDS=(commonplace mem); COMP_CWORD=1; _commonplace_completion commonplace; "
        'echo "${COMPREPLY[@]}"',
        # Without a terminal zsh completes nothing; what its function gives to the shell is printed instead.
        "zsh": f"compdef() {{ :; }}; compadd() {{ :; }}; _describe() {{ print -l -- ${{(P)3}}; }}; source {script}; "
        "words=(commonplace mem); CURRENT=2; _commonplace_completion",
        "fish": f"source {script}; complete -C 'commonplace mem'",
    }[shell]
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run([program, *options, "-c", code], env=environment, capture_output=True, text=True, check=False)
    told = "" if shell == "bash" else "List, search and change what was learned."

    assert done.stdout.split("\n")[0].startswith("memory"), done.stderr
    assert told in done.stdout
