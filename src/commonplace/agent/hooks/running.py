"""Running hooks: each in a process group of its own, with so much time and so much to say, and no more."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import msgspec

from commonplace.agent.hooks.values import Answer, Hook, Hooks, Moment, meaning, wire_name

MOST_BYTES: Final = 2**20
_READ: Final = 65_536


class Runner:
    """Asks the hooks of one session."""

    def __init__(self, hooks: Hooks, cwd: Path, environment: Mapping[str, str]) -> None:
        self._hooks = hooks
        self._cwd = cwd
        self._environment = environment

    def has(self, moment: Moment) -> bool:
        """Say whether anybody wants to hear of a moment."""
        return bool(self._hooks.get(moment))

    async def ask(self, moment: Moment, subject: str = "", **told: Any) -> Answer:
        """Ask the hooks of a moment, all at once; return what they said together, in the order of the settings."""
        wanted = [hook for hook in self._hooks.get(moment, ()) if hook.matches(subject)]
        if not wanted:
            return Answer()
        data = msgspec.json.encode({"hook_event_name": wire_name(moment), "cwd": str(self._cwd), **told})
        answers = [Answer()] * len(wanted)

        async def one(place: int, hook: Hook) -> None:
            answers[place] = await self._run(moment, hook, data)

        async with anyio.create_task_group() as group:
            for place, hook in enumerate(wanted):
                group.start_soon(one, place, hook)
        return sum(answers, Answer())

    async def _run(self, moment: Moment, hook: Hook, data: bytes) -> Answer:
        words: Sequence[str] = ["/bin/sh", "-c", hook.command] if isinstance(hook.command, str) else hook.command
        try:
            process = await self._started(words)
        except (OSError, ValueError) as error:
            return Answer(warnings=(f"A {moment} hook cannot be started: {error}",))
        out, err = bytearray(), bytearray()
        try:
            with anyio.move_on_after(hook.timeout) as limit:
                async with anyio.create_task_group() as group:
                    group.start_soon(_write, process, data)
                    group.start_soon(_read, process.stdout, out)
                    group.start_soon(_read, process.stderr, err)
                    await process.wait()
                    # What it left behind may hold its output open; it has ended, and nobody waits for the rest.
                    _kill(process)
        finally:
            _kill(process)
            with anyio.CancelScope(shield=True):
                await process.wait()
                await process.aclose()
        if limit.cancelled_caught:
            return Answer(warnings=(f"A {moment} hook took more than {hook.timeout:g} seconds and was ended.",))
        code = process.returncode if process.returncode is not None else -1
        return meaning(moment, code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    async def _started(self, words: Sequence[str]) -> anyio.abc.Process:
        """Start a command; whoever is cancelled meanwhile still gets it, to end it."""
        with anyio.CancelScope(shield=True):
            return await anyio.open_process(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._cwd,
                env=dict(self._environment),
                start_new_session=True,
            )
        raise AssertionError  # nothing leaves a shielded scope otherwise


async def _write(process: anyio.abc.Process, data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await process.stdin.send(data)
    with contextlib.suppress(OSError):
        await process.stdin.aclose()


async def _read(stream: anyio.abc.ByteReceiveStream | None, into: bytearray) -> None:
    """Take what is printed; beyond the bound it is read and let go, so that the command is not held up."""
    assert stream is not None
    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            chunk = await stream.receive(_READ)
            into += chunk[: max(MOST_BYTES - len(into), 0)]


def _kill(process: anyio.abc.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
