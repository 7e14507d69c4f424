"""An MCP server on stdio that does one thing wrong, or right: `hostile_stdio.py BEHAVIOUR TOKEN [FILE]`.

The token stands in the command line of every process that comes of it, so that a test can see whether one is left.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
DO: Json = {"name": "do", "description": "Does it.", "inputSchema": {"type": "object", "properties": {}}}
OK: Json = {**DO, "name": "ok", "annotations": {"readOnlyHint": True}}


def say(message: Any) -> None:
    sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    sys.stdout.flush()


def answer(request: Json, result: Any) -> None:
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def text(request: Json, words: str) -> None:
    answer(request, {"content": [{"type": "text", "text": words}]})


def hear() -> Json:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def wait() -> None:
    while True:
        signal.pause()


# --- What it lists


def tools(behaviour: str, request: Json) -> None:
    many: dict[str, Callable[[], list[Json]]] = {
        "many-tools": lambda: [{**DO, "name": f"t{number}"} for number in range(3000)],
        "long-tools": lambda: [{**DO, "name": f"t{number}", "description": "d" * 100_000} for number in range(100)],
        "names": lambda: [{**DO, "name": name} for name in NAMES],
        "schemas": lambda: [{**DO, "name": name, "inputSchema": each} for name, each in SCHEMAS.items()],
    }
    if behaviour == "list-types":
        answer(request, {"tools": [{"name": 5, "inputSchema": []}]})
    elif behaviour == "list-error":
        say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "no list \x1b[31mtoday"}})
    elif behaviour == "pages":
        answer(request, {"tools": [DO], "nextCursor": "again"})
    elif behaviour == "values":
        answer(request, {"tools": [[]] * 1_000_000})
    else:
        answer(request, {"tools": many.get(behaviour, lambda: [DO, OK])()})


NAMES = [
    "do", "do", "do", "", " ", "a b", "a_b", "a.b", "ünïcödé", "x" * 200, "x" * 200 + "y", "x" * 5000, "../../etc",
    "\0", "\u202eevil", "mcp__other__do", "__", "$(id)", "name\nwith lines",
]  # fmt: skip


def deep(levels: int) -> Json:
    return {"type": "object", "properties": {"a": deep(levels - 1)} if levels else {}}


SCHEMAS: dict[str, Json] = {
    "recursive": {"type": "object", "properties": {"next": {"$ref": "#"}, "node": {"$ref": "#/$defs/node"}},
                  "$defs": {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}}},
    "elsewhere": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x"}, "b": {"$ref": "#/no"}}},
    "huge": {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(5000)}},
    "deep": deep(60),
}  # fmt: skip


# --- What it does when it is called


def garbage(request: Json) -> None:
    for line in ("Starting…", "{", "[]", "null", "\x00\xff", "5", '{"jsonrpc":"2.0"}', "[" * 100_000, '"\\ud800"', ""):
        say(line)
    wrong: list[Any] = [None, True, 1.5, [], {}, "x", -1, 10**30, str(request["id"] + 100), request["id"] + 1]
    for known in wrong:
        say({"jsonrpc": "2.0", "id": known, "result": {"content": [{"type": "text", "text": "not yours"}]}})
    say({"jsonrpc": "1.0", "id": request["id"], "result": {}})
    text(request, "after the garbage")


def flood(count: int) -> None:
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
    while count:
        sys.stdout.write(f"{note}\n" * min(count, 1000) if count > 0 else f"{note}\n" * 1000)
        count = max(count - 1000, 0) if count > 0 else count
    sys.stdout.flush()


def asks(request: Json) -> None:
    wanted: list[tuple[str, Json]] = [
        ("sampling/createMessage", {"messages": [], "maxTokens": 5}),
        ("elicitation/create", {"message": "Your key?", "requestedSchema": {"type": "object", "properties": {}}}),
        ("roots/list", {}),
        ("ping", {}),
        ("made/up", {}),
    ]
    heard: list[str] = []
    for number, (method, params) in enumerate(wanted):
        say({"jsonrpc": "2.0", "id": f"mine-{number}", "method": method, "params": params})
        reply = hear()
        heard.append(f"{method}: {reply.get('error', {}).get('code', reply.get('result'))}")
    text(request, "\n".join(heard))


def asks_much(request: Json) -> None:
    for number in range(20_000):
        say({"jsonrpc": "2.0", "id": f"mine-{number}", "method": "sampling/createMessage", "params": {}})
    text(request, "asked")


def children(request: Json) -> None:
    """Start children that ignore what they are told, in the group, in a session of their own, and orphaned."""
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); signal.pause()"
    child = [sys.executable, "-c", stubborn, sys.argv[2]]
    near = subprocess.Popen(child, stdout=subprocess.PIPE)
    far = subprocess.Popen(child, stdout=subprocess.PIPE, start_new_session=True)
    orphan = f"import subprocess; subprocess.Popen({child!r}, start_new_session=True)"
    lost = subprocess.Popen([sys.executable, "-c", orphan, sys.argv[2]], stdout=subprocess.PIPE)
    for each in (near, far, lost):
        assert each.stdout is not None
        each.stdout.readline()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    text(request, "started")
    wait()


def endless(_: Json) -> None:
    while True:
        sys.stdout.write("x" * 65_536)


def stderr(request: Json) -> None:
    for _ in range(400):
        sys.stderr.write("e" * 65_535 + "\n")
    sys.stderr.flush()
    text(request, "said it all")


def crash(request: Json) -> None:
    sys.stderr.write("Traceback: the disk \x1b[2Jis full\n")
    sys.stderr.flush()
    os._exit(7)


def once(request: Json) -> None:
    """Die at the first call of all lives, answer at the others."""
    marker = Path(sys.argv[3])
    if not marker.exists():
        marker.write_text("died", "utf-8")
        os._exit(1)
    text(request, "born again")


def changed(request: Json) -> None:
    DO["name"] = "new"
    say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    text(request, "changed")


def parting(request: Json) -> None:
    text(request, "and now I go")
    os._exit(0)


CALLS: dict[str, Callable[[Json], None]] = {
    "hang-call": lambda _: wait(),
    "crash-call": crash,
    "crash-once": once,
    "parting": parting,
    "flood-then-answer": lambda request: (flood(20_000), text(request, "after the flood"))[1],
    "flood-forever": lambda _: flood(-1),
    "endless-line": endless,
    "stderr": stderr,
    "garbage": garbage,
    "result-types": lambda request: answer(request, {"content": 5, "isError": "no"}),
    "result-null": lambda request: answer(request, None),
    "other-id": lambda request: answer({"id": request["id"] + 7}, {"content": []}),
    "many-mistakes": lambda request: answer(request, {"content": [1] * 90_000}),
    "many-values": lambda request: answer(request, {"content": [], "structuredContent": {"a": [[]] * 3_000_000}}),
    "error": lambda request: say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": 1, "message": "m" * 10**6}}),
    "huge": lambda request: text(request, "h" * 5_000_000),
    "asks": asks,
    "asks-much": asks_much,
    "children": children,
    "changed": changed,
    "environment": lambda request: text(request, json.dumps(dict(os.environ))),
    "arguments": lambda request: text(request, json.dumps(request["params"])),
}


def serve(behaviour: str) -> None:
    if behaviour == "crash-at-start":
        sys.stderr.write("no configuration found\n")
        sys.exit(3)
    if behaviour == "hang-at-start":
        wait()
    if behaviour == "flood-at-start":
        flood(-1)
    if behaviour == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        request = hear()
        match request.get("method"):
            case "initialize":
                version = "1999-01-01" if behaviour == "version" else request["params"]["protocolVersion"]
                about = {"name": "hostile", "version": "0"}
                answer(request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
            case "tools/list":
                tools(behaviour, request)
                if behaviour == "deaf":
                    wait()
            case "tools/call" if request["params"]["name"] == "ok":
                text(request, "fine")
            case "tools/call":
                CALLS[behaviour](request)
            case _:
                pass


if __name__ == "__main__":
    serve(sys.argv[1])
