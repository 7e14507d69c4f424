"""`commonplace mcp hook`: what sessions of Codex and Claude Code are told, and what becomes of them at their end."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import Command, Ran
from talking import checkout, teach

from commonplace.app import client_hooks
from commonplace.memory.recall import section_cache
from commonplace.protocol import citations
from commonplace.protocol.memory_traces import is_memory_text

SESSION = "6ac42589-1bd0-4e41-b0ff-ba06dc9add47"


class Hook:
    """Calls a hook as Claude Code does: with JSON on stdin. Processes that it would start are only noted."""

    def __init__(self, commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        self._commonplace = commonplace
        self._monkeypatch = monkeypatch
        self.started: list[list[str]] = []
        monkeypatch.setattr(client_hooks, "_detached", self._note)

    def _note(self, words: list[str], folder: str, environment: Mapping[str, str]) -> int:
        assert environment["COMMONPLACE_HOME"] == folder
        assert words[:4] == [sys.executable, "-P", "-m", "commonplace"]
        self.started.append(words[4:])
        return 1

    def __call__(self, event: str, told: Any, *options: str) -> Ran:
        data = told if isinstance(told, bytes) else json.dumps(told).encode()
        self._monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        return self._commonplace("mcp", "hook", event, *options)

    def run_started(self) -> None:
        """Run what hooks started since the last call."""
        words, self.started = self.started, []
        for each in words:
            assert self._commonplace(*each).code == 0

    def ready(self, told: Any, *options: str) -> Ran:
        """Start a session, let the process that it starts do its work, and start another one."""
        self("session-start", told, *options)
        self.run_started()
        return self("session-start", told, *options)


@pytest.fixture
def hook(commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> Hook:
    return Hook(commonplace, monkeypatch)


def transcript(folder: Path) -> Path:
    """A short session as Claude Code writes it."""
    base = {
        "isSidechain": False,
        "userType": "external",
        "cwd": "/repo/app",
        "sessionId": SESSION,
        "version": "2.1.197",
    }
    user = {"role": "user", "content": "please fix the login test"}
    reply = {"role": "assistant", "id": "m1", "model": "x", "content": [{"type": "text", "text": "Done."}]}
    records = [
        {
            **base,
            "parentUuid": None,
            "type": "user",
            "uuid": "u1",
            "timestamp": "2026-11-15T06:00:00Z",
            "message": user,
        },
        {
            **base,
            "parentUuid": "u1",
            "type": "assistant",
            "uuid": "a1",
            "timestamp": "2026-11-15T06:00:01Z",
            "message": reply,
        },
    ]
    folder.mkdir(parents=True)
    path = folder / f"{SESSION}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def test_a_session_begins_with_what_is_remembered(hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = checkout(tmp_path / "shop", "shop")
    ran = hook.ready({"cwd": str(shop), "session_id": SESSION, "source": "startup"})

    said = json.loads(ran.out)["hookSpecificOutput"]
    assert (ran.code, ran.err) == (0, "")
    assert said["hookEventName"] == "SessionStart"
    assert is_memory_text(said["additionalContext"])
    assert "pnpm" in said["additionalContext"]
    assert "release branch" not in said["additionalContext"]
    assert citations.OPEN not in said["additionalContext"]  # Claude Code would show it


def test_a_session_that_may_write_notes_is_told_how(hook: Hook, home: Path) -> None:
    teach(home)

    assert "add_ad_hoc_note" in hook.ready({"cwd": "/"}, "--allow-notes").out
    assert "add_ad_hoc_note" not in hook.ready({"cwd": "/"}).out


def test_the_person_sees_one_line(hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = checkout(tmp_path / "shop", "shop")

    assert hook.ready({"cwd": str(shop)}).json["systemMessage"] == "commonplace: 4 lessons for shop"


def test_codex_is_asked_for_citations_and_claude_code_is_not(hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    codex = hook.ready({"cwd": shop, "transcript_path": "/x/sessions/rollout-2026-x.jsonl"}).json
    claude = hook.ready({"cwd": shop, "transcript_path": "/x/projects/-x/6ac42589.jsonl"}).json

    assert citations.OPEN in codex["hookSpecificOutput"]["additionalContext"]
    assert citations.OPEN not in claude["hookSpecificOutput"]["additionalContext"]


def test_a_session_waits_for_no_section_and_the_next_one_has_it(hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    first = hook("session-start", {"cwd": shop, "session_id": SESSION})

    assert (first.code, first.out, first.err) == (0, "", "")
    worker = ["worker", "--once", "--background", "--import", "--current", SESSION, "--section", shop, "claude-code"]
    assert hook.started == [worker]
    hook.run_started()
    second = hook("session-start", {"cwd": shop})
    assert "pnpm" in second.json["hookSpecificOutput"]["additionalContext"]
    assert hook.started == []  # it was ready
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home / "sections").iterdir()} == {0o600}


def test_a_new_worktree_of_a_known_repository_is_told_at_once(hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    first = hook.ready({"cwd": str(checkout(tmp_path / "shop", "shop"))}).json
    worktree = checkout(tmp_path / "worktrees" / "x1", "shop")
    second = hook("session-start", {"cwd": str(worktree)}).json

    assert first == second
    assert hook.started[0][-3:] == ["--section", str(worktree), "claude-code"]
    assert json.loads((home / "sections" / "told.jsonl").read_text("utf-8").splitlines()[-1])["folder"] == str(worktree)


def test_a_folder_of_which_nothing_is_known_is_told_what_holds_everywhere(
    hook: Hook, home: Path, tmp_path: Path, commonplace: Command
) -> None:
    teach(home)
    commonplace.ok("memory", "note", "Answer me in two sentences.", "--global")
    hook.ready({"cwd": str(checkout(tmp_path / "shop", "shop"))})
    (tmp_path / "new").mkdir()
    said = hook("session-start", {"cwd": str(tmp_path / "new")}).json

    assert said["systemMessage"] == "commonplace: 2 lessons for every project"
    assert "two sentences" in said["hookSpecificOutput"]["additionalContext"]
    assert "pnpm" not in said["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("words", [("merge", "shop", "blog"), ("split", "/repo/blog")])
def test_after_a_decision_about_projects_nothing_older_is_told(
    words: tuple[str, ...], hook: Hook, home: Path, tmp_path: Path, commonplace: Command
) -> None:
    teach(home)
    shop = checkout(tmp_path / "shop", "shop")
    hook.ready({"cwd": str(shop)})
    if words[0] == "split":
        commonplace.ok("projects", "merge", "shop", "blog")
        hook.ready({"cwd": str(shop)})
    commonplace.ok("projects", *words)

    assert hook("session-start", {"cwd": str(shop)}).out == ""


def drop_the_line(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if "instead of npm" not in line)


def put_a_line_above(text: str) -> str:
    return "<!-- mine -->\n" + text


@pytest.mark.parametrize(("change", "is_there"), [(drop_the_line, False), (put_a_line_above, True)])
def test_an_older_section_tells_only_what_still_stands_in_the_memory(
    change: Callable[[str], str], is_there: bool, hook: Hook, home: Path, tmp_path: Path
) -> None:
    teach(home)
    shop = {"cwd": str(checkout(tmp_path / "shop", "shop"))}
    before = hook.ready(shop).json
    memory = home / "memories" / "MEMORY.md"
    memory.write_text(change(memory.read_text("utf-8")), "utf-8")
    after = hook("session-start", shop).json
    lessons = [line for line in after["hookSpecificOutput"]["additionalContext"].split("\n") if line.startswith("- L")]
    lines = memory.read_text("utf-8").split("\n")

    assert any("instead of npm" in line for line in lessons) is is_there
    assert before["systemMessage"] == "commonplace: 4 lessons for shop"
    assert after["systemMessage"] == f"commonplace: {4 if is_there else 3} lessons for shop"
    for line in lessons:
        place, _, text = line[3:].partition(" ")
        assert text[:20] in lines[int(place) - 1]
    assert len(hook.started) == 1


def note_by_hand(home: Path, _: Path, __: Command) -> None:
    (home / "memories" / "MEMORY.md").write_text("# mine now\n", "utf-8")


def change_settings(home: Path, _: Path, commonplace: Command) -> None:
    commonplace.ok("config", "set", "memory.use", "false")


def move_repository(_: Path, shop: Path, __: Command) -> None:
    config = shop / ".git" / "config"
    config.write_text(config.read_text("utf-8").replace("acme/shop", "acme/blog"), "utf-8")


def forget_pnpm(_: Path, __: Path, commonplace: Command) -> None:
    entries = commonplace.ok("memory", "list")["entries"]
    commonplace.ok(
        "memory", "forget", next(each["id"] for each in entries if "instead of npm" in each["text"]), "--yes"
    )


def pin_one(_: Path, __: Path, commonplace: Command) -> None:
    commonplace.ok("memory", "pin", commonplace.ok("memory", "list")["entries"][0]["id"])


@pytest.mark.parametrize("change", [note_by_hand, change_settings, move_repository, forget_pnpm, pin_one])
def test_whatever_a_section_depends_on_makes_it_anew(
    change: Callable[[Path, Path, Command], None], hook: Hook, home: Path, tmp_path: Path, commonplace: Command
) -> None:
    teach(home)
    shop = checkout(tmp_path / "shop", "shop")
    hook.ready({"cwd": str(shop)})
    assert section_cache.read(str(home), str(shop), "claude-code", os.environ) is not None

    change(home, shop, commonplace)
    assert section_cache.read(str(home), str(shop), "claude-code", os.environ) is None
    at_once, told = hook("session-start", {"cwd": str(shop)}).out, hook.ready({"cwd": str(shop)}).out
    fresh = commonplace.ok("memory", "prompt", "-C", shop)["text"]
    assert ("pnpm" in told) == ("pnpm" in fresh)
    assert "pnpm" in fresh or "pnpm" not in at_once
    if change is forget_pnpm:
        kept = b"".join(path.read_bytes() for path in (home / "sections").iterdir())
        assert "instead of npm" not in at_once + told
        assert b"instead of npm" not in kept


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"version": 1}', b"\xff", b'{"stamps": 3}'])
def test_a_damaged_section_is_made_anew(text: bytes, hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    first = hook.ready({"cwd": shop}).out
    for path in (home / "sections").glob("*.json"):
        path.write_bytes(text)

    assert hook("session-start", {"cwd": shop}).out == ""
    assert hook.ready({"cwd": shop}).out == first


def test_what_hooks_told_is_counted_by_the_next_run_and_known_to_the_doctor(
    hook: Hook, home: Path, tmp_path: Path, commonplace: Command
) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    hook.ready({"cwd": shop})
    for _ in range(2):
        hook("session-start", {"cwd": shop})
    commonplace.ok("memory", "run")

    entries = commonplace.ok("memory", "list")["entries"]
    assert {each["injected"] for each in entries if each["project"] == "github.com/acme/shop"} == {3}
    assert {each["injected"] for each in entries if each["project"] == "github.com/acme/blog"} == {0}
    assert section_cache.last_told(str(home))["claude-code"]["project"] == "shop"
    commonplace.ok("memory", "run")
    assert commonplace.ok("memory", "list")["entries"] == entries


def test_learning_starts_detached_and_not_again_for_a_while(
    hook: Hook, home: Path, tmp_path: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    teach(home)
    begun = {"cwd": str(tmp_path), "session_id": SESSION}
    hook.ready(begun)
    assert hook.started == []  # the tests' own setting turns the background off
    monkeypatch.setenv("COMMONPLACE_MEMORY_BACKGROUND", "true")
    commonplace.ok("memory", "run")  # makes the section anew
    for now in ("2026-11-15T06:00:00Z", "2026-11-15T06:09:59Z", "2026-11-15T06:10:00Z"):
        monkeypatch.setenv("COMMONPLACE_NOW", now)
        hook("session-start", begun)

    assert hook.started == [["worker", "--once", "--background", "--import", "--current", SESSION]] * 2


def test_the_process_that_a_hook_starts_imports_learns_and_keeps_sections_ready(
    home: Path, tmp_path: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = checkout(tmp_path / "shop", "shop")
    path = transcript(tmp_path / "user" / ".claude" / "projects" / "-repo-app")
    said = "please fix the login test. Always use pnpm instead of npm in this repo."
    text = path.read_text("utf-8").replace("please fix the login test", said).replace("/repo/app", str(shop))
    path.write_text(text, "utf-8")
    monkeypatch.setenv("COMMONPLACE_MEMORY_BACKGROUND", "true")
    monkeypatch.setenv("COMMONPLACE_NOW", "2026-11-15T18:00:00Z")
    report = commonplace.ok("worker", "--once", "--background", "--import")

    assert report["extracted"] == 1
    ready = section_cache.read(str(home), str(shop), "claude-code", os.environ)
    assert ready is not None
    assert "pnpm" in ready["text"]
    assert commonplace.ok("worker", "--once", "--background", "--import")["extracted"] == 0


def test_a_prompt_gets_the_lessons_it_is_about_once_if_the_person_wants_that(
    hook: Hook, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    asked = {"cwd": shop, "session_id": SESSION, "prompt": "should I use pnpm or npm in this repo?"}
    assert hook("user-prompt", asked).out == ""
    monkeypatch.setenv("COMMONPLACE_MEMORY_PROMPT_HITS", "true")
    said = hook("user-prompt", asked)

    told = said.json["hookSpecificOutput"]
    assert told["hookEventName"] == "UserPromptSubmit"
    assert "pnpm" in told["additionalContext"]
    assert told["additionalContext"].count("\n- ") <= 2
    assert is_memory_text(told["additionalContext"])
    assert hook("user-prompt", asked).out == ""  # it was told
    assert hook("user-prompt", {**asked, "session_id": "other", "prompt": "write a haiku about rain"}).out == ""
    hook.ready({"cwd": shop})
    assert hook("user-prompt", {**asked, "session_id": "third"}).out == ""  # it was told at the start


def test_the_hook_answers_without_loading_the_program(hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    worktree = str(checkout(tmp_path / "x1", "shop"))
    hook.ready({"cwd": shop})
    code = (
        "import sys; sys.argv = ['commonplace', 'mcp', 'hook', 'session-start']\n"
        "from commonplace.surfaces.cli import main; main()\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    # A process that the second one would start finds no program.
    code = f"import sys; sys.executable = {str(tmp_path / 'nothing')!r}\n{code}"
    words = [sys.executable, "-c", code]
    for folder in (shop, worktree):
        told = json.dumps({"cwd": folder}).encode()
        ran = subprocess.run(words, input=told, capture_output=True, check=True)

        assert b"pnpm" in ran.stdout
        loaded = set(ran.stderr.decode().split())
        assert not loaded & {"anyio", "asyncio", "click", "msgspec", "sqlite3", "subprocess", "commonplace.config"}


def test_without_a_memory_nothing_is_said(hook: Hook, home: Path) -> None:
    ran = hook("session-start", {"cwd": "/", "source": "startup"})

    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert not home.exists()


def test_a_session_that_ended_is_imported(hook: Hook, tmp_path: Path, commonplace: Command) -> None:
    path = transcript(tmp_path / "projects" / "-repo-app")
    ran = hook("session-end", {"transcript_path": str(path), "session_id": SESSION, "reason": "exit"})

    assert (ran.code, ran.out, ran.err) == (0, "", "")
    (thread,) = commonplace.ok("sessions", "list")["threads"]
    assert thread["thread_id"] == SESSION
    assert thread["source"] == "claude-code"
    assert hook("session-end", {"transcript_path": str(path)}).code == 0
    assert len(commonplace.ok("sessions", "list")["threads"]) == 1


@pytest.mark.parametrize("event", ["session-start", "user-prompt", "session-end"])
@pytest.mark.parametrize(
    "told",
    [b"", b"{", b"[]", b"\xff", {}, {"cwd": 3, "transcript_path": []}, {"cwd": "\0", "transcript_path": "/a\0b"},
     {"cwd": "not/absolute", "transcript_path": "/nothing/here.jsonl"}, {"cwd": "/nothing", "transcript_path": "/"}],
)  # fmt: skip
def test_a_hook_never_disturbs_the_session(event: str, told: Any, hook: Hook) -> None:
    ran = hook(event, told)

    assert ran.code == 0
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_settings_that_cannot_be_used_are_a_warning(hook: Hook, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("model = 3", "utf-8")
    path = transcript(tmp_path / "projects" / "-repo-app")
    started, ended = (hook(f"session-{each}", {"cwd": "/", "transcript_path": str(path)}) for each in ("start", "end"))

    assert (started.code, started.out, started.err) == (0, "", "")  # the process that it starts says so in its log
    assert (ended.code, ended.out) == (0, "")
    assert "config.toml" in ended.err
