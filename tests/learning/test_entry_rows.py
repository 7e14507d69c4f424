"""The rows that mirror a memory can be written whatever it holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commonplace.learning.consolidate import entry_rows
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory
from commonplace.memory.entries import Entry, Source
from commonplace.state.sqlite import SqliteDatabase


@pytest.mark.anyio
async def test_candidates_in_the_same_words_are_one_row(tmp_path: Path) -> None:
    found = [
        Entry(name, "global", "rule", name, 1, [Source(name, "said by the user", thread)], 0, 0)
        for name, thread in (("m1", "a"), ("m2", "b"), ("m1", "c"))
    ]
    database = await SqliteDatabase.open(tmp_path / "state.sqlite")
    memory = ConsolidatedMemory(found[1:2], [], [], [], candidates=found)
    await database.write(lambda tx: entry_rows.write(tx, "home", memory, "made of it"))
    rows = [
        row
        for name in ("m1", "m2")
        for row in await database.read(lambda tx, name=name: tx.query("entries.get", root="home", entry_id=name))
    ]
    await database.close()

    assert [("m1", 1, "a"), ("m2", 0, "b")] == [
        (row["entry_id"], row["is_candidate"], json.loads(row["sources"])[0]["thread_id"]) for row in rows
    ]
