"""Messages of the Model Context Protocol: JSON-RPC 2.0, its versions and its errors, as values.

Whatever bytes come in, `unpack` returns messages or a refusal that can be sent back; it never raises. An id comes back
as it was sent, as long as it is one that JSON-RPC knows; otherwise the refusal carries null.

Two eras of the protocol are spoken. Until 2025-11-25 a client opens a session with `initialize`; since 2026-07-28 each
request stands alone and says in its `_meta` which version it is of (its `Envelope`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

Json: TypeAlias = dict[str, Any]
Id: TypeAlias = str | int | float | None

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions that begin with `initialize`, oldest first."""
MODERN_VERSIONS: Final = ("2026-07-28",)
"""Versions whose requests stand alone."""
BATCH_VERSIONS: Final = HANDSHAKE_VERSIONS[:2]
"""Versions that allow several messages in one array."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"

_MAX_ID_LENGTH: Final = 4096
_MAX_ID_BITS: Final = 1024
_FIELDS: Final = (b'"jsonrpc"', b'"id"', b'"method"', b'"params"', b'"result"', b'"error"')
"""The fields of a message, as they are mostly written."""
_MAX_BATCH: Final = 1000


class Fault(Exception):
    """Why a request gets an error for an answer."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class RpcRequest(msgspec.Struct, frozen=True):
    """A request, which needs an answer."""

    id: Id
    method: str
    params: Json


class Notification(msgspec.Struct, frozen=True):
    """A notification, which needs no answer."""

    method: str
    params: Json


class ClientAnswer(msgspec.Struct, frozen=True):
    """The client's answer to something that we asked; without a result if it refused."""

    id: Id
    result: Any = None
    refused: bool = False


class Refusal(msgspec.Struct, frozen=True):
    """A message that cannot be used, and the error to answer with."""

    id: Id
    code: int
    message: str


Message: TypeAlias = RpcRequest | Notification | ClientAnswer | Refusal


class Batch(msgspec.Struct, frozen=True):
    """The messages of one transmission: one message, or a JSON-RPC batch."""

    messages: tuple[Message, ...]
    is_batch: bool = False


def unpack(data: bytes) -> Batch:
    """Return the messages in some bytes; what is wrong with them comes back as a refusal."""
    try:
        value = _decoded(data)
        is_doubled = _has_doubled_field(data)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return Batch((Refusal(None, PARSE_ERROR, "This is not JSON."),))
    if is_doubled:
        return Batch((Refusal(None, INVALID_REQUEST, "A message has each field once."),))
    if not isinstance(value, list):
        return Batch((_message(value),))
    batch = cast("list[Any]", value)
    if not batch:
        return Batch((Refusal(None, INVALID_REQUEST, "A batch holds at least one message."),))
    if len(batch) > _MAX_BATCH:
        return Batch((Refusal(None, INVALID_REQUEST, f"A batch holds at most {_MAX_BATCH} messages."),))
    return Batch(tuple(_message(each) for each in batch), is_batch=True)


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        # JavaScript writes half a character as an escape, which is JSON but no text: the slower reader takes it, so
        # that the client gets an answer and does not wait for ever.
        if b"\\u" not in data:
            raise
    import json

    return _as_text(json.loads(data.decode("utf-8"), parse_constant=_no_number, parse_float=_finite))


def _has_doubled_field(data: bytes) -> bool:
    """Say whether a message has a field twice: readers differ about which of the two counts."""
    if not any(data.count(name) > 1 for name in _FIELDS):
        return False  # nearly always
    import json

    doubled: list[bool] = []

    def pairs(fields: list[tuple[str, Any]]) -> Json:
        value = dict(fields)
        if "jsonrpc" in value:  # a message, not what it carries
            doubled.append(len(value) < len(fields))
        return value

    json.loads(data.decode("utf-8", "replace"), object_pairs_hook=pairs)
    return any(doubled)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("the number is too large")
    return number


def _as_text(value: Any) -> Any:
    """Return a JSON value whose strings are text: halves of characters become U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_as_text(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_as_text(key): _as_text(each) for key, each in cast("Json", value).items()}
    return value


def _message(value: Any) -> Message:
    if not isinstance(value, dict):
        return Refusal(None, INVALID_REQUEST, "A message is a JSON object.")
    fields = cast("Json", value)
    known = _id(fields.get("id"))
    if fields.get("jsonrpc") != "2.0":
        return Refusal(known, INVALID_REQUEST, 'A message says "jsonrpc": "2.0".')
    kinds = [name for name in ("method", "result", "error") if name in fields]
    if len(kinds) != 1:
        return Refusal(known, INVALID_REQUEST, "A message has a method, or a result, or an error.")
    if kinds == ["method"]:
        return _call(fields, known)
    if "id" not in fields:
        return Refusal(known, INVALID_REQUEST, "An answer has the id of its request.")
    return ClientAnswer(known, fields.get("result"), refused=kinds == ["error"])


def _call(fields: Json, request_id: Id) -> Message:
    method, params = fields["method"], fields.get("params")
    wants_answer = "id" in fields
    if not isinstance(method, str):
        return Refusal(request_id, INVALID_REQUEST, "The method is a text.")
    if wants_answer and (request_id is None or isinstance(request_id, float)):
        return Refusal(request_id, INVALID_REQUEST, "An id is a text or a whole number.")
    if params is not None and not isinstance(params, dict):
        if not wants_answer:
            return Notification(method, {})
        return Refusal(request_id, INVALID_PARAMS, "The params are an object.")
    given = cast("Json", params or {})
    return RpcRequest(request_id, method, given) if wants_answer else Notification(method, given)


def _id(value: Any) -> Id:
    """Return an id that can be sent back, else None."""
    if isinstance(value, str):
        return value if len(value) <= _MAX_ID_LENGTH else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_ID_BITS else None
    return value if math.isfinite(value) else None


class Envelope(msgspec.Struct, frozen=True):
    """What a request that stands alone says about itself."""

    version: str
    client: str = ""
    """The client's name, if it says so."""


def envelope(params: Mapping[str, Any]) -> Envelope | None:
    """Return the envelope of a request of the modern era; None for one that has none.

    Raises:
        Fault: it has one that cannot be used.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict) or META_VERSION not in meta:
        return None
    said = cast("Json", meta)
    version = said[META_VERSION]
    if not isinstance(version, str):
        raise Fault(INVALID_PARAMS, "The protocol version is a text.")
    if META_CAPABILITIES not in said:
        raise Fault(INVALID_PARAMS, f"The _meta of a request has {META_CAPABILITIES}.")
    if not isinstance(said[META_CAPABILITIES], dict):
        raise Fault(INVALID_PARAMS, "The client's capabilities are an object.")
    if version not in MODERN_VERSIONS:
        raise Fault(
            UNSUPPORTED_VERSION,
            "This version of the protocol is not spoken here.",
            {"supported": list(MODERN_VERSIONS), "requested": version},
        )
    return Envelope(version, client_name(said.get(META_CLIENT)))


def client_name(info: Any) -> str:
    """Return the name in what a client says about itself; nothing if it says none."""
    name = cast("Json", info).get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else ""


def result(request_id: Id, value: Any) -> Json:
    """Return the answer to a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def error(request_id: Id, code: int, message: str, data: Any = None) -> Json:
    """Return the refusal of a request."""
    fault: Json = {"code": code, "message": message}
    if data is not None:
        fault["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": fault}


def encode(message: Json | list[Json]) -> bytes:
    """Return the bytes of a message or a batch, on one line; what cannot be said becomes a refusal."""
    try:
        return msgspec.json.encode(message)
    except (ValueError, TypeError, RecursionError, msgspec.MsgspecError):
        known = None if isinstance(message, list) else _id(message.get("id"))
        return msgspec.json.encode(error(known, INTERNAL_ERROR, "The answer is no text that can be sent."))
