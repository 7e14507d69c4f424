"""What imports note, on both databases: rows that outlive a migration, files that are listed elsewhere too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from rows import HOME, NOW, Rows, statements
from test_migrations import open_at, raw, stop_at, version_of

from commonplace.rollout import decisions
from commonplace.state import database as queries
from commonplace.state import import_files, thread_scan
from commonplace.state.database import LATEST, Database, Row, Statement
from commonplace.state.import_files import ImportedFile
from commonplace.state.threads import ReferredFiles, ThreadIndex
from ledgers import Script, user

ALL = {
    "test.all_threads": "SELECT * FROM threads ORDER BY home, path",
    "test.imports": "SELECT * FROM imports ORDER BY home, path",
    "test.put_thread_v2": (
        "INSERT INTO threads (path, home, thread_id, rollout_id, is_current, size, mtime_ns, scanned, is_complete, "
        "turn_state, source, cwd, project, git_url, name, preview, created_at, updated_at, updated_s, learned_s, "
        "is_archived, is_root, memory_mode, turns, tokens, skipped, base_id) VALUES (:path, :home, :thread_id, "
        ":rollout_id, :is_current, :size, :mtime_ns, :scanned, :is_complete, :turn_state, :source, :cwd, :project, "
        ":git_url, :name, :preview, :created_at, :updated_at, :updated_s, :learned_s, :is_archived, :is_root, "
        ":memory_mode, :turns, :tokens, :skipped, :base_id)"
    ),
}


@pytest.fixture(autouse=True)
def own_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, statement in statements().items():
        monkeypatch.setitem(queries.statements(), name, statement)
    for name, text in ALL.items():
        monkeypatch.setitem(queries.statements(), name, Statement(text, {}))


def old_thread(number: int) -> dict[str, Any]:
    """A row of version 2 with a value of its own in every column."""
    return {
        "path": f"{HOME}/sessions/{number}.jsonl",
        "home": HOME if number % 2 else "/other",
        "thread_id": f"thread {number // 2}",
        "rollout_id": f"rollout {number}",
        "is_current": number % 2,
        "size": 2**40 + number,
        "mtime_ns": 2**62 + number,
        "scanned": number + 2,
        "is_complete": number % 2,
        "turn_state": number + 3,
        "source": "cli",
        "cwd": f"/code/{number}",
        "project": f"github.com/acme/{number}",
        "git_url": None if number % 2 else "git@github.com:acme/shop.git",
        "name": None if number % 2 else 'n\'ame "é" 🎉',
        "preview": "words\nand more",
        "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": f"2026-01-02T00:00:{number:02}.000Z",
        "updated_s": NOW + number,
        "learned_s": NOW - number if number % 3 else -1,
        "is_archived": int(number % 4 == 0),
        "is_root": 1,
        "memory_mode": ("enabled", "disabled", "polluted")[number % 3],
        "turns": None if number % 5 == 0 else number,
        "tokens": 2**40,
        "skipped": number,
        "base_id": "rollout 0" if number == 3 else None,
    }


async def test_every_row_of_version_2_is_there_after_the_migration(
    empty_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 2)
        database = await open_at(empty_address)
        rows = Rows(database)
        for number in range(40):
            await rows.execute("test.put_thread_v2", **old_thread(number))
            await rows.job(f"thread {number}", status="done", last_success_watermark=NOW)
            await rows.execute("blobs.put", sha256="a" * 64, path=f"{HOME}/sessions/{number}.jsonl")
        await rows.running("busy")
        raw(empty_address, "INSERT INTO budget (day, kind, requests, tokens) VALUES ('2026-01-01', 'extract', 3, 4)")
        names = ("test.all_threads", "test.jobs", "test.outputs", "test.budget", "blobs.referenced")
        before = {name: await rows.query(name) for name in names}
        await database.close()
    assert version_of(empty_address) == 2

    database = await open_at(empty_address)
    rows = Rows(database)
    after = {name: await rows.query(name) for name in names}
    empty = await rows.query("test.imports")
    later = {"path": old_thread(1)["path"], "home": "/a third home"}
    await rows.execute("test.put_thread_v2", **(old_thread(1) | later))  # the same file in another listing
    await database.close()

    assert version_of(empty_address) == LATEST
    assert [row["title"] for row in after["test.all_threads"]] == [None] * 40
    assert {row["failures"] for row in after["test.jobs"]} == {row["millis"] for row in after["test.budget"]} == {0}
    done = [row for row in after["test.jobs"] if row["status"] == "done"]
    assert {row["learned_s"] for row in after["test.all_threads"]} == {0}  # what the program read, it reads anew
    assert {row["last_success_watermark"] for row in done} == {None}
    assert {row["preview"] for row in after["test.all_threads"]} == {""}, "it may hold a secret; the file is read anew"
    assert {row["size"] for row in after["test.all_threads"]} == {0}
    later_columns = {"title", "failures", "millis", "learned_s", "last_success_watermark", "retry_remaining"}
    later_columns |= {"preview", "git_url", "size", "mtime_ns", "is_complete", "parent_id", "person"}
    for rows_of in (before, after):
        for name in names:
            rows_of[name] = [
                {key: value for key, value in row.items() if key not in later_columns} for row in rows_of[name]
            ]
    assert after == before
    assert empty == []


async def test_outputs_of_version_2_are_there_after_the_migration(
    empty_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 2)
        database = await open_at(empty_address)
        columns = (
            "thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, generated_at, is_empty, fresh_at"
        )
        for key in ("a", "b"):
            raw(empty_address, f"INSERT INTO outputs ({columns}) VALUES ('{key}', 7, 'r', 's', 'x', {NOW}, 0, 7)")
        before = await database.read(lambda tx: tx.query("test.outputs"))
        await database.close()
    database = await open_at(empty_address)
    after = await database.read(lambda tx: tx.query("test.outputs"))
    await database.close()

    assert len(before) == 2
    assert [{key: row[key] for key in before[0]} for row in after] == before


# --- Rows of imports.


def row(path: str = "/a", **values: Any) -> ImportedFile:
    return ImportedFile(
        path, values.pop("source", "claude-code"), values.pop("size", 1), values.pop("mtime_ns", 2), **values
    )


async def test_what_was_noted_comes_back_whole_and_for_its_home_alone(rows: Rows) -> None:
    full = row(
        "/naïve \n 'x\"",
        size=2**60,
        mtime_ns=2**62,
        thread_id="t",
        ledger="/home/x",
        ledger_size=2**50,
        first_record="r",
        first_answer="msg",
    )
    await rows.do(import_files.note, HOME, [full, row("/b", reason="copy")])
    await rows.do(import_files.note, "/other", [row("/b", thread_id="u")])

    assert await rows.do(import_files.read, HOME) == {full.path: full, "/b": row("/b", reason="copy")}
    assert await rows.do(import_files.read, "/other") == {"/b": row("/b", thread_id="u")}
    assert await rows.do(import_files.read, "/none") == {}


async def test_a_later_note_replaces_the_earlier_one_in_every_field(rows: Rows) -> None:
    await rows.do(import_files.note, HOME, [row(thread_id="t", ledger="/x", ledger_size=3, first_record="r")])
    changed = row(source="transcript", size=9, mtime_ns=10, reason="empty")
    await rows.do(import_files.note, HOME, [changed])
    await rows.do(import_files.note, HOME, [])

    assert await rows.do(import_files.read, HOME) == {"/a": changed}


async def test_what_settings_and_decisions_left_out_is_looked_at_again_and_nothing_else(rows: Rows) -> None:
    reasons = ["excluded", "deleted", "copy", "empty", "not_a_session", "taken", None]
    noted = [row(f"/{reason}", reason=reason) for reason in reasons]
    await rows.do(import_files.note, HOME, noted)
    await rows.do(import_files.note, "/other", noted)
    await rows.do(import_files.forget_left_out, HOME)

    assert set(await rows.do(import_files.read, HOME)) == {f"/{reason}" for reason in reasons[2:]}
    assert len(await rows.do(import_files.read, "/other")) == len(reasons)


# --- Files that are referred to.


class Elsewhere:
    """Says which places a home refers to, and which threads it leaves out."""

    def __init__(self, *roots: Path) -> None:
        self.roots = roots
        self.left_out: dict[str, str] = {}
        self.asked: list[str] = []

    def __call__(self, home: Path) -> ReferredFiles | None:
        return ReferredFiles(self.roots, self.why_not) if home.name == "home" else None

    def why_not(self, values: Row) -> str | None:
        self.asked.append(values["thread_id"])
        return self.left_out.get(values["thread_id"])


def thread_id(number: int) -> str:
    return f"0198c0de-0000-7000-8000-{number:012x}"


async def listed(index: ThreadIndex, home: Path) -> list[str]:
    return sorted(row.thread_id for row in (await index.page(home, limit=1000)).threads)


async def test_files_elsewhere_are_listed_and_those_left_out_are_not_read_until_they_change(
    database: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex = tmp_path / "codex"
    Script(thread_id(1)).turn(user("own")).write_home(home)
    Script(thread_id(2)).turn(user("wanted")).write_home(codex)
    unwanted = Script(thread_id(3)).turn(user("unwanted"))
    path = unwanted.write_home(codex)
    elsewhere = Elsewhere(codex)
    elsewhere.left_out = {thread_id(1): "ours is never left out", thread_id(3): "excluded"}
    index = ThreadIndex(database, elsewhere)
    read: list[str] = []
    real = thread_scan.survey

    def spy(where: Path, *more: Any) -> Any:
        read.append(where.stem[-1])
        return real(where, *more)

    monkeypatch.setattr(thread_scan, "survey", spy)
    first = await index.refresh(home)
    again = await index.refresh(home)
    assert await listed(index, home) == [thread_id(1), thread_id(2)]
    assert (first.files, first.threads, first.read, again.read) == (3, 2, 3, 0)
    assert sorted(read) == ["1", "2", "3"]
    assert sorted(elsewhere.asked) == [thread_id(2), thread_id(3)]

    unwanted.turn(user("more")).write_home(codex)
    assert (await index.refresh(home)).read == 1
    assert await listed(index, home) == [thread_id(1), thread_id(2)]
    assert (await index.refresh(home, rebuild=True, complete=True)).threads == 2
    elsewhere.left_out.clear()
    assert await listed(index, home) == [thread_id(1), thread_id(2)]
    await database.write(lambda tx: import_files.forget_left_out(tx, str(home.resolve())))
    await index.refresh(home)
    assert await listed(index, home) == [thread_id(number) for number in (1, 2, 3)]
    assert await index.differences(home) == (0, 0, 3)
    path.unlink()
    assert (await index.refresh(home)).threads == 2


async def test_a_thread_that_is_let_go_is_gone_for_good_though_its_file_is_there(
    database: Database, home: Path, tmp_path: Path
) -> None:
    path = Script().turn(user("x")).write_home(tmp_path / "codex")
    elsewhere = Elsewhere(tmp_path / "codex")
    index = ThreadIndex(database, elsewhere)
    await index.refresh(home)
    assert await index.row(home, path) is not None
    elsewhere.left_out[Script().thread_id] = "deleted"
    await index.release(home, path, "deleted")
    await index.release(home, path, "deleted")
    await index.refresh(home)

    assert await index.row(home, path) is None
    assert await index.find(home, Script().thread_id) is None
    assert path.exists()
    os.utime(path, (NOW, NOW))
    await index.refresh(home, rebuild=True)
    assert await index.row(home, path) is None
    noted = await database.read(lambda tx: import_files.read(tx, str(home.resolve())))
    assert [(one.reason, one.mtime_ns) for one in noted.values()] == [("deleted", NOW * 10**9)]


@pytest.mark.parametrize("place", ["home", "home/sessions", "home/sessions/2026", "."])
async def test_a_place_that_overlaps_the_home_lists_nothing_twice_and_leaves_nothing_of_ours_out(
    database: Database, home: Path, tmp_path: Path, place: str
) -> None:
    Script().turn(user("own")).write_home(home)
    elsewhere = Elsewhere((tmp_path / place).resolve())
    elsewhere.left_out = {Script().thread_id: "excluded"}
    index = ThreadIndex(database, elsewhere)
    found = await index.refresh(home)

    assert (found.files, found.threads) == (1, 1)
    assert await listed(index, home) == [Script().thread_id]
    assert (await index.refresh(home)).read == 0


async def test_places_that_overlap_each_other_list_nothing_twice(
    database: Database, home: Path, tmp_path: Path
) -> None:
    codex = tmp_path / "codex"
    path = Script().turn(user("x")).write_home(codex)
    index = ThreadIndex(database, Elsewhere(codex, codex / "sessions", path))
    found = await index.refresh(home)

    assert (found.files, found.threads) == (1, 1)


async def test_a_file_in_two_listings_has_a_row_in_each_and_leaves_one_without_the_other(
    database: Database, home: Path, tmp_path: Path
) -> None:
    codex = tmp_path / "codex"
    ref = {"pointer": "/x", "sha256": "a" * 64, "bytes": 1, "media_type": "text/plain"}
    path = Script().turn(user("x")).item(user("big"), blob=[ref]).write_home(codex)
    elsewhere = Elsewhere(codex)
    index = ThreadIndex(database, elsewhere)
    await index.refresh(codex)
    await index.refresh(home)
    assert await listed(index, codex) == await listed(index, home) == [Script().thread_id]

    elsewhere.left_out[Script().thread_id] = "deleted"
    await index.release(home, path, "deleted")
    assert (await listed(index, home), await listed(index, codex)) == ([], [Script().thread_id])
    assert await index.referenced_blobs() == {"a" * 64}
    await index.refresh(home, rebuild=True)
    assert await listed(index, codex) == [Script().thread_id]
    path.unlink()
    await index.refresh(codex)
    assert await index.referenced_blobs() == set()


async def test_a_thread_of_ours_that_is_also_elsewhere_is_listed_once(
    database: Database, home: Path, tmp_path: Path
) -> None:
    script = Script().turn(user("x"))
    script.write_home(home)
    script.write_home(tmp_path / "codex")
    index = ThreadIndex(database, Elsewhere(tmp_path / "codex"))
    found = await index.refresh(home)

    assert (found.files, found.threads) == (2, 1)
    assert await listed(index, home) == [script.thread_id]


@pytest.mark.parametrize(
    ("cwd", "url", "changed"),
    [
        ("/a", "", ["none"]),
        ("/a", "git@github.com:x/y.git", ["url"]),
        ("/b", "", ["other folder"]),
        ("/c", "", []),
        ("/a", "git@github.com:x/z.git", []),
    ],
)
async def test_a_project_is_set_where_folder_and_repository_fit(
    rows: Rows, cwd: str, url: str, changed: list[str]
) -> None:
    await rows.thread("none", cwd="/a", git_url=None)
    await rows.thread("url", cwd="/a", git_url="git@github.com:x/y.git")
    await rows.thread("other folder", cwd="/b", git_url="")
    await rows.thread("other home", cwd="/a", git_url=None, home="/other", path="/other/sessions/x.jsonl")
    values = {"home": HOME, "cwd": cwd, "git_url": url, "project": "new"}
    count = await rows.execute("threads.set_project", **values)
    again = await rows.execute("threads.set_project", **values)
    found = await rows.query("test.all_threads")

    assert [row["thread_id"] for row in found if row["project"] == "new"] == changed
    assert (count, again) == (len(changed), 0)


async def test_places_are_told_with_their_first_and_last_time(rows: Rows) -> None:
    for key, when in (("a", 5), ("b", 3), ("c", 9)):
        await rows.thread(key, when, cwd="/x", git_url="u" if key == "c" else None)

    found = await rows.query("threads.places", home=HOME)
    assert sorted(tuple(row.values()) for row in found) == [("/x", "", 3, 5), ("/x", "u", 9, 9)]


def test_decisions_are_read_in_their_order_and_what_nobody_understands_is_passed_over(home: Path) -> None:
    home.mkdir()
    for kind, fields in (("refer", {"path": "/a"}), ("tombstone", {"thread_id": "t"}), ("refer", {"path": "/a"})):
        decisions.append(home, kind, "2026-11-15T09:00:00.000Z", **fields)
    with (home / decisions.FILE).open("ab") as file:
        file.write(
            b'not json\n\xff\n{"time":"x"}\n{"time":"x","kind":"later","path":7}\n[]\n{"time":"x","kind":"refer"}'
        )
    decisions.append(home, "refer", "2026-11-15T09:00:00.000Z", path="/b")

    assert decisions.referred_paths(home) == [Path("/a"), Path("/b")]
    assert decisions.tombstones(home) == {"t"}
    assert decisions.modes(home) == {}
    assert (home / decisions.FILE).stat().st_mode & 0o777 == 0o600


async def test_texts_that_an_earlier_version_stored_with_their_secrets_are_read_anew(
    empty_address: str, home: Path
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0"[::-1] * 2
    path = Script().turn(user(f"use {secret[:40]} to push")).write_home(home)
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 9)
        database = await open_at(empty_address)
        stored = {"path": str(path.resolve()), "home": str(home.resolve()), "is_current": 1}
        await Rows(database).execute("test.put_thread_v2", **(old_thread(1) | stored))
        await database.close()
        raw(empty_address, f"UPDATE threads SET preview = '{secret}', title = '{secret}', git_url = '{secret}'")

    database = await open_at(empty_address)
    texts = str(await database.read(lambda tx: tx.query("threads.texts", home=str(home.resolve()))))
    await ThreadIndex(database).refresh(home)
    (row,) = (await ThreadIndex(database).page(home, limit=10)).threads
    await database.close()

    assert secret[:12] not in texts
    assert row.preview == "use [REDACTED_SECRET] to push"
