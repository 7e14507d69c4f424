"""`commonplace mcp hook`: what Claude Code's sessions get at their start, and what becomes of them at their end."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import Command, Ran
from talking import checkout, teach

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


@pytest.mark.parametrize("event", ["session-start", "session-end"])
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
