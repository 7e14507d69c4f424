"""Wallets: phrases of words, keys as lists of bytes, and private keys whose name stands behind them.

A phrase of 12, 15, 18, 21, 24 or 25 short words is taken after a telling word; a phrase in which one of the commonest
words of English occurs is prose. A list of 64 bytes is a key when it stands on its own or a telling word is before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.patterns import regex
from commonplace.redact import judge, notation
from commonplace.redact.lexicon import Mark, Text
from commonplace.redact.notation import ARROW, BREAK
from commonplace.redact.spans import SecretSpan

_BETWEEN: Final = (
    rb"(?:[ \t,\r\n\"'`|+>]|\\{1,15}[nrt\"]|-(?= ?[a-z\d])|\d{1,6}" + ARROW + rb"|\d{1,2}[.):]?(?=[ \t]?[a-z]))"
)
_ITEM: Final = rb"[a-z]{3,8}(?![A-Za-z0-9_])"
_WORDS: Final = regex(_ITEM + rb"(?:(?>" + _BETWEEN + rb"{1,24})" + _ITEM + rb"){11,24}")
_WORD: Final = regex(_ITEM)
_TO_WORDS: Final = regex(
    rb"[\w.\-]{0,16}+(?>(?:[ ](?:-\w|--[\w.\-]{1,20}|is|words?|backup|for|of|the|my|our|wallet|lautet|ist|est|es|12|24|"
    rb"\(\w{1,20}\)|[a-z]{3,10}(?=:))){0,5})"
    rb"(?>(?:[ \t]|[\"'`:=(\[{>]|\\{1,15}[\"nrt]|\xef\xbc\x9a|\\{1,15}uff1a|"
    + BREAK
    + rb"|[+|*#\-]|\d{1,6}"
    + ARROW
    + rb"|\d{1,2}[.):]){1,40})"
)
_TOLD: Final = regex(rb"[\"'`:=(\[{]|\\|\n|[ ](?:is|ist|est|es|lautet)[ ]|\xef\xbc\x9a")
_COUNTS: Final = (25, 24, 21, 18, 15, 12)
_PROSE: Final = frozenset(
    b"the and for are was your with from has its which should using uses been being than these those does did our were "
    b"would could cannot please lets gets words phrase seed wallet backup store".split()
)
"""Words of prose that are not in the list of 2048 words of which phrases are made."""
_TELLING: Final = (
    b"mnemonic", b"phrase", b"seed", b"wallet", b"recovery words", b"bip39", b"ganache",
    "助记词".encode(), b"u52a9\\u8bb0\\u8bcd", b"u52a9\\\\u8bb0\\\\u8bcd",
)  # fmt: skip
_BYTES: Final = regex(
    rb"\[(?P<value>(?>(?:[ \t\r\n+>|]|\\{1,15}[nrt]|\d{1,6}" + ARROW + rb"){0,20})\d{1,3}"
    rb"(?>(?:(?>(?:[ \t\r\n+>|]|\\{1,15}[nrt]|\d{1,6}" + ARROW + rb"){0,20}),"
    rb"(?>(?:[ \t\r\n+>|]|\\{1,15}[nrt]|\d{1,6}"
    + ARROW
    + rb"){0,20})\d{1,3}){31,63}))(?>(?:[ \t\r\n+>|]|\\{1,15}[nrt]){0,20})\]"
)
_OF_KEY: Final = regex(rb"(?i)secret|keypair|private|priv_?key|uint8array|solana|id\.json|wallet|seed")
_ALONE: Final = regex(rb"(?:\A|" + BREAK + rb"|\")" + notation.VIEW + rb"\Z")
_HEX: Final = regex(rb"(?<![0-9a-zA-Z])(?:0x)?(?P<value>[0-9a-fA-F]{64})(?![0-9a-zA-Z])")
_PUBLIC: Final = regex(rb"(?i)hash|block|sha256|commit|digest|topic|root|address|public|tx|fingerprint|checksum")
_KEY_WORDS: Final = (
    b"private key",
    b"privatekey",
    b"private_key",
    b"deployer",
    b"accounts:",
    b"account import",
    b"validator key",
)
ANCHORS: Final = (*_TELLING, *_KEY_WORDS)
_LIST: Final = "list"
MARKS: Final = (Mark(_LIST, regex(rb"\[(?=[ \\]|\d{1,3}[, \\])")),)
"""A list of numbers may begin here."""
_BRACKET: Final = regex(rb"\[")
_LINE: Final = 160


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets of wallets."""
    data = text.data
    done = 0
    for word in _TELLING:
        done = 0
        for at in text.places(word):
            if at >= done and (span := _phrase(data, at + len(word))):
                yield span
                done = span.end
    for start, end in text.marked(_LIST):
        for at in (found.start() for found in _BRACKET.finditer(data, start, end)):
            if (found := _BYTES.match(data, at)) and _is_key(data, found):
                yield SecretSpan(*found.span("value"), "key_bytes")
    for word in _KEY_WORDS:
        for at in text.places(word):
            yield from _hex_keys(data, at, len(word))


def _phrase(data: bytes, at: int) -> SecretSpan | None:
    """Return the words that follow a telling word."""
    lead = _TO_WORDS.match(data, at)
    if lead is None or not _TOLD.search(lead[0]):
        return None
    found = _WORDS.match(data, lead.end())
    if found is None:
        return None
    words = list(_WORD.finditer(data, found.start(), found.end()))
    count = next(one for one in _COUNTS if one <= len(words))
    chosen = words[:count]
    if any(one[0] in _PROSE for one in chosen) or len({one[0] for one in chosen}) < count // 2:
        return None
    return SecretSpan(chosen[0].start(), chosen[-1].end(), "seed_phrase")


def _is_key(data: bytes, found: re.Match[bytes]) -> bool:
    """Say whether a list of numbers is a key: 64 bytes that look drawn, or 32 after a telling word."""
    text = re.sub(rb"\d{1,6}" + ARROW, b"", found["value"])
    numbers = [int(one) for one in re.findall(rb"\d+", text)]
    if len(numbers) not in (32, 64) or max(numbers) > 255 or max(numbers) < 180:
        return False
    if len(set(numbers)) < len(numbers) * 0.6:
        return False
    if _OF_KEY.search(data, max(0, found.start() - 120), found.start()):
        return True
    return len(numbers) == 64 and _ALONE.search(data[max(0, found.start() - 40) : found.start()]) is not None


def _hex_keys(data: bytes, at: int, length: int) -> Iterator[SecretSpan]:
    """Yield the keys of 64 digits on the line of a telling word."""
    begin = notation.line_start(data, at, _LINE)
    for found in _HEX.finditer(data, begin, at + length + _LINE):
        first, last = sorted((at, found.start()))
        between = data[first:last]
        if b"\n" in between or b"\\n" in between or _PUBLIC.search(data, max(begin, found.start() - 24), found.start()):
            continue
        if not judge.is_placeholder(found["value"]):
            yield SecretSpan(*found.span("value"), "wallet_private_key")
