"""The agent against the real Codex on one scripted server that answers at once, and what a step of a long turn costs.

Runs alternate between the two programs, so that whatever else the machine does hits both. A new home is made for each
run of that row, and its making is not counted; a used one has seen one run before. Memory is the peak of the process.

A long turn is measured twice. Inside this process, with a model that answers at once, the cost of a step is ours alone:
the loop, the history, the ledger. The JSON of a request grows with the history whatever we do, so its making is timed
apart. Over HTTP, whole programs run a command each step, and the server notes when each request has arrived.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from bench import measure
from bench.ledger import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import commonplace
import exec_driver
from anchors import codex_driver
from anchors.codex_driver import Missing
from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, reply
from commonplace import scripted
from commonplace.models.base import Request
from commonplace.models.responses import Responses

RUNS = 11
STEPS = 1_000
TURNS = 5
EDGE = 100
"""Steps at the beginning and at the end that are compared."""
Command = tuple[list[str], dict[str, str]]
Maker = Callable[[Path, str], Command]


def ours(root: Path, base_url: str) -> Command:
    """Prepare a home of ours and return the command line and its environment."""
    place = exec_driver.make_place(root, base_url)
    command = [*exec_driver.PROGRAM, "exec", "--skip-git-repo-check", "--json", "-C", str(place.cwd), "do it"]
    return command, place.environment({"COMMONPLACE_MEMORY_BACKGROUND": "true"})


def codex(binary: Path) -> Maker:
    """Return what prepares a home of Codex."""

    def make(root: Path, base_url: str) -> Command:
        home = codex_driver.make_home(binary, root, base_url)
        command = [str(binary), "exec", "--skip-git-repo-check", "--json", "-C", str(home.cwd), "do it"]
        return command, home.environment()

    return make


def programs() -> dict[str, Maker]:
    """Return who is measured: us, and Codex where `make anchors` fetched it."""
    found = codex_driver.locate()
    return {"Commonplace": ours} if isinstance(found, Missing) else {"Commonplace": ours, "Codex 0.166.0": codex(found)}


def one_turn(folder: Path) -> Table:
    """Measure `exec` from start to end, one answer without tools."""
    header = ("home", "program", "wall, ms (median / best / worst)", "peak memory, MB")
    table = Table(f"One turn of `exec`, {RUNS} runs each, alternating", header)
    makers = programs()
    for name, is_new in (("used", False), ("new", True)):
        runs: dict[str, list[measure.Run]] = {who: [] for who in makers}
        with ScriptedResponses([reply("Done.")] * (RUNS + 1) * len(makers)) as server:
            for number in range(RUNS + 1):
                for who, make in makers.items():
                    root = folder / name / who.split()[0] / (str(number) if is_new else "same")
                    run = measure.run(*make(root, server.base_url))
                    if number > 0:  # the first one warms up caches, and uses the home
                        runs[who].append(run)
        for who, measured in runs.items():
            walls = sorted(run.seconds * 1000 for run in measured)
            times = f"{statistics.median(walls):.0f} / {walls[0]:.0f} / {walls[-1]:.0f}"
            table.add(name, who, times, f"{statistics.median(run.megabytes for run in measured):.0f}")
    return table


def edges(values: list[float]) -> tuple[float, float]:
    """Return the medians of the first and of the last values."""
    return statistics.median(values[:EDGE]), statistics.median(values[-EDGE:])


def played(*, encodes: bool) -> tuple[list[float], list[float], list[float]]:
    """Play a long turn here; return milliseconds between requests, of making their JSON, and its size in KB."""
    gaps: list[float] = []
    made: list[float] = []
    sizes: list[float] = []
    api = Responses()
    left = time.perf_counter()

    def step(request: Request) -> scripted.Answer:
        nonlocal left
        arrived = time.perf_counter()
        gaps.append((arrived - left) * 1000)
        if encodes:
            sizes.append(len(api.body(request)) / 1024)
            made.append((time.perf_counter() - arrived) * 1000)
        model.requests.clear()
        number = len(gaps)
        left = time.perf_counter()
        if number > STEPS:
            return scripted.answer(scripted.say("Done."))
        plan = {"plan": [{"step": f"step {number} of many", "status": "in_progress"}]}
        return scripted.answer(scripted.call("update_plan", plan, f"call_{number}"))

    model = commonplace.ScriptedModel(*[step] * (STEPS + 1))
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(_run, Path(folder), model)
    return gaps[1:], made, sizes


def long_turn() -> Table:
    """Measure the steps of a long turn inside this process."""
    table = Table(
        f"A turn of {STEPS:,} steps, per step: our own cost (best of {TURNS} turns), and the request that grows",
        ("what", f"first {EDGE} (median)", f"last {EDGE} (median)", "ratio"),
    )
    turns = [edges(played(encodes=False)[0]) for _ in range(TURNS)]
    first, last = min(turn[0] for turn in turns), min(turn[1] for turn in turns)
    table.add("the step, without the request's JSON", f"{first:.2f} ms", f"{last:.2f} ms", f"{last / first:.2f}")
    _, made, sizes = played(encodes=True)
    first, last = edges(made)
    table.add("making the request's JSON", f"{first:.2f} ms", f"{last:.2f} ms", f"{last / first:.1f}")
    first, last = edges(sizes)
    table.add("the request's JSON", f"{first:.0f} KB", f"{last:.0f} KB", f"{last / first:.1f}")
    return table


async def _run(folder: Path, model: scripted.ScriptedModel) -> None:
    environment = {**os.environ, "COMMONPLACE_HOME": str(folder / "home")}
    async with commonplace.open(environment=environment) as book:
        # The name says how large the window is: large enough that nothing is compacted.
        thread = await book.start(cwd=folder, speaker=model, model="openai:gpt-5.5", approval="never")
        end = await thread.turn("go on and on")
        assert isinstance(end, commonplace.events.TurnCompleted), end


def long_turn_over_http(folder: Path) -> Table:
    """Measure whole programs on a turn of many commands."""
    header = (
        "program",
        f"first {EDGE} steps, ms each (median)",
        f"last {EDGE}",
        "ratio",
        "last request, KB",
        "turn, s",
        "peak memory, MB",
    )
    table = Table(f"A turn of {STEPS:,} commands over HTTP, the server's reading of requests included", header)
    for who, make in programs().items():
        moments: list[float] = []
        sizes: list[int] = []

        def step(body: codex_driver.Json, moments: list[float] = moments, sizes: list[int] = sizes) -> Answer:
            moments.append(time.perf_counter())
            sizes.append(len(json.dumps(body)) if len(moments) > STEPS else 0)
            number = len(moments)
            return reply("Done.") if number > STEPS else answer(call("exec_command", {"cmd": "true"}, f"c{number}"))

        with ScriptedResponses([step] * (STEPS + 1)) as server:
            run = measure.run(*make(folder / who.split()[0], server.base_url))
        first, last = edges([(after - before) * 1000 for before, after in itertools.pairwise(moments)])
        size = f"{sizes[-1] / 1024:.0f}"
        table.add(
            who,
            f"{first:.1f}",
            f"{last:.1f}",
            f"{last / first:.2f}",
            size,
            f"{run.seconds:.1f}",
            f"{run.megabytes:.0f}",
        )
    return table


def run_all() -> list[Table]:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as folder:
        return [one_turn(Path(folder) / "one"), long_turn(), long_turn_over_http(Path(folder) / "long")]
