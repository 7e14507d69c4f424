"""Which thread started which sub-agent: stored, closed, opened again, forgotten, and known to the index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rows import NOW

from commonplace.state import spawn_edges
from commonplace.state.database import Database
from commonplace.state.threads import ThreadIndex
from ledgers import Script, user

HOME = "/home"


async def put(database: Database, parent: str, child: str, *, is_open: bool = True) -> None:
    await database.write(lambda tx: spawn_edges.put(tx, HOME, parent, child, is_open=is_open, now=NOW))


async def children(database: Database, parent: str, home: str = HOME) -> list[str]:
    return await database.read(lambda tx: spawn_edges.open_children(tx, home, parent))


async def test_open_children_are_found_in_the_order_of_their_ids(database: Database) -> None:
    for child in ("c", "a", "b"):
        await put(database, "p", child)
    await put(database, "a", "below")
    await put(database, "p", "b", is_open=False)

    assert await children(database, "p") == ["a", "c"]
    assert await children(database, "a") == ["below"]
    assert await children(database, "p", "/elsewhere") == []


async def test_a_closed_agent_is_opened_again_and_a_deleted_one_is_forgotten(database: Database) -> None:
    await put(database, "p", "a")
    await put(database, "a", "below")
    await put(database, "p", "a", is_open=False)
    assert await children(database, "p") == []
    await put(database, "p", "a")
    assert await children(database, "p") == ["a"]
    await database.write(lambda tx: spawn_edges.drop(tx, HOME, "a"))

    assert await children(database, "p") == []
    assert await children(database, "a") == []


async def test_the_index_knows_whose_sub_agent_a_thread_is(database: Database, tmp_path: Path) -> None:
    ids = [f"0198c0de-0000-7000-8000-00000000000{number}" for number in range(4)]
    home = tmp_path / "home"
    for place, thread_id in enumerate(ids):
        parent = ids[place - 1] if place else None
        spawned = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": place}}}
        more: dict[str, Any] = {"parent_thread_id": parent, "source": spawned} if parent else {}
        Script(thread_id, **more).item(user("hi")).write_home(home)
    await ThreadIndex(database).refresh(home)
    key = str(home.resolve())
    direct = await database.read(lambda tx: spawn_edges.below(tx, key, ids[0], deep=False))
    every = await database.read(lambda tx: spawn_edges.below(tx, key, ids[0]))

    assert direct == {ids[1]}
    assert every == {*ids[1:]}
