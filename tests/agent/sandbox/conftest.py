"""A project, what lies outside of it, and every way to confine commands that this machine knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from confined import Box

from commonplace.agent.sandbox import SandboxPolicy, SandboxSupport, detection
from commonplace.agent.tools.processes import Processes


def level_of(way: detection.Way) -> SandboxSupport:
    """Return the level of a way, or skip the test."""
    found = detection.best_support((way,))
    if found.mechanism == "none":
        pytest.skip(f"{way} cannot confine commands on this machine: {found.detail}")
    return found


@pytest.fixture(params=detection.WAYS)
def level(request: pytest.FixtureRequest) -> SandboxSupport:
    """Every way to confine commands: bubblewrap, namespaces and Landlock, Landlock alone."""
    return level_of(request.param)


@pytest.fixture(params=["bubblewrap", "namespaces"])
def mounting(request: pytest.FixtureRequest) -> SandboxSupport:
    """The ways that have namespaces."""
    return level_of(request.param)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the user that commands have no business in."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "file").write_text("as it was")
    return place


@pytest.fixture
def policy(tmp_path: Path, home: Path) -> SandboxPolicy:
    """A project whose folder can be written, and nothing else: tests themselves live among temporary files."""
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "file").write_text("a line\n")
    return SandboxPolicy(
        mode="workspace-write", cwd=project, protected=(home, home / "memories"), exclude_slash_tmp=True
    )


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    async with Processes() as running:
        yield running


@pytest.fixture
def box(level: SandboxSupport, policy: SandboxPolicy, processes: Processes, outside: Path) -> Box:
    return Box(level, policy, processes, outside)


@pytest.fixture
def mounted_box(mounting: SandboxSupport, policy: SandboxPolicy, processes: Processes, outside: Path) -> Box:
    return Box(mounting, policy, processes, outside)
