"""Secrets out: find credentials in text and put a mark in their place.

`redact` and `find` work on a whole text, `Redactor` on a stream of bytes in bounded memory. What is taken and what is
left is described in `docs/security.md`. The rules are loaded when the first text comes.
"""

from __future__ import annotations

from commonplace.redact.near import AHEAD, CONTEXT
from commonplace.redact.spans import MARK, Secret
from commonplace.redact.stream import Redactor

__all__ = ["MARK", "Redactor", "Secret", "find", "redact", "redact_all", "redact_part"]

_BETWEEN = "\n\n\u241e\n\n"
"""Stands between texts that are looked through together."""


def redact(text: str) -> str:
    """Return the text with its secrets replaced by the mark; the same object when there are none."""
    from commonplace.redact import scan

    return scan.redact(text)


def redact_all(texts: list[str]) -> list[str]:
    """Return texts without their secrets: all are looked through together, which costs far less than one by one."""
    clean = redact(_BETWEEN.join(texts)).split(_BETWEEN)
    if len(clean) == len(texts):
        return clean
    return [redact(text) for text in texts]  # a text has the mark itself, or a secret reaches over one


def redact_part(text: str, begin: int, end: int) -> str:
    """Return a part of a text without its secrets, told by what stands before and behind the part, too."""
    start, at = max(begin - CONTEXT, 0), begin
    shown: list[str] = []
    for secret in find(text[start : end + AHEAD]):
        if start + secret.end > at and start + secret.start < end:
            shown += [text[at : max(at, start + secret.start)], MARK]
            at = start + secret.end
    return "".join([*shown, text[at:end]])


def find(text: str) -> list[Secret]:
    """Return the secrets in a text, in order."""
    from commonplace.redact import scan

    return scan.find(text)
