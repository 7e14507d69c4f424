"""The app server with many threads: turns at once, and what a thread costs that rests.

A scripted model holds the answers of all turns until every request has arrived, then answers all at once, each in
pieces. From there each thread waits for the end of its turn; where the server were unfair, some would wait far longer
than the median. Memory is that of the server's process. A first hundred of threads pays for what is paid once: pools,
modules, buffers of as many requests at a time. What each thread of the next hundreds adds is the cost of a thread.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.ledger import Table

sys.path[:0] = [str(Path(__file__).parent.parent / "tests"), str(Path(__file__).parent.parent / "tests" / "surfaces")]

from app_server.app_client import AppClient  # noqa: E402

from exec_driver import make_place  # noqa: E402

Json = dict[str, Any]
THREADS = 100
HUNDREDS = 4
PIECES = 40
_SECONDS = 300.0
"""A bound that only ends what hangs."""


class Model(ThreadingHTTPServer):
    """Answers all requests of a round at once."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self._lock = threading.Lock()
        self._wanted = self._arrived = 0
        self.all_there = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def base_url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def expect(self, wanted: int) -> None:
        """Hold the answers of the next requests until there are so many."""
        self._wanted, self._arrived = wanted, 0
        self.all_there.clear()

    def arrived(self) -> None:
        """Count a request, and wait for the others."""
        with self._lock:
            self._arrived += 1
            if self._arrived >= self._wanted:
                self.all_there.set()
        self.all_there.wait(_SECONDS)


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the base class names it so
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        assert isinstance(self.server, Model)
        self.server.arrived()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in _stream():
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())
            self.wfile.flush()


def _stream() -> Iterator[tuple[str, Json]]:
    item: Json = {"type": "message", "id": "msg_1", "role": "assistant"}
    whole: Json = {**item, "content": [{"type": "output_text", "text": "word " * PIECES}]}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    yield "response.created", {"response": {"id": "r"}}
    yield "response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    for _ in range(PIECES):
        yield "response.output_text.delta", {**place, "delta": "word "}
    yield "response.output_item.done", {"output_index": 0, "item": whole}
    done: Json = {"id": "r", "status": "completed", "output": [], "usage": usage}
    yield "response.completed", {"response": done}


def kilobytes(pid: int) -> int:
    """Return the memory that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


class Ends:
    """When each thread's turn ended, as the client saw it."""

    def __init__(self, client: AppClient) -> None:
        self._client = client
        self.at: dict[str, float] = {}
        client.heard = self._hear

    def _hear(self, message: Json) -> None:
        if message.get("method") == "turn/completed":
            self.at[message["params"]["threadId"]] = time.perf_counter()

    def of_all(self, threads: list[str]) -> list[float]:
        """Return when the turns of these threads ended, once all have."""
        self._client.until(lambda: len(self.at) >= len(threads))
        return [self.at[thread] for thread in threads]


def one_round(client: AppClient, ends: Ends, model: Model, threads: list[str]) -> list[float]:
    """Run a turn in each thread at once; return how long each waited once the model had all requests."""
    model.expect(len(threads))
    ends.at.clear()
    for thread in threads:
        client.send("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Hello."}]})
    model.all_there.wait(_SECONDS)
    began = time.perf_counter()
    return [end - began for end in ends.of_all(threads)]


def run_all() -> list[Table]:
    """Measure turns at once, and threads that rest."""
    waits = Table(
        f"{THREADS} turns at once, from the moment the model has all requests",
        ("round", "median, s", "longest, s", "longest / median"),
    )
    memory = Table(
        "Memory of a thread that rests",
        ("threads", "opened, no turn yet, KB each", "after a turn, KB each", "the whole server, MB"),
    )
    model = Model()
    with (
        tempfile.TemporaryDirectory() as folder,
        AppClient(make_place(Path(folder), model.base_url), preloaded=False) as client,
    ):
        ends = Ends(client)
        one_round(client, ends, model, [client.start()])
        for number in range(HUNDREDS):
            before = kilobytes(client.process.pid)
            threads = [client.start() for _ in range(THREADS)]
            opened = max(0.0, (kilobytes(client.process.pid) - before) / THREADS)  # what was freed is used first
            took = one_round(client, ends, model, threads)
            after = kilobytes(client.process.pid)
            median, longest = statistics.median(took), max(took)
            waits.rows.append((str(number + 1), f"{median:.2f}", f"{longest:.2f}", f"{longest / median:.2f}"))
            name = f"{number * THREADS + 2} to {(number + 1) * THREADS + 1}"
            each = f"{(after - before) / THREADS:.0f}"
            memory.rows.append((name, f"{opened:.0f}", each, f"{after / 1024:.0f}"))
    model.shutdown()
    model.server_close()
    return [waits, memory]
