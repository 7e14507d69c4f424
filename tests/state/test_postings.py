"""Shelves of segments, on both databases: what is taken in is found, what is dropped is not, merging loses nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

import anyio
import pytest

from commonplace.search import index
from commonplace.search.index import NewDocument, SearchIndex
from commonplace.search.rank import analysis
from commonplace.search.rank.build import Passage
from commonplace.search.rank.score import rank
from commonplace.state import postings
from commonplace.state.database import Database
from commonplace.state.postings import DocumentStamp

pytestmark = pytest.mark.anyio
ROOT = "/home/someone/.commonplace"


def item(name: str, *texts: str, size: int = 1) -> NewDocument:
    return NewDocument(DocumentStamp(name, size, 1), lambda: [Passage(text, place) for place, text in enumerate(texts)])


async def ask(database: Database, question: str, kept: SearchIndex | None = None) -> list[str]:
    """Return the documents that answer, the best first."""
    opened = kept or SearchIndex(database, ROOT)
    index = (await opened.open_for_query("sessions", question)).index
    return [index.document(number).id for number in rank(index, question, limit=100).passages]


async def test_what_is_taken_in_is_found(database: Database) -> None:
    count = await index.add_documents(
        database, ROOT, "sessions", [item("a", "a blue lamp", "ok"), item("b", "a river")]
    )
    assert count == 3
    assert await ask(database, "lamp") == ["a", "a"]
    assert await ask(database, "river") == ["b"]
    assert await ask(database, "lake") == []


async def test_a_document_that_is_taken_in_again_is_found_once_in_its_new_state(database: Database) -> None:
    await index.add_documents(database, ROOT, "sessions", [item("a", "a blue lamp"), item("b", "a river")])
    await index.add_documents(database, ROOT, "sessions", [item("a", "a green lamp", size=2)])
    assert await ask(database, "lamp") == ["a"]
    assert await ask(database, "blue") == []
    assert await ask(database, "river") == ["b"]
    stamps = await database.read(lambda tx: postings.stamps(tx, ROOT, "sessions"))
    assert stamps["a"].size == 2


async def test_a_dropped_document_is_not_found_and_its_postings_go_in_time(database: Database) -> None:
    await index.add_documents(database, ROOT, "sessions", [item("a", "a blue lamp"), item("b", "a river")])
    assert await database.write(lambda tx: postings.drop(tx, ROOT, "sessions", ["a", "never-there"])) == 1
    assert await ask(database, "lamp") == []
    assert await ask(database, "river") == ["b"]
    await index.merge_segments(database, ROOT, "sessions")
    rows = await database.read(lambda tx: postings.sizes(tx, ROOT, "sessions"))
    assert [(row["passages"], row["gone"], row["live"]) for row in rows] == [(1, 0, 1)]
    assert await ask(database, "river") == ["b"]


async def test_an_open_shelf_sees_what_comes_and_goes(database: Database) -> None:
    kept = SearchIndex(database, ROOT)
    assert await ask(database, "lamp", kept) == []
    await index.add_documents(database, ROOT, "sessions", [item("a", "a lamp")])
    assert await ask(database, "lamp", kept) == ["a"]
    same = await kept.open("sessions")
    assert await kept.open("sessions") is same
    await database.write(lambda tx: postings.drop(tx, ROOT, "sessions", ["a"]))
    assert await ask(database, "lamp", kept) == []


async def test_homes_and_shelves_do_not_see_each_other(database: Database) -> None:
    await index.add_documents(database, ROOT, "sessions", [item("a", "a lamp")])
    await index.add_documents(database, ROOT, "memory", [item("a", "a river")])
    await index.add_documents(database, "/elsewhere", "sessions", [item("a", "a mountain")])
    assert await ask(database, "lamp river mountain") == ["a"]
    await database.write(lambda tx: postings.clear(tx, ROOT, "memory"))
    assert await ask(database, "lamp") == ["a"]


async def test_segments_of_other_rules_are_made_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await index.add_documents(database, ROOT, "sessions", [item("a", "a lamp")])
    monkeypatch.setattr(analysis, "VERSION", analysis.VERSION + 1)
    assert await ask(database, "lamp") == []
    assert await database.write(lambda tx: postings.remove_outdated(tx, ROOT, "sessions", analysis.VERSION)) == 1
    assert await database.read(lambda tx: postings.stamps(tx, ROOT, "sessions")) == {}


async def test_a_document_that_cannot_be_read_is_taken_in_as_empty(database: Database) -> None:
    def broken() -> Sequence[Passage]:
        raise OSError("gone")

    await index.add_documents(
        database, ROOT, "sessions", [NewDocument(DocumentStamp("a", 1, 1), broken), item("b", "a lamp")]
    )
    assert await ask(database, "lamp") == ["b"]
    assert set(await database.read(lambda tx: postings.stamps(tx, ROOT, "sessions"))) == {"a", "b"}


async def test_many_small_pieces_become_few_segments_that_answer_the_same(database: Database) -> None:
    words = ["lamp", "river", "socket", "flaky", "token"]
    rng = random.Random(7)
    documents = {f"d{n}": " ".join(rng.choices(words, k=4)) + f" number{n}" for n in range(40)}
    for name, text in documents.items():
        await index.add_documents(database, ROOT, "sessions", [item(name, text)])
    rows = await database.read(lambda tx: postings.sizes(tx, ROOT, "sessions"))
    assert len(rows) < 8
    assert sum(row["live"] for row in rows) == 40
    for name in documents:
        assert (await ask(database, f"number{name[1:]}"))[0] == name


async def test_a_drop_during_a_merge_is_not_lost(database: Database) -> None:
    for name in "abc":
        await index.add_documents(database, ROOT, "sessions", [item(name, f"lamp {name * 3}")])
    rows = await database.read(lambda tx: postings.sizes(tx, ROOT, "sessions"))
    gone = {row["segment_id"]: 0 for row in rows}
    await database.write(lambda tx: postings.drop(tx, ROOT, "sessions", ["b"]))
    empty = postings.StoredSegment(analysis.VERSION, 0, 0, b"", [])
    merged = postings.Merged(empty, {}, gone)
    assert not await database.write(lambda tx: postings.replace(tx, ROOT, "sessions", merged))
    assert sorted(await ask(database, "lamp")) == ["a", "c"]


async def test_several_at_once_leave_one_live_copy_of_each(database: Database) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            items = [item(f"d{n}", f"lamp number{n}") for n in range(10)]
            tasks.start_soon(index.add_documents, database, ROOT, "sessions", items)
    assert sorted(await ask(database, "lamp")) == sorted(f"d{n}" for n in range(10))


async def test_a_shelf_whose_segments_are_merged_between_opening_and_asking_is_opened_again(database: Database) -> None:
    kept = SearchIndex(database, ROOT)
    for name in "abc":
        await index.add_documents(database, ROOT, "sessions", [item(name, f"lamp {name * 3}")])
    await kept.open("sessions")
    merged = SearchIndex(database, ROOT)
    real = kept.open

    async def late(shelf: postings.Shelf) -> index.OpenIndex:
        found = await real(shelf)
        if not merged_already:
            merged_already.append(1)
            await index.add_documents(database, ROOT, "sessions", [item("d", "lamp ddd")])
        return found

    merged_already: list[int] = []
    kept.open = late
    assert sorted(await ask(database, "lamp", kept)) == ["a", "b", "c", "d"]
    assert sorted(await ask(database, "lamp", merged)) == ["a", "b", "c", "d"]
