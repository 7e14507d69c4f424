"""What the tests of the ledger share: a clock, writers that fail on command, and a look at what a file holds."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import reader
from commonplace.rollout.recorder import Recorder, RecorderOptions
from ledgers import FILE, THREAD, TIME, Json

START = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)


class Clock:
    """A time that goes on by a second each time somebody looks."""

    def __init__(self) -> None:
        self.moment = START - timedelta(seconds=1)

    def __call__(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


class Disk:
    """A `write` that does what its script says, one step per call, and then works.

    A step is an error number (nothing is written), a count (a short write), or a count and an error number (that much
    is written and then the call fails all the same).
    """

    def __init__(self, *script: int | tuple[int, int] | OSError) -> None:
        self.script: list[int | tuple[int, int] | OSError] = list(script)
        self.calls = 0

    def __call__(self, descriptor: int, data: bytes) -> int:
        self.calls += 1
        if not self.script:
            return os.write(descriptor, data)
        match self.script.pop(0):
            case OSError() as error:
                raise error
            case (count, number):
                os.write(descriptor, data[:count])
                raise OSError(number, os.strerror(number))
            case count:
                return os.write(descriptor, data[:count])


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def session_file(home: Path) -> Path:
    return home / "sessions" / "2026" / "11" / "15" / FILE


def meta(thread_id: str = THREAD, **more: Any) -> Json:
    return {"id": thread_id, "timestamp": TIME, "cwd": "/repo/demo", "source": "cli", **more}


def options(home: Path, *, write: Callable[[int, bytes], int] = os.write, **more: Any) -> RecorderOptions:
    return RecorderOptions(home, Clock(), write=write, **more)


async def create(home: Path, **more: Any) -> Recorder:
    return await Recorder.create(session_file(home), meta(), options(home, **more))


def say(recorder: Recorder, *texts: str) -> None:
    for text in texts:
        recorder.record("response_item", said(text))


def said(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def texts(path: Path) -> list[str]:
    """Return what was said, in the order of the file."""
    found: list[str] = []
    for record in reader.forward(path):
        if isinstance(record, Line) and record.type == "response_item":
            found.extend(part["text"] for part in msgspec.json.decode(record.payload)["content"])
    return found


def types(path: Path) -> list[str]:
    """Return the type of every line, and why a line is not one."""
    return [record.type if isinstance(record, Line) else record.reason for record in reader.forward(path)]


def skipped(path: Path) -> list[Skipped]:
    return [record for record in reader.forward(path) if isinstance(record, Skipped)]


def ordinals(path: Path) -> list[int | None]:
    return [record.ordinal for record in reader.forward(path) if isinstance(record, Line)]


def compress(path: Path) -> Path:
    """Replace a file by its compressed self, as the worker that looks after cold files would."""
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(zstandard.ZstdCompressor(level=3).compress(path.read_bytes()))
    path.unlink()
    return packed


def open_descriptors() -> set[str]:
    """Return the paths that this process has open."""
    found: set[str] = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that listed them
            found.add(str(link.readlink()))
    return found


def no_sync(_: int) -> None:
    """Stand in for fsync where only the bytes matter and there are many of them."""
