"""Drive the real Codex CLI, pinned and offline, against a scripted model.

The binary lives in a cache outside the tree (`make anchors` fetches it); `locate` finds it or says why
not, so that tests can skip with the reason. A `CodexHome` is a throw-away CODEX_HOME and HOME whose
configuration names one provider on loopback; every stray connection is sent to a dead proxy port, so
nothing leaves the machine.

Two ways in: `run_exec` for `codex exec [resume ID|fork ID] PROMPT`, and `AppServer`, a client of the line
JSON-RPC that `codex app-server` speaks on stdio. The client waits for messages on a condition, never by
sleeping: a reader thread appends what arrives to one list, and `request`, `wait` and `finish_turn` look
for what they want in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]

PINNED = "0.166.0"
"""The version whose behaviour the tests state; another one is reported as missing."""

DEAD_PROXY = "http://127.0.0.1:9"
"""Where requests to anything but loopback are sent: the discard port, on which nothing listens."""


class CodexError(AssertionError):
    """Codex answered a request with an error or ended when it should not have."""


@dataclass(frozen=True)
class Missing:
    """Why the binary cannot be used."""

    reason: str


def locate(cache: Path | None = None) -> Path | Missing:
    """Return the native binary of the pinned version, or the reason it is not there."""
    chosen = cache or Path(os.environ.get("COMMONPLACE_ANCHORS") or "~/.cache/commonplace-anchors").expanduser()
    modules = chosen / "codex" / "node_modules" / "@openai"
    manifest = modules / "codex" / "package.json"
    if not manifest.is_file():
        return Missing(f"no Codex under {chosen} (run `make anchors`)")
    version = cast("Json", json.loads(manifest.read_text("utf-8"))).get("version")
    if version != PINNED:
        return Missing(f"Codex {version} is in {chosen}, the tests are about {PINNED}")
    # The npm wrapper is a node script; killing it would leave the real process alive, so we start that one.
    found = sorted(modules.glob("codex-*/vendor/*/bin/codex"))
    return found[0] if found else Missing(f"the Codex package in {chosen} has no native binary for this platform")


@dataclass(frozen=True)
class CodexHome:
    """A throw-away home below `root`: `codex` is CODEX_HOME, `home` is HOME, `demo` is the cwd."""

    binary: Path
    root: Path

    @property
    def codex_home(self) -> Path:
        """CODEX_HOME: configuration, sessions, databases."""
        return self.root / "codex"

    @property
    def cwd(self) -> Path:
        """The working directory of every thread."""
        return self.root / "demo"

    def rollouts(self) -> list[Path]:
        """Return the rollout files, oldest first by name."""
        return sorted(self.codex_home.glob("sessions/*/*/*/rollout-*.jsonl"), key=lambda path: path.name)

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the child: nothing of the caller's but PATH."""
        return {
            "CODEX_HOME": str(self.codex_home),
            "HOME": str(self.root / "home"),
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "TZ": "Etc/UTC",
            "HTTP_PROXY": DEAD_PROXY,
            "HTTPS_PROXY": DEAD_PROXY,
            "ALL_PROXY": DEAD_PROXY,
            "NO_PROXY": "127.0.0.1",
        }


def make_home(
    binary: Path,
    root: Path,
    base_url: str,
    *,
    provider_name: str = "mock",
    settings: Mapping[str, str] | None = None,
    tables: str = "",
) -> CodexHome:
    """Create the folders and `config.toml`.

    `settings` are top-level keys with their values as TOML text; `tables` is TOML appended at the end.
    A second call for the same root only rewrites the configuration (a new port for a resumed thread).
    """
    home = CodexHome(binary, root)
    for folder in (home.codex_home, root / "home", home.cwd):
        folder.mkdir(parents=True, exist_ok=True)
    top = {
        "model": '"gpt-5.5"',
        "model_provider": '"mock"',
        "approval_policy": '"never"',
        "sandbox_mode": '"danger-full-access"',
        **(settings or {}),
    }
    lines = [f"{key} = {value}" for key, value in top.items()]
    lines += [
        "[model_providers.mock]",
        f'name = "{provider_name}"',
        f'base_url = "{base_url}"',
        'wire_api = "responses"',
        "requires_openai_auth = false",
        "request_max_retries = 0",
        "stream_max_retries = 0",
        "supports_websockets = false",
        "[analytics]",
        "enabled = false",
        tables,
    ]
    (home.codex_home / "config.toml").write_text("\n".join(lines) + "\n", "utf-8")
    return home


@dataclass(frozen=True)
class ExecResult:
    """What one `codex exec` run left behind."""

    code: int
    events: list[Json]
    stderr: str

    @property
    def thread_id(self) -> str:
        """The id of the thread the run was about."""
        started = [event for event in self.events if event.get("type") == "thread.started"]
        if not started:
            raise CodexError(f"no thread was started: {self.stderr[-2000:]}")
        return str(started[0]["thread_id"])


def run_exec(
    home: CodexHome,
    prompt: str,
    *,
    resume: str | None = None,
    fork: str | None = None,
    options: Sequence[str] = (),
    timeout: float = 60.0,
) -> ExecResult:
    """Run one turn with `codex exec --json` and return its events."""
    command = [str(home.binary), "exec", "--skip-git-repo-check", "--json", "-C", str(home.cwd), *options]
    if resume is not None:
        command += ["resume", resume]
    elif fork is not None:
        command += ["fork", fork]
    done = subprocess.run(
        [*command, prompt],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=home.environment(),
        cwd=home.cwd,
        timeout=timeout,
        check=False,
    )
    events = [cast("Json", json.loads(line)) for line in done.stdout.decode().splitlines() if line.startswith("{")]
    return ExecResult(done.returncode, events, done.stderr.decode(errors="replace"))


@dataclass
class _Inbox:
    """Messages from the server in order of arrival, guarded by `changed`."""

    messages: list[Json] = field(default_factory=list[Json])
    ended: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)


class AppServer:
    """A client of `codex app-server`; use as a context manager."""

    def __init__(self, home: CodexHome, *, timeout: float = 30.0) -> None:
        self._home = home
        self._timeout = timeout
        self._inbox = _Inbox()
        self._next_id = 0
        self._stderr = (home.root / "app-server.stderr").open("ab")
        self._process = subprocess.Popen(
            [str(home.binary), "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=home.environment(),
            cwd=home.cwd,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self.log: list[Json] = []
        """Both directions of the talk, as the recordings keep it."""

    def __enter__(self) -> AppServer:
        self._reader.start()
        info = {"name": "harness", "title": "harness", "version": "0"}
        self.request("initialize", {"clientInfo": info, "capabilities": {"experimentalApi": True}})
        self._send({"method": "initialized"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it may have been killed, as some scripts intend
                self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join(60)
        self._stderr.close()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would."""
        self._process.kill()
        self._process.wait(60)

    def request(self, method: str, params: Json) -> Json:
        """Send a request and return its result.

        Raises:
            CodexError: the server answered with an error.
            TimeoutError: it did not answer.
        """
        self._next_id += 1
        number = self._next_id
        self._send({"id": number, "method": method, "params": params})
        found = self._find(lambda message: message.get("id") == number and "method" not in message, 0, method)
        if "error" in found:
            raise CodexError(f"{method}: {json.dumps(found['error'])}")
        return cast("Json", found["result"])

    def mark(self) -> int:
        """Return the current position in the stream of messages, for `wait`."""
        with self._inbox.changed:
            return len(self._inbox.messages)

    def wait(self, method: str, accept: Callable[[Json], bool] = lambda params: True, *, since: int = 0) -> Json:
        """Return the params of the first notification of that name that `accept` likes.

        Raises:
            TimeoutError: none came.
        """
        found = self._find(
            lambda message: message.get("method") == method and accept(cast("Json", message.get("params", {}))),
            since,
            method,
        )
        return cast("Json", found["params"])

    def start_thread(self, **params: Any) -> str:
        """Start a thread in the home's working directory and return its id."""
        result = self.request("thread/start", {"cwd": str(self._home.cwd), **params})
        return str(result["thread"]["id"])

    def start_turn(self, thread_id: str, text: str, **params: Any) -> str:
        """Start a turn and return its id without waiting for its end."""
        inputs = params.pop("input", [{"type": "text", "text": text}])
        result = self.request("turn/start", {"threadId": thread_id, "input": inputs, **params})
        return str(result["turn"]["id"])

    def turn(self, thread_id: str, text: str, **params: Any) -> str:
        """Run a whole turn and return its id."""
        turn_id = self.start_turn(thread_id, text, **params)
        self.finish_turn(thread_id, turn_id)
        return turn_id

    def finish_turn(self, thread_id: str, turn_id: str) -> Json:
        """Wait until a turn is over, however it ended, and return it."""

        def over(params: Json) -> bool:
            return params.get("threadId") == thread_id and params["turn"]["id"] == turn_id

        return cast("Json", self.wait("turn/completed", over)["turn"])

    def steer(self, thread_id: str, turn_id: str, text: str, **params: Any) -> None:
        """Add user input to a running turn."""
        inputs = [{"type": "text", "text": text}]
        self.request("turn/steer", {"threadId": thread_id, "expectedTurnId": turn_id, "input": inputs, **params})

    def interrupt(self, thread_id: str, turn_id: str) -> None:
        """Interrupt a running turn and wait until it is over."""
        self.request("turn/interrupt", {"threadId": thread_id, "turnId": turn_id})
        self.finish_turn(thread_id, turn_id)

    def compact(self, thread_id: str) -> None:
        """Ask for a compaction and wait until the turn that does it is over."""
        since = self.mark()
        self.request("thread/compact/start", {"threadId": thread_id})
        self.wait("turn/completed", lambda params: params.get("threadId") == thread_id, since=since)

    def fork(self, thread_id: str, **params: Any) -> str:
        """Fork a thread (`lastTurnId` or `beforeTurnId` cut it) and return the new id."""
        return str(self.request("thread/fork", {"threadId": thread_id, **params})["thread"]["id"])

    def resume(self, thread_id: str, **params: Any) -> str:
        """Load a thread from its file and return its id."""
        return str(self.request("thread/resume", {"threadId": thread_id, **params})["thread"]["id"])

    def revert(self, thread_id: str, before_turn_id: str) -> Json:
        """Drop a turn and all later ones of a paginated thread."""
        return self.request("thread/revert", {"threadId": thread_id, "beforeTurnId": before_turn_id})

    def rollback(self, thread_id: str, turns: int) -> Json:
        """Drop the last turns (the older method; newer binaries may not know it)."""
        return self.request("thread/rollback", {"threadId": thread_id, "numTurns": turns})

    def _send(self, message: Json) -> None:
        stdin = self._process.stdin
        if stdin is None:
            raise CodexError("the app server has no stdin")
        self.log.append({"dir": "out", **message})
        stdin.write(json.dumps(message).encode() + b"\n")
        stdin.flush()

    def _read(self) -> None:
        stdout = self._process.stdout
        if stdout is None:
            raise CodexError("the app server has no stdout")
        for line in stdout:
            message = cast("Json", json.loads(line))
            if "id" in message and "method" in message:
                # With approvals off the server has nothing to ask; refusing keeps it from waiting for ever.
                self._send(
                    {
                        "id": message["id"],
                        "error": {"code": -32601, "message": "not supported by the harness"},
                    }
                )
            self.log.append({"dir": "in", **message})
            with self._inbox.changed:
                self._inbox.messages.append(message)
                self._inbox.changed.notify_all()
        with self._inbox.changed:
            self._inbox.ended = True
            self._inbox.changed.notify_all()

    def _find(self, accept: Callable[[Json], bool], since: int, what: str) -> Json:
        """Return the first message at or after `since` that `accept` likes, waiting for it."""
        inbox = self._inbox

        def search() -> Json | None:
            return next((message for message in inbox.messages[since:] if accept(message)), None)

        with inbox.changed:
            inbox.changed.wait_for(lambda: inbox.ended or search() is not None, self._timeout)
            found = search()
        if found is None:
            raise (CodexError(f"the app server ended before {what}") if inbox.ended else TimeoutError(what))
        return found
