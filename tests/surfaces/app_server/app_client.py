"""A client of `commonplace app-server` that speaks line by line and keeps everything that it is told."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import processes
from exec_driver import PROGRAM, Place

Json = dict[str, Any]
_SECONDS = 60.0
"""A bound that only ends what hangs."""


class AppClient:
    """A server process and the messages to and from it; use as a context manager."""

    def __init__(
        self, place: Place, *options: str, experimental: bool = True, hello: bool = True, preloaded: bool = True
    ) -> None:
        words = ["app-server", *options]
        pipe, nothing, env, cwd = processes.PIPE, processes.DEVNULL, place.environment(), place.cwd
        self.process: processes.Process | subprocess.Popen[bytes] = (
            processes.Process(words, stdin=pipe, stderr=nothing, env=env, cwd=cwd)
            if preloaded
            else subprocess.Popen([*PROGRAM, *words], stdin=pipe, stdout=pipe, stderr=nothing, env=env, cwd=cwd)
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input, self._output = self.process.stdin, self.process.stdout
        self.place = place
        self.told: list[Json] = []
        """Every message, in order."""
        self.decide: Callable[[Json], Any] = lambda _: {"decision": "accept"}
        self.heard: Callable[[Json], None] = lambda _: None
        """Gets each message when it comes."""
        self._number = 0
        self._changed = threading.Condition()
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if hello:
            self.hello(experimental=experimental)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self.process.returncode is None:
            self.end()

    def end(self) -> int:
        """Close the input, and return the exit code."""
        self._input.close()
        code = self.process.wait(timeout=_SECONDS)
        self._reader.join(_SECONDS)
        self._output.close()
        return code

    def hello(self, *, experimental: bool = True, **more: Any) -> Json:
        """Shake hands."""
        capabilities = {"experimentalApi": experimental, **more}
        found = self.ask("initialize", {"clientInfo": {"name": "test", "version": "1"}, "capabilities": capabilities})
        self.line(json.dumps({"method": "initialized"}).encode())
        return found

    def line(self, line: bytes) -> None:
        """Send a line as it is."""
        self._input.write(line + b"\n")
        self._input.flush()

    def send(self, method: str, params: Any = ...) -> int:
        """Send a request; return its id."""
        self._number += 1
        message: Json = {"id": self._number, "method": method}
        self.line(json.dumps(message if params is ... else {**message, "params": params}).encode())
        return self._number

    def answer(self, number: Any) -> Json:
        """Return the answer to a request: the message with its result or error."""
        return self.wait(lambda message: message.get("id") == number and "method" not in message)

    def ask(self, method: str, params: Any = ...) -> Json:
        """Return the result of a request."""
        answered = self.answer(self.send(method, params))
        assert "result" in answered, answered
        return answered["result"]

    def fail(self, method: str, params: Any = ...) -> tuple[int, str]:
        """Return the error of a request."""
        answered = self.answer(self.send(method, params))
        assert "error" in answered, answered
        return answered["error"]["code"], answered["error"]["message"]

    def wait(self, accept: Callable[[Json], bool]) -> Json:
        """Return the first message of a kind, once it is there."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._over or self._first(accept) is not None, _SECONDS)
            message = self._first(accept)
            assert found, self.told[-3:]
            assert message is not None, "the server ended"
            return message

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so of what was told."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._over or is_so(), _SECONDS), self.told[-3:]

    def notice(self, method: str, **fields: Any) -> Json:
        """Return the params of the first notification of a kind with these fields."""

        def accept(message: Json) -> bool:
            params: Json = message.get("params") or {}
            return message.get("method") == method and all(params.get(key) == each for key, each in fields.items())

        return self.wait(accept)["params"]

    def finish(self, turn_id: str) -> Json:
        """Return a turn once it is completed."""
        done = self.wait(
            lambda message: message.get("method") == "turn/completed" and message["params"]["turn"]["id"] == turn_id
        )
        return done["params"]["turn"]

    def start(self, **params: Any) -> str:
        """Start a thread; return its id."""
        return self.ask("thread/start", {"cwd": str(self.place.cwd), **params})["thread"]["id"]

    def turn(self, thread: str, text: str, **params: Any) -> str:
        """Start a turn; return its id."""
        given = {"threadId": thread, "input": [{"type": "text", "text": text}], **params}
        return self.ask("turn/start", given)["turn"]["id"]

    def run(self, thread: str, text: str, **params: Any) -> Json:
        """Run a turn to its end."""
        return self.finish(self.turn(thread, text, **params))

    def methods(self) -> list[str]:
        """What was told, in order: methods, and the kinds of items."""
        found: list[str] = []
        for message in self.told:
            params: Json = message.get("params") or {}
            kind: str | None = params.get("item", {}).get("type")
            found.append(f"{message.get('method', 'answer')}{f' {kind}' if kind else ''}")
        return found

    def _first(self, accept: Callable[[Json], bool]) -> Json | None:
        return next((message for message in self.told if accept(message)), None)

    def _read(self) -> None:
        for line in self._output:
            message: Json = json.loads(line)
            self.heard(message)
            if "method" in message and "id" in message:
                self.line(json.dumps({"id": message["id"], "result": self.decide(message)}).encode())
            with self._changed:
                self.told.append(message)
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()
