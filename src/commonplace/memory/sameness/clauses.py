"""The clauses of a sentence, and what a clause is: what is to be done, when, or why."""

from __future__ import annotations

from typing import Final

from commonplace.patterns import regex

_CLAUSE: Final = regex(r"[,;:.!?](?=\s|$)|[，；：。！？]|\s[–—-]\s")
_SUBORDINATE: Final = regex(
    r"(?:when|if|unless|until|before|after|once|while|wenn|falls|bevor|bis|nachdem|sobald|si|cuando|antes|hasta|después"
    r"|quand|lorsque|avant|après|jusqu|tant)\b|如果|当|除非"
)
_OPENER: Final = regex(
    r"(?i)^((?:from (?:now|here) on|going forward|in (?:the )?future|next time|please|also|ab (?:jetzt|sofort)"
    r"|in zukunft|bitte|de ahora en adelante|a partir de ahora|por favor|désormais|dorénavant|merci))[,:]"
)
_HERE: Final = regex(
    r"(?i)\b(?:in|for|of|across) (?:this|our) (?:repo|repository|project|codebase)\b"
    r"|\bin (?:diesem|unserem) (?:repo|repository|projekt)\b|\ben (?:este|nuestro) (?:repo|repositorio|proyecto)\b"
    r"|\bdans (?:ce|notre) (?:repo|dépôt|projet)\b|(?:在?这个|本|我们的?)(?:仓库|项目)(?:里|中)?"
)
"""Where a lesson holds; lessons are compared only with those of the same project."""
_REASON: Final = regex(
    r"(?:because|since|as|so that|i|i'm|i've|my|we're|they|weil|denn|damit|ich|mein|meine|porque|ya que|mi|mis|yo"
    r"|parce|car|puisque|je|mon|ma|mes)\b|j'|因为|我"
)


def joined_opener(plain: str) -> str:
    """Return a text without the comma behind what opens it: `From now on, never …` is one clause."""
    return _OPENER.sub(r"\1", plain, count=1)


def without_place(plain: str) -> str:
    """Return a text without words that only say that it holds in this project; the text if nothing is left."""
    return " ".join(_HERE.sub(" ", plain).split()) or plain


def clauses_of(plain: str) -> tuple[str, ...]:
    """Return the clauses of a text; none if it has only one."""
    found = tuple(clause for part in _CLAUSE.split(plain) if (clause := part.strip()))
    return found if len(found) > 1 else ()


def is_subordinate(lower: str) -> bool:
    """Say whether a clause only says when something holds."""
    return _SUBORDINATE.match(lower) is not None


def is_reason(lower: str) -> bool:
    """Say whether a clause gives a reason, or tells of the person."""
    return _REASON.match(lower) is not None
