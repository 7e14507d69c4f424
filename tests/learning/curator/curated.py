"""A memory in a folder, sessions that teach it something, and a scripted model that goes over it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from taught import DAY, START, thread

from commonplace.learning.budget import Spending
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory
from commonplace.learning.consolidate.curator import Curator, CuratorLimits
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory.edits import notes
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.files import raw_memories, validation
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.workspace import layout
from commonplace.models.base import Request, Usage
from commonplace.models.catalog import ModelInfo
from commonplace.models.providers import Choice, Provider
from commonplace.models.retries import RetryPolicy
from commonplace.models.scripted import Answer, ScriptedModel, Step, answer, call

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


def edit(changes: Mapping[str, str], path: str = "MEMORY.md", name: str = "e1") -> dict[str, Any]:
    """A call that changes texts of a file."""
    return call("edit", {"path": path, "changes": [{"old": old, "new": new} for old, new in changes.items()]}, name)


def done(name: str = "d1") -> dict[str, Any]:
    """The call that ends a conversation."""
    return call("done", {}, name)


def does(*calls: Mapping[str, Any], **options: Any) -> Answer:
    """An answer of calls that costs a little."""
    return answer(*calls, **{"usage": Usage(input=900, output=100, total=1000), **options})


def nothing() -> Answer:
    """The answer that changes nothing."""
    return does(done())


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
        return ConsolidationInput(
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

    def without_model(self) -> ConsolidatedMemory:
        """Make the memory without a model, as the plain one."""
        made = Curator(ScriptedModel(), choice()).consolidate(self.material())
        self._accept()
        return made

    async def learn(
        self, *steps: Step, settings: CuratorLimits | None = None, spending: Spending | None = None
    ) -> ConsolidatedMemory:
        """Let a model go over what is new; if that may be used, it is the memory."""
        self.model = ScriptedModel(*steps)
        found = await self._learn(settings, spending)
        self.model.check()
        return found

    async def learn_quietly(self) -> ConsolidatedMemory:
        """The same with a model that changes nothing, however often it is asked."""
        self.model = ScriptedModel(*[nothing() for _ in range(200)])
        return await self._learn(None, None)

    async def _learn(self, settings: CuratorLimits | None, spending: Spending | None) -> ConsolidatedMemory:
        material = self.material()
        limits = settings or CuratorLimits(pace=RetryPolicy(sleep=_at_once))
        curator = Curator(self.model, choice(), spending=spending, settings=limits, now=lambda: NOW)

        def check(found: Any) -> list[str]:
            return validation.problems(material.root, owned=self.owned) + list(validation.entries(found))

        found = await curator.curate(material, curator.consolidate(material), check)
        self.is_kept = True
        self._accept()
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


async def _at_once(_: float) -> None:
    return


def sent(request: Request) -> str:
    """Everything that a request sends."""
    return request.instructions + "\n" + b"\n".join(request.input).decode()


def words(request: Request, place: int = 0) -> str:
    """The words of one message of a request."""
    return str(json.loads(request.input[place])["content"][0]["text"])


def names(request: Request) -> list[str]:
    """The tools that a request offers."""
    return [str(getattr(tool, "name", "hosted")) for tool in request.tools]


def texts(found: ConsolidatedMemory, ids: Collection[str] | None = None) -> Sequence[str]:
    """What entries say."""
    return [entry.text for entry in found.entries if ids is None or entry.id in ids]
