"""What making a memory costs, and how good it is: the gold set through `learn`, merging, and the whole command."""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

import anyio

from bench import gold_sets, measure
from bench.learning import NOW, PROGRAM
from bench.ledger import Table
from commonplace.app import book as books
from commonplace.learning import learn
from commonplace.learning.consolidate import merge
from commonplace.learning.evaluate import cases, files, whole
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from commonplace.learning.reading.session_view import read
from commonplace.memory.entries import Source
from commonplace.memory.lessons import SessionLesson

KINDS = ("learned", "merged", "superseded", "scope", "skill", "never")
THINGS = ("answers", "commits", "branches", "tests", "comments", "imports", "logs", "releases", "migrations", "types")
VERBS = ("keep", "write", "name", "check", "split", "sort", "review", "squash", "avoid", "prefer")


def gold() -> Table:
    """Score the memory that `learn` makes of several sessions of one person."""
    table = Table("Memories made of several sessions, of 100", ("set", "cases", "score", "precision", *KINDS, "size"))
    for name in gold_sets.MEMORIES:
        found = [_scored(case) for case in gold_sets.load(name)]
        counted = sum(each.counted for each in found)
        precision = 1 - sum(len(each.false) for each in found) / counted
        size = sum(each.bytes for each in found) / sum(each.dialogue for each in found)
        shares = (f"{whole.share(found, kind):.0%}" for kind in KINDS)
        table.add(name, len(found), f"{whole.total(found):.1f}", f"{precision:.1%}", *shares, f"{size:.0%}")
    return table


def _scored(case: Case) -> whole.WholeScore:
    with tempfile.TemporaryDirectory() as name:
        return anyio.run(score, case, Path(name))


async def score(case: Case, folder: Path) -> whole.WholeScore:
    """Learn from the sessions of a case in a home of their own, and score the memory."""
    files.write(case, folder / "source", NOW)
    environment = {"COMMONPLACE_HOME": str(folder / "home"), "COMMONPLACE_NOW": NOW.isoformat(), "HOME": str(folder)}
    async with books.open(environment=environment) as book:
        places = tuple(place for place in (folder / "source/codex", folder / "source/claude") if place.is_dir())
        await book.memory.learn(learn.LearningPlan(paths=places))
        database, home = await book.state.database(), str(book.home.resolve())
        rows = await database.read(lambda tx: tx.query("threads.current", home=home))
    dialogue = sum(read(Path(row["path"])).dialogue_bytes() for row in rows)
    projects = {row["cwd"]: row["project"] for row in rows}
    return whole.score(case, folder / "home", [projects.get(each.cwd, each.cwd) for each in case.sessions], dialogue)


def merging() -> Table:
    """Merge thousands of lessons."""
    table = Table("Merging lessons, one process", ("lessons", "entries", "time"))
    for count in (1000, 5000):
        lessons = _lessons(count)
        begun = time.perf_counter()
        found = merge.merge(lessons)
        table.add(count, len(found.entries), f"{time.perf_counter() - begun:.2f} s")
    return table


def _lessons(count: int) -> list[SessionLesson]:
    """Lessons of forty projects in many words, a third of them said before."""
    source = random.Random(5)
    words = [f"{source.choice(VERBS)}{number}" for number in range(2000)]
    said: list[str] = []
    for _ in range(count):
        if said and source.random() < 0.33:
            base = source.choice(said)
            said.append(f"again: {base}, please")
        else:
            said.append(" ".join([source.choice(VERBS), source.choice(THINGS), *source.sample(words, 7)]))
    found: list[SessionLesson] = []
    for number, text in enumerate(said):
        project = f"example.org/acme/p{number % 40}"
        evidence = Source(text, "said by the user", f"t{number}", 1, 0, 9, number)
        kind = "preference" if number % 2 else "rule"
        found.append(
            SessionLesson(
                kind, text, text, "", "said by the user", project, f"t{number}", number, 0, "", "", (evidence,)
            )
        )
    return found


def whole_command(folder: Path) -> Table:
    """`learn` on a thousand small sessions, from files to memory, and again with nothing new."""
    table = Table("learn, process start to end", ("what", "sessions", "time", "speed", "peak memory"))
    known = [session for case in cases.bundled() for session in case.sessions if session.source == "cli"]
    source = folder / "source"
    for number in range(1000):
        session = known[number % len(known)]
        again = CaseSession("codex", session.cwd, session.events, remote=session.remote, days_ago=1 + number / 100)
        files.write(Case(f"learn-{number}", "", [again], ExpectedLessons()), source, NOW)
    size = sum(path.stat().st_size for path in source.rglob("*.jsonl"))
    environment = {**os.environ, "COMMONPLACE_HOME": str(folder / "home"), "COMMONPLACE_NOW": NOW.isoformat()}
    command = [*PROGRAM, "learn", "--path", str(source / "codex")]
    for what in ("everything new", "nothing new"):
        run = measure.run(command, environment)
        speed = f"{1000 / run.seconds:.0f} sessions/s, {size / 1e6 / run.seconds:.1f} MB/s"
        table.add(what, 1000, f"{run.seconds:.2f} s", speed, f"{run.megabytes:.0f} MB")
    return table


def run_all() -> list[Table]:
    """Measure everything."""
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as name:
        return [gold(), merging(), whole_command(Path(name))]
