"""How well each detector of the embedded reader does alone, on the sets it was tuned on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import msgspec

from bench import gold_sets
from bench.learning import NOW
from commonplace.importers import claude_code, ledger_writer
from commonplace.learning.evaluate import files, score
from commonplace.learning.evaluate.cases import Case
from commonplace.learning.extract import rules
from commonplace.learning.extract.rules import Detector, assemble, retractions
from commonplace.learning.reading import outcomes, session_view, tasks
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory.files import lesson_text
from commonplace.state.outputs import Output

SETS: Final = ("near", "wide")
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "spoken": ("preference", "rule", "environment", "decision", "failure", "verify", "procedure"),
    "repeated": ("preference",),
    "fixes": ("fix",),
    "failures": ("failure",),
    "verify": ("verify",),
    "procedure": ("procedure",),
}
"""What each detector looks for."""


class Row(msgspec.Struct, frozen=True):
    """One detector, all others switched off."""

    detector: str
    findings: int
    """What it found, without what may be found and counts neither way."""
    right: int
    labels: int
    """What had to be found of the kinds that it looks for, by whichever detector."""
    found: int

    @property
    def precision(self) -> float:
        """The share of its findings that are labelled."""
        return self.right / self.findings if self.findings else 1.0

    @property
    def recall(self) -> float:
        """The share of the labels of its kinds that it finds alone."""
        return self.found / self.labels if self.labels else 1.0


def by_detector(sets: tuple[str, ...] = SETS) -> list[Row]:
    """Return how each detector does alone."""
    read = [(case, _views(case)) for half in sets for case in gold_sets.load(half)]
    return [_row(name, detect, read) for name, detect in rules.DETECTORS.items()]


def _row(name: str, detect: Detector, read: list[tuple[Case, list[SessionView | None]]]) -> Row:
    scored = [score.score(case, [_alone(seen, detect) for seen in views]) for case, views in read]
    return Row(
        name,
        sum(case.counted for case in scored),
        sum(case.counted - len(case.false) for case in scored),
        sum(case.wanted.get(kind, 0) for case in scored for kind in KINDS[name]),
        sum(case.found.get(kind, 0) for case in scored for kind in KINDS[name]),
    )


def _alone(seen: SessionView | None, detect: Detector) -> Output:
    """Return what one detector makes of a session."""
    if seen is None:
        return Output("", "")
    found = tasks.cut(seen)
    outcomes.judge(found)
    return lesson_text.output(
        assemble.session_lessons(seen, found, retractions.without_retracted(list(detect(found)), found))
    )


def _views(case: Case) -> list[SessionView | None]:
    """Return the sessions of a case as a reader sees them; None for one that may not be read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = ledger_writer.LedgerDestination(folder / "home", lambda: NOW, 65536)
        views: list[SessionView | None] = []
        for session, _, path in files.write(case, folder, NOW):
            if session.source in ("subagent", "ephemeral"):
                views.append(None)
                continue
            own = session.agent == "codex"
            ledger = path if own else ledger_writer.write(path, claude_code.convert, place)[0][0].path
            views.append(session_view.read(ledger))
        return views
