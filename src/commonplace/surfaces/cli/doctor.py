"""`commonplace doctor`: prints the result of every check."""

from __future__ import annotations

import os
from typing import Final

import anyio
import click

from commonplace.app import book as books
from commonplace.app.doctor import Check, DoctorReport, examine, last_learning
from commonplace.clients import setup
from commonplace.memory.recall import section_cache
from commonplace.protocol.ids import wire_second
from commonplace.surfaces.cli import output

_TOLD: Final = (section_cache.CODEX, section_cache.CLAUDE_CODE)
"""Agents whose hooks tell the memory."""


@click.command("doctor")
@click.option("--repair", is_flag=True, help="Rebuild what is derived from files, free what dead processes hold.")
@output.json_option
def command(repair: bool, as_json: bool) -> int:
    """Check files, database and jobs against each other; --repair rebuilds rows.

    Exits 1 when something is wrong. Counters and budgets cannot be rebuilt; if they are lost, it says so.
    """

    async def inside() -> DoctorReport:
        async with books.open(warn=output.warn) as book:
            report = await examine(book.state, repair=repair)
            report.checks += _agents(str(book.home), await last_learning(book.state))
            return DoctorReport(all(check.ok for check in report.checks), report.checks)

    report = anyio.run(inside)
    if as_json:
        output.print_json(report)
    else:
        for check in report.checks:
            output.say(f"{'ok   ' if check.ok else 'WRONG'}  {check.name:<11} {check.detail}")
    return 0 if report.ok else 1


def _agents(home: str, learned_s: int | None) -> list[Check]:
    """Say of each agent on this machine what is set up there and when it was last told something; then of learning."""
    last = section_cache.last_told(home)
    checks: list[Check] = []
    for agent in setup.AGENTS:
        status = setup.status(agent, os.environ)
        if not status.found:
            continue
        line = last.get(agent)
        told = f"last told {wire_second(int(line['time']))}" if line and isinstance(line.get("time"), int) else ""
        parts = [*status.parts, *([told or "nothing told yet"] if agent in _TOLD else [])]
        is_set_up = "server" in status.parts or "plugin" in status.parts
        detail = ", ".join(parts) if is_set_up or status.is_wrong else "not set up: commonplace setup"
        checks.append(Check(agent, ok=not status.is_wrong, detail=detail))
    if checks:
        when = f"last learned {wire_second(learned_s)}" if learned_s is not None else "nothing learned yet"
        checks.append(Check("learning", ok=True, detail=when))
    return checks
