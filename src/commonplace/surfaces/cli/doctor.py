"""`commonplace doctor`: prints the result of every check."""

from __future__ import annotations

import anyio
import click

from commonplace.app import book as books
from commonplace.app.doctor import DoctorReport, examine
from commonplace.surfaces.cli import output


@click.command("doctor")
@click.option("--repair", is_flag=True, help="Rebuild what is derived from files, free what dead processes hold.")
@output.json_option
def command(repair: bool, as_json: bool) -> int:
    """Check files, database and jobs against each other; --repair rebuilds rows.

    Exits 1 when something is wrong. Counters and budgets cannot be rebuilt; if they are lost, it says so.
    """

    async def inside() -> DoctorReport:
        async with books.open(warn=output.warn) as book:
            return await examine(book.state, repair=repair)

    report = anyio.run(inside)
    if as_json:
        output.print_json(report)
    else:
        for check in report.checks:
            output.say(f"{'ok   ' if check.ok else 'WRONG'}  {check.name:<9} {check.detail}")
    return 0 if report.ok else 1
