"""Opening a thread for reading, whichever agent wrote its file.

Our own ledgers and Codex's files open as they are. A file of another agent is converted into a temporary folder that is
removed afterwards; what is shown of it names the file itself, never that folder.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
import msgspec

from commonplace.config import Settings
from commonplace.errors import NotASession
from commonplace.importers import converter, ledger_writer, sources
from commonplace.importers.converter import SessionHead
from commonplace.importers.ledger_writer import LedgerDestination
from commonplace.protocol import rollout
from commonplace.protocol.rollout import Skipped
from commonplace.rollout import layout
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, LedgerPart, open_ledger, read_head
from commonplace.rollout.chain_blobs import ChainStore
from commonplace.rollout.private_folders import make_private
from commonplace.rollout.sidechains import Sidechain
from commonplace.sessions.resolve import SessionFile
from commonplace.state.home import Home

T = TypeVar("T")


class OpenThread(msgspec.Struct):
    """A thread that can be looked at, and where its payloads are."""

    ledger: Ledger
    store: BlobStore
    source: str
    """The agent whose file it is, if it had to be converted."""
    sidechains: list[Sidechain]
    """Sub-agents, where those of the ledger's own folder are not the ones to show."""


async def read_thread(home: Home, target: SessionFile, elsewhere: Path | None, read: Callable[[OpenThread], T]) -> T:
    """Open a thread in a worker thread, call `read` with it, and return what that returns."""

    def work() -> T:
        with contextlib.ExitStack() as stack:
            return read(open_thread(home, target, elsewhere, stack))

    return await anyio.to_thread.run_sync(work)


def open_thread(home: Home, target: SessionFile, elsewhere: Path | None, stack: contextlib.ExitStack) -> OpenThread:
    """Open a thread, converting its file if another agent wrote it; `stack` removes what was made for that.

    Raises:
        NotASession: the file holds no session.
        LedgerError: it cannot be read.
    """
    source = None if target.is_ours else sources.detect(target.path)
    if source is not None and source != sources.CODEX:
        return stack.enter_context(_converted(target.path, source, home.settings))
    ledger = open_ledger(target.path, [home.path, *([elsewhere] if elsewhere else [])])
    blobs = BlobStore(home.path if target.is_ours else target.home)
    return OpenThread(ledger, ChainStore(blobs, ledger), "", [])


async def open_head(target: SessionFile) -> Ledger:
    """Open only a thread's own file, for a thread that is about to go: what it inherits may be gone already."""
    head, meta = await anyio.to_thread.run_sync(read_head, target.path)
    return Ledger(target.path, meta, head, (LedgerPart(target.path, None),))


@contextlib.contextmanager
def _converted(path: Path, source: str, settings: Settings) -> Generator[OpenThread]:
    """Convert a file for as long as somebody looks at it.

    Raises:
        NotASession: it holds no session.
        LedgerError: it cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
        home = Path(folder)
        place = LedgerDestination(home, settings.now, settings.blob_bytes)
        written, skipped = ledger_writer.write(path, sources.converter(source), place)
        if written:
            own, inside = written[0].path, written[1:]
        else:
            own, inside = _empty(path, source, skipped, home), []
        chains = [Sidechain(each.head.thread_id, str(path)) for each in inside if each.head.parent is not None]
        yield OpenThread(open_ledger(own), BlobStore(home), source, [*chains, *_sub_agents(path, source)])


def _empty(path: Path, source: str, skipped: list[Skipped], home: Path) -> Path:
    """Return a ledger for a file in which nothing was said; one that is nobody's session is refused."""
    if any(entry.reason != converter.TORN for entry in skipped):
        raise NotASession(f"{path} is not a session file of {source}.", hint="Name a session file.", path=str(path))
    session = path.name.partition(".")[0]
    thread_id = converter.thread_id_for(source, session)
    head = SessionHead(source=source, thread_id=thread_id, session_id=session, started="", path=str(path))
    own = home / layout.SESSIONS / f"rollout-2000-01-01T00-00-00-{thread_id}.jsonl"
    make_private(own.parent)
    notes = [rollout.encode(note.type, note.value, timestamp="") for note in map(converter.skip_note, skipped)]
    own.write_bytes(rollout.encode("session_meta", converter.meta(head), timestamp="") + b"".join(notes))
    return own


def _sub_agents(path: Path, source: str) -> Iterator[Sidechain]:
    """Yield the sub-agents that stand in files of their own."""
    look = getattr(sources.module(source), "sub_agents", None)
    for file in look(path) if look is not None else ():
        head = next((found for found in sources.converter(source)(file) if isinstance(found, SessionHead)), None)
        if head is not None:
            yield Sidechain(head.thread_id, str(file))
