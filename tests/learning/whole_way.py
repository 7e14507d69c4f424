"""Sessions imported and learned from, the whole way, and what the memory then holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import msgspec
from learners import NOW, environment

from commonplace.app import book as books
from commonplace.learning import run
from commonplace.learning.evaluate import cases, files
from commonplace.learning.evaluate.cases import Case, CaseSession
from commonplace.memory.entries import Source
from commonplace.state import entries
from commonplace.state.database import Row

SHOP = "/home/ada/shop"
_SOURCES = msgspec.json.Decoder(list[Source])


class Remembered(msgspec.Struct):
    """What a memory holds."""

    listed: list[Row]
    candidates: list[Row]
    handbook: str
    """`MEMORY.md`."""

    def lines(self, *kinds: str) -> list[str]:
        """Return the texts of the entries that are listed, of some kinds or all."""
        return [row["text"] for row in self.listed if not kinds or row["kind"] in kinds]

    def all_lines(self) -> list[str]:
        """Return the texts of the entries and the candidates."""
        return [row["text"] for row in (*self.listed, *self.candidates)]

    def sources(self) -> list[Source]:
        """Return the sources of all entries and candidates."""
        return [each for row in (*self.listed, *self.candidates) for each in _SOURCES.decode(row["sources"])]


def said(text: str) -> dict[str, Any]:
    return {"user": text}


def answered(text: str = "Done.") -> dict[str, Any]:
    return {"assistant": text}


def ran(command: str, code: int = 0, output: str = "") -> dict[str, Any]:
    return {"call": "shell", "command": command, "exit": code, "output": output}


def session(*events: dict[str, Any], agent: str = "claude", cwd: str = SHOP, days_ago: float = 1) -> CaseSession:
    return CaseSession(agent, cwd, list(events), days_ago=days_ago)


async def remember(folder: Path, *sessions: CaseSession) -> Remembered:
    """Import sessions and learn from them as a person who types `learn` does."""
    for number, each in enumerate(sessions):
        files.write(Case(f"case-{number}", "", [each], cases.ExpectedLessons()), folder, NOW)
    async with books.open(environment=environment(folder / "home", "sqlite")) as book:
        homes = [("codex", folder / "codex"), ("claude-code", folder / "claude")]
        await book.importer.run([(agent, home) for agent, home in homes if home.is_dir()])
        await run.run(book.state)
        key, database = book.state.key, await book.state.database()
        listed = await database.read(lambda tx: entries.everything(tx, key))
        candidates = await database.read(lambda tx: entries.everything(tx, key, candidates=True))
    handbook = folder / "home" / "memories" / "MEMORY.md"
    return Remembered(listed, candidates, handbook.read_text("utf-8") if handbook.is_file() else "")


def words_at(path: Path, start: int, end: int) -> str:
    """Return all texts that a line of a ledger holds between two bytes, also those of JSON within them."""
    return "\n".join(_strings(json.loads(path.read_bytes()[start:end])))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value, *_strings(json.loads(value))] if value.startswith("{") else [value]
    held = cast("dict[str, Any]", value).values() if isinstance(value, dict) else ()
    held = cast("list[Any]", value) if isinstance(value, list) else held
    return [text for each in held for text in _strings(each)]
