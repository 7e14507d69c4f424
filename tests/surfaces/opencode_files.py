"""OpenCode sessions as tests want them: one document, stored as an export, as files or in a database."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

SESSION = "ses_30aa0000ffeShopTests0001"
START = 1_790_000_000_000
"""2026-09-21, in milliseconds."""


def text(number: int, words: str, **more: Any) -> dict[str, Any]:
    return {"id": f"prt_{number:04}", "type": "text", "text": words, **more}


def tool(number: int, name: str, given: dict[str, Any], status: str = "completed", **state: Any) -> dict[str, Any]:
    content = {"status": status, "input": given, **state}
    return {"id": f"prt_{number:04}", "type": "tool", "tool": name, "callID": f"call_{number}", "state": content}


def asked(number: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    info = {"id": f"msg_{number:04}", "role": "user", "time": {"created": START + number * 1000}, "agent": "build"}
    return {"info": {**info, "model": {"providerID": "acme", "modelID": "large"}, **more}, "parts": list(parts)}


def answered(number: int, *parts: dict[str, Any], completed: bool = True, **more: Any) -> dict[str, Any]:
    time = {"created": START + number * 1000, **({"completed": START + number * 1000 + 500} if completed else {})}
    info = {"id": f"msg_{number:04}", "role": "assistant", "time": time, "modelID": "large", "providerID": "acme"}
    return {"info": {**info, "path": {"cwd": "/srv/shop", "root": "/srv/shop"}, **more}, "parts": list(parts)}


def session(*messages: dict[str, Any], **info: Any) -> dict[str, Any]:
    facts = {"id": SESSION, "slug": "calm-shop", "projectID": "p1", "directory": "/srv/shop", "title": "Shop tests"}
    return {
        "info": {**facts, "version": "1.2.21", "time": {"created": START, "updated": START}, **info},
        "messages": [_linked(message, info.get("id", SESSION)) for message in messages],
    }


def _linked(message: dict[str, Any], session_id: str) -> dict[str, Any]:
    info = {**message["info"], "sessionID": session_id}
    return {"info": info, "parts": [{**part, "messageID": info["id"]} for part in message["parts"]]}


def two_turns(**info: Any) -> dict[str, Any]:
    """A session with two turns and a call that failed."""
    failed = tool(3, "bash", {"command": "make test"}, output="1 failed", metadata={"exit": 2})
    return session(
        asked(1, text(1, "fix the tests")),
        answered(2, text(2, "I run them."), failed),
        asked(3, text(4, "try again")),
        answered(4, text(5, "Done.")),
        **info,
    )


def export(path: Path, document: dict[str, Any]) -> Path:
    """What `opencode export` writes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2))
    return path


def files(data: Path, document: dict[str, Any]) -> Path:
    """The storage folder of versions before 1.2; returns the session's file."""
    info, storage = document["info"], data / "storage"
    export(storage / "project" / f"{info['projectID']}.json", {"id": info["projectID"], "worktree": "/srv/shop"})
    for message in document["messages"]:
        key = message["info"]["id"]
        export(storage / "message" / info["id"] / f"{key}.json", message["info"])
        for part in message["parts"]:
            export(storage / "part" / key / f"{part['id']}.json", part)
    return export(storage / "session" / info["projectID"] / f"{info['id']}.json", info)


def database(data: Path, document: dict[str, Any]) -> Path:
    """The database of versions from 1.2 on; returns the path by which the session is known."""
    data.mkdir(parents=True, exist_ok=True)
    info = document["info"]
    with sqlite3.connect(data / "opencode.db") as rows:
        rows.executescript(_SCHEMA)
        revert = json.dumps(info["revert"]) if "revert" in info else None
        updated = max(message["info"]["time"]["created"] for message in document["messages"])
        rows.execute("INSERT OR REPLACE INTO project VALUES ('p1', '/srv/shop')")
        rows.execute(
            "INSERT OR REPLACE INTO session VALUES (?, 'p1', ?, ?, ?, ?, ?, ?, ?, ?)",
            [info.get(name) for name in ("id", "parentID", "slug", "directory", "title", "version")]
            + [revert, info["time"]["created"], updated],
        )
        for message in document["messages"]:
            facts, time = message["info"], message["info"]["time"]["created"]
            data_of = {name: value for name, value in facts.items() if name not in ("id", "sessionID")}
            rows.execute(
                "INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)",
                (facts["id"], info["id"], time, time, json.dumps(data_of)),
            )
            for part in message["parts"]:
                content = {name: value for name, value in part.items() if name not in ("id", "messageID")}
                row = (part["id"], facts["id"], info["id"], time, time, json.dumps(content))
                rows.execute("INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
    rows.close()
    return data / "opencode.db" / info["id"]


_SCHEMA = """
CREATE TABLE IF NOT EXISTS project (id text PRIMARY KEY, worktree text NOT NULL);
CREATE TABLE IF NOT EXISTS session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, revert text, time_created integer NOT NULL,
  time_updated integer NOT NULL);
CREATE TABLE IF NOT EXISTS message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE IF NOT EXISTS part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
"""
