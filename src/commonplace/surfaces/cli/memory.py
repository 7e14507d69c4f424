"""`commonplace memory …`: parses arguments, calls `Memory` and prints the result."""

from __future__ import annotations

import click

from commonplace.app.memory import PHASES
from commonplace.learning.status import Cost, Status
from commonplace.memory.edits.mode import MODES
from commonplace.surfaces.cli import (
    memory_edits,
    memory_entries,
    memory_eval,
    memory_prompt,
    memory_review,
    output,
    search,
)
from commonplace.surfaces.cli.command import call
from commonplace.surfaces.cli.command_group import CommandGroup


@click.group("memory", cls=CommandGroup)
def command() -> None:
    """List, search and change what was learned."""


for each in (
    *memory_entries.COMMANDS,
    *memory_review.COMMANDS,
    *memory_edits.COMMANDS,
    *memory_prompt.COMMANDS,
    search.memory,
    search.read,
    memory_eval.command,
):
    command.add_command(each)


@command.command()
@output.json_option
def status(as_json: bool) -> None:
    """Count threads, work, results and cost."""
    found = call(lambda memory: memory.status())
    if as_json:
        output.print_json(found)
    else:
        _show(found)


def _show(report: Status) -> None:
    def counts(table: dict[str, int]) -> str:
        return ", ".join(f"{count} {name}" for name, count in sorted(table.items())) or "none"

    output.say(f"threads     {counts(report.threads)}")
    output.say(f"jobs        {counts(report.jobs)}")
    output.say(f"learned     {report.outputs} sessions, {report.selected} of them in the last consolidation")
    if report.refused:
        output.say(f"refused     {report.refused} lines of models that sessions do not bear out: memory review")
    for kind, cost in report.budget.items():
        who = "" if cost.model == "embedded" else f" by {cost.model}"
        output.say(f"today       {kind}{who}: {_cost(cost)}")
    for lock in report.locks:
        output.say(f"working     {lock.worker} on {lock.kind} {lock.key} until {lock.until}")
    for job in report.failed:
        output.say(f"failed      {job.thread_id}: {output.one_line(job.reason, output.UNCUT)}")


def _cost(cost: Cost) -> str:
    """Tell what was spent today, and what may be."""
    parts = (
        (f"{cost.requests:,}", cost.day.requests, "requests"),
        (f"{cost.tokens:,}", cost.day.tokens, "tokens"),
        (f"{cost.seconds:,.0f}", cost.day.seconds, "seconds"),
    )
    return ", ".join(f"{used}{'' if most is None else f' of {most:,}'} {what}" for used, most, what in parts)


@command.command()
@click.option(
    "--phase",
    type=click.Choice(["1", "2"]),
    help="Only this phase: 1 reads sessions one by one, 2 makes the memory of what they taught.",
)
@output.json_option
def run(phase: str | None, as_json: bool) -> None:
    """Learn from every session that is eligible, wait, and say what came of it."""
    progress = output.Count("reading sessions")
    phases = (int(phase),) if phase else PHASES
    report = call(lambda memory: memory.run(phases=phases, progress=progress, use_processes=True))
    progress.end()
    from commonplace.surfaces.cli import learn_report

    if as_json:
        output.print_json(report)
    else:
        learn_report.run(report)
    learn_report.exit_on_error(report)


@command.command()
@click.argument("thread")
@click.argument("mode", type=click.Choice(MODES))
@output.json_option
def mode(thread: str, mode: str, as_json: bool) -> None:
    """Decide whether memory may learn from a thread."""
    result = call(lambda memory: memory.set_mode(thread, mode))
    if as_json:
        output.print_json(result)
    else:
        output.say(f"Memory is {mode} for {result['thread_id']}.")
