"""Printing: JSON documents, plain columns, progress. Text is cut to the terminal, never wrapped by accident."""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from collections.abc import Sequence
from typing import Any

import click
import msgspec

UNCUT = 1_000_000
"""The width of what is no terminal."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
"""The option of each command that can print its result as JSON."""


def print_json(document: Any) -> None:
    """Write one JSON document to stdout."""
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
    sys.stdout.buffer.flush()


def print_error(code: str, message: str, hint: str) -> None:
    """Write the JSON form of an error to stdout."""
    print_json({"error": {"code": code, "message": message, "hint": hint}})


def warn(text: str) -> None:
    """Write a warning to stderr."""
    sys.stderr.write(safe(f"commonplace: {text}") + "\n")


def say(text: str = "") -> None:
    """Write a line to stdout, with control characters made harmless."""
    sys.stdout.write(safe(text) + "\n")


def page(lines: Sequence[str]) -> None:
    """Write lines to stdout; in a terminal, what is longer than the screen goes through the person's pager."""
    text = "".join(safe(line) + "\n" for line in lines)
    try:
        height = os.get_terminal_size(sys.stdout.fileno()).lines if sys.stdout.isatty() else 0
    except (OSError, ValueError):
        height = 0
    if height and len(lines) >= height:
        click.echo_via_pager(text)
    else:
        sys.stdout.write(text)


def safe(text: str) -> str:
    """Return text that cannot steer a terminal: session files hold whatever a program printed."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def one_line(text: str, width: int) -> str:
    """Return the text on one line, cut to a number of columns."""
    flat = " ".join(safe(text).split())
    if len(flat) <= width and flat.isascii():
        return flat
    used, kept = 0, ""
    for char in flat:
        size = 2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1
        if used + size > max(width - 1, 1):
            return kept + "…"
        used, kept = used + size, kept + char
    return kept


def columns(rows: Sequence[Sequence[str]], header: Sequence[str]) -> None:
    """Print a table: all columns as wide as they need, the last one takes what is left; in a pipe nothing is cut."""
    width = terminal_width(UNCUT)
    widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(header) - 1)]
    rest = max(20, width - sum(widths) - 2 * len(widths))
    for row in [header, *rows]:
        cells = [cell.ljust(size) for cell, size in zip(row[:-1], widths, strict=True)]
        say("  ".join([*cells, one_line(row[-1], rest)]).rstrip())


def terminal_width(default: int) -> int:
    """Return how many columns the terminal has: as COLUMNS says, else as the system does, else the default.

    It answers as `shutil.get_terminal_size` does, which takes as long to import as all settings take to read.
    """
    if (text := os.environ.get("COLUMNS", "")).isdecimal() and int(text):
        return int(text)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else default
    except (OSError, ValueError):
        return default


def human_bytes(size: int) -> str:
    """Return a size as people write it."""
    value = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return ""


class Count:
    """A line on stderr that counts up to no known end, shown as `Progress` is."""

    def __init__(self, what: str) -> None:
        self._line = Progress(what)

    def __call__(self, done: int, done_bytes: int) -> None:
        """Show how much is done."""
        self._line.show(f"{done}, {human_bytes(done_bytes)}")

    def end(self) -> None:
        """Take the line away."""
        self._line.end()


class Progress:
    """A line on stderr that counts, shown only in a terminal and only when work takes longer than a second."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        """Show how far the work is."""
        self.show(f"{done} of {total}" if total else f"{done} found")

    def show(self, text: str) -> None:
        """Show a few words."""
        if not sys.stderr.isatty() or time.monotonic() - self._begun < 1:
            return
        self._shown = True
        sys.stderr.write(f"\r{self._what}: {text}\x1b[K")
        sys.stderr.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
