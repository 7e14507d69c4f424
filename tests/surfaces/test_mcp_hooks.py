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
    """Calls a hook as Claude Code does: with JSON on stdin."""

    def __init__(self, commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        self._commonplace = commonplace
        self._monkeypatch = monkeypatch

    def __call__(self, event: str, told: Any, *options: str) -> Ran:
        data = told if isinstance(told, bytes) else json.dumps(told).encode()
        self._monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        return self._commonplace("mcp", "hook", event, *options)


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
    ran = hook("session-start", {"cwd": str(shop), "session_id": SESSION, "source": "startup"})

    said = json.loads(ran.out)["hookSpecificOutput"]
    assert (ran.code, ran.err) == (0, "")
    assert said["hookEventName"] == "SessionStart"
    assert is_memory_text(said["additionalContext"])
    assert "pnpm" in said["additionalContext"]
    assert "release branch" not in said["additionalContext"]
    assert citations.OPEN not in said["additionalContext"]  # Claude Code would show it


def test_a_session_that_may_write_notes_is_told_how(hook: Hook, home: Path) -> None:
    teach(home)

    assert "add_ad_hoc_note" in hook("session-start", {"cwd": "/"}, "--allow-notes").out
    assert "add_ad_hoc_note" not in hook("session-start", {"cwd": "/"}).out


def test_the_person_sees_one_line(hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = checkout(tmp_path / "shop", "shop")

    assert hook("session-start", {"cwd": str(shop)}).json["systemMessage"] == "commonplace: 4 lessons for shop"


def test_codex_is_asked_for_citations_and_claude_code_is_not(hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    codex = hook("session-start", {"cwd": shop, "transcript_path": "/x/sessions/rollout-2026-x.jsonl"}).json
    claude = hook("session-start", {"cwd": shop, "transcript_path": "/x/projects/-x/6ac42589.jsonl"}).json

    assert citations.OPEN in codex["hookSpecificOutput"]["additionalContext"]
    assert citations.OPEN not in claude["hookSpecificOutput"]["additionalContext"]


def test_the_second_session_in_a_folder_is_answered_from_what_is_ready(
    hook: Hook, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    first = hook("session-start", {"cwd": shop})
    monkeypatch.setattr(client_hooks, "made_section", None)  # calling it would fail
    second = hook("session-start", {"cwd": shop})

    assert (second.out, second.err) == (first.out, "")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home / "sections").iterdir()} == {0o600}


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
    hook("session-start", {"cwd": str(shop)})
    assert section_cache.read(str(home), str(shop), "claude-code", os.environ) is not None

    change(home, shop, commonplace)
    assert section_cache.read(str(home), str(shop), "claude-code", os.environ) is None
    told = hook("session-start", {"cwd": str(shop)}).out
    fresh = commonplace.ok("memory", "prompt", "-C", shop)["text"]
    assert ("pnpm" in told) == ("pnpm" in fresh)
    if change is forget_pnpm:
        kept = b"".join(path.read_bytes() for path in (home / "sections").iterdir())
        assert "instead of npm" not in told
        assert b"instead of npm" not in kept


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"version": 1}', b"\xff", b'{"stamps": 3}'])
def test_a_damaged_section_is_made_anew(text: bytes, hook: Hook, home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    first = hook("session-start", {"cwd": shop}).out
    for path in (home / "sections").glob("*.json"):
        path.write_bytes(text)

    assert hook("session-start", {"cwd": shop}).out == first


def test_what_hooks_told_is_counted_by_the_next_run_and_known_to_the_doctor(
    hook: Hook, home: Path, tmp_path: Path, commonplace: Command
) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    for _ in range(3):
        hook("session-start", {"cwd": shop})
    commonplace.ok("memory", "run")

    entries = commonplace.ok("memory", "list")["entries"]
    assert {each["injected"] for each in entries if each["project"] == "github.com/acme/shop"} == {3}
    assert {each["injected"] for each in entries if each["project"] == "github.com/acme/blog"} == {0}
    assert section_cache.last_told(str(home))["claude-code"]["project"] == "shop"
    commonplace.ok("memory", "run")
    assert commonplace.ok("memory", "list")["entries"] == entries


def test_learning_starts_detached_and_not_again_for_a_while(
    hook: Hook, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def record(words: list[str], folder: str, environment: Mapping[str, str]) -> int:
        assert environment["COMMONPLACE_HOME"] == folder == str(home)
        started.append(words)
        return 1

    teach(home)
    monkeypatch.setattr(client_hooks, "_detached", record)
    hook("session-start", {"cwd": str(tmp_path), "session_id": SESSION})
    assert started == []  # the tests' own setting turns the background off
    monkeypatch.setenv("COMMONPLACE_MEMORY_BACKGROUND", "true")
    for now in ("2026-11-15T06:00:00Z", "2026-11-15T06:09:59Z", "2026-11-15T06:10:00Z"):
        monkeypatch.setenv("COMMONPLACE_NOW", now)
        hook("session-start", {"cwd": str(tmp_path), "session_id": SESSION})

    assert [words[3:] for words in started] == [
        ["commonplace", "worker", "--once", "--background", "--import", "--current", SESSION]
    ] * 2


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
    hook("session-start", {"cwd": shop})
    assert hook("user-prompt", {**asked, "session_id": "third"}).out == ""  # it was told at the start


def test_the_hook_answers_without_loading_the_program(home: Path, tmp_path: Path) -> None:
    teach(home)
    shop = str(checkout(tmp_path / "shop", "shop"))
    code = (
        "import sys; sys.argv = ['commonplace', 'mcp', 'hook', 'session-start']\n"
        "from commonplace.surfaces.cli import main; main()\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    words = [sys.executable, "-c", code]
    data = json.dumps({"cwd": shop}).encode()
    first, second = (subprocess.run(words, input=data, capture_output=True, check=True) for _ in range(2))

    assert first.stdout == second.stdout
    loaded = set(second.stderr.decode().split())
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
    for event in ("session-start", "session-end"):
        ran = hook(event, {"cwd": "/", "transcript_path": str(path)})
        assert (ran.code, ran.out) == (0, "")
        assert "config.toml" in ran.err
