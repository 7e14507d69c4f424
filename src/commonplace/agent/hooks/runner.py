"""Run hooks: each in a process group of its own, within bounds on its time and its output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import msgspec

from commonplace.agent.events import HookRun
from commonplace.agent.hooks.config import HookAnswer, HookCommand, Hooks, Moment, answer_of, wire_name

MOST_BYTES: Final = 2**20
"""Bytes of stdout and of stderr that are kept; no useful answer is longer."""
_READ: Final = 65_536


class HookRunner:
    """Asks the hooks of one session."""

    def __init__(self, hooks: Hooks, cwd: Path, environment: Mapping[str, str]) -> None:
        self._hooks = hooks
        self._cwd = cwd
        self._environment = {**environment} if hooks else {}  # variables are many, and most people have no hooks
        if hooks and "PATH" in environment:  # a folder that a command makes later must not bring programs for hooks
            folders = environment["PATH"].split(":")
            self._environment["PATH"] = ":".join(folder for folder in folders if folder and (cwd / folder).is_dir())

    def has(self, moment: Moment) -> bool:
        """Return whether a hook is configured for a moment."""
        return bool(self._hooks.get(moment))

    async def ask(
        self, moment: Moment, subject: str = "", told: Callable[[HookRun], None] = lambda _: None, **fields: Any
    ) -> HookAnswer:
        """Run the hooks of a moment at the same time; return their answers as one, in the order of the settings.

        `told` gets each run when it begins, and again when it has ended.
        """
        hooks = self._hooks.get(moment, ())
        first = sum(len(others) for others in [*self._hooks.values()][: [*self._hooks].index(moment)]) if hooks else 0
        wanted = [(place, hook) for place, hook in enumerate(hooks, first) if hook.matches(subject)]
        if not wanted:
            return HookAnswer()
        data = msgspec.json.encode({"hook_event_name": wire_name(moment), "cwd": str(self._cwd), **fields})
        answers = [HookAnswer()] * len(wanted)

        async def one(number: int, run: HookRun, hook: HookCommand) -> None:
            told(run)
            answer = HookAnswer(errors=(f"A {moment} hook was interrupted.",))
            try:
                answer = answers[number] = await self._run(moment, hook, data)
            finally:
                told(msgspec.structs.replace(run, status=answer.status, entries=answer.entries()))

        async with anyio.create_task_group() as group:
            for number, (place, hook) in enumerate(wanted):
                run = HookRun(moment=moment, place=place, call_id=fields.get("tool_use_id"))
                group.start_soon(one, number, run, hook)
        return sum(answers, HookAnswer())

    async def _run(self, moment: Moment, hook: HookCommand, data: bytes) -> HookAnswer:
        words: Sequence[str] = ["/bin/sh", "-c", hook.command] if isinstance(hook.command, str) else hook.command
        try:
            process = await self._started(words)
        except (OSError, ValueError) as error:
            return HookAnswer(errors=(f"A {moment} hook cannot be started: {error}",))
        out, err = bytearray(), bytearray()
        try:
            with anyio.move_on_after(hook.timeout) as limit:
                async with anyio.create_task_group() as group:
                    group.start_soon(_write, process, data)
                    group.start_soon(_read, process.stdout, out)
                    group.start_soon(_read, process.stderr, err)
                    await process.wait()
                    # A child may hold its output open; the hook has ended, and nobody waits for the rest.
                    _kill(process)
        finally:
            _kill(process)
            with anyio.CancelScope(shield=True):
                await process.wait()
                await process.aclose()
        if limit.cancelled_caught:
            return HookAnswer(errors=(f"A {moment} hook took more than {hook.timeout:g} seconds and was ended.",))
        code = process.returncode if process.returncode is not None else -1
        return answer_of(moment, code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    async def _started(self, words: Sequence[str]) -> anyio.abc.Process:
        """Start a command; a caller that is cancelled meanwhile still gets the process, and can end it."""
        with anyio.CancelScope(shield=True):
            return await anyio.open_process(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._cwd,
                env=self._environment,
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
    """Read the output; what exceeds the bound is read and dropped, so that the command does not block."""
    assert stream is not None
    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            chunk = await stream.receive(_READ)
            into += chunk[: max(MOST_BYTES - len(into), 0)]


def _kill(process: anyio.abc.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
