"""Agents as models: which program is run, what its words mean, and what is left when it is stopped."""

from __future__ import annotations

import json
import os
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from commonplace.config import load
from commonplace.errors import (
    BadAnswer,
    BadSetting,
    ContextTooLong,
    ModelError,
    ModelUnavailable,
    NotAuthorised,
    RateLimited,
    RequestRefused,
)
from commonplace.models import agents
from commonplace.models.agents import AgentModel, AgentName
from commonplace.models.base import Completed, Event, ItemDone, Request, Usage
from commonplace.models.providers import choose
from waiting import until

NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)
MESSAGE = json.dumps(
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "the session"}]}
).encode()


@pytest.mark.parametrize(
    ("said", "error", "wait"),
    [
        ("Claude AI usage limit reached|1794760200", RateLimited, 1794760200 - NOW.timestamp()),
        ("You've hit your session limit · resets 4pm", RateLimited, 5_400.0),
        ("You’ve hit your usage limit. Upgrade to Pro or try again at 2:35 PM.", RateLimited, 300.0),
        ("You've hit your limit · resets at 2am", RateLimited, 41_400.0),
        ("API Error: Request rejected (429) · usage limit reached", RateLimited, None),
        ("exceeded retry limit, last status: 429 Too Many Requests", RateLimited, None),
        ("Not logged in · Please run /login", NotAuthorised, None),
        ("Invalid API key · Fix external API key (status 401)", NotAuthorised, None),
        ("unexpected status 401 Unauthorized: bad key", NotAuthorised, None),
        ("Prompt is too long", ContextTooLong, None),
        ("Codex ran out of room in the model's context window.", ContextTooLong, None),
        ("error: unknown option '--safe-mode'", RequestRefused, None),
        ("error: unexpected argument '--ephemeral' found", RequestRefused, None),
        ("API Error: 529 overloaded", ModelUnavailable, None),
        ("stream disconnected before completion", ModelUnavailable, None),
        ("something else", BadAnswer, None),
    ],
)
def test_what_an_agent_says_becomes_an_error_of_ours(said: str, error: type[ModelError], wait: float | None) -> None:
    found = agents.failure("claude-code", said, NOW)

    assert (error, wait) == (type(found), found.retry_after)
    assert said[:60] in found.message
    assert found.hint


def program(folder: Path, name: str, script: str) -> dict[str, str]:
    """A program on PATH."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


async def asked(agent: AgentName, environment: dict[str, str]) -> list[Event]:
    request = Request(model="default", input=(MESSAGE,), instructions="Read.")
    async with aclosing(AgentModel(agent, environment).stream(request)) as events:
        return [event async for event in events]


RESULT = {"type": "result", "is_error": False, "result": "hello", "usage": {"input_tokens": 5, "output_tokens": 2}}
LINES = (
    {"type": "item.completed", "item": {"type": "agent_message", "text": "hello"}},
    {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 2}},
)


@pytest.mark.parametrize(
    ("agent", "name", "said"),
    [("claude-code", "claude", json.dumps(RESULT)), ("codex", "codex", "\n".join(map(json.dumps, LINES)))],
)
@pytest.mark.anyio
async def test_an_answer_and_its_cost_are_read(tmp_path: Path, agent: AgentName, name: str, said: str) -> None:
    (tmp_path / "said").write_text(said)
    environment = program(tmp_path, name, f'pwd > "{tmp_path}/cwd"; cat > "{tmp_path}/in"; cat "{tmp_path}/said"')
    item, usage, end = await asked(agent, environment)

    assert isinstance(item, ItemDone)
    assert "hello" == json.loads(item.item)["content"][0]["text"]
    assert Usage(5, 0, 2, 0, 7) == usage
    assert isinstance(end, Completed)
    assert "the session" == (tmp_path / "in").read_text()
    assert Path((tmp_path / "cwd").read_text().strip()).name.startswith(agents.MARK)
    assert not Path((tmp_path / "cwd").read_text().strip()).exists()


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("exit 3", BadAnswer),
        ("echo not logged in >&2; exit 1", NotAuthorised),
        ("echo '{broken'; exit 0", BadAnswer),
        ("exec <&-; exit 1", BadAnswer),
    ],
)
@pytest.mark.parametrize(("agent", "name"), [("claude-code", "claude"), ("codex", "codex")])
@pytest.mark.anyio
async def test_a_program_that_fails_is_explained(
    tmp_path: Path, agent: AgentName, name: str, script: str, error: type[ModelError]
) -> None:
    with pytest.raises(error):
        await asked(agent, program(tmp_path, name, script))


def has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.anyio
async def test_a_cancelled_request_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    script = f'sleep 600 & echo $! > "{tmp_path}/child.new"; mv "{tmp_path}/child.new" "{tmp_path}/child"; wait'
    environment = program(tmp_path, "claude", script)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(asked, "claude-code", environment)
            await until((tmp_path / "child").exists)
            group.cancel_scope.cancel()
        child = int((tmp_path / "child").read_text())
        await until(lambda: has_ended(child))


def test_an_agent_reads_sessions_and_runs_no_agent_of_ours(tmp_path: Path) -> None:
    settings = load({"COMMONPLACE_HOME": str(tmp_path)})
    found = choose(settings, "claude-code:sonnet", for_reading=True)

    assert ("claude-code", "sonnet", "agent") == (found.name, found.slug, found.provider.api)
    assert "default" == choose(settings, "codex", for_reading=True).slug
    for name in ("claude-code", "codex:gpt-5.4"):
        with pytest.raises(BadSetting, match="reads sessions"):
            choose(settings, name)
