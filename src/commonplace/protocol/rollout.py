"""Rollout lines: the envelope around everything a session file holds, and the payloads that replay needs.

A line is parsed in two steps. The envelope (`Line`) is read for every line and keeps its payload as bytes; the
payload is decoded only by whoever needs it. Three generations are read: bare 2025 lines (no envelope), *legacy*
lines, and *paginated* lines with ordinals. One is written: the envelope with keys in Codex's order.

Invariants: a `Line` never builds its payload; a line that cannot be used is described by a `Skipped`, never
dropped in silence; `encode` yields exactly one newline, at the end.
"""

from __future__ import annotations

import codecs
from typing import Any, Final

import msgspec

from commonplace.protocol.remotes import remote_identity

MAX_LINE_BYTES: Final = 128 * 2**20
"""Longest line that is loaded; real compactions with copied images reach tens of megabytes."""
MAX_LINE_VALUES: Final = 4 * 2**20
"""Most commas in one line: bounds what decoding can build out of tiny values."""
_TEXT_PIECE: Final = 2**20

OWN_TYPE: Final = "commonplace"
"""Lines of our own; Codex ignores lines of a type it does not know."""


class Skipped(msgspec.Struct, frozen=True):
    """A stretch of a file that could not be used, and why."""

    offset: int
    bytes: int
    reason: str


class LineError(ValueError):
    """The line cannot be used; the text is the reason that reports show."""


class BlobRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a payload's oversized value went: `pointer` is the JSON pointer inside the payload."""

    pointer: str
    sha256: str
    bytes: int
    media_type: str
    restore: dict[str, Any] | None = None
    """For media: the content item that stood there, its data URL cut down to the part before the data."""


REPEATED: Final = "again:"
"""How the record id of a line begins that repeats an earlier line."""


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a line of an imported session comes from, and what its source knew that an item cannot say."""

    id: str = ""
    """The record's id in the source; several lines of one record share it."""
    offset: int | None = None
    """Where the record begins in the source's file."""
    ok: bool | None = None
    """For a tool's output: whether the source says that the call worked."""
    memory: bool = False
    """The text came out of a memory, so that nothing is learned from it again."""
    refused: bool = False
    """For a tool's output: the agent itself wrote it, since the person refused the call."""
    name: str | None = None
    """Who spoke, where several people do."""
    author: str | None = None
    """Who wrote the whole text of a user's message if the person did not: `plan` (an agent wrote it, a key press sent
    it) or `harness` (a program). None where the source does not tell.
    """
    pasted: tuple[tuple[int, int], ...] = ()
    """Which stretches of a user's message the person pasted: characters of `fragments.own_words`."""


class Line(msgspec.Struct, gc=False, kw_only=True):
    """The envelope of one line; `offset` and `size` say where its bytes stand in the file."""

    # In the order of the wire, which is the order that decoding expects them in.
    timestamp: str | None = None
    ordinal: int | None = None
    type: str
    payload: msgspec.Raw
    metadata: msgspec.Raw = msgspec.Raw()
    blob: msgspec.Raw = msgspec.Raw()
    origin: msgspec.Raw = msgspec.Raw()
    # Set by the reader, whatever a file says; the odd names keep them apart from the keys of the format.
    offset: int = msgspec.field(default=-1, name="::offset")
    size: int = msgspec.field(default=0, name="::size")

    def blobs(self) -> list[BlobRef]:
        """Return the references to spilled values (none for a line that spilled nothing)."""
        if not self.blob:
            return []
        try:
            return _blob_refs.decode(self.blob)
        except (msgspec.DecodeError, RecursionError):
            return []

    @property
    def is_repeat(self) -> bool:
        """Whether an import repeats an earlier line here, which was taken back and counts after all."""
        origin = self.source() if REPEATED.encode() in bytes(self.origin) else None
        return origin is not None and origin.id.startswith(REPEATED)

    def source(self) -> Origin | None:
        """Return where the line was imported from (None for a line that was not)."""
        if not self.origin:
            return None
        try:
            return _origin.decode(self.origin)
        except (msgspec.DecodeError, RecursionError):
            return None


class GitInfo(msgspec.Struct, omit_defaults=True):
    """The repository state noted when a thread was created."""

    commit_hash: str | None = None
    branch: str | None = None
    repository_url: str | None = None


class HistoryBase(msgspec.Struct):
    """The prefix of another file that a fork inherits; `thread_id` is really that file's rollout id."""

    thread_id: str
    end_byte_offset: int
    end_ordinal_exclusive: int | None = None
    path: str | None = None
    """Our own addition: where the file was when the fork was made, for parents in another home."""


class ContextWindow(msgspec.Struct):
    """Identity of the first context window."""

    window_id: str | None = None


class Imported(msgspec.Struct):
    """Where a session of another agent was imported from."""

    source: str = ""
    path: str = ""
    project: str | None = None
    """The identity of the project that its folder belonged to at that time."""


class SessionMeta(msgspec.Struct, kw_only=True):
    """The first line of a thread: who, where, when, from what."""

    id: str
    timestamp: str = ""
    cwd: str = ""
    originator: str = ""
    cli_version: str = ""
    source: Any = None
    thread_source: str | None = None
    session_id: str | None = None
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    model_provider: str | None = None
    memory_mode: str | None = None
    history_mode: str = "legacy"
    history_base: HistoryBase | None = None
    context_window: ContextWindow | None = None
    git: GitInfo | None = None
    imported: Imported | None = None

    def project(self) -> str:
        """Return what the session says about its project: the repository, else the folder."""
        url = self.git.repository_url if self.git else None
        noted = self.imported.project if self.imported else None
        return (url and remote_identity(url)) or noted or self.cwd


class TurnContext(msgspec.Struct):
    """The settings one turn ran under."""

    turn_id: str | None = None
    cwd: str = ""
    model: str = ""
    comp_hash: str | None = None
    collaboration_mode: Any = None


class PreviousSettings(msgspec.Struct, frozen=True):
    """What the last user turn ran with; the next turn compares itself to it."""

    model: str
    comp_hash: str | None = None
    collaboration_mode: Any = None
    """The mode as the turn's context holds it; `context.sections.mode_of` reads it."""


class ResumeMetadata(msgspec.Struct):
    """What newer Codex versions note at a checkpoint so that nothing older need be read."""

    previous_turn_settings: PreviousSettings | None = None


class Compacted(msgspec.Struct):
    """A checkpoint: `replacement_history` is the whole history from here on."""

    message: str
    replacement_history: list[msgspec.Raw] | None = None
    replacement_history_metadata: list[msgspec.Raw] | None = None
    window_number: int | None = None
    window_id: str | int | None = None
    first_window_id: str | None = None
    previous_window_id: str | None = None
    resume_metadata: ResumeMetadata | None = None

    def is_final(self, history_mode: str) -> bool:
        """Say whether Codex never looks at what stands before this compaction, even when a rollback follows."""
        if self.replacement_history is None or self.window_number is None:
            return False
        return history_mode == "paginated" or self.resume_metadata is not None

    def number(self) -> int | None:
        """Return the window number; files of 2025 put it where the id stands now."""
        if self.window_number is not None:
            return self.window_number
        return self.window_id if isinstance(self.window_id, int) else None


class WorldState(msgspec.Struct):
    """A snapshot (`full`) or merge patch of the context that was injected."""

    full: bool = False
    state: dict[str, Any] = {}


class _OldMeta(msgspec.Struct):
    id: str
    timestamp: str


class _Bare(msgspec.Struct):
    type: str = ""
    record_type: str | None = None


_line = msgspec.json.Decoder(Line)
_old_meta = msgspec.json.Decoder(_OldMeta)
_bare = msgspec.json.Decoder(_Bare)
_origin = msgspec.json.Decoder(Origin)
_blob_refs = msgspec.json.Decoder(list[BlobRef])
_meta = msgspec.json.Decoder(SessionMeta)
_turn_context = msgspec.json.Decoder(TurnContext)
_compacted = msgspec.json.Decoder(Compacted)
_world_state = msgspec.json.Decoder(WorldState)


decode_envelope: Final = _line.decode
"""The fast half of `decode`, for readers that know the line is UTF-8 and not dense; raises msgspec.DecodeError."""


def decode(raw: bytes) -> Line:
    """Return the envelope of one line's bytes.

    Raises:
        LineError: the line cannot be used; its text is the reason.
    """
    if len(raw) > MAX_LINE_VALUES and raw.count(b",") > MAX_LINE_VALUES:
        raise LineError("too_dense")
    try:
        # An envelope leaves its payload undecoded, so UTF-8 is checked here, once, for every reader alike.
        if not raw.isascii():
            _check_text(raw)
        line = _line.decode(raw)
    except UnicodeDecodeError:
        raise LineError("invalid_utf8") from None
    except msgspec.ValidationError:
        return _decode_bare(raw)
    except msgspec.DecodeError:
        raise LineError("not_json") from None
    except RecursionError:
        raise LineError("too_deep") from None
    line.size = len(raw)
    line.offset = -1
    return line


def _check_text(raw: bytes) -> None:
    """Raise UnicodeDecodeError unless the bytes are UTF-8, a piece at a time: whole, the text may take four times."""
    if len(raw) <= _TEXT_PIECE:
        raw.decode()
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(raw)
    for start in range(0, len(raw), _TEXT_PIECE):
        decoder.decode(view[start : start + _TEXT_PIECE])
    decoder.decode(b"", final=True)


def _decode_bare(raw: bytes) -> Line:
    """Wrap a 2025 line (no envelope) so that the rest of the program sees one format."""
    try:
        bare = _bare.decode(raw)
        if bare.record_type is not None:
            return Line(type="state", payload=msgspec.Raw(raw), size=len(raw))
        if bare.type:
            if b'"timestamp"' in raw[:64]:  # an envelope that lost its payload is not a bare item
                raise LineError("not_a_record")
            return Line(type="response_item", payload=msgspec.Raw(raw), size=len(raw))
        meta = _old_meta.decode(raw)
    except msgspec.DecodeError:
        raise LineError("not_a_record") from None
    return Line(type="session_meta", payload=msgspec.Raw(raw), timestamp=meta.timestamp, size=len(raw))


def encode(
    line_type: str,
    payload: Any,
    *,
    timestamp: str,
    ordinal: int | None = None,
    metadata: Any = None,
    blob: list[BlobRef] | None = None,
    origin: Origin | None = None,
) -> bytes:
    """Return one line, newline included, in the key order that Codex writes."""
    envelope: dict[str, Any] = {"timestamp": timestamp}
    if ordinal is not None:
        envelope["ordinal"] = ordinal
    envelope["type"] = line_type
    envelope["payload"] = payload
    if metadata is not None:
        envelope["metadata"] = metadata
    if blob:
        envelope["blob"] = blob
    if origin is not None:
        envelope["origin"] = origin
    return msgspec.json.encode(envelope).replace(b"\n", b" ") + b"\n"


def session_meta(line: Line) -> SessionMeta:
    """Decode a `session_meta` payload.

    Raises:
        msgspec.DecodeError: a field has the wrong type, or the id is missing.
    """
    return _meta.decode(line.payload)


def turn_context(line: Line) -> TurnContext:
    """Decode a `turn_context` payload (raises msgspec.DecodeError)."""
    return _turn_context.decode(line.payload)


def compacted(line: Line) -> Compacted:
    """Decode a `compacted` payload.

    Raises:
        msgspec.DecodeError: it is damaged, or its metadata list does not match its history.
    """
    found = _compacted.decode(line.payload)
    notes = found.replacement_history_metadata
    if notes is not None and len(notes) != len(found.replacement_history or ()):
        raise msgspec.ValidationError("replacement_history_metadata does not match replacement_history")
    return found


def checkpoint(line: Line) -> Compacted | None:
    """Return the compaction if the line is a usable one that carries its whole replacement."""
    if line.type != "compacted":
        return None
    try:
        found = compacted(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if found.replacement_history is not None else None


def world_state(line: Line) -> WorldState:
    """Decode a `world_state` payload (raises msgspec.DecodeError)."""
    return _world_state.decode(line.payload)


def source_name(source: Any) -> str:
    """Return a thread's source as one word (`cli`, `exec`, `subagent:review`, …); missing means `vscode`."""
    if source is None:
        return "vscode"
    if isinstance(source, str):
        return source
    if isinstance(source, dict) and len(source) == 1:  # pyright: ignore[reportUnknownArgumentType]
        ((kind, detail),) = source.items()  # pyright: ignore[reportUnknownVariableType]
        if isinstance(detail, dict) and detail:
            detail = next(iter(detail))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return f"{detail}" if kind == "custom" else f"{kind}:{detail}"
    return "unknown"
