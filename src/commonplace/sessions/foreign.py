"""Looking at a file of another agent without importing it: converted into a place that is gone afterwards.

What is shown of it names the file itself, never the place where it was converted.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec

from commonplace.config import Settings
from commonplace.errors import NotASession
from commonplace.importers import converter, ledger_writer, sources
from commonplace.importers.converter import Head
from commonplace.importers.ledger_writer import Place
from commonplace.protocol import rollout
from commonplace.protocol.rollout import Skipped
from commonplace.rollout import layout
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, open_ledger
from commonplace.rollout.private_folders import make_private
from commonplace.rollout.sidechains import Sidechain


class Opened(msgspec.Struct):
    """A thread that can be looked at, and where its payloads are."""

    ledger: Ledger
    store: BlobStore
    source: str
    """The agent whose file it is, if it had to be converted."""
    sidechains: list[Sidechain]
    """Sub-agents, where those of the ledger's own folder are not the ones to show."""


@contextlib.contextmanager
def converted(path: Path, source: str, settings: Settings) -> Generator[Opened]:
    """Convert a file for as long as somebody looks at it.

    Raises:
        NotASession: it holds no session.
        LedgerError: it cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
        home = Path(folder)
        place = Place(home, settings.now, settings["blob_bytes"])
        written, skipped = ledger_writer.write(path, sources.converter(source), place)
        if written:
            own, inside = written[0].path, written[1:]
        else:
            own, inside = _empty(path, source, skipped, home), []
        chains = [Sidechain(each.head.thread_id, str(path)) for each in inside if each.head.parent is not None]
        yield Opened(open_ledger(own), BlobStore(home), source, [*chains, *_sub_agents(path, source)])


def _empty(path: Path, source: str, skipped: list[Skipped], home: Path) -> Path:
    """Return a ledger for a file in which nothing was said; one that is nobody's session is refused."""
    if any(entry.reason != converter.TORN for entry in skipped):
        raise NotASession(f"{path} is not a session file of {source}.", hint="Name a session file.", path=str(path))
    session = path.name.partition(".")[0]
    thread_id = converter.thread_id_for(source, session)
    head = Head(source=source, thread_id=thread_id, session_id=session, started="", path=str(path))
    own = home / layout.SESSIONS / f"rollout-2000-01-01T00-00-00-{thread_id}.jsonl"
    make_private(own.parent)
    notes = [rollout.encode(note.type, note.value, timestamp="") for note in map(converter.skip_note, skipped)]
    own.write_bytes(rollout.encode("session_meta", converter.meta(head), timestamp="") + b"".join(notes))
    return own


def _sub_agents(path: Path, source: str) -> Iterator[Sidechain]:
    """Yield the sub-agents that stand in files of their own."""
    look = getattr(sources.module(source), "sub_agents", None)
    for file in look(path) if look is not None else ():
        head = next((found for found in sources.converter(source)(file) if isinstance(found, Head)), None)
        if head is not None:
            yield Sidechain(head.thread_id, str(file))
