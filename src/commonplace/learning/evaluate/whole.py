"""Scoring a whole memory: what was merged, what took whose place, whom it is for, and how large it is.

An expectation is one label of a case: something that must be in the memory (in the right block, if its scope is given),
something that a later session reversed and that must be gone, a wish that several sessions taught and that must be one
entry, a skill, or a text that may appear nowhere. The score is the share of expectations that are met, times the share
of entries that were wanted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from commonplace.learning.evaluate.cases import Case, WantedLesson
from commonplace.memory.workspace import layout
from commonplace.patterns import regex

_SCOPE: Final = regex(r"^scope: (?:project )?(.+)$")
_SECTIONS: Final = ("## User preferences", "## Reusable knowledge", "## Failures and how to do differently")
_COUNT: Final = regex(r"\((\d+) sessions\)")


class HandbookLine(msgspec.Struct, frozen=True):
    """One entry, as MEMORY.md has it."""

    scope: str
    text: str

    @property
    def support(self) -> int:
        """How many sessions it says taught it."""
        found = _COUNT.search(self.text)
        return int(found[1]) if found else 1


class WholeScore(msgspec.Struct):
    """How one case went."""

    id: str
    met: dict[str, int] = {}
    wanted: dict[str, int] = {}
    failed: list[str] = []
    false: list[str] = []
    counted: int = 0
    bytes: int = 0
    dialogue: int = 0

    def note(self, kind: str, about: str, *, is_met: bool) -> None:
        """Count an expectation."""
        self.wanted[kind] = self.wanted.get(kind, 0) + 1
        self.met[kind] = self.met.get(kind, 0) + is_met
        if not is_met:
            self.failed = [*self.failed, f"{kind}: {about}"]


def lines(memory: str) -> list[HandbookLine]:
    """Return the entries of MEMORY.md."""
    found: list[HandbookLine] = []
    scope = ""
    inside = False
    for line in memory.split("\n"):
        head = _SCOPE.match(line)
        if head:
            scope = head[1]
        if line.startswith("#"):
            inside = line in _SECTIONS
        elif inside and line.startswith("- ") and not line.startswith("- Related skill: "):
            found.append(HandbookLine(scope, line))
    return found


def score(case: Case, home: Path, projects: list[str], dialogue: int) -> WholeScore:
    """Score what was made of a case; `projects` names the project of each session."""
    root = home / layout.FOLDER
    memory, digest = ((root / name).read_text("utf-8") for name in (layout.MEMORY, layout.SUMMARY))
    result = WholeScore(case.id, bytes=len(memory.encode()) + len(digest.encode()), dialogue=dialogue)
    written = lines(memory)
    used: set[int] = set()
    for wanted in case.expect.learn:
        hits = [number for number, line in enumerate(written) if _matches(line.text, wanted)]
        used.update(hits)
        _expectation(result, wanted, [written[number] for number in hits], projects)
    allowed = {
        number for number, line in enumerate(written) if any(_matches(line.text, each) for each in case.expect.allow)
    }
    result.false = [line.text for number, line in enumerate(written) if number not in used | allowed]
    result.counted = len(written) - len(allowed - used)
    texts = [path.read_text("utf-8") for path in sorted(root.glob(f"{layout.SKILLS}/*/SKILL.md"))]
    for steps in case.expect.skills:
        result.note("skill", str(steps), is_met=any(all(step in text for step in steps) for text in texts))
    everything = "\n".join([memory, digest, *texts]).lower()
    for text in case.expect.never:
        result.note("never", text, is_met=text.lower() not in everything)
    return result


def _expectation(result: WholeScore, wanted: WantedLesson, hits: list[HandbookLine], projects: list[str]) -> None:
    about = f"{wanted.kind} {wanted.all} {wanted.any}"
    if wanted.superseded:
        result.note("superseded", about, is_met=not hits)
        return
    result.note("learned", about, is_met=bool(hits))
    if wanted.scope is not None and hits:
        where = "global" if wanted.scope == "global" else projects[wanted.session or 0]
        found = [hit.scope for hit in hits]
        result.note("scope", f"{about} in {found}", is_met=where in found)
    if wanted.support > 1:
        result.note("merged", about, is_met=len(hits) == 1 and hits[0].support > 1)


def _matches(text: str, wanted: WantedLesson) -> bool:
    lower = text.lower()
    return all(part.lower() in lower for part in wanted.all) and (
        not wanted.any or any(part.lower() in lower for part in wanted.any)
    )


def total(scores: list[WholeScore]) -> float:
    """Return the score of a set, of 100."""
    met = sum(sum(each.met.values()) for each in scores)
    wanted = sum(sum(each.wanted.values()) for each in scores)
    return 100 * met / wanted * precision(scores) if wanted else 100.0


def precision(scores: list[WholeScore]) -> float:
    """Return the share of entries that were wanted."""
    counted = sum(each.counted for each in scores)
    return 1 - sum(len(each.false) for each in scores) / counted if counted else 1.0


def share(scores: list[WholeScore], kind: str) -> float:
    """Return the share of one kind of expectation that was met."""
    wanted = sum(each.wanted.get(kind, 0) for each in scores)
    return sum(each.met.get(kind, 0) for each in scores) / wanted if wanted else 1.0
