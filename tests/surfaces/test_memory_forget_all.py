"""Whatever was learned can be forgotten: every entry of some gold sessions, one after the other, without a trace."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import pytest
import taught_homes as taught

from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.learning.evaluate import cases, files
from commonplace.memory.listing import Listed
from commonplace.memory.why import Why
from commonplace.sessions import imports

NOW = "2026-11-15T12:00:00+00:00"
SPOKEN = ("preference", "rule", "decision", "environment")


def wordings(entry: Listed, why: Why) -> list[str]:
    """Return how an entry was said, and how it is told."""
    said: list[str] = []
    if entry.kind in SPOKEN:  # what commands printed may have been printed elsewhere, too
        said = [*(link.quote.rstrip("…") for link in why.chain), *re.findall(r'"([^"]{8,})"', entry.text)]
    texts = {entry.text.strip('"'), *said}
    return [form for text in texts for form in {text, json.dumps(text)[1:-1]}]


async def learned(book: Book, folder: Path, count: int) -> None:
    for case in cases.bundled()[:count]:
        files.write(case, folder, datetime.fromisoformat(NOW))
    for name, source in (("codex", "codex"), ("claude", "claude-code")):
        if (folder / name).is_dir():
            await book.importer.run(imports.choose(source, [folder / name], book.state.environment))
    await book.memory.run()


async def forget_everything(home: Path, folder: Path, count: int) -> int:
    """Forget entry by entry from the middle of the list; return how many there were."""
    forgotten = 0
    async with books.open() as book:
        await learned(book, folder, count)
        while found := (await book.memory.list(limit=10_000)).entries:
            entry = found[len(found) // 2]
            why = await book.memory.why(entry.id)
            foretold = await book.memory.forget(entry.id, dry_run=True)
            done = await book.memory.forget(entry.id)
            assert foretold == done
            assert entry.id in done.removed
            assert [] == taught.traces(home, *wordings(entry, why))
            forgotten += 1
        assert (await book.memory.run()).consolidation.status == "unchanged"
    return forgotten


async def test_every_entry_of_some_sessions_can_be_forgotten(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", NOW)

    assert await forget_everything(home, tmp_path / "sources", 5) > 4


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_every_entry_of_many_sessions_can_be_forgotten(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", NOW)

    assert await forget_everything(home, tmp_path / "sources", 60) > 40
