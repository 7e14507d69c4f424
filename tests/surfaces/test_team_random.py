"""Three hosts that do anything at once: in the end they have one memory, and nothing that anybody wrote is lost."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from team_hosts import Host, drop

from commonplace.app import book as books
from commonplace.app.memory import Memory
from commonplace.errors import BadInput
from commonplace.memory.edits.edits import NoteRequest

ACTS = ("note", "edit", "file", "forget", "pin", "learn", "prompt", "edit", "file")
_NAME = re.compile(r"\b(?:[bdfgklmnprt][aeiou]){5}\b")


def named(number: int) -> str:
    """Return a word that no other statement has."""
    source = random.Random(number)
    return "".join(source.choice("bdfgklmnprt") + source.choice("aeiou") for _ in range(5))


class Team:
    """What three people do, and what they wrote and forgot."""

    def __init__(self, seed: int, folder: Path, address: str) -> None:
        self.random = random.Random(seed)
        self.root = f"random{seed}"
        self.hosts = [Host(folder / name, address, self.root, name, f"{name}@x.example") for name in ("a", "b", "c")]
        self.written: set[str] = set()
        self.forgotten: set[str] = set()
        self._serial = 0

    async def act(self, host: Host, what: str) -> None:
        """Let a person do something, in a process of its own as far as the memory can tell."""
        self._serial += 1
        number, name = self._serial, named(self._serial)
        host.variables["COMMONPLACE_NOW"] = (
            datetime(2026, 11, 20, 9, tzinfo=UTC) + timedelta(minutes=number)
        ).isoformat()
        async with books.open(environment=host.variables) as book:
            if what == "note":
                self.written.add(named(number))
                await book.memory.note(NoteRequest(text=f"{name} and {named(-number)} are closed", everywhere=True))
            elif what == "edit":
                self._edit(host, number, f"- {name} likes {named(-number)}")
            elif what == "file":
                self._file(host, number, f"{name} lies behind {named(-number)}\n")
            elif what == "forget":
                await self._forget(book.memory)
            elif what == "pin" and (known := await book.memory.entries()):
                await book.memory.pin(self.random.choice(known).id)
            elif what == "learn":
                await book.memory.run()
            elif what == "prompt":
                await book.memory.prompt(project="github.com/acme/shop", count=False)

    def _edit(self, host: Host, number: int, line: str) -> None:
        place = host.home / "memories" / "MEMORY.md"
        lines = place.read_text("utf-8").split("\n") if place.is_file() else []
        first = next((at for at, each in enumerate(lines) if each.startswith('- "')), None)
        if first is not None:
            self.written.add(named(number))
            place.write_text("\n".join([*lines[:first], line, *lines[first:]]), "utf-8")

    def _file(self, host: Host, number: int, text: str) -> None:
        """Write a note of a name that others may use, too."""
        folder = host.home / "memories/extensions/ad_hoc/notes"
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"2026-11-20T08-00-00-same-{number // 5}.md"
        if not place.exists():
            self.written.add(named(number))
            place.write_text(text, "utf-8")

    async def _forget(self, memory: Memory) -> None:
        known = [each for each in await memory.entries() if _NAME.search(each.text)]
        if known:
            chosen = self.random.choice(known)
            try:
                forgot = await memory.forget(chosen.id)
            except BadInput:  # somebody else was faster
                return
            gone = [each.text for each in known if each.id in (chosen.id, *forgot.removed)]
            self.forgotten.update(name for text in gone for name in _NAME.findall(text))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
async def test_whatever_three_hosts_do_nothing_is_lost(seed: int, tmp_path: Path, postgres_server: str) -> None:
    team = Team(seed, tmp_path, postgres_server)
    for number, host in enumerate(team.hosts):
        host.session(f"In this project we always deploy from the {named(1000 + number)} branch.", number=number)

    async def live(host: Host) -> None:
        for _ in range(16):
            await team.act(host, team.random.choice(ACTS))

    try:
        async with anyio.create_task_group() as group:
            for host in team.hosts:
                group.start_soon(live, host)
        for host in [*team.hosts] * 3:
            await team.act(host, "learn")
        texts = [" ".join(host.texts()) for host in team.hosts]
        files = [host.files() for host in team.hosts]
        past = (team.hosts[0].home / "memory_history.jsonl").read_text("utf-8").splitlines()
    finally:
        drop(postgres_server, [team.root])
    replaced = {
        name for line in past if "superseded" in line for name in _NAME.findall(json.loads(line)["before"] or "")
    }
    assert {name for name in team.written - team.forgotten - replaced if name not in texts[0]} == set()
    assert texts[1:] == texts[:2]
    assert files[1:] == files[:2]
