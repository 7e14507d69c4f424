"""Compaction by the provider: which items are sent, and which items are kept beside the provider's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from commonplace.context import truncate
from commonplace.context.compaction import sizes
from commonplace.protocol import fragments, items

RETAINED_TOKENS: Final = 64_000
"""The most tokens of messages that stand beside the provider's compaction."""
_MAIL_TOKENS: Final = 10_000
"""Longer mail between agents is not kept."""
_PROGRESS: Final = "Message Type: MESSAGE\n"
_ANSWER: Final = "Message Type: FINAL_ANSWER\n"
LEFT_OUT: Final = "This output did not fit into the model's context and was left out."
_object: Final = msgspec.json.Decoder(dict[str, Any])


def fitted_history(history: Sequence[bytes], window: int, base_tokens: int = 0) -> list[bytes]:
    """Return the history for the provider: outputs at its end are left out while it is too long for the window."""
    found = list(history)
    for place in range(len(found) - 1, -1, -1):
        if base_tokens + sizes.total(found) <= window:
            break
        view = items.view(found[place])
        if isinstance(view, items.FunctionCallOutput | items.CustomToolCallOutput):
            found[place] = msgspec.json.encode({**_object.decode(found[place]), "output": LEFT_OUT})
        elif isinstance(view, items.ToolSearchOutput):
            found[place] = msgspec.json.encode({**_object.decode(found[place]), "tools": []})
        else:
            break
    return found


def _is_persons(message: items.Message) -> bool:
    """Say whether a person, a hook or a summary speaks; what is injected does not count."""
    if not fragments.is_contextual(message):
        return True
    found = [fragments.recognise(part.text, "user") for part in message.content if part.text]
    return any(each is not None and each.name == "hook_prompt" for each in found)


def history_around(history: Sequence[bytes], compaction: bytes) -> list[bytes]:
    """Return the new history around the provider's answer: recent messages within a budget, then the answer."""
    kept: list[bytes] = []
    left = RETAINED_TOKENS
    for raw in reversed(history):
        if left <= 0:
            break
        view = items.view(raw)
        if not _stays(view):
            continue
        cost = max(1, _text_tokens(view))
        if cost > left:
            kept.append(_cut(raw, view, left))
            break
        kept.append(raw)
        left -= cost
    return [*reversed(kept), compaction]


def _stays(view: items.View) -> bool:
    match view:
        case items.Message(role="user"):
            return _is_persons(view)
        case items.AgentMessage():
            return _is_mail(view)
        case _:
            return False


def _is_mail(view: items.AgentMessage) -> bool:
    """Say whether mail between agents is kept: not too long, no progress of a descendant, no completion."""
    text = "".join(part.text for part in view.content if part.text)
    if truncate.approximate_tokens(text) > _MAIL_TOKENS or text.startswith(_ANSWER):
        return False
    is_below = view.author.startswith(view.recipient.rstrip("/") + "/")
    return not (is_below and text.startswith(_PROGRESS))


def _text_tokens(view: items.View) -> int:
    if not isinstance(view, items.Message | items.AgentMessage):
        return 0
    return sum(truncate.approximate_tokens(part.text) for part in view.content if part.text)


def _cut(raw: bytes, view: items.View, tokens: int) -> bytes:
    """Return a message whose texts fit into what is left; its media stay."""
    assert isinstance(view, items.Message | items.AgentMessage)
    whole = _object.decode(raw)
    content: list[Any] = []
    left = tokens
    for part, shown in zip(whole["content"], view.content, strict=True):
        if shown.text is None:
            content.append(part)
        elif left > 0:
            content.append({**part, "text": truncate.truncate(shown.text, left)})
            left -= truncate.approximate_tokens(shown.text)
    return msgspec.json.encode({**whole, "content": content})
