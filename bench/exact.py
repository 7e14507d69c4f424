"""Exact search against ripgrep, over ten thousand rollout summaries of one to four kilobytes.

Cold means a new process that searches once and ends, as ripgrep always is; warm means a process that has searched the
folder before, as a server has. The files are in the page cache in both cases. ripgrep must be on this machine (`rg`);
where it is not, its rows are left out and said to be.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench import measure
from bench.ledger import Table
from commonplace.memory.recall.tools import MatchPage, MemoryFolder, call
from commonplace.memory.recall.visibility import Visibility

FILES: Final = 10_000
TIMES: Final = 15
RARE: Final = "psycopg.errors.UniqueViolation"
COMMON: Final = "exit 0"
SHOP: Final = "git.example.org/acme/shop"
ONCE: Final = """
import sys
from pathlib import Path
from commonplace.memory.recall.visibility import Visibility
from commonplace.memory.recall.tools import MemoryFolder, call
call(MemoryFolder(Path(sys.argv[1])), "search", {"queries": [sys.argv[2]]}, Visibility())
"""
_TEXT: Final = """
add adds after again alembic api async await back bench branch build cache call cart change check client cold commit
config container context cursor database date deploy docker endpoint error event failed file filter fix folder format
fuzz handler header image import index insert install invoice issue item job key lease limit line list lock log main
memory merge message migration model module name node note order output package page parser patch path payment pool
price process project pull push query queue rate read rebase record redis release request response retry review role
rollback route rule schema script search server session setting shipping slow snapshot socket sort state step storage
stream string table tag task team template test thread time token trace tree type update upload user value version view
wait watch window worker write yaml zone
"""
_WORDS: Final = _TEXT.split()


def run_all() -> list[Table]:
    """Run every measurement."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "memories"
        size = _make(root)
        rows = _rows(root, Path(place) / "compiled")
    title = f"{FILES:,} summaries, {size / 1e6:.1f} MB (promised: cold within 5 times ripgrep, warm ahead of it)"
    if shutil.which("rg") is None:
        title += "; ripgrep is not on this machine"
    return [Table(title, ("what is looked for", "ripgrep", "cold", "times", "warm", "scoped"), rows)]


def _make(root: Path) -> int:
    """Write summaries as an extractor does; return how large they are together."""
    draw = random.Random(7)
    folder = root / "rollout_summaries"
    folder.mkdir(parents=True)
    total = 0
    for number in range(FILES):
        text = _summary(draw, number)
        if number == FILES * 3 // 4:
            text += f"- `pytest -q` failed ({RARE}: duplicate key); `alembic upgrade head` worked (exit 0 here) [9]\n"
        day = f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}"
        time_of_day = f"10-{number // 60 % 60:02}-{number % 60:02}"
        total += (folder / f"{day}T{time_of_day}-{number:04}-some_task.md").write_bytes(text.encode())
    return total


def _summary(draw: random.Random, number: int) -> str:
    project = f"git.example.org/acme/{draw.choice(['shop', 'blog', 'infra', 'tool'])}"
    lines = [
        f"thread_id: 01a164ed-32f0-7c7d-82cd-{number:012}",
        "updated_at: 2026-10-22T18:53:29+00:00",
        f"rollout_path: /home/dev/.codex/sessions/2026/10/22/rollout-{number}.jsonl",
        f"cwd: /home/dev/{project}",
        "",
        f"# {' '.join(draw.choices(_WORDS, k=6))}: success",
        "",
        "Preference signals:",
    ]
    wanted = draw.randrange(1000, 4000)
    while sum(map(len, lines)) + len(lines) < wanted:
        said = " ".join(draw.choices(_WORDS, k=draw.randrange(6, 22)))
        dash = " — " if draw.random() < 0.02 else " "
        form = draw.choice(['- said by the user: "{}" [1]', "- `{}` (exit 0)", "- {}", "- rule:{dash}{}"])
        lines.append(form.format(said, dash=dash))
    return "\n".join(lines) + "\n"


def _rows(root: Path, compiled: Path) -> list[tuple[str, ...]]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(compiled)  # as installed: compiled once
    rows: list[tuple[str, ...]] = []
    for what, query, options, more in (
        ("a rare text", RARE, (), {}),
        ("a text in every file", COMMON, (), {}),
        ("a rare text, capitals or not", RARE.upper(), ("-i",), {"case_sensitive": False}),
    ):
        arguments = {"queries": [query], **more}
        program = shutil.which("rg")
        theirs = _median(program, "-F", *options, query, str(root)) if program else None
        once = [sys.executable, "-c", ONCE, str(root), query]
        measure.run(once, environment)
        cold = statistics.median(measure.run(once, environment).seconds for _ in range(TIMES)) if not more else None
        warm = _warm(root, arguments, Visibility())
        scoped = _warm(root, arguments, Visibility(SHOP, lambda cwd: cwd.removeprefix("/home/dev/")))
        rows.append((
            what, _ms(theirs), _ms(cold), f"{cold / theirs:.1f}" if cold and theirs else "",
            _ms(warm), _ms(scoped),
        ))  # fmt: skip
    return rows


def _ms(seconds: float | None) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds is not None else ""


def _median(*command: str) -> float:
    measure.run(command)
    return statistics.median(measure.run(command).seconds for _ in range(TIMES))


def _warm(root: Path, arguments: dict[str, Any], view: Visibility) -> float:
    """Return the time of a search in a process that has searched before."""
    folder = MemoryFolder(root)
    for _ in range(3):
        found = call(folder, "search", arguments, view)
        assert isinstance(found, MatchPage)
        assert found.matches or view.scope
    taken: list[float] = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        call(folder, "search", arguments, view)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)
