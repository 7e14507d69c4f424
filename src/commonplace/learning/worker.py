"""A worker: import and learn again and again, alone or beside others, until it is told to end.

A worker holds no state that anybody would miss: what it works on is claimed in the database and given back if it ends
in order, and free at once or after its lease if it is killed. Told to end, it claims nothing more and finishes what it
reads (`WorkerState.ending`); whoever started it decides how long that may take.

How it goes is told as values (`WorkerState`, `Measures`): surfaces render them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
import msgspec

from commonplace.errors import BadInput, CommonplaceError
from commonplace.learning import run
from commonplace.learning.run import LearningReport, LearningRequest
from commonplace.sessions import imports
from commonplace.sessions.imports import Importer, ImportReport
from commonplace.state import jobs
from commonplace.state.database import Transaction
from commonplace.state.home import Home

CYCLE_SECONDS: Final = 60.0
"""How long a worker rests when there was nothing to do."""
UNWELL_CYCLES: Final = 3
"""So many cycles must fail one after the other before a worker says that it is not well."""


class WorkerState(msgspec.Struct):
    """What a worker did since it began."""

    cycles: int = 0
    extracted: int = 0
    no_output: int = 0
    failed: int = 0
    consolidations: dict[str, int] = {}
    """How consolidations ended, by status."""
    requests: int = 0
    tokens: int = 0
    last_cycle_s: int | None = None
    """When the last cycle ended, in seconds."""
    failures: int = 0
    """How many cycles failed since the last one that did not."""
    problem: str | None = None
    """Why the last cycle failed."""
    ending: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """Set: nothing more is claimed."""

    @property
    def is_well(self) -> bool:
        """Whether it works as it should."""
        return self.failures < UNWELL_CYCLES

    def note(self, report: LearningReport, now: int) -> None:
        """Take in what a cycle did."""
        self.cycles += 1
        self.last_cycle_s = now
        self.extracted += report.extracted
        self.no_output += report.no_output
        self.failed += len(report.failed)
        status = report.consolidation.status
        self.consolidations = {**self.consolidations, status: self.consolidations.get(status, 0) + 1}
        self.requests += report.cost["requests"]
        self.tokens += report.cost["tokens"]
        self.failures, self.problem = 0, None


class Measures(msgspec.Struct, frozen=True):
    """What the database says about shared work."""

    jobs: dict[tuple[str, str], int]
    """How many jobs there are, by kind and status."""
    waiting: int
    """How many sessions of this home wait to be read."""
    outputs: int
    selected: int
    is_degraded: bool
    """The database cannot be used."""


async def measures(home: Home) -> Measures:
    """Count shared work, without looking at files."""
    database = await home.database()

    def body(tx: Transaction) -> Measures:
        count = tx.query("outputs.count")[0]
        return Measures(
            {(row["kind"], row["status"]): row["n"] for row in tx.query("jobs.states")},
            tx.query("threads.count_waiting", home=home.key)[0]["n"],
            count["outputs"],
            int(count["selected"]),
            home.is_degraded,
        )

    return await database.read(body)


async def cycle(home: Home, importer: Importer, ending: anyio.Event | None = None) -> LearningReport:
    """Import what is new in the usual places, then learn from it: one turn of a worker."""
    await home.need_database()
    try:
        chosen = imports.choose(None, [], home.environment)
        imported = await importer.run(chosen)
    except BadInput:  # nobody else's sessions are on this machine
        imported = ImportReport([], [])
    report = await run.run(home, LearningRequest(ending=ending))
    report.sources, report.warnings = imported.sources, [*imported.warnings, *report.warnings]
    return report


async def _give_back(home: Home) -> None:
    """Give back what a failed cycle of this process still holds: the database was away when it wanted to do so."""
    await home.need_database()
    database, now = await home.database(), home.now_s()
    await database.write(lambda tx: jobs.release_process(tx, jobs.this_process(), now))


async def work(
    home: Home,
    importer: Importer,
    tell: Callable[[LearningReport], None],
    *,
    once: bool,
    state: WorkerState | None = None,
) -> None:
    """Learn again and again until told to end, or once for scripts.

    A cycle that fails is noted and tried again after a rest; once, the error goes to the caller.
    """
    if home.environment.get("COMMONPLACE_NOW") and not once:
        raise BadInput("COMMONPLACE_NOW fixes the clock, and a worker needs one.", hint="Use worker --once.")
    state = state or WorkerState()
    is_left_over = False
    while not state.ending.is_set():
        try:
            if is_left_over:
                await _give_back(home)
                is_left_over = False
            report = await cycle(home, importer, state.ending)
        except CommonplaceError as error:
            if once:
                raise
            state.failures += 1
            is_left_over = True
            state.problem = error.sentence()
            home.warn(f"This cycle failed: {error.sentence()} The next one begins in {CYCLE_SECONDS:.0f} seconds.")
        else:
            state.note(report, home.now_s())
            tell(report)
        if once:
            return
        with anyio.move_on_after(CYCLE_SECONDS):
            await state.ending.wait()
