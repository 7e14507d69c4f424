"""A person's own coding agent as a model: Claude Code or Codex, run once for each request, with their own login.

    claude -p --output-format json --tools "" …      the instructions as system prompt, the messages on stdin
    codex exec --json --output-schema F --sandbox read-only -

The program is found on PATH. It runs in an empty folder of its own (`MARK` stands in its name), without tools of its
own, hooks, servers and project instructions, and keeps no session; what a version keeps nevertheless is recognised by
the folder and never learned from. A cancelled request ends the program with everything that it started. What goes wrong
becomes one of our errors: logged out is `NotAuthorised`, a limit of the subscription `RateLimited`, with the seconds
until it is lifted where the agent says so.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

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
from commonplace.models.base import Completed, Event, ItemDone, Request, Usage
from commonplace.models.dialogue import Assistant, dialogue, plain_text
from commonplace.patterns import regex
from commonplace.protocol.items import Content
from commonplace.redact import redact

AgentName = Literal["claude-code", "codex"]
MARK: Final = "commonplace-reader-"
"""How the folder begins that an agent works in for us."""
DEFAULT: Final = "default"
"""The model that the agent would take by itself."""
OVERHEAD: Final[dict[AgentName, int]] = {"claude-code": 450, "codex": 2_600}
"""Tokens that an agent adds to a request; measured with Claude Code 2.1.197 and Codex 0.166."""
_MAX_OUTPUT: Final = 8 * 1024 * 1024
_QUOTED: Final = 200
_LOGGED_OUT: Final = regex(
    r"not logged in|please run /login|invalid api key|authentication|401|403|codex login|oauth", re.IGNORECASE
)
_LIMITED: Final = regex(
    r"usage limit|hit your (?:\w+ )?limit|limit reached|rate limit|\b429\b|too many requests", re.IGNORECASE
)
_TOO_LONG: Final = regex(r"prompt is too long|context window|context length|ran out of room", re.IGNORECASE)
_BUSY: Final = regex(r"overloaded|\b5\d\d\b|connection|timed? ?out|stream disconnected", re.IGNORECASE)
_EPOCH: Final = regex(r"\|(\d{10})\b")
_CLOCK: Final = regex(
    r"(?:resets|try again at)\s+(?:at\s+)?(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s?(?P<half>am|pm)\b", re.IGNORECASE
)
_PROGRAM: Final[dict[AgentName, str]] = {"claude-code": "claude", "codex": "codex"}
_TITLE: Final[dict[AgentName, str]] = {"claude-code": "Claude Code", "codex": "Codex"}
_LOGIN: Final[dict[AgentName, str]] = {"claude-code": "Run `claude` and /login", "codex": "Run `codex login`"}
_OFF: Final = (
    "hooks", "shell_tool", "unified_exec", "apps", "plugins", "goals", "view_image", "multi_agent", "tool_suggest",
)  # fmt: skip
"""Features of Codex that reading a session does not need."""


def find(agent: AgentName, environment: Mapping[str, str]) -> str | None:
    """Return where an agent's program is, by PATH; None if it is not there."""
    return shutil.which(_PROGRAM[agent], path=environment.get("PATH", os.defpath))


def overhead(name: str) -> int:
    """Return how many tokens a provider adds to a request because it is an agent."""
    return next((tokens for agent, tokens in OVERHEAD.items() if agent == name), 0)


def title(agent: AgentName) -> str:
    """Return what people call an agent."""
    return _TITLE[agent]


class AgentModel:
    """A `Model` that runs an agent for each request; its answers are whole, never streamed."""

    def __init__(self, agent: AgentName, environment: Mapping[str, str]) -> None:
        """Find the program (raises BadSetting: it is not on PATH)."""
        program = find(agent, environment)
        if program is None:
            raise BadSetting(
                f"{title(agent)} was named as the model, and there is no `{_PROGRAM[agent]}` on PATH.",
                hint="Install it, or name another model.",
            )
        self._agent: AgentName = agent
        self._program = program
        self._environment = {**environment, "CLAUDE_CODE_MAX_RETRIES": "2", "DISABLE_AUTOUPDATER": "1"}

    async def aclose(self) -> None:
        """Close nothing: every request has a program of its own."""

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the answer of the agent.

        Raises:
            ModelError: there is no answer.
        """
        with tempfile.TemporaryDirectory(prefix=MARK) as name:
            command = _command(self._agent, request, Path(name))
            code, out, err = await self._run(command, _prompt(request).encode(), name)
        read = _claude_answer if self._agent == "claude-code" else _codex_answer
        text, usage = read(out)
        if code != 0 or text is None:
            raise failure(self._agent, text=_complaint(self._agent, out) or err or f"exit code {code}")
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        yield ItemDone(msgspec.json.encode(item))
        if usage is not None:
            yield usage
        yield Completed(self._agent)

    async def _run(self, arguments: list[str], prompt: bytes, folder: str) -> tuple[int, str, str]:
        """Run the program to its end; a cancelled one is ended with everything that it started."""
        import anyio

        process = None
        with anyio.CancelScope(shield=True):  # a start that is cancelled would leave a process that nobody ends
            words = [self._program, *arguments]
            process = await anyio.open_process(words, cwd=folder, env=self._environment, start_new_session=True)
        assert process is not None
        kept: dict[str, bytes] = {"out": b"", "err": b""}

        async def read(name: str, stream: Any) -> None:
            async for chunk in stream:
                if len(kept[name]) < _MAX_OUTPUT:
                    kept[name] += chunk

        async def write() -> None:
            assert process.stdin is not None
            with contextlib.suppress(anyio.BrokenResourceError, BrokenPipeError):  # its own words tell why it ended
                await process.stdin.send(prompt)
            await process.stdin.aclose()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(read, "out", process.stdout)
                group.start_soon(read, "err", process.stderr)
                group.start_soon(write)
            code = await process.wait()
        except BaseException:
            with anyio.CancelScope(shield=True):
                _end(process.pid)
                await process.wait()
            raise
        return code, kept["out"].decode("utf-8", "replace"), kept["err"].decode("utf-8", "replace")


def _end(pid: int) -> None:
    """End a program and what it started; it leads a group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _command(agent: AgentName, request: Request, folder: Path) -> list[str]:
    schema = msgspec.json.encode(request.output_schema.schema).decode() if request.output_schema else ""
    named = request.model if request.model != DEFAULT else ""
    if agent == "claude-code":
        arguments = ["-p", "--output-format", "json", "--tools", "", "--safe-mode", "--no-session-persistence"]
        arguments += ["--strict-mcp-config", "--system-prompt", request.instructions]
        arguments += ["--effort", request.effort] if request.effort else []
        arguments += ["--json-schema", schema] if schema else []
        return arguments + (["--model", named] if named else [])
    (folder / "instructions.md").write_text(request.instructions, "utf-8")
    arguments = ["exec", "--json", "--sandbox", "read-only", "--skip-git-repo-check", "--ephemeral"]
    settings = {
        "project_doc_max_bytes": "0",
        "mcp_servers": "{}",
        "web_search": '"disabled"',
        "model_instructions_file": msgspec.json.encode(str(folder / "instructions.md")).decode(),
        **{f"features.{name}": "false" for name in _OFF},
        **({"model_reasoning_effort": f'"{request.effort}"'} if request.effort else {}),
    }
    for key, value in settings.items():
        arguments += ["-c", f"{key}={value}"]
    if schema:
        (folder / "schema.json").write_text(schema, "utf-8")
        arguments += ["--output-schema", str(folder / "schema.json")]
    return [*arguments, *(["--model", named] if named else []), "-"]


def _prompt(request: Request) -> str:
    """Return the messages of a request as one text; a dialogue is told as one."""
    turns = dialogue(request.input).turns
    texts = [
        (isinstance(turn, Assistant), plain_text([each for each in turn.parts if isinstance(each, Content)]))
        for turn in turns
    ]
    if len(texts) == 1:
        return texts[0][1]
    return "\n\n".join(f"[{'your answer' if is_own else 'message'}]\n{text}" for is_own, text in texts)


def _documents(out: str) -> list[dict[str, Any]]:
    """Return the JSON objects of an output, one a line."""
    found: list[dict[str, Any]] = []
    for line in out.split("\n"):
        try:
            value = msgspec.json.decode(line) if line.startswith("{") else None
        except (msgspec.DecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(cast("dict[str, Any]", value))
    return found


def _claude_answer(out: str) -> tuple[str | None, Usage | None]:
    result: dict[str, Any] = {}
    for each in _documents(out):
        result = each if each.get("type") == "result" else result
    if result.get("is_error") or not isinstance(result.get("result"), str):
        return None, None
    structured, usage = result.get("structured_output"), cast("dict[str, Any]", result.get("usage") or {})
    text = msgspec.json.encode(structured).decode() if isinstance(structured, dict) else str(result["result"])
    cached = _count(usage, "cache_read_input_tokens")
    told = _count(usage, "input_tokens") + cached + _count(usage, "cache_creation_input_tokens")
    said = _count(usage, "output_tokens")
    return text, Usage(told, cached, said, 0, told + said)


def _codex_answer(out: str) -> tuple[str | None, Usage | None]:
    text: str | None = None
    usage: Usage | None = None
    for event in _documents(out):
        item = cast("dict[str, Any]", event.get("item") or {})
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            text = str(item.get("text", ""))
        elif event.get("type") == "turn.completed":
            counted = cast("dict[str, Any]", event.get("usage") or {})
            told, said = _count(counted, "input_tokens"), _count(counted, "output_tokens")
            usage = Usage(
                told,
                _count(counted, "cached_input_tokens"),
                said,
                _count(counted, "reasoning_output_tokens"),
                told + said,
            )
        elif event.get("type") == "turn.failed":
            return None, usage
    return text, usage


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _complaint(agent: AgentName, out: str) -> str:
    """Return what an agent says went wrong."""
    for event in reversed(_documents(out)):
        if agent == "claude-code" and event.get("type") == "result":
            status = event.get("api_error_status")
            return f"{event.get('result', '')}" + (f" (status {status})" if status else "")
        if event.get("type") in ("turn.failed", "error"):
            error = event.get("error")
            inner = cast("dict[str, Any]", error) if isinstance(error, dict) else event
            return str(inner.get("message", ""))
    return ""


def failure(agent: AgentName, text: str, now: datetime | None = None) -> ModelError:
    """Return the error that an agent's words amount to."""
    who = title(agent)
    line = " ".join(redact(text[-4_000:]).split())
    said = f"It says: “{line if len(line) <= _QUOTED else line[: _QUOTED - 1] + '…'}”"
    facts: dict[str, Any] = {"provider": agent}
    if _LIMITED.search(line):
        wait = _wait(line, now or datetime.now().astimezone())
        hint = "Run the command again when the limit is lifted; what was read is kept."
        return RateLimited(f"Your limit at {who} is reached. {said}", hint=hint, retry_after=wait, **facts)
    if _TOO_LONG.search(line):
        return ContextTooLong(f"The session does not fit the window of {who}. {said}", hint="It is cut.", **facts)
    if _LOGGED_OUT.search(line):
        return NotAuthorised(f"{who} is not logged in. {said}", hint=f"{_LOGIN[agent]}, then try again.", **facts)
    if "unknown option" in line or "unexpected argument" in line:
        return RequestRefused(f"This version of {who} is too old. {said}", hint="Update it.", **facts)
    if _BUSY.search(line):
        return ModelUnavailable(f"{who} failed. {said}", hint="Try again later.", **facts)
    return BadAnswer(f"{who} gave no answer. {said}", hint="Try again, or use another model.", **facts)


def _wait(line: str, now: datetime) -> float | None:
    """Return the seconds until a limit is lifted, if an agent says when."""
    if found := _EPOCH.search(line):
        return max(float(found[1]) - now.timestamp(), 61.0)
    if found := _CLOCK.search(line):
        hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
        when = now.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        when += timedelta(days=1) if when <= now else timedelta()
        return max((when - now).total_seconds(), 61.0)
    return None
