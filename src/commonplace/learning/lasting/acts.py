"""What a sentence does, which topics of practice it touches, and its shape.

A sentence does what it begins with, once fillers are skipped: it forbids, asks for something, proposes, states. Its
shape is the text with everything but function words and verbs of the trade replaced by classes, so that shapes of one
project are those of another.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from commonplace import package_files
from commonplace.patterns import regex

_WORDS: Final = regex(r"[^\W_]+(?:'[a-z]+)?")
_PIECES: Final = regex(r"`[^`]*`|[\w'./-]+|[^\w\s]")
_TAG_QUESTION: Final = regex(
    r"(?i)(?:,|\b)\s*(?:right|yeah|or|no|hey|correct|ok|okay|eh|isn'?t it|don'?t we|or not|true|yes)\s*\?+\s*$"
)
_LEADS_WITH_NO: Final = regex(r"(?:no|nope|nah|wait|actually|hm+|but)\b")
_LEADS_WITH_YES: Final = regex(r"(?:yes|yeah|yep|yup|ok|okay|sure|cool|great|perfect|alright)\b")
_MARKS: Final = r"[\s,;:.!?)\-–—…]*+"
_OPENING: Final = r"[\s,;:.!?)(\-–—…*#>\"'“]++"
_RAW: Final = regex(
    r"`[^`\n]{1,80}`|https?://\S+|(?<![\w~.@-])@?[\w~.-]*+(?>(?:/[\w.@<>*-]++)+)/?"
    r"|(?<![\w-])[\w-]++\.(?:go|py|ts|tsx|js|jsx|md|json|jsonl|sh|yml|yaml|toml|rs|java|kt|cs|cpp|c|h|txt|log|lock|env"
    r"|html|css|sql|vue|svelte|rb|php|swift|xml|mod|sum|tf)\b(?::\d+)?|--?[a-z][\w-]++|#\d++|\b[A-Z]{2,6}-\d++\b"
    r"|\b[0-9a-f]{7,40}\b|\b[^\W_]++(?>(?:_++[^\W_]++)+)_*+|\b(?>(?:[^\Wa-z]|[a-z](?![A-Z]))*)[a-z][A-Z]\w*+(?:\(\))?"
    r"|\b\w++\(\)|[^\W\d_]++(?:'[a-z]++)?|\d++(?>(?:\.\d++)*)|[^\w\s]"
)
_REFERENCE: Final = regex(r"#\d+|[A-Z]{2,6}-\d+|[a-f]*+\d[0-9a-f]{6,}")
_FILE: Final = regex(r"[\w-]+\.\w{1,6}(?::\d+)?")
_IDENTIFIER: Final = regex(r"[a-z][A-Z]|\(\)")
NAMES: Final = frozenset({"<id>", "<path>", "<code>", "<flag>", "<ref>", "<url>"})
"""Shapes of names of code."""
_LOOKED_AT: Final = 120
"""So many characters behind the act are looked at for its verb and object."""


class Act(NamedTuple):
    """What a sentence does."""

    mode: str
    """How it begins: `dont`, `always`, `canyou`, …, `imp` with a verb, `frag` with anything else."""
    verb: str
    object: str
    """The class of what stands behind the verb."""
    question: str
    """`q`, `tagq` for a statement with a question behind it, or nothing."""
    leads_with_no: bool
    leads_with_yes: bool


@cache
def _tables() -> dict[str, dict[str, str]]:
    loaded: dict[str, Any] = tomllib.loads(package_files.text("learning/lasting/acts.toml"))
    return loaded


@cache
def word_set(name: str) -> frozenset[str]:
    """Return a list of words of the table."""
    return frozenset(_tables()["words"][name].split())


@cache
def _modes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, regex(text, re.IGNORECASE)) for name, text in _tables()["acts"].items())


@cache
def _objects() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, regex(text)) for name, text in _tables()["objects"].items())


@cache
def _fillers() -> re.Pattern[str]:
    return regex(rf"(?>(?:(?:{_tables()['leads']['fillers']})\b{_MARKS}|{_OPENING})+)", re.IGNORECASE)


@cache
def _adverbs() -> re.Pattern[str]:
    return regex(rf"(?>(?:(?:{_tables()['leads']['adverbs']})\s++)+)", re.IGNORECASE)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; `claude.md` is two, `don't` is one."""
    return _WORDS.findall(text.lower().replace("’", "'"))


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return a word without its ending."""
    for ending in ("ings", "ing", "ies", "ied", "ed", "es", "s", "ly", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def act(text: str) -> Act:
    """Return what a sentence does."""
    plain = text.replace("’", "'").strip()
    lead = ""
    if found := _fillers().match(plain):
        lead, plain = plain[: found.end()].lower(), plain[found.end() :]
    mode, rest = "", plain
    for name, begins in _modes():
        if found := begins.match(plain):
            mode, rest = name, plain[found.end() :]
            break
    if found := _adverbs().match(rest):
        rest = rest[found.end() :]
    pieces = _PIECES.findall(rest[:_LOOKED_AT].lower()) or [""]
    verb = pieces[0] if pieces[0] in word_set("verbs") else ""
    behind = (pieces[1] if len(pieces) > 1 else "") if verb else pieces[0]
    return Act(
        mode or ("imp" if verb else "frag"),
        verb,
        _object(behind),
        _question(text),
        _LEADS_WITH_NO.match(lead) is not None,
        _LEADS_WITH_YES.match(lead) is not None,
    )


@lru_cache(maxsize=8192)
def _object(word: str) -> str:
    found = next((name for name, is_such in _objects() if is_such.match(word)), None)
    return found or ("w" if word.isalpha() else "mark")


def _question(text: str) -> str:
    if not text.rstrip("\"')] ").endswith(("?", "？")):
        return ""
    return "tagq" if _TAG_QUESTION.search(text[-20:]) else "q"


class _Phrases:
    """Phrases by their words, and beginnings of words."""

    def __init__(self) -> None:
        self.tree: dict[str, Any] = {}
        self.prefixes: dict[str, list[str]] = {}
        for topic, listed in _tables()["practice"].items():
            for phrase in listed.replace("\n", " ").split(","):
                self._add(topic, phrase.strip())
        self.lengths = sorted({len(prefix) for prefix in self.prefixes})

    def _add(self, topic: str, phrase: str) -> None:
        if phrase.endswith("*") and " " not in phrase:
            self.prefixes.setdefault(phrase[:-1], []).append(topic)
            return
        node = self.tree
        for word in phrase.split():
            node = node.setdefault(word, {})
        node.setdefault("", []).append(topic)


@cache
def _phrases() -> _Phrases:
    return _Phrases()


@lru_cache(maxsize=16_384)
def _topics_by_prefix(word: str) -> tuple[str, ...]:
    known = _phrases()
    return tuple(topic for size in known.lengths if size <= len(word) for topic in known.prefixes.get(word[:size], ()))


def practice(tokens: list[str]) -> frozenset[str]:
    """Return the topics of practice that a sentence touches."""
    found: set[str] = set()
    tree = _phrases().tree
    for at, word in enumerate(tokens):
        found.update(_topics_by_prefix(word))
        node: dict[str, Any] | None = tree.get(word)
        place = at + 1
        while node is not None:
            found.update(node.get("", ()))
            node = node.get(tokens[place]) if place < len(tokens) else None
            place += 1
    return frozenset(found)


def shape(text: str) -> list[str]:
    """Return a text as function words and classes of everything else."""
    plain = text.replace("’", "'")
    if "`" in plain:  # code may have blanks inside
        return [_class(piece) for piece in _RAW.findall(plain)]
    return [piece for chunk in plain.split() for piece in _shapes(chunk)]


@lru_cache(maxsize=65_536)
def _shapes(chunk: str) -> tuple[str, ...]:
    return tuple(_class(piece) for piece in _RAW.findall(chunk))


@lru_cache(maxsize=32_768)
def _class(piece: str) -> str:
    lower = piece.lower()
    if lower in word_set("function"):
        return lower
    if piece[0] == "`":
        return "<code>"
    if lower.startswith("http"):
        return "<url>"
    if _REFERENCE.fullmatch(piece):
        return "<ref>"
    if ("/" in piece and len(piece) > 1) or (_FILE.fullmatch(piece) and not piece[0].isdigit()):
        return "<path>"
    if piece.startswith("-") and len(piece) > 2:
        return "<flag>"
    if "_" in piece or _IDENTIFIER.search(piece):
        return "<id>"
    if piece[0].isdigit():
        return "<n>"
    if not piece[0].isalnum():
        return piece
    if piece[0].isupper():
        return "<CAP>" if piece.isupper() and len(piece) > 1 else "<Cap>"
    ending = next((each for each in ("ing", "ed", "ly") if lower.endswith(each)), "")
    if ending:
        return f"<{ending}>"
    return "<s>" if lower.endswith("s") and not lower.endswith("ss") else "<w>"
