"""What of a model's answer is believed: the rules that stand between a session's text and the memory.

A model that reads a session may be talked into things by it. So what it says is judged by whose words it rests on; what
is honest must pass, in any language, and only what the session does not bear out is refused:

1. A lesson needs a quote that is in the session.
2. A wish or a rule needs the person's own words, and becomes them. Without words of the person it is refused, not
   moved: an instruction in another section is still one. So is a lesson that says what the person wants or said.
3. What to do because of it is kept beside it if it is grounded (4).
4. What tells somebody what to do is grounded if every name in it stands in the person's own words, in commands, in
   changes that were made, or in what the assistant said last before the person answered; if some other word does, or
   it is in another language than the person speaks; and if it does not repeat a tool, a page or a paste. Plain words
   that the writer joined with hyphens (`end-to-end`) are no name if the session has them nowhere so joined, unless they
   are to be installed.
5. A lesson that says that commands worked names commands that ran, the last of them with success. A code that is no
   command (a path, a setting, a name) is no claim.
6. Every name of a file, a host, a flag and the like stands somewhere in the session.
7. What tries to steer its reader, or has to do with a credential, is refused wherever it stands, and not repeated.

Whatever is refused is returned with its reason, so that a person can look at it.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

import msgspec

from commonplace.learning.extract.model import evidence
from commonplace.learning.extract.model.evidence import Proof
from commonplace.learning.extract.model.model_answer import Draft, DraftLesson, DraftTask
from commonplace.learning.extract.model.ran_commands import RanCommands
from commonplace.learning.reading import cues, exclusions, sentences
from commonplace.learning.reading.cues import Cue, SentenceCues
from commonplace.learning.reading.findings import quote
from commonplace.memory import similarity
from commonplace.memory.entries import Kind, normal
from commonplace.memory.lessons import Lesson, RefusedLesson, TaskLessons
from commonplace.memory.sentence_split import MAX_SENTENCE
from commonplace.patterns import regex

_MAX_TEXT: Final = 600
"""How many characters of a lesson are kept."""
_MAX_NAME: Final = 120
"""How many characters of a task's name are kept."""
_MAX_DEFAULT: Final = 240
"""How many characters of what to do are kept."""
_MAX_KEYWORDS: Final = 24
"""How many keywords are kept."""
_MAX_LINE: Final = 400
"""How many characters of a line are compared."""
_SAID: Final[dict[Kind, str]] = {
    "preference": "said by the user",
    "rule": "rule stated by the user",
    "decision": "decided by the user",
}
"""How the lessons begin that become the person's own words."""
_CLAIM: Final = regex(
    r"\bby the (?:user|person)\b|\b(?:the )?(?:user|person) (?:said|says|want|wish|prefer|ask|decid|told|insist)"
)
_TELLS: Final[tuple[Cue, ...]] = ("command", "forbid", "lasting", "request")
_DENIES_ONLY: Final = regex(
    r"\bno (?:matching|such|module|space|route|more|known|valid|suitable|default)\b|: no \w+"
    r"|\bno \w+ (?:\w+ )?(?:is|are|was|were|has|have|match|matches|matched|exists?|found)\b",
    re.IGNORECASE,
)
"""What programs say when something is missing: no prohibition."""
_CODE: Final = regex(r"`([^`]+)`")
_EXIT: Final = regex(r"\(exit 0[^()]{0,20}\)")
_WORKED: Final = regex(r"(?:`[^`]+`(?:,? then |,? and |, | -> )?){1,20} (?:worked\b|\(exit 0)|^verify with `[^`]+`")
_BREAK: Final = regex(r"[\s`\"'“”„«»(),;，。；]+")
_MIXED: Final = regex(r"(?=.*\d)(?=.*[a-z])[a-z0-9]{12,}")
_ABBREVIATION: Final = regex(r"[a-zà-ÿ](?:\.[a-zà-ÿ]){1,3}|p\.ej")
_GENERAL: Final = frozenset({
    "i/o", "a/b", "n/a", "y/n", "y/o", "w/o", "s/he", "ci/cd", "and/or", "und/oder", "et/ou", "tcp/ip", "ui/ux",
    "pub/sub", "on/off", "yes/no", "true/false", "he/she", "read/write", "key/value", "client/server", "input/output",
    "request/response", "start/stop", "before/after", "copy/paste", "macos/linux", "linux/macos", "24/7",
    "utf-8", "utf-16", "iso-8601", "iso-8859-1", "rfc-3339", "latin-1", "snake_case", "kebab-case",
})  # fmt: skip
"""Words of plain prose that have the form of a name; like abbreviations (`e.g.`), they name nothing."""
_JOINED: Final = regex(r"`[^`]*`|[^\W\d_]{1,40}(?:-[^\W\d_]{1,40}){1,8}")
"""Codes, and words of letters that hyphens join."""
_TAKES_IN: Final = regex(
    r"(?i)\b(?:install(?:er|iere|a)?|add|import|require|upgrade(?: to)?|depend on|ajoute[rz]?|añad[ei]r?|füge|安装)"
    r"[ ](?:(?:the|a|package|library|le|la|el|das|paquet|paquete|paket)[ ]){0,3}\Z"
)
"""What stands before the name of something that is to be taken in."""
_WHERE: Final = frozenset(map(similarity.stem, ("inside", "within", "during", "while", "until", "where", "whenever")))
"""Words that only say where and when something is done; whoever shares them repeats nobody."""
_SAME_START: Final = 4
"""The letters that two forms of one word have in common at their start."""
_UNSPACED: Final = regex(r"(?=([\u3400-\u9fff\u30a1-\u30ff]{2}))")
"""Two letters of a script that puts no blanks between words; hiragana holds mostly endings."""
_UNNAMED: Final = "session"
_WITHHELD: Final = "it tries to steer its reader, or has to do with a credential"


class VerifiedSession(msgspec.Struct):
    """What one session, or one slice of it, taught, after verification."""

    title: str = ""
    keywords: tuple[str, ...] = ()
    slug: str | None = None
    tasks: tuple[TaskLessons, ...] = ()
    refused: tuple[RefusedLesson, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no lesson is left."""
        return not any(task.lessons for task in self.tasks)


class Judge:
    """Decides which parts of a model's answers about one session are kept."""

    def __init__(self, session: evidence.QuoteFinder) -> None:
        self._session = session
        self._ran = RanCommands(session.calls)

    def verified(self, draft: Draft) -> VerifiedSession:
        """Return the parts of an answer that may be kept, and those that are refused."""
        refused: list[RefusedLesson] = []
        named = [self._task(task) for task in draft.tasks] or [TaskLessons(_UNNAMED, "uncertain")]
        lessons: list[dict[Lesson, None]] = [{} for _ in named]
        for told in draft.lessons:
            kept = self.lesson(told, refused)
            if kept is not None:
                lessons[min(max(told.task, 1), len(named)) - 1][kept] = None
        names = [self._name(word) for word in draft.keywords]
        return VerifiedSession(
            self._name(draft.title) if draft.title else "",
            tuple(name for name in dict.fromkeys(names) if name and name != _UNNAMED)[:_MAX_KEYWORDS],
            draft.slug if draft.slug and self._is_name(draft.slug) else None,
            tuple(msgspec.structs.replace(task, lessons=tuple(own)) for task, own in zip(named, lessons, strict=True)),
            tuple(refused),
        )

    def lesson(self, told: DraftLesson, refused: list[RefusedLesson]) -> Lesson | None:
        """Return a lesson as it may be kept; None if it may not, with the reason among the refused."""
        kind = told.kind
        if kind is None:
            refused.append(_refusal("environment", told, f"its section {told.section[:40]!r} is unknown"))
            return None
        text = quote(told.text, _MAX_TEXT)
        proof = self._session.proof(told.turn, told.quote) if told.quote else None
        problem = self._problem(kind, text, told.quote, proof)
        if problem is not None or proof is None:
            refused.append(_refusal(kind, told, problem or ""))
            return None
        is_said = kind in _SAID and proof.whose == "person"
        meaning = told.what_to_do or (text if is_said else "")
        default = quote(meaning, _MAX_DEFAULT) if meaning and normal(meaning) != normal(proof.evidence.quote) else ""
        if default and (why := self._ungrounded(default, proof)) is not None:
            if told.what_to_do:
                refused.append(msgspec.structs.replace(_refusal(kind, told, why, default), is_default=True))
            default = ""
        if not is_said:
            default = "" if normal(default) == normal(text) else default
            return Lesson(
                kind=kind, shown=text, default=default, commands=self._commands(kind, text), evidence=(proof.evidence,)
            )
        return Lesson(
            kind=kind,
            words=proof.evidence.quote,
            lead=_SAID[kind],
            default=default,
            scope=told.scope,
            evidence=(proof.evidence,),
        )

    def _commands(self, kind: Kind, text: str) -> tuple[str, ...]:
        """Return the commands that a lesson is about: two that are about the same ones are one."""
        if kind not in ("verify", "fix", "procedure"):
            return ()
        return tuple(code for code in _CODE.findall(text) if self._ran.has_run(code))

    def _problem(self, kind: Kind, text: str, quoted: str, proof: Proof | None) -> str | None:
        """Return why a lesson may not be kept; None if it may."""
        if exclusions.is_unfit(text) or exclusions.is_unfit(quoted):
            return _WITHHELD
        if not text:
            return "it says nothing"
        if proof is None:
            return "its quote is not in the session" if quoted else "it quotes nothing of the session"
        if kind in ("preference", "rule"):
            return None if proof.whose == "person" else "it is a wish, and what it quotes is not the person's own words"
        if _CLAIM.search(text.lower()) and proof.whose != "person":
            return "it says what the person wants, and quotes somebody else"
        if (false := self._false_claim(text)) is not None:
            return f"it says that `{false}` worked, and that did not run so"
        if _is_telling(self._plain(text)) and (why := self._ungrounded(text, proof)) is not None:
            return why
        unknown = next((name for name in _names(text) if not self._knows(name)), None)
        return None if unknown is None else f"it names {unknown}, which is nowhere in the session"

    def _false_claim(self, text: str) -> str | None:
        """Return a code that is said to have worked and did not; None if what is said is true."""
        for claim in _WORKED.finditer(text):
            codes: list[str] = _CODE.findall(claim[0])
            for code in codes:
                is_last = code is codes[-1]
                if not self._ran.has_run(code, ok=True if is_last else None) and self._is_claim(code):
                    return code
        return None

    def _is_claim(self, code: str) -> bool:
        """Say whether a code is a command; what was written, set or said in the session is none if it never ran."""
        if self._ran.has_run(code):
            return True
        return self._ran.is_command(code) and evidence.comparable_text(code) not in self._done

    def _plain(self, text: str) -> str:
        """Return a text without what it only repeats: commands that ran, and what programs say is missing."""
        told = _CODE.sub(lambda code: "it" if self._ran.has_run(code[1]) else code[0], _EXIT.sub("", text))
        return _DENIES_ONLY.sub("missing", told)

    def _ungrounded(self, text: str, proof: Proof) -> str | None:
        """Return why something may not tell what to do; None if it may."""
        if exclusions.is_unfit(text):
            return _WITHHELD
        answered = self._session.answered(proof.evidence) if proof.whose == "person" else []
        known = self._done_words | _words(answered)
        words = similarity.words(_JOINED.sub(self._parted, self._plain(text)))
        names = sorted(name for name in words.exact - known if len(name) > 2 or not name.isdecimal())
        unknown = [name for name in names if not (_is_prose(name) or self._is_done(name, answered))]
        if unknown:
            return f"it names {unknown[0]}, which the person did not say and nobody ran"
        foreign = words.about - known - _WHERE
        if len(foreign) > 1 and any(foreign <= line for line in self._hearsay):
            return "it repeats what a tool, a page or a paste says"
        names_run = any(map(self._ran.has_run, _CODE.findall(text)))
        if words.about and not self._shares(words.about, known) and not names_run and self._speaks_like(text):
            return "none of its words is the person's or stands in what was done"
        return None

    def _parted(self, joined: re.Match[str]) -> str:
        """Return words without their hyphens if the session has them nowhere so joined: they name nothing."""
        word = joined[0]
        is_name = word.startswith("`") or self._knows(word) or _TAKES_IN.search(joined.string[: joined.start()])
        return word if is_name else word.replace("-", " ")

    def _shares(self, words: frozenset[str], known: frozenset[str]) -> bool:
        """Say whether some word is a known one, perhaps in another form."""
        starts = tuple(word[:_SAME_START] for word in words if len(word) > _SAME_START)
        if words & known or any(word.startswith(starts) for word in known):
            return True
        return any(piece in self._done for word in words for piece in _UNSPACED.findall(word))

    def _speaks_like(self, text: str) -> bool:
        """Say whether a text is in the language of the person, as far as that can be told."""
        spoken = cues.likely_languages("\n".join(self._session.lines("person"))[: _MAX_TEXT * 8])
        return bool({*spoken} & {*cues.likely_languages(text)})

    def _is_done(self, name: str, answered: list[str]) -> bool:
        """Say whether a name stands in what was said or done, perhaps as a part of another."""
        return name in self._done.lower() or name in evidence.comparable_text("\n".join(answered)).lower()

    @cached_property
    def _done(self) -> str:
        """What the person said and what was done, in the form that is compared."""
        return "\n".join(text.bare for text in self._session.texts if text.whose in ("person", "command", "change"))

    @cached_property
    def _done_words(self) -> frozenset[str]:
        return _words(self._session.lines("person", "command", "change"))

    @cached_property
    def _hearsay(self) -> list[frozenset[str]]:
        """The words of each line that a tool printed, somebody pasted or the assistant said."""
        lines = dict.fromkeys(self._session.lines("output", "tool", "pasted", "assistant"))
        return [words for line in lines if len(words := _words([line])) > 1]

    def _knows(self, name: str) -> bool:
        return evidence.comparable_text(name).lower() in self._session.bare

    def _is_sayable(self, text: str) -> bool:
        if exclusions.is_unfit(text):
            return False
        words = similarity.words(text)
        is_known = words.about <= self._done_words
        return is_known or not _is_telling(text) or not any(words.about <= line for line in self._hearsay)

    def _is_name(self, slug: str) -> bool:
        """Say whether a slug is made of words: a credential in lower case has no other sign than its letters."""
        parts = re.split(r"[-_]+", slug)
        return self._is_sayable(" ".join(parts)) and not any(_MIXED.fullmatch(part) for part in parts)

    def _task(self, task: DraftTask) -> TaskLessons:
        return TaskLessons(self._name(task.title), task.outcome)

    def _name(self, text: str) -> str:
        flat = quote(text.replace("`", ""), _MAX_NAME)
        return flat if flat and self._is_sayable(flat) else _UNNAMED


def _refusal(kind: Kind, told: DraftLesson, reason: str, text: str | None = None) -> RefusedLesson:
    """Return a refused lesson; what must not be repeated is left out."""
    said, quoted = quote(told.text if text is None else text, _MAX_TEXT), quote(told.quote)
    if any(map(exclusions.is_unfit, (said, quoted, told.text))):
        said = quoted = ""
    return RefusedLesson(kind, said, reason, quoted, told.turn or 0)


def _is_telling(text: str) -> bool:
    """Say whether a text tells somebody what to do."""
    parts = sentences.split(text) if len(text) <= MAX_SENTENCE else [*sentences.split(text), text]
    return any(SentenceCues(part, cues.likely_languages(part) or cues.LANGUAGES).any(*_TELLS) for part in parts)


def _is_prose(name: str) -> bool:
    """Say whether a word only has the form of a name."""
    return name in _GENERAL or _ABBREVIATION.fullmatch(name) is not None


def _names(text: str) -> list[str]:
    """Return the paths, flags, files and hosts that a text names, and numbers that nobody makes up in passing."""
    quoted = {word for code in _CODE.findall(text) for word in _BREAK.split(code)}
    found = [word.rstrip(".:!?") for word in dict.fromkeys(_BREAK.split(text)) if "…" not in word and "<" not in word]
    return [word for word in found if _is_name(word, is_quoted=word in quoted)]


def _is_name(word: str, *, is_quoted: bool) -> bool:
    if word.isdecimal():
        return len(word) > 2
    if word.startswith(("--", "/", "~/", "./")):
        return len(word) > 3
    return is_quoted and len(word) > 3 and any(sign in word for sign in "/.")


def _words(lines: list[str]) -> frozenset[str]:
    return frozenset(word for line in lines for word in similarity.words(line[:_MAX_LINE]).about)
