"""aider: the chat history of a repository, `.aider.chat.history.md`, with every session that was had there.

    # aider chat started at 2026-09-28 10:00:00       a session begins
    #### words                                        the person's words, line by line
    > words                                           what aider itself said
    anything else                                     the model's answer

aider ends the lines that it and the person wrote with two spaces, by which headings and quotations of the model are
told from them. Where an editor removed those spaces, a heading right behind an answer is the model's, because aider
says something of its own before it asks again. Lines in fences are the model's. Times are the machine's, without a
zone, and count as UTC.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from commonplace.importers import items, json_lines, markdown
from commonplace.importers.converter import Converted, ConvertedRecord, Payload, SessionHead, thread_id_for
from commonplace.patterns import regex
from commonplace.protocol import ids
from commonplace.protocol.memory_traces import is_memory_text
from commonplace.protocol.rollout import Origin, Skipped

SOURCE: Final = "aider"
FILE: Final = ".aider.chat.history.md"
_START: Final = regex(r"# aider chat started at (?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_SAID: Final = "#### "
_TOLD: Final = "> "
_MODES: Final = ("/ask ", "/code ", "/architect ", "/chat-mode ", "/context ")
"""Commands that pass the words behind them on to the model."""
_SHELL: Final = ("/run ", "/test ", "!")
_INTERRUPTED: Final = "^C"


def find(path: Path) -> Iterator[Path]:
    """Yield the history at a path: the file, or that of a repository or of the folders below it."""
    if path.is_file():
        yield path
    else:
        yield from (file for file in json_lines.walk(path) if file.name == FILE)


def convert(path: Path) -> Converted:
    """Yield the threads of a history; see `converter`."""
    raw = json_lines.read_text(path)
    if isinstance(raw, Skipped):
        yield raw
        return
    text = raw.decode().replace("\r\n", "\n")
    has_ends = any(line.startswith(_SAID) and line.endswith("  ") for line in text.split("\n"))
    session: _ChatReader | None = None
    sessions = 0
    for line, is_fenced in markdown.lines(text):
        begins = None if is_fenced else _START.fullmatch(line)
        if begins is not None:
            if session is not None:
                yield from session.end()
            sessions += 1
            session = _ChatReader(path, begins["time"], sessions)
        elif session is not None:
            kind = "answer" if is_fenced else _block_of(line, has_ends=has_ends)
            is_heading = kind == "said" and not has_ends and session.kind == "answer"
            yield from session.see(line, "answer" if is_heading else kind)
    if session is not None:
        yield from session.end()
    elif raw.strip():
        yield Skipped(0, len(raw), json_lines.UNKNOWN_TYPE)


def _block_of(line: str, *, has_ends: bool) -> str:
    """Return who wrote a line."""
    if not has_ends or line.endswith("  "):
        if line.startswith(_SAID) or line.rstrip() == _SAID.rstrip():
            return "said"
        if line.startswith(_TOLD) or line.rstrip() == _TOLD.rstrip():
            return "told"
    return "answer"


class _ChatReader:
    """One session while its lines come in; a block is a run of lines that one of the three wrote."""

    def __init__(self, path: Path, started: str, number: int) -> None:
        self.path = path
        moment = ids.parse_time(started.replace(" ", "T") + "Z")
        self.time = ids.wire_time(moment) if moment is not None else ""
        self.session = f"{path.parent}#{started}#{number}"
        self.thread_id = thread_id_for(SOURCE, self.session)
        self.kind = ""
        self.lines: list[str] = []
        self.records = 0

    def see(self, line: str, kind: str) -> Converted:
        if kind != self.kind and (line.strip() or kind != "answer"):
            yield from self.end()
            self.kind = kind
        elif self.kind == "said" and not line.strip():  # what comes next was typed later
            yield from self.end()
        self.lines.append(line)

    def end(self) -> Converted:
        prefix = {"said": _SAID, "told": _TOLD}.get(self.kind, "")
        text = "\n".join(line.removeprefix(prefix).removesuffix("  ") for line in self.lines).strip()
        kind, self.lines, self.kind = self.kind, [], ""
        if not text:
            return
        key = f"{self.records}:{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
        payload = _payload(kind, text, Origin(id=key))
        if self.records == 0:
            yield SessionHead(
                source=SOURCE,
                thread_id=self.thread_id,
                session_id=self.session,
                started=self.time,
                path=str(self.path),
                cwd=str(self.path.parent),
            )
        self.records += 1
        yield ConvertedRecord(self.thread_id, key, self.time, [payload])


def _payload(kind: str, text: str, origin: Origin) -> Payload:
    if kind == "answer":
        return items.answer(text, origin)
    if kind == "told":
        name = "interrupt" if text.startswith(_INTERRUPTED) else "injected"
        return items.message("user", [(items.imported_kind(name), text)], origin)
    if is_memory_text(text[:400]):
        return items.message("user", [("memory.injected", text)], Origin(id=origin.id, memory=True))
    mode = next((mode for mode in _MODES if text.startswith(mode)), "")
    if text.startswith(_SHELL):
        return items.message("user", [(items.imported_kind("user_shell"), text)], origin)
    if text.startswith("/") and not mode and "/" not in text.split(maxsplit=1)[0][1:]:
        return items.message("user", [(items.imported_kind("slash_command"), text)], origin)
    return items.message("user", [(items.USER, text.removeprefix(mode))], origin)
