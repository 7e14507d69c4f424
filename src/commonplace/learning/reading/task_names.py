"""What a task is called: the clause that asks for it, or what was done for it.

A name stands in everything that is written about a session, so nothing may get into it that is not worth keeping: no
small talk, no mood, no time of day, nothing quoted, no secret. Of what a person typed, only the clause that asks for
something is taken; where none does, the name tells which files were changed or what was run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commonplace.learning.reading import commands, exclusions, patches, sentences, tables
from commonplace.learning.reading.cues import Cue, SentenceCues
from commonplace.learning.reading.findings import SessionTask, quote
from commonplace.learning.reading.sentences import Sentence
from commonplace.learning.reading.session_view import ToolUse, UserText
from commonplace.patterns import regex

_CLAUSE: Final = regex(
    r"[,;(—–!?]\s|[:.] |\s-{1,2}\s|[，；：。！？（]|\s(?:because|since|weil|denn|porque|parce que|car)\s"
)
_WHEN: Final = tables.pattern("when")
_ASIDE: Final = tables.pattern("aside_in_names")
_QUOTED: Final = regex(r"“[^”]*”?|„[^“”]*[“”]?|«[^»]*»?|\"[^\"]*\"?|\([^)]*\)?|`[^`]{40,}`?|…|[‘’'](?=\s)|\s[‘'](?=\w)")
_HAN: Final = regex(r"[\u3400-\u9fff]")
_SPACE: Final = regex(r"\s+")
_NOT_ASKED: Final[tuple[Cue, ...]] = ("others", "retraction", "lasting")
"""Words of others, what is taken back, and standing wishes name no task."""
_ASKS: Final[tuple[Cue, ...]] = ("request", "problem")
_LONGEST: Final = 70
_FEWEST: Final = 2
_MIN_HAN: Final = 4
_FILES: Final = 3
_NO_NAME: Final = tables.words("no_name")


def task_name(task: SessionTask) -> str:
    """Return the name of a task; empty if nothing tells what it was about."""
    said = next((event for event in task.events if isinstance(event, UserText)), None)
    own = sentences.of_text(said.text) if said is not None and not exclusions.is_text_work(said.text) else ()
    return next(filter(None, _clauses(own)), "") or _by_work(task)


def _clauses(own: tuple[Sentence, ...]) -> Iterator[str]:
    """Yield what may name a task, best first: clauses that ask, then those that tell a problem, then questions."""
    fit = [each for each in own if not exclusions.is_unfit(each.text) and not each.heard.any(*_NOT_ASKED)]
    for cue in _ASKS:
        for sentence in fit:
            if sentence.heard.says(cue):
                yield from (_tidy(part) for part in _asking(sentence.heard, cue))
    for sentence in fit:
        if sentence.is_question and not sentence.heard.any("praise", "rejection"):
            yield _tidy(_CLAUSE.split(sentence.heard.bare)[0])


def _asking(heard: SentenceCues, cue: Cue) -> Iterator[str]:
    for part in _CLAUSE.split(heard.bare):
        said = SentenceCues(part.strip(), heard.languages)
        if said.says(cue) and not said.any("rejection", "praise"):
            yield said.bare


def _tidy(clause: str) -> str:
    """Return a clause without what does not belong into a name; empty if little is left."""
    bare = _SPACE.sub(" ", _ASIDE.sub(" ", _WHEN.sub(" ", _QUOTED.sub(" ", clause)))).strip(" .!?。！？:：,，、-…\"'")
    if len(bare.split()) < _FEWEST and len(_HAN.findall(bare)) < _MIN_HAN:
        return ""
    return bare if len(bare) <= _LONGEST else ""


def _by_work(task: SessionTask) -> str:
    """Return a name that tells what was done: which files were changed, or else what was run last and worked."""
    calls = [call for call in task.calls() if not call.is_memory and not call.refused and call.ok]
    edits = [name for call in calls if patches.is_edit(call) for name in patches.files(call)]
    changed = dict.fromkeys(name.rpartition("/")[2] for name in edits)
    if changed:
        return "work on " + ", ".join(quote(name, 40) for name in list(changed)[:_FILES])
    ran = [call for call in calls if _does(call)]
    telling = [call for call in ran if commands.is_telling(call.command)] or ran
    program = commands.parse(telling[-1].command).program if telling else ""
    return f"run {program}" if program and program.split()[0] not in _NO_NAME else ""


def _does(call: ToolUse) -> bool:
    return bool(call.command) and not commands.is_looking(commands.parse(call.command))
