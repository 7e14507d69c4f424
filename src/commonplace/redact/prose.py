"""Sentences: a password in another language, `use … as the password`, a user and a password side by side.

`assignments` knows `the password is …`. Here are names that are not ASCII (also as JSON escapes them), values that
stand before their name, and pairs after words such as `login`, `creds` or `user/pass`. Nothing but the value is taken,
and it must have letters and digits or signs, because sentences have many words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from commonplace.patterns import regex
from commonplace.redact import judge, names, spaced
from commonplace.redact.lexicon import Mark, Text
from commonplace.redact.names import Rank
from commonplace.redact.notation import MARK, OPEN
from commonplace.redact.spans import SecretSpan

_FOREIGN: Final = (
    "contraseña", "密码", "密碼", "口令", "パスワード", "비밀번호", "пароль", "пароля", "hasło", "lösenord",
    "şifre", "clé", "schlüssel", "暗証番号", "秘密鍵", "mật khẩu", "סיסמה", "كلمة المرور", "κωδικός",
    "jelszó", "密钥", "密鑰", "令牌", "Пароль", "CONTRASEÑA", "Şifre", "code d'accès", "jeton d'accès",
)  # fmt: skip


def _lead(name: str) -> int:
    """Return where the first letter of a name stands that is not ASCII."""
    return next(at for at, one in enumerate(name) if not one.isascii())


def _escaped(name: str) -> bytes:
    """Return how JSON writes a name from its first letter on that is not ASCII, at any depth of escaping."""
    rest = name[_lead(name) :]
    parts = [re.escape(one.encode()) if one.isascii() else rb"\\{1,15}u%04x" % ord(one) for one in rest]
    return b"".join(parts).removeprefix(rb"\\{1,15}")


def _older(name: str) -> list[bytes]:
    """Return how a name is written in encodings that are older than UTF-8."""
    found: list[bytes] = []
    for encoding in ("latin-1", "gb18030") if name.lower() in _WESTERN_AND_CHINESE else ():
        with suppress(UnicodeEncodeError):
            found.append(name.encode(encoding).lower())
    return found


_WESTERN_AND_CHINESE: Final = frozenset(
    ("contraseña", "clé", "schlüssel", "code d'accès", "jeton d'accès", "密码", "密碼", "口令", "密钥", "密鑰")
)
_RAW: Final = tuple(dict.fromkeys((
    *(name.encode().lower() for name in _FOREIGN), *(older for name in _FOREIGN for older in _older(name))
)))  # fmt: skip
_LEADS: Final = tuple(name[: _lead(name)].lower().encode() for name in _FOREIGN)
_ESCAPED: Final = regex(rb"\\(?:" + b"|".join(b"(" + _escaped(name) + b")" for name in _FOREIGN) + b")")
_NAME: Final = "foreign name"
_FIRST: Final = b"|".join(sorted({b"%04x" % ord(name[_lead(name)]) for name in _FOREIGN}))
MARKS: Final = (Mark(_NAME, regex(rb"\\u(?:" + _FIRST + b")")),)
_TAIL: Final = regex(
    rb"(?P<tail>[ ](?:API|api|pour|de|del|da|do|der|des|f(?:\xc3\xbc|\\{1,15}u00fc)r|is|[\w.\-]{1,16}(?=[ ]?[:=]))){"
    rb"0,3}?"
    rb"(?:[ \t]{0,4}(?:[:=]|\xef\xbc\x9a|\\{1,15}uff1a|est|es|\xc3\xa9|\xc3\xa8|ist|lautet|\xe6\x98\xaf|\\{1,15}u662"
    rb"f|\xe4\xb8\xba|"
    rb"\\{1,15}u4e3a|\xe3\x81\xaf|\\{1,15}u306f|\xe2\x80\x94|-|\xeb\x8a\x94|\\{1,15}ub294)){0,2}[ \t]{0,4}"
    + OPEN
    + rb"?"
    + MARK
    + rb"?(?P<value>[!-~]{6,120}+)"
)
_QUOTED: Final = regex(
    rb"[ \t]{0,4}(?:[:=]|\xef\xbc\x9a|\\{1,15}uff1a)[ \t]{0,4}\\{0,15}[\"'](?P<value>[^\"'\\\n]{8,96}+)\\{0,15}[\"']"
)
"""A value in quotes behind a name; it may have blanks."""


def _either(*words: str) -> bytes:
    """Return an expression for words, as they are and as JSON escapes them."""
    escaped = (b"".join(rb"\\{1,15}u%04x" % ord(one) for one in word) for word in words)
    return b"(?:" + b"|".join((*(word.encode() for word in words), *escaped)) + b")"


_HAN: Final = rb"(?:[\xe4-\xe9][\x80-\xbf]{2}|\\{1,15}u[4-9][0-9a-fA-F]{3})"
_ABOUT: Final = regex(
    rb"(?P<about>(?:[\x80-\xff]{2,24}+|(?>(?:\\{1,15}u[4-9][0-9a-fA-F]{3}){1,8}))[ \t]{0,2}"
    rb"(?:[:=]|\xef\xbc\x9a|\\{1,15}uff1a)?[ \t]{0,4}"
    rb"|[ ](?:d'|(?:de|del|du|des|pour|para|en|on|for|of|sur|f(?:\xc3\xbc|\\{1,15}u00fc)r|von|der|auf|im"
    rb"|secr(?:\xc3\xa8|\\{1,15}u00e8)te|secreta|nueva|actual|root|admin"
    + b"".join(b"|" + _either(word) for word in ("от", "для", "к", "на"))
    + rb")[ ])"
    rb"(?:[\w.'\-/\\\x80-\xff]{1,24}+[ ]){0,5}?"
    rb"(?:(?:es|est|ist|lautet|is)(?:[ ](?:ahora|maintenant|jetzt|now))?[ ]?:?"
    rb"|[\w.'\-/\\\x80-\xff]{1,24}+[ ]?[:=])[ ]"
    rb"|[ ](?:nueva|actual|secreta)[ ]?:[ ]"
    rb"|[ ](?:a|en|auf|por|\xc3\xa0|\\{1,15}u00e0|es|est|ist|is)[ ](?:(?:ahora|maintenant|jetzt|now)[ ])?)"
    + OPEN
    + rb"?"
    + MARK
    + rb"?(?P<value>[!-~]{6,120}+)"
)
"""Words between a name and its value: where the password belongs, what it was changed to."""
_OF_VALUE: Final = regex(
    rb":|=|[ ](?:es|est|ist|lautet|is|a|auf|en|por)[ ]|\xc3\xa0|u00e0|(?:ahora|maintenant|jetzt|now)[ ]\Z"
)
"""One of these stands between a name and its value in a sentence."""
_OF_RULES: Final = regex(
    _either("长度", "字段", "文件", "哈希", "算法", "加密", "路径", "变量", "规则", "参数", "强度")
)
"""Words that tell of something else than the value: a length, a field, a file, a hash."""
_USED: Final = regex(
    rb"(?i)(?:\A|[ \"'`(])(?P<value>[!-~]{6,120}+)(?:[\"'`]?[ ](?:como|comme|als)[ ](?:(?:la|le|mi|mon|ma|das)[ ])?"
    rb"(?:(?:nueva|nouvelle|nouveau|mot|de)[ ]){0,3}|[\"'`]?[ ]?"
    + _either("作为", "当作", "做为", "当")
    + rb"(?>"
    + _HAN
    + rb"{0,4}))\Z"
)
"""A value before its name."""
_AS: Final = regex(
    rb"(?i)(?:\A|[ (\n]|\\{1,15}n)"
    + OPEN
    + rb"?(?P<value>[!-~]{6,120}+)[ ](?:(?:as|for|als|comme|como|is)[ ](?:the|my|your|our|a|an|das|le|la|mi|mon)"
    rb"|als|comme|como|(?P<short>as|\((?:the|my|our)))[ ]"
    rb"(?P<name>(?:[\w\-]{1,16}[ ]){0,3}?(?:password|passwort|kennwort|passphrase|pwd?|passcode|passe|mdp|clave|"
    rb"contrasena|token|secret|key))\b"
)
_SAID: Final = regex(
    rb"(?i)[ ](?:as[ ](?:the|my|your|our|an?|das|le|la)|is[ ](?:the|my)|als|as|como|comme|\((?:the|my|our))[ ]"
    rb"(?:[\w\-]{1,16}+[ ]){0,3}\Z"
)
"""What stands between a value and its name."""
_SAID_ALL: Final = regex(rb"[.,;:!)\r\n\\\"'`]|\Z|[ ](?:for|on|in|to|and|when|here|instead)\b")
"""What stands behind `as password`; in `as password hash` the value is none."""
_PW: Final = rb"(?:(?:pw|pass|password|passwort|pwd)[: ]{1,2})"
_PAIR: Final = regex(
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
_PAIRED: Final = regex(rb"(?i)p|:|with|and|und")
_LOGINS: Final = frozenset((
    b"login", b"creds", b"credentials", b"zugangsdaten", b"user/pass", b"username/password", b"user/password",
    b"login/password", b"benutzer/passwort", b"user:pass", b"identifiant", b"identifiants", b"log in", b"logged in",
    b"wifi", b"wi-fi", b"wlan", b"ssh", b"username:password", b"anmeldedaten", b"account", b"acceso", b"credenciales",
    b"admin access",
))  # fmt: skip
_MAIL: Final = regex(
    rb"(?:\A|[\s\"'(>+]|\\{1,15}[nt\"]|\x92)[\w.+\-]{1,60}@[\w\-]{1,40}(?:\.[\w\-]{2,30}){1,3}(?P<between>[ ]?[/|][ "
    rb"]|:)" + OPEN + rb"?(?P<value>[!-~]{6,80}+)"
)
_AT_MAIL: Final = regex(rb"@[\w\-]{1,40}(?:\.[\w\-]{2,30}){1,3}(?:[ ]?[/|][ ]|:)")
_AT_NUMBER: Final = regex(rb"@(?:\d{1,3}\.){3}\d{1,3}[ ](?:/|\(password|with|pw)[ ]")
"""How the two go on at their sign: nearly all other signs are told by this alone."""
_HOST: Final = regex(rb"[\w.\-]{1,40}@(?:\d{1,3}\.){3}\d{1,3}[ ](?:/|\(password|with|pw)[ ](?P<value>[!-~]{6,80}+)")
_AT_HOST: Final = regex(rb"@(?=(?:\d{1,3}\.){3}\d|[\w\-]{1,63}(?:\.|:\d))")
_FROM_TO: Final = regex(
    rb"(?i)[ ](?:from[ ]" + OPEN + rb"?(?P<old>[!-~]{6,80}+)[ ])?to[ ]" + OPEN + rb"?(?P<value>[!-~]{6,80}+)"
)
_MIXED: Final = regex(rb"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])")
_SIGN: Final = regex(rb"[!@#$%^&*+=?~]")
_PATH: Final = regex(
    rb"[\w.\-]*/[\w.\-/]*\Z|.*\.(?:com|org|net|io|py|js|ts|md|txt|json|ya?ml|git|sh|html?|go|rs)\Z|\d+(?:[.,:]\d+)*["
    rb"a-z%]{0,3}\Z"
)
_DOMAINS: Final = regex(rb"\d{2}")


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
        found = _AT_MAIL.match(data, at) and _MAIL.search(data, max(0, at - 62), at + 220)
        if found and found.start() < at < found.start("between") and (span := _mail(found, data)):
            yield span
        found = _AT_NUMBER.match(data, at) and _HOST.search(data, max(0, at - 41), at + 120)
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
    places = [(at, at + len(name)) for name in _RAW for at in text.places(name)]
    for start, end in text.marked(_NAME):
        for found in _ESCAPED.finditer(data, start, end + _LONGEST_NAME):
            before = data[max(0, found.start() - 24) : found.start()].rstrip(b"\\")
            lead = _LEADS[(found.lastindex or 1) - 1]
            if found.start() < end and before.lower().endswith(lead):
                places.append((found.start() - len(lead), found.end()))
    for start, end in places:
        value = _TAIL.match(data, end)
        span = value and _span(value, data)
        if span is None and (value := _ABOUT.match(data, end)) and _tells(value["about"]):
            span = _span(value, data)
        if span is None and (value := _USED.search(data, max(0, start - 150, data.rfind(b"\n", 0, start) + 1), start)):
            span = _span(value, data)
        if span is None and (value := _QUOTED.match(data, end)) and spaced.is_secret(value["value"], is_sure=False):
            span = SecretSpan(*value.span("value"), "prose_password")
        if span is not None:
            yield span


def _tells(about: bytes) -> bool:
    """Say whether the words between a name and a value lead to the value."""
    return _OF_RULES.search(about) is None and (about[:1] != b" " or _OF_VALUE.search(about) is not None)


def _before(data: bytes, at: int) -> Iterator[SecretSpan]:
    begin = max(0, at - 124)
    found = _AS.search(data, max(begin, data.rfind(b" ", begin, at)), at + 60)
    if (
        found
        and found.start("value") < at
        and (not found["short"] or _SAID_ALL.match(data, found.end()))
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
    if user and (host := _AT_HOST.search(text)):
        text = text[: host.start()]
    if len(text) < 6 or text.lower() == user.lower() or b"://" in text or text[:1] in b"$-{[<(":
        return None
    if judge.is_placeholder(text) or judge.is_reference(text) or judge.is_public(text) or _PATH.match(text):
        return None
    if not _MIXED.match(text) or not (_DOMAINS.search(text) or _SIGN.search(text) or judge.is_random(text, 8)):
        return None
    if not (len(text) >= 8 or _SIGN.search(text)):
        return None
    return SecretSpan(start, start + len(text), "prose_password")
