"""From settings and options to an agent's session: which model, where, what it may do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypedDict, get_args

import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from commonplace.agent import agent_identity, open_session, stored_thread
from commonplace.agent.folder_trust import trust_of
from commonplace.agent.hooks import config as hooks
from commonplace.agent.profile import Profile
from commonplace.agent.servers.config import ServerConfig, configured
from commonplace.agent.session import Session
from commonplace.agent.stored_thread import StoredThread
from commonplace.app.session_environment import HomeEnvironment
from commonplace.config import Approval, Mode, Sandbox, Settings, Tone
from commonplace.context.instructions import InstructionSettings
from commonplace.errors import BadInput, BadSetting
from commonplace.memory.store import MemoryStore
from commonplace.models import catalog, instructions
from commonplace.models.base import Model
from commonplace.models.providers import Choice, Provider, choose, connect, key_environment, key_variables
from commonplace.protocol import external_content
from commonplace.rollout import decisions
from commonplace.rollout.store import stubs
from commonplace.sessions import fork
from commonplace.sessions.resolve import resolve
from commonplace.state.home import Home


class ThreadOptions(msgspec.Struct, frozen=True, kw_only=True):
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
    mode: Mode | None = None
    """How the agent works; a thread that is gone on with keeps its own unless one is given."""
    ephemeral: bool = False
    memory: bool = True
    """Tell it what is remembered, and let it look there."""
    source: Any = "exec"
    thread_source: str = "user"
    """What started the thread, as its first line names it."""
    originator: str = "commonplace"
    base: str | None = None
    """Base instructions of your own."""
    developer: str | None = None
    """Instructions of your own besides the base instructions."""
    servers: Mapping[str, Mapping[str, Any]] = {}
    """MCP servers besides those of the settings, as `[mcp_servers.NAME]` describes them."""


class OptionChanges(TypedDict, total=False):
    """The fields of `ThreadOptions`, as keyword arguments."""

    cwd: str | Path
    model: str | None
    speaker: Model | None
    roots: tuple[str | Path, ...]
    sandbox: Sandbox | None
    approval: Approval | None
    effort: str | None
    personality: Tone | None
    mode: Mode | None
    ephemeral: bool
    memory: bool
    source: Any
    thread_source: str
    originator: str
    base: str | None
    developer: str | None
    servers: Mapping[str, Mapping[str, Any]]


_SCRIPTED: Final = "scripted:scripted"
"""The model that a `speaker` without a name stands for."""


def options(start_options: ThreadOptions | None, changes: OptionChanges) -> ThreadOptions:
    """Return options with some of their fields changed (raises BadInput: there is no such field)."""
    known = ThreadOptions.__struct_fields__
    if unknown := [name for name in changes if name not in known]:
        raise BadInput(f"A thread has no option {unknown[0]!r}.", hint=f"Use {', '.join(known)}.")
    return msgspec.structs.replace(start_options or ThreadOptions(), **changes)


async def start(store: MemoryStore, tasks: TaskGroup, options: ThreadOptions) -> Session:
    """Begin a thread."""
    home = store.home
    profile, model = _prepared(home, options, None)
    environment = HomeEnvironment(store, tasks, memory=options.memory)
    recording = None if options.ephemeral else home.recording()
    return await open_session.start(profile, model, environment, tasks, recording)


async def resume(store: MemoryStore, tasks: TaskGroup, name: str, options: ThreadOptions) -> Session:
    """Go on with a thread of ours; an ephemeral session goes on beside it and leaves no file.

    What another host keeps in the store is gone on with as a fork of ours: it refers to the other's lines, so nothing
    is copied, and no two hosts ever write to one file.
    """
    home = store.home
    target = await resolve(home, name, None)
    path = target.path
    if stubs.is_remote(path) and not options.ephemeral:
        path = await fork.of_other_host(home, path)
    elif not stubs.is_remote(path):
        target.must_be_ours("gone on with")
    found = await anyio.to_thread.run_sync(stored_thread.read, path, [home.path])
    profile, model = _prepared(home, options, found)
    environment = HomeEnvironment(store, tasks, memory=options.memory)
    recording = None if options.ephemeral else home.recording()
    session = await open_session.resume(found, profile, model, environment, tasks, recording)
    if any(external_content.source(entry.view) == "unasked" for entry in session.history.entries):
        environment.external(session.thread_id)
    return session


async def check(home: Home, options: ThreadOptions) -> None:
    """Say now if a thread could not run like this, before anything is written for it.

    Raises:
        BadInput, BadSetting: the folder or the model cannot be used.
    """
    _, model = _prepared(home, options, None)
    await model.aclose()


def _prepared(home: Home, options: ThreadOptions, stored: StoredThread | None) -> tuple[Profile, Model]:
    settings = home.settings
    cwd = Path(options.cwd).expanduser().absolute()
    if not cwd.is_dir():
        raise BadInput(f"There is no folder {cwd}.", hint="Give the folder to work in.")
    choice = _choice(settings, options)
    model = options.speaker or connect(choice, key_environment(home.environment))
    at = settings.compaction.at_tokens
    base = options.base or (stored.base if stored else None)
    mode, mode_words = _mode(settings, options, stored)
    agent = None if stored is None else agent_identity.of_meta(stored.ledger.meta)
    profile = Profile(
        cwd=cwd,
        home=home.path,
        choice=choice,
        base=base or instructions(choice.info, options.personality or settings.personality),
        developer=options.developer or None,
        roots=tuple(Path(root).expanduser().absolute() for root in options.roots),
        approval=options.approval or settings.approval,
        sandbox=options.sandbox or settings.sandbox,
        effort=options.effort or settings.effort,
        personality=options.personality or settings.personality,
        mode=mode,
        mode_words=mode_words,
        instructions=InstructionSettings(
            project_doc_max_bytes=settings.project_doc_max_bytes,
            project_doc_fallback_filenames=settings.project_doc_fallback_filenames,
            project_root_markers=settings.project_root_markers,
            child_agents_md=settings.child_agents_md,
        ),
        trust=trust_of(settings, cwd),
        source=options.source if agent is None else agent.source(),
        thread_source=options.thread_source if agent is None else agent_identity.THREAD_SOURCE,
        originator=options.originator,
        agent=agent,
        memory_mode="enabled" if settings.memory.generate else "disabled",
        compact_at=at or None,
        target_percent=settings.compaction.target_percent,
        digest_tokens=settings.compaction.digest_tokens,
        remote_compaction=settings.compaction.remote,
        timezone=_timezone(home.environment),
        withheld=key_variables(settings, choice),
        network=settings.sandbox_network,
        allowed=tuple(decisions.allowed_commands(home.path, str(cwd))),
        hooks=hooks.configured(settings.hooks),
        servers=_servers(home, options.servers),
        undo=settings.undo,
        web_search=settings.web_search,
    )
    return profile, model


def _mode(settings: Settings, options: ThreadOptions, stored: StoredThread | None) -> tuple[Mode, str | None]:
    """Return the mode, and a client's own words for it: as asked for now, else as the thread had it, else as set."""
    if options.mode is not None:
        if options.mode not in get_args(Mode):
            raise BadInput(f"{options.mode!r} is no mode.", hint=f"Use {', '.join(get_args(Mode))}.")
        return options.mode, None
    kept = None if stored is None or settings.sources.get("mode") == "flag" else stored.mode
    return kept or (settings.mode, None)


def _servers(home: Home, more: Mapping[str, Mapping[str, Any]]) -> tuple[ServerConfig, ...]:
    """Return the servers whose tools may be called (raises BadSetting)."""
    if not home.settings.mcp_servers and not more:
        return ()
    found = configured({**home.settings.mcp_servers, **more})
    for note in found.notes:
        home.warn(note)
    return found.servers


def _choice(settings: Settings, options: ThreadOptions) -> Choice:
    if options.speaker is None:
        return choose(settings, options.model)
    try:
        return choose(settings, options.model or _SCRIPTED)
    except BadSetting:
        slug = options.model or _SCRIPTED
        who, _, rest = slug.partition(":")
        return Choice(
            who, Provider(api="responses", base_url="http://127.0.0.1/v1"), rest or who, catalog.model_info(slug)
        )


def _timezone(environment: Mapping[str, str]) -> str:
    """Return the name of the local time zone, as far as the system tells it."""
    if name := environment.get("TZ", "").lstrip(":"):
        return name
    try:
        target = str(Path("/etc/localtime").readlink())
    except OSError:
        return "Etc/UTC"
    return target.partition("zoneinfo/")[2] or "Etc/UTC"
