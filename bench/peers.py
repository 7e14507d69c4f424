"""Beside its peers, in one run: the sessions of the OpenAI Agents SDK, and detect-secrets. Times count as ratios.

The pinned peers are in environments of their own, in the cache of `make anchors`. mem0 needs a model for reading and
one for embeddings, and basic-memory could not be installed (it asks for a package that is newer than the index has), so
neither is measured. ripgrep stands in `exact.md`, the real Codex in `ledger.md` and `agent.md`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import anyio

from bench import corpus, measure, redact
from bench.ledger import Table
from commonplace.redact import redact as redacted
from commonplace.rollout.recorder import Recorder, RecorderOptions

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from tests.redact import made
from tests.redact.test_benign import TEXTS as BENIGN

from anchors import fetch

SIZES: Final = (1_000, 10_000, 100_000)
APPENDED: Final = 2_000
BIN: Final = Path(sys.executable).parent

FILL: Final = """
import asyncio, json, sys
from agents.memory import Session
from agents import SQLiteSession
items = json.load(open(sys.argv[2]))
asyncio.run(SQLiteSession("one", sys.argv[1]).add_items(items))
"""
READ: Final = """
import asyncio, sys
from agents import SQLiteSession
limit = int(sys.argv[2]) or None
items = asyncio.run(SQLiteSession("one", sys.argv[1]).get_items(limit))
assert items
"""
APPEND: Final = """
import asyncio, json, sys, time
from agents import SQLiteSession
items = json.load(open(sys.argv[2]))
async def work():
    session = SQLiteSession("one", sys.argv[1])
    begun = time.perf_counter()
    for item in items:
        await session.add_items([item])
    print(len(items) / (time.perf_counter() - begun))
asyncio.run(work())
"""
SCAN: Final = """
import json, sys, time
from detect_secrets import SecretsCollection
from detect_secrets.settings import default_settings
with default_settings():
    secrets, begun = SecretsCollection(), time.process_time()
    secrets.scan_file(sys.argv[1])
    print(json.dumps([sorted({each.line_number for _, each in secrets}), time.process_time() - begun]))
"""


def run_all() -> list[Table]:
    """Run every measurement."""
    with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as folder:
        return [sessions(Path(folder)), appending(Path(folder)), secrets(Path(folder))]


def _peer(name: str) -> str | None:
    """Return the interpreter of a peer's environment, if it was fetched."""
    python = fetch.peer(name)
    return str(python) if python.exists() else None


def _items(count: int) -> list[dict[str, object]]:
    draw = random.Random(1)
    texts = [corpus.TEXT[start : start + 600] for start in range(0, len(corpus.TEXT) - 600, 97)]
    roles = ("user", "assistant")
    return [{**corpus.message(roles[n % 2], draw.choice(texts), str(n))} for n in range(count)]


def _ledger(root: Path, items: list[dict[str, object]]) -> Path:
    """Write the items as a session file: a turn for each question with its answer."""
    path = root / f"rollout-2026-11-15T09-00-00-{corpus.thread_id(len(items))}.jsonl"
    meta = {"id": corpus.thread_id(len(items)), "timestamp": corpus.TIME, "cwd": "/work", "originator": "bench"}
    with path.open("wb") as file:
        file.write(corpus.line("session_meta", {**meta, "cli_version": "1", "source": "cli"}, None))
        for item in items:
            file.write(corpus.line("response_item", item, None))
    return path


def sessions(root: Path) -> Table:
    """Read a long session for its next request, process start to end."""
    header = ("items", "program", "what is read", "wall, ms", "× ours", "peak memory, MB")
    table = Table("A session without a compaction, read for its next request (median of 5)", header)
    peer = _peer("openai-agents")
    for count in SIZES:
        items = _items(count)
        path, wanted = _ledger(root, items), root / "items.json"
        environment = {**os.environ, "COMMONPLACE_HOME": str(root / "home")}
        own = measure.best_of(5, [str(BIN / "commonplace"), "sessions", "context", str(path), "--json"], environment)
        what = "all of it, checked, as JSON on stdout"
        table.add(f"{count:,}", "Commonplace", what, f"{own.seconds * 1000:.0f}", "1.0", f"{own.megabytes:.0f}")
        if peer is None:
            table.add(f"{count:,}", "Agents SDK", "not fetched", "", "", "")
            continue
        wanted.write_text(json.dumps(items), "utf-8")
        database = root / f"{count}.db"
        measure.run([peer, "-c", FILL, str(database), str(wanted)])
        ways = {
            "all of it": ["-c", READ, str(database), "0"],
            "the newest 100 items": ["-c", READ, str(database), "100"],
        }
        for what, words in {**ways, "nothing: the import alone": ["-c", "import agents"]}.items():
            run = measure.best_of(5, [peer, *words])
            cells = (f"{run.seconds * 1000:.0f}", f"{run.seconds / own.seconds:.1f}", f"{run.megabytes:.0f}")
            table.add(f"{count:,}", "Agents SDK 0.24.0, SQLiteSession", what, *cells)
    return table


def appending(root: Path) -> Table:
    """Append item after item, each safe from the death of the process."""
    table = Table("Appending, each item acknowledged before the next", ("program", "items/s", "× ours"))
    items = _items(APPENDED)
    own = anyio.run(_append, root, items)
    table.add("Commonplace, a barrier for each", f"{own:,.0f}", "1.0")
    peer = _peer("openai-agents")
    if peer is None:
        table.add("Agents SDK", "not fetched", "")
        return table
    (root / "append.json").write_text(json.dumps(items), "utf-8")
    command = [peer, "-c", APPEND, str(root / "append.db"), str(root / "append.json")]
    theirs = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    table.add("Agents SDK 0.24.0, SQLiteSession", f"{theirs:,.0f}", f"{theirs / own:.2f}")
    return table


async def _append(root: Path, items: list[dict[str, object]]) -> float:
    name = corpus.thread_id(1)
    meta = {"id": name, "timestamp": corpus.TIME, "cwd": "/work", "originator": "bench", "cli_version": "1"}
    path = root / "home" / "sessions" / f"rollout-2026-11-15T09-00-00-{name}.jsonl"
    async with await Recorder.create(path, meta, RecorderOptions(root / "home", lambda: datetime.now(UTC))) as recorder:
        await recorder.persist()
        begun = time.perf_counter()
        for item in items:
            recorder.record("response_item", item)
            await recorder.flush()
        return len(items) / (time.perf_counter() - begun)


def secrets(root: Path) -> Table:
    """Look for secrets: on our own catalogue, which is no neutral judge, and on look-alikes."""
    found = Table(
        "Secrets, one text a line; the catalogue and the look-alikes are ours, so they are no neutral judge",
        ("texts", "how many", "Commonplace finds", "detect-secrets 1.5.0 finds"),
    )
    draw = random.Random(1)
    made_up = [(row.kind, row.prefixes[0] + made.make(row.shape, draw)) for row in made.read("formats.txt")]
    alike = [text for text in BENIGN if "\n" not in text]
    texts = {
        "formats, as `token: …`": [f"token: {value}" for _, value in made_up],
        "formats, as `NAME=…`": [f"{name.upper()}={value}" for name, value in made_up],
        'formats, as `name = "…"`': [f'{name} = "{value}"' for name, value in made_up],
        "look-alikes (none is a secret)": alike,
    }
    for name, lines in texts.items():
        own = sum(redacted(line) != line for line in lines)
        theirs = _scanned(root, "\n".join(lines) + "\n")
        told = f"{len(theirs[0])} ({len(theirs[0]) / len(lines):.0%})" if theirs else "not fetched"
        found.add(name, len(lines), f"{own} ({own / len(lines):.0%})", told)
    data = redact.inputs()[redact.SESSIONS][:1_000_000]
    own_seconds = measure.seconds(lambda: redacted(data.decode(errors="replace")), 2)
    theirs = _scanned(root, data.decode(errors="replace"))
    speed = f"{1 / theirs[1]:.2f} MB/s" if theirs else "not fetched"
    found.add("1 MB of sessions: speed", 1, f"{1 / own_seconds:.1f} MB/s", speed)
    return found


def _scanned(root: Path, text: str) -> tuple[list[int], float] | None:
    """Return the lines in which detect-secrets finds something, and its seconds; None if it is not here.

    The file is one of settings, because it finds most in those.
    """
    peer = _peer("detect-secrets")
    if peer is None:
        return None
    (root / "texts.ini").write_text(text, "utf-8")
    done = subprocess.run([peer, "-c", SCAN, str(root / "texts.ini")], capture_output=True, text=True, check=True)
    lines, seconds = json.loads(done.stdout)
    return lines, seconds
