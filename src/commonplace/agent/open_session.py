"""Open a session: a new thread, or an old one from its ledger. The parts of a session are put together here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio.to_thread
from anyio.abc import TaskGroup

from commonplace.agent import ledger_lines
from commonplace.agent.profile import Profile
from commonplace.agent.prompt_state import PromptState
from commonplace.agent.session import InitialState, Session
from commonplace.agent.session_environment import SessionEnvironment
from commonplace.agent.stored_thread import StoredThread
from commonplace.agent.tools.image import ViewImage
from commonplace.agent.tools.patch.tool import ApplyPatch
from commonplace.agent.tools.plan import UpdatePlan
from commonplace.agent.tools.processes import Processes
from commonplace.agent.tools.recall import Recall
from commonplace.agent.tools.registry import Registry, Tool
from commonplace.agent.tools.shell import Process, Shell
from commonplace.context.history import History
from commonplace.context.reconstruct import WindowIdentity
from commonplace.models.base import Model
from commonplace.projects import identity
from commonplace.protocol.ids import new_id
from commonplace.rollout import layout
from commonplace.rollout.chain import Ledger
from commonplace.rollout.recorder import Recorder, RecorderOptions

if TYPE_CHECKING:
    from commonplace.context.digest.tally import Tally


async def start(
    profile: Profile,
    model: Model,
    environment: SessionEnvironment,
    tasks: TaskGroup,
    recording: RecorderOptions | None,
    *,
    tools: Sequence[Tool] | None = None,
) -> Session:
    """Open a session with a new thread; without `recording` it is ephemeral and leaves no file.

    Background tasks run in `tasks` until the session is closed. `tools` replaces the usual tools.

    Raises:
        ThreadBusy: another writer has the thread.
    """
    now = environment.now()
    thread_id, window_id = new_id(now), new_id(now)
    recorder: Recorder | None = None
    if recording is not None:
        git = await anyio.to_thread.run_sync(identity.checkout, profile.cwd)
        first = ledger_lines.session_meta(profile, thread_id, window_id, now, git)
        recorder = await Recorder.create(layout.new_path(recording.home, now, thread_id), first, recording)
    initial = InitialState(
        thread_id=thread_id,
        prompt=PromptState(History(), WindowIdentity(0, window_id, None, window_id)),
        processes=Processes(tasks),
        tasks=tasks,
        recorder=recorder,
    )
    return _session(profile, model, environment, initial, tools)


async def resume(
    stored: StoredThread,
    profile: Profile,
    model: Model,
    environment: SessionEnvironment,
    tasks: TaskGroup,
    recording: RecorderOptions | None,
    *,
    tools: Sequence[Tool] | None = None,
) -> Session:
    """Open a session with an old thread; its file is appended to. Without `recording` it goes on beside that thread,
    under an id of its own, and leaves no file.

    Raises:
        ThreadBusy: another writer has the thread.
        LedgerError: the file cannot be written.
    """
    recorder = None if recording is None else await Recorder.resume(stored.ledger.path, recording)
    state = stored.state
    state.history.restore_usage(stored.info)
    if stored.info is None and state.history.entries:
        state.history.recompute_usage(profile.base, profile.window.effective)
    prompt = PromptState(state.history, _with_id(state.window, environment), lambda: _tally(stored.ledger))
    prompt.recollect(state)
    initial = InitialState(
        thread_id=stored.ledger.thread_id if recorder is not None else new_id(environment.now()),
        prompt=prompt,
        processes=Processes(tasks),
        tasks=tasks,
        recorder=recorder,
        start="resume",
    )
    session = _session(profile, model, environment, initial, tools)
    session.usage.update_limits(stored.limits)
    return session


def _session(
    profile: Profile,
    model: Model,
    environment: SessionEnvironment,
    initial: InitialState,
    tools: Sequence[Tool] | None,
) -> Session:
    offered = usual_tools(initial.processes, environment, profile) if tools is None else tools
    return Session(profile, model, Registry(offered), environment, initial)


def _tally(ledger: Ledger) -> Tally:
    from commonplace.context.digest.ledger_tally import tally_ledger  # slow to load, and only a compaction needs it

    return tally_ledger(ledger)[0]


def _with_id(window: WindowIdentity, environment: SessionEnvironment) -> WindowIdentity:
    """Return a window that has an id; ledgers of other programs may have none."""
    if window.id is not None:
        return window
    own = new_id(environment.now())
    return WindowIdentity(window.number, window.first_id or own, window.previous_id, own)


def usual_tools(processes: Processes, environment: SessionEnvironment, profile: Profile) -> list[Tool]:
    """Return the tools that a session has unless it is given others: the agent's own, then its environment's."""
    patch = ApplyPatch()
    own: list[Tool] = [
        Shell(processes, withheld=profile.withheld, patch=patch),
        Process(processes),
        patch,
        UpdatePlan(),
        Recall(environment.clean),
    ]
    if "image" in profile.choice.info.modalities:
        own.append(ViewImage())
    return [*own, *environment.tools(profile.cwd)]
