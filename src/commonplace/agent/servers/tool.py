"""One tool of a server, as the session runs it: asked for consent, called in bounded time, its answer cut to size.

What its server says of a tool, that it only reads, is believed as far as not asking about it goes. Everything that it
gives is `external`.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Protocol, cast

import msgspec

from commonplace.agent.servers import results
from commonplace.agent.servers.life import CallFailed
from commonplace.agent.servers.offered import Listed
from commonplace.agent.servers.results import Answer, Called
from commonplace.agent.tools import arguments
from commonplace.agent.tools.registry import Action, Call, Context, Definition, Output, failed

WORD: Final = "mcp"
"""How a call begins where it stands as a command: a server named `cat` must not be taken for the harmless program."""
MOST_ASKED: Final = 2_000
"""Characters of the arguments that a person is shown with the question."""


class Callee(Protocol):
    """What answers calls: a server."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool (raises CallFailed)."""
        ...


class ServerTool:
    """A tool that a server runs."""

    aliases: tuple[str, ...] = ()
    asks = True
    external = True
    """What it gives was written elsewhere; a session notes that before anything is learned from it."""

    def __init__(self, callee: Callee, server: str, listed: Listed) -> None:
        self._callee = callee
        self.server = server
        self.listed = listed

    @property
    def definition(self) -> Definition:
        """How it is offered."""
        return self.listed.definition

    @property
    def parallel(self) -> bool:
        """What changes nothing may run beside others."""
        return self.listed.read_only

    @property
    def mutates(self) -> bool:
        """What does not say that it only reads may change anything."""
        return not self.listed.read_only

    async def run(self, call: Call, context: Context) -> Output:
        """Call it on its server."""
        called = Called(self.server, self.listed.name, _arguments(call.arguments), self.listed.read_only)
        refused = await context.approve(self._action(call, context, called))
        if refused is not None:
            return failed(f"{self.definition.key} was not called: {refused}")
        begin = context.now()
        try:
            answer = await self._callee.call(called.tool, called.arguments)
        except CallFailed as error:
            return results.failure(called, str(error), max(context.now() - begin, 0.0))
        return results.output(called, answer, max(context.now() - begin, 0.0), context.policy)

    def _action(self, call: Call, context: Context, called: Called) -> Action:
        shown = msgspec.json.encode(called.arguments).decode()
        if len(shown) > MOST_ASKED:  # the hash: what is allowed once must not be taken for something with the same head
            shown = f"{shown[:MOST_ASKED]}… (sha256 {hashlib.sha256(shown.encode()).hexdigest()})"
        return Action(
            call_id=call.id,
            tool=self.definition.key,
            kind="call",
            cwd=context.cwd,
            command=(WORD, called.server, called.tool, shown),
            arguments=called.arguments,
            read_only=called.read_only,
        )


def _arguments(text: str) -> dict[str, Any]:
    """Return what the model wrote as arguments (raises ToolError: it is no JSON object)."""
    try:
        given: Any = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise arguments.bad(f"the arguments are no JSON: {error}") from None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise arguments.bad("the arguments must be a JSON object")
    return cast("dict[str, Any]", given)
