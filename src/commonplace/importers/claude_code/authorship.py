"""Who wrote the words of a user record, as far as Claude Code says it: its fields first, then its prompt history.

A record with `planContent` is a plan: the agent wrote it, and a key press sent it. `pastedContents` and the history
tell which stretches were pasted. A record that no field calls typed and that the history lacks is not the person's.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.importers import prompt_history
from commonplace.importers.claude_code import records
from commonplace.importers.claude_code.records import ClaudeRecord
from commonplace.importers.items import USER, Part
from commonplace.importers.prompt_history import PromptHistory, Spans
from commonplace.protocol.fragments import join_words
from commonplace.protocol.rollout import Origin

_TERMINAL: Final = frozenset({"", "cli"})
"""Entry points that write the history; editors and scripts do not."""
_HEADLESS: Final = "sdk"
"""Where a prompt of `claude -p` or of a program comes from. What is piped into it stands behind the prompt, with
nothing between the two; it ends with a line, which an argument of a command line hardly ever does.
"""


class _Pasted(msgspec.Struct, gc=False):
    type: str = ""
    content: str | None = None


_pasted = msgspec.json.Decoder(dict[str, _Pasted])


def noted(origin: Origin, record: ClaudeRecord, parts: list[Part], history: PromptHistory | None) -> Origin:
    """Return the origin of a user record with what its source says about who wrote its words."""
    if records.is_text(record.plan_content) and all(kind == USER for kind, _ in parts):
        return msgspec.structs.replace(origin, author="plan")
    if record.prompt_source == _HEADLESS and parts and str(parts[-1][1]).endswith("\n"):
        return msgspec.structs.replace(origin, author="harness")
    if history is None and not record.pasted_contents:
        return origin
    text = join_words(str(text) for kind, text in parts if kind == USER)
    if not text:
        return origin
    if spans := _by_field(record, text):
        return msgspec.structs.replace(origin, pasted=spans)
    prompts = history.session(record.session_id) if history is not None else None
    if prompts is None:
        return origin
    if spans := prompts.pasted(text):
        return msgspec.structs.replace(origin, pasted=spans)
    believed = record.prompt_source or record.origin is not None or record.entrypoint not in _TERMINAL
    if record.type == "user" and not believed and prompts.lacks(text, record.timestamp):
        return msgspec.structs.replace(origin, author="harness")
    return origin


def queued(origin: Origin, session_id: str, text: str, history: PromptHistory | None) -> Origin:
    """Return the origin of a prompt that only the queue noted, with the stretches that were pasted."""
    prompts = history.session(session_id) if history is not None else None
    spans = prompts.pasted(join_words([text])) if prompts is not None else ()
    return msgspec.structs.replace(origin, pasted=spans) if spans else origin


def _by_field(record: ClaudeRecord, text: str) -> Spans:
    """Return the stretches of a text that the record itself holds as pasted."""
    if not record.pasted_contents:
        return ()
    try:
        pasted = _pasted.decode(record.pasted_contents)
    except (msgspec.DecodeError, RecursionError):
        return ()
    found: list[tuple[int, int]] = []
    for each in pasted.values():
        content = prompt_history.plain(each.content or "").strip() if each.type in ("", "text") else ""
        start = text.find(content) if content else -1
        if start >= 0:
            found.append((start, start + len(content)))
    return prompt_history.merged(found)
