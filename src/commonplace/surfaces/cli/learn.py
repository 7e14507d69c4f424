"""`commonplace learn`: imports the sessions on this machine, learns from them, and shows the result."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click
from rich.text import Text

from commonplace.app import book as books
from commonplace.surfaces.cli import learn_report, memory_eval, output, views
from commonplace.surfaces.cli.import_options import path_option, source_option
from commonplace.surfaces.cli.times import HELP as TIMES
from commonplace.surfaces.cli.times import since_seconds

if TYPE_CHECKING:
    from commonplace.learning.estimate import Forecast
    from commonplace.learning.run import LearningReport
    from commonplace.memory.listing import Listed

_BAR = 24


class ProgressLine:
    """One line on stderr for whatever step learning is at."""

    def __init__(self) -> None:
        self._step = ""
        self._begun = 0.0
        self._shown: output.Progress | None = None

    def __call__(self, step: str, done: int, total: int | None, size: tuple[int, int] = (0, 0)) -> None:
        if step != self._step:
            self.end()
            self._step, self._shown, self._begun = step, output.Progress(step), time.monotonic()
        if self._shown is not None:
            text = _bar(done, total) if total else f"{done}"
            self._shown.show(text + (_time_left(size, time.monotonic() - self._begun) if size[1] else ""))

    def end(self) -> None:
        if self._shown is not None:
            self._shown.end()


def _bar(done: int, total: int) -> str:
    """Return how far something is, as a bar and in numbers."""
    filled = _BAR * min(done, total) // total
    return f"{'█' * filled}{'░' * (_BAR - filled)} {done} of {total}"


def _time_left(size: tuple[int, int], elapsed: float) -> str:
    """Return how many bytes of how many are read, and how long the rest takes at this speed."""
    done, total = size
    text = f", {output.human_bytes(done)} of {output.human_bytes(total)}"
    if not done or done >= total:
        return text
    seconds = int(elapsed * (total - done) / done) + 1
    return f"{text}, {seconds // 60} min left" if seconds >= 120 else f"{text}, {seconds} s left"


@click.command("learn")
@source_option
@path_option
@click.option("--since", help=f"Only sessions that went on after this: {TIMES}.")
@click.option("--limit", type=click.IntRange(1), help="Read at most so many sessions, the newest first.")
@click.option(
    "--model",
    help="Who reads: `embedded`, which needs no model and no network; `claude-code` or `codex`, your own agent with "
    "its login; or `provider:model`.",
)
@click.option("--yes", is_flag=True, help="Do not ask before a model reads much.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@output.json_option
def command(
    source: str | None,
    paths: tuple[Path, ...],
    since: str | None,
    limit: int | None,
    model: str | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Learn from the sessions that your agents left on this machine.

    Finds them in the usual places (or where you say), takes in what is new, reads each session once, and puts what they
    taught together into a memory that you can read and edit. Nothing leaves the machine unless you name a model. Run it
    again at any time: it goes on where it stopped.
    """
    flags = {"memory.extract_model": model} if model else None
    line = ProgressLine()

    from commonplace.learning.learn import LearningPlan

    async def ask(told: Forecast) -> bool:
        line.end()
        return await memory_eval.ask(told)

    async def inside() -> tuple[LearningReport, list[Listed], Path]:
        async with books.open(flags=flags, warn=output.warn) as book:
            plan = LearningPlan(
                source, paths, limit, since_seconds(since, book.settings.now()), dry_run, use_processes=True
            )
            report = await book.memory.learn(plan, line, None if yes else ask)
            shown = [] if dry_run else await book.memory.entries()
            return report, shown, book.home

    try:
        report, shown, home = anyio.run(inside)
    finally:
        line.end()
    if as_json:
        output.print_json(report)
    elif dry_run:
        _would(report)
    else:
        show(report, shown, home)
    learn_report.exit_on_error(report)


def _would(report: LearningReport) -> None:
    screen = learn_report.console()
    for source in report.sources:
        output.say(f"{source.source}: {source.found} session file(s) in {source.path}")
    for reason, count in sorted(report.skipped.items()):
        screen.print(Text(f"  {count} would not be read: {learn_report.REASONS.get(reason, reason)}", style="dim"))
    learn_report.warnings(report)
    screen.print("Nothing was changed.")


def _cost(report: LearningReport) -> str:
    requests, tokens = report.cost["requests"], report.cost["tokens"]
    return f"Cost: {requests:,} requests, {tokens:,} tokens." if requests else "Cost: nothing, no model was asked."


def show(report: LearningReport, entries: list[Listed], home: Path) -> None:
    """Tell what was learned, what was skipped and why, what it cost, and what to do next."""
    for source in report.sources:
        views.imported_source(source)
    learn_report.read(report)
    learn_report.memory(entries, {each["scope"]: each["name"] for each in report.projects})
    screen = learn_report.console()
    screen.print()
    learn_report.warnings(report)
    if not entries:
        if not isinstance(report.error, dict):
            screen.print("Nothing was learned yet. Sessions count once they have been quiet for ten minutes.")
        return
    done = report.consolidation
    changes = f"{done.added} new, {done.changed} changed, {done.removed} gone"
    screen.print(Text(f"{len(entries)} entries ({changes}). {_cost(report)}", style="bold"))
    best = next((entry for entry in entries if entry.support > 1), entries[0])
    for told, what in (
        (output.safe(f"{home}/memories/MEMORY.md"), "read it, edit it: your edits are kept"),
        (f"commonplace memory why {best.id}", "the exact words, from the exact turn"),
        ('commonplace memory note "…"', "add something yourself"),
        (f"commonplace memory forget {best.id}", "and it is gone for good"),
    ):
        screen.print(Text.assemble("  ", (f"{told:<{min(56, screen.width - 40)}}", "cyan"), f"  {what}"))
