"""How fast sessions of other agents come in, what a second look costs, and how much memory any input takes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from bench import measure, transcripts
from bench.ledger import Table

TASKSET = shutil.which("taskset")
SIZES = (("80 sessions, 1.3 MB each", 80, 1_300_000), ("1,000 sessions, 40 KB each", 1000, 40_000))
PROGRAM = [sys.executable, "-m", "commonplace", "sessions", "import", "--from", "claude-code", "--path"]


def _import(source: Path, home: Path, cores: str = "0") -> measure.Run:
    """Import on one core."""
    command = [TASKSET, "-c", cores, *PROGRAM, str(source)] if TASKSET else [*PROGRAM, str(source)]
    return measure.run(command, {**os.environ, "COMMONPLACE_HOME": str(home)})


def speed(folder: Path) -> Table:
    """Raw bytes of transcripts per second, the whole command with its index, on one core."""
    header = ("sessions", "raw", "import", "speed", "second run, nothing new", "peak memory")
    table = Table("Claude Code transcripts, one core, process start to end", header)
    for name, count, size in SIZES:
        source, home = folder / f"source{count}", folder / f"home{count}"
        total = transcripts.make(source / "projects" / "-repo-app", count, size)
        first = _import(source, home)
        again = _import(source, home)
        rate = f"{total / first.seconds / 1e6:.0f} MB/s"
        took = f"{first.seconds:.2f} s"
        table.add(name, f"{total / 1e6:.0f} MB", took, rate, f"{again.seconds:.2f} s", f"{first.megabytes:.0f} MB")
        shutil.rmtree(home)
    return table


def memory(folder: Path) -> Table:
    """Peak memory of inputs that are meant to take much."""
    table = Table("Peak memory (the promise: under 200 MB)", ("input", "raw", "time", "peak memory"))
    hard = {
        "one session of 400 MB": _long,
        "records of 15 MB": _wide,
        "300,000 records whose parents never come": _lost,
    }
    for name, write in hard.items():
        source = folder / "hard"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        write(source)
        size = sum(path.stat().st_size for path in source.iterdir())
        run = _import(source, folder / "hard-home")
        shutil.rmtree(folder / "hard-home")
        table.add(name, f"{size / 1e6:.0f} MB", f"{run.seconds:.1f} s", f"{run.megabytes:.0f} MB")
    return table


def _long(folder: Path) -> None:
    transcripts.Transcript(folder, 1).write(400_000_000)


def _record(number: int, parent: str | None, text: str) -> bytes:
    record = {"type": "user", "uuid": f"r{number}", "parentUuid": parent, "sessionId": "s"}
    record["timestamp"] = "2026-11-01T00:00:00.000Z"
    return json.dumps({**record, "message": {"role": "user", "content": text}}, ensure_ascii=False).encode() + b"\n"


def _wide(folder: Path) -> None:
    with (folder / "wide.jsonl").open("wb") as file:
        for number in range(4):
            file.write(_record(number, None, ("x" * 15_000_000) if number % 2 else "é😀" * 2_500_000))


def _lost(folder: Path) -> None:
    with (folder / "lost.jsonl").open("wb") as file:
        for number in range(300_000):
            file.write(_record(number, f"gone{number}", "hello"))


def run_all() -> list[Table]:
    """Measure everything."""
    with tempfile.TemporaryDirectory(prefix="bench-imports-") as name:
        return [speed(Path(name)), memory(Path(name))]
