"""What a person wants by default, and what holds in their project: in their own words.

Where a sentence stands decides how much it must say. In a request, most of what sounds like a rule is a requirement of
the thing to be built: only words that outlast it count (always, by default, we, in this repo). Once work was shown, a
few words about how it was done are a wish (smaller diffs; tests next to the code; you added comments again). After a
refusal or a stop, all that is said is about what is wanted instead.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

from commonplace.learning.extract.rules.findings import FindingEvidence, Kind, RuleFinding, quote
from commonplace.learning.reading import exclusions, sentences, tables
from commonplace.learning.reading.cues import SentenceCues
from commonplace.learning.reading.sentences import Sentence
from commonplace.learning.reading.session_view import Interruption, ToolUse, UserText

Where = Literal["opening", "answering"]
"""In a request, or after something was shown."""

_SPECIFIC: Final = tables.pattern("specific", flags=re.NOFLAG)
_CODE: Final = tables.pattern("code", flags=re.NOFLAG)
_TOOLS: Final = tables.pattern("tools", r"\b", r"\b")
_BROAD: Final = tables.pattern("broad")
_HABIT: Final = tables.pattern("habit")
_THING: Final = tables.pattern("thing")
_AT_HAND: Final = tables.pattern("at_hand")
_TASTE: Final = tables.pattern("taste")
_CONTINUES: Final = tables.pattern("goes_on")
_UNTIL: Final = tables.pattern("until")
_NO_NOTE: Final = tables.pattern("no_note")
_LONG: Final = re.compile(r"\w{4,}")
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_MAX_AFTER_STOP: Final = 300
_MAX_JOINED: Final = 12
_FEW_WORDS: Final = 8
_MIN_CHARS: Final = 8
_MIN_HAN: Final = 4


def after_stop(said: UserText, stopped: ToolUse | Interruption, place: int) -> RuleFinding | None:
    """Return what a person wants instead of what they stopped or refused: all they said about it."""
    own = [each for each in sentences.of_text(said.text) if not each.is_question and not exclusions.is_unfit(each.text)]
    meant = [each for each in own if not _is_aside(each)]
    text = " ".join(sentence.text for sentence in meant)
    if not meant or len(text) > _MAX_AFTER_STOP or _NO_NOTE.fullmatch(text.strip().lower()):
        return None
    refused = isinstance(stopped, ToolUse)
    if not any(_says_how(each.heard) or kind_of(each, "answering") for each in meant) and not (
        refused and len(text.split()) >= 3
    ):
        return None
    if any(each.heard.any("once", "retraction") and not each.heard.any("lasting", "command") for each in meant):
        return None
    what = f"`{quote(stopped.command or stopped.name, 120)}`" if isinstance(stopped, ToolUse) else "the turn"
    how = f"said by the user after {'refusing' if refused else 'stopping'} {what}"
    return RuleFinding("preference", [FindingEvidence(said.at, quote(text), how)], place, words=quote(text), lead=how)


def _is_aside(sentence: Sentence) -> bool:
    return len(sentence.text.split()) <= 2 and not sentence.heard.any("forbid", "contrast", "work", "manner")


def _says_how(heard: SentenceCues) -> bool:
    """Say whether a sentence tells how something is to be done, or not to be done."""
    if heard.any("consent", "command", "mine", "blame", "we", "scope"):
        return True
    return heard.any("forbid", "contrast", "lasting", "manner") and (is_about_work(heard) or heard.says("contrast"))


def goes_on(parts: list[Sentence], sentence: Sentence) -> bool:
    """Say whether a wish only goes on with the one before it."""
    words, before = set(_LONG.findall(sentence.heard.lower)), set(_LONG.findall(parts[-1].heard.lower))
    if len(sentence.text.split()) <= _FEW_WORDS or len(parts[-1].text.split()) <= _FEW_WORDS // 2:
        return True
    return bool(words & before) or continues(sentence)


def continues(sentence: Sentence) -> bool:
    """Say whether a sentence begins as one does that goes on with what was just said, or gives its reason."""
    return bool(_CONTINUES.search(sentence.heard.lower))


def tells_instead(parts: list[Sentence], sentence: Sentence, where: Where) -> bool:
    """Say whether a sentence after a complaint or a ban tells what is wanted instead."""
    heard = sentence.heard
    first = parts[0].heard
    return (
        where == "answering"
        and len(parts) <= 2
        and first.any("blame", "forbid", "mine")
        and not sentence.is_question
        and len(sentence.text.split()) <= _MAX_JOINED
        and exclusions.is_meant_to_last(sentence)
        and not heard.any("praise", "rejection", "moving_on", "transient")
        and not _AT_HAND.search(heard.lower)
    )


@lru_cache(maxsize=1024)
def kind_of(sentence: Sentence, where: Where) -> Kind | None:
    """Return what kind of wish a sentence tells; None for none."""
    heard = sentence.heard
    if not _is_sayable(sentence, where) or not exclusions.is_meant_to_last(sentence) or exclusions.is_dictated(heard):
        return None
    if sentence.is_listed:
        return None if heard.says("transient") else "rule"
    if is_decision(heard) or is_fact(sentence, where):
        return None
    if heard.says("gave_up") and not heard.any("command", "lasting", "consent"):
        return None
    if heard.says("consent"):
        return "preference"
    if _is_norm(heard, where):
        return "rule"
    return "preference" if _is_wish(heard, where) else None


def _is_sayable(sentence: Sentence, where: Where) -> bool:
    """Say whether a sentence has the form of a statement or a demand."""
    text = sentence.text
    if (len(text) < _MIN_CHARS and len(_HAN.findall(text)) < _MIN_HAN) or text.endswith((":", "：")):
        return False
    if sentence.is_question and not exclusions.insists(sentence.heard):
        return where == "answering" and sentence.heard.says("blame")
    return True


def _is_norm(heard: SentenceCues, where: Where) -> bool:
    """Say whether a sentence states what a team does or what holds in a project."""
    if not heard.any("we", "scope") or heard.any("transient", "past"):
        return False
    normative = heard.any("command", "forbid", "contrast") or _outlasts(heard)
    if heard.says("product") and not normative and not heard.says("scope"):
        return False
    if heard.says("rejection") and not heard.any("command", "forbid", "scope"):
        return False
    if heard.says("decision") and not heard.says("scope") and not normative and not is_about_work(heard):
        return False
    broken = heard.head.says("problem") if where == "answering" else heard.says("problem")
    if broken and not normative and not (where == "answering" and heard.says("we")):
        return False
    if heard.says("request") and not normative and not heard.says("we"):
        return False
    if exclusions.is_state(heard) and not heard.any("forbid", "contrast", "scope"):
        return False
    if where == "opening":
        return normative or is_about_work(heard) or (heard.says("we") and heard.says("scope"))
    return normative or is_about_work(heard) or not heard.says("praise")


def _is_wish(heard: SentenceCues, where: Where) -> bool:
    """Say whether a sentence tells what this person wants by default."""
    about_work = is_about_work(heard)
    if heard.says("transient") or (exclusions.is_state(heard) and not heard.any("mine", "forbid", "blame")):
        return False
    if heard.says("praise") and not heard.any("mine", "blame", "command", "contrast"):
        return False
    if heard.says("blame"):
        return where == "answering" or (about_work and not heard.says("request"))
    if heard.says("mine"):
        if where == "answering" and _TASTE.search(heard.lower):
            return True
        return about_work or heard.any("command", "contrast") or _outlasts(heard)
    if heard.says("product"):
        return False
    if heard.says("command"):
        return where == "answering" or about_work or heard.any("contrast", "lasting")
    if (_outlasts(heard) if where == "opening" else heard.says("lasting")) and (
        (where == "answering" and heard.says("request")) or not heard.head.says("problem")
    ):
        return about_work or heard.any("contrast", "forbid")
    if where == "opening":
        return heard.says("forbid") and bool(_HABIT.search(heard.lower)) and not heard.says("request")
    return about_work and _is_remark_on_manner(heard)


def _is_remark_on_manner(heard: SentenceCues) -> bool:
    """Say whether a few words after shown work tell how such work is to be done, not what is wrong with this one."""
    if (
        heard.head.says("problem")
        or heard.any("rejection", "moving_on")
        or _THING.search(heard.lower)
        or len(heard.text.split()) > 24
    ):
        return False
    if heard.says("request"):
        return heard.any("contrast", "lasting") and not _AT_HAND.search(heard.lower)
    if heard.any("forbid", "contrast"):
        return not _AT_HAND.search(heard.lower)
    return heard.says("manner") and not heard.says("praise") and not _AT_HAND.search(heard.lower)


def is_about_work(heard: SentenceCues) -> bool:
    """Say whether a sentence is about the way of working: history, tests, names, answers, tools."""
    return heard.says("work") or bool(_TOOLS.search(heard.lower)) or bool(_CODE.search(heard.text))


def _outlasts(heard: SentenceCues) -> bool:
    """Say whether a sentence says that it holds later too; where a request begins, `every` and `all` are not enough."""
    if not heard.says("lasting"):
        return False
    if not heard.says("request") or not _BROAD.search(heard.lower):
        return True
    return SentenceCues(_BROAD.sub(" ", heard.text), heard.languages).says("lasting")


def is_decision(heard: SentenceCues) -> bool:
    """Say whether a sentence decides something and says why."""
    if not (heard.says("decision") and heard.says("reason")) or heard.any("command", "consent", "blame"):
        return False
    return not heard.says("lasting") or not SentenceCues(_BROAD.sub(" ", heard.text), heard.languages).says("lasting")


def is_fact(sentence: Sentence, where: Where) -> bool:
    """Say whether a sentence tells how a project or a machine durably is: it names the thing, and something exact.

    A request may open with what is broken, which is no fact; what is said once work was shown rather is one.
    """
    heard = sentence.heard
    if (
        sentence.is_question
        or not _SPECIFIC.search(heard.text)
        or not (heard.says("infra") and heard.head.says("fact"))
    ):
        return False
    if heard.any(
        "transient", "request", "forbid", "command", "consent", "mine", "blame", "retraction", "others", "unreal"
    ):
        return False
    if (heard.says("once") and not _UNTIL.search(heard.lower)) or (
        heard.says("scope") and not heard.head.says("infra")
    ):
        return False
    if where == "opening":
        return not sentence.is_alone and not heard.any("problem", "product")
    return not heard.head.says("problem") or heard.any("scope", "reason") or bool(_UNTIL.search(heard.lower))
