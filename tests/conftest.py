"""What every test gets: a home of its own, a clean environment, one event loop kind, no stray network."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import socket
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from servers import postgres, postgres_connection, postgres_server

__all__ = ["postgres", "postgres_connection", "postgres_server"]

# Tests get a HOME of their own; where the pinned programs are is known before that.
os.environ.setdefault("COMMONPLACE_ANCHORS", str(Path("~/.cache/commonplace-anchors").expanduser()))

# A shell that runs the suite in the background ignores SIGINT, and every process of a test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Properties: `make test` tries the same few examples in every run, `make soak` tries many others in each.
# Neither run measures how fast examples are.
_UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("test", max_examples=15, stateful_step_count=20, derandomize=True, database=None, **_UNTIMED)
settings.register_profile("soak", max_examples=1000, stateful_step_count=50, **_UNTIMED)
PROFILE = os.environ.get("COMMONPLACE_TEST_PROFILE", "test")
settings.load_profile(PROFILE)
if PROFILE == "test":
    # Hypothesis mixes in constants of all modules that are loaded: examples would depend on which tests ran before.
    providers._get_local_constants = Constants  # pyright: ignore[reportPrivateUsage]

_NUMBERS = itertools.count()
_FAILED = pytest.StashKey[bool]()


_TOGETHER = frozenset(
    {"test_architecture", "test_patterns", "test_session_owners", "test_settings", "test_shape", "test_wheel"}
)
"""Modules whose tests share what takes long: a wheel, the source as trees."""

_CONFINED = frozenset({"sandbox", "test_turn_confined", "test_turn_skills"})
"""Folders and modules of tests whose commands run in a sandbox."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that share something to the front: the first tests of the order go to one worker."""
    items.sort(key=lambda item: item.path.stem not in _TOGETHER)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note for `tmp_path` whether a test failed."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture(scope="session")
def in_memory(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A folder of this run in memory, where that has room: a fifth of the time of a run is spent on a disk."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 4 << 30:
        yield tmp_path_factory.getbasetemp()
        return
    with tempfile.TemporaryDirectory(prefix="commonplace-tests-", dir=memory, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, in_memory: Path
) -> Generator[Path]:
    """An empty folder of this test; made and removed faster than pytest's own. On a disk it stays if the test fails.

    Tests that confine commands are on a disk, because a confined command has a `/dev` of its own.
    """
    node: pytest.Item = request.node  # pyright: ignore[reportUnknownMemberType]
    name = re.sub(r"\W", "_", node.name)[:30]
    base = tmp_path_factory.getbasetemp() if _CONFINED.intersection((*node.path.parts, node.path.stem)) else in_memory
    folder = base / f"{name}{next(_NUMBERS)}"
    folder.mkdir(mode=0o700)
    yield folder
    if not node.stash.get(_FAILED, False):
        shutil.rmtree(folder, ignore_errors=True)


def _keep_priority(_: int) -> int:
    return 0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home that exists nowhere but in this test."""
    for name in list(os.environ):
        if name.startswith(("COMMONPLACE_", "CODEX_", "CLAUDE_", "GEMINI_")) and name != "COMMONPLACE_ANCHORS":
            monkeypatch.delenv(name)
    place = tmp_path / "home"
    monkeypatch.setenv("COMMONPLACE_HOME", str(place))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("TZ", "UTC")
    # A worker gives way to others; one that a test runs in this process would slow down all tests after it for good.
    monkeypatch.setattr(os, "nice", _keep_priority)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv(
        "COMMONPLACE_MEMORY_BACKGROUND", "false"
    )  # no test leaves a process behind, unless it asks for it
    return place


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Generator[None]:
    """Connections leave this machine in no test; loopback is allowed."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple):
            host = str(address[0])  # pyright: ignore[reportUnknownArgumentType]
            assert host in ("127.0.0.1", "::1", "localhost"), f"a test tried to reach {host}"
        real(self, address)  # pyright: ignore[reportArgumentType]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket.socket, "connect", connect)
        yield
