"""How much work a team's database and its workers take, and what a team of 10,000 people would need.

Workers are processes of the program against a PostgreSQL of our own on the same machine; a model is a process that
answers after 200 ms and does nothing meanwhile. Queues of any length are made by the server itself, row by row from one
that the program wrote.
"""

from __future__ import annotations

import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import psycopg
from tests.state import contender
from tests.state.contender import HOME, NOW, ROOT, thread_id, thread_row

from bench import extraction, measure, state
from bench.ledger import Table
from commonplace.learning.evaluate import cases, files
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from commonplace.state import extraction_jobs, jobs, outputs
from commonplace.state.database import Database, Transaction

T = TypeVar("T")
WORKERS: Final = (1, 2, 4, 8)
SESSIONS: Final = {"embedded": 2_000, "model, 200 ms": 640}
PAUSE: Final = 0.2
"""Seconds that the model takes for an answer."""
QUEUES: Final = (1_000, 10_000, 100_000, 1_000_000)
REPEATS: Final = 101
PEOPLE: Final = 10_000
EACH: Final = 100
"""Sessions of one person."""
SAMPLE: Final = 20
"""So many people learn in full."""
DAYS: Final = 25
"""Working days in which their sessions come."""
WORKDAY: Final = 8 * 3600
MERGES: Final = 2
"""How often a day a person's memory is put together: six hours lie between two background runs."""
ANSWER: Final = 10
"""Seconds that a model takes for a session."""
PROGRAM: Final = [sys.executable, "-m", "commonplace"]


def run_all() -> list[Table]:
    """Measure everything."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-throughput-") as name,
        state.server(Path(name)) as address,
        extraction.server(PAUSE) as port,
    ):
        folder, costs = Path(name), dict[str, float]()
        return [workers(folder, address, port), claims(address, costs), *simulation(folder, address, costs)]


def _sessions(folder: Path, count: int, name: str = "queued") -> Path:
    """Write small sessions, made of the gold set's; return their Codex home."""
    known = [session for case in cases.bundled() for session in case.sessions if session.source == "cli"]
    for number in range(count):
        session = known[number % len(known)]
        again = CaseSession("codex", session.cwd, session.events, remote=session.remote, days_ago=1 + number / count)
        files.write(Case(f"{name}-{number}", "", [again], ExpectedLessons()), folder, extraction.NOW)
    return folder / "codex"


def _variables(home: Path, database: str) -> dict[str, str]:
    own = {
        "COMMONPLACE_HOME": str(home),
        "COMMONPLACE_NOW": extraction.NOW.isoformat(),
        "HOME": str(home.parent / "no"),
    }
    return {**os.environ, **own, "COMMONPLACE_DATABASE": database, "COMMONPLACE_MEMORY_MAX_RUNNING": "1024"}


def _database(server: str, name: str) -> str:
    """Make an empty database; return its address, as a setting has it."""
    state.new_database(server, name)
    return server.replace("/postgres?", f"/{name}?")


def _run(variables: dict[str, str], *words: str) -> None:
    subprocess.run([*PROGRAM, *words], env=variables, check=True, capture_output=True)


def workers(folder: Path, server: str, port: int) -> Table:
    """Let some workers read one queue."""
    busy = f"{os.getloadavg()[0]:.1f} other processes ran at its start"
    title = f"Sessions through phase 1 on PostgreSQL, {os.cpu_count()} cores for workers, server and model; {busy}"
    table = Table(title, ("reader", "workers", "sessions", "time", "sessions/s", "times one worker"))
    for reader, count in SESSIONS.items():
        source, first = _sessions(folder / f"source {count}", count), 0.0
        for number in WORKERS:
            home = folder / f"home {count} {number}"
            variables = _variables(home, _database(server, f"workers_{count}_{number}"))
            home.mkdir()
            if reader != "embedded":
                provider = f'[providers.here]\napi = "responses"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
                limits = "extract_run_requests = 0\nextract_day_requests = 0"
                (home / "config.toml").write_text(
                    f'[memory]\nextract_model = "here:m-1"\n{limits}\n{provider}', "utf-8"
                )
            _run(variables, "sessions", "import", "--from", "codex", "--path", str(source))
            seconds = _race(variables, number)
            first = first or seconds
            speed, times = count / seconds, first / seconds
            table.add(reader, number, f"{count:,}", f"{seconds:.1f} s", f"{speed:.0f}", f"{times:.1f}")
    return table


def _race(variables: dict[str, str], number: int) -> float:
    """Start so many workers at once; return how long it took from the first start to the last end."""
    words = [*PROGRAM, "memory", "run", "--phase", "1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    begun = time.perf_counter()
    started = [subprocess.Popen(words, env=variables, **quiet) for _ in range(number)]  # pyright: ignore[reportCallIssue, reportArgumentType]
    for process in started:
        _, said = process.communicate(timeout=600)
        assert process.returncode == 0, said
    return time.perf_counter() - begun


def claims(server: str, costs: dict[str, float]) -> Table:
    """Measure single transactions with queues of growing length; put what the longest one costs into `costs`."""
    names = [f"{size:,} queued" for size in QUEUES]
    title = "One transaction on PostgreSQL, median, by the length of the queue; every thread was read once before"
    table = Table(title, ("what", *names, "last ÷ first"))
    found = [anyio.run(_costs, _database(server, f"queue_{size}"), size) for size in QUEUES]
    costs.update(found[-1])
    for what in found[0]:
        times = [each[what] for each in found]
        table.add(what, *(f"{seconds * 1e3:.2f} ms" for seconds in times), f"{times[-1] / times[0]:.2f}")
    return table


def _queue(address: str, size: int) -> None:
    """Make a queue of so many threads out of one row."""
    changed = {
        "thread_id": "gen_random_uuid()::text",
        "rollout_id": "gen_random_uuid()::text",
        "path": "'/home/sessions/' || n || '.jsonl'",
        "updated_s": f"{NOW} - 86400 - n",
    }
    place = "table_schema = 'commonplace' AND table_name = 'threads'"
    query = f"SELECT column_name FROM information_schema.columns WHERE {place}"
    with psycopg.connect(address, autocommit=True) as connection:
        columns = [str(name) for (name,) in connection.execute(query)]
        values = ", ".join(changed.get(name, name) for name in columns)
        source = f"(SELECT * FROM commonplace.threads LIMIT 1) AS one, generate_series(2, {size}) AS n"
        connection.execute(
            f"INSERT INTO commonplace.threads ({', '.join(columns)}) SELECT {values} FROM {source}".encode()
        )
        ended = "SELECT 'memory_stage1', thread_id, 'done', 3, 0, 0 FROM commonplace.threads"
        names = "kind, job_key, status, retry_remaining, input_watermark, last_success_watermark"
        connection.execute(f"INSERT INTO commonplace.jobs ({names}) {ended}".encode())
        connection.execute("VACUUM ANALYZE")


async def _costs(address: str, size: int) -> dict[str, float]:
    database = await contender.connect(address)
    await database.write(lambda tx: tx.execute_many("threads.put", [thread_row(thread_id(1), NOW - 86_400)]))
    await anyio.to_thread.run_sync(_queue, address, size)
    taken: dict[str, list[float]] = {}
    for batch in (1, 8):
        for claimed in [await _claim(database, taken, batch) for _ in range(REPEATS // batch)]:
            await _timed(database, taken, f"heartbeat of {batch}", partial(_beat, claimed=claimed))
            await _timed(database, taken, f"finish {batch}, with what they taught", partial(_finish, claimed=claimed))
    for _ in range(3):
        await _timed(database, taken, "/metrics: jobs by state", lambda tx: tx.query("jobs.states"))
        await _timed(
            database, taken, "/metrics: sessions that wait", lambda tx: tx.query("threads.count_waiting", home=HOME)
        )
    await database.close()
    return {what: statistics.median(times) for what, times in taken.items()}


async def _claim(
    database: Database, taken: dict[str, list[float]], batch: int
) -> list[extraction_jobs.ExtractionClaim]:
    terms = extraction_jobs.ClaimTerms(HOME, max_claims=batch, max_running=1024)

    def claim(tx: Transaction) -> list[extraction_jobs.ExtractionClaim]:
        return extraction_jobs.claim_next(tx, terms, jobs.this_process(), lambda: secrets.token_hex(16), now=NOW)

    return await _timed(database, taken, f"claim of {batch}", claim)


def _beat(tx: Transaction, claimed: list[extraction_jobs.ExtractionClaim]) -> None:
    for each in claimed:
        assert jobs.heartbeat(tx, each.claim, lease=300, now=NOW)


def _finish(tx: Transaction, claimed: list[extraction_jobs.ExtractionClaim]) -> None:
    for each in claimed:
        assert extraction_jobs.succeed(tx, each.claim, outputs.Output("raw " * 400, "sum " * 200), root=ROOT, now=NOW)


async def _timed(database: Database, taken: dict[str, list[float]], what: str, body: Callable[[Transaction], T]) -> T:
    begun = time.perf_counter()
    found = await database.write(body)
    taken.setdefault(what, []).append(time.perf_counter() - begun)
    return found


def simulation(folder: Path, server: str, costs: dict[str, float]) -> Iterator[Table]:
    """Let a sample of the people learn in full, each in a home of their own, and multiply."""
    address = _database(server, "sample")
    spent, merging, megabytes = 0, 0.0, 0.0
    for person in range(SAMPLE):
        variables = _variables(folder / f"person {person}", address)
        source = _sessions(folder / f"sessions {person}", EACH, f"person-{person}")
        _run(variables, "sessions", "import", "--from", "codex", "--path", str(source))
        begun = _transactions(address)
        _run(variables, "memory", "run", "--phase", "1")
        run = measure.run([*PROGRAM, "memory", "run"], variables)
        spent += _transactions(address) - begun
        merging, megabytes = merging + run.seconds, max(megabytes, run.megabytes)
    yield _tables(address)
    yield _day(spent / SAMPLE / EACH, merging / SAMPLE, megabytes)
    yield _limits(address, costs)


def _ask(address: str, query: str) -> list[tuple[Any, ...]]:
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        return connection.execute(query.encode()).fetchall()


def _transactions(address: str) -> int:
    """Return how many transactions a database committed; the server counts those of ended connections."""
    return int(_ask(address, "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")[0][0])


def _tables(address: str) -> Table:
    """Count rows and bytes of each table, indexes and long values with them."""
    factor = PEOPLE // SAMPLE
    title = f"{PEOPLE:,} people with {EACH} small sessions each: a sample of {SAMPLE} people, times {factor:,}"
    table = Table(title, ("table", "rows", "bytes", "rows of all", "bytes of all"))
    sizes = "SELECT tablename, pg_total_relation_size('commonplace.' || tablename) FROM pg_tables"
    total = 0
    for name, size in sorted(_ask(address, f"{sizes} WHERE schemaname = 'commonplace'"), key=lambda row: -row[1]):
        ((rows,),) = _ask(address, f"SELECT count(*) FROM commonplace.{name}")
        if rows > 1:
            total += size
            table.add(name, f"{rows:,}", f"{size / 1e6:.2f} MB", f"{rows * factor:,}", f"{size * factor / 1e9:.1f} GB")
    table.add("all", "", f"{total / 1e6:.2f} MB", "", f"{total * factor / 1e9:.1f} GB")
    return table


def _day(transactions: float, merging: float, megabytes: float) -> Table:
    """Say what a day asks for."""
    daily = PEOPLE * EACH / DAYS
    title = f"A day: {PEOPLE * EACH:,} sessions in {DAYS} days are {daily:,.0f}, within eight hours"
    table = Table(title, ("what", "each", "a day", "a second"))

    def add(what: str, each: str, count: float) -> None:
        table.add(what, each, f"{count:,.0f}", f"{count / WORKDAY:.1f}")

    add("sessions read", "", daily)
    add(
        "transactions, of reading and putting together",
        f"{transactions:.1f} a session (measured)",
        daily * transactions,
    )
    add("requests to a model, if one reads", "1 a small session, more for long ones", daily)
    merges = PEOPLE * MERGES
    add("memories put together", f"{MERGES} a person, six hours apart", merges)
    cores = merges * merging / WORKDAY
    table.add("processes for that", f"{merging:.2f} s, {megabytes:.0f} MB (measured)", "", f"{cores:.1f} busy")
    return table


def _limits(address: str, costs: dict[str, float]) -> Table:
    """Compare what a day asks for with what there is, the tightest first."""
    daily = PEOPLE * EACH / DAYS / WORKDAY
    header = ("what", "needed", "there is", "breaks at", "remedy")
    table = Table("What breaks first", header)
    most = int(_ask(address, "SHOW max_connections")[0][0])
    at_once = PEOPLE // 5
    table.add(
        "connections of the server",
        f"{at_once:,} (one person in five at work, one connection each; a process opens up to 4)",
        f"{most} (PostgreSQL's own setting), {_connection(address):.1f} MB each",
        f"{most * 5:,} people",
        "PgBouncer (pool_mode = session) or max_connections; memory.background off, and a few workers on servers",
    )
    read = 64 / ANSWER
    table.add(
        "memory.max_running (64), for all homes of the database together",
        f"{daily:.1f} sessions/s",
        f"{read:.1f} sessions/s, if a model takes {ANSWER} s a session",
        f"{PEOPLE * read / daily:,.0f} people",
        "raise memory.max_running (1,024 at most) with the model's own limits",
    )
    rate = 8 / costs["claim of 8"]
    table.add(
        "claims, which are made one at a time",
        f"{daily:.1f} sessions/s",
        f"{rate:,.0f} sessions/s, claimed by 8, with {QUEUES[-1]:,} queued",
        f"{PEOPLE * rate / daily:,.0f} people",
        "a database for each part of the company",
    )
    scan = sum(seconds for what, seconds in costs.items() if what.startswith("/metrics"))
    table.add(
        "/metrics, which counts rows",
        "one scrape in 15 s for each worker",
        f"{scan:.2f} s with {QUEUES[-1]:,} threads",
        f"{15 / scan:,.0f} workers keep one core busy",
        "scrape one worker only",
    )
    return table


def _connection(address: str) -> float:
    """Return the memory of a server's process for one connection, in megabytes, what it shares with others left out."""
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute("SELECT count(*) FROM commonplace.threads JOIN commonplace.outputs USING (thread_id)")
        text = Path(f"/proc/{connection.info.backend_pid}/smaps_rollup").read_text("utf-8")
    private = [int(line.split()[1]) for line in text.splitlines() if line.startswith("Private")]
    return sum(private) / 1024
