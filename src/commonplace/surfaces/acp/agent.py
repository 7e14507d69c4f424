"""What an editor may ask of the agent: sessions, prompts, modes. A session is a thread of the library."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, get_args

import acp
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    CloseSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionModeResponse,
)

from commonplace.app.book import Book
from commonplace.app.threads import OptionChanges
from commonplace.config import Mode
from commonplace.errors import BadInput, CommonplaceError
from commonplace.surfaces.acp import prompts, updates
from commonplace.surfaces.acp.prompts import Block, Server
from commonplace.surfaces.acp.session import EditorSession, TurnProblem
from commonplace.version import __version__

SOURCE = "vscode"
"""Where threads of editors come from, in the words of session files."""


class EditorAgent:
    """The agent that one editor talks with."""

    def __init__(self, book: Book, model: str | None = None) -> None:
        self._book = book
        self._model = model
        self._name = "editor"
        self._sessions: dict[str, EditorSession] = {}
        self._editor: acp.Client | None = None

    def on_connect(self, conn: acp.Client) -> None:
        """Keep the way to the editor."""
        self._editor = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Say what is spoken here."""
        del client_capabilities
        if client_info is not None:
            self._name = client_info.name
        return InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_info=Implementation(name="commonplace", title="Commonplace", version=__version__),
            auth_methods=[],
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=False),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(), resume=SessionResumeCapabilities(), close=SessionCloseCapabilities()
                ),
            ),
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """Refuse: keys are in the environment."""
        raise acp.RequestError(-32602, f"There is no sign-in called {method_id[:100]!r}; set the variable of the key.")

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Server] | None = None,
        **_: Any,
    ) -> NewSessionResponse:
        """Begin a session."""
        async with _told():
            thread = await self._book.start(**self._options(cwd, additional_directories, mcp_servers))
        session = self._opened(thread.id, thread)
        return NewSessionResponse(session_id=thread.id, modes=session.modes())

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Server] | None = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> LoadSessionResponse:
        """Go on with a session, and show what it holds."""
        session = await self._resume(session_id, cwd, additional_directories, mcp_servers)
        async with _told():
            await session.thread.session.ledger.flush()
            path = session.thread.path
            has_turns = path is not None and path.exists()
            turns = await self._book.sessions.turns(session.thread.id) if has_turns else ()
        for turn in turns:
            for item in turn.items:
                for update in updates.stored(item):
                    await self._reach().session_update(session.id, update)
        return LoadSessionResponse(modes=session.modes())

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Server] | None = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        """Go on with a session that the editor shows already."""
        session = await self._resume(session_id, cwd, additional_directories, mcp_servers)
        return ResumeSessionResponse(modes=session.modes())

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """Return a page of sessions that can be gone on with, newest first."""
        async with _told():
            page = await self._book.sessions.list(cwd=cwd, cursor=cursor, refresh=cursor is None)
        found = [
            SessionInfo(
                session_id=row.thread_id, cwd=row.cwd, title=row.title or row.preview or None, updated_at=row.updated_at
            )
            for row in page.threads
        ]
        return ListSessionsResponse(sessions=found, next_cursor=page.next_cursor)

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Give a session up; a running turn is interrupted."""
        session = self._session(session_id)
        del self._sessions[session.id]
        async with _told():
            await self._book.release(session.thread)
        return CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Change how the agent works, from the next turn on."""
        mode: Mode | None = next((each for each in get_args(Mode) if each == mode_id), None)
        if mode is None:
            raise acp.RequestError(-32602, f"There is no mode {mode_id[:100]!r}; use {', '.join(get_args(Mode))}.")
        async with _told():
            self._session(session_id).thread.change(mode=mode)
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Block], **_: Any) -> PromptResponse:
        """Run a turn to its end."""
        session = self._session(session_id)
        async with _told():
            return await session.prompt(prompts.read(prompt))

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End the running turn; its prompt is answered."""
        session = self._sessions.get(session_id)
        if session is not None:
            await session.thread.interrupt()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Refuse: there are no methods of our own."""
        del params
        raise acp.RequestError.method_not_found(method[:200])

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignore what is not known."""

    # --- Sessions.

    def _options(self, cwd: str, more: Sequence[str] | None, servers: Sequence[Server] | None) -> OptionChanges:
        return OptionChanges(
            cwd=cwd,
            roots=tuple(more or ()),
            model=self._model,
            source=SOURCE,
            originator=self._name,
            servers=prompts.servers(servers or ()),
        )

    async def _resume(
        self, session_id: str, cwd: str, more: Sequence[str] | None, servers: Sequence[Server] | None
    ) -> EditorSession:
        if (opened := self._sessions.get(session_id)) is not None:
            return opened
        async with _told():
            thread = await self._book.resume(session_id, **self._options(cwd, more, servers))
            return self._opened(session_id, thread)

    def _opened(self, session_id: str, thread: Any) -> EditorSession:
        session = self._sessions[session_id] = EditorSession(session_id, thread, self._reach())
        return session

    def _session(self, session_id: str) -> EditorSession:
        found = self._sessions.get(session_id)
        if found is None:
            raise acp.RequestError.resource_not_found(session_id[:200])
        return found

    def _reach(self) -> acp.Client:
        assert self._editor is not None
        return self._editor


@asynccontextmanager
async def _told() -> AsyncGenerator[None]:
    """Pass errors on to the editor, with a sentence that says what to do."""
    try:
        yield
    except BadInput as error:
        raise acp.RequestError(-32602, error.sentence(), {"code": error.code}) from None
    except CommonplaceError as error:
        raise acp.RequestError(-32603, error.sentence(), {"code": error.code}) from None
    except TurnProblem as error:
        raise acp.RequestError(-32603, str(error), {"code": error.problem.code}) from None
