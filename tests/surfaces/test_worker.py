"""A worker that goes on: what it answers over HTTP, and how it ends when it is told to."""

from __future__ import annotations

import os
import re
import signal
import threading
import urllib.error
import urllib.request
from pathlib import Path

import anyio
import pytest

import processes
from anchors.scripted_responses import ScriptedResponses, answer, say
from commonplace.learning.run import ConsolidationReport, LearningReport
from commonplace.learning.worker import Measures, WorkerState
from commonplace.surfaces import worker_http
from exec_driver import make_place
from ledgers import Script, assistant, user

SHOP, BLOG = ("0198c0de-0000-7000-8000-0000000000a1", "0198c0de-0000-7000-8000-0000000000b1")


def teach(home: Path, thread_id: str) -> None:
    """Write a session of long ago that teaches a rule."""
    script = Script(thread_id, cwd=f"/repo/{thread_id[-2:]}")
    script.turn(user("Always use pnpm instead of npm in this repo."), assistant("Done.")).write_home(home)


class Worker:
    """`commonplace worker` as a process, with an address that it answers on."""

    def __init__(self, tmp_path: Path, *options: str, **more: str) -> None:
        self.home = tmp_path / "home"
        own = {"COMMONPLACE_HOME": str(self.home), "HOME": str(tmp_path / "user"), "PATH": os.environ["PATH"]}
        variables = {**own, **{f"COMMONPLACE_{name.upper()}": text for name, text in more.items()}}
        self.process = processes.Process(["worker", "--listen", "0", *options], env=variables)
        assert self.process.stderr is not None
        found = re.match(rb"(?:commonplace: )?(http://[^/]+)", self.process.stderr.readline())
        assert found is not None
        self.address = found[1].decode()

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.address + path, timeout=60) as told:
                return told.status, told.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def value(self, name: str) -> int:
        """Return the value of one metric."""
        found = re.search(rf"^commonplace_{re.escape(name)} (\d+)$", self.get("/metrics")[1], re.MULTILINE)
        return int(found[1]) if found else 0

    def wait_for(self, name: str, least: int) -> None:
        """Return when a metric has a value."""
        with anyio.from_thread.start_blocking_portal() as portal:
            portal.call(self._until, name, least)

    async def _until(self, name: str, least: int) -> None:
        while await anyio.to_thread.run_sync(self.value, name) < least:  # noqa: ASYNC110
            await anyio.sleep(0.01)


def test_a_worker_tells_how_it_goes_and_ends_in_order(tmp_path: Path) -> None:
    teach(tmp_path / "home", SHOP)
    worker = Worker(tmp_path)
    worker.wait_for("cycles_total", 1)

    assert (200, "ok\n") == worker.get("/healthz")
    assert 1 == worker.value('sessions_read_total{outcome="taught"}')
    assert 1 == worker.value('jobs{kind="memory_stage1",status="done"}')
    assert 0 == worker.value("sessions_waiting")
    assert 404 == worker.get("/home")[0]
    worker.process.send_signal(signal.SIGTERM)
    out, err = worker.process.communicate(timeout=100)
    assert (0, b"") == (worker.process.returncode, err), out


@pytest.mark.parametrize(
    ("drain", "code", "states"),
    [("60", 0, {SHOP: "done", BLOG: "pending"}), ("0", 143, {SHOP: "pending", BLOG: "pending"})],
)
def test_told_to_end_it_finishes_what_it_reads_or_gives_it_back(
    drain: str, code: int, states: dict[str, str], tmp_path: Path
) -> None:
    held = threading.Event()
    for thread_id in (SHOP, BLOG):
        teach(tmp_path / "home", thread_id)
    with ScriptedResponses([answer(say('{"lessons": [], "outcome": "none"}'), hold=held)] * 2) as server:
        make_place(tmp_path, server.base_url)
        options = {"memory_extract_model": "mock:gpt-5.5", "memory_extract_concurrency": "1"}
        worker = Worker(tmp_path, "--drain", drain, **options)
        server.wait_for_requests(1)
        worker.process.send_signal(signal.SIGTERM)
        if code == 0:
            worker.wait_for("ending", 1)
            held.set()
        _, err = worker.process.communicate(timeout=100)
        held.set()
        server.drop()

    assert (code, b"") == (worker.process.returncode, err)
    listed = processes.run(["memory", "status", "--json"], env={"COMMONPLACE_HOME": str(worker.home)}, text=True)
    done = list(states.values()).count("done")
    assert f'"pending":{2 - done}' in listed.stdout.replace(" ", "")


def test_health_says_what_is_wrong(tmp_path: Path) -> None:
    state = WorkerState(failures=2, problem="The server is away.")

    assert state.is_well
    state.failures = 3
    assert not state.is_well
    state.note(LearningReport(extracted=2, consolidation=ConsolidationReport("succeeded")), 7)
    assert (True, None, 1, 7) == (state.is_well, state.problem, state.cycles, state.last_cycle_s)
    text = worker_http.metrics(state, Measures({("memory_stage1", "done"): 2}, 1, 2, 2, is_degraded=True))
    assert 'commonplace_consolidations_total{status="succeeded"} 1\n' in text
    assert "commonplace_database_degraded 1\n" in text
    for line in text.splitlines():
        assert re.fullmatch(r"# (?:HELP|TYPE) commonplace_\w+ .+|commonplace_\w+(?:\{[\w=\",]+\})? \d+", line), line


@pytest.mark.parametrize("address", ["", "here", "127.0.0.1:", "127.0.0.1:99999", "nowhere.invalid:1"])
def test_an_address_that_is_none_is_refused_with_a_sentence(address: str) -> None:
    done = processes.run(["worker", "--listen", address], text=True)

    assert 1 == done.returncode
    assert "listen on" in done.stderr or "listened on" in done.stderr
    assert "Traceback" not in done.stderr
