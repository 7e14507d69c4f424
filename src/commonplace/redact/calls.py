"""Secrets that are arguments: `jwt.sign(data, '…')`, `HTTPBasicAuth("kim", "…")`, `auth=("kim", "…")`.

A table names functions and which of their arguments is secret; -1 is the last one. The arguments are read from the
bracket on: strings at any depth of escaping, everything else as one piece, nested brackets included, in bounded work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from commonplace.patterns import regex
from commonplace.redact import judge
from commonplace.redact.lexicon import Text, by_anchor
from commonplace.redact.phrases import compiled
from commonplace.redact.spans import SecretSpan

_OPENING: Final = regex(
    rb"(?:@|N|[bBrRuUfF]{1,2}|\[\]byte\(|new[ ]String\(|Encoding\.\w{1,8}\.GetBytes\()?(?P<quote>\\{0,15}[\"'`])"
)
_LONGEST: Final = 400
"""A longer string is no secret."""
_OTHER: Final = regex(rb"[^\"'`,()\[\]{}\n\\;]{1,120}+")
_SPACE: Final = regex(rb"(?:[ \t\r\n+>|]|\\{1,15}[nrt]){0,40}")
_DEPTH: Final = 3
_PIECES: Final = 32
_ARGUMENTS: Final = 5
_NESTING: Final = {b"(": 1, b"[": 1, b"{": 1, b")": -1, b"]": -1, b"}": -1}


class _String(NamedTuple):
    """A string among the arguments of a call: the number of its argument, where it begins and ends."""

    number: int
    start: int
    end: int


class SecretArgument(NamedTuple):
    """A word of a function's name, the name from there to the bracket, the secret's place, and how weak it may be."""

    word: bytes
    name: bytes
    place: int
    chosen: bool = True

    @property
    def expression(self) -> re.Pattern[bytes]:
        """The name, compiled when its word is met for the first time."""
        return compiled(self.name)


def _calls(
    *rows: tuple[bytes, bytes, int] | tuple[bytes, bytes, int, bool],
) -> Mapping[bytes, tuple[SecretArgument, ...]]:
    made = (SecretArgument(row[0], row[1] + rb"[ ]?[(\[ ]", row[2], row[3] if len(row) == 4 else True) for row in rows)
    return by_anchor(made, lambda row: row.word)


_CALLS: Final = _calls(
    (b"login", rb"login(?=\()", -1),
    (b"auth", rb"auth(?:entication)?(?=\()", -1),
    (b"authenticate", rb"authenticate(?=\()", 1),
    (b"signin", rb"signin(?=\()", -1),
    (b"twilio(", rb"twilio(?=\()", 1, False),
    (b"client(", rb"client(?=\(\\{0,15}[\"']ac[0-9a-f]{32})", 1, False),
    (b"auth", rb"auth(?:=|[ ]=[ ]|\\{0,15}[\"']?[ ]?(?:=>|:)[ ]?)(?=[(\[])", 1),
    (b"asic_auth", rb"asic_auth(?=[( ])", 1),
    (b"asic", rb"asic(?=\(\\{0,15}[\"'])", 1),
    (b"networkcredential", rb"networkcredential(?=\()", 1),
    (b"passwordcredential", rb"passwordcredentials?(?=\()", 1),
    (b"credentials", rb"credentials(?:provider)?(?:\.create)?(?=\()", 1),
    (b"createcredential", rb"createcredential(?=\()", 2),
    (b"secretcredential", rb"secretcredential(?=\()", 2),
    (b"keycredential", rb"(?<=azure)keycredential(?=\()", 0),
    (b"sharedkeycredential", rb"sharedkeycredential(?=\()", 1),
    (b"jwt.", rb"jwt\.(?:sign|verify|encode|decode)(?=\()", 1),
    (b"jwt.", rb"jwt\.(?:encode|decode)(?= )", 1),
    (b"jwt::", rb"jwt::(?:encode|decode)(?=\()", 1),
    (b"jsonwebtoken", rb"jsonwebtoken\.(?:sign|verify)(?=\()", 1),
    (b"signwith", rb"signwith(?=\()", -1),
    (b"setsigningkey", rb"setsigningkey(?=\()", 0),
    (b"signedstring", rb"signedstring(?=\()", 0),
    (b"hmac", rb"hmac(?:256|384|512|shakeyfor|sha\d{1,3})?\.?(?:new)?(?=\()", 0),
    (b"hmac", rb"hmac(?:\.hexdigest|\.digest|\.base64digest)?(?=\()", 1),
    (b"hmac", rb"hmac(?:sha|md)\d{1,3}(?=\()", 1),
    (b"hmac", rb"hmac(?=\()", 2),
    (b".encrypt", rb"\.(?:en|de)crypt(?=\()", 1, False),
    (b".decrypt", rb"\.decrypt(?=\()", 1, False),
    (b"_encrypt", rb"_encrypt(?=\()", -1, False),
    (b"_decrypt", rb"_decrypt(?=\()", -1, False),
    (b"fernet", rb"fernet(?=\()", 0, False),
    (b"cookieparser", rb"cookieparser(?=\()", 0),
    (b"connection", rb"connection(?=\(\\{0,15}[\"']jdbc|\([\w.]{1,40},)", 2),
    (b"mysqli", rb"mysqli(?:_connect|_real_connect)?(?=\()", 2),
    (b"mysql_connect", rb"mysql_connect(?=\()", 2),
    (b"mysqldb.connect", rb"mysqldb\.connect(?=\()", 2),
    (b"pdo", rb"pdo(?=\()", 2),
    (b"dbi->connect", rb"dbi->connect(?=\()", 2),
    (b"oracle.connect", rb"oracle\.connect(?=\()", 1),
    (b"ssh.connect", rb"ssh\.connect(?=\()", 3),
    (b"bind", rb"bind(?:_s)?(?=\((?:\$?\w{1,20},[ ]?)?\\{0,15}[\"'](?:cn|uid|dc|ou)=)", -1),
    (b"ssh2_auth_password", rb"ssh2_auth_password(?=\()", 2),
    (b"set_password", rb"set_password(?=\()", -1),
    (b"create_user", rb"create_user(?=\()", -1),
    (b"create_superuser", rb"create_superuser(?=\()", -1),
    (b"andpassword", rb"andpassword(?=\()", -1),
    (b".run(", rb"\.run(?=\(\\{0,15}[\"'][\w.\-]{50})", 0, False),
    (b"wallet(", rb"wallet(?=\()", 0, False),
    (b"stripe(", rb"stripe(?=\()", 0, False),
    (b"from_key", rb"from_key(?=\()", 0, False),
    (b"keytoaccount", rb"keytoaccount(?=\()", 0, False),
    (b"bcrypt(", rb"bcrypt(?=\()", 0),
    (b"securitykey(", rb"securitykey(?=\()", 0),
    (b".fill(", rb"\.fill(?=\()", -1),
    (b".type(", rb"\.type(?=\()", -1),
    (b"send_keys", rb"send_keys(?=\()", -1),
    (b"sendkeys", rb"sendkeys(?=\()", -1),
)  # fmt: skip
ANCHORS: Final = tuple(_CALLS)
_LONGEST_NAME: Final = 160
"""So far from its word a name and what must follow it are compared."""
_TYPING: Final = frozenset({b".fill(", b".type(", b"send_keys", b"sendkeys"})
_ALONE: Final = frozenset({b"login", b"auth", b"set_password", *_TYPING})
_FIELD: Final = regex(rb"(?i)passw|pwd|secret|token")
_NAME: Final = regex(rb"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z|(?i:.*(?:password|username))")
_HASH_NAME: Final = regex(rb"(?i)(?:sha|md|aes|hs|rs|es|des)[\-_]?\d{1,4}[\w\-]{0,12}\Z|text/|utf-?8")


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets that are arguments of known functions."""
    data = text.data
    read: dict[int, list[_String]] = {}
    for call in text.among(_CALLS):
        for at in text.places(call.word):
            found = call.expression.match(data[at : at + _LONGEST_NAME].lower())
            if found is None:
                continue
            if call.word in _TYPING and not _FIELD.search(data, max(0, at - 60), at + 60):
                continue
            strings = read.get(at + found.end())
            if strings is None:
                strings = read[at + found.end()] = _strings(data, at + found.end())
            if span := _argument(data, strings, call):
                yield span


def _argument(data: bytes, strings: list[_String], call: SecretArgument) -> SecretSpan | None:
    """Return the secret argument of a call."""
    if not strings:
        return None
    last = strings[-1]
    if call.place >= 0:
        chosen = next((one for one in strings if one.number == call.place), None)
    else:
        chosen = last if last.number or call.word in _ALONE or len(strings) > 1 else None
    if call.word == b"auth" and len(strings) == 1 and last.end - last.start < 10:
        return None
    if chosen is None or not _is_secret(data[chosen.start : chosen.end], call):
        return None
    return SecretSpan(chosen.start, chosen.end, "call_argument")


def _strings(data: bytes, at: int) -> list[_String]:
    """Return the arguments that are strings, with their numbers."""
    found: list[_String] = []
    number = depth = 0
    for _ in range(_PIECES):
        space = _SPACE.match(data, at)
        at = space.end() if space else at
        opening = _OPENING.match(data, at)
        if opening and (end := _closing(data, opening)) >= 0:
            if depth == 0:
                found.append(_String(number, opening.end(), end))
            at = end + len(opening["quote"])
            continue
        if other := _OTHER.match(data, at):
            at = other.end()
            continue
        sign = data[at : at + 1]
        depth += _NESTING.get(sign, 0)
        number += sign == b"," and depth == 0
        if depth < 0 and data[at : at + 2] == b").":
            depth = 0
        if sign in (b"", b"\n", b";") or not 0 <= depth <= _DEPTH or number == _ARGUMENTS:
            break
        at += 1
    return found


def _closing(data: bytes, opening: re.Match[bytes]) -> int:
    """Return where a string ends: at the same quote, on the same line; -1 if it does not."""
    start = opening.end()
    end = data.find(opening["quote"], start, start + _LONGEST + len(opening["quote"]))
    return -1 if data.find(b"\n", start, end) >= 0 else end


def _is_secret(text: bytes, call: SecretArgument) -> bool:
    if judge.is_placeholder(text) or judge.is_reference(text) or b" " in text or b"://" in text:
        return False
    if b'"' in text or b"\\" in text:  # it may go on behind the string that it stands in
        return False
    if _HASH_NAME.match(text) or judge.is_public(text) or _NAME.match(text):
        return False
    return judge.is_random(text, 16) or (call.chosen and judge.is_password(text, 6))
