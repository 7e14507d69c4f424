"""From a request to the method that works on it: handshake, capabilities, params."""

from __future__ import annotations

import platform
import sys
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from commonplace.config import sources
from commonplace.patterns import regex
from commonplace.surfaces.app_server.calls import RpcMethod
from commonplace.surfaces.app_server.connection import ConnectedClient, Connection, Reply, thread_of
from commonplace.surfaces.app_server.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    ClientRequest,
    RpcError,
    invalid,
)
from commonplace.surfaces.app_server.methods import METHODS
from commonplace.surfaces.app_server.params import InitializeParams
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.app_server.shapes import InitializeResult
from commonplace.version import __version__

PROTOCOL: Final = "0.166.0"
"""The version of Codex whose protocol is spoken; clients decide by it what they may ask for."""
_HEADER: Final = regex(r"[\t\x20-\x7e]++")


class Dispatcher:
    """Finds what works on a request of a client."""

    def __init__(self, server: AppServer) -> None:
        self._server = server

    def prepare(self, client: Connection, request: ClientRequest) -> Callable[[], Awaitable[Reply]]:
        """Return what works on a request (raises RpcError: it cannot be worked on)."""
        if request.method == "initialize":
            result = self._initialize(client, _decode(request, InitializeParams))

            async def answer() -> Reply:
                return Reply(result, lambda: self._tell_state(client))

            return answer
        if client.client is None:
            raise invalid("Not initialized")
        method = METHODS.get(request.method)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method[:200]}")
        if not client.client.experimental:
            _refuse_experimental(request, method.call)
        params = _decode(request, method.call.params)
        run = method.run(self._server, params)

        async def work() -> Reply:
            async with self._server.turnstile(thread_of(request)):
                return await run(self._server, client, params)

        return work

    def gone(self, client: Connection) -> None:
        """Note that a client went away."""
        self._server.gone(client)

    def _tell_state(self, client: Connection) -> None:
        """Tell a new client what of the settings means nothing, and that nobody controls this server from afar."""
        settings = self._server.book.settings
        for note in sources.notes(settings):
            told = {"summary": note, "details": None, "path": str(settings.home / sources.FILE), "range": None}
            client.notify("configWarning", told)
        client.notify("remoteControl/status/changed", self._remote_control())

    def _remote_control(self) -> dict[str, Any]:
        """Return that nobody controls this server from afar, as Codex tells each client."""
        home = str(self._server.book.home)
        identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{platform.node()}{home}"))
        return {"status": "disabled", "serverName": platform.node(), "installationId": identity, "environmentId": None}

    def _initialize(self, client: Connection, wanted: InitializeParams) -> InitializeResult:
        if client.client is not None:
            raise invalid("Already initialized")
        info, capabilities = wanted.client_info, wanted.capabilities
        if _HEADER.fullmatch(info.name) is None:
            raise invalid(f"Invalid clientInfo.name: {info.name[:100]!r} cannot be sent as a header")
        client.client = ConnectedClient(
            info.name,
            info.version,
            info.title,
            experimental=capabilities is not None and capabilities.experimental_api,
            muted=frozenset((capabilities.opt_out_notification_methods if capabilities else None) or ()),
        )
        self._server.came(client)
        system = f"{platform.system()} {platform.release()}; {platform.machine()}"
        return InitializeResult(
            user_agent=f"{info.name}/{PROTOCOL} ({system}) commonplace/{__version__} ({info.name}; {info.version})",
            codex_home=str(self._server.book.home),
            platform_family="windows" if sys.platform == "win32" else "unix",
            platform_os={"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux"),
        )


def _decode(request: ClientRequest, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(request.params if request.params is not None else b"{}", type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params for {request.method}: {error}") from None


def _refuse_experimental(request: ClientRequest, call: RpcMethod[Any, Any]) -> None:
    """Refuse what a client did not say that it understands (raises RpcError)."""
    if call.experimental:
        raise invalid(f"{request.method} requires experimentalApi capability")
    if not call.experimental_fields or request.params is None:
        return
    try:
        fields = msgspec.json.decode(request.params, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return  # told when the params are decoded
    for name in call.experimental_fields:
        if name in fields and bytes(fields[name]).strip() != b"null":
            raise invalid(f"{request.method}.{name} requires experimentalApi capability")
