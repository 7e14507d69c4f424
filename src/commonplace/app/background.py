"""Learning that starts by itself: after a turn took up a person's input, `Background` checks whether there is work.

    attend    listens to a session: input of a person, then the first event of an answer
    look      settings → is anything due? → once in ten minutes for a home → rate limits → starts a worker

The work itself never runs here. Reading sessions and writing a memory needs a processor, and the threads of one Python
process share one: a session in the same process would stutter, could not end before the current piece of work, and
would keep the imported modules. So a separate process does the work (`background_process`); it outlives the session. A
session holds no leases, and has nothing to give back at its end. `close` waits for a check that is under way, so that a
short `exec` starts the worker, too.

Invariants: the check begins after the first event of the answer (so that no request waits for it, and the newest rate
limits are known) and takes a few milliseconds. A failure is at most one warning. A locked database is tried again in
the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from commonplace import config
from commonplace.agent import events
from commonplace.errors import BadSetting, DatabaseBusy
from commonplace.memory.workspace import layout
from commonplace.models import rate_limit_guard
from commonplace.models.providers import Choice, choose, connect, key_environment
from commonplace.protocol import rollout
from commonplace.state.home import Home

if TYPE_CHECKING:
    from commonplace.agent.session import Session
    from commonplace.config import Settings
    from commonplace.state.database import Transaction

LONGEST_END: Final = 3.0
"""How many seconds closing a book waits for a check that is under way."""
_EARLY: Final = (
    events.TurnStarted,
    events.Warned,
    events.Retrying,
    events.HookStarted,
    events.HookCompleted,
    events.ServerChanged,
    events.Rerouted,
)
"""Events that may come before an answer and do not belong to it."""


class Background:
    """Checks, for all sessions of one home, whether there is something to learn."""

    def __init__(self, home: Home, tasks: TaskGroup) -> None:
        self._home = home
        self._tasks = tasks
        self._looked_s: int | None = None
        self._under_way: anyio.Event | None = None
        self._warned: set[str] = set()
        self.started: list[int] = []
        """The processes that were started."""

    def attend(self, session: Session) -> None:
        """Check for work in each turn that a person begins in a session, if learning may start beside that session."""
        if is_attended(self._home.settings, session):
            session.listen(accepted(lambda: self._begin(session)))

    def _begin(self, session: Session) -> None:
        from commonplace.state.learning_starts import PAUSE_SECONDS

        now = self._home.now_s()
        if self._under_way is not None or (self._looked_s is not None and abs(now - self._looked_s) < PAUSE_SECONDS):
            return
        self._looked_s, self._under_way = now, anyio.Event()
        self._tasks.start_soon(self._look, session, self._under_way)

    async def _look(self, session: Session, done: anyio.Event) -> None:
        try:
            await self.look(session)
        except DatabaseBusy:
            self._looked_s = None
        except BadSetting as error:
            self._warn(f"Nothing is learned in the background: {error.sentence()}")
        except Exception as error:  # whatever it is, the turn goes on
            if not self._home.is_degraded:  # that was said
                self._warn(f"Nothing is learned in the background now: {error}")
        finally:
            self._under_way = None
            done.set()

    async def look(self, session: Session) -> bool:
        """Start a worker if there is something to learn and it may be learned now; say whether one was started."""
        home = self._home
        models = await memory_models(home)
        database = await home.database()
        if home.is_degraded:
            return False
        now = home.now_s()
        taken = await database.write(lambda tx: _take(tx, home.settings, home.host, session.thread_id, now))
        if taken is None and await self._has_news():
            taken = await database.write(
                lambda tx: _take(tx, home.settings, home.host, session.thread_id, now, has_news=True)
            )
        if not taken:
            return False
        if any(model.name == session.profile.choice.name for model in models):
            least = home.settings.memory.min_rate_limit_remaining_percent
            if not rate_limit_guard.allows(session.usage.limits, least, now=now):
                return False
        from commonplace.app import background_process

        if not background_process.can_start():
            return False
        self.started.append(await anyio.to_thread.run_sync(background_process.start, home, session.thread_id))
        return True

    async def _has_news(self) -> bool:
        """Say whether there are sessions that the index does not know, besides the one that goes on."""
        home = self._home
        return (await (await home.index()).differences(home.path))[0] > 1

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._home.warn(text)

    async def close(self) -> None:
        """Wait a short time for a check that is under way."""
        if self._under_way is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(LONGEST_END):
                await self._under_way.wait()


def is_attended(settings: Settings, session: Session) -> bool:
    """Say whether learning may begin beside a session: a person's own, that leaves a file, where settings allow it.

    Whether the session itself is learned from, or told what is remembered, is another question.
    """
    is_root = not rollout.source_name(session.profile.source).startswith(("subagent:", "internal:"))
    return settings.memory.background and session.ledger.path is not None and is_root


def accepted(then: Callable[[], None]) -> Callable[[events.Event], None]:
    """Return a listener that calls `then` once in each turn that took up a person's input, when the answer begins."""
    turn_id = ""
    is_waiting = False

    def hear(event: events.Event) -> None:
        nonlocal turn_id, is_waiting
        if isinstance(event, events.ItemCompleted) and isinstance(event.item, events.UserMessage):
            if event.turn_id != turn_id:  # what is steered into a turn begins none
                turn_id, is_waiting = event.turn_id, True
        elif is_waiting and event.turn_id == turn_id and not isinstance(event, _EARLY):
            is_waiting = False
            then()

    return hear


async def memory_models(home: Home) -> list[Choice]:
    """Return the models that make the memory; the embedded ones are left out.

    Raises:
        BadSetting: one cannot be used.
    """
    names = {home.settings.memory.extract_model, home.settings.memory.consolidate_model} - {"embedded"}
    found = [choose(home.settings, name, for_reading=True) for name in sorted(names)]
    described: Mapping[str, Any] = config.load(home.environment).providers if found else {}
    for choice in found:
        if described.get(choice.name) != home.settings.providers.get(choice.name):  # another process cannot know it
            raise BadSetting(f"{choice.name} is described on the command line.", hint="Describe it in config.toml.")
        await connect(choice, key_environment(home.environment)).aclose()
    return found


def _take(
    tx: Transaction, settings: Settings, host: str, thread_id: str, now: int, *, has_news: bool = False
) -> bool | None:
    """Say whether there is work and this process may start it.

    Returns None if the index knows of no work but may be incomplete, because learning never started by itself. Later it
    starts at least as often as a consolidation is due, and each start looks at all files.
    """
    from commonplace.learning import select
    from commonplace.state import jobs, learning_starts

    terms = select.claim_terms(settings, background=True, max_claims=1, current=thread_id)
    has_memory = (settings.home / layout.FOLDER).is_dir()
    is_due = learning_starts.is_anything_due(tx, terms, jobs.this_process(host), has_memory=has_memory, now=now)
    if not is_due and not has_news:
        return False if learning_starts.has_begun(tx, terms.home) else None
    return learning_starts.begin(tx, terms.home, now=now)
