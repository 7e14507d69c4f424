"""Secrets with a form of their own after a word of their own: session cookies, recovery codes, reset links, word diffs.

These words are no key-like names (`appid`, `PHPSESSID`, `SAMLResponse`), or what follows is no usual value, so each row
says what must stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from commonplace.patterns import regex
from commonplace.redact import judge, names, values
from commonplace.redact.lexicon import Text, by_anchor
from commonplace.redact.names import Rank
from commonplace.redact.notation import ARROW, BREAK, GAP, OPEN, VIEW
from commonplace.redact.phrases import Phrase
from commonplace.redact.spans import SecretSpan

_IS: Final = rb"(?:" + OPEN + rb"{0,1}[ \t]{0,4}(?:[:=]|=>|,)[ \t]{0,4}" + OPEN + rb"?)"


_CRUMB: Final = rb"(?P<value>[^\s\"'\\]{16,4096}+)"
_TARGET: Final = rb"(?:\.py)?[ ](?:[\w.\-]{1,40}/)?[\w.\-]{1,40}:(?P<value>[^\s\"'/]{4,100})@[\w.\-]+"


def _rows(*rows: tuple[bytes, int, bytes, int, str]) -> Mapping[bytes, tuple[Phrase, ...]]:
    """Make phrases of rows: an anchor, how far before it, the phrase, the value's least random length, the kind."""
    made = (Phrase(anchor, back, rb"(?i)" + form, kind, least) for anchor, back, form, least, kind in rows)
    return by_anchor(made, lambda phrase: phrase.anchor)


_ROWS: Final = _rows(
    (b"appid", 0, rb"appid" + _IS + rb"(?P<value>[0-9a-f]{32})(?![0-9a-z])", 16, "query_key"),
    (b"reporter_id", 0, rb"reporter_id" + _IS + rb"(?P<value>[0-9a-f]{64})", 16, "reporter_id"),
    (b"app_certificate", 0, rb"app_certificate" + _IS + rb"(?P<value>[0-9a-f]{32})", 16, "app_certificate"),
    (b"_session", 4, rb"(?:bw|op)_session(?:_\w{1,20})?" + _IS + rb"(?P<value>[\w+/=\-]{24,200})", 20, "vault_session"),
    (b"sessid", 0, rb"sessid" + _IS + rb"(?P<value>[A-Za-z0-9,\-]{20,64})", 20, "session_cookie"),
    (b"jsessionid", 0, rb"jsessionid" + _IS + rb"(?P<value>[A-Za-z0-9.!\-]{20,80})", 20, "session_cookie"),
    (b"net_sessionid", 0, rb"net_sessionid" + _IS + rb"(?P<value>[a-z0-9]{20,40})", 20, "session_cookie"),
    (b"sessionid", 0, rb"sessionid" + _IS + rb"(?P<value>[a-z0-9]{32})(?![\w\-])", 24, "session_cookie"),
    (b"__host-", 0, rb"__host-[\w\-]{1,40}" + _IS + rb"(?P<value>[\w.%+/=\-]{20,400})", 20, "session_cookie"),
    (b"connect.sid", 0, rb"connect\.sid" + _IS + rb"(?P<value>s(?:%3A|:)[\w.%+/=\-]{30,200})", 0, "session_cookie"),
    (b"xsrf-token", 0, rb"xsrf-token" + _IS + rb"(?P<value>[\w.%+/=\-]{40,400})", 30, "session_cookie"),
    (b"csrfmiddlewaretoken", 0, rb"csrfmiddlewaretoken" + _IS + rb"(?P<value>[A-Za-z0-9]{64})", 30, "session_cookie"),
    (b"samlresponse", 0, rb"samlresponse" + OPEN + rb"?(?:[ ]value)?" + _IS + rb"(?P<value>[\w+/=%\-]{80,40000}+)",
     0, "saml_response"),
    (b"\ttrue\t", 0, rb"\ttrue\t[^\t\n]{1,200}\t(?:true|false)\t\d{1,20}\t[^\t\n]{1,80}\t" + _CRUMB, 16, "cookie_jar"),
    (b"\\ttrue\\", 0, rb"\\ttrue\\+t[^\\\n]{1,200}\\+t(?:true|false)\\+t\d{1,20}\\+t[^\\\n]{1,80}\\+t" + _CRUMB, 16,
     "cookie_jar"),
    (b"kubeadm", 0, rb"kubeadm[^\n\\]{0,120}?token(?:" + OPEN + rb"?[ \t:=]{1,4}" + OPEN
     + rb"?)(?P<value>[a-z0-9]{6}\.[a-z0-9]{16})(?![\w.])", 0, "kubeadm_token"),
    (b"secret_id", 0, rb"secret_id" + _IS + rb"(?P<value>[0-9a-f]{8}-[0-9a-f\-]{27})", 16, "approle_secret_id"),
    (b"secretid", 0, rb"secretid" + _IS + rb"(?P<value>[0-9a-f]{8}-[0-9a-f\-]{27})", 16, "approle_secret_id"),
    (b"reset", 0, rb"reset(?:[\-_]?passw(?:or)?d)?/(?P<value>[A-Za-z0-9_\-]{24,200})(?![\w.])", 20, "reset_link"),
    (b"/verify", 0, rb"/verify(?:[\-_]?e?mail)?/(?P<value>[A-Za-z0-9_\-]{24,200})(?![\w.])", 20, "reset_link"),
    (b"/invite/", 0, rb"/invite/(?P<value>[A-Za-z0-9_\-]{20,200})(?![\w.])", 20, "reset_link"),
    (b"/activate/", 0, rb"/activate/(?P<value>[A-Za-z0-9_\-]{24,200})(?![\w.])", 20, "reset_link"),
    (b"magic", 0, rb"magic[\-_]?(?:link|login)?(?:/|\?\w{1,12}=)(?P<value>[A-Za-z0-9_\-]{24,200})(?![\w.])", 20,
     "reset_link"),
    (b"callback?", 0, rb"callback\?(?:[\w=.\-]{1,60}&){0,3}code=(?P<value>[\w.%/\-]{16,400})", 16, "oauth_code"),
    (b".infura.io/", 0, rb"\.infura\.io/(?:ws/)?v3/(?P<value>[0-9a-f]{32})", 16, "rpc_key"),
    (b".alchemy.com/", 0, rb"\.alchemy\.com/(?:nft/)?v[23]/(?P<value>[\w\-]{20,64})", 16, "rpc_key"),
    (b".ankr.com/", 0, rb"\.ankr\.com/[\w\-]{2,40}/(?P<value>[0-9a-f]{64})", 16, "rpc_key"),
    (b".quiknode.pro/", 0, rb"\.quiknode\.pro/(?P<value>[0-9a-f]{40})", 16, "rpc_key"),
    (b".render.com/deploy/", 0, rb"\.render\.com/deploy/srv-\w{1,40}\?key=(?P<value>[\w\-]{8,40})", 8, "deploy_hook"),
    (b"following password", 0, rb"following password[^\n\\:]{0,60}+:(?>(?:" + GAP + rb"){1,40})(?P<value>[0-9a-f]{32})",
     16, "initial_password"),
    (b"new value:", 0, rb"new value:[ ](?P<value>[A-Za-z0-9_*+=\-]{20})(?![\w])", 16, "initial_password"),
    (b"ssword for", 0, rb"ssword for [^\n\\:]{1,110}+:[ ]{0,2}" + BREAK + VIEW
     + rb"(?P<value>[\w*+=\-!@#%.]{12,64})(?=[\s\\\"]|\Z)", 12, "initial_password"),
    (b"thin:", 0, rb"thin:[\w$#]{1,40}/(?P<value>[^\s\"'@/]{4,100}+)@", 0, "oracle_password"),
    (b"sqlplus", 0, rb"sqlplus[ ](?:-\w{1,3}[ ]){0,3}" + OPEN + rb"?[\w$#]{1,40}/(?P<value>[^\s\"'@/]{4,100}+)", 0,
     "oracle_password"),
    (b".connect(", 0, rb"\.connect\(" + OPEN + rb"[\w$#]{1,40}/(?P<value>[^\s\"'@/]{4,100}+)@", 0, "oracle_password"),
    (b"psexec", 0, rb"psexec" + _TARGET, 0, "command_password"),
    (b"secretsdump", 0, rb"secretsdump" + _TARGET, 0, "command_password"),
    (b"rootpw", 0, rb"rootpw:?[ \t]{1,8}(?P<value>\{[A-Z0-9\-]{3,12}\}[\w+/=$.]{16,200})", 0, "password_file"),
    (b"password ", 0, rb"password[ ][a-z_]{2,24}[ ]=[ ](?P<value>[A-Za-z0-9]{12,64})(?![\w.(])", 12,
     "initial_password"),
    (b"arykey", 0, rb"arykey" + _IS + rb"(?P<value>[A-Za-z0-9+/]{40,90}={1,2})", 20, "account_key"),
    (b"keyname", 0, rb"keyname" + _IS + rb"(?>(?:(?!value)[^\n]){1,80})value" + _IS
     + rb"(?P<value>[A-Za-z0-9+/]{40,90}={1,2})", 20, "account_key"),
    (b"secret_text", 0, rb"secret_text" + _IS + rb"(?P<value>[\w+/=\-]{16,200})", 16, "assignment"),
    (b"value", 0, rb"value\\{0,15}\"[ ]?:[ ]?\\{0,15}\"(?P<value>[^\s\"\\]{6,200}+)\\{0,15}\",(?:" + GAP
     + rb"){0,12}\\{0,15}\"(?:name|key)\\{0,15}\"[ ]?:[ ]?"
     rb"\\{0,15}\"[\w/.\-]{0,80}(?:password|passwd|secret|token|api[_\-]?key)\\{0,15}\"", 0, "assignment"),
    (b"fill_in", 0, (rb"fill_in[ (]['\"](?>(?:(?!passw)[^'\"]){0,30})passw[^'\"]{0,20}['\"]"
     rb",[ ]with:[ ]['\"](?P<value>[^'\"\s]{6,99})"), 0, "assignment"),
    (b"passcode", 0, rb"passcode(?:[ ]is|:)?[ ](?P<value>\d{4,10})(?!\d)", 0, "passcode"),
    (b"door code", 0, rb"door code(?:[ ]is|:)?[ ](?P<value>\d{4,10})(?!\d)", 0, "passcode"),
    (b"passphrase", 0, rb"passphrase(?:[ ]is|:|[ ]?=)[ ]?" + OPEN + rb"(?P<value>(?:[a-z]{3,10}[ \-]){3,7}[a-z]{3,10})"
     + OPEN, 0, "passphrase"),
    (b"u: ", 0, rb"u: [\w.@\-]{1,60}+(?>(?:,|" + GAP + rb"){1,12})p: (?P<value>[^\s\"'\\]{6,100}+)", 0,
     "prose_password"),
    (b"{aqaaab", 2, rb">(?P<value>\{AQAAAB[\w+/=]{20,400}\})<", 0, "jenkins_secret"),
    (b"account.key", 0, rb"account\.key\.[\w.\-]{3,80}" + _IS + rb"(?P<value>[A-Za-z0-9+/]{40,90}={1,2})", 20,
     "account_key"),
    (b":-", 60, rb"(?:pass|pwd|secret|token|key)\w{0,12}=[\"']?\$\{\w{1,30}:-(?P<value>[^}\s\"'\\$/~]{6,100})\}", 0,
     "assignment"),
    (b"getenv", 60, rb"(?:passw|secret|token|api_?key)[^\n\"'\\]{0,40}getenv\(" + OPEN + rb"[\w.]{1,60}" + OPEN
     + rb"\)[ ]?(?:\?:|\|\||\?\?|or)[ ]?" + OPEN + rb"(?P<value>[^\"'\s\\]{6,200})", 0, "assignment"),
    (b"->", 240, rb"(?:passw(?:or)?d|secret|token|_key)" + OPEN + rb"?[ ]{0,20}=[ ]" + OPEN + rb"[^\"\n]{0,200}(?<!\\)"
     + OPEN + rb"[ ]->[ ]"
     + OPEN + rb"(?P<value>[^\"\s\\]{6,200})", 0, "assignment"),
    (b"<<eo", 60, rb"(?:passw(?:or)?d|secret|token|_key)[ ]{0,12}=[ ]<<-?EO[TF]" + BREAK + VIEW
     + rb"(?P<value>[^\s\"'\\]{6,200})", 0, "assignment"),
    (b"passcmd", 0, rb"passcmd[ ]" + OPEN + rb"echo[ ](?P<value>[^\s\"'\\$]{6,100})", 0, "assignment"),
    (b"password)", 0, rb"password\)\.(?:not\.)?to(?:Be|Equal|StrictEqual)\(" + OPEN
     + rb"(?P<value>[^\"'\\\s]{6,100})", 0, "assignment"),
    (b"chpasswd:", 0, rb"chpasswd:(?>(?:" + GAP + rb"|expire: \w{4,5}){1,40})list: \|(?>(?:" + GAP
     + rb"){1,40})\w{1,32}:(?P<value>[^\s\"'\\]{6,100})", 0, "assignment"),
    (b"dockerconfigjson", 0, rb"dockerconfigjson" + _IS + rb"(?P<value>[A-Za-z0-9+/]{40,9000}={0,2})", 0,
     "registry_login"),
    (b"ugfzc3dvcmq6", 0, rb"ugfzc3dvcmq6" + BREAK + VIEW + rb"(?P<value>[A-Za-z0-9+/]{8,200}={0,2})", 0, "mail_login"),
    (b"keymaterial", 0, rb"keymaterial" + rb"[=>]" + OPEN + rb"?(?P<value>[^\s\"'\\<]{8,64})", 0, "wifi_password"),
    (b"preshared", 0, rb"preshared-?key[ \t:=]{1,4}(?P<value>[A-Za-z0-9+/]{43}=)", 0, "preshared_key"),
    (b"private-key", 0, rb"private-key[ ]<\(echo[ ](?P<value>[A-Za-z0-9+/]{43}=)", 0, "preshared_key"),
)  # fmt: skip
_CODES: Final = frozenset((
    b"recovery code", b"backup code", b"recovery key", b"scratch code", b"rettungscode", b"ecovery_code", b"ackup_code",
    b"recoverycode", b"backupcode", b"product key", b"license key", b"unlock code", b"codes de secours",
))  # fmt: skip
_BEFORE_CODE: Final = (
    rb"(?:[ \t\r\n+>|\-:=,;\"'`(\[\]*]|\\{1,15}[nrt\"'`]|\xe2\x80\x94|\d{1,6}(?:[:|\t]|" + ARROW + rb"))"
)
_TO_CODES: Final = regex(
    rb"s?(?:[ ](?:is|are|for|\w{1,16}+(?=:|[ ](?:is|are)))){0,3}(?>"
    + _BEFORE_CODE
    + rb"{1,40})(?=[0-9A-Za-z]{4}|\d{1,2}[.)][ ])"
)
_CODE: Final = regex(
    rb"(?>(?:" + _BEFORE_CODE + rb"|\d{1,2}[.)][ ]|(?<=[ ])(?:and|und)[ ]){0,40})"
    rb"(?P<value>(?:[0-9A-Za-z]{4,8}(?:-[0-9A-Za-z]{4,8}){1,7}|\d{4}[ ]\d{4}|\d{6,10}|(?=[a-z]{0,9}\d)[a-z0-9]{8,10}"
    rb"))(?![\w\-])"
)
_NAME_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_DIFF: Final = regex(rb"(?:\[-(?P<old>[^\n\[\]\"\\]{1,200}?)-\])?(?:\{\+(?P<new>[^\n{}\"\\]{1,200}?)\+\})?")
_DSN: Final = regex(rb"[\s\"'`=(>+\\]+n?|\x92")


_SIGNS: Final = (b"[-", b"{+")
_NETWORKS: Final = (b"@tcp(", b"@unix(")
ANCHORS: Final = (*_ROWS, *_CODES, *_SIGNS, *_NETWORKS)


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets that follow known words."""
    data = text.data
    for phrase in text.among(_ROWS):
        for at in text.places(phrase.anchor):
            if (found := phrase.at(data, at)) and (span := _value(found, phrase)):
                yield span
    for word in _CODES:
        yield from _code_lists(text, word)
    for sign in _SIGNS:
        for at in text.exact(sign):
            yield from _word_diff(data, at)
    for sign in _NETWORKS:
        for at in text.exact(sign):
            if span := _dsn(data, at):
                yield span


def _code_lists(text: Text, word: bytes) -> Iterator[SecretSpan]:
    done = 0
    for at in text.places(word):
        if at >= done:
            for span in _codes(text.data, at + len(word)):
                yield span
                done = span.end


def _value(found: re.Match[bytes], phrase: Phrase) -> SecretSpan | None:
    """Return the value of a phrase, unless it stands for one or is not random enough."""
    text = values.plain(found["value"])
    if judge.is_placeholder(text) or judge.is_reference(text):
        return None
    if phrase.least and not judge.is_random(text, phrase.least):
        return None
    return SecretSpan(*found.span("value"), phrase.kind)


def _codes(data: bytes, at: int) -> Iterator[SecretSpan]:
    """Yield the codes of a list that follows a telling word."""
    lead = _TO_CODES.match(data, at)
    if lead is None:
        return
    at = lead.end()
    for _ in range(20):
        found = _CODE.match(data, at)
        if found is None or found.end() == at:
            return
        at = found.end()
        text = found["value"]
        if any(0x30 <= one <= 0x39 for one in text) and not judge.is_placeholder(text) and not judge.is_public(text):
            yield SecretSpan(*found.span("value"), "recovery_code")


def _word_diff(data: bytes, at: int) -> Iterator[SecretSpan]:
    """Yield the secrets of a diff by words: `password=[-old-]{+new+}`."""
    head = data[max(0, at - 80) : at].rstrip(b" \t\"'`\\")
    if head[-1:] not in (b":", b"="):
        return
    head = head[:-1].rstrip(b" \t\"'`\\")
    name = head[len(head.rstrip(_NAME_BYTES)) :].strip(b".-_")
    found = _DIFF.match(data, at)
    strength = names.rank(name)
    if found is None or strength is Rank.NONE:
        return
    for group in ("old", "new"):
        text = found[group]
        if not text or judge.is_placeholder(text) or judge.is_reference(text):
            continue
        if judge.is_password(text, 6) if strength is Rank.PASSWORD else judge.is_random(text, 12):
            yield SecretSpan(*found.span(group), "assignment")


def _dsn(data: bytes, at: int) -> SecretSpan | None:
    """Return the password before the address of a Go data source: `user:password@tcp(host)`."""
    head = _DSN.split(data[max(0, at - 180) : at])[-1]
    user, colon, password = head.partition(b":")
    if not colon or not user or len(password) < 4 or judge.is_placeholder(password) or judge.is_reference(password):
        return None
    return SecretSpan(at - len(password), at, "dsn_password")
