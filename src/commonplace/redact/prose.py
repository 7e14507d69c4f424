"""Sentences: a password in another language, `use … as the password`, a user and a password side by side.

`assignments` knows `the password is …`. Here are names that are not ASCII (also as JSON escapes them), values that
stand before their name, and pairs after words such as `login`, `creds` or `user/pass`. Nothing but the value is taken,
and it must have letters and digits or signs, because sentences have many words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.redact import judge, names
from commonplace.redact.lexicon import Mark, Text
from commonplace.redact.names import Rank
from commonplace.redact.notation import OPEN
from commonplace.redact.spans import SecretSpan

_FOREIGN: Final = (
    "contraseña", "密码", "密碼", "口令", "パスワード", "비밀번호", "пароль", "пароля", "hasło", "lösenord",
    "şifre", "clé", "schlüssel", "暗証番号", "秘密鍵", "mật khẩu", "סיסמה", "كلمة المرور", "κωδικός",
    "jelszó", "密钥", "令牌", "Пароль", "CONTRASEÑA", "Şifre",
)  # fmt: skip


def _lead(name: str) -> int:
    """Return where the first letter of a name stands that is not ASCII."""
    return next(at for at, one in enumerate(name) if not one.isascii())


def _escaped(name: str) -> bytes:
    """Return how JSON writes a name from its first letter on that is not ASCII, at any depth of escaping."""
    rest = name[_lead(name) :]
    parts = [re.escape(one.encode()) if one.isascii() else rb"\\{1,15}u%04x" % ord(one) for one in rest]
    return b"".join(parts).removeprefix(rb"\\{1,15}")


_RAW: Final = tuple(name.encode().lower() for name in _FOREIGN)
_LEADS: Final = tuple(name[: _lead(name)].lower().encode() for name in _FOREIGN)
_ESCAPED: Final = re.compile(rb"\\(?:" + b"|".join(b"(" + _escaped(name) + b")" for name in _FOREIGN) + b")")
_NAME: Final = "foreign name"
_FIRST: Final = b"|".join(sorted({b"%04x" % ord(name[_lead(name)]) for name in _FOREIGN}))
MARKS: Final = (Mark(_NAME, re.compile(rb"\\u(?:" + _FIRST + b")")),)
_TAIL: Final = re.compile(
    rb"(?P<tail>[ ](?:API|api|pour|de|del|da|do|der|des|f(?:\xc3\xbc|\\{1,15}u00fc)r|is|[\w.\-]{1,16}(?=[ ]?[:=]))){"
    rb"0,3}?"
    rb"(?:[ \t]{0,4}(?:[:=]|\xef\xbc\x9a|\\{1,15}uff1a|est|es|\xc3\xa9|\xc3\xa8|ist|lautet|\xe6\x98\xaf|\\{1,15}u662"
    rb"f|\xe4\xb8\xba|"
    rb"\\{1,15}u4e3a|\xe3\x81\xaf|\\{1,15}u306f|\xe2\x80\x94|-|\xeb\x8a\x94|\\{1,15}ub294)){0,2}[ \t]{0,4}"
    + OPEN
    + rb"?(?P<value>[!-~]{6,120}+)"
)
_AS: Final = re.compile(
    rb"(?i)[ (]"
    + OPEN
    + rb"?(?P<value>[!-~]{6,120}+)[ ](?:as|for|als|comme|como|is)[ ](?:the|my|your|our|a|an|das|le|la)[ ]"
    + rb"(?P<name>(?:[\w\-]{1,16}[ ]){0,3}?(?:password|passwort|kennwort|passphrase|pwd?|passcode|token|secret|key))\b"
)
_SAID: Final = re.compile(
    rb"(?i)[ ](?:as[ ](?:the|my|your|our|an?|das|le|la)|is[ ](?:the|my))[ ](?:[\w\-]{1,16}+[ ]){0,3}\Z"
)
"""What stands between a value and its name."""
_PW: Final = rb"(?:(?:pw|pass|password|passwort|pwd)[: ]{1,2})"
_PAIR: Final = re.compile(
    rb"""(?xi)
    (?: [ ](?:is|are|with|as|for[ ][\w.\-]{1,30}|lautet|lauten|sind) [ ]?:? [ ]{1,4}
      | [ \t]{0,2}[:=][ \t]{0,4} | (?P<loose> [ ]{1,4} ) )
    (?: (?:user|username|login|benutzer)[ ] )?
    """
    + OPEN
    + rb"? (?P<user> [\w.@+\-]{1,60}+ (?:\\{1,8}[\w.@+\-]{1,60}+)? )"
    + OPEN
    + rb"? (?P<between> [ ]?/[ ]?"
    + _PW
    + rb"? | : | ,[ ]"
    + _PW
    + rb"? | [ ](?:and|with|und)[ ](?:password[ ])? )"
    + OPEN
    + rb"? (?P<value> [!-~]{6,120}+ )"
)
_PAIRED: Final = re.compile(rb"(?i)p|:|with|and|und")
_LOGINS: Final = frozenset((
    b"login", b"creds", b"credentials", b"zugangsdaten", b"user/pass", b"username/password", b"user/password",
    b"login/password", b"benutzer/passwort", b"user:pass", b"identifiant", b"identifiants", b"log in", b"logged in",
    b"wifi", b"wi-fi", b"wlan", b"ssh", b"username:password", b"anmeldedaten", b"account", b"acceso", b"credenciales",
    b"admin access",
))  # fmt: skip
_MAIL: Final = re.compile(
    rb"(?:\A|[\s\"'(>+]|\\{1,15}[nt\"]|\x92)[\w.+\-]{1,60}@[\w\-]{1,40}(?:\.[\w\-]{2,30}){1,3}(?P<between>[ ]?[/|][ "
    rb"]|:)" + OPEN + rb"?(?P<value>[!-~]{6,80}+)"
)
_HOST: Final = re.compile(
    rb"[\w.\-]{1,40}@(?:\d{1,3}\.){3}\d{1,3}[ ](?:/|\(password|with|pw)[ ](?P<value>[!-~]{6,80}+)"
)
_FROM_TO: Final = re.compile(
    rb"(?i)[ ](?:from[ ]" + OPEN + rb"?(?P<old>[!-~]{6,80}+)[ ])?to[ ]" + OPEN + rb"?(?P<value>[!-~]{6,80}+)"
)
_MIXED: Final = re.compile(rb"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])")
_SIGN: Final = re.compile(rb"[!@#$%^&*+=?~]")
_PATH: Final = re.compile(
    rb"[\w.\-]*/[\w.\-/]*\Z|.*\.(?:com|org|net|io|py|js|ts|md|txt|json|ya?ml|git|sh|html?|go|rs)\Z|\d+(?:[.,:]\d+)*["
    rb"a-z%]{0,3}\Z"
)
_DOMAINS: Final = re.compile(rb"\d{2}")


_CHANGED: Final = (b"assword changed", b"password", b"changed it")
ANCHORS: Final = (*_LOGINS, *_CHANGED, *_RAW, b"@")
_LONGEST_NAME: Final = 200
"""So far a name may reach that JSON escaped, also where it has a blank in it."""


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the passwords of sentences."""
    data = text.data
    yield from _foreign(text)
    yield from _addresses(text)
    yield from _changes(text)
    for at, _ in text.names:
        if data[at - 1 : at] == b" " and (said := _SAID.search(data, max(0, at - 90), at)):
            yield from _before(data, said.start())
    for word in _LOGINS:
        for at in text.places(word):
            found = _PAIR.match(data, at + len(word))
            if found and (not found["loose"] or _PAIRED.search(found["between"])) and (span := _span(found, data)):
                yield span


def _addresses(text: Text) -> Iterator[SecretSpan]:
    """Yield passwords behind a mail address or a host."""
    data = text.data
    for at in text.exact(b"@"):
        found = _MAIL.search(data, max(0, at - 62), at + 220)
        if found and found.start() < at < found.start("between") and (span := _mail(found, data)):
            yield span
        found = _HOST.search(data, max(0, at - 41), at + 120)
        if found and found.start() < at and (span := _span(found, data)):
            yield span


def _changes(text: Text) -> Iterator[SecretSpan]:
    """Yield the old and the new password of `changed the password from … to …`."""
    for word in _CHANGED:
        for at in text.places(word):
            if found := _FROM_TO.match(text.data, at + len(word)):
                for group in ("old", "value"):
                    if found[group] and (span := _span(found, text.data, group)):
                        yield span


def _foreign(text: Text) -> Iterator[SecretSpan]:
    """Yield what follows names that are not ASCII."""
    data = text.data
    ends = [at + len(name) for name in _RAW for at in text.places(name)]
    for start, end in text.marked(_NAME):
        for found in _ESCAPED.finditer(data, start, end + _LONGEST_NAME):
            before = data[max(0, found.start() - 24) : found.start()].rstrip(b"\\")
            if found.start() < end and before.lower().endswith(_LEADS[(found.lastindex or 1) - 1]):
                ends.append(found.end())
    for end in ends:
        if (value := _TAIL.match(data, end)) and (span := _span(value, data)):
            yield span


def _before(data: bytes, at: int) -> Iterator[SecretSpan]:
    begin = max(0, at - 124)
    found = _AS.search(data, max(begin, data.rfind(b" ", begin, at)), at + 60)
    if (
        found
        and found.start("value") < at
        and names.rank(found["name"]) is not Rank.NONE
        and (span := _span(found, data))
    ):
        yield span


def _mail(found: re.Match[bytes], data: bytes) -> SecretSpan | None:
    """A mail address and a password; after a colon only what no path and no port is."""
    text = found["value"]
    if found["between"] == b":" and (b"/" in text or b"." in text.strip(b".") or not _DOMAINS.search(text)):
        return None
    return _span(found, data)


def _span(found: re.Match[bytes], data: bytes, group: str = "value") -> SecretSpan | None:
    """Return the span of a value that a sentence gives, without what belongs to the sentence."""
    start = found.start(group)
    text = re.split(rb"[\"'`<>\\]", found[group], maxsplit=1)[0]
    text = text.rstrip(b",;:)]}|")
    if text.endswith(b".") and data[start + len(text) : start + len(text) + 1] in (b"", b" ", b"\n", b"\\", b'"'):
        text = text[:-1]
    user = found.groupdict().get("user") or b""
    if len(text) < 6 or text.lower() == user.lower() or b"://" in text or text[:1] in b"$-{[<(":
        return None
    if judge.is_placeholder(text) or judge.is_reference(text) or judge.is_public(text) or _PATH.match(text):
        return None
    if not _MIXED.match(text) or not (_DOMAINS.search(text) or _SIGN.search(text) or judge.is_random(text, 8)):
        return None
    if not (len(text) >= 8 or _SIGN.search(text)):
        return None
    return SecretSpan(start, start + len(text), "prose_password")
