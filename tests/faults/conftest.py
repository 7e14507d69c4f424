"""Faults happen to both databases, and to sessions that one quiet run has learned from."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from faulty_home import FaultyHome, Taught
    from own_server import OwnServer

# What other tests are made of is found here too when these tests are run alone.
sys.path.append(str(Path(__file__).parent.parent / "learning"))
pytest.register_assert_rewrite("faulty_home")

SESSIONS = 10


@pytest.fixture(params=["sqlite", "postgres"])
def database_address(request: pytest.FixtureRequest) -> str:
    """What the setting `database` says, for an empty database of either kind."""
    return "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


@pytest.fixture(scope="session")
def ten(in_memory: Path) -> Taught:
    """Ten sessions, and what a quiet run makes of them."""
    from faulty_home import taught

    return taught(in_memory / "ten", SESSIONS)


@pytest.fixture
def new_home(tmp_path: Path, database_address: str, ten: Taught) -> Callable[..., FaultyHome]:
    """Return what makes a home with an empty database, again and again."""
    from faulty_home import FaultyHome

    numbers = itertools.count()

    def make(known: Taught = ten, **settings: str) -> FaultyHome:
        return FaultyHome(tmp_path / str(next(numbers)), database_address, known, **settings)

    return make


@pytest.fixture(scope="session")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """Yield a PostgreSQL that a test may stop; whoever stops it starts it again."""
    from own_server import OwnServer

    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    pgserver = pytest.importorskip("pgserver", reason="no pgserver wheel here")
    with tempfile.TemporaryDirectory(prefix="commonplace-own-", ignore_cleanup_errors=True) as folder:
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        yield OwnServer(server)
        server.cleanup()
