"""Single keys from the terminal, without waiting for Enter.

The terminal gives keys at once from the first line of a `with` block to its last, so that no key is lost between two
questions; Ctrl-C interrupts as usual.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

_ESCAPE = b"\x1b"
_END = "\x04"


class Keys:
    """The keys of the terminal on stdin."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._usual: list[Any] = []

    def __enter__(self) -> Keys:
        self._usual = termios.tcgetattr(self._input)
        tty.setcbreak(self._input, termios.TCSADRAIN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        termios.tcsetattr(self._input, termios.TCSADRAIN, self._usual)

    @contextmanager
    def released(self) -> Generator[None]:
        """Give the terminal back for as long as the block runs: an editor or a line of text is wanted."""
        termios.tcsetattr(self._input, termios.TCSADRAIN, self._usual)
        try:
            yield
        finally:
            tty.setcbreak(self._input, termios.TCSADRAIN)

    def read(self) -> str:
        """Return the next key, also one that sends several characters; an empty text at the end of the input."""
        data = self._byte()
        if data == _ESCAPE:
            self._pass_sequence()
            return data.decode()
        while data and data[0] >= 0x80 and not _is_text(data) and len(data) < 4:
            data += self._byte()
        key = data.decode("utf-8", "replace")
        return "" if key == _END else key

    def _pass_sequence(self) -> None:
        """Read the rest of what a key such as an arrow sends after Esc, and nothing of the next key."""
        if not self._has_more() or self._byte() not in (b"[", b"O"):
            return
        while self._has_more() and (data := self._byte()) and not 0x40 <= data[0] <= 0x7E:
            pass

    def _has_more(self) -> bool:
        return bool(select.select([self._input], [], [], 0)[0])

    def _byte(self) -> bytes:
        try:
            return os.read(self._input, 1)
        except OSError:  # the terminal is gone
            return b""


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
