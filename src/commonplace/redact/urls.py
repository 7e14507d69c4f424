"""Secrets in URLs: passwords before the host, tokens as user names, signatures in queries, webhook addresses.

Only the secret goes; scheme, user, host and path stay. Query parameters with key-like names are found by `assignments`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from commonplace.patterns import regex
from commonplace.redact import judge, values
from commonplace.redact.lexicon import Text
from commonplace.redact.spans import SecretSpan
from commonplace.redact.values import ValueText

_USERINFO: Final = regex(
    rb"""(?x)
    :// (?P<user> [^\s/:@?\#"'`<>\\,]{0,128}+ )
    (?: : (?P<password>
        (?: [^\s\x1b/?\#"'`<>\\] | \\u0026 ){0,256}
        (?: (?: [/?](?=[^\s/"'`<>\\]{0,40}@[\w.\-]{1,80}:\d) | \#(?=[^\s/"'`<>\\]{0,40}@[\w.\-]{1,80}[:/\s"'\\]) )
            (?: [^\s\x1b/?\#"'`<>\\] | \\u0026 ){0,256} ){0,4} (?=@) ) )?
    @ (?=[\w.\[$\-{%])
    """
)
_WORDS: Final = regex(
    rb"://(?:[^\s/:@?#\"'`<>\\,]{0,64}+):(?P<password>(?!\d{1,5}[ /])[^\s/@\"'`<>\\]{1,40}+"
    rb"(?:[ ][^\s/@\"'`<>\\]{1,40}+){1,3})@(?=[\w.\-]{1,80}(?:[:/]|\.\w))"
)
"""A password with blanks in it."""
_WITH_LOGIN: Final = regex(
    rb"(?i)(?:postgres(?:ql)?|mysql|mariadb|mongodb|redis|amqp|mssql|sqlserver|clickhouse|ftp|smb|ldap|imap|smtp|bolt|neo4j"
    rb"|snowflake|oracle|cassandra|couchdb|nats|mqtt)(?:s|\+\w{1,12})?\Z"
)
"""Schemes of addresses that are for programs, and mostly have a password."""
_HOST: Final = regex(
    rb"@(?:(?:\[[0-9a-fA-F:]{2,39}+\]|(?:\d{1,3}\.){3}\d{1,3}+(?![\w.]))(?P<number>)"
    rb"|(?!sha\d)(?:[A-Za-z0-9](?>(?:[\w\-]{0,62}+\.){1,6})[A-Za-z]{2,24}+|localhost|[A-Za-z][\w\-]{0,40}+(?=:\d{2,5}(?!\w))"
    rb"|(?P<short>[a-z][a-z0-9\-]{1,30}+)(?=[\s/\"'`\\)\]},;]|:/|\Z))"
    rb"(?![\w@]))(?P<place>::?[\w/]|/\w)?"
)
"""A host behind the sign: a number, a name with dots, any name with a port, or a short name."""
_LOGIN: Final = regex(
    rb"(?:\A|[\s\"'`=(\[{<>,;|+\x92]|(?<![:/])//|\\{1,15}(?:[nrt\"']|u2192))(?P<user>[A-Za-z_][\w.+\-]{0,40}+(?:(?:@|%40)[\w.\-]{3,60}+)?):"
    rb"(?P<password>[^\s/\"'`<>\\]{5,120}+)\Z"
)
"""A user and a password before a host, where there is no scheme."""
_LABELS: Final = frozenset(
    b"mailto to from cc bcc sip sips xmpp acct mail email e-mail mails author committer by via contact account name "
    b"owner assignee reviewer reviewers npm pkg workspace host scp http https username login sender recipient "
    b"reply reply-to maintainer support jabber matrix im image signed-off-by co-authored-by git+ssh ssh kontakt an von "
    b"de para correo courriel".split()
)
"""What stands before the colon of an address that has no password."""
_SERVICES: Final = frozenset(
    b"root admin administrator sa postgres mysql app deploy deployer svc service ubuntu default guest git redis mongo "
    b"rabbitmq backup web db dba api ci jenkins www-data debian ec2-user pi".split()
)
_MAIL_NAME: Final = regex(rb"[a-z]{1,40}+(?>(?:[._\-][a-z]{1,40}+){0,4})\d{0,4}\Z")
_MIXED: Final = regex(rb"(?=[^\d]{0,120}\d)(?=[^A-Za-z]{0,120}[A-Za-z])")
_STRONG: Final = regex(
    rb"(?=[^a-z]{0,120}[a-z])(?=[^A-Z]{0,120}[A-Z])(?=[^\d]{0,120}\d)(?=\D{0,120}\d\D{0,120}\d|[\w.:\-]{0,120}[^\w.:\-])[^:]{8}"
)
"""A password with letters of both cases, and with digits or signs as no name has them."""
_SIGNATURES: Final = (b"sig=", b"signature=", b"security-token=", b"sig%3d")
"""Ends of the names of query parameters that sign a URL. Elsewhere a signature is no secret."""
_PARAMETER: Final = regex(
    rb"(?i)(?:[?&;]|&amp;|\\u0026|%26|%3f|signature=)(?:x-(?:amz|goog|oss|cos|ms)-|q-|oss|aws|policy-)?\Z"
)
_SIGNED: Final = regex(rb"[A-Za-z0-9+/=_\-.~%]{16,1024}+")
_ADDRESS: Final = 120


class Webhook(NamedTuple):
    """A webhook: words of its address, the part before its secret, and the secret."""

    anchor: bytes
    pattern: re.Pattern[bytes]
    kind: str


def _hooks(*rows: tuple[bytes, bytes, str]) -> tuple[Webhook, ...]:
    return tuple(Webhook(anchor, regex(pattern), kind) for anchor, pattern, kind in rows)


_ANYWHERE: Final = _hooks(
    (b"hooks.slack", rb"(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<value>[\w+/\-]{20,200}+)", "slack_webhook"),
    (b"/api/webhooks/", rb"\d{15,22}/(?P<value>[A-Za-z0-9_\-]{40,100}+)", "discord_webhook"),
    (b"api.telegram.org/", rb"(?:file/)?bot(?P<value>\d{6,12}:[A-Za-z0-9_\-]{30,60}+)", "telegram_bot_token"),
)  # fmt: skip
"""Looked for in every text, as they are also written without a scheme."""
_IN_URLS: Final = _hooks(
    (b".webhook.office.com/", rb"webhookb2/(?P<value>[^\s\"'\\<>`]{60,400}+)", "teams_webhook"),
    (b"outlook.office.com/webhook/", rb"(?P<value>[^\s\"'\\<>`]{40,400}+)", "teams_webhook"),
    (b"hooks.zapier.com/hooks/", rb"(?:catch|standard)/(?P<value>[\w/\-]{8,80}+)", "zapier_webhook"),
    (b"maker.ifttt.com/", rb"(?:use|trigger/[^\s/]{1,80}/with/key)/(?P<value>[\w\-]{16,64}+)", "ifttt_webhook"),
    (b"/open-apis/bot/", rb"(?:v2/)?hook/(?P<value>[\w\-]{16,64}+)", "feishu_webhook"),
    (b"/webhook/send?key=", rb"(?P<value>[\w\-]{16,64}+)", "wecom_webhook"),
    (b"/build_hooks/", rb"(?P<value>[0-9a-f]{20,40}+)", "netlify_build_hook"),
    (b"/v1/integrations/deploy/", rb"prj_\w{10,40}/(?P<value>[A-Za-z0-9]{8,40}+)", "vercel_deploy_hook"),
    (b"://hook.", rb"(?:(?:us|eu)\d\.)?(?:make|integromat)\.com/(?P<value>[a-z0-9]{20,50}+)", "make_webhook"),
    (b"webhook.site/", rb"(?P<value>[0-9a-f]{8}-[0-9a-f\-]{27})", "webhook_site"),
    (b"hc-ping.com/", rb"(?P<value>[0-9a-f]{8}-[0-9a-f\-]{27}|[\w\-]{22}(?=/))", "healthchecks_ping"),
    (b"/hooks/", rb"(?P<value>[a-z0-9]{26}(?![\w\-])|\w{17}/\w{40,70}+|[0-9a-f]{32,64}+(?![\w\-]))", "chat_webhook"),
    (b"events.pagerduty.com/integration/", rb"(?P<value>[0-9a-f]{32})", "pagerduty_integration"),
    (b"/v1/spaces/", rb"[\w\-]{1,40}/messages\?key=[\w\-]{1,60}&token=(?P<value>[\w\-%]{20,99})", "google_chat"),
    (b".azurewebsites.net/", rb"[\w./\-]{1,99}+\?(?:[\w=]{1,40}&)?code=(?P<value>[\w\-%/+=]{20,99})", "azure_function"),
)  # fmt: skip


ANCHORS: Final = (b"://", b"@", *_SIGNATURES, *(hook.anchor for hook in (*_ANYWHERE, *_IN_URLS)))


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets in URLs."""
    data = text.data
    for at in text.exact(b"://"):
        if (found := _USERINFO.match(data, at)) and (span := _userinfo(found)):
            yield span
        elif (found := _WORDS.match(data, at)) and _WITH_LOGIN.search(data, max(0, at - 24), at):
            yield SecretSpan(*found.span("password"), "url_password")
    for at in text.exact(b"@"):
        if (host := _HOST.match(data, at)) and (span := _login(data, host)):
            yield span
    for hook in (*_ANYWHERE, *_IN_URLS):
        for at in text.exact(hook.anchor):
            is_address = hook in _ANYWHERE or b"://" in data[max(0, at - _ADDRESS) : at + 3]
            if is_address and (span := _hook(data, at, hook)):
                yield span
    yield from _signatures(text)


def _hook(data: bytes, at: int, hook: Webhook) -> SecretSpan | None:
    found = hook.pattern.match(data, at + len(hook.anchor))
    if found is None or judge.is_placeholder(found["value"]):
        return None
    return SecretSpan(*found.span("value"), hook.kind)


def _signatures(text: Text) -> Iterator[SecretSpan]:
    """Yield the signatures of signed URLs."""
    data = text.data
    for name in _SIGNATURES:
        for at in text.places(name):
            end = at + len(name)
            found = _SIGNED.match(data, end) if _PARAMETER.search(data, max(0, at - 20), at) else None
            if found and judge.is_random(found[0], 16) and not judge.is_placeholder(found[0]):
                yield SecretSpan(*found.span(), "url_signature")


def _userinfo(found: re.Match[bytes]) -> SecretSpan | None:
    user, password = found["user"], found["password"]
    if password is None:
        if len(user) >= 20 and judge.is_random(user, 20) and not judge.is_placeholder(user):
            return SecretSpan(*found.span("user"), "url_token")
        return None
    inner = values.default(found.string, ValueText(*found.span("password"), b"", password))
    plain = values.plain(inner.text)
    if password == user or judge.is_placeholder(plain) or judge.is_reference(plain) or len(plain) < 4:
        return None
    if plain[:1] in b"$%{<[*" and not judge.is_password(plain, 6):
        return None
    return SecretSpan(inner.start, inner.end, "url_password")


def _login(data: bytes, host: re.Match[bytes]) -> SecretSpan | None:
    """Return the password before a host that has no scheme: `kim:…@db.acme.example:5432`."""
    at = host.start()
    begin = max(0, at - 180, data.rfind(b" ", max(0, at - 180), at))
    if data.find(b":", begin, at) < 0 or (found := _LOGIN.search(data, begin, at)) is None:
        return None
    user, password = found["user"].lower(), found["password"]
    if host["short"] is not None and (host["place"] or b"")[:1] != b":" and not _STRONG.match(password):
        return None
    is_address = host["number"] is not None or host["place"] is not None
    if user in _LABELS or not _MIXED.match(password) or b"://" in password:
        return None
    if judge.is_placeholder(password) or judge.is_reference(password) or judge.is_public(password):
        return None
    if _MAIL_NAME.match(password) and not is_address and user not in _SERVICES:
        return None
    return SecretSpan(*found.span("password"), "url_password") if judge.is_password(password, 6) else None
