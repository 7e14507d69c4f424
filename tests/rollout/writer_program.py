"""A writer to be killed: records numbers, and prints each once a barrier has acknowledged it.

    python writer_program.py HOME PATH [create|resume|race] FSYNC FIRST COUNT

With COUNT 0 it goes on until it is killed. `busy PID` is printed when another process has the thread. In a race it says
`ready`, waits for a line before it reaches for the thread, and for another before it lets go.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import anyio

from commonplace.errors import ThreadBusy
from commonplace.rollout.recorder import Recorder, RecorderOptions

THREAD = "0198c0de-0000-7000-8000-000000000001"


async def main(home: Path, path: Path, how: str, fsync: str, first: int, count: int) -> None:
    if how == "race":
        print("ready", flush=True)
        sys.stdin.readline()
    options = RecorderOptions(home, lambda: datetime(2026, 11, 15, tzinfo=UTC), cast("Any", fsync))
    try:
        if how == "create":
            meta = {"id": THREAD, "timestamp": "2026-11-15T09:00:00.000Z", "cwd": "/", "source": "cli"}
            recorder = await Recorder.create(path, meta, options)
        else:
            recorder = await Recorder.resume(path, options)
    except ThreadBusy as error:
        print("busy", error.data["holder"], flush=True)
        return
    number = first
    while not count or number < first + count:
        # Now and then a burst and a spilled value, so that a kill can fall between any two steps of a write.
        burst = 1 + number % 5
        for each in range(number, number + burst):
            text = f"{each} " + "x" * (70_000 if each % 11 == 0 else each % 700)
            item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
            recorder.record("response_item", item)
        number += burst
        await (recorder.end_turn() if number % 3 == 0 else recorder.flush())
        print(number, flush=True)
    if how == "race":
        sys.stdin.readline()
    await recorder.close()
    print("closed", flush=True)


if __name__ == "__main__":
    _, home, path, how, fsync, first, count = sys.argv
    anyio.run(main, Path(home), Path(path), how, fsync, int(first), int(count))
