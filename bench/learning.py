"""What reading sessions costs, and how well the embedded reader does on the gold set.

With `COMMONPLACE_BENCH_CORPUS`, a folder as `memory eval --corpus` takes it, `learn` is measured on the real sessions
in it; with `COMMONPLACE_BENCH_LABELS`, the labels of its messages, the memory is scored, too. Without them that section
stays as it was measured last.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench import gold_sets, measure
from bench.ledger import Table
from commonplace.importers import claude_code, ledger_writer
from commonplace.learning.evaluate import cases, corpus, files, score
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from commonplace.learning.extract import rules
from commonplace.learning.reading import session_view
from commonplace.redact import redact
from commonplace.state.outputs import Output

REAL = "The whole of `learn` on real sessions"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
TASKSET = shutil.which("taskset")
PROGRAM = [sys.executable, "-m", "commonplace"]


def gold() -> Table:
    """Precision and recall on both halves and on the set to tune on, by kind of finding."""
    header = ("set", "cases", "recall", "precision", "leaks", "talkative no-ops", "outcomes", "recall by kind")
    table = Table("The gold set, read by the embedded extractor", header)
    for half in gold_sets.SETS:
        known = gold_sets.load(half)
        result = score.Score([_scored(case) for case in known])
        kinds = sorted({kind for case in result.cases for kind in case.wanted})
        noisy = sum(case.noise for case in result.cases)
        table.add(
            half,
            len(known),
            f"{result.recall():.1%}",
            f"{result.precision():.1%}",
            result.leaks(),
            noisy,
            f"{result.outcome_accuracy():.1%}",
            ", ".join(f"{kind} {result.recall(kind):.0%}" for kind in kinds),
        )
    return table


def _scored(case: Case) -> score.CaseScore:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = ledger_writer.LedgerDestination(folder / "home", lambda: NOW, 65536)
        outputs: list[Output] = []
        for session, _, path in files.write(case, folder, NOW):
            if session.source in ("subagent", "ephemeral"):
                outputs.append(Output("", ""))
                continue
            is_ledger = session.agent == "codex"
            ledger = path if is_ledger else ledger_writer.write(path, claude_code.convert, place)[0][0].path
            found = rules.extract(session_view.read(ledger))
            outputs.append(Output(redact(found.raw_memory), redact(found.rollout_summary), found.rollout_slug))
        return score.score(case, outputs)


def speed(folder: Path) -> Table:
    """Sessions per second of the whole command on one core, and how the cost grows with size."""
    table = Table(
        "memory run --phase 1, one core, process start to end",
        ("sessions", "events each", "time", "speed", "peak memory"),
    )
    known = [session for case in cases.bundled() for session in case.sessions if session.source == "cli"]
    for count, times in ((1000, 1), (250, 4), (60, 16), (15, 64)):
        source, home = folder / f"source{count}", folder / f"home{count}"
        events = 0
        for number in range(count):
            session = known[number % len(known)]
            again = CaseSession("codex", session.cwd, session.events * times, days_ago=1 + number / 1000)
            events += len(again.events)
            files.write(Case(f"{count}-{number}", "", [again], ExpectedLessons()), source, NOW)
        environment = {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": NOW.isoformat()}
        pinned = [TASKSET, "-c", "0", *PROGRAM] if TASKSET else PROGRAM
        measure.run([*pinned, "sessions", "import", "--from", "codex", "--path", str(source / "codex")], environment)
        run = measure.run([*pinned, "memory", "run", "--phase", "1"], environment)
        speed = f"{count / run.seconds:.0f} sessions/s, {events / run.seconds:.0f} events/s"
        table.add(count, events // count, f"{run.seconds:.2f} s", speed, f"{run.megabytes:.0f} MB")
    return table


def real(folder: Path, place: Path, labels: str | None) -> Table:
    """How fast `learn` is on real sessions, and how good the memory is if they have labels."""
    table = Table(REAL, ("", "measured"))
    homes = [
        (agent, place / "homes" / home) for home, agent in corpus.HOMES.items() if (place / "homes" / home).is_dir()
    ]
    known = [path for _, home in homes for path in home.rglob("*.jsonl")]
    size = sum(path.stat().st_size for path in known) / 1e6
    named = ", ".join(agent for agent, _ in homes)
    table.add("measured on", f"{datetime.now(UTC):%Y-%m-%d}, {len(known)} files of {named}, {size:.0f} MB")
    for cores in ("one", "two"):
        pinned = [TASKSET, "-c", "0" if cores == "one" else "0,1", *PROGRAM] if TASKSET else PROGRAM
        environment = {**os.environ, "COMMONPLACE_HOME": str(folder / f"real-{cores}")}
        runs = [
            measure.run([*pinned, "learn", "--model", "embedded", "--from", agent, "--path", str(home)], environment)
            for agent, home in homes
        ]
        clock, busy = sum(run.seconds for run in runs), sum(run.busy for run in runs)
        table.add(f"{cores} core{'s' * (cores == 'two')}, clock", f"{clock:.1f} s")
        table.add(f"{cores} core{'s' * (cores == 'two')}, processor time", f"{busy:.1f} s")
        if cores == "one":
            table.add("one core, speed by it", f"{size / busy:.1f} MB/s")
        table.add(f"{cores} core{'s' * (cores == 'two')}, peak memory", f"{max(run.megabytes for run in runs):.0f} MB")
    if labels is not None:
        command = [*PROGRAM, "memory", "eval", "--model", "embedded", "--corpus", str(place), "--labels", labels]
        environment = {**os.environ, "COMMONPLACE_HOME": str(folder / "real-scored")}
        ran = subprocess.run([*command, "--json"], env=environment, stdout=subprocess.PIPE, check=True)
        found = json.loads(ran.stdout)
        table.add(
            "lines of memory, and how many are good (trained on these labels)", f"{found['entries']}, {found['good']}"
        )
        table.add("of what must be learned, found", f"{found['found']} of {found['musts']}")
    return table


def run_all() -> list[Table]:
    """Measure everything that there are sessions for."""
    place = os.environ.get("COMMONPLACE_BENCH_CORPUS")
    with tempfile.TemporaryDirectory(prefix="bench-learning-") as name:
        tables = [gold(), speed(Path(name))]
        if place is not None:
            tables.append(real(Path(name), Path(place), os.environ.get("COMMONPLACE_BENCH_LABELS")))
        return tables
