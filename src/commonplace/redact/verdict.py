"""Is this value after this name a secret? How much is asked of it depends on what its name promises and on the form.

A quoted string after `password =` needs little; a word that only follows `key` in a sentence needs much. Values without
quotes may be code (`token = other.token`), and code is left alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from commonplace.patterns import regex
from commonplace.redact import judge, names, notation, spaced
from commonplace.redact.names import Rank
from commonplace.redact.values import ValueText

_LOGIN: Final = regex(
    rb"(?i)(?:\b|(?<=\\n))(?:login|user|username|account|machine|admin|root)[\s,]{1,8}+"
    rb"(?:(?>(?:[^\s,\\]|\\(?!n)){1,80})(?>(?:[\s,]|\\{1,15}n){1,8}))?(?:and[ ])?(?:the[ ])?\Z"
)
_IDENTIFIER: Final = regex(rb"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_][\w$]*)*[!?]?\Z")
_CODE: Final = regex(rb"[A-Za-z_][\w.]{0,60}\[|[(){}]|=>|\bnew\b|^[!*&]+\w+$|^-")
_CHAIN: Final = regex(rb"[A-Za-z_$][\w$]*(?:\.[\w$]+)+=")
_SHORT_WORD: Final = regex(rb"[A-Za-z]{1,5}\d{0,2}\Z|[A-Za-z]{6}\Z")
_SCREAMING: Final = regex(rb"[A-Z][A-Z0-9_]*\Z")
_WORD_VALUE: Final = regex(rb"[\w+/=\-]+\Z")
_BASE64: Final = regex(rb"[A-Za-z0-9+/_\-]{18,}={1,2}\Z")
_CHOSEN: Final = regex(rb"[A-Za-z]{2,96}+(?>(?:[.\-_][A-Za-z]{1,96}+){0,5})[.\-_]?\d{2,6}[!#.?*]?\Z")
_VERSIONED: Final = regex(
    rb"(?i)(?:\A|[.\-_])(?:sha|md|base|utf|b|es|hs|rs|aes|u?int|float|str|v|py|python|x|rfc|iso|latin|cp|s|crc|ec|wi"
    rb"n|x86_|"
    rb"amd|arm|i)\d+\Z"
)
_KEYED: Final = regex(rb"(?i)passw|pwd|secret|token|key(?!s?[a-z]{3})|auth|cred")
_TRIAL: Final = regex(
    rb"(?i)test|demo|dev|local|mock|stub|dummy|sample|my|app|user|token|secret|key|pass|cred|auth|prod|stag|name|value|"
    rb"foo|bar|index|file|data|doesnot|wordpress|admin|root|default|postgres|mysql|redis|mongo|"
    rb"maria|rabbit|v\d"
)
_PLAIN_WORD: Final = regex(rb"[A-Za-z][a-z]{7,30}\Z")
_PLAIN_STOP: Final = frozenset(
    b"argument arguments instead supplied specified provided together requires required contains allowed disabled "
    b"encrypted plaintext cleartext generated keychain whatever something anything yourself parameter parameters "
    b"environment variable variables directly manually interactively authentication followed keycloak nextcloud "
    b"homestead minioadmin symfony jenkins grafana airflow superuser rootroot adminadmin postgres username interactive "
    b"nullable sensitive protected forgotten incorrect optional securely geheimnis firstname lastname absent".split()
)
_SERVICE: Final = frozenset(
    b"db database mysql postgres postgresql pg redis rabbitmq mongo mongodb root admin smtp mail email ldap sql "
    b"mariadb oracle mssql sa ftp sftp ssh vnc rdp wifi keystore truststore elastic influx grafana neo4j cassandra su "
    b"sudo become ansible backup master initdb default".split()
)
_COMMAND_SET: Final = regex(
    rb"(?i)(?:\A|[\s>+\-]|\\n|\x92|\d:)(?:env|arg|setenv|setx|fastcgi_param|uwsgi_param|export|set -gx|"
    rb"set -x)[ \t]+\Z|(?:\A|[\n>+\-\"';&]|\\n|\x92|\d:)[ \t]{0,8}set[ \t]+\Z|[ ]put[ ][\w/.\-]{0,30}\Z"
    rb"|(?:config|configure|secrets?|user-secrets)[ ]set[ ](?:--\w{1,12}[ ])?[\"']?[\w:./@\-]{0,24}\Z"
)
_LINE_HEAD: Final = regex(notation.VIEW + rb"\Z")
_LINE_TAIL: Final = regex(rb"[ \t;]{0,8}(?:[\r\n]|\\{1,15}[nr\"]|\"|\Z)")
_VERB: Final = regex(
    rb"(?i)(?:\b|(?<=\\n))(?:use|using|uses|try|tried|with|enter|type|set|new|the|my|his|her|our|your|and|is|wifi|ad"
    rb"min|root)[ ]+\Z"
)
_CACHED: Final = regex(rb"(?=[A-Za-z])[\w.\-/:]{1,240}(?<=[\-_/.:])[0-9a-f]{8,64}\Z")
_ARN: Final = regex(rb":\d{12}:\Z|arn:[\w:*\-]{0,40}\Z|[A-Za-z]::\Z")
_SERVER: Final = regex(
    rb"(?i)\b(?:server|host|hostaddr|data source|address|dsn|driver|database|dbname|initial catalog|endpoint)[ ]?="
    rb"[^;&\s=]{1,80}(?:[;&\s\"']|\Z)|\bjdbc:\w"
)
"""A pair of a connection string that tells where the server is, or how the string begins."""
_LETTERS: Final = regex(rb"[A-Za-z]{5,40}\Z")
_SIGN: Final = regex(rb"[!@#$%^&*+=?~]")
_LOOKUP: Final = regex(rb"(?:\A|[._])(?i:get|fetch|load|read|find|has|is|forgot|reset|delete|remove)(?:_|(?=[A-Z]))")
_LEAST: Final = {Rank.NONE: 99999, Rank.WEAK: 16, Rank.TOKEN: 8, Rank.PASSWORD: 5}
"""Nothing shorter is taken after such a name, in whatever form."""
_SAYS: Final = frozenset({"says", "element"})
_LOOSE: Final = frozenset({"says", "blank", "cell", "comma", "call", "below", "dash", "typed", "under"})


class NamedValue(NamedTuple):
    """A value after a name: all that the decision depends on."""

    data: bytes
    name: bytes
    strength: Rank
    form: str
    value: ValueText
    before: bytes
    assign: bytes
    is_flag: bool


def is_secret(place: NamedValue) -> bool:
    """Decide about a value."""
    text, quoted = place.value.text, bool(place.value.quote)
    if len(text) < _LEAST[place.strength] or text[:1] in b"{[<" or b"://" in text:
        return False
    if judge.is_placeholder(text) or judge.is_reference(text) or text.lower() == place.name.lower():
        return False
    if _ARN.search(place.before):
        return False
    if judge.is_uuid(text) and place.name.lower().endswith((b"client_token", b"client-token", b"clienttoken")):
        return False  # it makes a request idempotent
    if _is_unmistakable(place) or _is_connecting(place):
        return True
    form = place.form
    if form == "blank" and _is_set(place):
        form = "assign"
    if form in _LOOSE:
        return _is_loose_secret(place)
    if not quoted and not _is_data(place):
        return _is_weak_token(place)
    if b" " in text:
        return judge.is_password(text, 32) or spaced.is_secret(text, is_sure=_is_sure(place))
    if place.strength is Rank.PASSWORD:
        return judge.is_password(text, 5 if quoted else 6)
    if place.strength is Rank.TOKEN:
        return judge.is_random(text, 8) or _is_strong(text) or _is_mixed(text) or _is_weak_token(place)
    identity = _is_identity(text) and not (_SCREAMING.match(place.name) and place.name.endswith(b"KEY"))
    return judge.is_random(text, 16) and not identity and not _CACHED.match(text)


def _is_set(place: NamedValue) -> bool:
    """Say whether a command sets the name to what follows a blank: `ENV NAME value`; or a line has only the two."""
    if _COMMAND_SET.search(place.before):
        return True
    if (
        place.strength is not Rank.PASSWORD
        or place.is_flag
        or not (_is_chosen(place.value.text) or judge.is_random(place.value.text, 8))
    ):
        return False
    start = place.data.rfind(place.name, max(0, place.value.start - 120), place.value.start)
    begin = notation.line_start(place.data, max(start, 0))
    return (
        _LINE_TAIL.match(place.data, place.value.end) is not None
        and _LINE_HEAD.fullmatch(place.data, begin, max(begin, start)) is not None
    )


def _is_under(place: NamedValue) -> bool:
    """Say whether a line has only the name, and the next one only the value."""
    text = place.value.text
    if len(place.name) > 44 or judge.is_drawn(place.name):
        return False  # a line of base64
    compound = place.strength is Rank.PASSWORD and len(names.split(place.name)) > 1
    if not (compound or _SCREAMING.match(place.name)) or not _LINE_TAIL.match(
        place.data, place.value.end + place.data.startswith(b".", place.value.end)
    ):
        return False
    start = place.data.rfind(place.name, max(0, place.value.start - 120), place.value.start)
    begin = notation.line_start(place.data, max(start, 0))
    if start < 0 or not _LINE_HEAD.fullmatch(place.data, begin, start):
        return False
    return judge.is_random(text, 16) or (place.strength is Rank.PASSWORD and _is_chosen(text))


def _is_chosen(text: bytes) -> bool:
    """Say whether a value is words and a number, as people choose passwords, and no name of something."""
    if len(text) < 8 or _CHOSEN.match(text) is None or _VERSIONED.search(text.rstrip(b"!#.?*")):
        return False
    return _KEYED.search(text) is None


def _is_weak_token(place: NamedValue) -> bool:
    """Say whether a person chose the value of a token in an environment, or of what signs sessions."""
    text = place.value.text
    signs = any(word in place.name.lower() for word in (b"jwt", b"session", b"cookie", b"signing", b"secretstring"))
    signs = signs or b"session(" in place.before
    named = place.name.lower().endswith((b"secret", b"secret_key", b"secretkey")) and b"=" in place.assign
    if place.strength is not Rank.TOKEN or not (_SCREAMING.match(place.name) or named or (signs and place.value.quote)):
        return False
    spaced = b" " in place.assign and not place.value.quote and b"=" in place.assign
    if place.form not in ("assign", "pair") or (spaced and not _LINE_TAIL.match(place.data, place.value.end)):
        return False
    return len(text) >= 10 and _is_chosen(text) and not _TRIAL.search(text)


def _is_unmistakable(place: NamedValue) -> bool:
    """Say whether a word without a digit is a password: after `DB_PASSWORD=`, after `--password`."""
    text = place.value.text
    if place.strength is not Rank.PASSWORD or not _PLAIN_WORD.match(text) or text.lower() in _PLAIN_STOP:
        return False
    end = place.value.end + len(place.value.quote)
    shell = place.assign == b"=" and place.data[end : end + 1] == b" "
    if _TRIAL.search(text) or not (shell or _LINE_TAIL.match(place.data, end)):
        return False
    if place.is_flag and place.form in ("blank", "assign"):
        return b"`" not in place.before
    words = names.split(place.name)
    if (
        place.form not in ("assign", "pair")
        or len(words) < 2
        or not any(word.encode() in _SERVICE for word in words[:-1])
    ):
        return False
    spaced = b" " in place.assign.partition(b"=")[0] and b"=" in place.assign
    return bool(place.value.quote) or (not spaced and text[1:].islower())


def _is_connecting(place: NamedValue) -> bool:
    """Say whether a word is the password of a connection string: `Server=db;User Id=app;Password=…;`."""
    text, end = place.value.text, place.value.end
    if place.strength is not Rank.PASSWORD or place.assign != b"=" or not _LETTERS.match(text) or _TRIAL.search(text):
        return False
    behind = place.data[end : end + 100]
    if place.before[-1:] not in (b";", b"&", b"?", b" ", b'"', b"'", b"") or behind[:1] not in (
        b";",
        b"&",
        b" ",
        b'"',
        b"'",
        b"\n",
        b"",
    ):
        return False
    line = place.data[notation.line_start(place.data, place.value.start) : place.value.start]
    return _SERVER.search(line) is not None or _SERVER.search(behind.partition(b"\n")[0]) is not None


def _is_sure(place: NamedValue) -> bool:
    """Say whether a name can only be that of a value, and not that of a label: `DB_PASSWORD`, `smtp_password`."""
    if place.strength is not Rank.PASSWORD:
        return False
    words = names.split(place.name)
    return _SCREAMING.match(place.name) is not None or any(word.encode() in _SERVICE for word in words[:-1])


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


def _is_loose_secret(place: NamedValue) -> bool:
    """Judge a value that only stands near a name: in a sentence, a table, a call, after a flag."""
    text, form, quoted = place.value.text, place.form, bool(place.value.quote)
    is_command = place.name.lower().endswith((b"command", b"cmd"))
    if (
        b" " in text
        and quoted
        and place.strength is Rank.PASSWORD
        and (form in _SAYS or place.is_flag)
        and not is_command
    ):
        return spaced.is_secret(text, is_sure=place.is_flag)
    if b" " in text or (form in ("says", "blank") and place.name.lower() == b"pass" and not _is_chosen(text)):
        return place.is_flag and b" " not in text and _is_argument(place)
    if form in _OWN_RULES:
        return _OWN_RULES[form](place)
    if (form == "call" and _LOOKUP.search(place.name)) or (form == "comma" and text[:1] == b"-"):
        return False
    if form == "blank" and (place.is_flag or _is_after_login(place)):
        return _is_argument(place)
    if not has_digit(text) or (not quoted and _CODE.search(text)):
        return quoted and place.strength is Rank.TOKEN and judge.is_random(text, 16)
    if form == "blank" and not quoted and len(text) >= 18 and _is_name(text) and not judge.is_drawn(text):
        return False
    gap = place.data[max(0, place.value.start - 2) : place.value.start]
    is_cell = form == "cell" or (form == "blank" and gap.endswith((b"\t", b"\\t")))
    if is_cell and not quoted and place.strength is Rank.PASSWORD:
        return _is_chosen(text) or (judge.is_password(text, 8) and not judge.is_named(text))
    if place.strength is Rank.WEAK or (form == "cell" and not quoted):
        return judge.is_random(text, 20) and not _is_identity(text)
    if place.strength is Rank.TOKEN:
        least = 10 if quoted else 14
        return judge.is_random(text, least) or (quoted and _is_strong(text)) or (len(text) >= 20 and _is_mixed(text))
    return _is_loose_password(place)


def _is_loose_password(place: NamedValue) -> bool:
    """Judge a value with a digit that stands near the name of a password."""
    text, form, quoted = place.value.text, place.form, bool(place.value.quote)
    if form not in ("blank", "below"):
        return judge.is_password(text, 6) and (quoted or not _SHORT_WORD.match(text))
    if quoted:
        return judge.is_password(text, 6) and (not judge.is_named(text) or _is_chosen(text))
    said = _is_said(place) if form == "blank" else _is_chosen(text)
    return said or judge.is_random(text, 10)


def _is_dashed(place: NamedValue) -> bool:
    return place.strength is Rank.PASSWORD and has_digit(place.value.text) and judge.is_password(place.value.text, 8)


def _is_typed(place: NamedValue) -> bool:
    """Judge what stands behind the number of its kind in the settings of a router: `password 7 …`."""
    return (
        place.name.lower() != b"pass" and judge.is_password(place.value.text, 5) and not _CODE.search(place.value.text)
    )


def _is_said(place: NamedValue) -> bool:
    """Say whether a sentence gives a password: `please use password …`."""
    text = place.value.text
    if len(text) < 8 or judge.is_public(text):
        return False
    if _is_chosen(text):
        return True
    if not _VERB.search(place.before):
        return False
    return _is_strong(text) or (judge.is_password(text, 8) and has_digit(text) and _SIGN.search(text) is not None)


def _is_after_login(place: NamedValue) -> bool:
    """Say whether a user was named before a password, as in `.netrc`."""
    if place.strength is not Rank.PASSWORD:
        return False
    return (
        _LOGIN.search(place.data[max(0, place.value.start - 160) : place.value.start].rpartition(place.name)[0])
        is not None
    )


def _is_argument(place: NamedValue) -> bool:
    """Judge what stands after a flag with a telling name."""
    text = place.value.text
    if not place.value.quote and (text[:1] in b"-|<>&" or (_IDENTIFIER.match(text) and not has_digit(text))):
        return False
    if place.strength is Rank.WEAK:
        return judge.is_random(text, 16) and not _is_identity(text)
    return (
        judge.is_password(text, 6) if place.strength is Rank.PASSWORD else judge.is_random(text, 8) or _is_mixed(text)
    )


def _is_data(place: NamedValue) -> bool:
    """Say whether a value without quotes is data and not code: `password=get()`, `token: string`, `key = other.key`."""
    text = place.value.text
    follower = place.data[place.value.end : place.value.end + 2]
    if follower[:1] == b"." and not follower[1:].isalnum():
        follower = b""
    if _CODE.search(text) is not None or follower[:1] in (b"(", b"["):
        return judge.is_random(text, 24) and b"(" not in text and b"[" not in text and text[:1] not in b"-*&!"
    if _IDENTIFIER.match(text) is None:
        return _CHAIN.match(text) is None
    if place.strength is Rank.PASSWORD and _is_chosen(text):
        return True
    if b"." in text and not (has_digit(text) and judge.is_random(text, 10 if place.strength is Rank.PASSWORD else 20)):
        return False
    spaced = b" " in place.assign.partition(b"=")[0] and b"=" in place.assign
    if judge.is_random(text, 12) and (has_digit(text) or (not spaced and len(text) >= 20)):
        return True
    if spaced or follower[:1] in (b",", b")", b"}", b"]", b".", b";", b"?"):
        return False
    screaming = _SCREAMING.match(place.name) is not None and not _SCREAMING.match(text)
    return has_digit(text) and (screaming or len(text) >= 6)


_OWN_RULES: Final = {"typed": _is_typed, "under": _is_under, "dash": _is_dashed}
"""Forms that ask for something of their own."""
