"""The thread index: pages, finding, repair by size and time; always what the files say."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.rollout import thread_names
from commonplace.state import thread_scan
from commonplace.state.database import Database
from commonplace.state.sqlite import SqliteDatabase
from commonplace.state.thread_pages import ThreadRow
from commonplace.state.threads import ThreadIndex
from ledgers import Script, assistant, user
from redact import made


def thread_id(number: int) -> str:
    return f"0198c0de-0000-7000-8000-{number:012x}"


@pytest.fixture
def index(database: Database) -> ThreadIndex:
    return ThreadIndex(database)


async def every(index: ThreadIndex, home: Path, *, archived: bool = False) -> list[ThreadRow]:
    return (await index.page(home, limit=1000, archived=archived)).threads


async def test_an_empty_or_missing_home_has_no_threads(index: ThreadIndex, home: Path) -> None:
    refreshed = await index.refresh(home)

    assert (refreshed.files, refreshed.threads) == (0, 0)
    assert await every(index, home) == []


async def test_pages_are_newest_first_and_ties_are_broken_by_id(index: ThreadIndex, home: Path) -> None:
    for number in range(7):
        script = Script(thread_id(number))
        late = "2026-11-16T00:00:00.000Z" if number % 2 else "2026-11-15T00:00:00.000Z"
        script.raw(b'{"timestamp":"%s","type":"event_msg","payload":{"type":"x"}}' % late.encode())
        script.write_home(home)
    await index.refresh(home)

    first = await index.page(home, limit=4)
    second = await index.page(home, limit=4, cursor=first.next_cursor)

    order = [int(row.thread_id[-1]) for row in first.threads + second.threads]
    assert order == [5, 3, 1, 6, 4, 2, 0]
    assert second.next_cursor is None


async def test_an_unchanged_file_is_not_read_again(
    index: ThreadIndex, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Script().turn(user("x")).write_home(home)
    await index.refresh(home)
    monkeypatch.setattr(thread_scan, "survey", None)

    assert (await index.refresh(home)).read == 0


async def test_a_file_that_grew_is_read_from_where_it_grew(
    index: ThreadIndex, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script().turn(user("one"))
    seen = len(script.data())
    script.write_home(home)
    await index.refresh(home)
    starts: list[int] = []
    real = thread_scan.survey

    def spy(path: Path, start: thread_scan.Survey | None = None) -> thread_scan.Survey:
        starts.append(start.offset if start else 0)
        return real(path, start)

    monkeypatch.setattr(thread_scan, "survey", spy)
    script.turn(user("two")).write_home(home)
    await index.refresh(home)

    assert starts == [seen]
    assert [row.turns for row in await every(index, home)] == [2]


async def test_a_file_of_the_same_size_that_was_replaced_is_read_again(index: ThreadIndex, home: Path) -> None:
    path = Script().turn(user("aaa")).write_home(home)
    await index.refresh(home)
    path.write_bytes(Script().turn(user("bbb")).data())
    os.utime(path, ns=(1, 1))
    await index.refresh(home)

    assert [row.preview for row in await every(index, home)] == ["bbb"]


async def test_a_large_file_is_looked_at_from_both_ends_until_a_full_index(
    index: ThreadIndex, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_scan, "GLANCE_ABOVE", 1000)
    script = Script().turn(user("the first words"))
    for number in range(50):
        script.turn(user(f"more {number}"), assistant("x" * 500))
    script.event("token_count", info={"total_token_usage": {"total_tokens": 77}}).write_home(home)
    await index.refresh(home)
    (glance,) = await every(index, home)
    await index.refresh(home, complete=True)
    (full,) = await every(index, home)

    assert (glance.preview, glance.turns, glance.tokens) == ("the first words", None, 77)
    assert (full.preview, full.turns, full.tokens) == ("the first words", 51, 77)


async def test_a_reverted_thread_is_one_thread_by_its_newest_file(index: ThreadIndex, home: Path) -> None:
    script = Script(paginated=True).turn(user("one"))
    cut = len(script.data())
    script.turn(user("two")).write_home(home)
    base = {"thread_id": script.thread_id, "end_byte_offset": cut, "end_ordinal_exclusive": 5}
    reverted = Script(paginated=True, history_base=base).turn(user("instead"))
    name = f"rollout-2026-11-15T09-00-00-{script.thread_id}_0198c0df-0000-7000-8000-000000000001.jsonl"
    path = reverted.write(home / "sessions" / "2026" / "11" / "15", name)
    await index.refresh(home)

    (row,) = await every(index, home)

    assert row.path == str(path)
    assert row.turns == 2
    assert await index.find(home, script.thread_id) == path


async def test_a_copied_file_does_not_make_a_second_thread(index: ThreadIndex, home: Path) -> None:
    path = Script().turn(user("x")).write_home(home)
    copy = path.with_name(path.name.replace("09-00-00", "09-00-01"))
    copy.write_bytes(path.read_bytes())
    await index.refresh(home)

    assert [row.path for row in await every(index, home)] == [str(path)]
    assert await index.find(home, Script().thread_id) == path


async def test_archived_threads_are_listed_apart(index: ThreadIndex, home: Path) -> None:
    Script(thread_id(1)).write_home(home)
    Script(thread_id(2)).write(home / "archived_sessions")
    await index.refresh(home)

    assert [row.thread_id for row in await every(index, home)] == [thread_id(1)]
    assert [row.thread_id for row in await every(index, home, archived=True)] == [thread_id(2)]


async def test_homes_do_not_mix(index: ThreadIndex, tmp_path: Path) -> None:
    for number in (1, 2):
        Script(thread_id(number)).write_home(tmp_path / str(number))
        await index.refresh(tmp_path / str(number))

    assert [row.thread_id for row in await every(index, tmp_path / "1")] == [thread_id(1)]
    assert await index.find(tmp_path / "1", thread_id(2)) is None


async def test_names_are_mirrored_and_a_name_of_an_unknown_thread_does_no_harm(index: ThreadIndex, home: Path) -> None:
    Script().turn(user("x")).write_home(home)
    thread_names.append(home, Script().thread_id, "first name", "t")
    thread_names.append(home, thread_id(99), "of nobody", "t")
    await index.refresh(home)
    thread_names.append(home, Script().thread_id, "second name", "t")
    await index.refresh(home)

    assert [row.title for row in await every(index, home)] == ["second name"]
    assert await index.find(home, "first name") is None


async def test_memory_mode_and_model_follow_the_newest_line(index: ThreadIndex, home: Path) -> None:
    script = Script().turn(user("x"))
    script.line("session_meta", {"id": script.thread_id, "memory_mode": "disabled"}).write_home(home)
    await index.refresh(home)
    (off,) = await every(index, home)
    script.line("session_meta", {"id": script.thread_id, "memory_mode": "enabled"}).write_home(home)
    await index.refresh(home)

    assert off.memory_mode == "disabled"
    assert [row.memory_mode for row in await every(index, home)] == ["enabled"]


STEPS = st.lists(st.sampled_from(["add", "grow", "remove", "archive", "garbage", "refresh"]), max_size=12)


@given(steps=STEPS)
async def test_repairing_step_by_step_gives_the_same_rows_as_building_from_scratch(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    home = tmp_path_factory.mktemp("home")
    database = await SqliteDatabase.open(None)
    index = ThreadIndex(database)
    scripts: list[Script] = []
    for number, step in enumerate(steps):
        if step == "add":
            scripts.append(Script(thread_id(number)).turn(user(f"words {number}")))
            scripts[-1].write_home(home)
        elif step == "grow" and scripts:
            scripts[-1].turn(user("more")).write_home(home)
        elif step == "garbage" and scripts:
            scripts[-1].raw(b"garbage").write_home(home)
        elif step == "remove" and scripts:
            scripts.pop().write_home(home).unlink()
        elif step == "archive" and scripts:
            path = scripts.pop().write_home(home)
            (home / "archived_sessions").mkdir(exist_ok=True)
            path.rename(home / "archived_sessions" / path.name)
        elif step == "refresh":
            await index.refresh(home)
    await index.refresh(home)
    repaired = [await every(index, home), await every(index, home, archived=True)]
    await index.refresh(home, rebuild=True, complete=True)
    rebuilt = [await every(index, home), await every(index, home, archived=True)]
    await database.close()

    assert repaired == rebuilt


SECRETS = (
    "the password is <A16>",
    "DB_PASSWORD=<A16>",
    "use ghp_<A36> for it",
    '{"password": "<A8>7 <A8>4"}',
    "la contraseña de staging es <A16>",
    "postgres://app:<A16>@db.acme.test/x",
    "kim:<A16>@db.acme.test:5432",
    "export TOKEN=${TOKEN:-<A32>}",
    "x" * 480 + " ghp_<A36>",
    "-----BEGIN PRIVATE KEY-----\n<B64>\n<B64>",
)


@pytest.mark.parametrize("text", SECRETS)
async def test_the_first_words_are_stored_without_their_secrets(
    text: str, index: ThreadIndex, home: Path, database: Database
) -> None:
    values, words = made.fill(text, random.Random(text))
    Script().turn(user(words)).write_home(home)
    await index.refresh(home)

    stored = str(await database.read(lambda tx: tx.query("threads.texts", home=str(home.resolve()))))
    assert stored.count("preview") == 1
    assert not any(value[:6] in stored for value in values)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://kim:<A16>@git.acme.test/a/b.git", "https://git.acme.test/a/b.git"),
        ("https://<A40>@git.acme.test/a/b.git", "https://git.acme.test/a/b.git"),
        ("https://oauth2:glpat-<A20>@git.acme.test/a/b", "https://git.acme.test/a/b"),
        ("https://x-access-token:ghp_<A36>@github.com/a/b", "https://github.com/a/b"),
        ("http://kim:p@<A12>@git.acme.test:8080/a/b", "http://git.acme.test:8080/a/b"),
        ("ssh://kim:<A16>@git.acme.test:2222/a/b", "ssh://git.acme.test:2222/a/b"),
        ("git+ssh://kim:<A16>@git.acme.test/a/b", "git+ssh://git.acme.test/a/b"),
        ("kim:<A16>@git.acme.test/a/b", "git.acme.test/a/b"),
        ("https://git.acme.test/a/b?private_token=<A20>", "https://git.acme.test/a/b?private_token=[REDACTED_SECRET]"),
        ("HTTPS://kim:<A16>@git.acme.test/a/b", "HTTPS://git.acme.test/a/b"),
        ("git@git.acme.test:a/b.git", "git@git.acme.test:a/b.git"),
        ("https://git.acme.test/a/b@c", "https://git.acme.test/a/b@c"),
    ],
)
def test_the_address_of_a_remote_is_stored_without_credentials(url: str, kept: str) -> None:
    assert thread_scan.without_login(made.make(url, random.Random(url))) == kept
