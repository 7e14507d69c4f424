"""One tool of a server, as the session runs it: it asks for consent, calls the server, and cuts the result to size.

A server's claim that a tool only reads is believed as far as consent goes. Every result is `external`.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Protocol, cast

import msgspec

from commonplace.agent.servers import results
from commonplace.agent.servers.connection_state import CallFailed
from commonplace.agent.servers.results import CallResult
from commonplace.agent.servers.tool_list import ListedTool
from commonplace.agent.tools import arguments
from commonplace.agent.tools.registry import Action, ToolContext, ToolDefinition, ToolInvocation, ToolOutput, failed

WORD: Final = "mcp"
"""The first word of a call where it is treated like a command: a server named `cat` is not the harmless program."""
MOST_ASKED: Final = 2_000
"""Characters of the arguments that a person is shown with the question."""


class Callee(Protocol):
    """A server that answers calls."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallResult:
        """Call a tool (raises CallFailed)."""
        ...


class ServerTool:
    """A tool that a server runs."""

    aliases: tuple[str, ...] = ()
    asks = True
    external = True
    """Its results are written elsewhere; a session records that before the call runs."""

    def __init__(self, callee: Callee, server: str, listed: ListedTool) -> None:
        self._callee = callee
        self.server = server
        self.listed = listed

    @property
    def definition(self) -> ToolDefinition:
        """The tool as it is offered."""
        return self.listed.definition

    @property
    def parallel(self) -> bool:
        """A tool that only reads may run beside others."""
        return self.listed.read_only

    @property
    def mutates(self) -> bool:
        """A tool that does not claim to only read may change anything."""
        return not self.listed.read_only

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Ask for consent, then call the server."""
        given = _arguments(call.arguments)
        refused = await context.approve(self._action(call, context, given))
        if refused is not None:
            return failed(f"{self.definition.key} was not called: {refused}")
        begin = context.now()
        try:
            result = await self._callee.call(self.listed.name, given)
        except CallFailed as error:
            return results.failure(str(error), max(context.now() - begin, 0.0))
        return results.output(result, max(context.now() - begin, 0.0), context.policy)

    def _action(self, call: ToolInvocation, context: ToolContext, given: dict[str, Any]) -> Action:
        shown = msgspec.json.encode(given).decode()
        if len(shown) > MOST_ASKED:  # the hash: two calls that begin alike must not count as the same
            shown = f"{shown[:MOST_ASKED]}… (sha256 {hashlib.sha256(shown.encode()).hexdigest()})"
        return Action(
            call_id=call.id,
            kind="call",
            cwd=context.cwd,
            command=(WORD, self.server, self.listed.name, shown),
            arguments=given,
            read_only=self.listed.read_only,
        )


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments that the model wrote (raises ToolError: they are no JSON object)."""
    try:
        given: Any = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise arguments.bad_arguments(f"the arguments are no JSON: {error}") from None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise arguments.bad_arguments("the arguments must be a JSON object")
    return cast("dict[str, Any]", given)
