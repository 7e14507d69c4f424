"""`commonplace memory …`: parse, call `runtime.memory`, print."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import click

from commonplace.runtime import book as books
from commonplace.runtime.memory import MODES, Memory, Status
from commonplace.surfaces.cli import output

T = TypeVar("T")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def call(action: Callable[[Memory], Awaitable[T]]) -> T:
    """Open the book, do one thing with its memory, close it."""

    async def inside() -> T:
        async with books.open(warn=output.warn) as book:
            return await action(book.memory)

    return anyio.run(inside)


@click.group("memory")
def command() -> None:
    """What was learned, and the work on it."""


@command.command()
@json_option
def status(as_json: bool) -> None:
    """Count threads, work, results and cost."""
    found = call(lambda memory: memory.status())
    if as_json:
        output.print_json(found)
    else:
        _show(found)


def _show(found: Status) -> None:
    def counts(table: dict[str, int]) -> str:
        return ", ".join(f"{count} {name}" for name, count in sorted(table.items())) or "none"

    output.say(f"threads     {counts(found.threads)}")
    output.say(f"jobs        {counts(found.jobs)}")
    output.say(f"learned     {found.outputs} sessions, {found.selected} of them in the last consolidation")
    for kind, spent in found.budget.items():
        output.say(f"today       {kind}: {spent['requests']} requests, {spent['tokens']} tokens")
    for lock in found.locks:
        output.say(f"working     {lock.worker} on {lock.kind} {lock.key} until {lock.until}")
    for job in found.failed:
        output.say(f"failed      {job.thread_id}: {output.one_line(job.reason, 100)}")


@command.command()
@click.argument("thread")
@click.argument("mode", type=click.Choice(MODES))
@json_option
def mode(thread: str, mode: str, as_json: bool) -> None:
    """Decide whether memory may learn from a thread."""
    result = call(lambda memory: memory.set_mode(thread, mode))
    if as_json:
        output.print_json(result)
    else:
        output.say(f"Memory is {mode} for {result['thread_id']}.")
