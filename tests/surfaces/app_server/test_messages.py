"""What a line means: a request, a notification, an answer, or nothing."""

from __future__ import annotations

import pytest

from commonplace.surfaces.app_server import messages
from commonplace.surfaces.app_server.messages import ClientNotification, ClientRequest, ClientResponse, Malformed


@pytest.mark.parametrize("known", ["a", "", 0, -1, 2**63 - 1, -(2**63)])
def test_a_request_has_a_text_or_an_integer_as_its_id(known: str | int) -> None:
    line = messages.encode({"id": known, "method": "m", "params": {"a": 1}})

    found = messages.parse(line)

    assert isinstance(found, ClientRequest)
    assert (found.id, found.method, bytes(found.params or b"")) == (known, "m", b'{"a":1}')


@pytest.mark.parametrize("line", [b'{"method": "m"}', b'{"method": "m", "params": null, "jsonrpc": "2.0"}'])
def test_what_has_no_id_is_a_notification(line: bytes) -> None:
    assert messages.parse(line) == ClientNotification("m")


def test_what_has_a_result_or_an_error_is_an_answer() -> None:
    assert messages.parse(b'{"id": 3, "result": {"a": 1}}') == ClientResponse(3, {"a": 1})
    assert messages.parse(b'{"id": "x", "error": {"code": 1}}') == ClientResponse("x", None, {"code": 1})


@pytest.mark.parametrize(
    ("line", "known"),
    [
        (b"", None),
        (b"nothing", None),
        (b"[1]", None),
        (b'"text"', None),
        (b"{", None),
        (b'{"id": 1}', 1),
        (b'{"id": "a", "method": 5}', "a"),
        (b'{"id": 7, "method": null}', 7),
        (b'{"id": null, "method": "m"}', None),
        (b'{"id": 1.5, "method": "m"}', None),
        (b'{"id": true, "method": "m"}', None),
        (b'{"id": 9223372036854775808, "method": "m"}', None),
        (b'{"id": {}, "method": "m"}', None),
        (b'{"result": 1}', None),
        (b'{"id": 3, "method": "\\ud800"}', 3),
        (b'{"id": "\\ud800", "method": "m"}', None),
        (b'{"id": 3, "method": NaN}', 3),
        (b"\xff\xfe", None),
        (b'{"id": 9, "method": "thread/list", "params": {"nobody": ["\xdc"]}}', 9),
        (b"[" * 100_000, None),
        (b'{"id": 1, "method": ' + b"[" * 100_000, 1),
        (b'{"method": "m", "params": ' + b"[" * 100_000 + b"]" * 100_000 + b', "id": "deep"}', "deep"),
        (b'{"id": 9, "method": "m"} {}', 9),
        (b'{"id": 9, "method": "m"}{"id": 10, "method": "m"}', 9),
        (b'{"id": 9, "method": "m",}', 9),
        (b'\xef\xbb\xbf{"id": 9, "method": "m"}', 9),
        (b'{"id": "half", "params": {"id": 1', "half"),
        (b'{"params": {"id": 1}, "method"', None),
        (b'{"id": 12', None),
        (b'{"id": "12"', None),
        (b'[{"id": 1}, ', None),
        (b'"a\\' * 1_000_000, None),  # quotes that never end are looked through once
    ],
)
def test_what_is_no_message_keeps_an_id_that_can_be_answered(line: bytes, known: object) -> None:
    found = messages.parse(line)

    assert isinstance(found, Malformed)
    assert found.id == known


def test_a_long_error_keeps_its_ends() -> None:
    told = messages.failure(1, messages.invalid("a" + "x" * 100_000 + "z"))["error"]["message"]

    assert (len(told), told[0], told[-1]) == (2_001, "a", "z")


def test_text_that_is_no_unicode_is_sent_with_marks() -> None:
    assert messages.encode({"a": ["\ud800"], "b": 1}) == b'{"a":["?"],"b":1}'
