"""What screens show of a memory: one entry's life, the overview, the pipeline, and a prompt line by line."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import taught_homes as taught

from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.learning import overview, pipeline
from commonplace.memory import life
from commonplace.memory.edits.edits import NoteRequest
from commonplace.memory.recall import prompt_lines
from commonplace.state import usage
from commonplace.state.usage import SpentTotals
from ledgers import Script, assistant, message, user

SHOP = "github.com/acme/shop"


@asynccontextmanager
async def opened(home: Path) -> AsyncGenerator[Book]:
    environment = {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": taught.NOW}
    taught.write(home)
    async with books.open(environment=environment) as book:
        await book.memory.run()
        yield book


async def meant(book: Book, words: str) -> str:
    return next(each.id for each in await book.memory.entries() if words in each.text)


async def test_an_entry_tells_its_whole_life(home: Path) -> None:
    async with opened(home) as book:
        name = await meant(book, "instead of npm")
        await book.memory.prompt(project=SHOP)

        found = await life.life(book.memory_store, name)

        assert found is not None
        assert [(each.role, taught.PNPM in each.message) for each in found.sources] == [("user", True)]
        assert taught.PNPM in found.sources[0].link.quote
        assert [(each.use, each.count) for each in found.uses] == [("injected", 1)]
        assert [each.what for each in found.moments] == ["taught", "changed", "injected"]


async def test_an_entry_that_is_gone_still_tells_what_became_of_it(home: Path) -> None:
    async with opened(home) as book:
        name = await meant(book, "instead of npm")
        await book.memory.note(NoteRequest(text="Always use bun here", change=name))

        found = await life.life(book.memory_store, name)

        assert found is not None
        assert found.known is None
        assert found.changes[-1].after is None
        assert await life.life(book.memory_store, "m000000000") is None


async def test_the_words_of_an_entry_are_found_where_they_were_said_told_and_repeated(home: Path) -> None:
    async with opened(home) as book:
        name = await meant(book, "instead of npm")
        told = (await book.memory.prompt(project=SHOP)).text
        script = Script("0198c0de-0000-7000-8000-0000000000c1", cwd="/repo/shop")
        script.turn(message("developer", told), user("hello"), assistant(f"I know: {taught.PNPM}")).write_home(home)
        await (await book.state.index()).refresh(home)
        known = await book.memory_store.summary(0, [name])
        assert known is not None

        found = await life.appearances(book.memory_store, known.named[0].entry)

        assert [(each.what, each.thread_id) for each in found] == [
            ("answered", script.thread_id),
            ("told", script.thread_id),
            ("said", taught.SHOP),
        ]


async def test_the_overview_counts_what_lists_show(home: Path) -> None:
    async with opened(home) as book:
        await book.memory.prompt(project=SHOP)
        waiting = [each.id for each in await book.memory.review()]
        entries = await book.memory.entries()

        found = await overview.overview(book.memory_store)

        assert (found.entries, found.waiting) == (len(entries), len(waiting))
        assert found.changes == {"came": len(entries)}
        assert {each.known.entry.id for each in found.told} <= {each.id for each in entries}
        assert found.told
        assert [each.entry.first_seen_s for each in found.learned] == sorted(
            (each.entry.first_seen_s for each in found.learned), reverse=True
        )
        await book.memory.decide(waiting, "drop")
        assert (await overview.overview(book.memory_store)).waiting == 0


async def test_the_overview_of_files_without_rows_is_the_same(home: Path) -> None:
    async with opened(home) as book:
        before = await overview.overview(book.memory_store)
    for path in home.glob("state.sqlite*"):
        path.unlink()
    environment = {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": taught.NOW}
    async with books.open(environment=environment) as book:
        found = await overview.overview(book.memory_store)

    assert found.entries == before.entries
    assert {each.entry.id for each in found.learned} == {each.entry.id for each in before.learned}


async def test_the_pipeline_says_what_is_not_read_and_what_was_spent(home: Path) -> None:
    async with opened(home) as book:
        now = book.state.now_s()
        database = await book.state.database()
        for day, tokens in ((0, 70), (2, 30), (90, 5)):
            at = now - day * 86_400
            cost = SpentTotals(1, tokens, 0)
            await database.write(lambda tx, at=at, cost=cost: usage.spend(tx, "memory_stage1", cost, now=at))

        found = await pipeline.pipeline(book.state)

        assert found.waiting == 0
        assert [(each.reason, each.count) for each in found.unread] == [("already_learned", 2)]
        assert [each.tokens for each in found.spent] == [30, 70]
        assert found.budgets[0].today.tokens == 70
        assert found.jobs == []


@pytest.mark.parametrize("exclude", ["", "*/nowhere/*"])
async def test_sessions_alike_are_counted_as_one_by_one(home: Path, exclude: str) -> None:
    async with opened(home) as book:
        await book.memory.set_mode(taught.BLOG, "disabled")
        if exclude:
            (home / "config.toml").write_text(f'[memory]\nexclude = ["{exclude}"]\n', "utf-8")
        Script("0198c0de-0000-7000-8000-0000000000c1", cwd="/repo/new").turn(user("hello there")).write_home(home)
    environment = {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": taught.NOW}
    async with books.open(environment=environment) as book:
        await (await book.state.index()).refresh(home)

        found = await pipeline.pipeline(book.state)

        assert found.waiting == 1
        assert {each.reason: each.count for each in found.unread} == {"already_learned": 1, "disabled": 1}


async def test_a_prompt_is_told_line_by_line_with_its_reasons(home: Path) -> None:
    async with opened(home) as book:
        name = await meant(book, "instead of npm")
        await book.memory.pin(name)
        told = await book.memory.prompt(project=SHOP, count=False)
        entries = [each.entry for each in await book.memory_store.known_entries()]

        lines = prompt_lines.explained(told, entries, str)

        assert "\n".join(line.text for line in lines) == told.text
        assert {line.entry for line in lines if line.entry} == set(told.included)
        assert {line.reason for line in lines if line.entry == name} == {"you pinned it"}
        assert abs(sum(line.tokens for line in lines) - told.tokens) <= len(lines)
