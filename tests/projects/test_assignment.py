"""Threads get the project of their group, and every folder and address of a project leads to it."""

from __future__ import annotations

from pathlib import Path

import pytest

import commonplace
from commonplace.errors import BadInput
from commonplace.projects import assignment, lookup
from commonplace.projects.evidence import FolderEvidence
from ledgers import Script, user

pytestmark = pytest.mark.anyio

TEA = "github.com/ann/tea"
COMMITS = ["1a2b3c4", "2b3c4d5", "3c4d5e6"]


def thread(number: int) -> str:
    return f"0198c0de-0000-7000-8000-{number:012}"


def session(home: Path, number: int, cwd: str, url: str | None = None, branch: str | None = None) -> str:
    git = {"repository_url": url, "branch": branch} if url or branch else None
    Script(thread(number), cwd=cwd, git=git).turn(user("hello")).write_home(home)
    return thread(number)


async def projects_of(book: commonplace.Book) -> dict[str, str]:
    return {row.cwd: row.project for row in (await book.sessions.list(limit=100)).threads}


async def test_threads_get_the_project_of_their_group_and_keep_it(home: Path) -> None:
    one = session(home, 1, "/c/tea", "git@github.com:ann/tea.git", "main")
    two = session(home, 2, "/d/copy")
    three = session(home, 3, "/e/other")
    async with commonplace.open() as book:
        assert "/d/copy" == (await projects_of(book))["/d/copy"]
        evidence = {key: FolderEvidence(cwd, commits=COMMITS) for key, cwd in ((one, "/c/tea"), (two, "/d/copy"))}
        assigned = await assignment.assign(book.state, evidence)
        session(home, 4, "/f/new", "https://github.com/ann/tea")
        settled = await projects_of(book)

    assert {one: TEA, two: TEA, three: "/e/other"} == assigned
    assert {"/c/tea": TEA, "/d/copy": TEA, "/e/other": "/e/other", "/f/new": TEA} == settled


async def test_evidence_is_kept_for_the_next_time(home: Path) -> None:
    one, two = session(home, 1, "/c/tea"), session(home, 2, "/d/copy")
    async with commonplace.open() as book:
        await book.sessions.list()
        await assignment.assign(book.state, {one: FolderEvidence("/c/tea", commits=COMMITS)})
        assigned = await assignment.assign(book.state, {two: FolderEvidence("/d/copy", commits=COMMITS)})

    assert {one: "/c/tea", two: "/c/tea"} == assigned


async def test_worktrees_are_known_without_any_evidence(home: Path) -> None:
    keys = [session(home, number, f"/c/tea/.worktrees/{number}") for number in (1, 2)]
    async with commonplace.open() as book:
        await book.sessions.list()

        assert dict.fromkeys(keys, "/c/tea") == await assignment.assign(book.state)


async def test_a_project_is_found_by_any_of_its_names(home: Path, tmp_path: Path) -> None:
    one = session(home, 1, "/c/leaves", "https://github.com/ann/tea")
    two = session(home, 2, "/d/copy", "https://github.com/bob/tea")
    async with commonplace.open() as book:
        await book.sessions.list()
        evidence = {key: FolderEvidence(cwd, commits=COMMITS) for key, cwd in ((one, "/c/leaves"), (two, "/d/copy"))}
        await assignment.assign(book.state, evidence)
        names = ("/c/leaves", "/d/copy", "/d/copy/", TEA, "github.com/bob/tea", "git@github.com:Bob/tea.git", "tea")
        found = {await lookup.named_scope(book.state, name, ()) for name in names}
        told = await lookup.folder_scope(book.state, Path("/d/copy"), None, {TEA})
        with pytest.raises(BadInput, match="coffee"):
            await lookup.named_scope(book.state, "coffee", ())

    assert ({TEA}, TEA) == (found, told)


async def test_evidence_of_a_deleted_thread_is_gone(home: Path) -> None:
    one, two = session(home, 1, "/c/tea"), session(home, 2, "/d/copy")
    async with commonplace.open() as book:
        await book.sessions.list()
        evidence = {key: FolderEvidence(cwd, commits=COMMITS) for key, cwd in ((one, "/c/tea"), (two, "/d/copy"))}
        await assignment.assign(book.state, evidence)
        await book.sessions.delete(one)

        assert {two: "/d/copy"} == await assignment.assign(book.state)


async def test_evidence_that_cannot_be_read_counts_as_none(home: Path) -> None:
    one = session(home, 1, "/c/tea")
    async with commonplace.open() as book:
        await book.sessions.list()
        database = await book.state.database()
        await database.write(lambda tx: tx.execute("evidence.put", thread_id=one, evidence='{"folder": 3}'))

        assert {one: "/c/tea"} == await assignment.assign(book.state)
