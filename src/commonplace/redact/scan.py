"""The engine: run every family of rules over bytes, join what they found.

Each rule reaches a bounded distance back and ahead of a place (`stream.CONTEXT`, `stream.AHEAD`), except key blocks,
whose end is followed as far as they go. Nothing depends on where a text is cut further away than that, which is what
makes streaming the same as scanning the whole.
"""

from __future__ import annotations

from typing import Final

from commonplace.redact import (
    assignments,
    blocks,
    calls,
    commands,
    files,
    headers,
    hidden_bytes,
    known,
    positions,
    prose,
    spans,
    tables,
    tokens,
    urls,
    wallets,
    wrapped,
)
from commonplace.redact.lexicon import Lexicon, Text
from commonplace.redact.spans import Secret, SecretSpan

_ROUNDS: Final = 3
_FAMILIES: Final = (
    blocks,
    urls,
    headers,
    calls,
    commands,
    positions,
    files,
    known,
    wallets,
    wrapped,
    prose,
    tables,
    assignments,
)
_ANCHORED: Final = (blocks, urls, headers, calls, commands, positions, files, known, wallets, prose, tables)
_LEXICON: Final = Lexicon(
    (anchor for family in _ANCHORED for anchor in family.ANCHORS), (*commands.MARKS, *prose.MARKS, *wallets.MARKS)
)


def scan(data: bytes, *, cut: bool = False) -> list[SecretSpan]:
    """Return the secrets in the data, in order, without overlaps; `cut` says that it begins in the middle of a text.

    What is left beside a secret may look like one only once the secret is gone; so the rest is looked at again, until
    nothing more is found, and redacting twice is redacting once.
    """
    found = _once(data, cut=cut)
    for _ in range(_ROUNDS if found else 0):
        more = _once(spans.apply(data, found), cut=cut)
        more = spans.behind(found, more)
        if not more:
            break
        found = spans.merge([*found, *more])
    return found


def _once(data: bytes, *, cut: bool) -> list[SecretSpan]:
    found = _by_rules(data, cut=cut)
    if bared := hidden_bytes.without(data):
        found.extend(map(bared.moved, _by_rules(bared.data, cut=cut)))
    return spans.merge(found)


def _by_rules(data: bytes, *, cut: bool) -> list[SecretSpan]:
    text = Text(data, _LEXICON, cut=cut)
    found: list[SecretSpan] = [*tokens.with_secret_keys(data, text.tokens)]
    for family in _FAMILIES:
        found.extend(family.find(text))
    found.extend(wrapped.rest(data, tuple(found)))
    return found


def redact(text: str) -> str:
    """Return the text with its secrets replaced by the mark; the same object when there are none."""
    data = text.encode("utf-8", "surrogatepass")
    found = scan(data)
    if not found:
        return text
    return spans.apply(data, found).decode("utf-8", "surrogatepass")


def find(text: str) -> list[Secret]:
    """Return the secrets in a text, in order."""
    data = text.encode("utf-8", "surrogatepass")
    found = scan(data)
    if len(data) == len(text):
        return [Secret(one.start, one.end, one.kind) for one in found]
    findings: list[Secret] = []
    at = characters = 0
    for one in found:
        start = characters + len(data[at : one.start].decode("utf-8", "surrogatepass"))
        end = start + len(data[one.start : one.end].decode("utf-8", "surrogatepass"))
        findings.append(Secret(start, end, one.kind))
        at, characters = one.end, end
    return findings
