"""A session on a stage: a scripted model, a clock, a listener, and what must hold of every scene.

    async with stage(tmp_path, answer(call("shell", {"command": "ls"}, "c1")), answer(say("Done."))) as here:
        end = await here.run("Look around.")

Whatever a test looks at, some things are looked at in every scene: each request is well formed; what a listener is told
of an item is recorded before; every item that began is completed in its turn; a turn has exactly one end, for listeners
and in the ledger; the ledger has no gap; and what the file says is what the session holds.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import msgspec
from session_invariants import (
    LEDGER_ENDS,
    Json,
    ledger,
    left_open,
    prompt_of,
    recorded_wrongly,
    told_wrongly,
    well_formed,
)

from commonplace.agent import events, open_session, stored_thread, user_input
from commonplace.agent.profile import Profile
from commonplace.agent.session import Session
from commonplace.agent.session_environment import IsolatedEnvironment
from commonplace.agent.tools.registry import Tool, ToolContext, ToolDefinition, ToolInvocation, ToolOutput
from commonplace.agent.turn import run_compaction, run_turn
from commonplace.agent.user_input import UserInput
from commonplace.errors import ModelError
from commonplace.models.base import Event, Request, TextDelta, Usage
from commonplace.models.catalog import ModelInfo
from commonplace.models.providers import Choice, Provider
from commonplace.models.retries import RetryPolicy
from commonplace.models.scripted import ScriptedModel, Step
from commonplace.rollout.recorder import RecorderOptions

BASE = "You are the scripted agent."
ENDS = (events.TurnCompleted, events.TurnFailed, events.TurnAborted)


class Model(ScriptedModel):
    """A scripted model that takes no request that a provider would refuse."""

    def __init__(self, *steps: Step) -> None:
        super().__init__(*steps)
        self.stalls: type[Any] | None = None
        """After an event of this kind an answer says nothing more and does not end; for one answer."""
        self.cuts: ModelError | None = None
        """After the first piece of a text the connection is lost; for one answer."""

    async def __aenter__(self) -> Model:
        return self

    def instead(self, *steps: Step) -> None:
        """Put other steps in place of those that are left."""
        self._steps[:] = steps

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        if problems := well_formed(request.input):
            self._fail(f"request {len(self.requests) + 1} is not well formed: {problems}")
        (stalls, self.stalls), (cuts, self.cuts) = (self.stalls, None), (self.cuts, None)
        async for event in super().stream(request):
            yield event
            if stalls is not None and isinstance(event, stalls):
                await anyio.sleep_forever()
            if cuts is not None and isinstance(event, TextDelta):
                raise cuts


# --- The stage


class Clock:
    """A time that stands still until a test moves it; ids still differ, by their random part."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
        self.seconds = 0.0

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        self.seconds += 0.25
        return self.seconds

    def pass_days(self, days: int) -> None:
        self.moment += timedelta(days=days)


class Doing:
    """A tool made of a function."""

    aliases: tuple[str, ...] = ()
    mutates = False

    def __init__(
        self,
        name: str,
        act: Callable[[ToolInvocation, ToolContext], Awaitable[ToolOutput | str]],
        *,
        parallel: bool = True,
        namespace: str | None = None,
        custom: bool = False,
    ) -> None:
        self._act = act
        self.parallel = parallel
        self.definition = ToolDefinition(name, "custom" if custom else "function", name, {"type": "object"}, namespace)

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        done = await self._act(call, context)
        return done if isinstance(done, ToolOutput) else ToolOutput(content=done)


def info(window: int = 100_000, modalities: tuple[str, ...] = ("text", "image")) -> ModelInfo:
    return ModelInfo(window=window, max_output=4_000, modalities=modalities)


def choice(slug: str = "scripted-1", **more: Any) -> Choice:
    return Choice("scripted", Provider(api="responses", base_url="http://127.0.0.1/v1"), slug, info(**more))


def used(total: int) -> Usage:
    return Usage(input=total - 10, output=10, total=total)


class Stage:
    """One thread, played."""

    def __init__(self, root: Path, tasks: anyio.abc.TaskGroup, model: Model, **settings: Any) -> None:
        self.home = root / "home"
        self.cwd = root / "project"
        self.cwd.mkdir(exist_ok=True)
        self.tasks = tasks
        self.model = model
        self.clock: Clock = settings.pop("clock", None) or Clock()
        self.tools: Sequence[Tool] | None = settings.pop("tools", None)
        self.environment: IsolatedEnvironment = settings.pop("environment", None) or IsolatedEnvironment(
            {"PATH": "/usr/bin:/bin"}, self.clock.now, self.clock.monotonic
        )
        write = settings.pop("write", None)
        self.options = RecorderOptions(self.home, self.clock.now, "never", **({"write": write} if write else {}))
        self.ephemeral: bool = settings.pop("ephemeral", False)
        usual = Profile(
            cwd=self.cwd,
            home=self.home,
            choice=choice(),
            base=BASE,
            sandbox="danger-full-access",
            pace=RetryPolicy(sleep=self._sleep),
        )
        self.profile = msgspec.structs.replace(usual, **settings)
        self.events: list[events.Event] = []
        self.listeners: list[Callable[[events.Event], None]] = []
        self.session: Session
        self.slept: list[float] = []
        self._recorded: list[Json] = []

    async def start(self) -> None:
        recording = None if self.ephemeral else self.options
        self._use(
            await open_session.start(
                self.profile, self.model, self.environment, self.tasks, recording, tools=self.tools
            )
        )

    async def resume(self, path: Path | None = None) -> None:
        """End the session and go on with its thread (or another) from the file."""
        target = path or self.path
        await self.session.close()
        found = stored_thread.read(target, [self.home])
        self._use(
            await open_session.resume(
                found, self.profile, self.model, self.environment, self.tasks, self.options, tools=self.tools
            )
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def _use(self, session: Session) -> None:
        self.session = session
        session.listen(self._hear)
        self._recorded = []
        if session.ledger.recorder is not None:
            real = session.ledger.recorder.record

            def record(line_type: str, payload: Any, metadata: Any = None) -> None:
                self._recorded.append(msgspec.json.decode(msgspec.json.encode(payload)))
                real(line_type, payload, metadata)

            session.ledger.recorder.record = record

    def _hear(self, event: events.Event) -> None:
        self.events.append(event)
        if self.session.ledger.recorder is not None:
            if isinstance(event, events.ItemCompleted):
                assert any(each.get("item", {}).get("id") == event.item.id for each in self._recorded), event
            if isinstance(event, ENDS):
                ended = [each for each in self._recorded if each.get("type") in LEDGER_ENDS]
                assert ended[-1]["turn_id"] == event.turn_id
        for listener in [*self.listeners]:
            listener(event)

    @property
    def path(self) -> Path:
        assert self.session.ledger.recorder is not None
        return self.session.ledger.recorder.path

    @property
    def requests(self) -> list[Request]:
        return self.model.requests

    async def run(self, words: str | UserInput, profile: Profile | None = None) -> events.End:
        given = user_input.text(words) if isinstance(words, str) else words
        return await run_turn(self.session, given, profile)

    async def compact(self) -> events.End:
        return await run_compaction(self.session)

    def lines(self) -> list[Json]:
        return ledger(self.path)

    def items(self, at: int = -1) -> list[Json]:
        """Return the input of a request."""
        return [msgspec.json.decode(raw) for raw in self.requests[at].input]

    def outputs(self, at: int = -1) -> dict[str, str]:
        """Return what a request says of each call."""
        return {each["call_id"]: each["output"] for each in self.items(at) if each["type"].endswith("_output")}

    def texts(self, at: int = -1) -> list[str]:
        """Return the texts of a request's messages, part by part."""
        parts: list[Json] = [part for item in self.items(at) for part in item.get("content") or ()]
        return [part.get("text", "") for part in parts]

    def said(self, at: int = -1) -> list[str]:
        """Return the texts of a request that a person or the model said, or that tell of a stop or a summary."""
        return [text for text in self.texts(at) if not text.startswith(("<perm", "<env", "<token", "# AGENTS"))]

    def completed(self) -> list[events.Item]:
        return [event.item for event in self.events if isinstance(event, events.ItemCompleted)]

    async def until(self, kind: type[events.Event], count: int = 1) -> None:
        """Return when so many events of a kind were told since this was asked."""
        seen = anyio.Event()
        left = count

        def listen(event: events.Event) -> None:
            nonlocal left
            left -= isinstance(event, kind)
            if left <= 0:
                seen.set()

        self.listeners.append(listen)
        await seen.wait()
        self.listeners.remove(listen)

    async def check(self) -> None:
        """Fail if something does not hold that must hold in every scene."""
        assert not (problems := told_wrongly(self.events)), problems
        assert self.session.turn is None
        if self.session.ledger.recorder is None:
            return
        await self.session.ledger.flush()
        if self.path.exists():
            assert not (problems := recorded_wrongly(self.path)), problems
            held, kept = self.session.history.for_prompt(), prompt_of(self.path, self.home)
            assert held == kept, f"{len(held)} items are held, {len(kept)} are in the file"


@asynccontextmanager
async def stage(root: Path, *steps: Step, check: bool = True, **settings: Any) -> AsyncGenerator[Stage]:
    """Open a session; `settings` are the profile's, and `tools`, `environment`, `write`, `ephemeral`, `clock`."""
    problem: Exception | None = None
    async with anyio.create_task_group() as tasks:
        here = Stage(root, tasks, Model(*steps), **settings)
        await here.start()
        try:
            yield here
            if check:
                await here.check()
            here.model.check()
        except Exception as error:  # raised again below: the group would wrap it
            problem = error
        finally:
            with anyio.CancelScope(shield=True):
                await here.session.close()
            tasks.cancel_scope.cancel()
            problem = problem or (AssertionError(left) if (left := left_open(here.events)) else None)
    if problem is not None:
        raise problem
