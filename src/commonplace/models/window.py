"""Asking a server how large the window of one of its models is, for models that the catalogue does not know.

vLLM, LM Studio and OpenRouter say it in their list of models, llama.cpp there or under `/props`. A server that does not
say it, or cannot be asked within a few seconds, leaves the cautious value of the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final, cast

import msgspec

from commonplace.models.catalog import ModelInfo
from commonplace.models.connections import ConnectionProblem, Connections, connections_to
from commonplace.models.providers import Choice

SECONDS: Final = 5.0
"""How long a server is waited for."""
_FIELDS: Final = ("max_model_len", "n_ctx", "context_length", "context_window", "max_context_length", "n_ctx_train")
"""What servers call it, the most exact first."""
_LEAST: Final = 512
_MOST: Final = 16 * 1024 * 1024
_MAX_BYTES: Final = 1024 * 1024


async def with_window(choice: Choice, environment: Mapping[str, str]) -> Choice:
    """Return a choice with the window that its server tells, if the catalogue does not know it."""
    if choice.info.known or choice.provider.api in ("anthropic", "agent"):
        return choice
    found = await _asked(choice, environment)
    if found is None:
        return choice
    info = msgspec.structs.replace(choice.info, window=found, max_output=_output(choice.info, found), known=True)
    return msgspec.structs.replace(choice, info=info)


def _output(info: ModelInfo, window: int) -> int:
    return max(min(info.max_output, window // 4), 1)


async def _asked(choice: Choice, environment: Mapping[str, str]) -> int | None:
    import anyio

    row, base = choice.provider, choice.provider.base_url.rstrip("/")
    key = environment.get(row.api_key_env or "", "")
    headers = {"accept-encoding": "identity", **row.headers, **({"authorization": f"Bearer {key}"} if key else {})}
    addresses = (f"{base}/models", f"{base.removesuffix('/v1')}/props")
    ours = {name.lower().encode(): value.encode() for name, value in headers.items()}
    connections = connections_to(base, trust_env=row.trust_env)
    try:
        with anyio.move_on_after(SECONDS):
            for address in addresses:
                with suppress(ConnectionProblem, TimeoutError, msgspec.DecodeError, RecursionError):
                    found = _window(msgspec.json.decode(await _read(connections, address, ours)), choice.slug)
                    if found is not None:
                        return found
    finally:
        await connections.aclose()
    return None


async def _read(connections: Connections, address: str, headers: Mapping[bytes, bytes]) -> bytes:
    """Return the document at an address, or nothing if it is refused; of a long one, the beginning."""
    answer = await connections.send("GET", address, headers, b"")
    document = b""
    try:
        if answer.status == 200:
            async with aclosing(answer.chunks()) as chunks:
                async for chunk in chunks:
                    document += chunk
                    if len(document) > _MAX_BYTES:
                        break
    finally:
        await answer.aclose()
    return document


def _window(document: Any, slug: str) -> int | None:
    """Return the window that a document tells: of the model that is meant, or the only one that it speaks of."""
    held = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    listed = cast("list[Any]", held["data"]) if isinstance(held.get("data"), list) else [held]
    rows = [cast("dict[str, Any]", row) for row in listed if isinstance(row, dict)]
    named = [row for row in rows if row.get("id") == slug]
    for row in named or (rows if len(rows) == 1 else []):
        sizes = {name: value for name, value in _numbers(row) if name in _FIELDS and _LEAST <= value <= _MOST}
        found = next((sizes[name] for name in _FIELDS if name in sizes), None)
        if found is not None:
            return found
    return None


def _numbers(value: Any, depth: int = 3) -> Iterator[tuple[str, int]]:
    for name, each in cast("dict[str, Any]", value).items() if isinstance(value, dict) else ():
        if isinstance(each, int) and not isinstance(each, bool):
            yield name, each
        elif depth:
            yield from _numbers(each, depth - 1)
