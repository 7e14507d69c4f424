"""Sessions whose ledgers go into a store, from the outside: written on one host, gone on with on another."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import commonplace
from commonplace.app import doctor
from commonplace.app.book import Book
from commonplace.errors import BadSetting, ForeignFile, ThreadInUse
from commonplace.models.scripted import ScriptedModel, answer, say
from commonplace.rollout import layout
from commonplace.rollout.store import object_store
from ledgers import FILE, Script, user
from object_stores import SECRET, Place


@asynccontextmanager
async def opened(place: Place, home: Path, warnings: list[str] | None = None) -> AsyncGenerator[Book]:
    variables = {"COMMONPLACE_HOME": str(home), "COMMONPLACE_LEDGER": place.address, "HOME": str(home), "TZ": "UTC"}
    variables["COMMONPLACE_MEMORY_BACKGROUND"] = "false"
    said = [] if warnings is None else warnings
    async with commonplace.open(environment={**variables, **place.variables}, warn=said.append) as book:
        yield book
    if warnings is None:
        assert not said


async def turn(book: Book, text: str, reply: str, *, resume: str | None = None) -> tuple[str, Path, str]:
    """Say something; return the thread, its file and what the model was sent."""
    async with ScriptedModel(answer(say(reply))) as model:
        thread = await (book.resume(resume, speaker=model) if resume else book.start(speaker=model))
        await thread.turn(text)
        path = thread.path
        await book.release(thread)
        sent = b"".join(bytes(item) for item in model.requests[-1].input).decode()
        assert path is not None
        return thread.id, path, sent


async def listed(book: Book) -> dict[str, str]:
    return {row.thread_id: row.path for row in (await book.sessions.list()).threads}


async def test_a_session_goes_on_on_other_hosts_after_its_own_is_lost(place: Place, tmp_path: Path) -> None:
    async with opened(place, tmp_path / "a") as book:
        first, path, _ = await turn(book, "the word is heron", "Noted.")
        written = path.read_bytes()
    shutil.rmtree(tmp_path / "a")

    async with opened(place, tmp_path / "b") as book:
        assert [*await listed(book)] == [first]
        shown = await book.sessions.show(first)
        assert shown.user_texts[-1] == "the word is heron"
        second, fork, sent = await turn(book, "and otter", "Both.", resume=first)
        assert second != first
        assert "heron" in sent
        assert "heron" not in fork.read_text()  # by reference
        _, same, _ = await turn(book, "and mole", "Three.", resume=second)
        assert same == fork
    before = place.objects()

    async with opened(place, tmp_path / "c") as book:
        assert {*await listed(book)} == {first, second}
        _, _, sent = await turn(book, "and shrew", "Four.", resume=second)
        for word in ("heron", "otter", "mole"):
            assert word in sent
    after = place.objects()
    assert {key: after[key] for key in before} == before  # nobody's segments were touched
    assert sum(size for key, size in before.items() if first in key) == len(written)


async def test_a_session_of_another_host_is_not_changed(place: Place, tmp_path: Path) -> None:
    async with opened(place, tmp_path / "a") as book:
        first, _, _ = await turn(book, "hello", "Hi.")
    async with opened(place, tmp_path / "b") as book:
        await listed(book)
        for change in (book.sessions.rollback(first, 1), book.sessions.archive(first)):
            with pytest.raises(ForeignFile, match="Another host"):
                await change
        forked = await book.sessions.fork(first)
        assert {first, forked.thread_id} == {*await listed(book)}
        await book.sessions.delete(forked.thread_id)
        await book.sessions.delete(first)  # it is no longer listed here
        assert not await listed(book)
    async with opened(place, tmp_path / "a") as book:
        assert [*await listed(book)] == [first]


async def test_a_fork_finds_its_parent_where_it_was_archived_and_keeps_it_from_being_deleted(
    place: Place, tmp_path: Path
) -> None:
    async with opened(place, tmp_path / "a") as book:
        first, _, _ = await turn(book, "the word is heron", "Noted.")
    async with opened(place, tmp_path / "b") as book:
        second, _, _ = await turn(book, "and otter", "Both.", resume=first)
    async with opened(place, tmp_path / "a") as book:
        with pytest.raises(ThreadInUse):
            await book.sessions.delete(first)
        await book.sessions.archive(first)
    async with opened(place, tmp_path / "b") as book:
        _, _, sent = await turn(book, "and mole", "Three.", resume=second)
        assert "heron" in sent


async def test_a_store_that_is_away_holds_nobody_up(place: Place, tmp_path: Path) -> None:
    warnings: list[str] = []
    with place.away():
        async with opened(place, tmp_path / "a", warnings) as book:
            _, path, _ = await turn(book, "hello", "Hi.")
            (check,) = [each for each in (await doctor.examine(book.state)).checks if each.name == "uploads"]
            assert not check.ok
            assert check.detail.startswith("1 session files; 1 not in the store")
    assert any("not in the store yet" in each for each in warnings)
    assert not any(SECRET in each or place.address in each for each in warnings)

    async with opened(place, tmp_path / "a") as book:
        report = await doctor.examine(book.state, repair=True)
        assert [each.ok for each in report.checks if each.name == "uploads"] == [True]
    assert sum(size for key, size in place.objects().items() if path.name in key) == path.stat().st_size


async def test_imported_archived_and_deleted_sessions_follow(place: Place, tmp_path: Path) -> None:
    transcript = tmp_path / "talk.jsonl"
    transcript.write_text(
        "\n".join(json.dumps({"session": "talk", "role": "user", "text": text}) for text in ("one", "two"))
    )
    async with opened(place, tmp_path / "a") as book:
        await book.sessions.import_("transcript", [transcript])
        ((thread, path),) = (await listed(book)).items()
    assert sum(place.objects().values()) == Path(path).stat().st_size

    async with opened(place, tmp_path / "a") as book:
        await book.sessions.archive(thread)
    assert place.objects()
    assert all(f"/{layout.ARCHIVED}/" in key for key in place.objects())

    async with opened(place, tmp_path / "a") as book:
        await book.sessions.delete(thread)
    assert place.objects() == {}


async def test_without_the_library_the_setting_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(name: str) -> None:
        assert name == "obstore"

    monkeypatch.setattr(object_store, "find_spec", find)
    async with opened(Place("s3://bucket/prefix", {}, None), tmp_path / "a") as book:
        with pytest.raises(BadSetting, match="not installed") as refused:
            await turn(book, "hello", "Hi.")
        assert "commonplace[s3]" in refused.value.hint


def test_without_a_store_nothing_of_one_is_loaded(home: Path) -> None:
    Script().item(user("hello")).write_home(home)
    code = (
        "import sys; from commonplace.surfaces.cli.root import run; run(['sessions', 'context', sys.argv[1]]);"
        "print([name for name in sys.modules if 'obstore' in name or name.endswith('home_store')], file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, FILE[-42:-6]], env={**os.environ}, capture_output=True, text=True, check=True
    )
    assert "hello" in ran.stdout
    assert ran.stderr == "[]\n"
