"""Homes that taught something: a few sessions of two projects, learned from by the program itself."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledgers import Script, assistant, function_call, function_output, user

SHOP = "0198c0de-0000-7000-8000-0000000000a1"
BLOG = "0198c0de-0000-7000-8000-0000000000b1"
NOW = "2026-11-20T09:00:00Z"
PNPM = "Always use pnpm instead of npm in this repo."
PUSH = "From now on, never push to main without asking me first."
SHORT = "please answer in short sentences from now on."
LEDGERS = ("sessions", "archived_sessions", "blobs")


def ran(call_id: str, command: str, output: str = "ok", code: int = 0) -> list[dict[str, Any]]:
    """A command and how it ended."""
    call = function_call(call_id, arguments=json.dumps({"cmd": command}))
    return [call, function_output(call_id, f"Exit code: {code}\nOutput:\n{output}")]


def session(thread_id: str, name: str) -> Script:
    remote = {"repository_url": f"https://github.com/acme/{name}.git", "branch": "main"}
    return Script(thread_id, cwd=f"/repo/{name}", git=remote)


def shop() -> Script:
    script = session(SHOP, "shop")
    failed = ran("c1", "npm test", "sh: npm: not found", 127)
    script.turn(user(f"fix the failing checkout test. {PNPM}"), *failed, *ran("c2", "pnpm test"), assistant("Done."))
    return script.turn(user(PUSH), assistant("Understood."))


def blog() -> Script:
    script = session(BLOG, "blog")
    script.turn(user(f"{SHORT} Add a page about zanzibar."), *ran("c1", "make check"), assistant("Done."))
    return script.turn(user("In this project we always deploy from the release branch."), assistant("ok"))


def write(home: Path) -> None:
    """Write the sessions of both projects."""
    shop().write_home(home)
    blog().write_home(home)


def traces(home: Path, *texts: str) -> list[tuple[str, str]]:
    """Return where under a home texts still stand: in names, bytes of files, objects of git; ledgers aside."""
    found: list[tuple[str, str]] = []
    for path, data in _everything(home):
        plain = data.lower()
        found += [(path, text) for text in texts if text.lower().encode() in plain]
    return found


def _everything(home: Path) -> Iterator[tuple[str, bytes]]:
    for place in sorted(home.rglob("*")):
        path = place.relative_to(home)
        if path.parts[0] in LEDGERS or not place.is_file():
            continue
        data = place.read_bytes()
        yield str(path), str(path).encode() + b"\n" + data
        try:
            yield f"{path} (unpacked)", zlib.decompress(data)
        except zlib.error:
            continue
