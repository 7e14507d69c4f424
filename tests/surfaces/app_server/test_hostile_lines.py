"""Malformed and hostile lines: no crash, no hang, an error with the id where there was one; good requests go on."""

from __future__ import annotations

import json
import random
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from app_server.app_client import AppClient
from app_server.serving import listening

from commonplace.surfaces.app_server.methods import METHODS
from exec_driver import make_place

Json = dict[str, Any]
STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 0.5, 1e308, 2**70, "", "x", "\0", "\ud800", "\u202e", "../..", "x" * 10_000, [], [[[]]], {},
    {"": None}, {"type": "text"}, [{"type": "text"}], [{"type": "nothing"}], [{"type": "image", "url": 5}],
    "01a1dddc-8646-7c22-bb1d-cc3d829fde08", "00000000-0000-0000-0000-000000000000", {"a": {"value": 1, "kind": "x"}},
)  # fmt: skip
FIELDS = (
    "threadId", "input", "turnId", "expectedTurnId", "cwd", "cursor", "limit", "name", "numTurns", "mode", "query",
    "path", "additionalContext", "sandboxPolicy", "config", "model", "beforeTurnId", "text",
)  # fmt: skip
BROKEN = (
    b"", b" ", b"{", b"}", b"null", b"1", b'"x"', b"[]", b"[1,2]", b"\xff\xfe\xfd", b"\0", b"{}", b'{"id":}',
    b'{"id":"b1","id":"b2"}', b'{"method":"turn/start"}', b'{"id":null}', b'{"result":{}}', b'{"id":1,"result":{}}',
    b'{"id":99999,"error":{"code":1}}', b'{"jsonrpc":"2.0"}', b"[" * 5_000, b'{"a":' * 5_000, b"GET / HTTP/1.1",
)  # fmt: skip
NO_IDS: tuple[Any, ...] = ([], {}, 0.5, None, True, 2**70)
UNSAFE = ("memory/note", "memory/reset", "thread/start")
"""Methods that would work with strange params, too, and take long."""


def hostile(count: int, seed: int) -> Iterator[tuple[bytes, Any]]:
    """Yield lines, each with the id that must be answered; None where nothing must."""
    chance = random.Random(seed)
    methods = [method for method in METHODS if method not in UNSAFE]
    for number in range(count):
        known = f"h{number}"
        kind = chance.randrange(7)
        if kind == 0:
            yield chance.choice(BROKEN), None
        elif kind == 1:
            yield _line({"id": known, "method": chance.choice(STRANGE)}), known
        elif kind == 2:
            yield _line({"id": chance.choice(NO_IDS), "method": "thread/list"}), None
        elif kind == 3:
            yield _line({"id": known, "method": chance.choice(methods), "params": chance.choice(STRANGE)}), known
        elif kind == 4:
            names = chance.sample(FIELDS, chance.randrange(1, 5))
            params = {name: chance.choice(STRANGE) for name in names}
            yield _line({"id": known, "method": chance.choice(methods), "params": params}), known
        elif kind == 5:
            line = bytearray(_line({"method": chance.choice(methods), "params": {"threadId": "x", "other": ["y"]}}))
            line[chance.randrange(len(line))] = chance.randrange(128, 256)
            yield b'{"id": "%s", ' % known.encode() + bytes(line[1:]), known
        else:
            line = _line({"id": known, "method": "thread/read", "params": {"threadId": "x"}})
            cut = chance.randrange(len(line))
            yield line[:cut], None


def _line(message: Json) -> bytes:
    return json.dumps(message).encode()


def survive(root: Path, count: int, seed: int, transport: str) -> None:
    place = make_place(root, "http://127.0.0.1:9/v1")
    with ExitStack() as stack:
        if transport == "unix":
            stack.enter_context(listening(place, "unix"))
        client = stack.enter_context(AppClient(place, *(["proxy"] if transport == "unix" else [])))
        wanted: list[Any] = []
        for number, (line, known) in enumerate(hostile(count, seed)):
            client.line(line.replace(b"\n", b" "))
            if known is not None:
                wanted.append(known)
            if number % 100 == 99 and wanted:  # as a client that waits for its answers now and then
                client.answer(wanted[-1])
        assert client.ask("thread/loaded/list", {})["data"] == []
        thread = client.start()
        known = {*wanted}
        assert client.ask("thread/read", {"threadId": thread})["thread"]["id"] == thread
        client.until(lambda: sum(message.get("id") in known for message in client.told) >= len(known))
        assert client.end() == 0
    answers = Counter(message["id"] for message in client.told if "method" not in message)
    assert {known: answers[known] for known in wanted if answers[known] != 1} == {}


@pytest.mark.parametrize("transport", ["stdio", "unix"])
def test_hostile_lines_are_survived(tmp_path: Path, transport: str) -> None:
    survive(tmp_path, 400, 1, transport)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("transport", ["stdio", "unix"])
def test_fifty_thousand_hostile_lines_are_survived(tmp_path: Path, transport: str) -> None:
    survive(tmp_path, 50_000, 2, transport)


UPGRADE = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
OPENED = UPGRADE + b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
RAW = (
    b"", b"\0" * 1000, b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", UPGRADE,
    b"GET /" + b"x" * 100_000, UPGRADE + b"Sec-WebSocket-Key: x\r\n\r\n", UPGRADE + b"\xff: \xfe\r\n\r\n",
    OPENED + b"\xff" * 100,  # reserved bits
    OPENED + b"\x81\x05hello",  # a frame without a mask
    OPENED + b"\x81\xff\x7f" + b"\xff" * 7 + b"\0\0\0\0",  # a frame of 2**63 bytes
    OPENED + b"\x81\x82\0\0\0\0\xff\xfe",  # a text that is no UTF-8
    OPENED + b"\x82\x83\0\0\0\0\xff\xfe{",  # bytes
    OPENED + b"\x80\x80\0\0\0\0",  # the rest of nothing
    OPENED + b"\x88\x81\0\0\0\0x",  # half a reason to close
    OPENED + b"\x89\xfe\x01\x00\0\0\0\0" + b"x" * 256,  # a ping that is too long
    OPENED + b"\x01\x80\0\0\0\0" * 200,  # texts that begin and never end
)  # fmt: skip


def test_bytes_that_are_no_websocket_are_survived(tmp_path: Path) -> None:
    place = make_place(tmp_path, "http://127.0.0.1:9/v1")
    with listening(place, "unix") as server:
        for sent in RAW:
            with socket.socket(socket.AF_UNIX) as hostile:
                hostile.connect(server.address.removeprefix("unix://"))
                hostile.sendall(sent)
                hostile.shutdown(socket.SHUT_WR)
                with suppress(ConnectionError):
                    while hostile.recv(65536):
                        pass
        with AppClient(place, "proxy") as client:
            assert client.ask("thread/loaded/list", {})["data"] == []
        assert server.end() == 0


@pytest.mark.parametrize("transport", ["stdio", "unix"])
def test_a_line_that_is_far_too_long_is_refused_with_its_id(tmp_path: Path, transport: str) -> None:
    place = make_place(tmp_path, "http://127.0.0.1:9/v1")
    filler = b"x" * (17 * 1024 * 1024)
    with ExitStack() as stack:
        if transport == "unix":
            stack.enter_context(listening(place, "unix"))
        client = stack.enter_context(AppClient(place, *(["proxy"] if transport == "unix" else [])))
        client.line(b'{"id": "long", "method": "' + filler + b'"}')
        client.line(b'{"method": "thread/list", "id": 77, "params": {"id": 5, "x": "' + filler + b'"}}')
        client.line(filler)

        for known in ("long", 77):
            told = client.answer(known)["error"]
            assert (told["code"], told["message"]) == (-32600, "Invalid request: it is longer than 16 MB")
        assert client.ask("thread/loaded/list", {})["data"] == []


def test_lines_that_come_all_at_once_are_answered_before_the_end(tmp_path: Path) -> None:
    with AppClient(make_place(tmp_path, "http://127.0.0.1:9/v1"), hello=False) as client:
        hello = {"clientInfo": {"name": "a", "version": "1"}}
        lines = [_line({"id": 0, "method": "initialize", "params": hello})]
        lines += [_line({"id": number, "method": "model/list", "params": {}}) for number in range(1, 100)]
        client.line(b"\n".join(lines))
        assert client.end() == 0

    assert sorted(message["id"] for message in client.told if "result" in message) == list(range(100))
