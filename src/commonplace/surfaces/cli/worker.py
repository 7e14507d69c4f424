"""`commonplace worker`: learns repeatedly, in the background of a machine or a team."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import anyio
import anyio.abc
import click

from commonplace.app import background_process, client_hooks
from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.learning.run import LearningReport
from commonplace.learning.worker import WorkerState
from commonplace.surfaces.cli import learn_report, output

_ENDED: Final = 128 + signal.SIGTERM
_DRAIN: Final = 25
"""Seconds; Kubernetes kills thirty seconds after it has told a container to end."""


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
@click.option("--listen", metavar="[HOST:]PORT", help="Answer /healthz and /metrics (Prometheus) there.")
@click.option(
    "--drain",
    type=click.IntRange(0, 3600),
    metavar="SECONDS",
    help=f"Told to end (SIGTERM), finish what is being read for so long; {_DRAIN} by default, 0 with --once.",
)
@output.json_option
def command(
    once: bool,
    background: bool,
    imports: bool,
    current: str | None,
    section: tuple[str, str] | None,
    listen: str | None,
    drain: int | None,
    as_json: bool,
) -> int:
    """Import and learn repeatedly, alone or beside other workers.

    Each cycle takes in what is new in the usual places and learns from every session that is eligible. Any number of
    workers, on any number of hosts that share a PostgreSQL database, share the work. One that is told to end (SIGTERM)
    claims nothing more, finishes what it reads, and gives back the rest.

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

    async def work(state: WorkerState) -> None:
        async with books.open(warn=output.warn) as book, _answering(book, state, listen):
            if imports:
                report = await client_hooks.learn(book, current, section)
                tell(report or LearningReport())
            elif background:
                tell(await background_process.learn(book.state, current))
            else:
                await book.memory.work(tell, once=once, state=state)

    if background:
        with contextlib.suppress(OSError):
            os.nice(background_process.NICENESS)
    return anyio.run(_until_ended, work, drain if drain is not None else 0 if once else _DRAIN)


@contextlib.asynccontextmanager
async def _answering(book: Book, state: WorkerState, address: str | None) -> AsyncGenerator[None]:
    """Answer on an address while the block runs, if there is one."""
    if address is None:
        yield
        return
    from commonplace.surfaces import worker_http

    listening = worker_http.listen(address)
    host, port = listening.getsockname()[:2]
    output.warn(f"http://{f'[{host}]' if ':' in host else host}:{port}/healthz and /metrics")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker_http.serve, book.state, state, listening)
        yield
        tasks.cancel_scope.cancel()


async def _until_ended(work: Callable[[WorkerState], Awaitable[None]], drain: int) -> int:
    """Work until it is done or we are told to end; return the exit code.

    Told to end, what is being read may be finished for `drain` seconds; then everything is given back.
    """
    state = WorkerState()
    told = is_done = False
    problem: Exception | None = None

    async def listen(tasks: anyio.abc.TaskGroup) -> None:
        nonlocal told
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                is_again, told = told, True
                state.ending.set()
                tasks.start_soon(end, tasks, 0 if is_again else drain)

    async def end(tasks: anyio.abc.TaskGroup, seconds: int) -> None:
        await anyio.sleep(seconds)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, tasks)
        try:
            await work(state)
            is_done = True
        except Exception as error:  # raised again below: the group would wrap it
            problem = error
        tasks.cancel_scope.cancel()
    if problem is not None:
        raise problem
    return 0 if is_done else _ENDED
