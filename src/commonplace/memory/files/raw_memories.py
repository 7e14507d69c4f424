"""What sessions taught, as files: `raw_memories.md` and `rollout_summaries/`, written and read back.

The database mirrors them and may be lost; these files are the truth that its rows are made from again. So reading gives
what was written, except for what the files do not hold: space around a raw memory, and a slug's own spelling.

A line of a raw memory that looks like the heading of a block gets a backslash before it, as Markdown has it, and loses
it when it is read; a value that would not fit on its line is written as a JSON string. Other texts stay as they are.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.memory.workspace import layout
from commonplace.memory.workspace.layout import FOLDER, RAW, SUMMARIES
from commonplace.memory.workspace.staging import put
from commonplace.patterns import regex
from commonplace.protocol.ids import parse_time

MAX_FILE_BYTES: Final = 64 * 2**20
"""Larger files are not read."""

_TITLE: Final = "# Raw Memories\n\n"
_NONE: Final = "No raw memories yet.\n"
_INTRO: Final = "What single sessions taught (stage 1), merged in stable ascending order of their thread ids:\n\n"
_BLOCK: Final = regex(
    r"^## Thread `(?P<thread>[^`\n]+)`\n"
    r"updated_at: (?P<updated>[^\n]+)\n"
    r"cwd: (?P<cwd>[^\n]*)\n"
    r"rollout_path: (?P<path>[^\n]*)\n"
    r"rollout_summary_file: (?P<file>[^\n/]+\.md)\n\n",
    re.MULTILINE,
)
_HEADING: Final = regex(r"^(?=\\*## Thread `)", re.MULTILINE)
_ESCAPED: Final = regex(r"^\\(?=\\*## Thread `)", re.MULTILINE)
_BRANCH: Final = regex(r"^git_branch: ([^\n]*)$", re.MULTILINE)
_SLUG: Final = regex(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9a-zA-Z]{4}(?:-(?P<slug>.+))?\.md")
_UUID: Final = regex(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HASHES: Final = 62**4
_STRIDE: Final = 9_699_691
"""How far the next hash is; it has no factor in common with 62, and spreads those that would crowd together."""
_SLUG_CHARS: Final = 60
"""How many characters of a slug a file's name holds."""
_GREGORIAN_TICKS: Final = 0x01B21DD213814000
"""From 1582, where the times of UUIDs 1 and 6 begin, to 1970, in steps of 100 ns."""

_LAST_SECOND: Final = 253_402_300_799
"""The end of the year 9999, beyond which times have no usual spelling."""


class RawMemory(msgspec.Struct, frozen=True):
    """The output of one session, as the files hold it."""

    thread_id: str
    updated_s: int
    cwd: str
    rollout_path: str
    git_branch: str | None
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    lessons: str | None = None
    """What the texts are rendered from, as JSON; files do not hold it."""

    @property
    def has_text(self) -> bool:
        """Whether it has texts, which files hold."""
        return bool(self.raw_memory.strip() or self.rollout_summary.strip())


class SessionFiles(msgspec.Struct, frozen=True):
    """The files of one session: its ledger, and its summary below `rollout_summaries/`."""

    rollout_path: str
    summary: str


class SyncResult(msgspec.Struct, frozen=True):
    """The changes that `sync` made to the files, by their paths from the root."""

    written: list[str]
    removed: list[str]
    failed: list[str]
    """Summaries of sessions that are no longer wanted and could not be removed."""


def sync(root: Path, inputs: Iterable[RawMemory]) -> SyncResult:
    """Make the files hold these inputs and no others; a file that holds what it should is left alone."""
    layout.ensure(root)
    ordered = _ordered(inputs)
    names = stems(ordered)
    wanted = {f"{names[one.thread_id]}.md": summary_text(one) for one in ordered}
    removed, failed = _prune(root / SUMMARIES, wanted.keys())
    texts = {f"{SUMMARIES}/{name}": text for name, text in wanted.items()}
    texts[RAW] = raw_memories(ordered)  # last: it refers to the others
    written = [path for path, text in texts.items() if _replace(root / path, text)]
    return SyncResult(written, removed, failed)


def raw_memories(inputs: Iterable[RawMemory]) -> str:
    """Return the text of `raw_memories.md`."""
    ordered = _ordered(inputs)
    if not ordered:
        return _TITLE + _NONE
    names = stems(ordered)
    return _TITLE + _INTRO + "".join(_block(one, names[one.thread_id]) for one in ordered)


def summary_text(one: RawMemory) -> str:
    """Return the text of a session's file in `rollout_summaries/`."""
    lines = [
        f"thread_id: {_value(one.thread_id)}",
        f"updated_at: {_moment(one.updated_s).isoformat()}",
        f"rollout_path: {_value(one.rollout_path)}",
        f"cwd: {_value(one.cwd)}",
    ]
    if one.git_branch is not None:
        lines.append(f"git_branch: {_value(one.git_branch)}")
    return "\n".join(lines) + f"\n\n{one.rollout_summary}\n"


def stems(inputs: Iterable[RawMemory]) -> dict[str, str]:
    """Return the names of summaries by thread id; where two would be one, the later thread takes the next hash.

    Names that differ only in case are one, since they are one file on some systems.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for one in _ordered(inputs):
        shift = 0
        while (name := _stem(one, shift)).lower() in taken:
            shift += 1
        taken.add(name.lower())
        names[one.thread_id] = name
    return names


def read(home: Path) -> list[RawMemory]:
    """Return what the workspace's files hold, by thread id; parts that cannot be read are left out."""
    return read_folder(home / FOLDER)


def read_folder(root: Path) -> list[RawMemory]:
    """Return what the files of any workspace hold, as `read` does."""
    text = _text(root / RAW)
    blocks = list(_BLOCK.finditer(text))
    found: list[RawMemory] = []
    for place, block in enumerate(blocks):
        end = blocks[place + 1].start() if place + 1 < len(blocks) else len(text)
        moment = parse_time(block["updated"])
        if moment is None:
            continue
        header, _, summary = _text(root / SUMMARIES / block["file"]).partition("\n\n")
        branch = _BRANCH.search(header)
        slug = _SLUG.fullmatch(block["file"])
        found.append(
            RawMemory(
                thread_id=_meaning(block["thread"]),
                updated_s=int(moment.timestamp()),
                cwd=_meaning(block["cwd"]),
                rollout_path=_meaning(block["path"]),
                git_branch=_meaning(branch[1]) if branch else None,
                raw_memory=_ESCAPED.sub("", text[block.end() : end].strip()),
                rollout_summary=summary.removesuffix("\n"),
                rollout_slug=slug["slug"] if slug else None,
            )
        )
    return found


def session_files(root: Path) -> dict[str, SessionFiles]:
    """Return the files of each session that a workspace tells of, by thread id; only `raw_memories.md` is read."""
    return {
        _meaning(block["thread"]): SessionFiles(_meaning(block["path"]), block["file"])
        for block in _BLOCK.finditer(_text(root / RAW))
    }


def _ordered(inputs: Iterable[RawMemory]) -> list[RawMemory]:
    """Sort by thread id, so that a change of ranking changes no file; of one thread the last counts."""
    by_thread = {one.thread_id: one for one in inputs}
    return [by_thread[thread_id] for thread_id in sorted(by_thread)]


def _block(one: RawMemory, name: str) -> str:
    raw = _HEADING.sub(r"\\", one.raw_memory.strip())
    return (
        f"## Thread `{_value(one.thread_id, unfit='`')}`\n"
        f"updated_at: {_moment(one.updated_s).isoformat()}\n"
        f"cwd: {_value(one.cwd)}\n"
        f"rollout_path: {_value(one.rollout_path)}\n"
        f"rollout_summary_file: {name}.md\n\n{raw}\n\n"
    )


def _value(value: str, unfit: str = "\n") -> str:
    """Return a value as it stands on its line."""
    if "\n" in value or unfit in value or value.startswith('"'):
        return json.dumps(value).replace("`", "\\u0060")
    return value


def _meaning(written: str) -> str:
    if not written.startswith('"'):
        return written
    try:
        value: Any = json.loads(written)
    except ValueError:
        return written
    return value if isinstance(value, str) else written


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), UTC)


def _stem(one: RawMemory, shift: int) -> str:
    number = int(one.thread_id.replace("-", ""), 16) if _UUID.fullmatch(one.thread_id) else None
    if number is None:
        seed = 0
        for byte in one.thread_id.encode("utf-8", "replace"):
            seed = (seed * 31 + byte) % 2**32
    else:
        seed = number % 2**32
    began = _moment(one.updated_s) if number is None else _began(number) or _moment(one.updated_s)
    rest, digits = (seed + shift * _STRIDE) % _HASHES, ""
    for _ in range(4):
        rest, digit = divmod(rest, 62)
        digits = _DIGITS[digit] + digits
    prefix = f"{began.isoformat()[:19].replace(':', '-')}-{digits}"
    slug = _slug(one.rollout_slug or "")
    return f"{prefix}-{slug}" if slug else prefix


def _began(number: int) -> datetime | None:
    """Return the time in a UUID that has one (versions 1, 6 and 7)."""
    match number >> 76 & 0xF:
        case 7:
            seconds = (number >> 80) // 1000
        case 6:
            ticks = number >> 96 << 28 | (number >> 80 & 0xFFFF) << 12 | number >> 64 & 0xFFF
            seconds = (ticks - _GREGORIAN_TICKS) // 10**7
        case 1:
            ticks = (number >> 64 & 0xFFF) << 48 | (number >> 80 & 0xFFFF) << 32 | number >> 96
            seconds = (ticks - _GREGORIAN_TICKS) // 10**7
        case _:
            return None
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds >= 0 else None
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return None


def _slug(slug: str) -> str:
    kept = slug[:_SLUG_CHARS]
    return "".join(char.lower() if char.isascii() and char.isalnum() else "_" for char in kept).rstrip("_")


def _prune(folder: Path, wanted: Iterable[str]) -> tuple[list[str], list[str]]:
    """Remove the summaries of sessions that are not wanted; other files, and names that are not text, are not ours."""
    keep = set(wanted)
    removed: list[str] = []
    failed: list[str] = []
    for name in sorted(os.listdir(folder)):
        if name in keep or not name.endswith(".md") or not _is_text(name):
            continue
        try:
            (folder / name).unlink()
        except OSError:
            failed.append(f"{SUMMARIES}/{name}")
        else:
            removed.append(f"{SUMMARIES}/{name}")
    return removed, failed


def _is_text(name: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _replace(path: Path, text: str) -> bool:
    """Write a file unless it holds just that; return whether it was written."""
    data = text.encode("utf-8", "replace")
    try:
        if path.read_bytes() == data:
            return False
    except OSError:
        pass
    put(path, data)
    return True


def _text(path: Path) -> str:
    """Return a file's text; nothing for one that is missing, a link, too large or not text."""
    try:
        if path.is_symlink() or path.stat().st_size > MAX_FILE_BYTES:
            return ""
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
