"""JSON-RPC messages without the member `jsonrpc`: parsed, told apart, answered. Pure.

A request has an id and a method, a notification only a method, a response an id with a result or an error. What is none
of these is refused: with an error where it has an id that can be answered, else it is only logged.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.surfaces import message_ids

Id = str | int
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
OVERLOADED: Final = -32001
_MOST_CHARACTERS: Final = 2_000
"""How long the message of an error may be: it can hold what a client sent."""


class RpcError(Exception):
    """The error that a request is answered with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def invalid(message: str, data: Any = None) -> RpcError:
    """Return the error for what cannot be done as it was asked."""
    return RpcError(INVALID_REQUEST, message, data)


class ClientRequest(msgspec.Struct, frozen=True):
    """A request; `params` is the JSON as it came, None where there was none."""

    id: Id
    method: str
    params: msgspec.Raw | None = None


class ClientNotification(msgspec.Struct, frozen=True):
    """A notification of the client."""

    method: str
    params: msgspec.Raw | None = None


class ClientResponse(msgspec.Struct, frozen=True):
    """The client's answer to a request of ours."""

    id: Id
    result: Any = None
    error: Any = None


class Malformed(msgspec.Struct, frozen=True):
    """What is no message; with an id it is answered."""

    problem: str
    id: Id | None = None


Message = ClientRequest | ClientNotification | ClientResponse | Malformed
_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def parse(line: bytes | str) -> Message:
    """Return the message of a line."""
    try:
        fields = _decoder.decode(line if isinstance(line, str) else line.decode())  # values that nobody reads, too
    except msgspec.ValidationError:
        return Malformed("it is no JSON object")
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        return Malformed(f"it is no JSON: {error}", message_ids.of_broken(line))
    known = _id(fields.get("id"))
    has_id = "id" in fields
    if "method" in fields:
        method = _value(fields["method"])
        if not isinstance(method, str):
            return Malformed("`method` is no text", known)
        params = fields.get("params")
        if params is not None and bytes(params).strip() == b"null":
            params = None
        if has_id and known is None:
            return Malformed("`id` is neither a text nor an integer")
        return ClientRequest(known, method, params) if known is not None else ClientNotification(method, params)
    if known is not None and ("result" in fields or "error" in fields):
        return ClientResponse(known, _value(fields.get("result")), _value(fields.get("error")))
    return Malformed("it has no method", known)


def too_long(begin: bytes, most: int) -> Malformed:
    """Return what a line is that was not kept whole, from its beginning."""
    return Malformed(f"it is longer than {most // 2**20} MB", message_ids.of_broken(begin))


def _id(raw: msgspec.Raw | None) -> Id | None:
    return message_ids.usable(_value(raw))


def _value(raw: msgspec.Raw | None) -> Any:
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def encode(message: dict[str, Any]) -> bytes:
    """Return a message as a line without its end; text that is no Unicode gets marks in place of it."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        return msgspec.json.encode(_readable(msgspec.to_builtins(message)))


def _readable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {_readable(key): _readable(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_readable(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def response(request_id: Id, result: Any) -> dict[str, Any]:
    """Return the answer to a request."""
    return {"id": request_id, "result": result}


def failure(request_id: Id, error: RpcError) -> dict[str, Any]:
    """Return the error that answers a request."""
    message = error.message
    if len(message) > _MOST_CHARACTERS:
        message = f"{message[: _MOST_CHARACTERS // 2]}…{message[-_MOST_CHARACTERS // 2 :]}"
    told: dict[str, Any] = {"code": error.code, "message": message}
    if error.data is not None:
        told["data"] = error.data
    return {"error": told, "id": request_id}
