"""Reasoning of other APIs inside a reasoning item.

The item's `encrypted_content` is the place for what only a server understands. Reasoning that came by another API than
Responses is put there behind a mark that names the API: a thinking block with its signature for Anthropic, nothing
more than the mark for a Chat Completions server, whose reasoning is plain text. So each API finds its own again, byte
for byte, and leaves that of the others alone when a thread changes its model.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

_MARK: Final = "commonplace:"
_IN_JSON: Final = b'"' + _MARK.encode()


def item(item_id: str, api: str, stored: str, *, summary: str = "", text: str = "") -> dict[str, Any]:
    """Return a reasoning item that holds what an API wants back."""
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": [{"type": "summary_text", "text": summary}] if summary else [],
        "content": [{"type": "reasoning_text", "text": text}] if text else None,
        "encrypted_content": f"{_MARK}{api}:{stored}",
    }


def stored_reasoning(api: str, encrypted: str | None) -> str | None:
    """Return what an API stored in an item, or None if the item is not its own."""
    mark = f"{_MARK}{api}:"
    return encrypted[len(mark) :] if encrypted is not None and encrypted.startswith(mark) else None


class _Encrypted(msgspec.Struct):
    type: str
    encrypted_content: Any = None


_encrypted = msgspec.json.Decoder(_Encrypted)


def is_ours(raw: bytes) -> bool:
    """Say whether an item is reasoning that carries our mark, so that the Responses API cannot read it."""
    if _IN_JSON not in raw:
        return False
    found = _encrypted.decode(raw)
    text = found.encrypted_content
    return found.type == "reasoning" and isinstance(text, str) and text.startswith(_MARK)
