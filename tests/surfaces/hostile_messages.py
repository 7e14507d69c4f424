"""Messages that no good client sends, each with how many answers it gets: one, or none for what wants none.

A case's bytes are one line. `answered` must get exactly one well-formed answer, `silent` must get none. They are made
when they are asked for: some have ten megabytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
Case: TypeAlias = tuple[str, bytes]

_LONG = "x" * 100_000
_HUGE = "y" * (10 * 1024 * 1024)
_STRANGE: tuple[tuple[str, Any], ...] = (
    ("null", None),
    ("true", True),
    ("zero", 0),
    ("minus", -1),
    ("fraction", 0.5),
    ("text", "text"),
    ("empty text", ""),
    ("list", []),
    ("list of lists", [[[]]]),
    ("object", {}),
    ("nul", "\0"),
    ("far too large", 2**80),
)
_PATHS = (
    "..", "../..", "../../etc/passwd", "/etc/passwd", "/", "//", ".", "./", "", " ", "~", "~root", "a/../b", ".git",
    ".git/config", "skills/.x", "MEMORY.md/", "MEMORY.md/x", "MEMORY.md\0", "\0", "a\0b", "MEMORY.md\n", "C:\\x",
    "\\\\server\\share", "%2e%2e/x", "..\\..", "file:///etc/passwd", "CON", "x" * 5000, "x/" * 3000, "\u202eevil",
    "\N{FULLWIDTH FULL STOP}\N{FULLWIDTH FULL STOP}/x", "e\u0301", "/proc/self/environ", "/dev/zero", "-rf",
    "$(id)", "`id`",
)  # fmt: skip
_CURSORS = ("", " ", "-1", "+", "1.0", "abc", "9" * 50, "٣", "0x1", "1e3", "\0", "None", "18446744073709551616")
_PROJECTS = (
    "", " ", "nobody-has-this", "../..", "/etc", "~nobodyatall", "\0", "*/*", "**", "github.com/../..", "x" * 5000,
    "github.com/acme", "\n", "\u202e", "%00", "'; drop table threads; --", "/" * 4000, "~" * 300,
)  # fmt: skip


def _line(message: Any) -> bytes:
    return json.dumps(message).encode()


def _request(method: Any, params: Any = ..., known: Any = 1) -> bytes:
    message: Json = {"jsonrpc": "2.0", "id": known, "method": method}
    return _line(message if params is ... else {**message, "params": params})


def _call(name: Any, arguments: Any) -> bytes:
    return _request("tools/call", {"name": name, "arguments": arguments})


def _not_json() -> Iterator[Case]:
    texts = (
        b"{", b"}", b"[", b"]", b"{]", b'{"jsonrpc"', b"nul", b"NaN", b"Infinity", b"-", b"01", b"1.", b".5", b"'a'",
        b'"open', b'{"a":1,}', b"[1,]", b"{a:1}", b'{"a" 1}', b"\xff\xfe", b'"\xff"', b"\x00", b"\x01\x02\x03",
        b"\xef\xbb\xbf{}", b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
        b'{"jsonrpc":"2.0","id":1,"method":"pi\x07ng"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', b'{"a":"\\x41"}', b'{"a":"\\u12"}', b"Content-Length: 20",
        b"GET / HTTP/1.1", b"// comment", b"<xml/>", b"[" * 100_000, b'{"a":' * 100_000, b"[" * 5_000 + b"]" * 5_000,
        b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', b"1" * 10_000,
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}}",
    )  # fmt: skip
    for number, text in enumerate(texts):
        yield f"not JSON {number}", text


def _not_messages() -> Iterator[Case]:
    for name, value in _STRANGE:
        if value != []:
            yield f"a message that is {name}", _line(value)
        yield f"a jsonrpc that is {name}", _line({"jsonrpc": value, "id": 1, "method": "ping"})
        yield f"a method that is {name}", _request(value)
        yield f"params that are {name}", _request("ping", value)
    yield "an empty batch", b"[]"
    yield "a batch of nothing", b"[[],[]]"
    yield "a large batch", _line([{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(5000)])
    yield "no jsonrpc", _line({"id": 1, "method": "ping"})
    yield "version 1", _line({"jsonrpc": "1.0", "id": 1, "method": "ping"})
    yield "no method", _line({"jsonrpc": "2.0", "id": 1})
    yield "nothing", b"{}"
    yield "params as a list", _request("tools/list", [1, 2, 3])
    yield "keys twice", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"nothing"}'
    yield "a key that is half a character", b'{"jsonrpc":"2.0","id":1,"method":"ping","\\ud800":1}'
    yield "a method that is half a character", b'{"jsonrpc":"2.0","id":1,"method":"\\udfff"}'


def _ids() -> Iterator[Case]:
    strange: tuple[Any, ...] = (
        None,
        True,
        False,
        1.5,
        -1.5,
        1e300,
        [],
        {},
        [1],
        {"a": 1},
        "",
        _LONG,
        "\0",
        "\n",
        "\u202e",
        0,
        -1,
    )
    for number, known in enumerate((*strange, 2**53 + 1, 2**63, 2**64, 10**300, -(10**200))):
        yield f"id {number}", _request("ping", known=known)
        yield f"id {number} of a tool", _request("tools/call", {"name": "list"}, known)
    yield "an id of many digits", b'{"jsonrpc":"2.0","id":' + b"9" * 1000 + b',"method":"ping"}'
    yield "an id of half a character", b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}'
    yield "an id that is 1.0", b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}'
    yield "an id that is -0", b'{"jsonrpc":"2.0","id":-0,"method":"ping"}'


def _methods() -> Iterator[Case]:
    names = (
        "", " ", "Ping", "ping ", "tools", "tools/", "tools/list/", "tools/call2", "rpc.discover", "__class__", "close",
        "notifications/initialized", "notifications/cancelled", "notifications/roots/list_changed",
        "resources/subscribe",
        "completion/complete", "prompts/get", "sampling/createMessage", "roots/list", "elicitation/create", "shutdown",
        "server/discover", "subscriptions/listen", "tasks/list", "initialize", _LONG, "\0", "\u202e", "../tools/list",
    )  # fmt: skip
    for name in names:
        yield f"method {name[:30]!r}", _request(name, {})
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        for name, value in _STRANGE:
            yield f"{method} with a cursor that is {name}", _request(method, {"cursor": value})
        yield f"{method} with a strange _meta", _request(method, {"_meta": 7})
    for name, value in _STRANGE:
        yield f"a resource that is {name}", _request("resources/read", {"uri": value})
        yield f"a log level that is {name}", _request("logging/setLevel", {"level": value})
        yield f"a version that is {name}", _request("initialize", {"protocolVersion": value})
        yield (
            f"capabilities that are {name}",
            _request("initialize", {"protocolVersion": "2025-11-25", "capabilities": value}),
        )
    for uri in (
        "commonplace://memory/../x",
        "file:///etc/passwd",
        "commonplace://",
        "commonplace://memory/summary/",
        _LONG,
    ):
        yield f"the resource {uri[:40]}", _request("resources/read", {"uri": uri})


def _modern() -> Iterator[Case]:
    version, capabilities = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"
    for name, value in _STRANGE:
        yield f"an envelope whose version is {name}", _request("tools/list", {"_meta": {version: value}})
        yield (
            f"an envelope whose capabilities are {name}",
            _request("tools/list", {"_meta": {version: "2026-07-28", capabilities: value}}),
        )
    good: Json = {version: "2026-07-28", capabilities: {}}
    for name, value in _STRANGE:
        info = {"io.modelcontextprotocol/clientInfo": value}
        yield f"an envelope whose client is {name}", _request("tools/list", {"_meta": {**good, **info}})
    yield "a version of the future", _request("server/discover", {"_meta": {**good, version: "2099-01-01"}})
    yield "an old version in an envelope", _request("tools/list", {"_meta": {**good, version: "2025-11-25"}})
    yield "a ping of the modern era", _request("ping", {"_meta": good})
    yield "a modern call of nothing", _request("tools/call", {"_meta": good})
    yield "a modern resource that is not there", _request("resources/read", {"_meta": good, "uri": "x"})


def _tools() -> Iterator[Case]:
    for name, value in _STRANGE:
        yield f"a tool that is {name}", _request("tools/call", {"name": value})
        yield f"arguments that are {name}", _call("list", value)
        yield f"a path that is {name}", _call("read", {"path": value})
        yield f"queries that are {name}", _call("search", {"queries": value})
        yield f"a query that is {name}", _call("search", {"queries": [value]})
        yield f"a match mode that is {name}", _call("search", {"queries": ["a"], "match_mode": value})
        yield f"something to find that is {name}", _call("find", {"query": value})
        yield f"a limit that is {name}", _call("find", {"query": "a", "limit": value})
        yield f"a project that is {name}", _call("list", {"project": value})
        yield f"a number of lines that is {name}", _call("read", {"path": "MEMORY.md", "max_lines": value})
        yield f"an offset that is {name}", _call("read", {"path": "MEMORY.md", "line_offset": value})
        yield f"an unknown argument that is {name}", _call("list", {"nothing": value})
    for tool in ("", "List", "list ", "memories/list", "add_ad_hoc_note", "__init__", "\0", _LONG, "commonplace.list"):
        yield f"the tool {tool[:20]!r}", _call(tool, {})
    for path in _PATHS:
        for tool in ("list", "read", "search"):
            more = {"queries": ["a"]} if tool == "search" else {}
            yield f"{tool} {path[:20]!r}", _call(tool, {"path": path, **more})
    for cursor in _CURSORS:
        yield f"list from {cursor[:20]!r}", _call("list", {"cursor": cursor})
        yield f"search from {cursor[:20]!r}", _call("search", {"queries": ["a"], "cursor": cursor})
    for project in _PROJECTS:
        for tool, more in (("list", {}), ("read", {"path": "MEMORY.md"}), ("find", {"query": "a"})):
            yield f"{tool} in {project[:20]!r}", _call(tool, {**more, "project": project})


def _large() -> Iterator[Case]:
    yield "a query of ten megabytes", _call("search", {"queries": [_HUGE]})
    yield "a question of ten megabytes", _call("find", {"query": _HUGE})
    yield "a path of ten megabytes", _call("read", {"path": _HUGE})
    yield "a project of ten megabytes", _call("list", {"project": _HUGE})
    yield "a tool of ten megabytes", _call(_HUGE, {})
    yield "a method of ten megabytes", _request(_HUGE)
    yield "an id of ten megabytes", _request("ping", known=_HUGE)
    yield "a uri of ten megabytes", _request("resources/read", {"uri": _HUGE})
    yield "a hundred thousand queries", _call("search", {"queries": ["a"] * 100_000})
    yield "a hundred thousand arguments", _call("list", {f"a{number}": number for number in range(100_000)})
    yield "a question of words without end", _call("find", {"query": "word " * 50_000})
    yield (
        "half a character to find",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find","arguments":{"query":"\\ud83d"}}}',
    )
    yield (
        "half a character to search",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"queries":["\\udc00a"]}}}',
    )
    yield "deep arguments", _call("search", {"queries": ["a"], "match_mode": json.loads("[" * 300 + "]" * 300)})
    yield "a line of its own", _call("search", {"queries": ["a\nb\r\n\u2028"]})
    yield "a regular expression without end", _call("search", {"queries": ["(a+)+$" * 50]})


def answered() -> Iterator[Case]:
    """Yield the messages that get an answer."""
    for cases in (_not_json, _not_messages, _ids, _methods, _modern, _tools, _large):
        yield from cases()


def silent() -> Iterator[Case]:
    """Yield the messages that get none."""
    for name, value in _STRANGE:
        yield f"a notification with {name}", _line({"jsonrpc": "2.0", "method": "notifications/x", "params": value})
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": value}}
        yield f"a cancellation of {name}", _line(cancelled)
    for method in ("ping", "tools/list", "tools/call", "initialize", "notifications/initialized", "", "nothing", _LONG):
        yield f"{method[:20]!r} without an id", _line({"jsonrpc": "2.0", "method": method, "params": {"name": "list"}})
    unasked: tuple[Any, ...] = (1, "1", "commonplace-1", None, [], {}, 1.5, True, 10**300, _LONG)
    for number, known in enumerate(unasked):
        yield f"answer {number} that nobody asked for", _line({"jsonrpc": "2.0", "id": known, "result": {}})
        error = {"jsonrpc": "2.0", "id": known, "error": {"code": -1, "message": "no"}}
        yield f"refusal {number} that nobody asked for", _line(error)
    yield "an answer of ten megabytes", _line({"jsonrpc": "2.0", "id": 1, "result": _HUGE})
    yield "an empty line", b""
    yield "a line of spaces", b"   \t  "
    yield "only a carriage return", b"\r"
