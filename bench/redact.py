"""What redaction promises, measured: megabytes in a second on what sessions consist of, and no slow input.

Words that were met before are looked at no more, so all are forgotten before a text is measured.
Times of a process, not of the wall, because other programs run beside. A hostile text is measured at n and at 4n: a
ratio near 4 says that its cost grows as its length.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.redact import adversary, made

from bench.ledger import Table
from commonplace.redact import Redactor
from commonplace.redact import scan as engine
from commonplace.redact.lexicon import _Memory
from commonplace.redact.scan import scan

ROOT: Final = Path(__file__).parent.parent
SIZE: Final = 4_000_000
SHORT: Final = 50_000
SESSIONS: Final = "sessions of Codex and Claude Code (JSON lines)"
WORST: Final = 12
START: Final = """
import time, msgspec, re
begun = time.process_time(); import commonplace.redact
imported = time.process_time(); commonplace.redact.redact("token=" + "a1" * 12)
print(1000 * (imported - begun), 1000 * (time.process_time() - imported))
"""


def run_all() -> list[Table]:
    """Run every measurement."""
    return [speed(), hostile(), start()]


def _seconds(work: Callable[[], object], times: int = 3) -> float:
    taken: list[float] = []
    for _ in range(times):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


def _forgetting(work: Callable[[], object]) -> Callable[[], object]:
    """Return work that begins without any word that was met before."""

    def fresh() -> object:
        engine._LEXICON._memory = _Memory()  # noqa: SLF001 (nobody else asks for that)
        return work()

    return fresh


def _files(pattern: str, *places: Path) -> bytes:
    """Return the files of a kind, up to the size that is measured."""
    data = b"".join(path.read_bytes() for place in places for path in sorted(place.rglob(pattern)) if path.is_file())
    return data[:SIZE]


def _logs() -> bytes:
    draw = random.Random(1)
    words = [
        "request",
        "took",
        "ms",
        "GET",
        "/v1/items",
        "status=200",
        "user=42",
        "worker",
        "retry",
        "INFO",
        "cache hit",
    ]
    lines = [
        f"2026-11-15T10:{draw.randrange(60):02}:00Z {' '.join(draw.choices(words, k=12))}\n" for _ in range(40_000)
    ]
    return "".join(lines).encode()[:SIZE]


def _secrets() -> bytes:
    """Return a session in which every tenth line has a credential."""
    draw = random.Random(2)
    rows = made.read("formats.txt")
    lines: list[str] = []
    for number in range(20_000):
        row = draw.choice(rows)
        value = (
            row.prefixes[0] + made.make(row.shape, draw) if number % 10 == 0 else "nothing to hide in this line of text"
        )
        lines.append(json.dumps({"type": "output", "line": number, "text": f"step {number}: {value}"}))
    return "\n".join(lines).encode()[:SIZE]


def inputs() -> dict[str, bytes]:
    """Return the kinds of text that are measured."""
    packages = Path(json.__file__).parent.parent
    return {
        SESSIONS: _files("*.jsonl", ROOT / "tests" / "data", ROOT / "src"),
        "Python source": _files("*.py", packages / "asyncio", packages / "email", packages / "http"),
        "documentation": _files("*.md", ROOT / "docs", ROOT / "bench"),
        "logs": _logs(),
        "a credential in every tenth line": _secrets(),
    }


def _streamed(data: bytes) -> None:
    redactor = Redactor()
    for at in range(0, len(data), 256 * 1024):
        redactor.feed(data[at : at + 256 * 1024])
    redactor.close()


def speed() -> Table:
    """Measure whole texts and streams."""
    rows: list[tuple[str, ...]] = []
    for name, data in inputs().items():
        whole = len(data) / 1e6 / _seconds(_forgetting(lambda data=data: scan(data)))
        streamed = len(data) / 1e6 / _seconds(_forgetting(lambda data=data: _streamed(data)))
        rows.append((name, f"{len(data) / 1e6:.1f}", f"{whole:.1f}", f"{streamed:.1f}", f"{len(scan(data)):,}"))
    head = ("text", "MB", "MB/s", "MB/s as a stream", "findings")
    return Table("Speed (promised: 30 MB/s on sessions)", head, rows)


def hostile() -> Table:
    """Measure hostile texts, the slowest first."""
    rows: list[tuple[float, tuple[str, ...]]] = []
    for name, make in adversary.HOSTILE.items():
        short, long = make(SHORT).encode(), make(4 * SHORT).encode()
        once = _seconds(_forgetting(lambda data=short: scan(data)))
        four = _seconds(_forgetting(lambda data=long: scan(data)))
        rate = len(long) / 1e6 / four
        rows.append((rate, (f"`{name}`", f"{rate:.2f}", f"{four / max(once, 1e-4):.1f}")))
    rows.sort(key=lambda one: one[0])
    title = f"Hostile texts: the {WORST} slowest of {len(rows)}"
    return Table(
        title, ("the same again and again", "MB/s", "time at 4n / time at n"), [row for _, row in rows[:WORST]]
    )


def start() -> Table:
    """Measure what the first use costs."""
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    imported, first = done.stdout.split()
    rows: list[tuple[str, ...]] = [
        ("import", f"{float(imported):.1f}"),
        ("first text (compiles the expressions)", f"{float(first):.1f}"),
    ]
    return Table("First use", ("what", "ms"), rows)
