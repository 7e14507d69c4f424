"""Learning in a process of its own: how the process is started, and what it does.

The process is `commonplace worker --once --background`. It has no terminal and no pipes of its starter; its output goes
to `locks/worker.log` of the home and is overwritten by the next start. It gets the starter's settings: environment
variables, the home, and command-line settings as variables. It runs at a low priority for a limited time and ends after
one round; when it is told to end, it gives its leases back.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from commonplace.config import HOME_VARIABLE, PROFILE_VARIABLE, SETTINGS
from commonplace.errors import BudgetSpent, CommonplaceError
from commonplace.memory.workspace import layout
from commonplace.rollout.private_folders import make_private
from commonplace.state.home import Home

if TYPE_CHECKING:
    from commonplace.learning.run import LearningReport

LOG: Final = "locks/worker.log"
NICENESS: Final = 10
"""The niceness of the process: it gives way to interactive work."""
LONGEST_SECONDS: Final = 3_600
"""The process ends after this time whatever it is doing; what is left is for the next one."""
_INHERITED: Final = ("PATH", "LD_LIBRARY_PATH")
"""Variables of this process that the interpreter may need when the caller passes other ones."""


def can_start() -> bool:
    """Say whether this program can be started again: not where Python is part of some other one."""
    return Path(sys.executable or "").name.lower().startswith(("python", "pypy"))


def start(home: Home, current: str) -> int:
    """Start the process, and return its id at once (raises OSError).

    `current` is the thread that goes on meanwhile.
    """
    return _start(home, command(current))


def start_run(home: Home) -> int:
    """Start `memory run` in a process of its own, as if a person had typed it (raises OSError)."""
    return _start(home, [sys.executable, "-P", "-m", "commonplace", "memory", "run"])


def _start(home: Home, words: list[str]) -> int:
    make_private((home.path / LOG).parent)
    log = os.open(home.path / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(  # noqa: S603 (our own program)
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(home),
            cwd=home.path,
            start_new_session=True,
        )
    finally:
        os.close(log)
    # Somebody has to ask how it ended, or it stays in the table of processes as long as we live.
    threading.Thread(target=process.wait, name="worker-waiter", daemon=True).start()
    return process.pid


def command(current: str) -> list[str]:
    """Return the command line; nothing is imported from the folder that it runs in (-P)."""
    return [sys.executable, "-P", "-m", "commonplace", "worker", "--once", "--background", "--current", current]


def environment(home: Home) -> dict[str, str]:
    """Return the variables of the process."""
    python = {name: text for name, text in os.environ.items() if name.startswith("PYTHON") or name in _INHERITED}
    settings = home.settings
    said = {
        setting.variable: setting.text(setting.of(settings))
        for setting in SETTINGS
        if settings.sources[setting.key] == "flag"
    }
    if settings.profile is not None:
        said[PROFILE_VARIABLE] = settings.profile
    return {**python, **home.environment, **said, HOME_VARIABLE: str(home.path)}


async def learn(home: Home, current: str | None) -> LearningReport:
    """Run the two phases as a background start: limits, pauses and backoff apply, and nothing is imported.

    Raises:
        WorkspaceError: there is no place for a memory; nothing was done.
        BudgetSpent: it took too long.
        CommonplaceError: the memory was not brought up to date.
    """
    from commonplace.memory.files import extensions

    root = home.path / layout.FOLDER
    await anyio.to_thread.run_sync(layout.ensure, root)
    try:
        await anyio.to_thread.run_sync(extensions.seed, root)
    except (CommonplaceError, OSError) as error:
        home.warn(f"The instructions for notes were not written: {error}")
    with anyio.move_on_after(LONGEST_SECONDS):
        return await _phases(home, current)
    raise BudgetSpent("Learning took too long.", hint="It goes on with the next session.", limit="run")


async def _phases(home: Home, current: str | None) -> LearningReport:
    """Read sessions, then put the memory together, which does not depend on the former."""
    from commonplace.learning import run

    try:
        return await run.run(home, run.LearningRequest(current=current), background=True)
    except CommonplaceError as error:
        home.warn(error.sentence())
    return await run.run(home, run.LearningRequest(phases=(2,)), background=True)
