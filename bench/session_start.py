"""How long the SessionStart hook holds up a session: from starting the process to its end, in a large home.

The home knows 5,000 entries of 50 projects and 50,000 sessions. The process answers, notes what was told and starts
another that learns or makes a section; how long that one takes is not part of it. "ready" means that a session in this
folder began before; the others are the answers that are given where no section is ready.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from bench.handshake import forget_files
from bench.ledger import Table
from commonplace import config
from commonplace.app.home import open_home
from commonplace.state import entries, learning_starts
from commonplace.state.database import Transaction

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from tests.state.contender import thread_row

ENTRIES, PROJECTS, SESSIONS, RUNS = 5_000, 50, 50_000, 20
_READY, _LEARNING, _COLD = "ready", "ready, and learning starts", "ready, cold files"
_CHANGED, _WORKTREE, _NOTHING = "the memory changed since", "a new folder of the repository", "nothing is ready"
_CASES = (_READY, _LEARNING, _COLD, _CHANGED, _WORKTREE, _NOTHING)
NOW_S = 1_790_000_000
_CHUNK = 5_000
SENTENCE = "the tests of this service run with make check and need a database on port 5433 that compose starts"
WORDS = SENTENCE.split(" ")


def run_all() -> list[Table]:
    """Measure and return the table."""
    header = ("section", "start to end, ms (median / worst)", "of that processor time, ms (median)", "bytes told")
    table = Table(f"SessionStart with {ENTRIES:,} entries and {SESSIONS:,} sessions, {RUNS} runs", header)
    with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as folder:
        root = Path(folder)
        home, repository = root / "home", _repository(root / "p7", "p7")
        environment = {**os.environ, "COMMONPLACE_HOME": str(home), "HOME": str(root / "user")}
        anyio.run(_fill, environment)
        for case in _CASES:
            # Where learning is not measured it is off: it would go on beside the next run.
            settings = f"[memory]\nbackground = {str(case == _LEARNING).lower()}\n"
            (home / "config.toml").write_text(settings, "utf-8")
            for _ in range(2):
                _start(environment, repository)
                _await_worker(home)
            runs: list[tuple[float, float, int]] = []
            for number in range(RUNS):
                folder_of_run = _change(case, home, root, number) or repository
                runs.append(_start(environment, folder_of_run))
                _await_worker(home)
            times, busy = ([run[place] * 1000 for run in runs] for place in (0, 1))
            spent = f"{statistics.median(times):.0f} / {max(times):.0f}"
            table.add(case, spent, f"{statistics.median(busy):.0f}", runs[0][2])
    return [table]


def _change(case: str, home: Path, root: Path, number: int) -> Path | None:
    """Make what a case is about true before a run; return the folder of the session if it is another one."""
    if case == _LEARNING:
        (home / "sections" / "started").unlink(missing_ok=True)
    elif case == _COLD:
        forget_files()
    elif case == _CHANGED:
        memory = home / "memories" / "MEMORY.md"
        memory.write_text(f"<!-- {number} -->\n" + memory.read_text("utf-8"), "utf-8")
    elif case == _WORKTREE:
        return _repository(root / f"worktree{number}", "p7")
    elif case == _NOTHING:
        shutil.rmtree(home / "sections", ignore_errors=True)
    return None


def _start(environment: dict[str, str], folder: Path) -> tuple[float, float, int]:
    """Run the hook as an agent does; return how long it took, its processor time, and how much it told."""
    program = Path(sys.executable).with_name("commonplace")
    told = json.dumps({"cwd": str(folder), "session_id": "x", "source": "startup"}).encode()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(
        [program, "mcp", "hook", "session-start"], input=told, capture_output=True, env=environment, check=True
    )
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert not done.stdout or json.loads(done.stdout)["systemMessage"].endswith(" lessons for p7")
    return seconds, busy, len(done.stdout)


def _await_worker(home: Path) -> None:
    """Wait for the process that the hook started, so that it takes nothing from the next run."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if b"\0worker\0" in words and os.fsencode(home) in (entry / "environ").read_bytes():
                descriptor = os.pidfd_open(int(entry.name))
                select.select([descriptor], [], [], 60)
                os.close(descriptor)
        except OSError:
            continue


def _repository(folder: Path, name: str) -> Path:
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "refs").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    url = f"https://git.example/team/{name}.git"
    (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n', "utf-8")
    return folder


async def _fill(environment: dict[str, str]) -> None:
    """Make the rows and files of a large home."""
    home = open_home(config.load(environment), print, environment)
    (home.path / "memories").mkdir(parents=True, mode=0o700)
    key, database = home.key, await home.database()
    rows = [entry_row(number) for number in range(ENTRIES)]
    (home.path / "memories" / "MEMORY.md").write_text(memory_text(rows), "utf-8")
    await database.write(lambda tx: entries.replace(tx, key, rows, "bench"))
    # The process that a hook starts finds that learning started just now, and leaves the entries alone.
    await database.write(lambda tx: learning_starts.begin(tx, key, now=home.now_s()))
    for first in range(0, SESSIONS, _CHUNK):

        def body(tx: Transaction, first: int = first) -> None:
            tx.execute_many("threads.put", [_thread(key, number) for number in range(first, first + _CHUNK)])

        await database.write(body)
    await home.close()


def memory_text(rows: list[dict[str, Any]]) -> str:
    """Return the file of all entries, as consolidation writes it."""
    blocks: list[str] = []
    for number in range(PROJECTS):
        scope = f"git.example/team/p{number}"
        lines = "".join(f"- {row['text']}\n" for row in rows if row["scope"] == scope)
        blocks.append(f"# Task Group: p{number}\nscope: project {scope}\n\n## User preferences\n{lines}")
    return "\n".join(blocks)


def entry_row(number: int) -> dict[str, Any]:
    """Return the row of the n-th made-up entry."""
    turned = WORDS[number % len(WORDS) :] + WORDS[: number % len(WORDS)]
    source = {
        "thread_id": f"t{number}",
        "turn": 1,
        "byte_start": 0,
        "byte_end": 10,
        "quote": " ".join(turned),
        "how": "",
    }
    return {
        "entry_id": f"m{number:09x}",
        "scope": f"git.example/team/p{number % PROJECTS}",
        "kind": "rule",
        "text": f"{number}: {' '.join(turned)}",
        "support": 1 + number % 3,
        "sources": json.dumps([source]),
        "first_seen_s": NOW_S,
        "last_seen_s": NOW_S,
        "is_pinned": 0,
        "is_shown": 1,
        "is_candidate": 0,
        "confidence": 0.9,
    }


def _thread(home: str, number: int) -> dict[str, Any]:
    project = f"git.example/team/p{number % PROJECTS}"
    return thread_row(f"t{number}", NOW_S + number, home=home, project=project, cwd=f"/repo/p{number % PROJECTS}")
