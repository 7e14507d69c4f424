"""`commonplace worker`: learn again and again, in the background of a machine or a team."""

from __future__ import annotations

import anyio
import click

from commonplace.runtime import book as books
from commonplace.runtime import learning
from commonplace.surfaces.cli import learned, output


@click.command("worker")
@click.option("--once", is_flag=True, help="One cycle, then end.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document (with --once).")
def command(once: bool, as_json: bool) -> None:
    """Import and learn again and again, alone or with others.

    Each cycle takes in what is new in the usual places and learns from every session that is eligible. Any number of
    workers, on any number of hosts that share a PostgreSQL database, share the work.
    """
    if as_json and not once:
        raise click.UsageError("--json needs --once.")

    def tell(report: learning.Report) -> None:
        if as_json:
            output.print_json(report)
        elif once or report.extracted or report.failed:
            learned.run(report)

    async def inside() -> None:
        async with books.open(warn=output.warn) as book:
            await learning.work(book, tell, once=once)

    anyio.run(inside)
