"""`commonplace mcp --http`: the token, who may ask, sessions, and what HTTP says about bad messages."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from hostile_messages import answered, silent
from serving_http import Place, served
from talking import INITIALIZE, teach

import processes
from generated_rows import strides

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
BEGIN = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
VERSION = "io.modelcontextprotocol/protocolVersion"
MODERN: dict[str, Any] = {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One server for all tests that leave it as it was; its home is empty."""
    folder = tmp_path_factory.mktemp("served")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMMONPLACE_")}
    environment |= {"COMMONPLACE_HOME": str(folder / "home"), "HOME": str(folder / "user")}
    with served(cwd=folder, environment=environment) as found:
        yield found


class Answer:
    """What the server said to one HTTP request."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        body = response.read()
        self.json: Any = json.loads(body) if body else None


def ask(place: Place, body: Any = PING, method: str = "POST", path: str = "/mcp", **headers: str | None) -> Answer:
    """Send one request; a header of None is left out."""
    sent: dict[str, str | None] = {
        "authorization": f"Bearer {place.token}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    kept = {name: value for name, value in sent.items() if value is not None}
    connection.request(method, path, data if method == "POST" else None, kept)
    try:
        return Answer(connection.getresponse())
    finally:
        connection.close()


def begun(place: Place) -> str:
    return ask(place, BEGIN).headers["mcp-session-id"]


@pytest.mark.parametrize(
    "shown",
    [None, "", "Bearer", "Bearer ", "Bearer x", "Basic x", "bearer", "Bearer \xe9"],
)
def test_without_the_token_nobody_comes_in(shown: str | None, place: Place) -> None:
    answer = ask(place, BEGIN, authorization=shown)

    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]:9"]
)
def test_only_its_own_name_is_answered(host: str, place: Place) -> None:
    assert ask(place, BEGIN, host=host).status == 403


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1", "file://", "http://localhost:1"]
)
def test_web_pages_are_turned_away(origin: str, place: Place) -> None:
    assert ask(place, BEGIN, origin=origin).status == 403


def test_its_own_names_are_answered(place: Place) -> None:
    for name in (f"127.0.0.1:{place.port}", f"localhost:{place.port}", f"LOCALHOST:{place.port}"):
        assert ask(place, BEGIN, host=name, origin=f"http://{name}").status == 200


def test_a_token_of_one_s_own_is_taken(tmp_path: Path) -> None:
    token = "a-token-of-my-own-1234"
    with served(cwd=tmp_path, environment={**os.environ, "COMMONPLACE_MCP_TOKEN": token}) as place:
        assert place.token == ""
        assert ask(place, BEGIN, authorization=f"Bearer {token}").status == 200
        assert ask(place, BEGIN, authorization="Bearer other").status == 401


@pytest.mark.parametrize("token", ["", "short", "with a space in it", "é" * 30])
def test_a_token_that_is_no_secret_is_refused(token: str) -> None:
    environment = {**os.environ, "COMMONPLACE_MCP_TOKEN": token}
    done = processes.run(["mcp", "--http", "0"], env=environment, text=True)

    assert done.returncode == 1
    assert "COMMONPLACE_MCP_TOKEN" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = processes.run(["mcp", "--http", str(port)], text=True)

    assert done.returncode == 1
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr


def test_it_listens_on_loopback_alone(place: Place) -> None:
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), place.port, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        if str(address).startswith("127."):
            with socket.socket() as probe:
                assert probe.connect_ex((str(address), place.port)) != 0


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "OPTIONS", "PATCH"])
def test_messages_are_posted(method: str, place: Place) -> None:
    answer = ask(place, method=method)

    assert answer.status == 405
    assert answer.headers["allow"] == "POST, DELETE"


def test_there_is_one_address(place: Place) -> None:
    assert [ask(place, path=path).status for path in ("/", "/mcp/", "/mcp/x", "/MCP", "/mcp/../mcp")] == [404] * 5


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_only_json_is_read(kind: str | None, place: Place) -> None:
    assert ask(place, BEGIN, content_type=kind).status == 415


def test_a_client_must_take_json(place: Place) -> None:
    assert ask(place, BEGIN, accept="text/html").status == 406
    assert ask(place, BEGIN, accept="*/*").status == 200
    assert ask(place, BEGIN, accept=None).status == 200


def test_a_session_is_named_and_ends(place: Place) -> None:
    name = begun(place)

    assert ask(place, PING, mcp_session_id=name).json["result"] == {}
    assert ask(place, PING).status == 400
    assert ask(place, PING, mcp_session_id="nothing").status == 404
    assert ask(place, {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=name).status == 202
    assert ask(place, method="DELETE", mcp_session_id=name).status == 204
    assert ask(place, PING, mcp_session_id=name).status == 404


def test_a_version_that_nobody_speaks_is_refused(place: Place) -> None:
    name = begun(place)

    assert ask(place, PING, mcp_session_id=name, mcp_protocol_version="2025-11-25").status == 200
    assert ask(place, PING, mcp_session_id=name, mcp_protocol_version="1999-01-01").status == 400


def test_an_old_session_never_grows_without_end(place: Place) -> None:
    first = begun(place)
    for _ in range(256):
        begun(place)

    assert ask(place, PING, mcp_session_id=first).status == 404


def modern(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": MODERN}}


def test_a_modern_request_needs_no_session(place: Place) -> None:
    answer = ask(place, modern("server/discover"), mcp_protocol_version="2026-07-28", mcp_method="server/discover")

    assert answer.status == 200
    assert answer.json["result"]["supportedVersions"] == ["2026-07-28"]
    assert answer.json["result"]["resultType"] == "complete"
    assert answer.json["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "commonplace"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, -32020),
        ({"mcp_protocol_version": "2025-11-25", "mcp_method": "tools/call", "mcp_name": "list"}, -32020),
        ({"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/list", "mcp_name": "list"}, -32020),
        ({"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "read"}, -32020),
        ({"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "=?base64?!!?="}, -32020),
        ({"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "=?base64?bGlzdA==?="}, None),
        ({"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "list"}, None),
    ],
)
def test_headers_say_what_the_message_says(headers: dict[str, str], code: int | None, place: Place) -> None:
    answer = ask(place, modern("tools/call", name="list"), **headers)

    assert answer.status == (200 if code is None else 400)
    assert answer.json.get("error", {}).get("code") == code


def test_what_a_modern_request_gets_wrong_is_also_said_by_http(place: Place) -> None:
    unknown = ask(place, modern("nothing"), mcp_protocol_version="2026-07-28", mcp_method="nothing")
    future = {**modern("tools/list"), "params": {"_meta": {**MODERN, VERSION: "2099-01-01"}}}
    newer = ask(place, future, mcp_protocol_version="2099-01-01", mcp_method="tools/list")

    assert (unknown.status, unknown.json["error"]["code"]) == (404, -32601)
    assert (newer.status, newer.json["error"]["code"]) == (400, -32022)
    assert newer.json["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


def test_a_body_that_is_too_large_is_refused(place: Place) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)
    connection.putrequest("POST", "/mcp")
    for name, value in (("authorization", f"Bearer {place.token}"), ("content-type", "application/json")):
        connection.putheader(name, value)
    connection.putheader("content-length", str(10**12))
    connection.endheaders()

    assert connection.getresponse().status == 413
    connection.close()


def test_a_batch_is_answered_where_the_version_has_them(place: Place) -> None:
    older = {**BEGIN, "params": {**INITIALIZE, "protocolVersion": "2025-03-26"}}
    name = ask(place, older).headers["mcp-session-id"]
    answer = ask(place, [PING, {"jsonrpc": "2.0", "method": "x"}, {**PING, "id": 2}], mcp_session_id=name)

    assert [each["id"] for each in answer.json] == [1, 2]


@strides(4)
def test_every_hostile_request_is_answered_over_http_too(home: Path, tmp_path: Path, stride: int) -> None:
    teach(home)
    wrong: list[str] = []
    with served(cwd=tmp_path) as place:
        name = begun(place)
        for case, data in islice(chain(answered(), silent()), 0, None, stride):
            answer = ask(place, data, mcp_session_id=name)
            fine = answer.json is not None and ("result" in answer.json or "error" in answer.json)
            if answer.status not in (200, 202, 400, 404) or (answer.status != 202 and not fine):
                wrong.append(f"{case}: {answer.status} {str(answer.json)[:200]}")
        assert ask(place, PING, mcp_session_id=name).json["result"] == {}

    assert wrong == []
