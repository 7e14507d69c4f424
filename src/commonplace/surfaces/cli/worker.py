"""`commonplace worker`: learns repeatedly, in the background of a machine or a team."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc
import click

from commonplace.app import background_process, client_hooks
from commonplace.app import book as books
from commonplace.learning.run import LearningReport
from commonplace.surfaces.cli import learn_report, output

_ENDED = 128 + signal.SIGTERM


@click.command("worker")
@click.option("--once", is_flag=True, help="One cycle, then end.")
@click.option(
    "--background",
    is_flag=True,
    help="As sessions start it (with --once): nothing is imported, limits and pauses hold, at a low priority.",
)
@click.option("--import", "imports", is_flag=True, help="Import from the usual places first (with --background).")
@click.option("--current", metavar="ID", help="A session that goes on and is left alone (with --background).")
@click.option("--section", nargs=2, hidden=True)
@output.json_option
def command(
    once: bool, background: bool, imports: bool, current: str | None, section: tuple[str, str] | None, as_json: bool
) -> int:
    """Import and learn repeatedly, alone or beside other workers.

    Each cycle takes in what is new in the usual places and learns from every session that is eligible. Any number of
    workers, on any number of hosts that share a PostgreSQL database, share the work.

    `exec`, `chat` and the library start one with --once --background by themselves, when a turn began and there is
    something to learn; hooks of agents start one with --import, too. The setting memory.background turns that off.
    """
    for flag, given, needed in (("--json", as_json, once), ("--background", background, once)):
        if given and not needed:
            raise click.UsageError(f"{flag} needs --once.")
    for flag, is_given in (("--current", current is not None), ("--import", imports)):
        if is_given and not background:
            raise click.UsageError(f"{flag} needs --background.")

    def tell(report: LearningReport) -> None:
        if as_json:
            output.print_json(report)
        elif once or report.extracted or report.failed:
            learn_report.run(report)

    async def work() -> None:
        async with books.open(warn=output.warn) as book:
            if imports:
                report = await client_hooks.learn(book, current, section)
                tell(report or LearningReport())
            elif background:
                tell(await background_process.learn(book.state, current))
            else:
                await book.memory.work(tell, once=once)

    if background:
        with contextlib.suppress(OSError):
            os.nice(background_process.NICENESS)
    return anyio.run(_until_cancelled, work)


async def _until_cancelled(work: Callable[[], Awaitable[None]]) -> int:
    """Work, or give everything back when we are told to end; return the exit code."""
    ended = 0
    problem: Exception | None = None

    async def listen(tasks: anyio.abc.TaskGroup) -> None:
        nonlocal ended
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                ended = _ENDED
                tasks.cancel_scope.cancel()
                return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, tasks)
        try:
            await work()
        except Exception as error:  # raised again below: the group would wrap it
            problem = error
        tasks.cancel_scope.cancel()
    if problem is not None:
        raise problem
    return ended
