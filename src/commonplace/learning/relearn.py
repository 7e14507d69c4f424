"""What memory asks of learning: entries from its files, a session read again, the memory made anew.

`app` hands these to `memory`, which knows nothing of learning.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from commonplace.learning import providers, run
from commonplace.learning.consolidate import consolidation_input, entry_edits, phase2, provenance
from commonplace.learning.consolidate.consolidator import MergeConsolidator, entries_of
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.learning.extract import session_reading
from commonplace.learning.extract.rules import RuleExtractor
from commonplace.memory.edits import notes
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.entries import Entry
from commonplace.memory.files import raw_memories
from commonplace.memory.sharing import shared_memory
from commonplace.memory.workspace import layout
from commonplace.patterns import regex
from commonplace.rollout import decisions
from commonplace.state.database import Row
from commonplace.state.home import Home
from commonplace.state.outputs import Output

_GROUP: Final = regex(r"^task_group: (.+)$", re.MULTILINE)


def derive_entries(home: Path) -> list[Entry]:
    """Return the entries that the memory files of a home hold, as the embedded consolidator makes them."""
    root = home / layout.FOLDER
    taught = raw_memories.read(home)
    groups = {one.thread_id: _GROUP.search(one.raw_memory) for one in taught}
    projects = {key: group[1].strip() for key, group in groups.items() if group}
    forgotten, pinned, owned = Forgotten.load(home), decisions.pins(home), decisions.owned_files(home)
    material = ConsolidationInput(root, taught, projects, notes.read(root), forgotten, pinned, owned)
    material.reviews = decisions.reviews(home)
    material.edits = entry_edits.read(root)
    material.people = shared_memory.known_people(home)
    return entries_of(material)


class Relearner:
    """Learns again after a person asked to forget something."""

    def __init__(self, home: Home) -> None:
        self._home = home

    async def reread(self, path: Path, project: str, forgotten: Forgotten) -> Output | None:
        """Return what a session teaches without what was forgotten; None where only a model could read it again."""
        if self._home.settings.memory.extract_model != providers.EMBEDDED:
            return None
        return await session_reading.extract_session(RuleExtractor(), path, project, forgotten)

    async def rebuild(self) -> str:
        """Make the memory's files anew, after any running consolidation; return the result."""
        database = await self._home.database()
        phase = phase2.ConsolidationPhase(
            self._home.settings,
            database,
            MergeConsolidator(),
            self._home.worker(),
            background=False,
            shared=shared_memory.of_home(self._home),
        )
        done = await run.consolidate_now(phase)
        for warning in done.warnings:
            self._home.warn(warning)
        return done.status

    def rehearse(self, home: Path, rows: list[Row], mirrored: str | None, forgotten: Forgotten) -> list[Entry]:
        """Make the memory's files anew in a copy of a home; return the entries and candidates that there are then."""
        root = home / layout.FOLDER
        material = consolidation_input.from_rows(home, root, rows, self._home.settings.memory)
        material.forgotten = forgotten
        material.is_kept = provenance.is_others(root, mirrored)
        raw_memories.sync(root, material.filed)
        consolidated = MergeConsolidator().consolidate(material)
        return [*consolidated.entries, *consolidated.candidates]
