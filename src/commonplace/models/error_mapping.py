"""What went wrong, in our words: the error bodies and error events of all vendors become our errors.

Vendors name the same trouble in different places: a status, a code, a type, sometimes only in a sentence. The rules
below are tried in order and the first that fits decides. A server's words are quoted, shortened, on one line and with
secrets removed, because some servers repeat the key or the request that they complain about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from commonplace.errors import (
    ContextTooLong,
    ModelError,
    ModelUnavailable,
    NotAuthorised,
    QuotaExceeded,
    RateLimited,
    RequestRefused,
)
from commonplace.models.retries import asked_wait
from commonplace.patterns import regex
from commonplace.redact import MARK, redact

QUOTED: Final = 400
"""Characters of a server's words that are passed on."""

_CONTEXT: Final = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_CONTEXT_WORDS: Final = regex(
    r"maximum context length|maximum model length|context window|context size|context limit|prompt is too long"
    r"|exceeds the context length",
    re.IGNORECASE,
)
_QUOTA: Final = frozenset(
    {
        "insufficient_quota",
        "usage_limit_reached",
        "usage_not_included",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
    }
)
_QUOTA_WORDS: Final = regex(r"credit balance is too low|exceeded your current quota", re.IGNORECASE)
_KEY: Final = frozenset({"invalid_api_key", "authentication_error", "permission_error", "permission_denied"})
_RATE: Final = frozenset({"rate_limit_exceeded", "rate_limit_error", "too_many_requests"})
_REFUSED: Final = frozenset(
    {
        "invalid_prompt",
        "invalid_request_error",
        "not_found_error",
        "model_not_found",
        "BadRequestError",
        "cyber_policy",
        "content_policy_violation",
        "invalid_image",
    }
)


class Server(msgspec.Struct, frozen=True):
    """The server as errors may name it: never with a key."""

    provider: str
    host: str
    key_variable: str | None = None
    secrets: tuple[str, ...] = ()
    """Texts that no error may repeat."""

    def __repr__(self) -> str:
        return f"Server({self.provider!r}, {self.host!r})"

    def quoted(self, words: str) -> str:
        """Return a server's words in a form that may be shown."""
        for secret in self.secrets:
            words = words.replace(secret, MARK)
        line = " ".join(redact(words[: QUOTED * 8]).split())
        return line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"


class Complaint(msgspec.Struct, frozen=True):
    """The description of a failure by a server."""

    status: int | None = None
    code: str = ""
    kind: str = ""
    words: str = ""
    retry_after: float | None = None
    request_id: str | None = None


def of_body(status: int, body: bytes, headers: Mapping[str, str], now: float) -> Complaint:
    """Return what an HTTP error says."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        value = body.decode("utf-8", "replace")
    found = of_value(value)
    return msgspec.structs.replace(
        found,
        status=status,
        retry_after=asked_wait(headers, found.words, now),
        request_id=headers.get("x-request-id") or headers.get("request-id") or found.request_id,
    )


def of_value(value: Any) -> Complaint:
    """Return what an error object says, in whichever vendor's shape; a text is taken for the message."""
    if isinstance(value, dict):
        whole = cast("dict[str, Any]", value)
        inner = whole.get("error")
        if isinstance(inner, dict | str) and inner:
            return msgspec.structs.replace(of_value(inner), request_id=_text(whole.get("request_id")) or None)
        code, words = whole.get("code"), _text(whole.get("message"))
        numeric = code if isinstance(code, int) and not isinstance(code, bool) else None
        return Complaint(
            status=numeric,
            code="" if numeric is not None else _text(code),
            kind=_text(whole.get("type")),
            words=words,
            retry_after=asked_wait({}, words, 0.0),
        )
    return Complaint(words=_text(value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def failure(server: Server, complaint: Complaint) -> ModelError:
    """Return the error that a complaint amounts to."""
    kind = _kind(complaint)
    message, hint = _sentences(kind, server, complaint)
    if complaint.words:
        message = f"{message} It says: “{server.quoted(complaint.words)}”"
    return kind(
        message,
        hint=hint,
        retry_after=complaint.retry_after if kind.retryable else None,
        provider=server.provider,
        status=complaint.status,
        server_code=complaint.code or complaint.kind or None,
        request_id=complaint.request_id,
    )


def _kind(complaint: Complaint) -> type[ModelError]:
    names = {complaint.code, complaint.kind}
    status = complaint.status
    if names & _CONTEXT or status == 413 or (status != 429 and _CONTEXT_WORDS.search(complaint.words)):
        return ContextTooLong
    if names & _QUOTA or status == 402 or _QUOTA_WORDS.search(complaint.words):
        return QuotaExceeded
    if names & _KEY or status in (401, 403):
        return NotAuthorised
    if names & _RATE or status == 429:
        return RateLimited
    if status is not None:
        return ModelUnavailable if status >= 500 or status in (408, 409, 425) else RequestRefused
    return RequestRefused if names & _REFUSED else ModelUnavailable


def _sentences(kind: type[ModelError], server: Server, complaint: Complaint) -> tuple[str, str]:
    who = server.provider
    if kind is ContextTooLong:
        return f"The conversation does not fit the window of the model at {who}.", "Compact it or choose another model."
    if kind is QuotaExceeded:
        return f"The account at {who} has no quota left.", "Check its plan and billing, or choose another model."
    if kind is NotAuthorised:
        where = f"the key in {server.key_variable}" if server.key_variable else f"`api_key_env` of [providers.{who}]"
        return f"{who} does not accept the key, or not for this model.", f"Check {where}."
    if kind is RateLimited:
        wait = f"Wait {complaint.retry_after:.0f} s" if complaint.retry_after else "Wait a little"
        return f"{who} gets too many requests from this account.", f"{wait}, then try again."
    if kind is ModelUnavailable:
        status = f" (status {complaint.status})" if complaint.status else ""
        return f"{who} at {server.host} failed{status}.", "Try again later, or choose another model."
    status = f" with status {complaint.status}" if complaint.status else ""
    return f"{who} at {server.host} refused the request{status}.", "Check the model's name and the provider's settings."
