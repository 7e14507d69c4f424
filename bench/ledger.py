"""What the ledger promises, measured: resuming costs the live window, listing does not scan, parsing is cheap."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import anyio
import msgspec

from bench import codex, corpus, measure
from commonplace.protocol.rollout import Line
from commonplace.rollout import reader
from commonplace.rollout.recorder import Recorder, RecorderOptions
from commonplace.state.sqlite import SqliteDatabase
from commonplace.state.threads import ThreadIndex

SIZES = {"1 MB": 10**6, "100 MB": 10**8, "1 GB": 10**9}
THREADS = 50_000
BIN = Path(sys.executable).parent
RECORDINGS = Path(__file__).parent.parent / "tests" / "data"


@dataclass
class Table:
    """Rows of measurements under a heading."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def add(self, *cells: object) -> None:
        """Add a row and show it as it is measured."""
        row = tuple(str(cell) for cell in cells)
        self.rows.append(row)
        print(" | ".join(row), flush=True)


def run_all() -> list[Table]:
    """Run every measurement in a throw-away folder."""
    with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as folder:
        root = Path(folder)
        return [
            resume(root, paginated=True),
            resume(root, paginated=False),
            listing(root),
            appending(root),
            parsing(root),
            starting(root),
        ]


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "COMMONPLACE_HOME": str(root / "home")}


def resume(root: Path, *, paginated: bool) -> Table:
    """`sessions context` on files of growing size with a checkpoint near the end, beside the real Codex."""
    name = "paginated" if paginated else "legacy"
    header = ("file", "Commonplace", "× 1 MB", "peak RSS", "over 1 MB", "Codex, first", "Codex, again", "Codex RSS")
    table = Table(f"Resume, {name} line format, checkpoint three turns before the end", header)
    first: measure.Run | None = None
    for number, (label, size) in enumerate(SIZES.items()):
        path = corpus.write_session(root / name, number, size, paginated=paginated)
        command = [str(BIN / "commonplace"), "sessions", "context", str(path), "--json"]
        ours = measure.best_of(9, command, _environment(root))
        first = first or ours
        theirs = codex.resume(path, root / f"codex-{name}-{number}")
        path.unlink()
        table.add(
            label,
            f"{ours.seconds * 1000:.0f} ms",
            f"{ours.seconds / first.seconds:.2f}",
            f"{ours.megabytes:.0f} MB",
            f"{ours.megabytes - first.megabytes:+.1f} MB",
            *theirs,
        )
    return table


def listing(root: Path) -> Table:
    """A page out of 50,000 threads, and how fast the index is built and checked."""
    table = Table(f"Listing {THREADS:,} threads", ("what", "measured"))
    home = root / "many"
    size = corpus.write_many(home, THREADS)

    async def work() -> None:
        database = await SqliteDatabase.open(root / "many.sqlite")
        index = ThreadIndex(database)
        begun = anyio.current_time()
        await index.refresh(home, rebuild=True, complete=True)
        taken = anyio.current_time() - begun
        table.add(
            "reindex from the files alone",
            f"{THREADS / taken:,.0f} files/s, {size / taken / 1e6:.0f} MB/s, {taken:.1f} s",
        )
        begun = anyio.current_time()
        await index.refresh(home)
        table.add("check that nothing changed (stat of every file)", f"{(anyio.current_time() - begun) * 1000:.0f} ms")
        for what, cwd in (("newest page of 25", None), ("page of 25 in one folder", "/repo/demo")):
            await index.page(home, cwd=cwd)
            taken = min([await _timed_page(index, home, cwd) for _ in range(20)])
            table.add(f"{what}, warm, in process", f"{taken * 1000:.2f} ms (target 50 ms)")
        page = await index.page(home, limit=5000)
        begun = anyio.current_time()
        await index.page(home, cursor=page.next_cursor)
        table.add("page of 25 after the 5,000th", f"{(anyio.current_time() - begun) * 1000:.2f} ms")
        await database.close()

    anyio.run(work)
    return table


async def _timed_page(index: ThreadIndex, home: Path, cwd: str | None) -> float:
    begun = anyio.current_time()
    await index.page(home, cwd=cwd)
    return anyio.current_time() - begun


def appending(root: Path) -> Table:
    """Lines per second when each is followed by a barrier."""
    table = Table("Appending, a flush after every line (600-byte lines)", ("fsync", "lines/s"))
    payload = corpus.message("assistant", "x" * 500, "m")

    async def work(mode: str, count: int) -> float:
        options = RecorderOptions(root / f"append-{mode}", lambda: datetime.now(UTC), mode)  # pyright: ignore[reportArgumentType]
        path = options.home / "session.jsonl"
        meta = {"id": corpus.thread_id(1), "timestamp": corpus.TIME, "cwd": "/repo/demo"}
        async with await Recorder.create(path, meta, options) as recorder:
            await recorder.persist()
            begun = anyio.current_time()
            for _ in range(count):
                recorder.record("response_item", payload)
                await recorder.flush()
            return count / (anyio.current_time() - begun)

    for mode, count in (("never", 5000), ("turn", 5000), ("line", 300)):
        table.add(mode, f"{anyio.run(work, mode, count):,.0f}")
    return table


def parsing(root: Path) -> Table:
    """Reading a whole file, against the standard library: real recordings, and the made-up sessions of this bench."""
    table = Table("Parsing 100 MB", ("file", "reader", "MB/s", "× json.loads"))
    real = root / "real.jsonl"
    data = b"".join(path.read_bytes() for path in sorted(RECORDINGS.glob("codex_*/*/rollout-*.jsonl")))
    real.write_bytes(data * (10**8 // len(data)))
    _parse(table, "real recordings", real)
    made_up = corpus.write_session(root / "parse", 7, 10**8, paginated=True)
    _parse(table, "made-up session", made_up)
    return table


def _parse(table: Table, label: str, path: Path) -> None:
    size = path.stat().st_size / 1e6

    def standard() -> None:
        with path.open("rb") as file:
            for raw in file:
                json.loads(raw)

    def envelopes() -> None:
        for _ in reader.forward(path):
            pass

    def full() -> None:
        decode = msgspec.json.decode
        for record in reader.forward(path):
            if isinstance(record, Line):
                decode(record.payload)

    def backwards() -> None:
        for _ in reader.backward(path):
            pass

    base = measure.seconds(standard)
    table.add(label, "json.loads per line", f"{size / base:.0f}", "1.0")
    for name, work in (
        ("envelope (payload on demand)", envelopes),
        ("full decode", full),
        ("envelope, backwards", backwards),
    ):
        taken = measure.seconds(work)
        table.add(label, name, f"{size / taken:.0f}", f"{base / taken:.1f}")
    path.unlink()


def starting(root: Path) -> Table:
    """How long the program takes to say its version."""
    table = Table("Start-up", ("command", "median", "× python -c pass"))
    base = measure.best_of(21, [sys.executable, "-c", "pass"])
    table.add("python -c pass", f"{base.seconds * 1000:.1f} ms", "1.0")
    for arguments in (["--version"], ["sessions", "list", "--json"]):
        taken = measure.best_of(21, [str(BIN / "commonplace"), *arguments], _environment(root))
        label = f"commonplace {' '.join(arguments)}"
        table.add(label, f"{taken.seconds * 1000:.1f} ms", f"{taken.seconds / base.seconds:.1f}")
    return table
