"""Talking to `commonplace mcp` line by line, as a client that trusts nothing."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import taught_homes

import processes
from commonplace.surfaces.cli.root import run
from ledgers import Script, assistant, user

Json: TypeAlias = dict[str, Any]
PROGRAM = [sys.executable, "-m", "commonplace"]
INITIALIZE: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "talking", "version": "0"},
}
TIDE = "0198c0de-0000-7000-8000-0000000000c1"
SECOND_PROJECT = "In this project we always deploy from the release branch."
THIRD_PROJECT = "In this project we always name branches after quokkas."


def tide() -> Script:
    """A session of a third project."""
    script = taught_homes.session(TIDE, "tide")
    return script.turn(user(f"{THIRD_PROJECT} Fix the tide tables."), assistant("Done."))


def teach(home: Path) -> None:
    """Make a home that knows something of three projects: shop, blog and tide."""
    taught_homes.write(home)
    tide().write_home(home)
    assert run(["memory", "run", "--json"]) == 0


def checkout(folder: Path, name: str) -> Path:
    """Make a folder that is a clone of one of the projects."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    remote = f'[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\turl = https://github.com/acme/{name}.git\n'
    (folder / ".git" / "config").write_text(remote, "utf-8")
    (folder / ".git" / "objects").mkdir()
    (folder / ".git" / "refs").mkdir()
    return folder


class Talk:
    """A server process and the lines to and from it; use as a context manager."""

    def __init__(self, *options: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.process = processes.Process(["mcp", *options], stdin=processes.PIPE, cwd=cwd, env=environment)
        self._number = 0
        self._said: list[bytes] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Talk:
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None and kind is not None:
            self.process.kill()
        self.end()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self._said.extend(self.process.stderr)

    @property
    def stderr(self) -> str:
        """What the server wrote to stderr; complete once it has ended."""
        self._listener.join(100)
        return b"".join(self._said).decode()

    def end(self) -> int:
        """Close our end and return how the server ended; whatever it still said goes to `rest`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        if not self.process.stdout.closed:
            self.rest = self.process.stdout.read()
            self.process.stdout.close()
        code = self.process.wait(100)
        self._listener.join(100)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        """Send a message."""
        self.write(json.dumps(message).encode() + b"\n")

    def receive(self) -> Any:
        """Return the next message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), self.stderr
        return json.loads(line)

    def request(self, method: str, params: Json | None = None) -> Any:
        """Ask something and return the answer, which must be the next message."""
        self._number += 1
        message: Json = {"jsonrpc": "2.0", "id": self._number, "method": method}
        self.send(message if params is None else {**message, "params": params})
        answer = self.receive()
        assert answer["id"] == self._number, answer
        return answer

    def begin(self, **capabilities: Any) -> Any:
        """Introduce ourselves and return what the server says of itself."""
        answer = self.request("initialize", {**INITIALIZE, "capabilities": capabilities})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def call(self, name: str, arguments: Json | None = None) -> Any:
        """Call a tool and return its result."""
        return self.request("tools/call", {"name": name, "arguments": arguments or {}})["result"]
