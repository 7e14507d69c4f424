"""When a person is asked, as clients send it: a policy by its name, or which kinds of questions are asked."""

from __future__ import annotations

from commonplace.agent.turn_changes import TurnChanges
from commonplace.surfaces.app_server.connection import Connection
from commonplace.surfaces.app_server.messages import invalid
from commonplace.surfaces.app_server.params import GranularParams


def changes(client: Connection, given: str | GranularParams | None) -> TurnChanges:
    """Return the changes of a policy; none without one (raises RpcError: the client cannot use it)."""
    match given:
        case None:
            return TurnChanges()
        case GranularParams():
            if client.client is not None and not client.client.experimental:
                raise invalid("askForApproval.granular requires experimentalApi capability")
            return TurnChanges(approval="on-request", granular=given.granular)
        case "untrusted" | "on-request" | "never":
            return TurnChanges(approval=given)
        case "on-failure":
            return TurnChanges(approval="on-request")
        case _:
            raise invalid(f"unknown approval policy: {given[:100]!r}")
