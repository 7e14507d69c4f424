"""Without the database nothing is learned, and what goes away in the middle is told in a sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
import pytest
from learners import NOW, environment, workspace
from test_frame import RAW, SUMMARY, Scripted, learn, session

import processes
from commonplace.app import book as books
from commonplace.errors import DatabaseBusy, StateError
from commonplace.learning import worker
from commonplace.learning.consolidate import phase2
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory, MergeConsolidator
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.learning.evaluate import cases, files
from commonplace.learning.evaluate.cases import Case
from commonplace.learning.extract import phase1
from commonplace.learning.reading.session_view import SessionView
from commonplace.state import home as homes
from commonplace.state import jobs, projects
from commonplace.state.database import Database, Transaction
from commonplace.state.outputs import Output
from waiting import until

T = TypeVar("T")


class Away:
    """A database that is away for as many transactions as it is told to."""

    read_only = False

    def __init__(self, database: Database) -> None:
        self._database = database
        self.refuses = 0
        self.has_refused = 0

    async def read(self, body: Callable[[Transaction], T]) -> T:
        self._ask()
        return await self._database.read(body)

    async def write(self, body: Callable[[Transaction], T]) -> T:
        self._ask()
        return await self._database.write(body)

    def wait_longer(self, seconds: float) -> None:
        raise NotImplementedError

    async def scrub(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    def _ask(self) -> None:
        if self.refuses > self.has_refused:
            self.has_refused += 1
            raise StateError("The database is away.")


def teach(folder: Path, count: int = 1) -> None:
    for number in range(count):
        files.write(Case(f"case-{number}", "", [session()], cases.ExpectedLessons()), folder, NOW)


@pytest.mark.parametrize("words", [("learn",), ("memory", "run"), ("worker", "--once")])
def test_nothing_is_learned_and_no_memory_is_changed_while_the_database_is_away(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    teach(tmp_path)
    variables = {**environment(tmp_path / "home", "sqlite"), "CODEX_HOME": str(tmp_path / "codex")}
    first = processes.run(["learn"], env=variables, text=True)
    before = workspace(variables)
    nowhere = {**variables, "COMMONPLACE_DATABASE": "postgresql://127.0.0.1:1/x"}
    done = processes.run(words, env=nowhere, text=True)

    assert (0, 1) == (first.returncode, done.returncode)
    assert "Nothing is learned while the database is away" in done.stderr
    assert before == workspace(variables)


@pytest.mark.anyio
async def test_a_worker_uses_the_database_again_when_it_is_back(tmp_path: Path) -> None:
    teach(tmp_path)
    variables = {**environment(tmp_path / "home", "sqlite"), "CODEX_HOME": str(tmp_path / "codex")}
    place = tmp_path / "home" / "state.sqlite"
    place.mkdir(parents=True)
    async with books.open(environment=variables) as book:
        with pytest.raises(StateError, match="Nothing is learned"):
            await worker.cycle(book.state, book.importer)
        place.rmdir()
        report = await worker.cycle(book.state, book.importer)
        is_degraded = book.state.is_degraded

    assert (1, False) == (report.extracted + report.no_output, is_degraded)


@pytest.mark.anyio
async def test_a_database_that_goes_away_while_sessions_are_read_is_told_as_what_it_is(tmp_path: Path) -> None:
    class Losing(Scripted):
        async def extract(self, view: SessionView) -> Output:
            away.refuses = 1_000
            return await super().extract(view)

    async with books.open(environment=environment(tmp_path / "home", "sqlite")) as book:
        teach(tmp_path)
        await book.importer.run([("codex", tmp_path / "codex")])
        away = Away(await book.state.database())
        phase = phase1.ExtractionPhase(book.settings, away, Losing(), jobs.this_process())
        with pytest.raises(StateError, match="is away"):
            await phase1.run(phase)
        away.refuses = 0
        given_back = await away.write(lambda tx: jobs.release_process(tx, jobs.this_process(), book.state.now_s()))
        again = await phase1.run(msgspec.structs.replace(phase, extractor=Scripted()))

    assert (1, 1) == (given_back, again.extracted)


@pytest.mark.anyio
async def test_a_database_that_is_away_for_a_moment_while_sessions_are_read_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is stored as it comes; a write that failed is made up for by the next one."""
    monkeypatch.setattr(phase1, "_STORED_EVERY", 0.001)

    class Losing(Scripted):
        async def extract(self, view: SessionView) -> Output:
            self.read.append(view.thread_id)
            if len(self.read) == 2:
                away.refuses = 1
                await until(lambda: away.has_refused == 1)
            return Output(RAW, SUMMARY, "a-slug")

    async with books.open(environment=environment(tmp_path / "home", "sqlite")) as book:
        teach(tmp_path, 2)
        await book.importer.run([("codex", tmp_path / "codex")])
        away = Away(await book.state.database())
        done = await phase1.run(phase1.ExtractionPhase(book.settings, away, Losing(), jobs.this_process()))

    assert (2, [], None) == (done.extracted, done.failed, done.stopped)


@pytest.mark.anyio
async def test_a_database_that_goes_away_while_the_memory_is_made_is_told_as_what_it_is(tmp_path: Path) -> None:
    class Losing(MergeConsolidator):
        def consolidate(self, material: ConsolidationInput) -> ConsolidatedMemory:
            away.refuses = 2  # whether the claim holds, and that it failed; giving it back works
            return super().consolidate(material)

    async with books.open(environment=environment(tmp_path / "home", "sqlite")) as book:
        await learn(book, [session()], tmp_path, Scripted())
        away = Away(await book.state.database())
        phase = phase2.ConsolidationPhase(book.settings, away, Losing(), jobs.this_process())
        with pytest.raises(StateError, match="is away"):
            await phase2.run(phase)


@pytest.mark.anyio
async def test_a_database_that_fails_costs_no_session_a_try(tmp_path: Path) -> None:
    async with books.open(environment=environment(tmp_path / "home", "sqlite")) as book:
        done = await learn(book, [session()], tmp_path, Scripted(StateError("The budget could not be read.")))
        database = await book.state.database()
        states = await database.read(lambda tx: tx.query("jobs.states"))

    assert ([], "The budget could not be read.") == (done.failed, done.stopped)
    assert ["pending"] == [row["status"] for row in states]


@pytest.mark.anyio
async def test_whoever_lost_a_session_tells_nothing_about_its_project(tmp_path: Path) -> None:
    class Robbed(Scripted):
        async def extract(self, view: SessionView) -> Output:
            await database.write(lambda tx: jobs.release_process(tx, jobs.this_process(), book.state.now_s()))
            return Output(RAW, SUMMARY, "a-slug")

    def evidence(tx: Transaction) -> list[str]:
        return [row["evidence"] for row in projects.threads(tx, book.state.key) if row["evidence"]]

    async with books.open(environment=environment(tmp_path / "home", "sqlite")) as book:
        database = await book.state.database()
        done = await learn(book, [session()], tmp_path, Robbed())
        left = await database.read(evidence)
        await learn(book, [], tmp_path, Scripted())
        told = await database.read(evidence)

    assert (0, 0, 1) == (done.extracted, len(left), len(told))


@pytest.mark.anyio
async def test_learning_waits_longer_for_another_process_than_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that begin at once each write what they find."""

    def ids(tx: Transaction) -> int:
        return len(tx.query("outputs.ids"))

    monkeypatch.setattr(homes, "FOREGROUND_SECONDS", 0.0)
    async with books.open(environment=environment(tmp_path / "home", "sqlite")) as book:
        database = await book.state.database()
        with closing(sqlite3.connect(tmp_path / "home" / "state.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(DatabaseBusy):
                await database.write(ids)
            await book.state.need_database()
            async with anyio.create_task_group() as group:
                group.start_soon(database.write, ids)
                await anyio.wait_all_tasks_blocked()
                other.execute("ROLLBACK")
