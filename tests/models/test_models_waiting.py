"""Delays, `Retry-After`, and the words of servers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import (
    ContextTooLong,
    ModelError,
    ModelUnavailable,
    NotAuthorised,
    QuotaExceeded,
    RateLimited,
    RequestRefused,
)
from commonplace.models.error_mapping import Server, failure, of_body, of_value
from commonplace.models.rate_limits import snapshot
from commonplace.models.retries import RetryPolicy, asked_wait

SERVER = Server("here", "127.0.0.1:1", "HERE_KEY", ("topsecret-0123",))


@given(st.integers(1, 10), st.floats(0, 1))
def test_a_delay_doubles_and_varies_by_a_tenth(attempt: int, chance: float) -> None:
    middle = 0.2 * 2 ** (attempt - 1)

    assert middle * 0.9 - 1e-9 <= RetryPolicy(chance=lambda: chance).delay(attempt) <= middle * 1.1 + 1e-9


@pytest.mark.parametrize(
    ("headers", "words", "expected"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, "", 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, "", 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, "", 0.25),
        ({}, "Please try again in 1.898s.", 1.898),
        ({}, "Try again in 28ms", 0.028),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-3"}, "", None),
        ({"retry-after": "inf"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({}, "Later.", None),
    ],
)
def test_a_server_s_wish_is_read_in_all_its_forms(headers: dict[str, str], words: str, expected: float | None) -> None:
    assert expected == asked_wait(headers, words, 60.0)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, b'{"error":{"code":"context_length_exceeded","message":"too long"}}', ContextTooLong),
        (400, b'{"error":{"code":400,"type":"exceed_context_size_error","message":"x","n_ctx":4096}}', ContextTooLong),
        (400, b'{"object":"error","message":"longer than the maximum model length of 10","code":400}', ContextTooLong),
        (413, b'{"type":"error","error":{"type":"request_too_large","message":"x"}}', ContextTooLong),
        (400, b'{"error":"input length exceeds the context length"}', ContextTooLong),
        (429, b'{"error":{"type":"usage_limit_reached","message":"x","resets_at":1}}', QuotaExceeded),
        (402, b"", QuotaExceeded),
        (403, b'{"error":{"type":"permission_error","message":"x"}}', NotAuthorised),
        (401, b"<html>", NotAuthorised),
        (429, b"", RateLimited),
        (429, b'{"error":{"message":"Too many tokens for your context window per minute"}}', RateLimited),
        (503, b"not json", ModelUnavailable),
        (500, b"[" * 9999, ModelUnavailable),
        (408, b"{}", ModelUnavailable),
        (404, b'{"error":{"message":"model \\"x\\" not found, try pulling it first"}}', RequestRefused),
        (302, b"", RequestRefused),
        (422, b'{"detail":[{"msg":"field required"}]}', RequestRefused),
    ],
)
def test_an_error_body_of_any_vendor_finds_its_error(status: int, body: bytes, expected: type[ModelError]) -> None:
    error = failure(SERVER, of_body(status, body, {}, 0.0))

    assert expected is type(error)
    assert status == error.data["status"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"code": "context_length_exceeded", "message": "x"}, ContextTooLong),
        ({"code": "rate_limit_exceeded", "message": "Please try again in 2s"}, RateLimited),
        ({"code": "insufficient_quota"}, QuotaExceeded),
        ({"code": "invalid_prompt", "message": "no"}, RequestRefused),
        ({"code": "server_is_overloaded"}, ModelUnavailable),
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, ModelUnavailable),
        ({"error": {"type": "BadRequestError", "code": 400, "message": "x"}}, RequestRefused),
        ({"error": "boom"}, ModelUnavailable),
        (None, ModelUnavailable),
        ([], ModelUnavailable),
    ],
)
def test_an_error_in_a_stream_finds_its_error(value: object, expected: type[ModelError]) -> None:
    assert expected is type(failure(SERVER, of_value(value)))


def test_a_rate_limit_in_a_stream_says_how_long_to_wait() -> None:
    error = failure(SERVER, of_value({"code": "rate_limit_exceeded", "message": "Please try again in 2s"}))

    assert 2.0 == error.retry_after


def test_words_are_short_on_one_line_and_without_secrets() -> None:
    words = "bad key topsecret-0123\n\nand sk-proj-Xq7vT2mK9wLz4RbN8cYp1HdJ6sFgA3eUo5iQWxZ0 " + "x" * 9000
    error = failure(SERVER, of_value({"message": words}))

    assert "topsecret" not in error.sentence()
    assert "sk-proj-Xq7" not in error.sentence()
    assert "\n" not in error.sentence()
    assert len(error.sentence()) < 700
    assert "topsecret" not in repr(SERVER)


def test_limits_of_three_families_are_read() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "40",
        "anthropic-ratelimit-requests-reset": "1970-01-01T00:01:00Z",
        "x-codex-primary-used-percent": "42.5",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "1234",
        "x-ratelimit-limit-requests": "100",
        "x-ratelimit-remaining-requests": "100",
        "x-ratelimit-reset-requests": "6m0s",
    }
    found = snapshot(headers, 1000.0)

    assert found is not None
    assert [("requests", 20.0, 60.0), ("primary", 42.5, 1234.0), ("requests", 0.0, 1360.0)] == [
        (limit.name, limit.used_percent, limit.resets_at) for limit in found.limits
    ]


@pytest.mark.parametrize("text", ["", "many", "nan", "1e400", "-"])
def test_limits_that_cannot_be_read_are_passed_over(text: str) -> None:
    headers = {"x-ratelimit-limit-tokens": text, "x-ratelimit-remaining-tokens": text}

    assert None is snapshot({**headers, "x-codex-primary-used-percent": text}, 0.0)
