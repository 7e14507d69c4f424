"""A network that is cut between a worker and its database: it notices, others take over, nothing is done twice."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_home import FaultyHome, Taught, ended, in_state
from own_server import OwnServer, Wire

import processes

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
AFTER_LEASES = 3_601
STEPS = [
    ("learning.extract.phase1:extract_embedded", "before"),
    ("state.extraction_jobs:claim_next", "after"),
    ("state.outputs:put", "after"),
    ("learning.consolidate.phase2:_written", "after"),
    ("learning.consolidate.entry_rows:write", "after"),
]


_NUMBERS = itertools.count()


class Apart:
    """A network namespace with one cable to this one."""

    def __init__(self) -> None:
        number = os.getpid() % 1000 * 100 + next(_NUMBERS)
        self.name, self._cable = f"faults{number}", f"fault{number}"
        self.here, self.there = (f"169.254.{number // 60 % 250 + 1}.{number % 60 * 4 + end}" for end in (1, 2))

    def set_up(self) -> None:
        self._ip("netns", "add", self.name)
        self._ip("link", "add", self._cable, "type", "veth", "peer", "name", "cable", "netns", self.name)
        self._ip("addr", "add", f"{self.here}/30", "dev", self._cable)
        self._ip("link", "set", self._cable, "up")
        self._ip("-n", self.name, "addr", "add", f"{self.there}/30", "dev", "cable")
        self._ip("-n", self.name, "link", "set", "cable", "up")

    def cut(self) -> None:
        self._ip("link", "set", self._cable, "down")

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)

    def _ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def apart() -> Iterator[Apart]:
    """A network that a test may cut."""
    network = Apart()
    try:
        network.set_up()
    except (OSError, subprocess.CalledProcessError) as error:
        network.remove()
        pytest.skip(f"no network can be made here: {getattr(error, 'stderr', error)}")
    yield network
    network.remove()


def held(home: FaultyHome, point: str, when: str, **more: object) -> processes.Process:
    """Start a worker of another host and return when it stands still at a point."""
    faults = {"at": {"point": point, "when": when, "does": "stop"}, "host": "elsewhere", **more}
    values = {"state.postgres:_IDLE_SECONDS": 0.5}
    worker = home.start(faults={"values": values, **faults})
    in_state(worker, "T")
    return worker


@pytest.mark.parametrize(("point", "when"), STEPS)
def test_a_worker_whose_cable_is_cut_notices_and_another_one_goes_on(
    tmp_path: Path, ten: Taught, own_server: OwnServer, apart: Apart, point: str, when: str
) -> None:
    with Wire(own_server, apart.here) as wire:
        home = FaultyHome(tmp_path, own_server.address, ten)
        home.database = wire.address(tcp_user_timeout="1000", connect_timeout="2")
        home.variables["COMMONPLACE_DATABASE"] = home.database
        worker = held(home, point, when, network=apart.name)
        with ended(worker):
            apart.cut()
            home.database = home.variables["COMMONPLACE_DATABASE"] = own_server.address
            home.finish(later=AFTER_LEASES)
            home.check()
            worker.send_signal(signal.SIGCONT)
            _, said = worker.communicate(timeout=100)

        assert (1, True) == (worker.wait(), "database" in said), said
        assert "Traceback" not in said
        home.finish(later=2 * AFTER_LEASES)
        home.check()


@pytest.mark.parametrize(("point", "when"), STEPS)
def test_a_wire_that_passes_nothing_for_a_while_holds_up_nobody_else(
    tmp_path: Path, ten: Taught, own_server: OwnServer, point: str, when: str
) -> None:
    """The connection stays, so nobody is told; what arrives in the end comes too late, and changes nothing."""
    with Wire(own_server) as wire:
        home = FaultyHome(tmp_path, own_server.address, ten)
        home.variables["COMMONPLACE_DATABASE"] = wire.address()
        worker = held(home, point, when)
        with ended(worker):
            wire.cut()
            worker.send_signal(signal.SIGCONT)
            home.variables["COMMONPLACE_DATABASE"] = own_server.address
            home.finish(later=AFTER_LEASES)
            home.check()
            wire.mend()
            _, said = worker.communicate(timeout=100)

        assert worker.wait() in (0, 1), said
        assert "Traceback" not in said
        home.finish(later=2 * AFTER_LEASES)
        home.check()
