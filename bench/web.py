"""The web page in a large home: how long the server takes for each page, asked over loopback as a browser does.

The home has 50,000 sessions as files, 5,000 entries of 50 projects, and one session of 500 MB. The entries are
sentences that people wrote: the docstrings and the names of tests of this program. "first" is the first request of all
to a server that was just started and has come to rest; the numbers hold until the last byte has arrived. Processor time
is that of all threads of the server, so that what goes on beside the page counts, too.
"""

from __future__ import annotations

import ast
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anyio

from bench import corpus
from bench.ledger import Table
from bench.session_start import entry_row, memory_text
from commonplace import config
from commonplace.app.home import open_home
from commonplace.search.search import Search
from commonplace.state import entries

ENTRIES, SESSIONS, LARGE, RUNS = 5_000, 50_000, 500 * 2**20, 15
_LARGE_NUMBER = 999_999
ROOT = Path(__file__).parent.parent


def run_all() -> list[Table]:
    """Measure and return the table."""
    title = f"Pages with {ENTRIES:,} entries and {SESSIONS:,} sessions, {RUNS} requests each"
    header = (
        "page",
        "first, ms",
        "of that processor time",
        "median, ms",
        "of that processor time",
        "worst, ms",
        "bytes",
    )
    table = Table(title, header)
    with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as folder:
        home = Path(folder) / "home"
        environment = {**os.environ, "COMMONPLACE_HOME": str(home), "HOME": folder}
        corpus.write_many(home, SESSIONS)
        path = corpus.write_session(home / "sessions/2026/11/15", _LARGE_NUMBER, LARGE, paginated=True)
        anyio.run(_fill, environment)
        large = f"/sessions/{corpus.thread_id(_LARGE_NUMBER)}"
        pages = {
            "Today": "/",
            "Memory": "/memory",
            "Memory, one project": "/memory?project=git.example/team/p7",
            "Memory, a search": "/memory?q=database+port&part=1",
            "Memory, near-duplicates": "/memory?filter=duplicates",
            "Memory, unused": "/memory?filter=unused",
            "Memory, stale": "/memory?filter=stale",
            "an entry": f"/entry/{entry_row(7)['entry_id']}",
            "Review": "/review",
            "Sessions": "/sessions",
            "Sessions, a search": "/sessions?q=database+port&part=1",
            "a session of 500 MB, its last turns": large,
            "the same, around its middle": f"{large}?at={_middle(path)}",
            "Prompt": "/prompt?project=git.example/team/p7",
            "Pipeline": "/pipeline",
        }
        for name, path in pages.items():
            table.add(name, *_measure(environment, path))
    return [table]


def _middle(path: Path) -> int:
    """Return where a line in the middle of a file begins."""
    with path.open("rb") as file:
        file.seek(LARGE // 2)
        file.readline()
        return file.tell()


def _measure(environment: dict[str, str], path: str) -> tuple[str | int, ...]:
    """Start a server, ask it for one page again and again; return a row without its name."""
    program = Path(sys.executable).with_name("commonplace")
    with subprocess.Popen([program, "web"], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)(/enter\S+)", process.stdout.readline())
        assert found
        port = int(found[1])
        _, _, cookie = _get(port, found[2], "")
        runs: list[tuple[float, float]] = []
        size = 0
        for _ in range(RUNS):
            busy = _at_rest(process.pid) if not runs else _busy(process.pid)
            spent, size, _ = _get(port, path, cookie)
            runs.append((spent * 1000, _busy(process.pid) - busy))
        process.terminate()
    (first, first_busy), later = runs[0], runs[1:]
    medians = (statistics.median(column) for column in zip(*later, strict=True))
    worst = max(spent for spent, _ in later)
    return *(f"{number:.0f}" for number in (first, first_busy, *medians, worst)), size


def _busy(process: int) -> float:
    """Return the processor time that the threads of a process took, in milliseconds."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6


def _at_rest(process: int) -> float:
    """Wait until a process does nothing; return the processor time that it took until then."""
    before, now = -1.0, _busy(process)
    while now - before > 1:
        time.sleep(0.3)
        before, now = now, _busy(process)
    return now


def _get(port: int, path: str, cookie: str) -> tuple[float, int, str]:
    """Ask for a page; return how long it took, its size, and the cookie that was set."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    begun = time.perf_counter()
    connection.request("GET", path, headers={"cookie": cookie})
    answer = connection.getresponse()
    body = answer.read()
    spent = time.perf_counter() - begun
    connection.close()
    assert answer.status == 200, (path, answer.status, body[:300])
    return spent, len(body), (answer.getheader("set-cookie") or "").partition(";")[0]


def _sentences() -> list[str]:
    """Return the first sentences of docstrings, and what tests say in their names."""
    found: dict[str, None] = {}
    for path in sorted(each for folder in ("src", "tests") for each in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                told = ast.get_docstring(node) or node.name.removeprefix("test_").replace("_", " ")
                found[" ".join(told.partition("\n\n")[0].split())] = None
    return list(found)


def _rows() -> list[dict[str, Any]]:
    """Return the rows of the entries."""
    texts = _sentences()
    assert len(texts) >= ENTRIES
    every = len(texts) // ENTRIES
    rows = [entry_row(number) for number in range(ENTRIES)]
    for row, text in zip(rows, texts[::every], strict=False):
        row |= {"text": text, "sources": json.dumps([{**json.loads(row["sources"])[0], "quote": text}])}
    return rows


async def _fill(environment: dict[str, str]) -> None:
    """Make the rows of the entries, the list of the sessions and the search index of what was said in them."""
    home = open_home(config.load(environment), print, environment)
    (home.path / "memories").mkdir(parents=True, mode=0o700)
    rows = _rows()
    (home.path / "memories" / "MEMORY.md").write_text(memory_text(rows), "utf-8")
    database = await home.database()
    key = home.key
    await database.write(lambda tx: entries.replace(tx, key, rows, "bench"))
    await Search(home).refresh_sessions()
    await home.close()
