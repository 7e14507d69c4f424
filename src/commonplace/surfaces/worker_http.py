"""What a worker says over HTTP to whoever runs it: whether it is well, and its measures as Prometheus reads them.

Two addresses, read-only and without a token, because schedulers and scrapers have none: `/healthz` says `ok` or why not
(status 503), `/metrics` gives counts. Neither tells a word of a session, a path or the name of a project.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final

import anyio

from commonplace.errors import BadInput, CommonplaceError
from commonplace.learning import worker
from commonplace.learning.worker import Measures, WorkerState
from commonplace.state.home import Home
from commonplace.surfaces import asgi
from commonplace.surfaces.asgi import Application, Receive, Scope, Send

_PLAIN: Final = "text/plain; charset=utf-8"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"


def listen(address: str) -> socket.socket:
    """Return a socket that listens on `HOST:PORT`, or on a port of this machine (raises BadInput)."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    hint = "Write --listen 9464, or --listen 0.0.0.0:9464 for other machines."
    if not port.isdecimal():
        raise BadInput(f"{address!r} is no address to listen on.", hint=hint)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, int(port)))
        listening.listen(16)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise BadInput(f"{address} cannot be listened on: {reason}.", hint=hint) from None
    return listening


async def serve(home: Home, state: WorkerState, listening: socket.socket) -> None:
    """Answer until cancelled."""
    await asgi.serve_until(_application(home, state), listening, anyio.Event())


def _application(home: Home, state: WorkerState) -> Application:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        status, kind, text = await _answer(home, state, str(scope.get("path")), str(scope.get("method")))
        headers = [(b"content-type", kind.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    return application


async def _answer(home: Home, state: WorkerState, path: str, method: str) -> tuple[int, str, str]:
    """Return the status, the type and the text of an answer."""
    if method not in ("GET", "HEAD"):
        return 405, _PLAIN, "Only GET is answered.\n"
    if path == "/healthz":
        return _health(state, is_degraded=home.is_degraded)
    if path != "/metrics":
        return 404, _PLAIN, "There are /healthz and /metrics.\n"
    try:
        found = await worker.measures(home)
    except CommonplaceError as error:
        return 503, _PLAIN, f"{error.sentence()}\n"
    return 200, _METRICS, metrics(state, found)


def _health(state: WorkerState, *, is_degraded: bool) -> tuple[int, str, str]:
    if is_degraded:
        return 503, _PLAIN, "The database cannot be used.\n"
    if not state.is_well:
        return 503, _PLAIN, f"The last {state.failures} cycles failed: {state.problem}\n"
    return 200, _PLAIN, "ending\n" if state.ending.is_set() else "ok\n"


def metrics(state: WorkerState, found: Measures) -> str:
    """Return the measures of a worker in Prometheus' text format."""
    return "".join(_lines(state, found))


def _lines(state: WorkerState, found: Measures) -> Iterator[str]:
    yield from _metric("cycles_total", "counter", "Cycles that ended.", {"": state.cycles})
    read = {'outcome="taught"': state.extracted, 'outcome="nothing"': state.no_output, 'outcome="failed"': state.failed}
    yield from _metric("sessions_read_total", "counter", "Sessions that this worker read.", read)
    ended = {f'status="{status}"': count for status, count in sorted(state.consolidations.items())}
    yield from _metric("consolidations_total", "counter", "Consolidations by how they ended.", ended)
    yield from _metric("model_requests_total", "counter", "Requests to models.", {"": state.requests})
    yield from _metric("model_tokens_total", "counter", "Tokens of models, in and out.", {"": state.tokens})
    yield from _metric(
        "last_cycle_timestamp_seconds", "gauge", "When a cycle ended last.", {"": state.last_cycle_s or 0}
    )
    yield from _metric("failed_cycles", "gauge", "Cycles that failed since one did not.", {"": state.failures})
    yield from _metric("ending", "gauge", "1 while the worker ends.", {"": int(state.ending.is_set())})
    states = {f'kind="{kind}",status="{status}"': count for (kind, status), count in sorted(found.jobs.items())}
    yield from _metric("jobs", "gauge", "Jobs in the database, of all workers.", states)
    yield from _metric("sessions_waiting", "gauge", "Sessions of this home that wait to be read.", {"": found.waiting})
    yield from _metric("outputs", "gauge", "Sessions that taught something.", {"": found.outputs})
    yield from _metric("outputs_used", "gauge", "Those that the memory was made of.", {"": found.selected})
    yield from _metric("database_degraded", "gauge", "1 if the database is away.", {"": int(found.is_degraded)})


def _metric(name: str, kind: str, about: str, values: dict[str, int]) -> Iterator[str]:
    """Yield the lines of one metric; `values` are by their labels."""
    yield f"# HELP commonplace_{name} {about}\n# TYPE commonplace_{name} {kind}\n"
    for labels, value in values.items():
        yield f"commonplace_{name}{{{labels}}} {value}\n" if labels else f"commonplace_{name} {value}\n"
