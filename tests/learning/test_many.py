"""Many learners at once: every session is read once, whoever dies meanwhile, and the result is that of a quiet run."""

from __future__ import annotations

import random
import signal
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from learners import environment, many, outputs, run, stored, workspace

import processes
import waiting
from commonplace.app import book as books


def quiet(tmp_path: Path, home: Path) -> tuple[dict[str, tuple[object, ...]], dict[str, bytes]]:
    """What one learner makes of the sessions, alone, on SQLite: the rows, and the memory's files."""
    variables = environment(tmp_path / "quiet", "sqlite")
    run(variables, "sessions", "import", "--from", "codex", "--path", str(home))
    run(variables, "memory", "run")
    return outputs(variables), workspace(variables)


async def in_the_middle(variables: Mapping[str, str], learner: processes.Process) -> None:
    """Return when something was stored, or the learner has ended."""
    async with books.open(environment=variables) as book:

        async def has_begun() -> bool:
            return learner.poll() is not None or bool(await stored(book))

        await waiting.until(has_begun)


def contend(tmp_path: Path, database: str, sessions: int, learners: int, killed: int) -> None:
    home = many(tmp_path / "sources", sessions)
    expected, memory = quiet(tmp_path, home)
    variables = environment(tmp_path / "busy", database)
    run(variables, "sessions", "import", "--from", "codex", "--path", str(home))
    started = [processes.Process(["memory", "run", "--json"], env=variables) for _ in range(learners)]
    for victim in random.Random(sessions).sample(started, killed):
        anyio.run(in_the_middle, variables, victim)
        victim.send_signal(signal.SIGKILL)
    for each in started:
        out, err = each.communicate(timeout=600)
        assert each.returncode in (0, -signal.SIGKILL), err.decode()
        del out
    run(variables, "memory", "run")

    assert expected
    assert expected == outputs(variables)
    assert memory["MEMORY.md"]
    assert memory == workspace(variables)


def test_a_few_learners_share_the_work(tmp_path: Path, database_address: str) -> None:
    contend(tmp_path, database_address, sessions=16, learners=3, killed=1)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_eight_learners_share_five_hundred_sessions(tmp_path: Path, database_address: str) -> None:
    contend(tmp_path, database_address, sessions=500, learners=8, killed=3)


def test_order_of_arrival_does_not_matter(tmp_path: Path, database_address: str) -> None:
    home = many(tmp_path / "sources", 6)
    expected, memory = quiet(tmp_path, home)
    variables = environment(tmp_path / "one by one", database_address)
    paths = sorted((home / "sessions").rglob("*.jsonl"))
    for number, path in enumerate(random.Random(3).sample(paths, len(paths))):
        run(variables, "sessions", "import", "--from", "codex", "--path", str(path))
        if number % 2 == 0:  # the memory grows as sessions come in
            run(variables, "memory", "run")
    run(variables, "memory", "run")

    assert expected == outputs(variables)
    assert memory == workspace(variables)
