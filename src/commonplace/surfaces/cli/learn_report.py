"""The report of learning for people: what was learned, for which project, and what was left out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.text import Text

from commonplace.memory.entries import GLOBAL
from commonplace.protocol.remotes import is_commit
from commonplace.surfaces.cli.output import UNCUT, one_line, safe, terminal_width

if TYPE_CHECKING:
    from commonplace.learning.run import LearningReport
    from commonplace.memory.listing import Listed

REASONS: Final = {
    "already_learned": "nothing new since they were last read",
    "archived": "archived",
    "disabled": "memory is turned off for them",
    "excluded": "excluded by memory.exclude",
    "not_a_persons_session": "sub-agents and internal sessions",
    "polluted": "they read from outside",
    "too_old": "older than what was asked for",
    "too_recent": "still going on",
}
"""What the reasons for not reading a session mean."""
_SHOWN: Final = 5
"""How many entries of a project are shown."""
_WIDEST: Final = 110
"""The widest report, in columns."""
COLOURS: Final = {
    "preference": "magenta", "rule": "magenta", "verify": "green", "environment": "cyan", "decision": "cyan",
    "procedure": "green", "fix": "yellow", "failure": "red",
}  # fmt: skip


class PipeConsole(Console):
    """A console whose reader may go away (`| head`): that ends the command as it ends any other."""

    def on_broken_pipe(self) -> None:
        """Raise what other writers to a closed pipe get; rich would end the program in the middle of its tasks."""
        raise BrokenPipeError


def console() -> Console:
    """Return where people read: as wide as their terminal, but not wider than eyes like."""
    width = min(_WIDEST, terminal_width(_WIDEST))
    return PipeConsole(width=width, highlight=False, soft_wrap=True)


def run(report: LearningReport) -> None:
    """Tell what a run did: what was read, and what the memory became."""
    read(report)
    done = report.consolidation
    if done.status == "succeeded":
        console().print(f"The memory has {done.added} new entries, {done.changed} changed, {done.removed} are gone.")
    warnings(report)


def read(report: LearningReport) -> None:
    """Tell what was read and what was not."""
    screen = console()
    total = report.extracted + report.no_output + len(report.failed)
    taught = f"{report.extracted} taught something, {report.no_output} nothing"
    line = f"{total} session{'' if total == 1 else 's'} read: {taught}" if total else "No session to read"
    screen.print(Text(line + (f", {len(report.failed)} failed." if report.failed else "."), style="bold"))
    for job in report.failed:
        screen.print(Text(f"  failed  {job.thread_id}: {one_line(job.reason, UNCUT)}", style="red"))
    for reason, count in sorted(report.skipped.items()):
        screen.print(Text(f"  {count} not read: {REASONS.get(reason, reason)}", style="dim"))


def warnings(report: LearningReport) -> None:
    """Tell what a person should know."""
    screen = console()
    for warning in report.warnings:
        screen.print(Text(safe(f"  note: {warning}"), style="yellow"))


def exit_on_error(report: LearningReport) -> None:
    """Say that nothing could be read and end with exit code 1, if that is so."""
    if isinstance(report.error, dict):
        click.echo(f"{report.error['message']} {report.error['hint']}", err=True)
        raise click.exceptions.Exit(1)


def memory(entries: Sequence[Listed], names: Mapping[str, str] | None = None, *, shown: int | None = _SHOWN) -> None:
    """Tell what the memory holds, project by project, the most useful first.

    `names` has a name for each project that has no address, as far as one is known.
    """
    known = names or {}
    screen = console()
    scopes = list(dict.fromkeys(entry.scope for entry in entries))
    for scope in sorted(scopes, key=lambda each: (each != GLOBAL, scopes.index(each))):
        own = [entry for entry in entries if entry.scope == scope]
        called = known.get(scope, scope) if is_commit(scope) else scope
        _heading(screen, called, len(own))
        for entry in own[:shown]:
            screen.print(_entry(entry, screen.width))
        if shown is not None and len(own) > shown:
            name = "" if scope == GLOBAL else f" --project {called.rpartition('/')[2]}"
            screen.print(Text(f"    + {len(own) - shown} more: commonplace memory list{name}", style="dim"))


def _heading(screen: Console, scope: str, count: int) -> None:
    scope = safe(scope)
    name = "everywhere" if scope == GLOBAL else scope.rpartition("/")[2] or scope
    title = Text("\n" + name, style="bold")
    if scope not in (GLOBAL, name):
        title.append(f"  {scope}", style="dim")
    title.append(f"  {count}", style="dim")
    screen.print(title)


def _entry(entry: Listed, width: int) -> Text:
    text = Text("  ")
    text.append(f"{entry.kind:11} ", style=COLOURS[entry.kind])
    text.append(f"{f'×{entry.support}' if entry.support > 1 else '':4}", style="bold")
    told = entry.text[1:-1] if entry.text.startswith('"') and entry.text.endswith('"') else entry.text
    text.append(one_line(told, width - 28))
    text.append(f"  {entry.id}", style="dim")
    if entry.pinned:
        text.append(" pinned", style="dim")
    return text
