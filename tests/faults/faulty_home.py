"""A home whose sessions are learned from while faults happen, and what must hold afterwards, seen from outside.

The rows are read with the database's own client, the files as bytes. A log in the database, written by triggers, keeps
what comes and goes: every claim with how many were running then, every end of a job, every output that was stored.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import psycopg
from learners import NOW, environment, many, workspace

import processes
import waiting
from commonplace.app import book as books

CODE = Path(__file__).with_name("fault_program.py").read_text("utf-8")
CYCLE = ("worker", "--once")
CAP = 3
_OUTPUTS = "SELECT thread_id, source_updated_at, raw_memory, rollout_summary, rollout_slug, is_empty FROM outputs"
_SQLITE_LOG = """
CREATE TABLE IF NOT EXISTS fault_log (what TEXT, job TEXT, n BIGINT);
CREATE TRIGGER IF NOT EXISTS fault_claim AFTER INSERT ON jobs WHEN NEW.status = 'running' BEGIN
  INSERT INTO fault_log SELECT NEW.kind, NEW.job_key, count(*) FROM jobs
  WHERE kind = NEW.kind AND status = 'running' AND lease_until > NEW.started_at;
END;
CREATE TRIGGER IF NOT EXISTS fault_claim_again AFTER UPDATE OF status ON jobs WHEN NEW.status = 'running' BEGIN
  INSERT INTO fault_log SELECT NEW.kind, NEW.job_key, count(*) FROM jobs
  WHERE kind = NEW.kind AND status = 'running' AND lease_until > NEW.started_at;
END;
CREATE TRIGGER IF NOT EXISTS fault_end AFTER UPDATE OF status ON jobs
  WHEN OLD.status = 'running' AND NEW.status = 'done' BEGIN
  INSERT INTO fault_log VALUES ('done ' || NEW.kind, NEW.job_key, NEW.last_success_watermark);
END;
CREATE TRIGGER IF NOT EXISTS fault_output AFTER INSERT ON outputs BEGIN
  INSERT INTO fault_log VALUES ('output', NEW.thread_id, NEW.source_updated_at);
END;
CREATE TRIGGER IF NOT EXISTS fault_output_again AFTER UPDATE OF raw_memory ON outputs BEGIN
  INSERT INTO fault_log VALUES ('output', NEW.thread_id, NEW.source_updated_at);
END;
"""
_POSTGRES_LOG = """
CREATE TABLE IF NOT EXISTS commonplace.fault_log (what TEXT, job TEXT, n BIGINT);
CREATE OR REPLACE FUNCTION commonplace.fault_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.status = 'running' THEN
    INSERT INTO commonplace.fault_log SELECT NEW.kind, NEW.job_key, count(*) FROM commonplace.jobs
    WHERE kind = NEW.kind AND status = 'running' AND lease_until > NEW.started_at;
  ELSIF TG_OP = 'UPDATE' AND NEW.status = 'done' AND OLD.status = 'running' THEN
    INSERT INTO commonplace.fault_log VALUES ('done ' || NEW.kind, NEW.job_key, NEW.last_success_watermark);
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION commonplace.fault_output() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO commonplace.fault_log VALUES ('output', NEW.thread_id, NEW.source_updated_at);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER fault_job AFTER INSERT OR UPDATE OF status ON commonplace.jobs
  FOR EACH ROW EXECUTE FUNCTION commonplace.fault_job();
CREATE OR REPLACE TRIGGER fault_output AFTER INSERT OR UPDATE OF raw_memory ON commonplace.outputs
  FOR EACH ROW EXECUTE FUNCTION commonplace.fault_output();
"""


@dataclass(frozen=True, repr=False)
class Taught:
    """Sessions, and what one quiet run makes of them."""

    sources: Path
    outputs: dict[str, tuple[Any, ...]]
    memory: dict[str, bytes]
    history: list[dict[str, Any]]

    @property
    def threads(self) -> set[str]:
        """The threads of all sessions."""
        return {path.stem[-36:] for path in self.ledgers()}

    def ledgers(self) -> list[Path]:
        """The session files."""
        return sorted((self.sources / "codex" / "sessions").rglob("*.jsonl"))


def taught(folder: Path, count: int) -> Taught:
    """Make sessions, and learn from them once, alone and with no fault, on SQLite."""
    many(folder / "sources", count)
    return learned(folder)


def learned(folder: Path) -> Taught:
    """Learn quietly from the sessions in a folder's `sources`."""
    found = Taught(folder / "sources", {}, {}, [])
    quiet = FaultyHome(folder / "quiet", "sqlite", found)
    quiet.finish()
    memory = workspace(quiet.variables)
    return Taught(found.sources, quiet.outputs(), memory, quiet.history())


class FaultyHome:
    """A home, and the database that its workers share."""

    def __init__(self, place: Path, database: str, taught: Taught, **settings: str) -> None:
        self.path = place / "home"
        self.taught = taught
        self.database = database
        own = {f"COMMONPLACE_{name.upper()}": text for name, text in settings.items()}
        codex = {"CODEX_HOME": str(taught.sources / "codex"), "COMMONPLACE_MEMORY_MAX_RUNNING": str(CAP)}
        self.variables = {**environment(self.path, database), **codex, **own}
        self._bytes = {path: path.read_bytes() for path in taught.ledgers()}
        self._prepare()

    def _prepare(self) -> None:
        """Make the tables and their log."""
        if self.database != "sqlite":
            self._empty()
        done = processes.run(["sessions", "list", "--json"], env=self.variables, text=True)
        assert done.returncode == 0, done.stderr
        if self.database == "sqlite":
            with closing(sqlite3.connect(self.path / "state.sqlite")) as connection:
                connection.executescript(_SQLITE_LOG)
            return
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(_POSTGRES_LOG)
        self._empty()

    def _empty(self) -> None:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'commonplace' AND tablename <> 'schema_version'"
        with psycopg.connect(self.database, autocommit=True) as connection:
            names = [f"commonplace.{name}" for (name,) in connection.execute(query)]
            if names:
                connection.execute(f"TRUNCATE {', '.join(names)}".encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the database, not through the program."""
        if self.database == "sqlite":
            with closing(sqlite3.connect(self.path / "state.sqlite", timeout=60)) as connection:
                return connection.execute(query).fetchall()
        with psycopg.connect(self.database, options="-c search_path=commonplace") as connection:
            return connection.execute(query.encode()).fetchall()

    def start(
        self, *arguments: object, faults: Mapping[str, Any] | None = None, later: int = 0, **more: str
    ) -> processes.Process:
        """Start the program with faults, at a time so many seconds after now."""
        moment = (NOW + timedelta(seconds=later)).isoformat()
        told = json.dumps({"now": moment, **(faults or {})})
        variables = {**self.variables, "COMMONPLACE_NOW": moment, "FAULTS": told, **more}
        return processes.Process(arguments or CYCLE, env=variables, text=True, code=CODE)

    def run(
        self, *arguments: object, faults: Mapping[str, Any] | None = None, later: int = 0, **more: str
    ) -> tuple[int, str]:
        """Run it to its end; return how that was, and what it said."""
        process = self.start(*arguments, faults=faults, later=later, **more)
        _, said = process.communicate(timeout=600)
        return process.wait(), said

    def finish(self, later: int = 0) -> None:
        """One quiet run, which brings everything to its end."""
        code, said = self.run(later=later)
        assert code == 0, said

    def outputs(self) -> dict[str, tuple[Any, ...]]:
        """What every thread taught, as it is stored."""
        return {str(row[0]): row[1:] for row in self.rows(_OUTPUTS)}

    def history(self) -> list[dict[str, Any]]:
        """The history of the memory, without the times at which it was written."""
        path = self.path / "memory_history.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [{key: value for key, value in json.loads(line).items() if key != "time"} for line in lines]

    def log(self) -> Counter[tuple[str, str]]:
        """How often what happened to which job."""
        return Counter((what, job) for what, job, _ in self.rows("SELECT what, job, n FROM fault_log"))

    def most_running(self) -> int:
        """How many extractions were running at once, at most."""
        return max(n for (n,) in self.rows("SELECT n FROM fault_log WHERE what = 'memory_stage1'"))

    def check(self, *, failed: Mapping[str, str] | None = None, cap: int = CAP, compares: bool = True) -> None:
        """Look at the home from outside: nothing is lost, done twice, stuck or over its cap.

        Args:
            failed: Threads that cannot be read, each with words of the reason.
            cap: How many extractions may be running at once.
            compares: The memory is that of a quiet run over the same sessions, byte for byte.
        """
        failed = failed or {}
        expected = self.taught.threads - failed.keys()
        log, states = self.log(), self.rows("SELECT kind, job_key, status, last_error FROM jobs")
        extractions = {key: (status, error) for kind, key, status, error in states if kind == "memory_stage1"}
        others = {key: each for key, each in extractions.items() if key not in failed}
        same(dict.fromkeys(expected, ("done", None)), others)
        for key, words in failed.items():
            assert extractions[key][0] == "error"
            assert words in extractions[key][1]
        assert ["done"] == [status for kind, _, status, _ in states if kind == "memory_consolidate_global"]
        ends = {job: n for (what, job), n in log.items() if what == "done memory_stage1"}
        stored = {job: n for (what, job), n in log.items() if what == "output"}
        outputs = self.outputs()
        same(dict.fromkeys(expected, 1), ends)
        same(dict.fromkeys(outputs, 1), stored)
        assert 0 < self.most_running() <= cap
        self._check_ledgers()
        assert [] == [each.name for each in self.path.iterdir() if each.name.startswith("memories.")]
        assert [] == list(self.path.rglob("*.part"))
        if compares:
            same(self.taught.outputs, outputs)
            same(self.taught.memory, workspace(self.variables))
            same(current(self.taught.history), current(self.history()))
        anyio.run(self._inspect, sorted(expected))

    def check_others(self) -> None:
        """Look at a home some of whose sessions are broken: the others are read as if they were alone, each once."""
        ends = {job: n for (what, job), n in self.log().items() if what == "done memory_stage1"}
        outputs = self.outputs()
        assert dict.fromkeys(ends, 1) == ends
        assert self.taught.outputs == {key: outputs[key] for key in self.taught.outputs}
        assert [] == self.rows("SELECT kind, job_key, status FROM jobs WHERE status NOT IN ('done', 'error')")
        self._check_ledgers()

    def _check_ledgers(self) -> None:
        for path, data in self._bytes.items():
            assert data == path.read_bytes(), f"{path} was changed"

    async def _inspect(self, threads: Sequence[str]) -> None:
        """Ask the program itself: every ledger is whole, and the doctor finds nothing."""
        from commonplace.app import doctor

        async with books.open(environment=self.variables) as book:
            wrong = [each for each in threads[:20] if not (await book.sessions.verify(each)).ok]
            report = await doctor.examine(book.state)
        assert [] == wrong
        assert [] == [check for check in report.checks if not check.ok]

    def remove(self) -> None:
        """Make room for the next one."""
        shutil.rmtree(self.path)


def same(expected: Mapping[str, object], found: Mapping[str, object]) -> None:
    """Compare ten thousand things, and show the first few that differ."""
    wrong = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
    shown = {key: (expected.get(key, "nothing"), found.get(key, "nothing")) for key in sorted(wrong)[:3]}
    assert not wrong, f"{len(wrong)} differ, as expected and as found: {shown}"


def current(history: list[dict[str, Any]]) -> dict[str, str]:
    """What a history says of each entry in the end; each change must begin where the one before it ended."""
    last: dict[str, str | None] = {}
    for change in history:
        assert change["before"] == last.get(change["entry_id"]), f"recorded twice: {change}"
        last[change["entry_id"]] = change["after"]
    return {key: text for key, text in last.items() if text is not None}


def in_state(process: processes.Process, letter: str) -> None:
    """Return when a process is in a state, as `ps` names it; fail if it ends before."""
    stat = Path(f"/proc/{process.pid}/stat")

    def holds() -> bool:
        assert process.poll() is None, process.communicate()
        return stat.read_text("utf-8").rpartition(")")[2].split()[0] == letter

    anyio.run(waiting.until, holds)


@contextmanager
def ended(*started: processes.Process) -> Generator[None]:
    """End processes with the block, however that ends."""
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.communicate()
