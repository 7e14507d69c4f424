"""The messages of the memory server as values: what bytes mean, and how lines are cut."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.surfaces import line_streams
from commonplace.surfaces.mcp import protocol
from commonplace.surfaces.mcp.protocol import ClientAnswer, Notification, Refusal, RpcRequest

MEANING: list[tuple[bytes, protocol.Message]] = [
    (b'{"jsonrpc":"2.0","id":1,"method":"a"}', RpcRequest(1, "a", {})),
    (b'{"jsonrpc":"2.0","id":"1","method":"a","params":null}', RpcRequest("1", "a", {})),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":1},"more":2}', RpcRequest(1, "a", {"b": 1})),
    (
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"id":1,"method":"b"}}',
        RpcRequest(1, "a", {"id": 1, "method": "b"}),
    ),
    (b'{"jsonrpc":"2.0","method":"a"}', Notification("a", {})),
    (b'{"jsonrpc":"2.0","method":"a","params":[1]}', Notification("a", {})),
    (b'{"jsonrpc":"2.0","id":1,"result":3}', ClientAnswer(1, 3)),
    (b'{"jsonrpc":"2.0","id":1,"error":{}}', ClientAnswer(1, None, refused=True)),
    (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', RpcRequest(1, "\N{REPLACEMENT CHARACTER}", {})),
    (
        b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"a"}',
        RpcRequest(123456789012345678901234567890, "a", {}),
    ),
]
REFUSED: list[tuple[bytes, Any, int]] = [
    (b"", None, -32700),
    (b"{", None, -32700),
    (b"\xff", None, -32700),
    (b'"\\ud800', None, -32700),
    (b'{"a":"\\ud800","b":NaN}', None, -32700),
    (b'{"a":"\\ud800","b":1e999}', None, -32700),
    (b"[" * 50_000, None, -32700),
    (b"1", None, -32600),
    (b"null", None, -32600),
    (b"[]", None, -32600),
    (b"{}", None, -32600),
    (b'{"jsonrpc":"2.0","id":1}', 1, -32600),
    (b'{"jsonrpc":"1.0","id":"x","method":"a"}', "x", -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"a"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"a"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":[1],"method":"a"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"a"}', 1.5, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', 1, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","result":1}', 1, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","error":{}}', 1, -32600),
    (b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}', 1, -32600),
    (b'{"jsonrpc":"2.0","result":1}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', None, -32600),
    (b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"a"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{"x":1}}', None, -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}]', None, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":[]}', 1, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"a","params":"x"}', 1, -32602),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 5000 + b'","method":"a"}', None, -32600),
]


@pytest.mark.parametrize(("data", "message"), MEANING)
def test_bytes_mean_a_message(data: bytes, message: protocol.Message) -> None:
    assert protocol.unpack(data) == protocol.Batch((message,))


@pytest.mark.parametrize(("data", "known", "code"), REFUSED)
def test_bytes_that_mean_nothing_are_refused(data: bytes, known: Any, code: int) -> None:
    (message,) = protocol.unpack(data).messages

    assert isinstance(message, Refusal)
    assert (message.id, message.code) == (known, code)


@given(st.binary(max_size=200))
def test_whatever_comes_in_something_can_be_said(data: bytes) -> None:
    for message in protocol.unpack(data).messages:
        if isinstance(message, Refusal):
            json.loads(protocol.encode(protocol.error(message.id, message.code, message.message)))


def test_an_answer_that_cannot_be_sent_becomes_a_refusal() -> None:
    said = json.loads(protocol.encode(protocol.result(7, {"text": "\ud800"})))

    assert (said["id"], said["error"]["code"]) == (7, -32603)


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.booleans())
def test_lines_are_cut_at_their_ends(texts: list[bytes], ended: bool) -> None:
    incoming, outgoing = os.pipe()
    os.write(outgoing, b"\n".join(texts) + (b"\n" if ended and texts else b""))
    os.close(outgoing)
    found = list(line_streams.lines(incoming, limit=20))
    os.close(incoming)

    wanted = [text if len(text) <= 20 else line_streams.TooLong(text) for text in texts]
    if texts and not ended and not texts[-1]:
        wanted.pop()
    assert found == wanted
