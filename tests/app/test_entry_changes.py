"""Changes of single entries: tried on a copy, made, told to be outdated, and taken back."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import taught_homes as taught

from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.errors import BadInput, EntryOutdated
from commonplace.learning import entry_changes
from commonplace.learning.entry_changes import (
    DecideEntry,
    EntryRequest,
    ForgetEntry,
    JoinEntries,
    OrderEntries,
    PinEntry,
    RescopeEntry,
    RewordEntry,
)
from commonplace.memory.edits.edits import NoteRequest
from commonplace.memory.entries import GLOBAL, Entry

SHOP = "github.com/acme/shop"


@asynccontextmanager
async def opened(home: Path) -> AsyncGenerator[Book]:
    environment = {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": taught.NOW}
    async with books.open(environment=environment) as book:
        if not (home / "memories").exists():
            taught.write(home)
            await book.memory.run()
        yield book


async def state(book: Book) -> dict[str, tuple[str, str, bool, bool]]:
    known = [*await book.memory_store.known_entries(), *await book.memory_store.candidates()]
    return {e.entry.id: (e.entry.text, e.entry.scope, e.entry.pinned, e.is_candidate) for e in known}


async def meant(book: Book, words: str) -> str:
    return next(name for name, told in (await state(book)).items() if words in told[0])


async def change(book: Book, request: EntryRequest) -> entry_changes.ChangedEntry:
    known = await entry_changes.find_entry(book.memory_store, request.entry)
    assert known is not None
    return await book.changes.change(request, entry_changes.version(known))


def shown(entry: Entry | None) -> tuple[str, str, bool] | None:
    return None if entry is None else (entry.text, entry.scope, entry.pinned)


REQUESTS: dict[str, Callable[[str, str], EntryRequest]] = {
    "reword": lambda a, b: RewordEntry(a, "Always use bun here, pnpm is history"),
    "rescope": lambda a, b: RescopeEntry(a, GLOBAL),
    "join": JoinEntries,
    "pin": lambda a, b: PinEntry(a, pinned=True),
    "forget": lambda a, b: ForgetEntry(a),
}


@pytest.mark.parametrize("kind", REQUESTS)
async def test_a_preview_changes_nothing_and_tells_what_the_change_then_does(home: Path, kind: str) -> None:
    async with opened(home) as book:
        request: EntryRequest = REQUESTS[kind](await meant(book, "instead of npm"), await meant(book, "push to main"))
        before = await state(book)

        told = await book.changes.preview(request)
        assert await state(book) == before
        await change(book, request)
        after = await state(book)

        expected = {name: told[:3] for name, told in before.items()}
        for each in told:
            if each.before is not None:
                assert expected.pop(each.before.id) == shown(each.before)
            if each.after is not None:
                expected[each.after.id] = (each.after.text, each.after.scope, each.after.pinned)
        assert {name: told[:3] for name, told in after.items()} == expected
        assert after != before


@pytest.mark.parametrize("kind", [kind for kind in REQUESTS if kind != "forget"])
async def test_a_change_that_is_taken_back_leaves_the_memory_as_it_was(home: Path, kind: str) -> None:
    async with opened(home) as book:
        request: EntryRequest = REQUESTS[kind](await meant(book, "instead of npm"), await meant(book, "push to main"))
        before = await state(book)

        changed = await change(book, request)
        await book.changes.undo(changed.undo)

        assert await state(book) == before


async def test_what_was_forgotten_comes_back_as_a_note(home: Path) -> None:
    async with opened(home) as book:
        name = await meant(book, "push to main")
        scope = (await state(book))[name][1]

        changed = await change(book, ForgetEntry(name))
        assert all("push to main" not in told[0] for told in (await state(book)).values())
        await book.changes.undo(changed.undo)

        again = (await state(book))[await meant(book, "push to main")]
        assert again[1] == scope


async def test_an_entry_moves_between_projects_and_back_to_all(home: Path) -> None:
    async with opened(home) as book:
        first = await change(book, RescopeEntry(await meant(book, "short sentences"), SHOP))
        assert first.entry is not None
        assert (await state(book))[first.entry][1] == SHOP

        second = await change(book, RescopeEntry(first.entry, GLOBAL))
        assert second.entry is not None
        assert (await state(book))[second.entry][1] == GLOBAL
        assert sum("short sentences" in told[0] for told in (await state(book)).values()) == 1


async def test_entries_change_places_and_stand_as_before_when_that_is_taken_back(home: Path) -> None:
    async with opened(home) as book:
        await book.memory.note(NoteRequest(text="Ask before adding a package", project=SHOP))
        await book.memory.note(NoteRequest(text="Name branches after the ticket", project=SHOP))
        before = list(await state(book))
        first, second = await meant(book, "adding a package"), await meant(book, "after the ticket")
        first, second = sorted((first, second), key=before.index)

        changed = await change(book, OrderEntries(second, (second, first)))
        after = list(await state(book))
        assert after.index(second) < after.index(first)
        assert changed.entry == second
        await book.changes.undo(changed.undo)

        assert list(await state(book)) == before


async def test_who_saw_an_older_entry_is_told_and_changes_nothing(home: Path) -> None:
    async with opened(home) as book:
        name = await meant(book, "instead of npm")
        known = await entry_changes.find_entry(book.memory_store, name)
        assert known is not None
        seen = entry_changes.version(known)
        first = await book.changes.change(RewordEntry(name, "Always use yarn here"), seen)
        before = await state(book)

        with pytest.raises(EntryOutdated) as refused:
            await book.changes.change(RewordEntry(name, "Always use bun here"), seen)

        assert refused.value.data["now"] == first.entry
        assert await state(book) == before
        assert len(list((home / "memories/extensions/ad_hoc/notes").iterdir())) == 1


async def test_the_command_line_and_the_page_change_the_same_entry_and_no_words_are_lost(home: Path) -> None:
    async with opened(home) as book, opened(home) as other:
        name = await meant(book, "instead of npm")
        known = await entry_changes.find_entry(book.memory_store, name)
        assert known is not None
        await other.memory.note(NoteRequest(text="Always use yarn here", change=name))

        with pytest.raises(EntryOutdated):
            await book.changes.change(RewordEntry(name, "Always use bun here"), entry_changes.version(known))

        assert any("yarn" in told[0] for told in (await state(book)).values())


async def test_a_decision_is_left_open_again(home: Path) -> None:
    async with opened(home) as book:
        waiting = [each.id for each in await book.memory.review()]
        assert waiting

        dropped = await change(book, DecideEntry(waiting[0], "drop"))
        assert waiting[0] not in [each.id for each in await book.memory.review()]
        await book.changes.undo(dropped.undo)

        assert [each.id for each in await book.memory.review()] == waiting


REFUSED: list[Callable[[str], EntryRequest]] = [
    lambda name: RewordEntry(name, " "),
    lambda name: RescopeEntry(name, SHOP),
    lambda name: RescopeEntry(name, "nowhere"),
    lambda name: JoinEntries(name, name),
    lambda name: JoinEntries(name, "m000000000"),
    lambda name: OrderEntries(name, (name, "m000000000")),
    lambda _: RewordEntry("m000000000", "other words"),
]


@pytest.mark.parametrize("request_of", REFUSED)
async def test_what_cannot_be_done_is_refused_and_leaves_everything(
    home: Path, request_of: Callable[[str], EntryRequest]
) -> None:
    async with opened(home) as book:
        request: EntryRequest = request_of(await meant(book, "instead of npm"))
        before = await state(book)

        with pytest.raises(BadInput):
            await book.changes.preview(request)

        assert await state(book) == before
