"""What a session is called, and by what copies of it are found."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from commonplace.importers.claude_code.records import ClaudeRecord
from commonplace.patterns import regex
from commonplace.protocol.ids import is_uuid
from commonplace.rollout.reader import open_session

_ANSWER: Final = regex(rb'"id":"(msg_[\w-]{1,100})"')
_HEAD_BYTES: Final = 256 * 1024
"""How far into a file the first answer is searched for."""


def first_answer(path: Path) -> str:
    """Return the id of the first answer near the beginning of a file: copies keep it even where they rename records."""
    with open_session(path) as file:
        found = _ANSWER.search(file.read(_HEAD_BYTES))
    return found[1].decode() if found else ""


def session_id(path: Path, record: ClaudeRecord) -> str:
    """Return what the session is called: the file's name, unless somebody renamed the file."""
    stem = path.name.partition(".")[0]
    if is_uuid(stem.lower()) or not record.session_id:
        return stem
    return record.session_id
