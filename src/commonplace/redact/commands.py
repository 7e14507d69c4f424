"""Passwords on command lines whose flags say nothing by themselves: `curl -u a:b`, `mysql -pX`, `sshpass -p X`.

Flags with a telling name (`--password`, `--api-key`) are found by `assignments`. Here a flag counts only when the
program that gives it a meaning stands before it in the same command, written for a shell or as a list of arguments.
Flags of one letter are found in one pass and looked up by their letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from commonplace.patterns import regex
from commonplace.redact import judge
from commonplace.redact.lexicon import Mark, Text, by_anchor
from commonplace.redact.spans import SecretSpan

_REACH: Final = 240
"""How far before a flag its program may stand."""
_STOP: Final = regex(rb"[\n;|]|&&|\\n")
_SEP: Final = rb"(?:\\{0,15}[\"'],[ \t]{0,4}(?=\\{0,15}[\"'])|[ \t=:]{0,4})"
"""Between a flag and its value: blanks, or what stands between the items of a list."""
_QUOTED: Final = rb"\\{0,15}[\"'](?P<quoted>[^\"'\\\n]{3,200}+)"


def _value(between: bytes, first: bytes) -> re.Pattern[bytes]:
    bare = rb"(?P<bare>[^\s\"'`\\$<>;|&(){}" + first + rb"][^\s\"'`\\<>;|&(){}]{2,200}+)"
    return regex(between + rb"(?:" + _QUOTED + rb"|" + bare + rb")")


_VALUE: Final = _value(_SEP, rb"\-")
_APART: Final = _value(rb"(?:\\{0,15}[\"'],[ \t]{0,4}(?=\\{0,15}[\"'])|[ \t=]{1,4})", rb"\-")
_TIGHT: Final = _value(rb"(?:\\{0,15}[\"'],[ \t]{0,4}(?=\\{0,15}[\"']))?", rb"=\-")
_LOGIN: Final = regex(
    _SEP
    + rb"(?P<open>\\{0,15}[\"'])?(?P<user>[^\s:,\"'`\\$<>{}]{0,100}+)[:,]"
    + rb"(?(open)(?P<quoted>[^\"'`\\<>\n]{3,200}+)|(?P<bare>[^\s\"'`\\<>]{3,200}+))"
)
_SHARE: Final = regex(_SEP + rb"(?:\\{0,15}[\"'])?[^\s%\"']{1,80}+%(?P<bare>[^\s\"'\\]{3,200}+)")
_CRUMB: Final = regex(
    rb"[ \t=]{0,4}(?:\\{0,15}[\"'])?(?:[\w.\-]{1,40}=[\w.\-]{0,40};[ ]?){0,4}[\w.\-]{1,60}=(?P<bare>[^\s\"'\\;]{12,4"
    rb"00}+)"
)


class Flag(NamedTuple):
    """The programs that take a password after a flag, the form of what follows, and the kind of finding."""

    programs: re.Pattern[bytes]
    form: re.Pattern[bytes]
    kind: str = "command_password"


def _programs(names: bytes) -> re.Pattern[bytes]:
    return regex(rb"(?:(?<![\w.\-])|(?<=\\n)|(?<=\\t))(?:" + names + rb")(?:[\w.\-]{0,12})?(?=[ \t\"'\\]|\Z)")


_HTTP: Final = _programs(rb"curl|http|https|xh|wget|lftp")
_LETTERS: Final[dict[bytes, tuple[Flag, ...]]] = {
    b"p": (
        Flag(_programs(rb"mysql|mariadb|7z|7za|unrar|rar|sshpass|mycli|xtrabackup|mongo"), _TIGHT),
        Flag(
            _programs(
                rb"sshpass|mongo|login|twine|[Pp]s[Ee]xec|evil-winrm|crackmapexec|netexec|nxc|cme|hydra|medusa|rdesk"
                rb"top|cqlsh|"
                rb"snowsql|beeline|steghide|rabbitmqadmin|ncftp|nuget|xcrun|altool|notarytool|usermod|useradd|certutil|"
                rb"unlock-keychain|winrs|influx|wmiexec|smbmap|docker-login|set-key-partition-list|create-keychain|g"
                rb"sql|"
                rb"exaplus|sqoop|denodo|dsmadmc|nodetool|vncdo|bcftp|kinit|weblogic|cypher-shell|dsh|smbpasswd|rabbitmqctl"
            ),
            _APART,
        ),
        Flag(_programs(rb"winrs"), _VALUE),
    ),
    b"P": (
        Flag(
            _programs(
                rb"sqlcmd|zip|unzip|ssh-keygen|bcp|osql|isql|tsql|mosquitto|ipmitool|security|freebcp|mssql-cli|impdp"
            ),
            _VALUE,
        ),
    ),
    b"w": (Flag(_programs(rb"ldap|add-generic-password|add-internet-password|dsidm|wbinfo"), _APART),),
    b"s": (Flag(_programs(rb"ldappasswd|ldapp"), _APART),),
    b"k": (Flag(_programs(rb"openssl|nuget"), _APART),),
    b"K": (Flag(_programs(rb"openssl"), _APART),),
    b"a": (
        Flag(_HTTP, _LOGIN, "basic_login"),
        Flag(_programs(rb"redis-cli|keydb-cli|valkey-cli|redis-benchmark"), _APART),
    ),
    b"A": (Flag(_programs(rb"ab"), _LOGIN, "basic_login"), Flag(_programs(rb"snmp"), _APART)),
    b"X": (Flag(_programs(rb"snmp"), _APART),),
    b"c": (Flag(_programs(rb"snmp|onesixtyone"), _APART),),
    b"u": (Flag(_HTTP, _LOGIN, "basic_login"),),
    b"U": (
        Flag(_HTTP, _LOGIN, "basic_login"),
        Flag(_programs(rb"smb|rpcclient|winexe|net|samba|nmblookup|wmic"), _SHARE),
    ),
    b"b": (Flag(_HTTP, _CRUMB, "cookie"), Flag(regex(rb"secret[ ]set"), _VALUE)),
    b"t": (Flag(_programs(rb"codecov|doctl|codacy|snyk|surge|netlify"), _APART),),
    b"N": (Flag(_programs(rb"ssh-keygen"), _APART),),
}
"""By their letter: flags of programs."""
_LETTER: Final = regex(rb"[ \"']-([a-zA-Z]{1,3}u(?=[ \t])|[a-zA-Z])(?<=[" + b"".join(_LETTERS) + rb"])")
_FLAG: Final = "flag"
MARKS: Final = (Mark(_FLAG, regex(rb"-(?<=[ \"']-)(?:[a-zA-Z]{1,3}u(?= )|[" + b"".join(_LETTERS) + rb"])")),)
_ANY: Final = regex(rb"")
_PHRASE: Final = regex(rb"(?=[^0-9]{0,60}[0-9])[^ ]{1,20}(?:[ ][^ ]{1,20}){1,5}\Z")
"""A password with blanks and a digit, in quotes."""
_SECURE: Final = regex(rb"(?:-(?:String|AsPlainText|Force)[ \t]{1,4}){0,3}\\{0,15}[\"'](?P<quoted>[^\"'\\\n]{3,200}+)")
_WORDS: Final = by_anchor((
    (b" --user", Flag(_programs(rb"curl|http|https|xh|wget|lftp|etcdctl"), _LOGIN, "basic_login")),
    (b"creds", Flag(_programs(rb"skopeo|buildah|podman|crane|oras"), _LOGIN, "basic_login")),
    (b"-user ", Flag(_HTTP, _LOGIN, "basic_login")),
    (b" --cookie", Flag(_HTTP, _CRUMB, "cookie")),
    (b" --key", Flag(_programs(rb"cypress|meilisearch|sentry-cli"), _APART)),
    (b" --value", Flag(regex(rb"put-parameter|keyvault|secret"), _APART)),
    (b"secret-string", Flag(regex(rb"secretsmanager"), _APART)),
    (b"pass:", Flag(_programs(rb"openssl|apksigner|zipalign"), _TIGHT)),
    (b" /p:", Flag(regex(rb"freerdp"), _VALUE)),
    (b" /p ", Flag(regex(rb"signtool"), _VALUE)),
    (b" /rp", Flag(regex(rb"schtasks"), _APART)),
    (b"SecureString ", Flag(regex(rb"ConvertTo-\Z"), _SECURE)),
    (b"sonar.login", Flag(_ANY, _VALUE)),
), lambda row: row[0])  # fmt: skip
"""Flags of more than one letter that say nothing by themselves."""
ANCHORS: Final = tuple(_WORDS)


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the passwords on command lines."""
    data = text.data
    for start, end in text.marked(_FLAG):
        for found in _LETTER.finditer(data, max(0, start - 1), end + 1):
            for flag in _flags(found[1]):
                if span := _given(data, found.start(), found.end(), flag):
                    yield span
    for word, flag in text.among(_WORDS):
        for at in text.exact(word):
            if span := _given(data, at, at + len(word), flag):
                yield span


def _flags(letters: bytes) -> tuple[Flag, ...]:
    """Return what letters behind a dash may mean; of several (`-sSu`), only the last one takes a value."""
    if len(letters) > 1:
        return tuple(flag for flag in _LETTERS[letters[-1:]] if flag.kind == "basic_login")
    return _LETTERS[letters]


def _given(data: bytes, at: int, end: int, flag: Flag) -> SecretSpan | None:
    found = flag.form.match(data, end)
    if found is None or (span := span_of(found, flag.kind)) is None or not _is_given_to(data, at, flag.programs):
        return None
    return span


def _is_given_to(data: bytes, at: int, programs: re.Pattern[bytes]) -> bool:
    """Say whether one of the programs stands before a place in the same command."""
    if not programs.pattern:
        return True
    before = data[max(0, at - _REACH) : at]
    return any(_STOP.search(before, found.end()) is None for found in programs.finditer(before))


def span_of(found: re.Match[bytes], kind: str) -> SecretSpan | None:
    """Return the span of what a rule took for a password, unless it stands for one or is something else."""
    groups = found.groupdict()
    group = "quoted" if groups.get("quoted") else "bare"
    text = found[group]
    user = groups.get("user") or b""
    if not text or text == user or judge.is_placeholder(text) or judge.is_reference(text) or text.startswith(b"$"):
        return None
    if b"://" in text or (judge.is_public(text) and not text.isdigit()):
        return None
    is_phrase = group == "quoted" and _PHRASE.match(text) is not None
    if not (judge.is_password(text, 5) or is_phrase or (kind == "basic_login" and len(text) >= 8)):
        return None
    return SecretSpan(*found.span(group), kind)
