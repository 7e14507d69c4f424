"""Turns to be killed: reads one JSON line per turn, runs each in a child of its own, tells what was acknowledged.

    {"home": …, "cwd": …, "url": …, "thread": null | id, "how": "interrupt" | "kill" | "full", "event": k, "byte": n}

`interrupt` sends SIGINT to itself with the k-th event, `kill` SIGKILL with the k-th event or the n-th byte that goes
into a file, `full` has no room after n bytes. Printed: `acked N` when a barrier has acknowledged N lines, `ended KIND`
with the turn, `exit STATUS` with the child. What is imported is imported once, so that two hundred turns are soon over.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from typing import Any

import anyio
import msgspec

from commonplace.agent import events
from commonplace.agent.thread import Thread
from commonplace.app import book as books
from commonplace.models import http, responses
from commonplace.rollout.recorder import Recorder, RecorderOptions
from commonplace.state.home import Home

Json = dict[str, Any]
IMPORTED = (http, responses)
"""What a turn needs later, imported before the children are made."""


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


class Disk:
    """A `write` that kills its process, or has no more room, at a byte."""

    def __init__(self, asked: Json) -> None:
        self._how: str = asked["how"]
        self._left: int | None = asked["byte"]

    def __call__(self, descriptor: int, data: bytes) -> int:
        if self._left is None:
            return os.write(descriptor, data)
        taken = os.write(descriptor, data[: self._left]) if self._left else 0
        self._left -= taken
        if not self._left and self._how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return taken


def watched(recorder: Recorder) -> None:
    """Have every barrier tell how many lines it has acknowledged."""
    for name in ("flush", "persist", "end_turn"):
        real = getattr(recorder, name)

        async def barrier(real: Any = real) -> None:
            count = recorder._ordinal
            await real()
            say(f"acked {count}")

        setattr(recorder, name, barrier)


async def turn(asked: Json) -> None:
    real = Home.recording
    disk = Disk(asked)

    def recording(self: Home) -> RecorderOptions:
        return msgspec.structs.replace(real(self), write=disk, fsync="never")

    Home.recording = recording
    environment = {"COMMONPLACE_HOME": asked["home"], "PATH": "/usr/bin:/bin", "HOME": asked["cwd"]}
    here = {"api": "responses", "base_url": asked["url"]}
    async with books.open(environment=environment, providers={"here": here}) as book:
        wishes: Json = {"cwd": asked["cwd"], "model": "here:m-1", "sandbox": "danger-full-access", "base": "Scripted."}
        thread = await (book.resume(asked["thread"], **wishes) if asked["thread"] else book.start(**wishes))
        assert thread.session.ledger.recorder is not None
        watched(thread.session.ledger.recorder)
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            book.tasks.start_soon(interrupts, thread, signals)
            thread.listen(Striking(asked))
            end = await thread.turn("Work through the list.")
            say(f"ended {type(end).__name__}")


async def interrupts(thread: Thread, signals: Any) -> None:
    async for _ in signals:
        await thread.interrupt()


class Striking:
    """Sends a signal to its own process with the k-th event."""

    def __init__(self, asked: Json) -> None:
        self._left: int | None = asked["event"]
        self._signal = signal.SIGINT if asked["how"] == "interrupt" else signal.SIGKILL

    def __call__(self, event: events.Event) -> None:
        if self._left is not None:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), self._signal)


def main() -> None:
    for line in sys.stdin:
        asked: Json = json.loads(line)
        child = os.fork()
        if not child:
            status = 1
            try:
                anyio.run(turn, asked)
                status = 0
            except BaseException as error:
                say(f"raised {type(error).__name__}: {error}".replace("\n", " "))
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        say(f"exit {status}")


if __name__ == "__main__":
    main()
