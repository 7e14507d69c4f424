"""Injected texts and the messages made of them.

An `InjectedText` is one text that the program, not a person, puts into the conversation. A message is made of
neighbours that share a role; a text that stands `alone` has a message to itself. What kind of text each part is, is
noted beside the message in the place where Codex notes it, so that readers need not guess from the words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from commonplace.patterns import regex
from commonplace.protocol import fragments, items
from commonplace.protocol.fragments import Role

Item = dict[str, Any]

_UNSEEN: Final = "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]*+"
"""What no reader sees between the letters of a sign."""
_NAMES: Final = "|".join(_UNSEEN.join(name) for name in ("INSTRUCTIONS", "skills_instructions", "skill"))
_FILLING: Final = rf"(?:\s|{_UNSEEN[:-2]}){{0,20}}"
_BLOCK_END: Final = regex(
    rf"[<\uff1c\ufe64\u2039](?={_FILLING}[\\/\uff0f\u2044\u2215]{{1,3}}{_FILLING}(?:{_NAMES})\b)", re.IGNORECASE
)
"""What ends a block, or looks as if it did."""
_HASH_DOMAIN: Final = b"codex-world-state-fragment-v1\0"


class InjectedText(msgspec.Struct, frozen=True):
    """One injected text."""

    role: Role
    text: str
    kind: str
    """What kind of text it is, in the words of the format: `agents_md.instructions`, `additional_content.KEY`, …"""
    alone: bool = False

    def digest(self) -> str:
        """Return the hash by which a snapshot remembers the text without holding it."""
        found = hashlib.sha1(_HASH_DOMAIN, usedforsecurity=False)
        for part in (self.role, self.text):
            data = part.replace("\r\n", "\n").encode()
            found.update(len(data).to_bytes(8, "big") + data)
        return found.hexdigest()


def inert(text: str) -> str:
    """Return a text of a file with the signs escaped that would end the block which the text is put into."""
    return _BLOCK_END.sub("&lt;", text)


def messages(texts: Iterable[InjectedText]) -> list[Item]:
    """Return the texts as messages: neighbours of one role together, in order."""
    groups: list[list[InjectedText]] = []
    for text in texts:
        last = groups[-1][-1] if groups else None
        if last is None or text.alone or last.alone or text.role != last.role:
            groups.append([text])
        else:
            groups[-1].append(text)
    return [_message(group) for group in groups]


def _message(group: Sequence[InjectedText]) -> Item:
    return {
        "type": "message",
        "role": group[0].role,
        "content": [{"type": "input_text", "text": text.text} for text in group],
        items.PASSTHROUGH: {"content_item_kinds": [text.kind for text in group]},
    }


def injected_kinds(history: Iterable[items.View]) -> dict[str, str]:
    """Return which kinds of injected texts a history holds, by their name in the registry: the newest of each."""
    found: dict[str, str] = {}
    for view in history:
        if not isinstance(view, items.Message) or view.role not in ("user", "developer"):
            continue
        for part in view.content:
            fragment = fragments.recognise(part.text, view.role) if part.text else None
            if fragment is not None and part.text is not None:
                found[fragment.name] = part.text
    return found
