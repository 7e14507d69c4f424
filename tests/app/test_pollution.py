"""Sessions that read from outside: memory lets go of them where settings ask for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from beginnings import BLOG, SHOP, Beside, make_beside

from commonplace.app.book import Book
from commonplace.models.scripted import ScriptedModel, answer, call, say
from ledgers import Script, assistant, function_call, function_output, user
from waiting import until

Json = dict[str, Any]
PROJECTS = {"github.com/acme/shop", "github.com/acme/blog"}
SHUN = {"memory_disable_on_external_context": "true"}
SEARCH: Json = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "pnpm"},
}
FOUND: Json = {"type": "tool_search_output", "call_id": "t1", "status": "completed", "execution": "server", "tools": []}
ASKED: Json = {"type": "tool_search_call", "call_id": "t1", "execution": "server", "arguments": {}}
UNASKED: Json = {"type": "function_call_output", "output": "a page"}


def called(name: str, namespace: str | None = None) -> list[Json]:
    call = function_call("c1", name)
    return [{**call, "namespace": namespace} if namespace else call, function_output("c1")]


def noted(script: Script) -> Script:
    return script.line("commonplace", {"kind": "external", "turn_id": "turn-1", "source": "mcp", "tool": "mcp__a__b"})


ITEMS: dict[str, tuple[list[Json], bool]] = {
    "a search of the web": ([SEARCH], True),
    "a search for tools": ([ASKED], True),
    "what a search for tools found": ([FOUND], True),
    "an output that nobody called for": ([UNASKED], True),
    "an output whose call has no name": ([{**UNASKED, "call_id": None}], True),
    "a server's tool": (called("add", "mcp__friend"), True),
    "a server's tool as Claude Code writes it": (called("mcp__friend__add"), True),
    "a server's tool as Gemini writes it": (called("mcp_friend_add"), True),
    "a page that Claude Code read": (called("WebFetch"), True),
    "a search by Gemini": (called("google_web_search"), True),
    "a command": (called("exec_command"), False),
    "a command about a server": ([function_call("c1", arguments='{"cmd": "grep \\"mcp__\\" x"}')], False),
    "our own memory, as a server": (called("mcp__commonplace__search"), False),
    "our own memory, by its namespace": (called("search", "mcp__commonplace"), False),
    "words about the web": ([user('"web_search_call"'), assistant('"mcp__a__b"')], False),
}


@pytest.fixture
def beside(tmp_path: Path) -> Beside:
    """A home with two sessions, in which nothing is learned but when it is asked for."""
    return make_beside(tmp_path, background=False)


async def modes(book: Book) -> dict[str, str]:
    await (await book.state.index()).refresh(book.home)
    return {row.thread_id: row.memory_mode for row in (await book.sessions.list()).threads}


@pytest.mark.parametrize("setting", ["true", "false"])
@pytest.mark.parametrize("what", ITEMS)
async def test_a_ledger_tells_of(tmp_path: Path, what: str, setting: str) -> None:
    items, expected = ITEMS[what]
    script = Script(SHOP).turn(user("fix it"), *items, assistant("Done."))
    script.write_home(tmp_path / "home")
    async with Beside(tmp_path, background=False).open(memory_disable_on_external_context=setting) as book:
        found = await modes(book)

    assert {SHOP: "polluted" if expected and setting == "true" else "enabled"} == found


async def test_a_fork_has_what_its_parent_had(beside: Beside) -> None:
    noted(Script(SHOP).turn(user("fix it"), assistant("Done."))).write_home(beside.home)
    async with beside.open(**SHUN) as book:
        fork = (await book.sessions.fork(SHOP)).thread_id
        found = await modes(book)

    assert {SHOP: "polluted", BLOG: "enabled", fork: "polluted"} == found


async def test_rows_that_are_made_anew_are_marked_again_unless_a_person_decided_since(beside: Beside) -> None:
    noted(Script(SHOP).turn(user("fix it"), assistant("Done."))).write_home(beside.home)
    noted(Script(BLOG).turn(user("fix it"), assistant("Done."))).write_home(beside.home)
    async with beside.open(**SHUN) as book:
        assert {SHOP: "polluted", BLOG: "polluted"} == await modes(book)
        await book.memory.set_mode(BLOG, "enabled")
        assert {SHOP: "polluted", BLOG: "enabled"} == await modes(book)

        await (await book.state.index()).refresh(book.home, rebuild=True)
        assert {SHOP: "polluted", BLOG: "enabled"} == await modes(book)


async def learned(book: Book) -> set[str | None]:
    """Return the projects that the memory has something of."""
    return {entry.project for entry in (await book.memory.list()).entries if entry.scope != "global"}


async def taught(beside: Beside) -> None:
    """Let both sessions be learned from."""
    async with beside.open() as book:
        report = await book.memory.run()
        assert 2 == report.extracted
        assert PROJECTS == await learned(book)


async def resumed(beside: Beside, book: Book, *script: Any) -> None:
    wishes: Json = {"cwd": beside.root, "speaker": ScriptedModel(*script), "model": "openai:gpt-5.5"}
    thread = await book.resume(SHOP, sandbox="danger-full-access", approval="never", **wishes)
    await thread.turn("Look it up.")
    await thread.close()


async def test_what_a_session_taught_goes_when_it_reads_from_outside_and_the_rest_stays(
    beside: Beside, database_address: str
) -> None:
    async with beside.open(database=database_address) as book:
        await book.memory.run()
        assert PROJECTS == await learned(book)
    async with beside.open(database=database_address, **SHUN) as book:
        await resumed(beside, book, answer(SEARCH, say("Found.")))
        assert {SHOP: "polluted", BLOG: "enabled"} == await modes(book)
        status = await book.memory.status()
        assert ({"polluted": 1, "enabled": 1}, 2) == (status.threads, status.selected)
        assert 1 == status.jobs["pending"]

        report = await book.memory.run()

        assert 0 == report.extracted
        assert report.consolidation.removed > 0
        assert {"github.com/acme/blog"} == await learned(book)
        assert 1 == (await book.memory.status()).selected
        prompt = (await book.memory.prompt(project="github.com/acme/shop")).text
    memory = (beside.home / "memories" / "MEMORY.md").read_text()
    assert "pnpm" not in memory + prompt
    assert "release branch" in memory


async def test_where_settings_allow_it_nothing_happens(beside: Beside) -> None:
    await taught(beside)
    async with beside.open() as book:
        await resumed(beside, book, answer(SEARCH, say("Found.")))

        assert {SHOP: "enabled", BLOG: "enabled"} == await modes(book)
        assert "unchanged" == (await book.memory.run()).consolidation.status
        assert PROJECTS == await learned(book)


async def marked(book: Book) -> None:
    """Return when a session is marked, as far as the database knows."""
    database, home = await book.state.database(), str(book.home.resolve())

    async def is_marked() -> bool:
        rows = await database.read(lambda tx: tx.query("threads.current", home=home))
        return "polluted" in [row["memory_mode"] for row in rows]

    await until(is_marked)


async def test_a_session_is_marked_while_its_turn_goes_on(beside: Beside) -> None:
    fifo = beside.root / "fifo"
    os.mkfifo(fifo)
    waits = call("shell", {"command": f"cat {fifo}"}, "c1")
    async with beside.open(**SHUN) as book, anyio.create_task_group() as tasks:
        await modes(book)
        tasks.start_soon(resumed, beside, book, answer(SEARCH, waits), answer(say("Found.")))
        with anyio.fail_after(60):
            await marked(book)
            await anyio.Path(fifo).write_text("go on")

    async with beside.open(**SHUN) as book:
        assert {SHOP: "polluted", BLOG: "enabled"} == await modes(book)


async def test_a_consolidation_is_asked_for_each_time(beside: Beside) -> None:
    await taught(beside)
    async with beside.open(**SHUN) as book:
        await resumed(beside, book, answer(SEARCH, say("Found.")))
        before = await watermark(book)
        await resumed(beside, book, answer(SEARCH, say("Found.")))

        assert {SHOP: "polluted", BLOG: "enabled"} == await modes(book)
        assert await watermark(book) > before


async def watermark(book: Book) -> int:
    database, key = await book.state.database(), str(book.home.resolve())
    rows = await database.read(lambda tx: tx.query("jobs.get", kind="memory_consolidate_global", job_key=key))
    return int(rows[0]["input_watermark"])


async def test_a_person_may_let_memory_use_it_all_the_same_until_it_reads_again(beside: Beside) -> None:
    await taught(beside)
    async with beside.open(**SHUN) as book:
        await resumed(beside, book, answer(SEARCH, say("Found.")))
        await book.memory.set_mode(SHOP, "enabled")
        await resumed(beside, book, answer(say("Nothing from outside.")))
        assert "enabled" == (await modes(book))[SHOP]
    async with beside.open(**SHUN, now="2026-11-20T10:00:00Z") as book:
        await resumed(beside, book, answer(SEARCH, say("Found.")))

        assert "polluted" == (await modes(book))[SHOP]


async def test_an_old_session_with_an_output_that_nobody_called_for_is_marked_when_it_is_gone_on_with(
    beside: Beside,
) -> None:
    Script(SHOP).turn(user("fix it"), UNASKED, assistant("Done.")).write_home(beside.home)
    async with beside.open() as book:
        assert {SHOP: "enabled", BLOG: "enabled"} == await modes(book)
    async with beside.open(**SHUN) as book:
        await resumed(beside, book, answer(say("Nothing from outside.")))

        assert {SHOP: "polluted", BLOG: "enabled"} == await modes(book)


async def test_a_new_session_is_marked_with_its_first_turn(beside: Beside) -> None:
    async with beside.open(**SHUN) as book:
        thread = await beside.start(book, answer(SEARCH, say("Found.")))
        await thread.turn("Look it up.")

        assert {SHOP: "enabled", BLOG: "enabled", thread.id: "polluted"} == await modes(book)


async def test_a_database_that_fails_is_warned_of_and_ends_no_turn(beside: Beside) -> None:
    (beside.home / "state.sqlite").mkdir()
    warned: list[str] = []
    async with beside.open(warned, **SHUN) as book:
        thread = await beside.start(book, answer(SEARCH, say("Found.")))
        end = await thread.turn("Look it up.")

        assert "Found." == getattr(end, "message", None)
    assert [] == [text for text in warned if "database is not available" not in text]
