"""What going over the memory with a model costs: the tokens sent when one session joins, against a rewrite of all.

The model is a script that rewords every new entry that it is shown. Tokens are estimated as everywhere here, a quarter
of the bytes.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import msgspec

from bench.ledger import Table
from commonplace.context.tokens import tokens_of_bytes
from commonplace.learning.consolidate import entry_edits
from commonplace.learning.consolidate.curator import Curator, CuratorLimits
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.learning.metered_model import size_of
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.entries import Entry
from commonplace.memory.files import raw_memories, validation
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.workspace import layout
from commonplace.models.base import Event, Request
from commonplace.models.catalog import ModelInfo
from commonplace.models.providers import Choice, Provider
from commonplace.models.scripted import Answer, ScriptedModel, answer, say

START = 1_760_000_000
PROJECTS = 32
ROOTS = (
    "migrat", "cach", "rout", "pars", "rend", "queu", "index", "batch", "token", "schem", "deploy", "mirror", "ledg",
    "snap", "thread", "buff", "sock", "stream", "vect", "tens", "kern", "shard", "gate", "hook", "plug", "patch",
)  # fmt: skip
ENDS = ("er", "ing", "or", "age", "ment", "able", "ory", "ix", "ant", "ure", "ist", "al")
WORDS = [root + end + more for root in ROOTS for end in ENDS for more in ("", "kit", "lab", "base")]


def session(number: int) -> RawMemory:
    """What one session taught: two wishes, two facts, and something that failed."""
    source = random.Random(number)

    def words(count: int) -> str:
        return " ".join(source.sample(WORDS, count))

    wishes = [f"always check the {words(3)} before you touch {words(3)}" for _ in range(2)]
    facts = [f"the {words(2)} of {words(3)} lives in src/{words(1)}/{words(1)}.py" for _ in range(2)]
    failed = f"`make {words(1)}` failed ({words(3)} missing); `make {words(1)} {words(1)}` worked (exit 0)"
    bullets = [*(f'said by the user: "{each}"' for each in wishes), *facts, failed]
    quotes = [*wishes, *facts, failed]
    hows = ["said by the user"] * 2 + ["shown by a command"] * 2 + ["verified by exit status"]
    sections = ["Preference signals:", "", "Reusable knowledge:", "", "Failures and how to do differently:"]
    body = [f"{section}\n- {text} [{n}]" if section else f"- {text} [{n}]"
            for n, (section, text) in enumerate(zip(sections, bullets, strict=True), 1)]  # fmt: skip
    references = [f'- [{n}] turn {n}, bytes {n * 900}-{n * 900 + 80}, {how}: "{quote}"'
                  for n, (how, quote) in enumerate(zip(hows, quotes, strict=True), 1)]  # fmt: skip
    cwd = f"/home/dev/p{number % PROJECTS}"
    head = f"description: d\ntask: {words(3)}\ntask_group: g\ntask_outcome: success\ncwd: {cwd}\nkeywords: {words(4)}"
    raw = "\n".join(
        [f"---\n{head}\n---\n\n### Task 1: {words(3)}\n\ntask_outcome: success\n", *body, "", "References:"]
    )
    summary = f"# {words(4)}\n\nRollout context: 1 task(s), 60,000 bytes of dialogue, in {cwd}.\n"
    thread = f"01a10000-0000-7000-8000-{number:012x}"
    return RawMemory(
        thread, START + number * 3600, cwd, f"/s/{number}.jsonl", None, raw + "\n" + "\n".join(references), summary, "s"
    )


class Counting(ScriptedModel):
    """A model that rewords what it is shown, and counts what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = 0
        self.answered = 0

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        self.tokens += size_of(request)
        self.add(self._answer)
        async for event in super().stream(request):
            yield event

    def _answer(self, request: Request) -> Answer:
        text = str(json.loads(request.input[0])["content"][0]["text"]).partition("\nNear them")[0]
        new = re.findall(r"^(m[0-9a-f]{9}) \(.*\n    (.*)$", text, re.MULTILINE)
        edits = [{"edit": "reword", "entries": [name], "text": f"in short: {words}"} for name, words in new]
        found = answer(say(json.dumps({"edits": edits})))
        self.answered += tokens_of_bytes(sum(map(len, found.items)))
        return found


def _choice() -> Choice:
    provider = Provider(api="responses", base_url="http://127.0.0.1:1/v1")
    return Choice("here", provider, "m-1", ModelInfo(window=200_000, max_output=16_000, efforts=("medium",)))


async def go_over(folder: Path, sessions: list[RawMemory]) -> Counting:
    """Let a model go over a memory of sessions; it is accepted then."""
    root, staged = folder / layout.FOLDER, folder / "staged"
    layout.ensure(root)
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(root, staged)
    raw_memories.sync(staged, sessions)
    projects = {each.thread_id: f"example.org/acme/{each.cwd.rpartition('/')[2]}" for each in sessions}
    material = ConsolidationInput(staged, sessions, projects, [], Forgotten([]), set(), set())
    material.edits = entry_edits.read(staged)
    model = Counting()
    maker = Curator(model, _choice(), settings=CuratorLimits(requests=1_000))

    def check(found: list[Entry]) -> list[str]:
        return validation.problems(staged) + list(validation.entries(found))

    await maker.curate(material, maker.consolidate(material), check)
    shutil.rmtree(root)
    staged.rename(root)
    return model


def joining(folder: Path) -> Table:
    """Tokens sent when one session joins, against going over all."""
    table = Table(
        "Going over the memory when one session joins (promised: at most 10 % of going over all at 256)",
        ("sessions", "MEMORY.md", "all", "in requests", "answered", "one joins", "requests", "share"),
    )
    for count in (64, 256, 512):
        place = folder / str(count)
        sessions = [session(number) for number in range(count)]
        whole = anyio.run(go_over, place, sessions)
        size = (place / layout.FOLDER / layout.MEMORY).stat().st_size
        one = anyio.run(go_over, place, [*sessions, session(count)])
        sent = (f"{whole.tokens:,} tokens", len(whole.requests), f"{whole.answered:,} tokens")
        joined = (f"{one.tokens:,} tokens", len(one.requests), f"{one.tokens / whole.tokens:.1%}")
        table.add(count, f"{size:,} bytes", *sent, *joined)
    return table


def run_all() -> list[Table]:
    """Measure everything."""
    with tempfile.TemporaryDirectory(prefix="bench-curation-") as name:
        return [joining(Path(name))]


if __name__ == "__main__":
    for each in run_all():
        print(msgspec.json.encode([dict(zip(each.header, row, strict=True)) for row in each.rows]).decode())
