"""What sessions taught, as files: `raw_memories.md` and `rollout_summaries/`, read back.

The database mirrors them and may be lost; these files are the truth that its rows are made from again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec

from commonplace.protocol.ids import parse_time

FOLDER: Final = "memories"
RAW: Final = "raw_memories.md"
SUMMARIES: Final = "rollout_summaries"
MAX_FILE_BYTES: Final = 64 * 2**20

_BLOCK: Final = re.compile(
    r"^## Thread `(?P<thread>[^`\n]+)`\n"
    r"updated_at: (?P<updated>[^\n]+)\n"
    r"cwd: (?P<cwd>[^\n]*)\n"
    r"rollout_path: (?P<path>[^\n]*)\n"
    r"rollout_summary_file: (?P<file>[^\n/]+\.md)\n\n",
    re.MULTILINE,
)
_SLUG: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9a-zA-Z]{4}(?:-(?P<slug>.+))?\.md")


class StoredInput(msgspec.Struct, frozen=True):
    """What one session taught, as the files tell it."""

    thread_id: str
    updated_s: int
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None


def read(home: Path) -> list[StoredInput]:
    """Return what the workspace's files hold, by thread id; parts that cannot be read are left out."""
    root = home / FOLDER
    text = _text(root / RAW)
    blocks = list(_BLOCK.finditer(text))
    found: list[StoredInput] = []
    for place, block in enumerate(blocks):
        end = blocks[place + 1].start() if place + 1 < len(blocks) else len(text)
        moment = parse_time(block["updated"])
        if moment is None:
            continue
        summary = _text(root / SUMMARIES / block["file"]).partition("\n\n")[2].removesuffix("\n")
        slug = _SLUG.fullmatch(block["file"])
        raw = text[block.end() : end].strip()
        found.append(
            StoredInput(block["thread"], int(moment.timestamp()), raw, summary, slug["slug"] if slug else None)
        )
    return found


def _text(path: Path) -> str:
    """Return a file's text; nothing for one that is missing, a link, too large or not text."""
    try:
        if path.is_symlink() or path.stat().st_size > MAX_FILE_BYTES:
            return ""
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
