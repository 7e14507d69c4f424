"""Passwords on command lines whose flags say nothing by themselves: `curl -u a:b`, `mysql -pX`, `sshpass -p X`.

Flags with a telling name (`--password`, `--api-key`) are found by `assignments`. Here a flag counts only when the
program that gives it a meaning stands before it in the same command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from commonplace.redact import judge
from commonplace.redact.spans import Span

_REACH: Final = 240
"""How far before a flag its program may stand."""
_STOP: Final = re.compile(rb"[\n;|]|&&|\\n")
_VALUE: Final = re.compile(
    rb"""(?x) [ \t=]{0,4}
    (?: \\{0,15}["'] (?P<quoted> [^"'\\\n]{3,200}+ )
      | (?P<bare> [^\s"'`\\$<>;|&(){}\-][^\s"'`\\<>;|&(){}]{2,200}+ ) )"""
)
_TIGHT: Final = re.compile(
    rb"""(?x)
    (?: \\{0,15}["'] (?P<quoted> [^"'\\\n]{3,200}+ )
      | (?P<bare> [^\s"'`\\$<>;|&(){}=\-][^\s"'`\\<>;|&(){}]{2,200}+ ) )"""
)
_LOGIN: Final = re.compile(
    rb"[ \t=]{0,4}(?:\\{0,15}[\"'])?(?P<user>[^\s:\"'`\\$<>{}]{0,100}+):(?P<bare>[^\s\"'`\\<>]{3,200}+)"
)
_SHARE: Final = re.compile(rb"[ \t]{0,4}(?:\\{0,15}[\"'])?[^\s%\"'\\]{1,80}+%(?P<bare>[^\s\"'\\]{3,200}+)")
_IDENTIFIED: Final = re.compile(
    rb"""(?xi) (?:with[ \t][\w'"]{1,40}[ \t])? by [ \t]{0,4} (?:password[ \t]{1,4})?
    \\{0,15}["'] (?P<bare> [^"'\\\n]{3,200}+ )"""
)
_SECURE: Final = re.compile(rb"(?:-String[ \t]{1,4})?\\{0,15}[\"'](?P<bare>[^\"'\\\n]{3,200}+)")
_ECHO: Final = re.compile(
    rb"""(?x) (?:echo|printf)[ \t]{1,4} (?:-n[ \t]{1,4})? (?:\\{0,15}["'])?
    (?: (?P<user> [\w.\-]{1,40} ) : )? (?P<bare> [^\s"'\\|$<>]{3,120}+ ) ["'\\ \t]{1,6} \| [^|]{0,60}\Z"""
)
_BEFORE_USER: Final = re.compile(rb"[ \t](?P<bare>[^\s/\"'\\:*]{6,100}+)[ \t]{1,4}\Z")
_AFTER_USER: Final = re.compile(rb"[ \t]{1,4}[\w.\-]{1,40}+[ \t]{1,4}(?P<bare>[^\s/\"'\\*]{6,100}+)")


class Flag(NamedTuple):
    """A flag, the programs that take a password after it, and the form of what follows."""

    flag: bytes
    programs: re.Pattern[bytes]
    form: re.Pattern[bytes]
    kind: str = "command_password"


def _programs(names: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?:^|[\s/\"'`$(&n+\-])(?:" + names + rb")(?:[\w.\-]{0,12})?(?=[ \t]|\Z)")


_HTTP: Final = _programs(rb"curl|http|https|xh")
_FLAGS: Final = (
    Flag(b" -u", _HTTP, _LOGIN, "basic_login"),
    Flag(b" --user", _HTTP, _LOGIN, "basic_login"),
    Flag(b" --proxy-user", _HTTP, _LOGIN, "basic_login"),
    Flag(b" -U", _HTTP, _LOGIN, "basic_login"),
    Flag(b" -U", _programs(rb"smbclient|rpcclient"), _SHARE),
    Flag(b" -a", _HTTP, _LOGIN, "basic_login"),
    Flag(b" -a", _programs(rb"redis-cli"), _VALUE),
    Flag(b" -p", _programs(rb"mysql|mariadb|mysqldump|mysqladmin|7z"), _TIGHT),
    Flag(b" -p", _programs(rb"sshpass|mongo|login"), _VALUE),
    Flag(b" -P", _programs(rb"sqlcmd|zip|unzip|ssh-keygen"), _VALUE),
    Flag(b" -w", _programs(rb"ldap"), _VALUE),
    Flag(b" -k ", _programs(rb"openssl"), _VALUE),
    Flag(b" -N ", _programs(rb"ssh-keygen"), _VALUE),
    Flag(b"pass:", _programs(rb"openssl"), _TIGHT),
    Flag(b" /p:", re.compile(rb"freerdp"), _VALUE),
    Flag(b"SecureString ", re.compile(rb"ConvertTo-\Z"), _SECURE),
    Flag(b"sonar.login", re.compile(rb""), _VALUE),
    Flag(b"IDENTIFIED ", re.compile(rb""), _IDENTIFIED, "sql_password"),
    Flag(b"identified ", re.compile(rb""), _IDENTIFIED, "sql_password"),
    Flag(b"net user", re.compile(rb""), _AFTER_USER),
)  # fmt: skip
_BACKWARD: Final = ((b"chpasswd", _ECHO), (b"-stdin", _ECHO), (b"/user:", _BEFORE_USER))
"""Words behind a password, and what stands before them."""


def find(data: bytes) -> Iterator[Span]:
    """Yield the passwords on command lines."""
    for flag in _FLAGS:
        at = data.find(flag.flag)
        while at >= 0:
            found = flag.form.match(data, at + len(flag.flag))
            if found and _is_given_to(data, at, flag.programs) and (span := _span(found, flag.kind)):
                yield span
            at = data.find(flag.flag, at + len(flag.flag))
    for word, form in _BACKWARD:
        at = data.find(word)
        while at >= 0:
            if (found := form.search(data, max(0, at - 200), at)) and (span := _span(found, "command_password")):
                yield span
            at = data.find(word, at + 40)


def _is_given_to(data: bytes, at: int, programs: re.Pattern[bytes]) -> bool:
    """Say whether one of the programs stands before a place in the same command."""
    if not programs.pattern:
        return True
    before = data[max(0, at - _REACH) : at]
    found = programs.search(before)
    return found is not None and _STOP.search(before, found.end()) is None


def _span(found: re.Match[bytes], kind: str) -> Span | None:
    groups = found.groupdict()
    group = "quoted" if groups.get("quoted") else "bare"
    text = found[group]
    user = groups.get("user") or b""
    if not text or text == user or judge.is_placeholder(text) or judge.is_reference(text) or text.startswith(b"$"):
        return None
    if b"://" in text or (judge.is_public(text) and not text.isdigit()):
        return None
    if not judge.is_password(text, 5) and not (kind == "basic_login" and len(text) >= 8):
        return None
    return Span(*found.span(group), kind)
