"""What reading sessions with a model costs us: phase 1 against a server on this machine that answers at once.

The server is a process of its own, so its work is not ours; its model writes down the first words of the person.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from bench.ledger import Table
from commonplace.app import book as books
from commonplace.learning.budget import Budget
from commonplace.learning.evaluate import cases, files
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from commonplace.learning.extract import phase1
from commonplace.learning.extract.model import ModelExtractor
from commonplace.models.catalog import ModelInfo
from commonplace.models.providers import Choice, Provider, connect
from commonplace.state import jobs

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
COUNT = 64


def _answer(body: dict[str, Any]) -> str:
    """Return an answer that quotes the first line that the person said."""
    session = body["input"][-1]["content"][0]["text"]
    words = session.partition("\nPERSON\n  ")[2].partition("\n")[0]
    lesson = {"task": 1, "section": "preference", "text": words, "quote": words, "turn": 1, "scope": "project"}
    tasks = [{"title": "t", "outcome": "success"}]
    whole = {"title": "t", "slug": "a-slug", "keywords": ["k"], "tasks": tasks}
    return json.dumps({**whole, "lessons": [{**lesson, "what_to_do": ""}]})


def _stream(text: str) -> bytes:
    item = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    usage = {"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000}
    events = [
        {"type": "response.output_item.added", "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "item_id": "m", "delta": text},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)


async def _serve(pause: float) -> None:
    """Answer every request after so many seconds, for as long as the process lives."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                if not head.startswith("post"):  # which models there are: it does not tell
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                    continue
                size = int(head.partition("content-length:")[2].partition("\r\n")[0])
                data = _stream(_answer(json.loads(await reader.readexactly(size))))
                await asyncio.sleep(pause)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
                writer.write(b"content-length: %d\r\n\r\n%b" % (len(data), data))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def server(pause: float = 0.0) -> Generator[int]:
    """Run a model that takes so many seconds for an answer; yield its port."""
    command = [sys.executable, "-m", "bench.extraction", "serve", str(pause)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


async def _phase(home: Path, source: Path, port: int) -> tuple[float, phase1.ExtractionResult]:
    """Import sessions and let a model read them; return how long the reading took."""
    environment = {"COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": NOW.isoformat()}
    provider = Provider(api="responses", base_url=f"http://127.0.0.1:{port}/v1")
    choice = Choice("here", provider, "m-1", ModelInfo(window=200_000, max_output=8_000, efforts=("low",)))
    async with books.open(environment=environment) as book:
        await book.importer.run([("codex", source / "codex")])
        database = await book.state.database()
        model = connect(choice, {})
        try:
            spending = Budget(database, lambda: int(NOW.timestamp()))
            reader = ModelExtractor(model, choice, spending=spending)
            begun = time.perf_counter()
            done = await phase1.run(phase1.ExtractionPhase(book.settings, database, reader, jobs.this_process()))
            return time.perf_counter() - begun, done
        finally:
            await model.aclose()


def speed(folder: Path) -> Table:
    """Sessions through phase 1, with requests over loopback."""
    table = Table(
        "Phase 1 by a model that answers at once (promised: 64 sessions in 1.3 s)",
        ("sessions", "events each", "time", "sessions/s", "learned"),
    )
    known = [session for case in cases.bundled() for session in case.sessions if session.source == "cli"]
    with server() as port:
        for times in (1, 4, 16):
            source, events = folder / f"source{times}", 0
            for number in range(COUNT):
                session = known[number % len(known)]
                again = CaseSession("codex", session.cwd, session.events * times, days_ago=1 + number / 1000)
                events += len(again.events)
                files.write(Case(f"{times}-{number}", "", [again], ExpectedLessons()), source, NOW)
            runs = [anyio.run(_phase, folder / f"home{times}-{n}", source, port) for n in range(3)]
            seconds, done = min(runs, key=lambda run: run[0])
            assert not done.failed, done.failed[:3]
            table.add(COUNT, events // COUNT, f"{seconds:.2f} s", f"{COUNT / seconds:.0f}", done.extracted)
    return table


def command(folder: Path) -> Table:
    """The same as a person types it: `commonplace memory run --phase 1`, from its start to its end."""
    table = Table(
        "The whole command `memory run --phase 1`, 64 sessions (promised: 1.3 s)", ("runs", "best", "median", "worst")
    )
    known = [session for case in cases.bundled() for session in case.sessions if session.source == "cli"]
    source = folder / "typed"
    for number in range(COUNT):
        session = known[number % len(known)]
        again = CaseSession("codex", session.cwd, session.events, days_ago=1 + number / 1000)
        files.write(Case(f"typed-{number}", "", [again], ExpectedLessons()), source, NOW)
    with server() as port:
        times = sorted(_typed(folder / f"typed-home-{number}", source, port) for number in range(7))
    table.add(len(times), *(f"{seconds:.2f} s" for seconds in (times[0], times[len(times) // 2], times[-1])))
    return table


def _typed(home: Path, source: Path, port: int) -> float:
    home.mkdir()
    provider = f'[providers.here]\napi = "responses"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
    (home / "config.toml").write_text(f'[memory]\nextract_model = "here:m-1"\n{provider}', "utf-8")
    variables = {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": NOW.isoformat()}
    program = [sys.executable, "-m", "commonplace"]
    took = ["sessions", "import", "--from", "codex", "--path", str(source / "codex")]
    subprocess.run([*program, *took], env=variables, check=True, capture_output=True)
    begun = time.perf_counter()
    done = subprocess.run(
        [*program, "memory", "run", "--phase", "1", "--json"], env=variables, check=True, capture_output=True
    )
    seconds = time.perf_counter() - begun
    report = json.loads(done.stdout)
    assert report["extracted"] + report["no_output"] == COUNT, report
    return seconds


def run_all() -> list[Table]:
    """Measure everything."""
    with tempfile.TemporaryDirectory(prefix="bench-extraction-") as name:
        return [speed(Path(name)), command(Path(name))]


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(_serve(float(sys.argv[2])))
    else:
        run_all()
