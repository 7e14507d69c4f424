"""What one sentence of a person teaches: two judges, and how their verdicts become one.

Rules over cue words (`preferences`, `statements`) know what is said outright; the classifier knows labelled messages,
and how often the rules were right about them. What the rules find is kept unless the classifier is sure that it is
nothing; what only the classifier finds needs more, and more still where cue words speak against it. Where both find
something, the classifier tells the section, since it weighs the whole sentence.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from commonplace.learning.extract.rules import classifier, preferences, statements
from commonplace.learning.extract.rules.classifier import Moment
from commonplace.learning.extract.rules.findings import FAILURES, PREFERENCES, Kind, section_of
from commonplace.learning.extract.rules.preferences import Where
from commonplace.learning.reading import exclusions
from commonplace.learning.reading.cues import Cue
from commonplace.learning.reading.sentences import Sentence

SURE: Final = 0.8
"""How likely the classifier must find something worth keeping, if cue words do not say so."""
SURE_AGAINST: Final = 0.87
"""What the classifier needs where cue words speak against a sentence: once, for now, perhaps, others say."""
SURE_THROUGHOUT: Final = 0.95
"""What the classifier needs where a sentence mostly tells what is to be written, or what is broken."""
SURE_OF_NOTHING: Final = 0.9
"""How likely the classifier must find nothing in a sentence to overrule cue words."""
SURE_OF_NOTHING_CLEAR: Final = 0.98
"""The same for clear words of blame or consent, and for a few words, of which labelled messages have few."""
SURE_OF_NOTHING_OUTRIGHT: Final = 0.95
"""The same for words that say that a wish lasts: they mean what they say."""
SURE_OF_NOTHING_ASKED: Final = 0.75
"""The same for what asks for something now, and has no word that says that it lasts."""
SURE_OF_NOTHING_IN_TALK: Final = 0.5
"""The same where nothing but talk goes on."""
SURE_BESIDE: Final = 0.2
"""What the classifier needs for a sentence next to one that is kept: they belong together."""
MUCH_LIKELIER: Final = 1.5
"""How much likelier another section must be than the one that cue words tell."""
SURE_AFTER_FAILING: Final = 0.35
"""What the classifier needs to find a dead end right after something failed."""
DEAD_END: Final = 0.12
"""How likely a dead end must be for what is said after commands failed to be one."""
_AGAINST: Final[tuple[Cue, ...]] = ("once", "unreal", "transient", "request", "praise", "moving_on")
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_CLEAR: Final[tuple[Cue, ...]] = ("blame", "consent")
_OUTRIGHT: Final[tuple[Cue, ...]] = ("lasting", "command", "consent", "scope")
_NORMATIVE: Final[tuple[Cue, ...]] = (*_CLEAR, "lasting", "command", "we", "forbid", "contrast", "mine")
_FEW_WORDS: Final = 5
_MIN_WORDS: Final = 3
_MIN_HAN: Final = 5


class MessageContext(msgspec.Struct, frozen=True):
    """The position of a message in its session."""

    moment: Moment
    programs: frozenset[str] = frozenset()
    """Words of the commands that were run."""
    failing: bool = False
    """The last thing that was tried failed, or was taken back."""
    is_talk: bool = False
    """Nothing is done in the whole session: most of what is said is a question or small talk."""

    @property
    def where(self) -> Where:
        """In a request, or after something was shown."""
        return "opening" if self.moment == "opening" else "answering"


class Judgement(msgspec.Struct, frozen=True):
    """What a sentence teaches, and how sure that is."""

    kind: Kind
    share: float
    """How likely it is to be of that section."""
    by_classifier: bool
    """Only the classifier found it; cue words did not."""


ANSWERING: Final = MessageContext("answering")


@lru_cache(maxsize=1024)
def judge_sentence(own: tuple[Sentence, ...], number: int, scene: MessageContext = ANSWERING) -> Judgement | None:
    """Return what a sentence teaches; None for nothing."""
    sentence = own[number]
    if exclusions.is_unfit(sentence.text) or sentence.heard.says("retraction"):
        return None
    by_cues = kind_by_cues(sentence, scene)
    heard = classifier.classify(own, number, scene.moment, by_cues)
    if by_cues is not None:
        clear = _is_short(sentence) or sentence.heard.any(*_CLEAR)
        sure = SURE_OF_NOTHING_CLEAR if clear else SURE_OF_NOTHING
        if by_cues in PREFERENCES and sentence.heard.any(*_OUTRIGHT):
            sure = SURE_OF_NOTHING_OUTRIGHT
        if scene.is_talk and not sentence.heard.any(*_OUTRIGHT):
            sure = SURE_OF_NOTHING_IN_TALK
        elif sentence.heard.says("request") and not sentence.heard.any("lasting", "command", "mine", "blame"):
            sure = SURE_OF_NOTHING_ASKED
        return None if heard.nothing >= sure else _judgement(_better(by_cues, heard, scene), heard, by_ear=False)
    if _is_too_short(sentence) or sentence.is_question or sentence.heard.says("others"):
        return None
    best = _better(heard.best, heard, scene)
    return _judgement(best, heard, by_ear=True) if 1 - heard.nothing > _least(sentence, best, scene) else None


def _least(sentence: Sentence, best: Kind, scene: MessageContext) -> float:
    """Return how sure the classifier must be of a sentence in which cue words find nothing."""
    if scene.is_talk:
        return SURE_THROUGHOUT
    if best == "failure" and scene.failing:
        return SURE_AFTER_FAILING
    if exclusions.is_dictated(sentence.heard) or (best == "failure" and scene.moment == "opening"):
        return SURE_THROUGHOUT  # what is to be written, or what is broken
    return SURE_AGAINST if _speaks_against(sentence, scene.moment) else SURE


def _judgement(kind: Kind, heard: classifier.KindProbabilities, *, by_ear: bool) -> Judgement:
    return Judgement(kind, heard.share(section_of(kind)), by_ear)


def kind_by_cues(sentence: Sentence, scene: MessageContext) -> Kind | None:
    """Return what cue words say a sentence is."""
    found = preferences.kind_of(sentence, scene.where) or statements.kind_of(sentence, scene.where, scene.programs)
    if found == "rule" and sentence.heard.says("request") and not sentence.heard.any(*_NORMATIVE):
        return None  # it asks for something now, and only names the place
    return found


def _speaks_against(sentence: Sentence, moment: Moment) -> bool:
    """Say whether cue words make it unlikely that a sentence lasts: once, others, a request, a bug, a few words."""
    if sentence.heard.any(*_AGAINST) or not exclusions.is_meant_to_last(sentence):
        return True
    if moment == "opening" and (sentence.first or sentence.heard.says("problem")):
        return True
    return _is_short(sentence)


def _is_short(sentence: Sentence) -> bool:
    return len(sentence.text.split()) < _FEW_WORDS and len(_HAN.findall(sentence.text)) < 2 * _MIN_HAN


def _better(kind: Kind, heard: classifier.KindProbabilities, scene: MessageContext) -> Kind:
    """Return the kind that is told, or the classifier's, if that belongs elsewhere and is likelier."""
    best = heard.best
    if scene.failing and heard.share(FAILURES) > DEAD_END:
        return "failure"
    return best if heard.share(section_of(best)) > MUCH_LIKELIER * heard.share(section_of(kind)) else kind


def _is_too_short(sentence: Sentence) -> bool:
    return len(sentence.text.split()) < _MIN_WORDS and len(_HAN.findall(sentence.text)) < _MIN_HAN
