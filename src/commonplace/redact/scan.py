"""The engine: run every family of rules over bytes, join what they found.

Each rule reaches a bounded distance back and ahead of a place (`stream.CONTEXT`, `stream.AHEAD`), except key blocks,
whose end is followed as far as they go. Nothing depends on where a text is cut further away than that, which is what
makes streaming the same as scanning the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from commonplace.redact import (
    assignments,
    blocks,
    calls,
    commands,
    files,
    headers,
    hidden_bytes,
    known,
    near,
    positions,
    prose,
    spans,
    tables,
    tokens,
    urls,
    wallets,
    wrapped,
)
from commonplace.redact.lexicon import Lexicon, Mark, Text
from commonplace.redact.spans import Secret, SecretSpan

_ROUNDS: Final = 3


class _Family(NamedTuple):
    """A family of rules, and what a text must have for them to find something."""

    find: Callable[[Text], Iterator[SecretSpan]]
    anchors: frozenset[bytes] = frozenset()
    marks: frozenset[str] = frozenset()
    after_names: bool = False
    """Whether the rules also look at key-like names."""

    def may_find(self, text: Text) -> bool:
        """Return whether a text has something that the rules begin with."""
        return (self.after_names and bool(text.names)) or text.has(self.anchors, self.marks)


def _names(marks: Iterable[Mark]) -> frozenset[str]:
    return frozenset(mark.name for mark in marks)


_FAMILIES: Final = (
    _Family(blocks.find, frozenset(blocks.ANCHORS)),
    _Family(urls.find, frozenset(urls.ANCHORS)),
    _Family(headers.find, frozenset(headers.ANCHORS)),
    _Family(calls.find, frozenset(calls.ANCHORS)),
    _Family(commands.find, frozenset(map(bytes.lower, commands.ANCHORS)), _names(commands.MARKS)),
    _Family(positions.find, frozenset(map(bytes.lower, positions.ANCHORS))),
    _Family(files.find, frozenset(files.ANCHORS)),
    _Family(known.find, frozenset(known.ANCHORS)),
    _Family(wallets.find, frozenset(wallets.ANCHORS), _names(wallets.MARKS)),
    _Family(wrapped.find, marks=frozenset({tokens.MAY_GO_ON})),
    _Family(prose.find, frozenset(prose.ANCHORS), _names(prose.MARKS), after_names=True),
    _Family(tables.find, frozenset(tables.ANCHORS), after_names=True),
    _Family(assignments.find, after_names=True),
)
_HIDDEN: Final = frozenset(hidden_bytes.ANCHORS)
_BLOCKS: Final = frozenset(blocks.ANCHORS)
_LEXICON: Final = Lexicon(
    _HIDDEN.union(*(family.anchors for family in _FAMILIES)),
    (*commands.MARKS, *prose.MARKS, *wallets.MARKS),
)


def scan(data: bytes, *, cut: bool = False) -> list[SecretSpan]:
    """Return the secrets in the data, in order, without overlaps; `cut` says that it begins in the middle of a text.

    What is left beside a secret may look like one only once the secret is gone; so what is near to secrets is looked at
    again, until nothing more is found, and redacting twice is redacting once.
    """
    text = Text(data, _LEXICON, cut=cut)
    if text.is_empty:
        return []
    is_bounded = not text.has(_BLOCKS)
    found = new = _once(text, is_bounded=is_bounded, cut=cut)
    for _ in range(_ROUNDS):
        if not new:
            break
        left = spans.apply(data, found)
        more = near.find(left, spans.marks(found, new), _whole, cut=cut) if is_bounded else _whole(left, cut)
        before, found = set(found), spans.merge([*found, *spans.behind(found, more)])
        new = [one for one in found if one not in before]
    return found


def _whole(data: bytes, cut: bool) -> list[SecretSpan]:
    text = Text(data, _LEXICON, cut=cut)
    return _once(text, is_bounded=not text.has(_BLOCKS), cut=cut)


def _once(text: Text, *, is_bounded: bool, cut: bool) -> list[SecretSpan]:
    found = _by_rules(text)
    if text.has(_HIDDEN):
        places = [(at, at + hidden_bytes.LONGEST) for anchor in _HIDDEN for at in text.places(anchor)]
        found.extend(near.find(text.data, places, _bared, cut=cut) if is_bounded else _bared(text.data, cut))
    return spans.merge(spans.with_whole_characters(text.data, found))


def _bared(data: bytes, cut: bool) -> list[SecretSpan]:
    """Return the secrets that the data has without its hidden bytes."""
    bared = hidden_bytes.without(data)
    return [bared.moved(span) for span in _by_rules(Text(bared.data, _LEXICON, cut=cut))] if bared else []


def _by_rules(text: Text) -> list[SecretSpan]:
    found: list[SecretSpan] = [*tokens.with_secret_keys(text.data, text.tokens)]
    for family in _FAMILIES:
        if family.may_find(text):
            found.extend(family.find(text))
    found.extend(wrapped.rest(text.data, tuple(found)))
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
