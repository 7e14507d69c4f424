"""Signing in: a key that a client hands over, for as long as this server runs. There are no accounts here.

The key serves threads that are opened afterwards with a provider that takes `OPENAI_API_KEY`. It is written nowhere,
and commands of agents do not see it.
"""

from __future__ import annotations

from typing import Final

from commonplace.errors import BadSetting
from commonplace.models.providers import HANDED_KEY, OPENAI_KEY, choose, key_environment
from commonplace.protocol.ids import is_uuid
from commonplace.surfaces.app_server.connection import Connection, Reply
from commonplace.surfaces.app_server.messages import invalid
from commonplace.surfaces.app_server.params import AccountReadParams, LoginCancelParams, LoginParams, NoParams
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.app_server.shapes import (
    AccountReadResult,
    ApiKeyAccount,
    Empty,
    LoginCancelResult,
    LoginResult,
)

_NO_ACCOUNTS: Final = "there are no accounts here; sign in with an API key, or set the provider's variable"


async def read(server: AppServer, client: Connection, params: AccountReadParams) -> Reply:
    """Say whether the person's model needs a key of OpenAI, and whether there is one."""
    del client, params
    try:
        needed = choose(server.book.settings, server.model).provider.api_key_env == OPENAI_KEY
    except BadSetting:
        needed = False
    has_key = bool(key_environment(server.book.state.environment).get(OPENAI_KEY))
    account = ApiKeyAccount() if needed and has_key else None
    return Reply(AccountReadResult(account=account, requires_openai_auth=needed))


async def login(server: AppServer, client: Connection, params: LoginParams) -> Reply:
    """Take a key for the rest of this run."""
    del client
    if params.type != "apiKey":
        raise invalid(f"{params.type} is not supported: {_NO_ACCOUNTS}")
    key = (params.api_key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key or not key:
        raise invalid("apiKey holds something that is no key; copy it again, on one line")
    home = server.book.state
    server.first_environment = server.first_environment or home.environment
    kept = {name: value for name, value in server.first_environment.items() if name != OPENAI_KEY}
    home.use_variables({**kept, HANDED_KEY: key})

    def then() -> None:
        server.broadcast("account/login/completed", {"loginId": None, "success": True, "error": None})
        server.broadcast("account/updated", {"authMode": "apikey", "planType": None})

    return Reply(LoginResult(), then)


async def cancel_login(server: AppServer, client: Connection, params: LoginCancelParams) -> Reply:
    """Say that no sign-in of this id is going on; one with a key is over at once."""
    del server, client
    if not is_uuid(params.login_id.lower()):
        raise invalid(f"invalid login id: {params.login_id[:100]}")
    return Reply(LoginCancelResult())


async def logout(server: AppServer, client: Connection, params: NoParams) -> Reply:
    """Forget the key that a client handed over; the environment's own counts again."""
    del client, params
    if server.first_environment is not None:
        server.book.state.use_variables(server.first_environment)
        server.first_environment = None
    told = {"authMode": None, "planType": None}
    return Reply(Empty(), lambda: server.broadcast("account/updated", told))
