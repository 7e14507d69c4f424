"""The web page in a large home: how long the server takes for each page, asked over loopback as a browser does.

The home has 50,000 sessions as files, 5,000 entries of 50 projects, and one session of 500 MB. "first" is the first
request for that page after the server started; the numbers hold until the last byte has arrived.
"""

from __future__ import annotations

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
from commonplace.state import entries

ENTRIES, SESSIONS, LARGE, RUNS = 5_000, 50_000, 500 * 2**20, 15
_LARGE_NUMBER = 999_999


def run_all() -> list[Table]:
    """Measure and return the table."""
    title = f"Pages with {ENTRIES:,} entries and {SESSIONS:,} sessions, {RUNS} requests each"
    table = Table(title, ("page", "first, ms", "median, ms", "worst, ms", "bytes"))
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
            "an entry": f"/entry/{entry_row(7)['entry_id']}",
            "Review": "/review",
            "Sessions": "/sessions",
            "a session of 500 MB, its last turns": large,
            "the same, around its middle": f"{large}?at={_middle(path)}",
            "Prompt": "/prompt?project=git.example/team/p7",
            "Pipeline": "/pipeline",
        }
        _measure(table, environment, pages)
    return [table]


def _middle(path: Path) -> int:
    """Return where a line in the middle of a file begins."""
    with path.open("rb") as file:
        file.seek(LARGE // 2)
        file.readline()
        return file.tell()


def _measure(table: Table, environment: dict[str, str], pages: dict[str, str]) -> None:
    program = Path(sys.executable).with_name("commonplace")
    with subprocess.Popen([program, "web"], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)(/enter\S+)", process.stdout.readline())
        assert found
        port = int(found[1])
        _, _, cookie = _get(port, found[2], "")
        for name, path in pages.items():
            times: list[float] = []
            size = 0
            for _ in range(RUNS):
                spent, size, _ = _get(port, path, cookie)
                times.append(spent * 1000)
            later = times[1:]
            table.add(name, f"{times[0]:.0f}", f"{statistics.median(later):.0f}", f"{max(later):.0f}", size)
        process.terminate()


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


async def _fill(environment: dict[str, str]) -> None:
    """Make the rows of the entries, and the index of the sessions."""
    home = open_home(config.load(environment), print, environment)
    (home.path / "memories").mkdir(parents=True, mode=0o700)
    rows: list[dict[str, Any]] = [entry_row(number) for number in range(ENTRIES)]
    (home.path / "memories" / "MEMORY.md").write_text(memory_text(rows), "utf-8")
    database = await home.database()
    key = home.key
    await database.write(lambda tx: entries.replace(tx, key, rows, "bench"))
    await (await home.index()).refresh(home.path)
    await home.close()
