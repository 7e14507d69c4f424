"""Whether a sentence states how things are to be done, in so many words: always, never, I prefer, we use.

People seldom say it so, but when they do they mean it. A linear model over words and cues, trained on sentences that
were written for it in five languages (`training/`), scores a sentence. The score of a sentence with an outright cue
counts at once; that of others counts while little is known about the person.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Final, get_args

from commonplace.learning.reading.cues import LANGUAGES, Cue, SentenceCues
from commonplace.memory.entries import Kind
from commonplace.patterns import regex

BITS: Final = 17
"""Features are hashed to so many bits."""
_TOKEN: Final = regex(r"[\u3400-\u9fff]|[^\W_]+(?:'[a-z]+)?|[./_-]+|[^\w\s]")
_NUMBER: Final = regex(r"\d[\d.]*")
_CODE: Final = regex(r"\w[/_]\w|\w\.\w{1,4}\b|--\w")
_NAME: Final = regex(r"\b[A-Z]{2,}|[a-z][A-Z]")
_CUES: Final[tuple[Cue, ...]] = get_args(Cue)
_QUOTED: Final = regex(r"(?:[\"“„]|«\s*+)(?>(?:[^\s\"“”„«»]++\s++){2,})[^\"“”„«»]*+[\"”“»]")
"""Words in quotation marks are somebody else's, or the text of something."""
_JOKE: Final = regex(r"(?i)\b(?:(?:ha){2,}|lol|rofl|jaja|haha\w*)\b|:-?[DP](?!\w)|;-?\)|😂|🤣|哈哈")
_OWN: Final = 0.5
"""A sentence of which a smaller share is the person's own only quotes."""
_STANDING: Final = regex(
    r"\b(?:from (?:now|here) on|(?:going|moving) forward|next time|as a rule|every ?time|ever again|in all my"
    r"|for all my|unless i (?:ask|say|tell)|remember (?:to|that|this)|don't ever|when(?:ever)? in doubt"
    r"|where(?:ver)? (?:we|you|i|it'?s) can\b|(?:where|when)ever (?:we|you|it'?s )?possible"
    r"|ab (?:jetzt|sofort)|von nun an|künftig|in zukunft|nächstes mal|jedes mal|in allen meinen|nie wieder"
    r"|(?:de|a partir de) ahora|en adelante|la próxima vez|cada vez|en todos mis"
    r"|désormais|dorénavant|à partir de maintenant|la prochaine fois|à chaque fois|dans tous mes)\b"
    r"|从现在(?:起|开始)|以后|今后|下次|每次|所有(?:我的)?项目"
)
_DELIBERATE: Final = regex(
    r"^(?:please |but |and |no,? )?prefer\b|\b(?:on purpose|by design|deliberately|intentionally)\b"
    r"|\b(?:mit absicht|absichtlich|a propósito|exprès|volontairement)\b|故意|有意"
)
"""A choice that somebody made, told to somebody who did not know it."""
_ANSWERING: Final = regex(
    r"\byour (?:answers|replies|responses|explanations|summaries)\b|\b(?:plain words|no jargon)\b"
    r"|\b(?:short|shorter|brief|briefer|concise|long|longer) (?:answers|replies|responses|summaries)\b"
    r"|\banswer (?:me )?in (?:english|german|french|spanish|chinese|one|two|a few)\b"
    r"|\bdeine antworten\b|\bkurze antworten\b|\b(?:tus respuestas|respuestas (?:cortas|breves))\b"
    r"|\b(?:tes réponses|réponses courtes)\b|用中文回答|回答(?:简短|短一点)"
)
"""How the person wants to be answered: that holds for the next answer, too."""
_OUTRIGHT: Final[frozenset[Cue]] = frozenset({"lasting", "mine", "forbid", "blame", "consent", "scope"})
_FACT: Final[frozenset[Cue]] = frozenset({"infra", "fact"})
_EXACT: Final = regex(r"\d{2}|[\w-]\.[a-z]{2,6}\b|\w/\w")
"""A port, a version, a host or a path: a fact about machines that can be looked up nowhere else."""
_AGAINST: Final[frozenset[Cue]] = frozenset({"product", "others", "once", "unreal", "transient", "gave_up"})
_KINDS: Final[tuple[tuple[frozenset[Cue], Kind], ...]] = (
    (frozenset({"gave_up"}), "failure"),
    (frozenset({"mine", "blame"}), "preference"),
    (frozenset({"command", "lasting", "forbid", "consent", "scope"}), "rule"),
    (frozenset({"decision"}), "decision"),
    (frozenset({"infra"}), "environment"),
    (frozenset({"we", "contrast", "manner"}), "rule"),
    (frozenset({"fact"}), "environment"),
)
"""What a sentence with certain cues is, the first that fits."""


class StatedSentence:
    """A sentence with the cues that it contains."""

    def __init__(self, text: str, languages: tuple[str, ...]) -> None:
        whole, text = len(text), _QUOTED.sub(" ", text)
        self._is_quoted = len(text) < _OWN * whole
        heard = SentenceCues(text, languages or LANGUAGES)
        self._text = text
        self._is_joke = _JOKE.search(text) is not None
        self._said = [cue for cue in _CUES if heard.says(cue)]
        self._is_question = text.rstrip().endswith(("?", "？"))

    @property
    def outright(self) -> int:
        """How clearly words say that it lasts: 2 for always and never, 1 for I prefer, 0 if others speak against it."""
        if self._is_question or self.is_nobodys or _AGAINST.intersection(self._said):
            return 0
        if "command" in self._said or _STANDING.search(self._text.lower().replace("’", "'")):
            return 2
        lower = self._text.lower()
        is_meant = _OUTRIGHT.intersection(self._said) or _DELIBERATE.search(lower) or _ANSWERING.search(lower)
        return 1 if is_meant else 0

    @property
    def is_nobodys(self) -> bool:
        """Whether it is a joke, or says what others say."""
        return self._is_joke or self._is_quoted or "others" in self._said

    @property
    def kind(self) -> Kind | None:
        """What it is, as far as its cues tell."""
        return next((kind for cues, kind in _KINDS if cues.intersection(self._said)), None)

    def features(self) -> set[int]:
        """Return the hashes of its words, pairs of words, cues and pairs of cues."""
        tokens = _TOKEN.findall(self._text.lower().replace("’", "'"))
        words = ["<n>" if _NUMBER.fullmatch(token) else token for token in tokens]
        found = [f"m:{word}" for word in words]
        found += [f"x:{word[:5]}" for word in words if len(word) > 5]
        found += [f"b:{one} {two}" for one, two in pairwise(words)]
        found += [f"s{place}:{word}" for place, word in enumerate(words[:3])]
        found += [f"c:{cue}" for cue in self._said]
        found += [f"cc:{one}:{two}" for number, two in enumerate(self._said) for one in self._said[:number]]
        found.append(f"len:{min(7, len(words) // 4)}")
        signs = (("q", self._is_question), ("code", _CODE.search(self._text)), ("name", _NAME.search(self._text)))
        found += [name for name, is_there in signs if is_there]
        return {zlib.crc32(each.encode()) & ((1 << BITS) - 1) for each in found}

    def score(self, weights: Mapping[int, float], base: float) -> float:
        """Return the log odds that it states something that lasts; what is nobody's states nothing."""
        if self.is_nobodys:
            return -9.0
        score = base + sum(weights.get(feature, 0.0) for feature in self.features())
        return max(score, 0.0) if self._is_exact_fact else score

    @property
    def _is_exact_fact(self) -> bool:
        said = set(self._said)
        return not self._is_question and said >= _FACT and said.isdisjoint(_AGAINST) and bool(_EXACT.search(self._text))
