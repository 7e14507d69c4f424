"""Make recordings fit to keep: neutral paths, no vendor prose, byte offsets that still hold.

One function of text, `Neutraliser.text`, is applied to every string value of the rollout files and of the
model inputs alike, so the two stay consistent by construction. It replaces the temporary folders by fixed
paths and cuts the vendor's prompt texts to placeholders, keeping the markers by which readers recognise
them (`<skills_instructions>…</skills_instructions>` and so on).

Cutting moves bytes, and a fork names a byte offset of its parent (`history_base.end_byte_offset`).
`rollouts` therefore rewrites parents before children and translates each offset by the line ends it had
before.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]

OMITTED = "(text omitted)"

_TAGS = (
    "apps_instructions",
    "collaboration_mode",
    "context_window_guidance",
    "environments_instructions",
    "model_switch",
    "multi_agent_mode",
    "multi_agent_role",
    "permissions instructions",
    "personality_spec",
    "plugins_instructions",
    "skills_instructions",
    "turn_aborted",
)
"""Elements whose content is the vendor's; the element stays, the content goes."""

_TAGGED = re.compile(r"<(" + "|".join(_TAGS) + r")>.*?</\1>", re.DOTALL)

_OPENINGS = {
    "You are performing a CONTEXT CHECKPOINT COMPACTION": f" {OMITTED}",
    "## Skills\n": OMITTED,
    "You are Codex,": f" {OMITTED}",
    "You are `/root`,": f" {OMITTED}",
    "You are an agent in a team": f" {OMITTED}",
}
"""Beginnings of untagged vendor texts, with what follows the beginning in a recording."""

_AGENTS_MD_NOTICE = re.compile(r"(# AGENTS\.md instructions[^\n]*\n\n<INSTRUCTIONS>\n)The[^\n]*")
"""The sentence that announces changed or removed AGENTS.md files; our own rules begin otherwise."""

_SUMMARY_PREFIX_BYTES = 399
_SUMMARY_PREFIX_SHA256 = "e9b088e794a6bb9082ac053fcc760bd818d7e720ee4bcdc72c6e480de7b7cb0e"
"""The prefix of a local compaction's summary, recognised without holding its text."""

SUMMARY_PREFIX = "Another language model started to solve this problem (prefix text omitted)"
"""What the prefix becomes; the same words as in the shared recordings."""


@dataclass(frozen=True)
class Neutraliser:
    """Rewrites recordings; `paths` maps real folders to neutral ones, longest first."""

    paths: Mapping[str, str]

    def text(self, value: str) -> str:
        """Return a string with neutral paths and without vendor prose."""
        for real, neutral in self.paths.items():
            value = value.replace(real, neutral)
        prefix = value[:_SUMMARY_PREFIX_BYTES]
        if hashlib.sha256(prefix.encode()).hexdigest() == _SUMMARY_PREFIX_SHA256:
            return SUMMARY_PREFIX + self.text(value[_SUMMARY_PREFIX_BYTES:])
        value = _TAGGED.sub(rf"<\1>\n{OMITTED}\n</\1>", value)
        value = _AGENTS_MD_NOTICE.sub(rf"\1{OMITTED}", value)
        for opening, rest in _OPENINGS.items():
            if value.lstrip().startswith(opening):
                return opening + rest
        return value

    def value(self, value: Any) -> Any:
        """Return a JSON value with every string (and key) made neutral."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(entry) for entry in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {self.text(key): self._member(key, entry) for key, entry in cast("Json", value).items()}
        return value

    def _member(self, key: str, entry: Any) -> Any:
        # Some models get their tools as an item of the input; those texts are the vendor's too.
        return [] if key == "tools" else self.value(entry)

    def rollouts(self, files: list[Path]) -> dict[str, bytes]:
        """Return the new content of each file by name."""
        done: dict[str, _Rewritten] = {}
        waiting = sorted(files, key=lambda path: path.name)
        while waiting:
            ready = [path for path in waiting if (base := _base_file(path, files)) is None or base.name in done]
            if not ready:
                raise ValueError(f"forks without their parents: {[path.name for path in waiting]}")
            for path in ready:
                base = _base_file(path, files)
                done[path.name] = self._rewrite(path, None if base is None else done[base.name])
            waiting = [path for path in waiting if path not in ready]
        return {name: rewritten.content for name, rewritten in done.items()}

    def _rewrite(self, path: Path, base: _Rewritten | None) -> _Rewritten:
        ends = {0: 0}
        old_end = 0
        content = b""
        for raw in path.read_bytes().splitlines(keepends=True):
            content += self._line(raw, base)
            old_end += len(raw)
            ends[old_end] = len(content)
        return _Rewritten(content, ends)

    def _line(self, raw: bytes, base: _Rewritten | None) -> bytes:
        try:
            line = cast("Json", json.loads(raw))
        except ValueError:
            return raw  # a torn line is part of what the recording shows
        line = cast("Json", self.value(line))
        history_base = line["payload"].get("history_base") if line["type"] == "session_meta" else None
        if history_base is not None and base is not None:
            history_base["end_byte_offset"] = base.ends[history_base["end_byte_offset"]]
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class _Rewritten:
    """New content of a file, and where each old line end went."""

    content: bytes
    ends: dict[int, int]


def _base_file(path: Path, files: list[Path]) -> Path | None:
    """Return the file that a rollout continues by reference, if it does."""
    with path.open("rb") as opened:
        first = cast("Json", json.loads(opened.readline()))
    base = cast("Json | None", first["payload"].get("history_base"))
    if base is None:
        return None
    rollout_id = str(base.get("rollout_id") or "")
    suffix = f"{base['thread_id']}_{rollout_id}.jsonl" if rollout_id else f"{base['thread_id']}.jsonl"
    return next(other for other in files if other != path and other.name.endswith(suffix))


def long_strings(value: Any, limit: int = 100) -> set[str]:
    """Return every string longer than `limit`: what a person should read before committing a recording."""
    if isinstance(value, str):
        return {value} if len(value) > limit else set()
    if isinstance(value, list):
        return set[str]().union(*(long_strings(entry, limit) for entry in cast("list[Any]", value)))
    if isinstance(value, dict):
        return set[str]().union(*(long_strings(entry, limit) for entry in cast("Json", value).values()))
    return set()
