"""A memory in a folder, sessions that teach it something, and a scripted model that goes over it."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from taught import DAY, START, thread

from commonplace.learning.budget import Spending
from commonplace.learning.consolidate import entry_edits
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory, MergeConsolidator
from commonplace.learning.consolidate.curator import Curator, CuratorLimits
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory.edits import notes
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.entries import Entry
from commonplace.memory.files import raw_memories, validation
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.workspace import layout
from commonplace.models.base import Request, Usage
from commonplace.models.catalog import ModelInfo
from commonplace.models.providers import Choice, Provider
from commonplace.models.scripted import Answer, ScriptedModel, Step, answer, say


async def at_once(_: float) -> None:
    """Wait for nothing."""


LIMITS = CuratorLimits(sleep=at_once)
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
SHOP = "example.org/acme/shop"
WISH = "Preference signals:"
FACT = "Reusable knowledge:"
FAIL = "Failures and how to do differently:"


def choice(**changes: Any) -> Choice:
    """A model that is known, unless told otherwise."""
    values: dict[str, Any] = {"window": 200_000, "max_output": 8_000, "efforts": ("low", "medium", "high"), **changes}
    return Choice("here", Provider(api="responses", base_url="http://127.0.0.1:1/v1"), "m-1", ModelInfo(**values))


def wish(words: str) -> tuple[str, str, str, str]:
    """Something that a person said."""
    return (WISH, f'said by the user: "{words}"', "said by the user", words)


def fact(words: str, how: str = "printed by a tool") -> tuple[str, str, str, str]:
    """Something that a tool showed."""
    return (FACT, words, how, words)


def session(
    number: int, *lessons: tuple[str, str, str, str], cwd: str = "/home/dev/shop", keywords: str = "alpha, beta"
) -> RawMemory:
    """What a session of a day taught, as an extractor writes it: section, bullet, how it is known and the words."""
    head = f"description: d\ntask: fix it\ntask_group: g\ntask_outcome: success\ncwd: {cwd}\nkeywords: {keywords}"
    lines = [f"---\n{head}\n---\n\n### Task 1: fix it\n\ntask: fix it\ntask_group: g\ntask_outcome: success"]
    references: list[str] = []
    for section in (WISH, FACT, FAIL):
        own = [each for each in lessons if each[0] == section]
        lines += ["", section] if own else []
        for _, text, how, quote in own:
            place = len(references) + 1
            references.append(f'- [{place}] turn 1, bytes {place * 100}-{place * 100 + 50}, {how}: "{quote}"')
            lines.append(f"- {text} [{place}]")
    raw = "\n".join([*lines, "", "References:", *references])
    summary = f"# fix it\n\nRollout context: 1 task(s), 90000 bytes of dialogue, in {cwd}.\n\n## Task 1: fix it\n"
    return RawMemory(thread(number), START + number * DAY, cwd, f"/sessions/{number}.jsonl", None, raw, summary, "fix")


def edit(kind: str, /, *entries: str, **fields: Any) -> dict[str, Any]:
    """One edit, with all the fields that a schema asks for."""
    empty: dict[str, Any] = {"text": "", "scope": "", "name": "", "keywords": [], "steps": []}
    return {"edit": kind, "entries": list(entries), **empty, **fields}


def proposes(*edits: dict[str, Any], **options: Any) -> Answer:
    """An answer of edits that costs a little."""
    text = json.dumps({"edits": list(edits)})
    return answer(say(text), **{"usage": Usage(input=900, output=100, total=1000), **options})


def nothing() -> Answer:
    """The answer that changes nothing."""
    return proposes()


class Memory:
    """A workspace that learns."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / layout.FOLDER
        self.staged = folder / "staged"
        self.sessions: list[RawMemory] = []
        self.projects: dict[str, str] = {}
        self.forgotten = Forgotten([])
        self.pinned: set[str] = set()
        self.owned: set[str] = set()
        self.is_kept = False
        self.settled: set[str] = set()
        self.hidden: set[str] = set()
        self.model = ScriptedModel()
        layout.ensure(self.root)

    def add(self, *sessions: RawMemory, project: str = SHOP) -> None:
        self.sessions += sessions
        self.projects |= {each.thread_id: project for each in sessions}

    def note(self, text: str, name: str = "2026-11-15T10-00-00-a-note.md") -> None:
        place = self.root / layout.NOTES / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")

    def material(self) -> ConsolidationInput:
        """What a consolidator works with, in a staged copy."""
        shutil.rmtree(self.staged, ignore_errors=True)
        shutil.copytree(self.root, self.staged)
        raw_memories.sync(self.staged, self.sessions)
        material = ConsolidationInput(
            self.staged,
            self.sessions,
            self.projects,
            notes.read(self.staged),
            self.forgotten,
            self.pinned,
            self.owned,
            self.is_kept,
            self.root,
            self.settled,
            self.hidden,
        )
        material.edits = entry_edits.read(self.staged)
        return material

    def merged(self) -> ConsolidatedMemory:
        """Make the memory without a model; from then on it is kept as another program's would be."""
        found = MergeConsolidator().consolidate(self.material())
        self.is_kept = True
        self._accept()
        return found

    async def learn(
        self, *steps: Step, settings: CuratorLimits | None = None, spending: Spending | None = None
    ) -> ConsolidatedMemory:
        """Let a model go over what is new; it is the memory then."""
        self.model = ScriptedModel(*steps)
        material = self.material()
        curator = Curator(self.model, choice(), spending=spending, settings=settings or LIMITS)

        def check(entries: Any) -> list[str]:
            return validation.problems(material.root, owned=self.owned) + list(validation.entries(entries))

        found = await curator.curate(material, curator.consolidate(material), check)
        self._accept()
        self.model.check()
        return found

    def _accept(self) -> None:
        shutil.rmtree(self.root)
        self.staged.rename(self.root)

    def text(self, name: str = "MEMORY.md") -> str:
        return (self.root / name).read_text("utf-8")

    def bullets(self) -> list[str]:
        """The bullets of the closing sections."""
        found = self.text().split("\n")
        return [line for line in found if line.startswith("- ") and "rollout_path=" not in line and "[Task" in line]


def sent(request: Request) -> str:
    """Everything that a request sends."""
    return request.instructions + "\n" + b"\n".join(request.input).decode()


def entry(memory: ConsolidatedMemory, words: str) -> Entry:
    """The one entry that says some words."""
    (found,) = [each for each in memory.entries if words in each.text]
    return found


def shown(request: Request) -> dict[str, str]:
    """The entries that a request shows, by their ids."""
    text = str(json.loads(request.input[0])["content"][0]["text"])
    return dict(re.findall(r"^(m[0-9a-f]{9}) \(.*\n    (.*)$", text, re.MULTILINE))
