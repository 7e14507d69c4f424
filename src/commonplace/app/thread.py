"""A thread with an agent, as the library and the surfaces have it: settings become a session, its events a stream.

    thread = await book.start(cwd=".", model="openai:gpt-5.4")
    async for event in thread.run("Why is the login test flaky?"):
        ...

The turn runs in a task of the book's, so it goes on while nobody reads; leaving the stream early (`aclosing`)
interrupts it. After each turn the thread's row in the index is brought up to date, which is never worth an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import anyio.to_thread
import msgspec

from commonplace.agent import events, opening
from commonplace.agent import input as inputs
from commonplace.agent.hooks import values as hooks
from commonplace.agent.input import Input
from commonplace.agent.profile import Approval, Profile, Sandbox
from commonplace.agent.session import Session
from commonplace.app.session_environment import Around, project_of
from commonplace.errors import BadInput, BadSetting, CommonplaceError
from commonplace.models import instructions
from commonplace.models.base import Model
from commonplace.models.providers import Choice, choose, connect
from commonplace.protocol import citations, external_content, items, turns
from commonplace.rollout import decisions
from commonplace.sessions.resolve import resolve

if TYPE_CHECKING:
    from commonplace.agent.approving import Decision
    from commonplace.agent.servers.values import Config
    from commonplace.app.book import Book
    from commonplace.config import Settings
    from commonplace.context.sections import Mode, Tone
    from commonplace.context.usage import TokenInfo


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """How a thread is to run; None leaves it to the settings."""

    cwd: str | Path = "."
    model: str | None = None
    speaker: Model | None = None
    """A model that is there already, such as a `ScriptedModel`; `model` then only names what is known of it."""
    roots: tuple[str | Path, ...] = ()
    sandbox: Sandbox | None = None
    approval: Approval | None = None
    effort: str | None = None
    personality: Tone | None = None
    ephemeral: bool = False
    memory: bool = True
    """Tell it what is remembered, and let it look there."""
    source: Any = "exec"
    originator: str = "commonplace"
    base: str | None = None
    """Base instructions of your own."""


_SCRIPTED: Final = "scripted:scripted"


def wish(given: Wish | None, fields: Mapping[str, Any]) -> Wish:
    """Return a wish made of another and some of its fields (raises BadInput: there is no such field)."""
    known = Wish.__struct_fields__
    if unknown := [name for name in fields if name not in known]:
        raise BadInput(f"There is nothing called {unknown[0]!r} to wish for.", hint=f"Use {', '.join(known)}.")
    return msgspec.structs.replace(given or Wish(), **fields)


async def start(book: Book, wanted: Wish) -> Thread:
    """Begin a thread."""
    profile, model = _prepared(book, wanted, None)
    around = Around(book, memory=wanted.memory)
    recording = None if wanted.ephemeral else book.recording()
    session = await opening.start(profile, model, around, book.tasks, recording)
    return Thread(book, session)


async def resume(book: Book, name: str, wanted: Wish) -> Thread:
    """Go on with a thread of ours."""
    target = await resolve(book, name, None)
    target.must_be_ours("gone on with")
    if wanted.ephemeral:
        raise BadInput("A thread that is gone on with is written to.", hint="Fork it, or leave `ephemeral` out.")
    found = await anyio.to_thread.run_sync(opening.look, target.path, [book.home])
    profile, model = _prepared(book, wanted, found.base)
    around = Around(book, memory=wanted.memory)
    session = await opening.resume(found, profile, model, around, book.tasks, book.recording())
    if any(external_content.source(entry.view) == "unasked" for entry in session.history.entries):
        around.external(session.thread_id)
    return Thread(book, session)


async def check(book: Book, wanted: Wish) -> None:
    """Say now if a thread could not run like this, before anything is written for it.

    Raises:
        BadInput, BadSetting: the folder or the model cannot be used.
    """
    _, model = _prepared(book, wanted, None)
    await model.aclose()


def _prepared(book: Book, wanted: Wish, base: str | None) -> tuple[Profile, Model]:
    settings = book.settings
    cwd = Path(wanted.cwd).expanduser().absolute()
    if not cwd.is_dir():
        raise BadInput(f"There is no folder {cwd}.", hint="Give the folder to work in.")
    choice = _choice(settings, wanted)
    model = wanted.speaker or connect(choice, environment(book.environment))
    at = settings["compaction.at_tokens"]
    profile = Profile(
        cwd=cwd,
        home=book.home,
        choice=choice,
        base=wanted.base or base or instructions(choice.info, wanted.personality or settings["personality"]),
        roots=tuple(Path(root).expanduser().absolute() for root in wanted.roots),
        approval=wanted.approval or settings["approval"],
        sandbox=wanted.sandbox or settings["sandbox"],
        effort=wanted.effort or settings["effort"],
        personality=wanted.personality or settings["personality"],
        source=wanted.source,
        originator=wanted.originator,
        memory_mode="enabled" if settings["memory.generate"] else "disabled",
        compact_at=at or None,
        target_percent=settings["compaction.target_percent"],
        digest_tokens=settings["compaction.digest_tokens"],
        remote_compaction=settings["compaction.remote"],
        timezone=_timezone(book.environment),
        withheld=_keys(settings, choice),
        network=settings["sandbox_network"],
        allowed=tuple(decisions.allowed(book.home, project_of(cwd))),
        hooks=hooks.configured(settings.hooks),
        servers=_servers(book),
        undo=settings["undo"],
        web_search=settings["web_search"],
    )
    return profile, model


def _servers(book: Book) -> tuple[Config, ...]:
    """Return the servers whose tools may be called (raises BadSetting)."""
    if not book.settings.mcp_servers:
        return ()
    from commonplace.agent.servers.values import configured

    found = configured(book.settings.mcp_servers)
    for note in found.notes:
        book.warn(note)
    return found.servers


def _choice(settings: Settings, wanted: Wish) -> Choice:
    if wanted.speaker is None:
        return choose(settings, wanted.model)
    try:
        return choose(settings, wanted.model or _SCRIPTED)
    except BadSetting:
        from commonplace.models import catalog
        from commonplace.models.providers import Provider

        slug = wanted.model or _SCRIPTED
        who, _, rest = slug.partition(":")
        return Choice(who, Provider(api="responses", base_url="http://127.0.0.1/v1"), rest or who, catalog.known(slug))


def environment(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables with the key that Codex's SDKs hand over, where ours is not set."""
    key = given.get("CODEX_API_KEY")
    return {**given, "OPENAI_API_KEY": key} if key and not given.get("OPENAI_API_KEY") else given


def _keys(settings: Settings, choice: Choice) -> tuple[str, ...]:
    """Return the variables that hold keys, of all providers."""
    rows = [cast("dict[str, Any]", row) for row in settings.providers.values() if isinstance(row, dict)]
    named = [row.get("api_key_env") for row in rows]
    found = [name for name in (*named, choice.provider.api_key_env, "CODEX_API_KEY") if isinstance(name, str)]
    return tuple(dict.fromkeys(found))


def _timezone(environment: Mapping[str, str]) -> str:
    """Return the name of the local time zone, as far as the system tells it."""
    if name := environment.get("TZ", "").lstrip(":"):
        return name
    try:
        target = str(Path("/etc/localtime").readlink())
    except OSError:
        return "Etc/UTC"
    return target.partition("zoneinfo/")[2] or "Etc/UTC"


class Thread:
    """One thread with an agent."""

    def __init__(self, book: Book, session: Session) -> None:
        self._book = book
        self._closed = False
        self._next: Profile | None = None
        self._speaker: Model | None = None
        """The model of the next turn, where it is another one."""
        self.session = session
        book.background.attend(session)

    @property
    def profile(self) -> Profile:
        """How the next turn runs."""
        return self._next or self.session.profile

    @property
    def usage(self) -> TokenInfo | None:
        """The tokens that were used; None before the first answer."""
        return self.session.history.info

    @property
    def id(self) -> str:
        """The thread's id."""
        return self.session.thread_id

    @property
    def path(self) -> Path | None:
        """Its file; None if it leaves none."""
        return self.session.recorder.path if self.session.recorder is not None else None

    def listen(self, listener: Callable[[events.Event], None]) -> Callable[[], None]:
        """Have every event passed to a function; return what ends that."""
        return self.session.listen(listener)

    async def turn(self, given: str | Input, *, schema: Mapping[str, Any] | None = None) -> events.End:
        """Run a turn to its end, in this task; return how it ended.

        Raises:
            BadInput: a turn is running, or the input cannot be used.
        """
        wanted = inputs.text(given, schema=schema) if isinstance(given, str) else given
        end = await self.session.run(wanted, await self._changed())
        await self._mirror()
        return end

    def change(self, *, model: str | None = None, mode: Mode | None = None) -> None:
        """Take another model, or another way of working, from the next turn on (raises BadSetting)."""
        profile = self.profile
        if model is not None:
            choice = choose(self._book.settings, model)
            self._speaker = connect(choice, environment(self._book.environment))
            withheld = (*profile.withheld, *_keys(self._book.settings, choice))
            profile = msgspec.structs.replace(profile, choice=choice, withheld=tuple(dict.fromkeys(withheld)))
        self._next = msgspec.structs.replace(profile, mode=mode or profile.mode)

    async def _changed(self) -> Profile | None:
        """Return the profile that the next turn begins with, if it is another one; its model takes over."""
        if self._next is None or self.session.turn is not None:
            return None
        profile, self._next = self._next, None
        if self._speaker is not None:
            before, self.session.model, self._speaker = self.session.model, self._speaker, None
            await before.aclose()
        return profile

    async def run(self, given: str | Input, *, schema: Mapping[str, Any] | None = None) -> AsyncGenerator[events.Event]:
        """Run a turn and yield its events, the last of which tells how it ended.

        Raises:
            BadInput: a turn is running, or the input cannot be used.
        """
        wanted = inputs.text(given, schema=schema) if isinstance(given, str) else given
        send, receive = anyio.create_memory_object_stream[events.Event](max_buffer_size=float("inf"))
        failed: list[CommonplaceError] = []
        running = left = False

        def hear(event: events.Event) -> None:
            with contextlib.suppress(anyio.BrokenResourceError):  # nobody reads any more; the turn goes to its end
                send.send_nowait(event)

        async def work() -> None:
            nonlocal running
            if left:
                return
            running = True
            stop = self.session.listen(hear)
            try:
                await self.turn(wanted)
            except CommonplaceError as error:
                failed.append(error)
            finally:
                running = False
                stop()
                send.close()

        self._book.tasks.start_soon(work)
        try:
            async for event in receive:
                yield event
        finally:
            left = True
            receive.close()
            if running:
                with anyio.CancelScope(shield=True):
                    await self.session.interrupt()
        if failed:
            raise failed[0]

    def steer(self, words: str) -> None:
        """Say something to the running turn; it is told before the next request (raises BadInput: none is running)."""
        self.session.steer(inputs.text(words))

    def queue(self, words: str) -> None:
        """Say something that is answered in a turn of its own, after the present one."""
        self.session.queue(inputs.text(words))

    async def interrupt(self) -> None:
        """End the running turn; what was said and done until then is recorded."""
        await self.session.interrupt()

    async def compact(self) -> events.End:
        """Shorten what the next request carries; the ledger keeps everything."""
        return await self.session.compact()

    async def roll_back(self, turns: int = 1) -> None:
        """Take back the last turns; the ledger keeps them."""
        await self.session.roll_back(turns)

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer a question that the running turn asked (raises BadInput: nobody asks it)."""
        self.session.decide(request_id, decision)

    async def undo(self, *, redo: bool = False) -> dict[str, Any]:
        """Put the files back as they were before the last turn that changed some, or forward again.

        Raises:
            BadInput: a turn is running, or there is nothing to undo.
            UndoError: the snapshot is gone, or cannot be restored.
        """
        from commonplace.agent.undo import undo_turn

        return await undo_turn.undo_open(self._book, self.session, redo=redo)

    @property
    def memory_mode(self) -> str:
        """Whether memory learns from the thread: `enabled` or `disabled`."""
        return decisions.modes(self._book.home).get(self.id, self.session.profile.memory_mode)

    async def set_memory(self, mode: str) -> None:
        """Decide whether memory learns from the thread (raises BadInput)."""
        if self.session.recorder is not None:
            await self.session.recorder.persist()
            await self._book.memory.set_mode(self.id, mode)

    def last_words(self) -> tuple[str, str]:
        """Return what the person said last, and what the model said to it; empty where the history has none."""
        answer = ""
        for entry in reversed(self.session.history.entries):
            view = entry.view
            if not isinstance(view, items.Message):
                continue
            text = "\n".join(part.text for part in view.content if part.text)
            if turns.is_boundary(view):
                return text, answer
            if view.role == "assistant" and not answer:
                answer = citations.strip(text)[0]
        return "", ""

    async def close(self) -> None:
        """End it: a running turn is interrupted, what it started is ended, everything is written."""
        if not self._closed:
            self._closed = True
            if self._speaker is not None:
                await self._speaker.aclose()
            await self.session.close()

    async def _mirror(self) -> None:
        """Bring the thread's row in the index up to date; if that fails, the next listing finds it."""
        if self.path is not None:
            try:
                await (await self._book.index()).touch(self._book.home, self.path)
            except (CommonplaceError, OSError) as error:
                self._book.warn(f"The index was not brought up to date: {error}")
