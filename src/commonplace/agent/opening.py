"""Opening a session: a new thread, or an old one from its ledger. What a session is made of comes together here."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from commonplace.agent import lines
from commonplace.agent.begun import Begun
from commonplace.agent.outside import Outside
from commonplace.agent.profile import Profile
from commonplace.agent.session import Session
from commonplace.agent.tools.image import ViewImage
from commonplace.agent.tools.patch import ApplyPatch
from commonplace.agent.tools.plan import UpdatePlan
from commonplace.agent.tools.processes import Processes
from commonplace.agent.tools.recall import Recall
from commonplace.agent.tools.registry import Registry, Tool
from commonplace.agent.tools.shell import Process, Shell
from commonplace.context.history import History
from commonplace.context.reconstruct import Reconstruction, Window, reconstruct
from commonplace.context.usage import TokenInfo
from commonplace.models.base import Model
from commonplace.projects import identity
from commonplace.protocol import events
from commonplace.protocol.ids import uuid7
from commonplace.protocol.rollout import Line
from commonplace.rollout import blobs, layout, survey
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, open_ledger
from commonplace.rollout.chain_blobs import ChainStore
from commonplace.rollout.checkpoint import Tail
from commonplace.rollout.recorder import Options, Recorder

if TYPE_CHECKING:
    from commonplace.context.digest.tally import Tally


async def start(
    profile: Profile,
    model: Model,
    outside: Outside,
    tasks: TaskGroup,
    recording: Options | None,
    *,
    thread_id: str | None = None,
    meta: dict[str, Any] | None = None,
    tools: Sequence[Tool] | None = None,
) -> Session:
    """Begin a new thread; without `recording` it leaves no file. `meta` adds to its first line.

    What goes on in the background lives in `tasks`, until the session is closed.

    Raises:
        ThreadBusy: another writer has the thread.
    """
    now = outside.now()
    millis = int(now.timestamp() * 1000)
    own_id = thread_id or uuid7(millis, secrets.token_bytes(10))
    window_id = uuid7(millis, secrets.token_bytes(10))
    recorder: Recorder | None = None
    if recording is not None:
        git = await anyio.to_thread.run_sync(identity.checkout, profile.cwd)
        first = lines.session_meta(profile, own_id, window_id, now, git, meta)
        recorder = await Recorder.create(layout.new_path(recording.home, now, own_id), first, recording)
    processes = Processes(tasks)
    begun = Begun(processes=processes, tasks=tasks, recorder=recorder, window=Window(0, window_id, None, window_id))
    return Session(own_id, profile, model, registry(processes, outside, profile, tools), outside, begun)


class Found(msgspec.Struct, frozen=True):
    """An old thread, as its ledger tells it."""

    ledger: Ledger
    state: Reconstruction
    info: TokenInfo | None
    base: str | None
    """The base instructions that it began with."""


def look(path: Path, homes: Sequence[Path]) -> Found:
    """Read an old thread, as much of it as going on takes.

    Raises:
        NotASession, LedgerError: it cannot be read.
    """
    ledger = open_ledger(path, [*homes])
    tail = Tail(ledger)
    store = ChainStore(BlobStore(homes[0]), ledger)
    state = reconstruct(blobs.restored(tail, store, tail.log.add), ledger.meta)
    head = msgspec.json.decode(ledger.head.payload, type=_Head)
    return Found(ledger, state, _counted(ledger), head.base_instructions.text if head.base_instructions else None)


class _Base(msgspec.Struct):
    text: str | None = None


class _Head(msgspec.Struct):
    base_instructions: _Base | None = None


class _Counted(msgspec.Struct):
    info: TokenInfo | None = None


def _counted(ledger: Ledger) -> TokenInfo | None:
    """Return what the newest count of tokens says; after a compaction or a rollback an older one says nothing."""
    for line in Tail(ledger):
        if line.type == "compacted" or _is(line, events.ROLLED_BACK):
            return None
        if _is(line, events.TOKEN_COUNT):
            try:
                info = msgspec.json.decode(line.payload, type=_Counted).info
            except msgspec.DecodeError:
                continue
            if info is not None:
                return info
    return None


def _is(line: Line, kind: str) -> bool:
    try:
        return line.type == "event_msg" and survey.kind_of(line.payload) == kind
    except (msgspec.DecodeError, RecursionError):
        return False


async def resume(
    found: Found,
    profile: Profile,
    model: Model,
    outside: Outside,
    tasks: TaskGroup,
    recording: Options,
    *,
    tools: Sequence[Tool] | None = None,
) -> Session:
    """Go on with an old thread; its file is appended to.

    Raises:
        ThreadBusy: another writer has the thread.
        LedgerError: the file cannot be written.
    """
    recorder = await Recorder.resume(found.ledger.path, recording)
    processes = Processes(tasks)
    state = found.state
    history: History = state.history
    history.info = found.info
    if found.info is None and history.entries:
        history.recompute_usage(profile.base, profile.window.effective)
    begun = Begun(
        processes=processes,
        tasks=tasks,
        recorder=recorder,
        history=history,
        window=_window(state.window, outside),
        reference=state.reference,
        baseline=state.world_state,
        previous_model=state.previous.model if state.previous else None,
        start="resume",
        tally=lambda: _tallied(found.ledger),
    )
    registered = registry(processes, outside, profile, tools)
    return Session(found.ledger.thread_id, profile, model, registered, outside, begun)


def _tallied(ledger: Ledger) -> Tally:
    from commonplace.context.digest.ledger_tally import tallied

    return tallied(ledger)[0]


def _window(window: Window, outside: Outside) -> Window:
    """Return the window with an id: what other programs wrote may have none."""
    if window.id is not None:
        return window
    own = uuid7(int(outside.now().timestamp() * 1000), secrets.token_bytes(10))
    return Window(window.number, window.first_id or own, window.previous_id, own)


def registry(processes: Processes, outside: Outside, profile: Profile, tools: Sequence[Tool] | None = None) -> Registry:
    """Return the tools of a session: the usual ones and those of its surroundings, or exactly the given ones."""
    if tools is not None:
        return Registry(tools)
    patch = ApplyPatch()
    own: list[Tool] = [
        Shell(processes, withheld=profile.withheld, patch=patch),
        Process(processes),
        patch,
        UpdatePlan(),
        Recall(outside.clean),
    ]
    if "image" in profile.choice.info.modalities:
        own.append(ViewImage())
    return Registry([*own, *outside.tools(profile.cwd)])
