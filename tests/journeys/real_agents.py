"""The real Codex and the real Claude Code of one person, with one home folder, in sessions, terminals and processes.

Everything of the person is below one folder. Models are scripted and on loopback; whatever else the programs would
reach is a dead port. Waiting is for bytes, or for the end of a process; nothing sleeps.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyte

from anchors import claude_driver, codex_driver
from anchors.codex_driver import AppServer, CodexHome
from anchors.remembering import clone

SECONDS = 60.0
"""How long a program may take for anything."""


@dataclass(frozen=True)
class Person:
    """A person with a home folder, two agents and a clone of a project."""

    root: Path
    codex: Path
    claude: Path

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.root / "user"

    @property
    def cwd(self) -> Path:
        """The clone of the project `shop`."""
        return self.root / "shop"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the whole environment of a program that the person starts."""
        agents = CodexHome(self.codex, self.root).environment()
        agents |= claude_driver.ClaudeHome(self.claude, self.root, "").environment()
        return {
            **agents,
            "HOME": str(self.home),
            "CODEX_HOME": str(self.home / ".codex"),
            "TERM": "xterm-256color",
            **(more or {}),
        }

    def move_in(self, files: Mapping[str, str]) -> None:
        """Make the clone and the files that the person's agents have already."""
        clone(self.cwd, "shop")
        for name, text in files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    def run(self, *words: object, more: Mapping[str, str] | None = None) -> str:
        """Run a program in the clone and return what it printed; it must succeed."""
        done = subprocess.run(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self.environment(more),
            cwd=self.cwd,
            timeout=SECONDS * 2,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def ask_codex(self, prompt: str, more: Mapping[str, str] | None = None) -> None:
        """Have a session with Codex."""
        self.run(self.codex, "exec", "--skip-git-repo-check", "--json", prompt, more=more)

    def ask_claude(self, prompt: str, more: Mapping[str, str]) -> list[dict[str, Any]]:
        """Have a session with Claude Code; return its events."""
        out = self.run(self.claude, "-p", prompt, "--output-format", "stream-json", "--verbose", more=more)
        return [cast("dict[str, Any]", json.loads(line)) for line in out.splitlines() if line.startswith("{")]

    def trust_hooks(self) -> list[str]:
        """Trust the hooks that Codex asks about, as Codex's own terminal does for the person; return their commands."""
        home = _InHome(self.codex, self.root, self)
        with AppServer(home) as app:
            hooks = app.request("hooks/list", {"cwds": [str(self.cwd)]})["data"][0]["hooks"]
            state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
            app.request(
                "config/batchWrite",
                {"edits": [{"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}]},
            )
        return [str(hook["command"]) for hook in hooks]

    def see_codex(self, prompt: str, wanted: Sequence[str], more: Mapping[str, str] | None = None) -> str:
        """Start Codex in a terminal with a prompt, and return the screen once it shows some texts."""
        screen: Any = pyte.Screen(120, 50)
        stream: Any = pyte.ByteStream(screen)
        child, master = pty.fork()
        if child == 0:
            try:
                os.chdir(self.cwd)
                os.execve(self.codex, [str(self.codex), prompt], self.environment(more))
            finally:
                os._exit(127)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
        deadline = time.monotonic() + SECONDS
        shown = ""
        try:
            while not all(text in shown for text in wanted) and time.monotonic() < deadline:
                if not select.select([master], [], [], 1.0)[0]:
                    if "Use existing model" in shown:  # it waits for an answer
                        os.write(master, b"\x1b[B\r")
                    continue
                try:
                    data = os.read(master, 65536)
                except OSError:
                    break
                _answer_queries(master, data)
                stream.feed(data)
                shown = "\n".join(line.rstrip() for line in screen.display)
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            os.close(master)
        return shown

    def await_learning(self, home: Path) -> None:
        """Wait until the process that a hook started for a home has ended."""
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
                is_ours = b"\0worker\0" in words and os.fsencode(home) in (entry / "environ").read_bytes()
            except OSError:
                continue
            if not is_ours:
                continue
            try:
                descriptor = os.pidfd_open(int(entry.name))
            except ProcessLookupError:
                continue
            try:
                assert select.select([descriptor], [], [], SECONDS)[0], "learning does not end"
            finally:
                os.close(descriptor)


def _answer_queries(master: int, data: bytes) -> None:
    """Answer what a program asks its terminal: where the cursor is, what it can do, which colours it has."""
    for query, answer in (
        (b"\x1b[6n", b"\x1b[1;1R"),
        (b"\x1b[c", b"\x1b[?62;c"),
        (b"\x1b[?u", b"\x1b[?0u"),
        (b"\x1b]10;?", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
        (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
    ):
        if query in data:
            os.write(master, answer)


@dataclass(frozen=True)
class _InHome(CodexHome):
    """Codex in the person's home folder."""

    person: Person

    @property
    def cwd(self) -> Path:
        """The clone."""
        return self.person.cwd

    def environment(self) -> dict[str, str]:
        """Return the person's environment."""
        return self.person.environment()


def located() -> tuple[Path, Path] | str:
    """Return both programs, or why one of them is not there."""
    codex, claude = codex_driver.locate(), claude_driver.locate()
    for found in (codex, claude):
        if isinstance(found, codex_driver.Missing):
            return found.reason
    return cast("tuple[Path, Path]", (codex, claude))
