"""`add_ad_hoc_note`: one new file, marked as written by a model for one project; what is there is never touched.

Unlike the contract that the tool follows, secrets are taken out before anything is written, and a note larger than
readers of notes take is refused instead of being cut later.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from commonplace.errors import ToolError
from commonplace.memory.edits import notes
from commonplace.memory.recall.tools import failures
from commonplace.memory.recall.tools.arguments import NoteArguments, trim
from commonplace.memory.recall.tools.results import NoteAdded
from commonplace.patterns import regex
from commonplace.redact import redact

_STAMP: Final = regex(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-", re.ASCII)
_STAMP_BYTES: Final = 20
_SLUG: Final = regex(rb"[a-z0-9-]+")
_MAX_SLUG: Final = 80
_PATTERN: Final = "YYYY-MM-DDTHH-MM-SS-<slug>.md"


def add(root: Path, arguments: NoteArguments, scope: str | None = None, *, is_allowed: bool = False) -> NoteAdded:
    """Write a note; one with a scope is marked as a model's, for that project, allowed by a person or not.

    Raises:
        ToolError: its name is none of a note, it is blank or too large, or there is one of that name.
    """
    check_name(arguments.filename)
    if not trim(arguments.note):
        raise ToolError("empty_ad_hoc_note", "note must not be empty")
    text = redact(arguments.note)
    if scope is not None:
        text = notes.text_of_model(text, scope, is_allowed=is_allowed)
    data = text.encode()
    if len(data) > notes.MAX_NOTE_BYTES:
        raise failures.bad_arguments(f"note must not be longer than {notes.MAX_NOTE_BYTES} bytes")
    try:
        notes.create(root, arguments.filename, data)
    except notes.Obstacle as obstacle:
        reason = failures.LINK if obstacle.is_link else failures.NOT_A_FOLDER
        raise failures.invalid_path(str(obstacle.path), reason) from None
    except FileExistsError:
        message = f"ad-hoc note {failures.quoted(arguments.filename)} already exists"
        raise ToolError("ad_hoc_note_already_exists", message, filename=arguments.filename) from None
    return NoteAdded()


def check_name(filename: str) -> None:
    """Refuse a name that is none of a note; the first rule that is broken is the one that is told."""
    name = filename.encode("utf-8", "replace")
    if len(name) > notes.MAX_NAME:
        raise failures.invalid_filename(filename, f"is too long: {notes.MAX_NAME} bytes are the most")
    if not name.endswith(b".md"):
        raise failures.invalid_filename(filename, "must end with .md")
    stem = name.removesuffix(b".md")
    if len(stem) <= _STAMP_BYTES or not _STAMP.match(stem):
        raise failures.invalid_filename(filename, f"must use the pattern {_PATTERN}")
    slug = stem[_STAMP_BYTES:]
    if len(slug) > _MAX_SLUG:
        raise failures.invalid_filename(filename, f"must have a slug of 1 to {_MAX_SLUG} bytes")
    if not _SLUG.fullmatch(slug):
        raise failures.invalid_filename(filename, "must have a slug of a-z, 0-9 and - only")
