"""Is this value after this name a secret? How much is asked of it depends on what its name promises and on the form.

A quoted string after `password =` needs little; a word that only follows `key` in a sentence needs much. Values without
quotes may be code (`token = other.token`), and code is left alone.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from commonplace.redact import judge
from commonplace.redact.names import Rank
from commonplace.redact.values import Value

_LOGIN: Final = re.compile(
    rb"(?i)\b(?:login|user|username|account|machine|admin|root)[ \t\r\n,]+"
    rb"(?:\S{1,80}[ \t\r\n,\\n]+)?(?:and[ ])?(?:the[ ])?\Z"
)
_IDENTIFIER: Final = re.compile(rb"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_][\w$]*)*[!?]?\Z")
_CODE: Final = re.compile(rb"[A-Za-z_][\w.]*[(\[{]|[(){}]|=>|\bnew\b|^[!*&]+\w+$|^-")
_CHAIN: Final = re.compile(rb"[A-Za-z_$][\w$]*(?:\.[\w$]+)+=")
_SHORT_WORD: Final = re.compile(rb"[A-Za-z]{1,5}\d{0,2}\Z|[A-Za-z]{6}\Z")
_SCREAMING: Final = re.compile(rb"[A-Z][A-Z0-9_]*\Z")
_WORD_VALUE: Final = re.compile(rb"[\w+/=\-]+\Z")
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_\-]{18,}={1,2}\Z")
_LOOSE: Final = frozenset({"says", "blank", "cell", "comma", "call", "below"})


class Place(NamedTuple):
    """A value after a name: all that the decision depends on."""

    data: bytes
    name: bytes
    strength: Rank
    form: str
    value: Value
    before: bytes
    assign: bytes
    is_flag: bool


def is_secret(place: Place) -> bool:
    """Decide about a value."""
    text, quoted = place.value.text, bool(place.value.quote)
    if judge.is_placeholder(text) or judge.is_reference(text) or text.lower() == place.name.lower():
        return False
    if text[:1] in b"{[<" or b"://" in text:
        return False
    if place.form in _LOOSE:
        return _is_loose_secret(place)
    if not quoted and not _is_data(place):
        return False
    if place.strength is Rank.PASSWORD:
        return judge.is_password(text, 5 if quoted else 6)
    if b" " in text:
        return judge.is_password(text, 32)
    if place.strength is Rank.TOKEN:
        return judge.is_random(text, 8) or _is_strong(text) or _is_mixed(text)
    return judge.is_random(text, 16) and not _is_identity(text)


def _is_identity(text: bytes) -> bool:
    """A UUID or a hash after a name that is not clear about it may well name something."""
    return judge.is_uuid(text) or (judge.is_hex(text) and len(text) in (40, 64))


def _is_strong(text: bytes) -> bool:
    """Say whether letters, digits and signs are mixed as in a secret that a person typed, or base64 is padded."""
    if len(text) >= 20 and _BASE64.match(text):
        return True
    return judge.is_password(text, 10) and sum(one in b"!@#$%^&*+=?~" for one in text) >= 2


def _is_mixed(text: bytes) -> bool:
    """Say whether a longer value has digits and no words."""
    return len(text) >= 16 and has_digit(text) and not judge.is_worded(text) and _WORD_VALUE.match(text) is not None


def has_digit(text: bytes) -> bool:
    """Say whether there is a digit."""
    return any(0x30 <= one <= 0x39 for one in text)


def _is_name(text: bytes) -> bool:
    """Say whether the value can be the name of something in code: hardly any digits."""
    return _IDENTIFIER.match(text) is not None and sum(0x30 <= one <= 0x39 for one in text) < 3


def _is_loose_secret(place: Place) -> bool:
    """Judge a value that only stands near a name: in a sentence, a table, a call, after a flag."""
    text, form, quoted = place.value.text, place.form, bool(place.value.quote)
    if b" " in text or (form in ("says", "blank") and place.name.lower() == b"pass" and not place.is_flag):
        return False
    if form == "blank" and (place.is_flag or _is_after_login(place)):
        return _is_argument(place)
    if not has_digit(text) or (not quoted and _CODE.search(text)):
        return quoted and place.strength is Rank.TOKEN and judge.is_random(text, 16)
    if form == "blank" and not quoted and len(text) >= 18 and _is_name(text):
        return False
    if place.strength is Rank.WEAK or (form == "cell" and not quoted):
        return judge.is_random(text, 20) and not _is_identity(text)
    if place.strength is Rank.TOKEN:
        least = 10 if quoted else 14
        return judge.is_random(text, least) or (quoted and _is_strong(text)) or (len(text) >= 20 and _is_mixed(text))
    if form in ("blank", "below"):
        return (judge.is_password(text, 6) and not judge.is_named(text)) if quoted else judge.is_random(text, 10)
    return judge.is_password(text, 6) and (quoted or not _SHORT_WORD.match(text))


def _is_after_login(place: Place) -> bool:
    """Say whether a user was named before a password, as in `.netrc`."""
    if place.strength is not Rank.PASSWORD:
        return False
    return (
        _LOGIN.search(place.data[max(0, place.value.start - 160) : place.value.start].rpartition(place.name)[0])
        is not None
    )


def _is_argument(place: Place) -> bool:
    """Judge what stands after a flag with a telling name."""
    text = place.value.text
    if not place.value.quote and (text[:1] in b"-|<>&" or (_IDENTIFIER.match(text) and not has_digit(text))):
        return False
    if place.strength is Rank.WEAK:
        return judge.is_random(text, 16) and not _is_identity(text)
    return (
        judge.is_password(text, 6) if place.strength is Rank.PASSWORD else judge.is_random(text, 8) or _is_mixed(text)
    )


def _is_data(place: Place) -> bool:
    """Say whether a value without quotes is data and not code: `password=get()`, `token: string`, `key = other.key`."""
    text = place.value.text
    follower = place.data[place.value.end : place.value.end + 1]
    if _CODE.search(text) is not None or follower in (b"(", b"["):
        return judge.is_random(text, 24) and b"(" not in text and b"[" not in text and text[:1] not in b"-*&!"
    if _IDENTIFIER.match(text) is None:
        return _CHAIN.match(text) is None
    if b"." in text and not (has_digit(text) and judge.is_random(text, 20)):
        return False
    spaced = b" " in place.assign.partition(b"=")[0] and b"=" in place.assign
    if judge.is_random(text, 12) and (has_digit(text) or (not spaced and len(text) >= 20)):
        return True
    if spaced or follower in (b",", b")", b"}", b"]", b".", b";", b"?"):
        return False
    screaming = _SCREAMING.match(place.name) is not None and not _SCREAMING.match(text)
    return has_digit(text) and (screaming or len(text) >= 6)
