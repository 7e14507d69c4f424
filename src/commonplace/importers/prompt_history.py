"""The prompt histories that agents keep for their input line: what was typed, and which stretches of it were pasted.

Claude Code writes `history.jsonl` beside `projects/`: `display` is the input line, where a placeholder such as
`[Pasted text #1 +20 lines]` stands for a long paste, and `pastedContents` holds the paste, refers to a file in
`paste-cache/`, or lacks it. Codex writes `history.jsonl` beside `sessions/`: `text` is the whole prompt.

A history does not hold everything: people delete it, agents shorten it, other clients of the agent do not write it.
So a prompt counts as missing only between two prompts of its session, and never near a broken line.
A file is read once while it does not change; of a large one, only the newest part.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from commonplace.patterns import regex

NAME: Final = "history.jsonl"
_MAX_BYTES: Final = 16 * 2**20
"""How many of a history's newest bytes are read."""
_MAX_LINE: Final = 2**20
"""A longer line counts as broken."""
_MAX_PASTE: Final = 2**20
"""Larger files with pasted texts are not read."""
_MAX_PLACEHOLDERS: Final = 64
"""A prompt with more placeholders is not looked at."""
_LOST_LINES: Final = 2
_CACHE: Final = "paste-cache"
_HASH: Final = regex(r"[0-9a-f]{8,64}")
_PLACEHOLDER: Final = regex(r"\[(Pasted text|\.\.\.Truncated text) #(\d{1,9})(?: \+(\d{1,9}) lines)?(?:\.\.\.)?\]")
_MENTION: Final = regex(r"\[([$@][^\]\[\n]{1,200})\]\([^()\n]{0,1000}\)")
"""How Codex writes a mention of a skill or an app in its history; the session holds the name alone."""
_KEY_CHARS: Final = 60
_TELLING_KEY: Final = 8
"""Two prompts are alike if their first letters and digits are; shorter beginnings tell nothing."""

Spans = tuple[tuple[int, int], ...]
"""Stretches of a text: where each begins and ends, in order."""


class _Paste(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    content: str | None = None
    content_hash: str = ""


class _HistoryLine(msgspec.Struct, gc=False):
    display: str = ""
    text: str = ""
    timestamp: float = 0
    """Milliseconds."""
    ts: float = 0
    """Seconds."""
    claude_session: str = msgspec.field(default="", name="sessionId")
    codex_session: str = msgspec.field(default="", name="session_id")
    pasted: dict[str, _Paste] = msgspec.field(default={}, name="pastedContents")


class _HistoryStamp(msgspec.Struct, gc=False):
    """The fields of a line that tell where it belongs."""

    timestamp: float = 0
    ts: float = 0
    claude_session: str = msgspec.field(default="", name="sessionId")
    codex_session: str = msgspec.field(default="", name="session_id")


class _Hole(NamedTuple):
    """What a placeholder stands for."""

    content: str | None
    """None if the history lost it."""
    lines: int
    """How many line ends it has."""
    is_pasted: bool
    """A long input is shortened by a placeholder too, whoever wrote it."""


class _Prompt(NamedTuple):
    time: float
    literals: list[str]
    """What stands before, between and behind the placeholders."""
    holes: list[_Hole]

    def beginning(self) -> str | None:
        """Return how the prompt begins; None if nobody knows."""
        if self.literals[0].strip() or not self.holes:
            return self.literals[0]
        return self.holes[0].content


_line = msgspec.json.Decoder(_HistoryLine)
_stamp = msgspec.json.Decoder(_HistoryStamp)


def beside(path: Path, folders: frozenset[str]) -> PromptHistory | None:
    """Return the history that belongs to a session file: it stands beside the agent's folder of sessions.

    `folders` are the names that such a folder may have. None if there is no history.
    """
    folder = next((parent for parent in path.parents if parent.name in folders), None)
    if folder is None:
        return None
    file = folder.with_name(NAME)
    try:
        status = file.stat()
    except OSError:
        return None
    return _read(file, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=2)
def _read(file: Path, size: int, mtime_ns: int) -> PromptHistory | None:
    """Read a history; size and time are there to notice that it changed."""
    try:
        with file.open("rb") as stream:
            if size > _MAX_BYTES:
                stream.seek(size - _MAX_BYTES)
                stream.readline()  # the rest of a line
            return PromptHistory(file.parent / _CACHE, iter(lambda: stream.readline(_MAX_LINE), b""))
    except OSError:
        return None


class PromptHistory:
    """The prompts of one history, by session."""

    def __init__(self, cache: Path, lines: Iterable[bytes]) -> None:
        self._cache = cache
        self._lines: dict[str, list[bytes]] = {}
        self._gaps: list[tuple[float, float]] = []
        """Before and after each broken line: the times of its neighbours."""
        time, broken_since = 0.0, None
        for raw in lines:
            if not raw.strip():
                continue
            try:
                stamp = _stamp.decode(raw)
            except (msgspec.DecodeError, RecursionError):
                broken_since = time if broken_since is None else broken_since
                continue
            time = _time(stamp)
            if broken_since is not None:
                self._gaps.append((broken_since, time))
                broken_since = None
            if session := stamp.claude_session or stamp.codex_session:
                self._lines.setdefault(session, []).append(raw)
        if broken_since is not None:
            self._gaps.append((broken_since, float("inf")))
        self.session = functools.lru_cache(maxsize=4)(self._session)

    def _session(self, session_id: str) -> SessionPrompts | None:
        """Return the prompts of a session; None if the history has none."""
        prompts = [prompt for raw in self._lines.get(session_id, ()) for prompt in self._prompt(raw)]
        return SessionPrompts(prompts, self._gaps) if prompts else None

    def _prompt(self, raw: bytes) -> Iterator[_Prompt]:
        try:
            line = _line.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            time = _time(_stamp.decode(raw))
            self._gaps.append((time, time))
            return
        display = plain(line.display or _MENTION.sub(r"\1", line.text)).strip()
        literals: list[str] = []
        holes: list[_Hole] = []
        end = 0
        for found in _PLACEHOLDER.finditer(display):
            paste = line.pasted.get(found[2])
            literals.append(display[end : found.start()])
            holes.append(_Hole(self._content(paste), int(found[3] or 0), found[1] == "Pasted text"))
            end = found.end()
        yield _Prompt(_time(line), [*literals, display[end:]], holes)

    def _content(self, paste: _Paste | None) -> str | None:
        """Return a pasted text, wherever the history keeps it."""
        if paste is None or paste.type not in ("", "text"):
            return None
        if paste.content is not None:
            return plain(paste.content)
        if not _HASH.fullmatch(paste.content_hash):
            return None
        file = self._cache / f"{paste.content_hash}.txt"
        try:
            return plain(file.read_text("utf-8")) if file.stat().st_size <= _MAX_PASTE else None
        except (OSError, UnicodeDecodeError):
            return None


class SessionPrompts:
    """The prompts of one session."""

    def __init__(self, prompts: list[_Prompt], gaps: list[tuple[float, float]]) -> None:
        self._prompts = prompts
        self._gaps = gaps
        self._times = sorted(prompt.time for prompt in prompts)
        beginnings = [prompt.beginning() for prompt in prompts]
        self._keys = {_key(begin) for begin in beginnings if begin is not None}
        self._has_unknown = None in beginnings

    def pasted(self, text: str) -> Spans:
        """Return the stretches of a message that were pasted, as far as the history tells."""
        for prompt in self._prompts:
            if prompt.holes and len(prompt.holes) <= _MAX_PLACEHOLDERS:
                found = _aligned(text, prompt)
                if found is not None:
                    return tuple(
                        span
                        for span, hole in zip(found, prompt.holes, strict=True)
                        if hole.is_pasted and span[0] < span[1]
                    )
        return ()

    def lacks(self, text: str, time: str) -> bool:
        """Say whether a message of this session was not typed: the history has others around it, and not this one."""
        moment = _moment(time)
        if moment is None or self._has_unknown or not self._times[0] < moment < self._times[-1]:
            return False
        if self._is_near_gap(moment):
            return False
        key = _key(text)
        if len(key) < _TELLING_KEY or key in self._keys:
            return False
        return not any(
            len(known) >= _TELLING_KEY and (key.startswith(known) or known.startswith(key)) for known in self._keys
        )

    def _is_near_gap(self, moment: float) -> bool:
        """Say whether a broken line stands between the prompts of this session before and after a moment."""
        at = bisect.bisect_left(self._times, moment)
        return any(since < self._times[at] and until > self._times[at - 1] for since, until in self._gaps)


def _aligned(text: str, prompt: _Prompt) -> list[tuple[int, int]] | None:
    """Return which stretch of a text each placeholder of a prompt stands for; None if the text is not that prompt."""
    literals, holes = prompt.literals, prompt.holes
    if not text.startswith(literals[0]) or not text.endswith(literals[-1]):
        return None
    if not any(literal.strip() for literal in literals) and not any(hole.content or hole.lines for hole in holes):
        return None  # a lone placeholder whose content is lost stands for any text
    found: list[tuple[int, int]] = []
    at = len(literals[0])
    for number, hole in enumerate(holes):
        behind = literals[number + 1]
        end = _end(text, at, hole, behind, is_last=number + 1 == len(holes))
        if end is None or not text.startswith(behind, end):
            return None
        found.append((at, end))
        at = end + len(behind)
    return found if at == len(text) else None


def _end(text: str, at: int, hole: _Hole, behind: str, *, is_last: bool) -> int | None:
    """Return where the stretch of a placeholder ends that begins at a place; None if nothing tells."""
    if hole.content is not None and text.startswith(hole.content, at):
        return at + len(hole.content)
    if is_last:
        end = len(text) - len(behind)
    elif behind.strip() and text.count(behind, at) == 1:
        end = text.find(behind, at)
    else:
        return None
    # A message is stored without the space around it, so a paste at either end may have lost a line end or two.
    is_right = end >= at and (hole.content is None or hole.content.strip() == text[at:end].strip())
    lost = hole.lines - text.count("\n", at, max(at, end))
    return end if is_right and (lost == 0 or (0 < lost <= _LOST_LINES and (at == 0 or end == len(text)))) else None


def merged(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return stretches in order, those that touch or overlap as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def plain(text: str) -> str:
    """Return a text with `\\n` as the only line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _key(text: str) -> str:
    """Return the first letters and digits of a text: what stays the same however a client stores it."""
    return "".join(char for char in text[: 4 * _KEY_CHARS] if char.isalnum())[:_KEY_CHARS].lower()


def _time(line: _HistoryLine | _HistoryStamp) -> float:
    return line.timestamp or line.ts * 1000


def _moment(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp() * 1000
    except ValueError:
        return None
