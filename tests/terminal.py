"""A program in a terminal of its own: a real pseudo-terminal, what it shows, and what a person types.

The screen is kept by an emulator, so a test sees what a person would see; the bytes are kept too. Nothing sleeps: every
wait is for bytes on the master, up to a deadline.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, cast

import pyte

import processes
from exec_driver import Place

ENTER, NEW_LINE, CTRL_C, CTRL_D, ESCAPE, UP = "\r", "\n", "\x03", "\x04", "\x1b", "\x1b[A"
PASTE = "\x1b[200~{}\x1b[201~"
SECONDS = 100.0

NOW = "2026-11-15T12:00:00Z"
"""The time in every terminal; another program that goes on with its threads needs the same."""


class Terminal:
    """`commonplace …` in a terminal; use as a context manager."""

    def __init__(
        self, place: Place, *arguments: str, columns: int = 90, rows: int = 50, more: Mapping[str, str] | None = None
    ) -> None:
        self._screen: Any = pyte.Screen(columns, rows)
        self._stream: Any = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        self.bytes = b""
        self._size(columns, rows)
        fixed = {"TERM": "xterm-256color", "COMMONPLACE_NOW": NOW}
        self.process = processes.Process(
            arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=place.environment({**fixed, **(more or {})}),
            cwd=place.cwd,
            terminal=True,
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SECONDS)
        if self._master >= 0:
            os.close(self._master)

    @property
    def text(self) -> str:
        """What is on the screen."""
        lines = cast("list[str]", self._screen.display)
        return "\n".join(line.rstrip() for line in lines).rstrip("\n")

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        self._screen.resize(rows, columns)
        self._size(columns, rows)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def say(self, text: str) -> None:
        """Type a line and send it."""
        self.type(text + ENTER)

    def wait(self, shown: str | Callable[[str], bool]) -> str:
        """Return the screen when it shows something.

        Raises:
            AssertionError: it does not, in time or before the program ended.
        """
        deadline = time.monotonic() + SECONDS
        while not (shown in self.text if isinstance(shown, str) else shown(self.text)):
            left = deadline - time.monotonic()
            assert left > 0, f"not in time: {shown}\n{self.text}"
            assert self._read(left), f"it ended first: {shown}\n{self.text}"
        return self.text

    def ready(self, mark: str = "›") -> str:
        """Return the screen when the line to type in is empty and nothing goes on."""
        return self.wait(lambda text: text.endswith(f"\n\n{mark}"))

    def _read(self, timeout: float) -> bool:
        """Take in what the program wrote; say whether there may be more."""
        if not select.select([self._master], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # what Linux says when the last one closed the other end
                raise
            return False
        self.bytes += data
        self._stream.feed(data)
        return bool(data)

    def end(self) -> int:
        """Wait for the program's end; return its exit code."""
        deadline = time.monotonic() + SECONDS
        while self._read(max(0.0, deadline - time.monotonic())):
            assert time.monotonic() < deadline, f"it does not end\n{self.text}"
        return self.process.wait(SECONDS)

    def hang_up(self) -> int:
        """Close the window; return the program's exit code."""
        os.close(self._master)
        self._master = -1
        return self.process.wait(SECONDS)
