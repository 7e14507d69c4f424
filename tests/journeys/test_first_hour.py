"""The first hour of a new user: install, set up, a session in each agent, and the next one knows what they taught.

The whole journey drives the real Codex and the real Claude Code with the program installed from its wheel; it is long
and runs in `make soak`. The short one plays the agents' part itself and runs in `make test`.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
import venv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import Command
from real_agents import Person, located
from talking import checkout

from anchors.scripted_messages import ScriptedMessages, say
from anchors.scripted_responses import ScriptedResponses, reply
from commonplace.app import client_hooks
from ledgers import Script, assistant, user

ROOT = Path(__file__).parent.parent.parent
CODEX_SAID = "Always use pnpm instead of npm in this repo."
CLAUDE_SAID = "In this project we never commit straight to main."
SETTINGS = '{\n    "cleanupPeriodDays": 90,\n    "hooks": {"Stop": []}\n}\n'


class LenientResponses(ScriptedResponses):
    """A script of which not all is asked for: in a terminal, Codex also asks for titles, as often as it likes."""

    def _check(self) -> None:
        pass


def config(base_url: str, folder: Path) -> str:
    """Codex's settings as the person wrote them."""
    return f"""# mine, do not touch
model = "gpt-5.5"   # the good one
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.mock]
name = "mock"
base_url = "{base_url}"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

[analytics]
enabled = false

[projects."{folder}"]
trust_level = "trusted"
"""


def installed(folder: Path) -> Path:
    """Build the wheel, install it into an environment of its own, and return the command."""
    import test_wheel

    built = test_wheel.run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv")
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(str(Path(pytest.__file__).parent.parent), "utf-8")
    pip = (sys.executable, "-m", "pip", "--python", folder / "venv" / "bin" / "python", "install")
    done = test_wheel.run(*pip, "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "venv" / "bin" / "commonplace"


def at(hours: float) -> dict[str, str]:
    """The variable that makes our program believe it is some hours later."""
    now = datetime.now(UTC) + timedelta(hours=hours)
    return {"COMMONPLACE_NOW": now.strftime("%Y-%m-%dT%H:%M:%SZ")}


@pytest.mark.anchor
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_the_first_hour_with_the_real_agents(tmp_path_factory: pytest.TempPathFactory) -> None:
    agents = located()
    if isinstance(agents, str):
        pytest.skip(agents)
    root = tmp_path_factory.mktemp("journey")
    person = Person(root, *agents)
    ours = person.home / ".commonplace"
    program = installed(root)
    script = [reply("Done."), reply("Done."), *[reply("That is all.")] * 4]
    with LenientResponses(script) as responses, ScriptedMessages([[say("Done.")]] * 2) as messages:
        claude = {"ANTHROPIC_BASE_URL": messages.base_url}
        files = {
            ".codex/config.toml": config(responses.base_url, person.cwd),
            ".claude/settings.json": SETTINGS,
            ".claude.json": '{"hasCompletedOnboarding": true}\n',
        }
        person.move_in(files)

        set_up_and_undo(person, program)

        # Set up: each agent's files change, and nothing else.
        done = json.loads(person.run(program, "setup", "--yes", "--json"))
        assert {row["agent"]: row["state"] for row in done["agents"] if row["found"]} == {
            "codex": "done", "claude-code": "done",
        }  # fmt: skip
        (command,) = person.trust_hooks()
        assert command == f"{program} mcp hook session-start"

        # A session in each agent; both teach something, and neither is told anything yet.
        person.ask_codex(f"fix the failing checkout test. {CODEX_SAID}")
        person.ask_claude(f"fix the login test. {CLAUDE_SAID}", claude)
        person.await_learning(ours)
        assert "<commonplace_memory" not in json.dumps(responses.inputs()) + json.dumps(messages.requests)

        # Seven hours later a session starts, and learning with it: nothing is started by hand.
        person.ask_codex("what is next?", at(7))
        person.await_learning(ours)
        told = json.loads(person.run(program, "memory", "list", "--json"))["entries"]
        texts = "\n".join(each["text"] for each in told)
        assert CODEX_SAID in texts
        assert CLAUDE_SAID in texts

        # The next session of each is told what both taught; the person sees one line about it.
        events = person.ask_claude("how do I run the tests?", claude | at(7.5))
        said = json.dumps(messages.requests[-1]["messages"])
        assert CODEX_SAID in said
        assert CLAUDE_SAID in said
        assert "oai-mem-citation" not in said
        answers = [json.loads(event["stdout"]) for event in events if event.get("subtype") == "hook_response"]
        line = f"commonplace: {len(told)} lessons for shop"
        assert line in {answer.get("systemMessage") for answer in answers}
        screen = person.see_codex("how do I run the tests?", (line, "That is all."), at(7.5))
        assert line in screen, screen
        assert "That is all." in screen
        shown = [text for text in map(json.dumps, responses.inputs()) if "how do I run" in text]
        assert any(CODEX_SAID in text and CLAUDE_SAID in text for text in shown)
        person.await_learning(ours)

        health = {row["name"]: row["detail"] for row in json.loads(person.run(program, "doctor", "--json"))["checks"]}
        assert health["codex"].startswith("server, hook, trusted, last told ")
        assert health["claude-code"].startswith("server, hook, tools allowed, last told ")

        # Take it back: what the agents themselves wrote since stays, and nothing of ours does.
        undone = json.loads(person.run(program, "setup", "--undo", "--yes", "--json"))
        assert {row["state"] for row in undone["agents"] if row["found"]} == {"undone"}
    check_undone(person, files)
    shutil.rmtree(root, ignore_errors=True)


def set_up_and_undo(person: Person, program: Path) -> None:
    """Set up and take it back at once: every file is as it was, byte for byte, and there is no other one."""
    before = everything_below(person.home)
    person.run(program, "setup", "--yes", "--no-learn")
    assert everything_below(person.home) != before
    person.run(program, "setup", "--undo", "--yes")
    assert everything_below(person.home) == before


def everything_below(folder: Path) -> dict[str, bytes | None]:
    """Return the bytes of every file below a folder, and None for each folder; our own home does not count."""
    found = sorted(path for path in folder.rglob("*") if ".commonplace" not in path.relative_to(folder).parts)
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in found}


def check_undone(person: Person, files: dict[str, str]) -> None:
    """Check that the agents' files are as they were, but for what the agents themselves wrote."""
    assert (person.home / ".claude/settings.json").read_text("utf-8") == SETTINGS
    assert not (person.home / ".codex/hooks.json").exists()
    left = (person.home / ".codex/config.toml").read_text("utf-8")
    assert left.startswith(files[".codex/config.toml"])  # Codex added whom the person trusts
    assert "mcp_servers" not in left
    state = json.loads((person.home / ".claude.json").read_text("utf-8"))
    assert "commonplace" not in state.get("mcpServers", {})


def test_the_first_hour_without_the_agents(
    commonplace: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = tmp_path / "user"
    files = {".codex/config.toml": config("http://127.0.0.1:9", tmp_path), ".claude/settings.json": SETTINGS}
    for name, text in files.items():
        (person / name).parent.mkdir(parents=True)
        (person / name).write_text(text, "utf-8")
    shop = checkout(tmp_path / "shop", "shop")
    before = everything_below(person)
    started: list[list[str]] = []

    def note(words: list[str], *_: object) -> int:
        started.append(words)
        return 1

    monkeypatch.setattr(client_hooks, "_detached", note)
    monkeypatch.setenv("COMMONPLACE_NOW", "2026-01-01T00:00:00Z")
    commonplace.ok("setup", "--yes")

    def start(transcript: str) -> dict[str, Any]:
        told = json.dumps({"cwd": str(shop), "transcript_path": transcript}).encode()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(told), isatty=lambda: False))
        out = commonplace("mcp", "hook", "session-start").out
        return json.loads(out) if out else {}

    rollout = str(person / ".codex" / "sessions" / "rollout-x.jsonl")
    assert start(rollout) == {}
    assert [words[4] for words in started] == ["worker"]
    script = Script("0198c0de-0000-7000-8000-0000000000d1", cwd=str(shop))
    script.turn(user(f"fix the failing test. {CODEX_SAID}"), assistant("Done.")).write_home(person / ".codex")
    monkeypatch.setenv("COMMONPLACE_MEMORY_BACKGROUND", "true")
    later = json.loads(next((person / ".codex").rglob("rollout-*.jsonl")).read_text("utf-8").splitlines()[0])
    now = datetime.fromisoformat(later["timestamp"]) + timedelta(hours=7)
    monkeypatch.setenv("COMMONPLACE_NOW", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
    assert commonplace.ok("worker", "--once", "--background", "--import")["extracted"] == 1

    told = start(rollout)
    assert told["systemMessage"] == "commonplace: 1 lesson for shop"
    assert CODEX_SAID in told["hookSpecificOutput"]["additionalContext"]
    commonplace.ok("setup", "--undo", "--yes")
    shutil.rmtree(person / ".codex" / "sessions")  # what the agent wrote itself
    assert everything_below(person) == before
