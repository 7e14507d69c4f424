"""What a digest keeps of what a session goes on to use.

A session is cut, digested, and what it uses in the forty steps after the cut is looked for in the digest. Beside the
digest stand a bag of names and the last turns, each of the same size. Two kinds of sessions are watched:

* *recorded*: coding agents at work on this repository (`retention_set/`), every command run, every output real;
* *scripted*: an agent that greps, reads, edits and tests in Python's own library; what it does next leans on what it
  did last, as real sessions do. There are as many of these as one likes, and they are easier.
"""

from __future__ import annotations

import gzip
import random
import re
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import msgspec

from bench import measure
from bench.ledger import Table
from commonplace.context import compaction, digest
from commonplace.context.digest.ledger_tally import tally_ledger
from commonplace.context.digest.names import Kind
from commonplace.context.digest.retention import described, present_names
from commonplace.context.digest.tally import Channel, Tally
from commonplace.context.history import History
from commonplace.protocol import items, rollout
from commonplace.rollout import chain

SET: Final = Path(__file__).parent / "retention_set"
LIBRARY: Final = Path(sysconfig.get_path("stdlib"))
PACKAGES: Final = (
    "asyncio",
    "email",
    "http",
    "json",
    "logging",
    "unittest",
    "xml",
    "importlib",
    "concurrent",
    "multiprocessing",
)
BUDGETS: Final = (2_000, 4_000, 8_000)
_DEFINED: Final = re.compile(r"^\s*(?:def|class)\s+(\w+)", re.MULTILINE)
_AFTER: Final = 40
_STEPS: Final = 420
_LEAN: Final = 0.06
"""How much what is done next leans on what was done last: little, or the last turns alone would keep enough."""
Item = dict[str, Any]
T = TypeVar("T")


class Agent:
    """Works on a package, and writes down what it does as a session would."""

    def __init__(self, package: str, seed: int) -> None:
        self._rng = random.Random(f"{package}{seed}")
        self._files: list[Path] = sorted(
            path for path in (LIBRARY / package).rglob("*.py") if 1_000 < path.stat().st_size < 120_000
        )
        self._texts: dict[Path, list[str]] = {
            path: path.read_text("utf-8", "replace").split("\n") for path in self._files
        }
        self._defined: dict[Path, list[str]] = {
            path: _DEFINED.findall("\n".join(lines)) for path, lines in self._texts.items()
        }
        self._files = [path for path in self._files if len(self._defined[path]) > 4]
        self._focus: list[Path] = self._rng.sample(self._files, min(3, len(self._files)))
        self._names: list[str] = [self._rng.choice(self._defined[path]) for path in self._focus]
        self._calls = 0

    def session(self, steps: int) -> Iterator[Item]:
        """Yield the items of a session."""
        asks = self._rng.choice(("please", "could you"))
        yield user(
            f"{asks} make {self._name()} in {self._path()} take a timeout. "
            f"Never change the public signature of {self._name()}, and always run the tests."
        )
        for step in range(steps):
            if step and step % 25 == 0:
                yield user(f"good. now look at {self._name()} too, it does the same in {self._path()}")
            yield from self._rng.choices((self._grep, self._read, self._edit, self._test, self._say), (3, 4, 3, 2, 2))[
                0
            ]()
            if self._rng.random() < 0.5:
                self._wander()

    def _wander(self) -> None:
        """Look somewhere else; what was looked at before may come back."""
        if self._rng.random() < 0.6 and len(self._focus) > 3:
            self._focus.append(self._focus.pop(self._rng.randrange(len(self._focus) - 1)))
        else:
            self._focus.append(self._rng.choice(self._files))
        self._names += [self._rng.choice(self._defined[self._focus[-1]]) for _ in range(2)]

    def _recent(self, things: list[T]) -> T:
        """Choose one, the newest most often."""
        place = min(int(self._rng.expovariate(_LEAN)), len(things) - 1)
        return things[-1 - place]

    def _file(self) -> Path:
        return self._recent(self._focus)

    def _path(self) -> str:
        return str(self._file().relative_to(LIBRARY))

    def _name(self) -> str:
        return self._recent(self._names)

    def _ran(self, command: str, printed: str, code: int = 0) -> Iterator[Item]:
        self._calls += 1
        arguments = msgspec.json.encode({"cmd": command}).decode()
        yield {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": f"c{self._calls}"}
        told = f"Chunk ID: x\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{printed}"
        yield {"type": "function_call_output", "call_id": f"c{self._calls}", "output": told}

    def _grep(self) -> Iterator[Item]:
        name = self._name()
        hits = [
            f"{path.relative_to(LIBRARY)}:{number}:{line}"
            for path in self._files
            for number, line in enumerate(self._texts[path], 1)
            if name in line
        ]
        yield from self._ran(f"grep -rn {name} {self._path().split('/')[0]}", "\n".join(hits[:60]))

    def _read(self) -> Iterator[Item]:
        path = self._file()
        lines = self._texts[path]
        first = self._rng.randrange(max(1, len(lines) - 120))
        seen = lines[first : first + self._rng.randint(40, 160)]
        found = _DEFINED.findall("\n".join(seen))
        if found:
            self._names.append(self._rng.choice(found))
        yield from self._ran(f"sed -n {first + 1},{first + len(seen)}p {path.relative_to(LIBRARY)}", "\n".join(seen))

    def _edit(self) -> Iterator[Item]:
        path, name = self._file(), self._name()
        lines = [line for line in self._texts[path] if name in line] or self._texts[path][20:24]
        line = self._rng.choice(lines)
        changed = f"-{line}\n+{line}  # {name} keeps its timeout"
        patch = f"*** Begin Patch\n*** Update File: {path.relative_to(LIBRARY)}\n@@\n{changed}\n*** End Patch"
        self._calls += 1
        yield {"type": "custom_tool_call", "call_id": f"c{self._calls}", "name": "apply_patch", "input": patch}
        yield {"type": "custom_tool_call_output", "call_id": f"c{self._calls}", "output": "Success."}

    def _test(self) -> Iterator[Item]:
        name, module = self._name(), self._path().split("/")[0]
        failed = self._rng.random() < 0.4
        printed = f"test_{name.lower()} ({module}.tests.Test{module.title()}) ... {'FAIL' if failed else 'ok'}\n"
        printed += (
            f"AssertionError: {name} returned None, expected timeout\n" if failed else "Ran 12 tests in 0.31s\nOK\n"
        )
        yield from self._ran(f"python -m unittest {module}.tests -k test_{name.lower()} -v", printed, int(failed))

    def _say(self) -> Iterator[Item]:
        told = self._rng.choice(
            (
                "The cause is that {0} in {1} drops the timeout before {2} is called.",
                "I found that {0} and {2} share the same default, so {1} needs the change as well.",
                "{0} works now because {1} passes the deadline on; {2} is still open.",
                "Next is {2}: it is used by {0} in {1} and nowhere else.",
            )
        )
        text = told.format(self._name(), self._path(), self._name())
        yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def user(text: str) -> Item:
    """Return a message of the person's."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


class Cut(msgspec.Struct):
    """A session up to a place, and the names that it goes on to use."""

    tally: Tally
    targets: set[int]
    recent: list[str]


def recorded() -> Iterator[Cut]:
    """Yield sessions of real agents, each cut in four places."""
    for path in sorted(SET.glob("*.jsonl.gz")):
        lines = gzip.decompress(path.read_bytes()).splitlines()
        views = [items.view(rollout.decode(line).payload) for line in lines]
        for share in (0.4, 0.5, 0.6, 0.7):
            yield _cut(views, int(len(views) * share), "")


def scripted() -> Iterator[Cut]:
    """Yield sessions of a scripted agent, each cut at half and at seven tenths of it."""
    for package in PACKAGES:
        for seed in range(2):
            views = [items.view(msgspec.json.encode(item)) for item in Agent(package, seed).session(_STEPS)]
            for share in (0.5, 0.7):
                yield _cut(views, int(len(views) * share), str(LIBRARY))


def _cut(views: list[items.View], place: int, cwd: str) -> Cut:
    tally = Tally(cwd)
    for view in views[:place]:
        tally.see(view)
    known = len(tally.names.known)
    after = Tally(cwd)
    after.names = tally.names
    for view in views[place:]:
        after.see(view)
        if after.step >= _AFTER:
            break
    used = {
        number
        for number, channel in zip(after.ids, after.channels, strict=True)
        if number < known and channel != Channel.RESULT
    }
    return Cut(tally, used, [_told(view) for view in views[:place]])


def _told(view: items.View) -> str:
    match view:
        case items.Message():
            return view.text()
        case items.FunctionCall():
            return view.arguments
        case items.CustomToolCall():
            return view.input
        case items.FunctionCallOutput() | items.CustomToolCallOutput():
            return view.output[:400] if isinstance(view.output, str) else ""
        case _:
            return ""


def _last(cut: Cut, budget: int) -> str:
    told: list[str] = []
    size = 0
    for text in reversed(cut.recent):
        size += len(text)
        if size > 4 * budget:
            break
        told.append(text)
    return "\n".join(reversed(told))


def _bag(cut: Cut, budget: int) -> str:
    chances = digest.chances_of(cut.tally)
    order = sorted(range(len(chances)), key=lambda number: -chances[number])
    names = [
        cut.tally.names.known[number].text for number in order if cut.tally.names.known[number].kind is not Kind.MESSAGE
    ]
    told: list[str] = []
    size = 0
    for name in names:
        size += len(name) + 1
        if size > 4 * budget:
            break
        told.append(name)
    return " ".join(told)


def _shares(cut: Cut, text: str) -> tuple[float, float]:
    present = present_names(cut.tally, text)
    told = described(cut.tally, text, present)
    count = max(len(cut.targets), 1)
    return len(cut.targets & present) / count, len(cut.targets & told) / count


def kept(title: str, known: list[Cut]) -> Table:
    """The share of names used after the cut that a text of some size holds, and holds with something said of them."""
    table = Table(
        f"{title}: names used in the {_AFTER} steps after a cut, {len(known)} cuts, "
        f"{statistics.median(len(cut.targets) for cut in known):.0f} names each (median)",
        (
            "budget",
            "digest: kept",
            "described",
            "expected (R_p)",
            "constraints",
            "bag of names: kept",
            "described",
            "last turns: kept",
            "described",
            "time",
        ),
    )
    for budget in BUDGETS:
        rows: list[tuple[float, ...]] = []
        for cut in known:
            begun = time.perf_counter()
            made = digest.make(cut.tally, budget)
            taken = time.perf_counter() - begun
            bag, last = _bag(cut, budget), _last(cut, budget)
            rows.append(
                (
                    *_shares(cut, made.text),
                    made.score.r_p,
                    made.score.constraints,
                    *_shares(cut, bag),
                    *_shares(cut, last),
                    taken,
                )
            )
        means = [statistics.mean(column) for column in zip(*rows, strict=True)]
        table.add(f"{budget:,}", *(f"{value:.3f}" for value in means[:-1]), f"{1000 * means[-1]:.0f} ms")
    return table


def speed() -> Table:
    """What a compaction without a model costs: with the counts kept event by event, and from a file alone."""
    table = Table(
        "Compacting without a model",
        ("session", "file", "counting it from the file", "digest of 2,000", "digest of 8,000", "compaction"),
    )
    for seeds, steps in ((1, 400), (3, 420)):
        given = [
            item
            for package in PACKAGES[: seeds * 3]
            for seed in range(seeds)
            for item in Agent(package, seed).session(steps)
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = _written(Path(folder), given)
            ledger = chain.open_ledger(path)
            size = path.stat().st_size / 1e6
            begun = time.perf_counter()
            tally = tally_ledger(ledger)[0]
            counting = time.perf_counter() - begun
            made = [_taken(tally, given, budget) for budget in (2_000, 8_000, None)]
        table.add(
            f"{tally.step:,} steps, {len(tally.names.known):,} names",
            f"{size:.0f} MB",
            f"{size / counting:.1f} MB/s",
            *(f"{1000 * each:.0f} ms" for each in made),
        )
    return table


def _taken(tally: Tally, given: list[Item], budget: int | None) -> float:
    """Return how long a digest takes, or a whole compaction."""
    if budget is not None:
        return measure.seconds(lambda: digest.make(tally, budget))
    history = History()
    history.replace(msgspec.json.encode(item) for item in given)
    _ = [entry.tokens for entry in history.entries]  # counted when they came
    return measure.seconds(
        lambda: anyio.run(compaction.compact, history.entries, tally, compaction.CompactionLimits(100_000))
    )


def _written(folder: Path, given: list[Item]) -> Path:
    moment, thread = "2026-03-01T10:00:00.000Z", "01970000-0000-7000-8000-000000000001"
    meta = {
        "id": thread,
        "timestamp": moment,
        "cwd": str(LIBRARY),
        "originator": "bench",
        "cli_version": "0",
        "source": "cli",
    }
    lines = [rollout.encode("session_meta", meta, timestamp=moment)]
    lines += [rollout.encode("response_item", item, timestamp=moment) for item in given]
    path = folder / f"rollout-2026-03-01T10-00-00-{thread}.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def run_all() -> list[Table]:
    """Measure everything."""
    return [kept("Recorded sessions", list(recorded())), kept("Scripted sessions", list(scripted())), speed()]
