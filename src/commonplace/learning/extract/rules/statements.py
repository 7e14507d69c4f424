"""What a person states about the project: decisions with their reason, durable facts, and what was tried in vain.

Facts come from the person; never from what a tool printed about the world, and never from what the model supposed.
"""

from __future__ import annotations

import re
from typing import Final

from commonplace.learning.extract.rules.findings import FindingEvidence, Kind, RuleFinding, SessionTask, quote
from commonplace.learning.extract.rules.preferences import Where, is_decision, is_fact
from commonplace.learning.reading import commands, exclusions, sentences, tables
from commonplace.learning.reading.cues import Cue
from commonplace.learning.reading.sentences import Sentence
from commonplace.learning.reading.session_view import ModelText, UserText

_ORDER: Final = tables.pattern("order")
_STEPS: Final = re.compile(r",|\bthen\b|\bdann\b|\bluego\b|\bpuis\b|\bensuite\b|、|，|再")
_NAME: Final = re.compile(r"[\w.+-]{3,}")
_DULL: Final = tables.words("dull_in_tasks")
_NAMED: Final = re.compile(r"\b[A-Z]{2,}|\w[A-Z]\w|\d|[a-z]-[a-z]|`|\w\.\w")
_CODE: Final = tables.pattern("code", flags=re.NOFLAG)
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_NO_CHOICE: Final[tuple[Cue, ...]] = (
    "unreal", "others", "rejection", "lasting", "blame", "command", "consent", "mine", "moving_on", "once",
)  # fmt: skip
_DECIDED: Final = "decided by the user"
_SHORT: Final = 5
_MIN_REASON: Final = 4
_MIN_DEAD_END: Final = 7


def choice(said: UserText, before: ModelText, place: int) -> RuleFinding | None:
    """Return the option that a person took from those that were offered, if they say why."""
    own = [each for each in sentences.of_text(said.text) if not each.is_question]
    if not own or any(each.heard.any(*_NO_CHOICE) for each in own[:2]):
        return None
    if own[0].heard.says("decision") and not own[0].heard.says("request") and _tail(own[0]) >= _MIN_REASON:
        text = quote(own[0].text)
        evidence = [FindingEvidence(said.at, text, "said by the user")]
        return RuleFinding("decision", evidence, place, words=text, lead=_DECIDED)
    short = own[0] if len(own[0].text.split()) <= _SHORT else None
    head = own[0].heard.head.text if short is None else own[0].text
    rest = own[0].text[len(head) :] if short is None else own[1].text if len(own) > 1 else ""
    offered = before.text.lower()
    named = {word for word in (each.lower().strip(".") for each in _NAME.findall(head)) if word in offered}
    if not named - _DULL or len(head.split()) > _SHORT or len(rest.split()) < _MIN_REASON:
        return None
    if own[0].heard.says("praise") or (len(own) > 1 and short is not None and own[1].heard.says("request")):
        return None
    text = quote(own[0].text if short is None else f"{own[0].text} {own[1].text}")
    evidence = [FindingEvidence(said.at, text, "said by the user")]
    return RuleFinding("decision", evidence, place, words=text, lead=_DECIDED)


def programs_of(task: SessionTask) -> frozenset[str]:
    """Return the words of the commands that a task ran."""
    return frozenset(word for call in task.calls() if call.command for word in commands.parse(call.command).words)


def _tail(sentence: Sentence) -> int:
    """Return how many words follow the first clause: what is decided comes first, and why after it."""
    rest = sentence.heard.bare[len(sentence.heard.head.text) :]
    return len(rest.split()) + len(_HAN.findall(rest)) // 2


def kind_of(sentence: Sentence, where: Where, programs: frozenset[str]) -> Kind | None:
    """Return what a sentence states about the project; None for nothing."""
    if sentence.is_question or sentence.heard.any("others", "retraction"):
        return None
    if _is_order(sentence, where, programs):
        return "procedure"
    if where == "answering" and _is_dead_end(sentence):
        return "failure"
    if is_fact(sentence, where):
        return "environment"
    return "decision" if exclusions.is_meant_to_last(sentence) and is_decision(sentence.heard) else None


def _is_dead_end(sentence: Sentence) -> bool:
    """Say whether a sentence says that something was tried and leads nowhere; a bug report does not."""
    heard = sentence.heard
    words = len(sentence.text.split()) + len(_HAN.findall(sentence.text)) // 2
    return (
        heard.says("gave_up") and words >= _MIN_DEAD_END and (heard.says("reason") or bool(_NAMED.search(heard.text)))
    )


def _is_order(sentence: Sentence, where: Where, programs: frozenset[str]) -> bool:
    """Say whether a sentence tells steps in their order, once work was shown."""
    heard = sentence.heard
    known = bool(programs & {word.lower() for word in _NAME.findall(heard.text)})
    return (
        where == "answering"
        and bool(_ORDER.search(heard.lower))
        and (known or bool(_CODE.search(heard.text)))
        and not heard.any("once", "unreal", "request")
        and len(_STEPS.findall(heard.lower)) >= 1
    )
