"""How well an extractor does on the gold set: the same score as the embedded one has, and it as JSON.

Each case is written as the files that agents leave, taken in, read as any session is, and what came of it is scored. A
session that could not be read counts as one that taught nothing, and is told.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from commonplace.errors import CommonplaceError
from commonplace.learning.evaluate import files, score
from commonplace.learning.evaluate.cases import Case, CaseSession
from commonplace.learning.evaluate.score import CaseScore, Score
from commonplace.learning.extract import session_reading
from commonplace.learning.extract.circuit_breaker import NOBODYS_FAULT
from commonplace.learning.extract.phase1 import FailedExtraction
from commonplace.learning.extract.session_reading import Extractor
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.state.outputs import Output

NOW: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)
"""When the sessions of the gold set are read; what is in them does not depend on it."""
CONCURRENCY: Final = 4
"""How many cases are read at the same time."""
_UNREAD: Final = ("subagent", "ephemeral")
Ledger = Callable[[CaseSession, Path, Path], Path]
"""From a session, the file that its agent wrote and a folder to work in to a ledger: what importing does."""


class Evaluation(msgspec.Struct):
    """How an extractor did."""

    extractor: str
    score: Score
    failed: list[FailedExtraction]

    def document(self) -> dict[str, Any]:
        """Return the JSON of it."""
        kinds = sorted({kind for case in self.score.cases for kind in case.wanted})
        return {
            "extractor": self.extractor,
            "cases": len(self.score.cases),
            "recall": round(self.score.recall(), 4),
            "precision": round(self.score.precision(), 4),
            "leaks": self.score.leaks(),
            "noise": sum(case.noise for case in self.score.cases),
            "outcomes": round(self.score.outcome_accuracy(), 4),
            "bullets": sum(case.bullets for case in self.score.cases),
            "kinds": {kind: round(self.score.recall(kind), 4) for kind in kinds},
            "failed": msgspec.to_builtins(self.failed),
            "wrong": [_wrong(case) for case in self.score.cases if case.missed or case.false or case.leaks],
        }


def _wrong(case: CaseScore) -> dict[str, Any]:
    """Return what is wrong with a case; texts that leaked are counted, not repeated."""
    return {"id": case.id, "missed": case.missed, "false": case.false, "leaks": len(case.leaks)}


async def evaluate(
    extractor: Extractor, known: Iterable[Case], ledger: Ledger, *, concurrency: int = CONCURRENCY
) -> Evaluation:
    """Let an extractor read cases of the gold set, and score what it makes of them.

    Raises:
        BudgetSpent, NotAuthorised, QuotaExceeded: nothing more can be read.
    """
    cases = list(known)
    scored: dict[str, CaseScore] = {}
    failed: list[FailedExtraction] = []
    limiter = anyio.CapacityLimiter(concurrency)

    ended: list[CommonplaceError] = []

    async def one(case: Case) -> None:
        async with limiter:
            with tempfile.TemporaryDirectory(prefix="commonplace-gold-") as name:
                try:
                    outputs = await _outputs(extractor, case, Path(name), ledger, failed)
                except NOBODYS_FAULT as error:
                    ended.append(error)
                    group.cancel_scope.cancel()
                    return
            scored[case.id] = score.score(case, outputs)

    async with anyio.create_task_group() as group:
        for case in cases:
            group.start_soon(one, case)
    if ended:
        raise ended[0]
    return Evaluation(extractor.name, Score([scored[case.id] for case in cases]), failed)


async def _outputs(
    extractor: Extractor, case: Case, folder: Path, ledger: Ledger, failed: list[FailedExtraction]
) -> list[Output]:
    written = await anyio.to_thread.run_sync(files.write, case, folder, NOW)
    outputs: list[Output] = []
    for number, (session, _, path) in enumerate(written):
        found = Output("", "")
        if session.source not in _UNREAD:
            try:
                place = await anyio.to_thread.run_sync(ledger, session, path, folder)
                found = await session_reading.extract_session(extractor, place, session.cwd, Forgotten(()))
            except NOBODYS_FAULT:
                raise
            except CommonplaceError as error:
                failed.append(FailedExtraction(f"{case.id}/{number}", error.sentence()))
        outputs.append(found)
    return outputs
