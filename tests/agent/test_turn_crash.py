"""Turns of a real process against a real socket that are interrupted, killed, or find no room, at any moment.

Whatever it was: what was acknowledged is in the file, the file is sound but for a line that was cut off, the thread
goes on, and its next request has exactly one output for every call. An interrupted turn and one without room leave no
process behind. One that is killed cannot see to that: what it was running goes on, and is ended here.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from dialects import RESPONSES, Said
from scripted_http import Reply, ScriptedServer, serve
from scripted_session import Model, Stage
from session_invariants import Json, ledger, recorded_wrongly

import processes
from commonplace.agent import events, open_session, stored_thread, user_input
from commonplace.agent.turn import run_turn
from commonplace.models.scripted import answer, say
from commonplace.rollout import layout
from commonplace.rollout.blobs import BlobStore
from commonplace.sessions import inspection

PROGRAM = Path(__file__).with_name("turn_program.py")
COMMAND = "sleep 300 & echo $! >> pids-{0}; echo {0}-{1}; echo {0}-{1} >> log"
"""Leaves a child behind, which the session has to end."""
HOWS = ("interrupt", "kill", "full")


def script(mark: str) -> list[Reply]:
    """Return the answers of one turn: commands one after the other, a patch, tools beside each other, a last word."""
    patch = f"*** Begin Patch\n*** Add File: {mark}.txt\n+{mark}\n*** End Patch"
    plan = json.dumps({"plan": [{"step": "work", "status": "in_progress"}]})

    def shell(number: int) -> tuple[str, str, str]:
        return "shell", json.dumps({"command": COMMAND.format(mark, number)}), f"{mark}_c{number}"

    said = [
        Said("I begin with two.", "What is to be done?", (shell(1), shell(2))),
        Said("Now the plan and a patch.", calls=(("update_plan", plan, f"{mark}_p"), shell(3))),
        Said(calls=(("apply_patch", json.dumps({"input": patch}), f"{mark}_a"), ("no_such", "{}", f"{mark}_n"))),
        Said("All of it is done, as far as I can see."),
    ]
    return [Reply([piece + b"\n\n" for piece in RESPONSES.spoken(each).split(b"\n\n") if piece]) for each in said]


class Program:
    """The program in a process of its own."""

    def __init__(self, process: processes.Process) -> None:
        self._process = process

    async def run(self, asked: Json) -> list[str]:
        """Have one turn run; return what was printed of it."""
        return await anyio.to_thread.run_sync(self._run, asked)

    def _run(self, asked: Json) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        lines: list[str] = []
        while not lines or not lines[-1].startswith("exit"):
            line = self._process.stdout.readline()
            assert line, f"the program ended after {lines}"
            lines.append(line.strip())
        return lines


@pytest.fixture
def program() -> Generator[Program]:
    code = PROGRAM.read_text("utf-8")
    with processes.Process([], stdin=processes.PIPE, stderr=2, text=True, code=code) as process:
        yield Program(process)


def left_behind(cwd: Path, mark: str) -> list[int]:
    """Return which of the children that commands started are alive."""
    found: list[int] = []
    for word in [word for pids in cwd.glob(f"pids-{mark}") for word in pids.read_text().split()]:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{word}/cmdline").read_bytes().startswith(b"sleep\x00300"):
                found.append(int(word))
    return found


def thread_in(home: Path) -> Path | None:
    """Return the file of the thread; one that was cut off in its first line is none."""
    files = [Path(file.path) for file in layout.walk(home)] if home.exists() else []
    return next((path for path in files if ledger(path)), None)


class Crashes:
    """Crashes of one thread after the other; each thread is crashed a few times and gone on with in between."""

    def __init__(self, root: Path, server: ScriptedServer, program: Program, chance: random.Random) -> None:
        self.root = root
        self.server = server
        self.program = program
        self.chance = chance
        self.counts: Counter[str] = Counter()

    async def thread(self, number: int, hows: list[str]) -> None:
        """Crash one thread as often as told."""
        place = self.root / str(number)
        home, cwd = place / "home", place / "project"
        cwd.mkdir(parents=True)
        for time, how in enumerate(hows):
            await self.crash(home, cwd, how, f"r{number}x{time}")
        for process in left_behind(cwd, "*"):  # of a process that was killed nobody was there to end them
            self.counts["children outlived a kill"] += 1
            with contextlib.suppress(ProcessLookupError):  # it may end by itself
                os.kill(process, signal.SIGKILL)

    async def crash(self, home: Path, cwd: Path, how: str, mark: str) -> None:
        path = thread_in(home)
        by_byte = how == "full" or (how == "kill" and self.chance.random() < 0.5)
        asked: Json = {
            "home": str(home),
            "cwd": str(cwd),
            "url": self.server.base_url,
            "how": how,
            "thread": str(path) if path else None,
            "byte": self.chance.randrange(16_000) if by_byte else None,
            "event": None if by_byte else self.chance.randrange(1, 55),
        }
        self.server.replies[:] = script(mark)
        printed = await self.program.run(asked)
        self.server.replies.clear()
        self.counts[f"{how} {printed[-2].split()[0] if len(printed) > 1 else 'at once'}"] += 1
        assert not any("ExceptionGroup" in line for line in printed), (asked, printed)
        assert how == "kill" or [] == left_behind(cwd, mark), (asked, printed)
        acked = [int(line.split()[1]) for line in printed if line.startswith("acked")]
        path = thread_in(home)
        if path is None:
            assert not acked, (asked, printed)
            return
        assert (acked or [0])[-1] <= len(ledger(path)), (asked, printed, "what was acknowledged is there")
        self._sound(home, path, asked)
        await self._goes_on(home, path, asked)

    def _sound(self, home: Path, path: Path, asked: Json) -> None:
        found = stored_thread.read(path, [home])
        verified = inspection.verify(found.ledger, BlobStore(home))
        assert {each.reason for each in verified.skipped} <= {"torn", "not_json"}, (asked, verified)
        assert 0 == verified.blobs.missing + verified.blobs.corrupt
        self.counts["torn"] += not path.read_bytes().endswith(b"\n")

    async def _goes_on(self, home: Path, path: Path, asked: Json) -> None:
        end: events.End | None = None
        async with anyio.create_task_group() as tasks:
            model = Model(answer(say("On we go.")))
            here = Stage(home.parent, tasks, model)
            found = stored_thread.read(path, [home])
            session = await open_session.resume(found, here.profile, model, here.environment, tasks, here.options)
            end = await run_turn(session, user_input.text("Go on."))
            await session.close()
            tasks.cancel_scope.cancel()
        assert isinstance(end, events.TurnCompleted), (asked, end)
        assert not (problems := recorded_wrongly(path, torn=True)), (asked, problems)


async def crashed(root: Path, program: Program, threads: int, seed: int) -> Counter[str]:
    chance = random.Random(seed)
    async with serve() as server:
        crashes = Crashes(root, server, program, chance)
        for number in range(threads):
            await crashes.thread(number, [chance.choice(HOWS) for _ in range(2)])
        return crashes.counts


@pytest.mark.parametrize("how", HOWS)
async def test_a_turn_that_ends_badly_anywhere_loses_nothing_that_was_acknowledged(
    tmp_path: Path, program: Program, how: str
) -> None:
    chance = random.Random(how)
    async with serve() as server:
        crashes = Crashes(tmp_path, server, program, chance)
        for number in range(4):
            await crashes.thread(number, [how, how])

        assert 8 == sum(count for what, count in crashes.counts.items() if what.startswith(how))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_two_hundred_turns_that_end_badly_lose_nothing_that_was_acknowledged(
    tmp_path: Path, program: Program
) -> None:
    seed = int.from_bytes(os.urandom(4))
    print(f"soak: seed {seed}")
    counts = await crashed(tmp_path, program, 100, seed)
    print(f"soak: {dict(counts)}")

    assert counts["torn"] > 0
