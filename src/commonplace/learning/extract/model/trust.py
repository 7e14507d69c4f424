"""What of a model's answer is believed: the rules that stand between a session's text and the memory.

A model that reads a session may be talked into things by it. So what it says is judged by whose words it rests on:

1. A bullet needs at least one reference that was found. Steps of a summary may do without.
2. A wish or a rule needs the person's own words, and becomes them: the bullet is rewritten around what they said. What
   it is said to mean (`-> …`) stays only if most of its words, and every name, path and number in it, are the person's.
   Without words of the person it is dropped, not moved: an instruction in another section is still an instruction.
3. So is a bullet elsewhere that says that the person said something: it needs their words, and gets them.
4. Any other bullet that tells what to do from now on is kept only if most of its words are the person's, or stand in
   commands that ran; such commands themselves, and what one that failed said, tell nobody what to do. If it rests on
   nothing but what was printed, pasted or said by the assistant, a plain request at its beginning counts as well.
5. A bullet that says that commands worked names commands that ran, the last of them with success.
6. What tries to steer its reader, or has to do with a credential, is dropped wherever it stands; so are such names,
   titles and keywords.

Whatever is left out here is left out in silence for the model, never asked for again: saying less is no failure.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

from commonplace.learning.extract.model import drafts, evidence
from commonplace.learning.extract.model.drafts import FAILURES, KNOWLEDGE, PREFERENCES, STEPS, Draft, DraftBullet
from commonplace.learning.extract.model.evidence import Proof
from commonplace.learning.extract.model.verified import VerifiedBullet, VerifiedSession, VerifiedTask
from commonplace.learning.reading import cues, exclusions, sentences
from commonplace.learning.reading.cues import Cue, SentenceCues
from commonplace.learning.reading.findings import quote
from commonplace.memory import similarity
from commonplace.memory.sentence_split import MAX_SENTENCE

_MAX_TEXT: Final = 600
"""How many characters of a bullet are kept."""
_MAX_NAME: Final = 120
"""How many characters of a task's name are kept."""
_MAX_DEFAULT: Final = 200
"""How many characters of a stated default are kept."""
_MAX_KEYWORDS: Final = 24
"""How many keywords are kept."""
_MAX_LINE: Final = 400
"""How many characters of any other line are kept."""
_ENOUGH: Final = 0.7
"""The share of its words that must be the person's: what is grafted on to a few of theirs has to be short."""
_LEADS: Final[dict[str, tuple[str, ...]]] = {
    PREFERENCES: ("said by the user", "rule stated by the user"),
    KNOWLEDGE: ("said by the user", "decided by the user", "check named by the user", "steps stated by the user"),
    FAILURES: ("said by the user", "given up by the user"),
}
"""How a bullet begins that tells what the person said; the first is used where a wish begins otherwise."""
_ARROW: Final = re.compile(r"(?:->|→|=>)\s*")
_CLAIM: Final = re.compile(
    r"\bby the (?:user|person)\b|\b(?:the )?(?:user|person) (?:said|says|want|wish|prefer|ask|decid|told|insist)"
)
_QUOTATION: Final = re.compile(r"[\"“]([^\"“”]+)[\"”]")
_TELLS: Final[tuple[Cue, ...]] = ("command", "forbid", "lasting")
_BY_HEARSAY: Final[tuple[Cue, ...]] = (*_TELLS, "request")
_CODE: Final = re.compile(r"`([^`]+)`")
_WORKED: Final = re.compile(
    r"(?:`[^`]+`(?:,? then |,? and |, | -> )?){1,20} (?:worked\b|\(exit 0)|^verify with `[^`]+`"
)
_FAILED: Final = re.compile(r"`(?P<command>[^`]+)` failed[^(:;`]*(?:\(|: )(?P<error>.+?)(?:\)(?=;|$)|(?=;|$))")
_MIXED: Final = re.compile(r"(?=.*\d)(?=.*[a-z])[a-z0-9]{12,}")
_UNNAMED: Final = "session"


class Judge:
    """Decides which parts of a model's answers about one session are kept."""

    def __init__(self, session: evidence.QuoteFinder) -> None:
        self._session = session

    def verified(self, draft: Draft) -> VerifiedSession:
        """Return the parts of an answer that may be kept."""
        by_number = {task.number: task for task in draft.summary}
        tasks = [self._task(task, by_number.pop(task.number, None)) for task in draft.memory]
        tasks += [self._task(None, task) for task in by_number.values()]
        names = [self._name(word) for word in draft.head.get("keywords", "").split(",")]
        cwd = draft.head.get("cwd", "")
        return VerifiedSession(
            self._name(draft.title),
            self._line(draft.context),
            self._line(draft.head.get("description", "")),
            cwd if cwd in self._session.folders else "",
            [name for name in dict.fromkeys(names) if name and name != _UNNAMED][:_MAX_KEYWORDS],
            draft.slug if draft.slug and self._is_name(draft.slug) else None,
            [task for task in tasks if task is not None],
        )

    def _task(self, memory: drafts.DraftTask | None, summary: drafts.DraftTask | None) -> VerifiedTask | None:
        first = memory or summary
        if first is None:
            return None
        learned = self._bullets([each for each in memory.bullets if each.section != STEPS] if memory else [])
        told = self._bullets(summary.bullets) if summary else learned
        return VerifiedTask(self._name(first.name) or _UNNAMED, first.outcome, learned, told)

    def _bullets(self, bullets: list[DraftBullet]) -> list[VerifiedBullet]:
        found = (self.bullet(bullet) for bullet in bullets)
        return list(dict.fromkeys(each for each in found if each is not None))

    def bullet(self, bullet: DraftBullet) -> VerifiedBullet | None:
        """Return a bullet as it may be kept; None if it may not."""
        proofs = [proof for each in bullet.references if (proof := self._session.proof(each)) is not None]
        text = quote(bullet.text, _MAX_TEXT)
        if exclusions.is_unfit(text) or not text or (not proofs and bullet.section != STEPS):
            return None
        person = [proof for proof in proofs if proof.whose == "person"]
        lead = _lead(bullet)
        if bullet.section == PREFERENCES or lead:
            return self._of_person(bullet, lead or _LEADS[PREFERENCES][0], person)
        if _CLAIM.search(text.lower()) and not person:
            return None
        if not self._is_true(text):
            return None
        is_hearsay = not any(proof.whose in ("person", "command") for proof in proofs)
        if _is_telling(self._plain(text), _BY_HEARSAY if is_hearsay else _TELLS) and not self._is_grounded(text):
            return None
        return VerifiedBullet(bullet.section, text, tuple(dict.fromkeys(proof.evidence for proof in proofs)))

    def _is_true(self, text: str) -> bool:
        """Say whether commands that a bullet says worked did: all of them ran, and the last with success."""
        for claim in _WORKED.finditer(text):
            codes: list[str] = _CODE.findall(claim[0])
            if not all(map(self._session.has_run, codes)) or not self._session.has_run(codes[-1], ok=True):
                return False
        return True

    def _plain(self, text: str) -> str:
        """Return a bullet without what it only repeats: commands that ran, and what one that failed said."""
        failed = _FAILED.match(text)
        if failed and self._session.has_failed_with(failed["command"], failed["error"]):
            text = text[: failed.start("error")] + text[failed.end("error") :]
        return _CODE.sub(lambda found: "it" if self._session.has_run(found[1]) else found[0], text)

    def _of_person(self, bullet: DraftBullet, lead: str, person: list[Proof]) -> VerifiedBullet | None:
        """Return a bullet made of what the person said; None if they did not."""
        if not person:
            return None
        words = _told_words(bullet.text, person)
        text = f'{lead}: "{words}"'
        meaning = _ARROW.split(bullet.text)[-1] if _ARROW.search(bullet.text) else ""
        if meaning and bullet.section == PREFERENCES and self._is_persons(meaning):
            text += f" -> {quote(meaning, _MAX_DEFAULT)}"
        return VerifiedBullet(bullet.section, text, tuple(dict.fromkeys(proof.evidence for proof in person)))

    def _is_persons(self, text: str) -> bool:
        """Say whether a meaning is made of the person's words."""
        words = similarity.words(text)
        return words.exact <= self._user_words and _is_mostly(words.about, self._user_words)

    def _is_grounded(self, text: str) -> bool:
        """Say whether what a bullet tells to do was said by the person or done."""
        words = similarity.words(text)
        return words.exact <= self._command_words and _is_mostly(words.about, self._command_words)

    @cached_property
    def _user_words(self) -> frozenset[str]:
        return _words(self._session.user_lines)

    @cached_property
    def _command_words(self) -> frozenset[str]:
        return self._user_words | _words(self._session.command_lines)

    def _is_sayable(self, text: str) -> bool:
        return not exclusions.is_unfit(text) and (not _is_telling(text, _TELLS) or self._is_grounded(text))

    def _is_name(self, slug: str) -> bool:
        """Say whether a slug is made of words: a credential in lower case has no other sign than its letters."""
        parts = re.split(r"[-_]+", slug)
        return self._is_sayable(" ".join(parts)) and not any(_MIXED.fullmatch(part) for part in parts)

    def _line(self, text: str) -> str:
        flat = quote(text, _MAX_LINE)
        return flat if self._is_sayable(flat) else ""

    def _name(self, text: str) -> str:
        flat = quote(text.replace("`", ""), _MAX_NAME)
        return flat if self._is_sayable(flat) else _UNNAMED


def _lead(bullet: DraftBullet) -> str:
    """Return how a bullet begins that tells what the person said; empty for all others."""
    lower = bullet.text.lower()
    leads = _LEADS.get(bullet.section, ())
    return next((lead for lead in leads if lower.startswith((f'{lead}: "', f"{lead}: “"))), "")


def _told_words(text: str, person: list[Proof]) -> str:
    """Return the words that a bullet is about: those of its references that it quotes itself, else of the first."""
    quoted = [evidence.comparable_text(each) for each in _QUOTATION.findall(text)]
    told = [
        proof.evidence.quote
        for proof in person
        if any(each and each in evidence.comparable_text(proof.evidence.quote) for each in quoted)
    ]
    return (told or [proof.evidence.quote for proof in person])[0]


def _is_telling(text: str, wanted: tuple[Cue, ...]) -> bool:
    """Say whether a text tells somebody what to do."""
    parts = sentences.split(text) if len(text) <= MAX_SENTENCE else [*sentences.split(text), text]
    return any(SentenceCues(part, cues.likely_languages(part) or cues.LANGUAGES).any(*wanted) for part in parts)


def _is_mostly(about: frozenset[str], known: frozenset[str]) -> bool:
    return bool(about) and len(about & known) >= _ENOUGH * len(about)


def _words(lines: list[str]) -> frozenset[str]:
    return frozenset(word for line in lines for word in similarity.words(line[:_MAX_LINE]).about)
