"""The embedded extractor: reads a session without a model, and says less rather than guess.

    view → what the person said, judged (`lasting`) ┐
         → the commands that ran (`commands`)       ┴→ findings of tasks → lessons → texts

Each finding carries the words it rests on. The same session always gives the same bytes.
"""

from __future__ import annotations

import bisect
from typing import Any, Final

import anyio.to_thread
import msgspec

from commonplace.learning.commands import choose
from commonplace.learning.commands.lines import CommandLine
from commonplace.learning.commands.runs import runs_of
from commonplace.learning.extract.rules import assemble, retractions
from commonplace.learning.lasting.judge import alone
from commonplace.learning.lasting.statements import PersonStatement, spoken
from commonplace.learning.reading import outcomes, tasks
from commonplace.learning.reading.findings import FindingEvidence, RuleFinding, SessionTask, quote
from commonplace.learning.reading.session_view import EventSpan, SessionView
from commonplace.memory import sameness
from commonplace.memory.entries import LISTED
from commonplace.memory.files import lesson_text
from commonplace.memory.sameness import ComparedSentence, Relation
from commonplace.state.outputs import Output

_LONGEST: Final = 600
"""How many characters of what somebody said are kept."""
_ASKED: Final = 200
"""How many characters of a question are told with its answer."""
_REFUSED: Final = 80
"""How many characters of a refused command are told."""


class RuleExtractor:
    """The embedded extractor: it works by rules and a small judge, and needs no model."""

    name = "embedded"

    async def extract(self, view: SessionView) -> Output:
        """Return what a session taught; empty texts if nothing."""
        return await anyio.to_thread.run_sync(extract, view)


def extract(view: SessionView) -> Output:
    """Return what a session taught."""
    person, ran = spoken(view), runs_of(view)
    lasting = [each.text for each in person.statements if alone(each.probability, each.judged) >= LISTED]
    cut = tasks.cut(view, lasting)
    outcomes.judge(cut)
    said = retractions.without_retracted([_said(each, cut) for each in person.statements], cut)
    shown = [_shown(line, cut) for line in choose.choose([ran], [view.cwd]) if line.is_told]
    taught = assemble.session_lessons(view, cut, [*_unique(said), *shown])
    runs: dict[str, Any] = msgspec.to_builtins(ran) if ran.calls else {}
    return lesson_text.output(msgspec.structs.replace(taught, sentences=tuple(person.sentences), runs=runs))


def _said(statement: PersonStatement, cut: list[SessionTask]) -> RuleFinding:
    """Return what somebody said as a finding of the task in which they said it."""
    text, stretch = quote(statement.text, _LONGEST), quote(statement.stretch, _LONGEST)
    refused = f" after refusing `{quote(statement.refused.replace('`', ''), _REFUSED)}`" if statement.refused else ""
    answered = f" in answer to `{quote(statement.question.replace('`', ''), _ASKED)}`" if statement.question else ""
    return RuleFinding(
        statement.kind,
        [FindingEvidence(statement.at, text, "said by the user")],
        _task_at(statement.at.start, cut),
        words=text,
        stretch=stretch if stretch != text else "",
        lead=f"said by the user{refused}{answered}",
        confidence=alone(statement.probability, statement.judged),
        judged=statement.judged,
    )


def _shown(line: CommandLine, cut: list[SessionTask]) -> RuleFinding:
    """Return what commands showed as a finding of the task in which it was shown last."""
    evidence = [
        FindingEvidence(EventSpan(each.turn, each.start, each.end), each.quote, "shown by a command")
        for each in line.sources
    ]
    place = _task_at(max(each.start for each in line.sources), cut)
    return RuleFinding(line.kind, evidence, place, shown=line.text, commands=line.commands, role=line.role)


def _task_at(start: int, cut: list[SessionTask]) -> int:
    return max(bisect.bisect_right(cut, start, key=lambda task: task.at.start) - 1, 0)


def _unique(findings: list[RuleFinding]) -> list[RuleFinding]:
    """Return what a person said without repetition; of what contradicts, what they said last."""
    kept: list[tuple[RuleFinding, ComparedSentence]] = []
    evidence: dict[int, dict[FindingEvidence, None]] = {}
    for finding in findings:
        read = sameness.read(finding.words)
        relations = {
            id(known): sameness.compare(before, read)
            for known, before in kept
            if known.words == finding.words or not before.handles.isdisjoint(read.handles)
        }
        kept = [each for each in kept if relations.get(id(each[0])) is not Relation.REPLACES]
        same = next((known for known, _ in kept if relations.get(id(known)) is Relation.SAME), None)
        if same is None:
            kept.append((finding, read))
        else:
            known = evidence.setdefault(id(same), dict.fromkeys(same.evidence))
            same.evidence += (each for each in finding.evidence if each not in known)
            known.update(dict.fromkeys(finding.evidence))
            same.confidence = max(same.confidence, finding.confidence)
    return [finding for finding, _ in kept]
