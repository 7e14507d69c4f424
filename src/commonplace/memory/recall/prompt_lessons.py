"""The lessons that a prompt is about and that its session was not told: for a hook that sees each prompt.

A lesson is about a prompt if search ranks it among the best and both share enough words: search always ranks something
first, and a person did not ask for it. A session is told each lesson once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio.to_thread

from commonplace.memory import audience
from commonplace.memory.entries import Entry
from commonplace.memory.recall import section, section_cache, usage_counts
from commonplace.memory.recall.find import Finder
from commonplace.memory.recall.scoped_prompt import cleaner
from commonplace.memory.store import MemoryStore
from commonplace.projects import lookup
from commonplace.protocol.memory_traces import SECTION_OPENING
from commonplace.redact import redact
from commonplace.search.query import Query
from commonplace.search.rank import analysis

MOST: Final = 2
"""How many lessons a prompt gets."""
_RANKED: Final = 10
_SHARED_TERMS: Final = 2
"""A lesson shares at least so many words with the prompt, …"""
_SHARE: Final = 0.25
"""… and at least this share of the lesson's own words."""
_MAX_PROMPT: Final = 4_000


async def unseen_lessons(store: MemoryStore, folder: Path, session_id: str, prompt: str) -> str | None:
    """Return the best lessons for a prompt as a section, and note that the session was told; None if there are none."""
    if not store.home.settings.memory.use or not store.home.has_index():
        return None
    home = str(store.home.path)
    finder = Finder(store)
    await finder.refresh(sessions=False)
    known = {each.entry.id: each.entry for each in await store.known_entries()}
    scope = await lookup.folder_scope(store.home, folder, None, {entry.scope for entry in known.values()})
    seen = section_cache.seen(home, session_id) | section_cache.ids_of(home, str(folder))
    asked = prompt[:_MAX_PROMPT]
    hits = await finder.find(Query(asked, _RANKED, scope))
    ids = [hit.entry_id for hit in hits if isinstance(hit.entry_id, str)]
    chosen = [known[each] for each in ids if each in known and each not in seen]
    reader = await anyio.to_thread.run_sync(audience.of_prompt, store.home, folder, list(known.values()))
    told = (entry for entry in chosen if entry.is_told and reader.may_be_told(entry))
    chosen = [entry for entry in told if is_about(entry, asked)][:MOST]
    if not chosen:
        return None
    section_cache.add_seen(home, session_id, [entry.id for entry in chosen])
    await usage_counts.count(store, "injected", chosen)
    clean = cleaner(store.home.path)
    lines = [f"- {section.harmless(clean(entry.text))}{reader.credit(entry)}" for entry in chosen]
    return redact("\n".join([f"{SECTION_OPENING}>", *lines, section.CLOSING]))


def is_about(entry: Entry, prompt: str) -> bool:
    """Say whether an entry shares enough words with a prompt."""
    asked = set(analysis.query_terms(prompt).values())
    own = set(analysis.query_terms(entry.text).values())
    shared = len(asked & own)
    return shared >= _SHARED_TERMS and shared >= _SHARE * len(own)
