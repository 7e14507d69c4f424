"""How long a client of `commonplace mcp` waits: from starting the process to the answer to `initialize`, and after.

Cold means that what the program is made of has left the page cache, as far as the system follows our advice; in the
last row also that ours was never started before, so that Python must compile it.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench.ledger import Table

RUNS = 20
PROGRAM = [sys.executable, "-m", "commonplace"]
SOURCE = Path(__file__).parents[1] / "src"
PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}
TALK: list[tuple[str, dict[str, Any]]] = [("initialize", PARAMS), ("tools/list", {}), ("tools/call", {"name": "list"})]


def forget_files() -> None:
    """Ask the system to drop the program's files from its cache."""
    places = [Path(sys.prefix), Path(msgspec.__file__).parents[1], SOURCE]
    for place in dict.fromkeys(places):
        for path in place.rglob("*"):
            if path.suffix in (".py", ".pyc", ".so", ".toml", ".json", ".md") and path.is_file():
                descriptor = os.open(path, os.O_RDONLY)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)


def waits(environment: Mapping[str, str]) -> list[float]:
    """Start a server and return when each of a client's first requests was answered, in milliseconds."""
    begun = time.perf_counter()
    process = subprocess.Popen([*PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(environment))
    assert process.stdin is not None
    assert process.stdout is not None
    moments: list[float] = []
    for number, (method, params) in enumerate(TALK):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        assert "result" in json.loads(process.stdout.readline())
        moments.append((time.perf_counter() - begun) * 1000)
    process.stdin.close()
    process.wait()
    process.stdout.close()
    return moments


def run_all() -> list[Table]:
    """Measure and return the table."""
    header = ("start", "`initialize`, ms (median / worst)", "`tools/list`", "first call, of `list`")
    table = Table(f"From starting the process to each answer, {RUNS} runs", header)
    with tempfile.TemporaryDirectory() as folder:
        usual = {**os.environ, "COMMONPLACE_HOME": f"{folder}/home"}
        for name, is_cold, is_first in (
            ("warm", False, False),
            ("cold", True, False),
            ("first start ever", True, True),
        ):
            moments: list[list[float]] = []
            for number in range(RUNS):
                if is_cold:
                    forget_files()
                source = {"PYTHONPATH": _copied(Path(folder) / str(number))} if is_first else {}
                moments.append(waits({**usual, **source}))
            columns = list(zip(*moments, strict=True))
            table.add(name, *(f"{statistics.median(column):.0f} / {max(column):.0f}" for column in columns))
    return [table]


def _copied(folder: Path) -> str:
    """Copy our program without what Python compiled of it."""
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return str(folder)
