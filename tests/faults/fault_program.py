"""The program with faults in it: what a process of `faulty_home` runs instead of the program.

FAULTS is JSON. Points are functions of the program, named `module:name`; a hit is a call of one, before or after it.
Two points are no functions: `transaction` is a write transaction (before its commit, and after it), `disk` a flush.

    {"at": {"point", "when", "number", "does"}}  what happens at the n-th hit of a point: `kill`, `stop` or `full`
    {"trace": PATH}                              note every hit there, one line each
    {"slow": SECONDS}                            how long the disk takes for a flush
    {"network": NAME}                            the network namespace that the process is in
    {"host": NAME}                               the host that the process believes to be on
    {"now": TIME}                                the clock stands still, also where COMMONPLACE_NOW does not say so
    {"clock": PATH}                              a file with the seconds by which the clock is wrong now
    {"values": {"module:NAME": value}}           what constants are instead
    {"extractor": WORD}                          the embedded extractor breaks on a session that holds the word
"""

from __future__ import annotations

import ctypes
import errno
import functools
import importlib
import inspect
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

FAULTS: dict[str, Any] = json.loads(os.environ.pop("FAULTS", "{}"))
PHASE_1 = (
    "learning.extract.phase1:_claim",
    "learning.extract.phase1:extract_embedded",
    "learning.extract.phase1:_store",
    "state.extraction_jobs:claim_next",
    "state.extraction_jobs:claim_thread",
    "state.extraction_jobs:succeed",
    "state.outputs:put",
    "state.consolidation_jobs:enqueue",
)
PHASE_2 = (
    "learning.consolidate.phase2:_claim",
    "memory.workspace.staging:recover",
    "memory.files.extensions:seed",
    "memory.edits.manual_edits:adopt",
    "memory.workspace.staging:stage",
    "learning.consolidate.phase2:_written",
    "memory.workspace.difference:write",
    "memory.files.validation:problems",
    "memory.workspace.baseline:reset",
    "learning.consolidate.phase2:_confirm",
    "memory.workspace.staging:commit",
    "memory.workspace.swap:exchange",
    "memory.workspace.staging:discard",
    "memory.edits.history:record",
    "learning.consolidate.phase2:_record",
    "state.consolidation_jobs:succeed",
    "learning.consolidate.entry_rows:write",
)
MODEL = ("learning.extract.phase1:read_session", "learning.consolidate.curator:Curator.curate")
_hits: Counter[tuple[str, str]] = Counter()
_lock = threading.Lock()


def hit(point: str, when: str) -> None:
    """Note that a point was reached, and let happen what is to happen there."""
    with _lock:
        _hits[point, when] += 1
        number = _hits[point, when]
    if "trace" in FAULTS:
        with Path(FAULTS["trace"]).open("a", encoding="utf-8") as file:
            file.write(f"{point} {when}\n")
    at = FAULTS.get("at", {})
    if (at.get("point"), at.get("when"), at.get("number", 1)) != (point, when, number):
        return
    if at["does"] == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    # To this thread: a stop that goes to the process may reach another one first, and this one would go on.
    signal.pthread_kill(threading.get_ident(), signal.SIGKILL if at["does"] == "kill" else signal.SIGSTOP)


def place(name: str) -> tuple[Any, str]:
    """Return what holds a value, and the value's name there."""
    module, _, path = name.partition(":")
    *holders, last = path.split(".")
    return functools.reduce(getattr, holders, importlib.import_module(f"commonplace.{module}")), last


def watch(point: str) -> None:
    """Put a function's hits before and after it."""
    holder, name = place(point)
    real = getattr(holder, name)

    async def later(*given: Any, **named: Any) -> Any:
        hit(point, "before")
        found = await real(*given, **named)
        hit(point, "after")
        return found

    def now(*given: Any, **named: Any) -> Any:
        hit(point, "before")
        found = real(*given, **named)
        hit(point, "after")
        return found

    setattr(holder, name, functools.wraps(real)(later if inspect.iscoroutinefunction(real) else now))


def watch_transactions() -> None:
    """Put hits before and after each commit."""
    for name in ("state.sqlite:SqliteDatabase._once", "state.postgres:PostgresDatabase._once"):
        holder, method = place(name)
        setattr(holder, method, _watched(getattr(holder, method)))


def _watched(real: Callable[..., Any]) -> Callable[..., Any]:
    def once(database: Any, body: Callable[[Any], Any], mode: object) -> Any:
        if mode in ("BEGIN", True):
            return real(database, body, mode)

        def inner(tx: Any) -> Any:
            found = body(tx)
            hit("transaction", "before")
            return found

        found = real(database, inner, mode)
        hit("transaction", "after")
        return found

    return once


def change_disk() -> None:
    """Make every flush slow, and a point."""
    real = os.fsync

    def fsync(descriptor: Any) -> None:
        hit("disk", "before")
        time.sleep(FAULTS.get("slow", 0))
        real(descriptor)

    os.fsync = fsync


def change_network(name: str) -> None:
    """Go into another network."""
    with Path("/run/netns", name).open("rb") as file:
        found = ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000)
    assert found == 0, os.strerror(ctypes.get_errno())


def change_host(name: str) -> None:
    """Believe to be on another host."""
    from commonplace.state import jobs

    real = jobs.this_process

    def this_process(_: str | None = None) -> jobs.Worker:
        worker = real()
        return msgspec.structs.replace(worker, host=name, worker_id=f"{name}:{worker.pid}")

    jobs.this_process = this_process


def change_clock() -> None:
    """Let the clock stand still; take its error from a file each time it is asked."""
    from commonplace.config import sources

    right = datetime.fromisoformat(FAULTS["now"])
    file = FAULTS.get("clock")

    def now() -> datetime:
        return right + timedelta(seconds=int(Path(file).read_text("utf-8")) if file else 0)

    def clock(_: object) -> Callable[[], datetime]:
        return now

    setattr(sources, "_clock", clock)  # noqa: B010 (it is private)


def break_extractor(word: str) -> None:
    """Let the embedded extractor break on a session that holds a word."""
    from commonplace.learning.extract import rules
    from commonplace.learning.reading.session_view import UserText

    real = rules.extract

    def extract(view: Any) -> Any:
        for turn in view.turns:
            for event in turn.events:
                if isinstance(event, UserText) and word in event.text:
                    raise RecursionError(word)
        return real(view)

    rules.extract = extract


def arm() -> None:
    """Put the faults into the program."""
    if "network" in FAULTS:
        change_network(FAULTS["network"])
    if "host" in FAULTS:
        change_host(FAULTS["host"])
    if "now" in FAULTS:
        change_clock()
    if "extractor" in FAULTS:
        break_extractor(FAULTS["extractor"])
    for name, value in FAULTS.get("values", {}).items():
        holder, last = place(name)
        assert hasattr(holder, last), name
        setattr(holder, last, value)
    for point in (*PHASE_1, *PHASE_2, *MODEL):
        watch(point)
    watch_transactions()
    change_disk()


if __name__ == "__main__":
    from commonplace.surfaces.cli import main

    arm()
    main()
