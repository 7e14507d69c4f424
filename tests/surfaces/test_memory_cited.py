"""What an answer cites and what tools give out is counted once, if it exists; a failing database costs the count."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import taught_homes as taught

from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.memory.recall import usage_counts
from commonplace.memory.recall.usage_counts import CitationReceipt, UnknownCitation
from commonplace.protocol.citations import CLOSE, OPEN, Citation, CitedEntry
from commonplace.state import outputs

SHOP = "github.com/acme/shop"
NOBODY = "0198c0de-0000-7000-8000-00000000dead"


@pytest.fixture(params=["sqlite", "postgres"])
async def book(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Book]:
    """A book that has learned, on either database."""
    address = "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))
    monkeypatch.setenv("COMMONPLACE_DATABASE", address)
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    taught.write(home)
    async with books.open() as opened:
        await opened.memory.run()
        yield opened


def line_of(book: Book, words: str, path: str = "MEMORY.md") -> int:
    lines = (book.home / "memories" / path).read_text("utf-8").split("\n")
    return next(number for number, line in enumerate(lines, 1) if words in line)


async def id_of(book: Book, words: str) -> str:
    (found,) = [each.id for each in (await book.memory.list()).entries if words in each.text]
    return found


async def counts(book: Book, use: str) -> dict[str, int]:
    """How often each entry and what each thread taught was used."""
    found = {each.id: int(getattr(each, use)) for each in (await book.memory.list()).entries}
    database = await book.state.database()
    for key in (taught.SHOP, taught.BLOG):
        row = await database.read(lambda tx, key=key: outputs.get(tx, key))
        found[key] = int(row[use]) if row is not None else -1
    return {name: count for name, count in found.items() if count}


def block(*lines: str, ids: tuple[str, ...] = ()) -> str:
    entries = "\n".join(lines)
    listed = "\n".join(ids)
    return (
        f"{OPEN}\n<citation_entries>\n{entries}\n</citation_entries>\n<rollout_ids>\n{listed}\n</rollout_ids>\n{CLOSE}"
    )


async def test_a_cited_line_counts_its_entry_and_who_taught_it_once(book: Book) -> None:
    pnpm, number = await id_of(book, taught.PNPM), line_of(book, taught.PNPM)
    line = f"MEMORY.md:{number}-{number}|note=[pnpm]"
    receipt = await book.memory.cited(f"Done.\n{block(line, line, ids=(taught.SHOP, taught.SHOP.upper()))}")

    assert receipt == CitationReceipt([pnpm], [taught.SHOP], [])
    assert await counts(book, "cited") == {pnpm: 1, taught.SHOP: 1}
    await book.memory.cited(block(line))
    assert await counts(book, "cited") == {pnpm: 2, taught.SHOP: 2}
    assert await counts(book, "retrieved") == await counts(book, "injected") == {}


async def test_a_cited_session_counts_what_it_taught(book: Book) -> None:
    (summary,) = [path for path in (book.home / "memories" / "rollout_summaries").iterdir() if "zanzibar" in path.name]
    place = f"rollout_summaries/{summary.name}"
    receipt = await book.memory.cited(Citation([CitedEntry(place, 1, 1, "")], []))

    assert receipt == CitationReceipt([], [taught.BLOG], [])
    assert await counts(book, "cited") == {taught.BLOG: 1}


async def test_what_does_not_exist_is_told_and_counts_nothing(book: Book) -> None:
    blank = next(
        number
        for number, line in enumerate((book.home / "memories" / "MEMORY.md").read_text("utf-8").split("\n"), 1)
        if not line
    )
    said = block(
        "nowhere.md:1-2|note=[a]",
        "MEMORY.md:100000-100001|note=[b]",
        f"MEMORY.md:{blank}-{blank}|note=[c]",
        "../../etc/passwd:1-1|note=[d]",
        "nowhere.md:1-2|note=[again]",
        ids=("not an id", NOBODY),
    )
    receipt = await book.memory.cited(said)

    assert (receipt.entries, receipt.threads) == ([], [])
    assert receipt.unknown == [
        UnknownCitation(reason="no_such_file", path="nowhere.md", lines="1-2"),
        UnknownCitation(reason="no_such_lines", path="MEMORY.md", lines="100000-100001"),
        UnknownCitation(reason="blank_lines", path="MEMORY.md", lines=f"{blank}-{blank}"),
        UnknownCitation(reason="no_such_file", path="../../etc/passwd", lines="1-1"),
        UnknownCitation(reason="not_an_id", id="not an id"),
        UnknownCitation(reason="no_such_thread", id=NOBODY),
    ]
    assert await counts(book, "cited") == {}
    written = msgspec.to_builtins(receipt)
    assert written["unknown"][0] == {"reason": "no_such_file", "path": "nowhere.md", "lines": "1-2"}


async def test_an_answer_that_cites_nothing_costs_nothing(book: Book) -> None:
    assert await book.memory.cited("plain") == CitationReceipt()
    assert await book.memory.cited(f"{OPEN}nonsense{CLOSE}") == CitationReceipt()


async def test_what_a_tool_gave_out_is_retrieved_once_for_each_call(book: Book) -> None:
    pnpm, number = await id_of(book, taught.PNPM), line_of(book, taught.PNPM)
    receipt = await usage_counts.count_retrieved(
        book.memory_store, [("MEMORY.md", number, number), ("MEMORY.md", number, number)]
    )

    assert receipt == CitationReceipt([pnpm], [], [])
    assert await counts(book, "retrieved") == {pnpm: 1, taught.SHOP: 1}
    assert await usage_counts.count_retrieved(book.memory_store, []) == CitationReceipt()


async def test_a_scoped_reader_retrieves_nothing_of_others(book: Book) -> None:
    last = len((book.home / "memories" / "MEMORY.md").read_text("utf-8").splitlines())
    receipt = await usage_counts.count_retrieved(book.memory_store, [("MEMORY.md", 1, last)], scope=SHOP)
    scopes = {each.id: each.scope for each in (await book.memory.list()).entries}

    assert {scopes[each] for each in receipt.entries} == {SHOP, "global"}
    everything = await usage_counts.count_retrieved(book.memory_store, [("MEMORY.md", 1, last)])
    assert set(everything.entries) == set(scopes)
    assert set(everything.threads) == {taught.BLOG, taught.SHOP}


async def test_without_a_database_files_tell_what_was_cited(book: Book, home: Path) -> None:
    pnpm, number = await id_of(book, taught.PNPM), line_of(book, taught.PNPM)
    said = block(f"MEMORY.md:{number}-{number}|note=[x]", ids=(taught.SHOP, NOBODY))
    await book.close()
    (home / "state.sqlite").unlink(missing_ok=True)
    async with books.open(environment={"COMMONPLACE_HOME": str(home)}) as other:
        receipt = await other.memory.cited(said)

    assert (receipt.entries, receipt.threads) == ([pnpm], [taught.SHOP])
    assert [each.reason for each in receipt.unknown] == ["no_such_thread"]
    assert not (home / "state.sqlite").exists()


async def test_a_locked_database_costs_a_warning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    taught.write(home)
    async with books.open() as first:
        await first.memory.run()
        number = line_of(first, taught.PNPM)
    warnings: list[str] = []
    async with books.open(warn=warnings.append) as book:
        await book.memory.list()
        holder = sqlite3.connect(home / "state.sqlite", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        try:
            receipt = await book.memory.cited(block(f"MEMORY.md:{number}-{number}|note=[x]"))
        finally:
            holder.rollback()
            holder.close()

    assert len(receipt.entries) == 1
    assert len(warnings) == 1
    assert "could not be counted" in warnings[0]


def claude_line(number: int, role: str, text: str) -> bytes:
    record = {
        "type": role,
        "uuid": f"{number:08x}-0000-4000-8000-000000000000",
        "parentUuid": f"{number - 1:08x}-0000-4000-8000-000000000000" if number else None,
        "sessionId": "6ac42589-1bd0-4e41-b0ff-ba06dc9add47",
        "timestamp": "2026-11-15T06:00:00.000Z",
        "cwd": "/repo/shop",
        "message": {"role": role, "id": f"msg_{number}", "model": "m", "content": [{"type": "text", "text": text}]},
    }
    return json.dumps(record).encode() + b"\n"


@pytest.mark.parametrize("since", ["told", "changed"])
async def test_entries_that_imported_answers_cite_count_once_if_the_memory_is_the_one_they_saw(
    book: Book, tmp_path: Path, since: str
) -> None:
    pnpm, number = await id_of(book, taught.PNPM), line_of(book, taught.PNPM)
    line = f"MEMORY.md:{number}-{number}|note=[x]"
    memory = book.home / "memories" / "MEMORY.md"
    path = tmp_path / "6ac42589-1bd0-4e41-b0ff-ba06dc9add47.jsonl"
    path.write_bytes(
        claude_line(0, "user", "hello")
        + claude_line(1, "assistant", f"Done.{block(line, line, 'nowhere.md:1-1|note=[y]', ids=(taught.SHOP,))}")
    )
    seconds = memory.stat().st_mtime + (60 if since == "told" else -60)
    os.utime(path, (seconds, seconds))
    for _ in range(2):
        await book.sessions.import_("claude-code", [path])
        assert await counts(book, "cited") == ({pnpm: 1, taught.SHOP: 1} if since == "told" else {taught.SHOP: 1})

    path.write_bytes(path.read_bytes() + claude_line(2, "user", "on") + claude_line(3, "assistant", block(line)))
    os.utime(path, (seconds + 1, seconds + 1))
    await book.sessions.import_("claude-code", [path])
    assert await counts(book, "cited") == ({pnpm: 2, taught.SHOP: 2} if since == "told" else {taught.SHOP: 1})
