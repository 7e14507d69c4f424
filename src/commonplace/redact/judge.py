"""Is this value a secret? Decisions about values alone: placeholders, references, shapes that are public, randomness.

Randomness is not measured by entropy alone, because `tokens_per_second` has as much of it as a key. Two properties tell
made-up strings from named things: how often the kind of character changes (lower, upper, digit), and how many of the
neighbouring letters are pairs that words have.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from commonplace.patterns import regex
from commonplace.redact import shapes

_SEGMENT: Final = regex(rb"[A-Z]?[a-z]+|[A-Z]+")
_HEX: Final = regex(rb"(?:0x)?[0-9a-fA-F]{12,}\Z")
_HEX_PARTS: Final = regex(rb"[0-9a-f]{4,}(?:[\-_.:|][0-9a-f]{4,}){0,8}\Z|[0-9A-F]{4,}(?:[\-_.:|][0-9A-F]{4,}){0,8}\Z")
_UUID: Final = regex(rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")
_CHANGE: Final = regex(rb"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|(?<=[A-Z])[A-Z](?=[a-z])|[0-9](?=[A-Za-z])")
_NAMED: Final = regex(
    rb"(?:[A-Za-z]{1,14}[0-9]{0,4}|[0-9]{1,4})(?:[_\-./: ](?:[A-Za-z]{1,14}[0-9]{0,4}|[0-9]{1,4})){1,16}\Z"
)
_ALNUM: Final = regex(rb"[A-Za-z0-9]")
_LONGEST_PUBLIC: Final = 160


def _shares(value: bytes) -> tuple[int, float]:
    """Return how many letter pairs the value has, and the share of them that words have too."""
    pairs = common = 0
    for segment in _SEGMENT.findall(value):
        low = segment.lower()
        for at in range(len(low) - 1):
            pairs += 1
            common += low[at : at + 2] in shapes.PAIRS
    return pairs, common / pairs if pairs else 0.0


@lru_cache(maxsize=4096)
def is_random(value: bytes, least: int = 8) -> bool:
    """Say whether a value looks made up by a machine: long enough, with digits or cases mixed, and no words."""
    value = value.rstrip(b"=")
    if len(value) < least or len(set(value)) < 6 or is_public(value):
        return False
    if _UUID.match(value):
        return True
    if _HEX.match(value) or (len(value) >= 20 and _HEX_PARTS.match(value)):
        return _digits(value) < len(value) - 2
    if is_named(value):
        return False
    alnum = len(_ALNUM.findall(value))
    if value.isdigit() or alnum < 0.6 * len(value):
        return False
    changes = _changes(value)
    if changes >= 0.38 and len(value) >= 12:
        return True
    pairs, share = _shares(value)
    if pairs >= 8 and share >= 0.76:
        return False
    if changes >= 0.24:
        return pairs < 7 or share < 0.7
    return pairs >= 7 and share < (0.56 if changes >= 0.08 else 0.5)


def is_worded(value: bytes) -> bool:
    """Say whether the value is made of words: the question for what follows a prefix that is telling already."""
    if len(set(value)) < 6:
        return True
    if _HEX_PARTS.match(value) or _UUID.match(value):
        return False
    changes = _changes(value)
    if changes >= 0.3:
        return False
    pairs, share = _shares(value)
    if is_named(value):
        return share >= 0.5 or pairs < 6
    if not _DIGIT.search(value):
        return share >= (0.56 if changes < 0.18 else 0.68) or pairs < 4
    return pairs >= 8 and share >= 0.7


def _changes(value: bytes) -> float:
    """Return how often the kind of character changes, for each letter or digit."""
    return len(_CHANGE.findall(value)) / max(len(_ALNUM.findall(value)), 1)


def _digits(value: bytes) -> int:
    """Return how many digits a value has."""
    return len(value) - len(value.translate(None, b"0123456789"))


def is_drawn(value: bytes) -> bool:
    """Say whether the kind of character changes so often that the value is no name in code."""
    return _changes(value) >= 0.3


def is_uuid(value: bytes) -> bool:
    """Say whether the value is a UUID and nothing else."""
    return _UUID.match(value) is not None


def is_named(value: bytes) -> bool:
    """Say whether the value is put together from words and small numbers, as names are: `aes-128-gcm`, `web_api_v2`."""
    return _digits(value) * 3 <= len(value) and _NAMED.match(value) is not None


def is_hex(value: bytes) -> bool:
    """Say whether the value is a longer hexadecimal number and nothing else."""
    return _HEX.match(value) is not None


@lru_cache(maxsize=4096)
def is_placeholder(value: bytes) -> bool:
    """Say whether the value stands for a secret without being one: a mark, a documented example, a stock word."""
    text = value.lower()
    low = text.strip(b" <>[](){}'\"`-_.,:;!?*#")
    if not low or low in shapes.STOCK_WORDS or len(set(low)) < 3:
        return True
    for part in shapes.PLACEHOLDER_PARTS:  # a loop: `any` takes twice the time
        if part in text:
            return True
    return shapes.PLACEHOLDER_HINT.search(text) is not None and shapes.PLACEHOLDER.search(text) is not None


def is_reference(value: bytes) -> bool:
    """Say whether the value says where a secret is kept: a variable, a template, a path, a vault."""
    if shapes.REFERENCE.match(value):
        return True
    return shapes.REFERENCE_SIGNS.search(value) is not None and shapes.REFERENCE_WITHIN.search(value) is not None


def is_public(value: bytes) -> bool:
    """Say whether the value has the shape of something that is no secret: a version, a time, a size, a file name."""
    return len(value) <= _LONGEST_PUBLIC and shapes.PUBLIC.fullmatch(value) is not None


_DIGIT: Final = regex(rb"[0-9]")
_LETTER: Final = regex(rb"[A-Za-z\x80-\xff]")
_SIGN: Final = regex(rb"[!@#$%^&*+=?~|;]")
_APP_PASSWORD: Final = regex(rb"[a-z]{4}(?:[ \-][a-z]{4}){3}\Z")


def is_password(value: bytes, least: int) -> bool:
    """Say whether the value could be a password that a person or a machine chose; words alone are not taken."""
    if len(value) < least or is_public(value):
        return False
    if _APP_PASSWORD.match(value):
        return _shares(value)[1] < 0.6
    if b" " in value:
        return len(value) >= 32 and len(_SIGN.findall(value)) >= 5
    if value.isdigit():
        return len(value) >= 6
    letters = _LETTER.search(value) is not None
    if letters and _DIGIT.search(value):
        return True
    if letters and _SIGN.search(value.strip(b"!?=+*|;")):
        return len(value) >= 8
    return is_random(value, 12)
