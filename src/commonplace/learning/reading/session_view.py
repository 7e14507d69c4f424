"""A session as an extractor reads it: who said what, what was run and how it ended, turn by turn.

Only what may teach something is in a view, and whose it is is always known: the person's own words, the model's, the
outputs of tools. What a program put into the conversation, what came out of a memory, and what a fork inherits from its
parent are left out or marked. Each event knows the bytes of the ledger that it stands in, so that whatever is learned
can be shown in its own words. Secrets are taken out of all that may be quoted as the session is read, so that no later
step can let one through by changing a letter. What a view holds is bounded, whatever the session.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from commonplace.importers import prompt_history
from commonplace.importers.prompt_history import SessionPrompts, Spans
from commonplace.learning.reading import question_tools
from commonplace.protocol import commands, fragments, items, memory_traces, rollout
from commonplace.protocol.rollout import Line, Origin
from commonplace.redact import redact, redact_all
from commonplace.rollout import blobs, chain, layout, reader
from commonplace.rollout.fold import LedgerFold
from commonplace.rollout.transcript import output_ok

MAX_EVENTS: Final = 20_000
"""How many lines of a session are read; it bounds time and memory for any file."""
_MAX_WORDS: Final = 16_000
"""How many characters of a person's message are kept."""
_MAX_ANSWER: Final = 8_000
"""How many characters of an answer, of a command and of arguments are kept."""
_KEPT_OUTPUT: Final = 4_000
"""How much of an output's head, and of its tail, is kept."""

Voice = Literal["user", "reply", "command", "shell"]


class EventSpan(msgspec.Struct, frozen=True):
    """The position of an event in its ledger."""

    turn: int
    start: int
    end: int
    time: str | None = None


class UserText(msgspec.Struct):
    """A text of the person: typed, answered to a tool, given to a command, or run in their own shell."""

    at: EventSpan
    text: str
    voice: Voice = "user"
    author: str | None = None
    """Who wrote it if its source says that the person did not: `plan` or `harness`."""
    pasted: tuple[tuple[int, int], ...] = ()
    """Which stretches its source calls pasted."""


class ModelText(msgspec.Struct):
    """A message of the model."""

    at: EventSpan
    text: str


class ToolUse(msgspec.Struct):
    """A tool call and its result."""

    at: EventSpan
    name: str
    arguments: str
    command: str = ""
    """For a shell: the command line."""
    folder: str | None = None
    """For a shell: the folder that the call names."""
    cwd: str = ""
    """The session's working folder when the call was made."""
    ok: bool | None = None
    """None while no output is known."""
    code: int | None = None
    output: str = ""
    output_at: EventSpan | None = None
    is_memory: bool = False
    """It was answered out of a memory."""
    refused: bool = False
    """The person did not let it run."""
    quotes_person: bool = True
    """The agent itself wrote the output of a refused call, so that it may quote the person."""


class Interruption(msgspec.Struct):
    """The person interrupted the turn."""

    at: EventSpan


class HistoryCut(msgspec.Struct):
    """The history was compacted at this point."""

    at: EventSpan


ViewEvent = UserText | ModelText | ToolUse | Interruption | HistoryCut


class Turn(msgspec.Struct):
    """From one prompt to the next."""

    number: int
    events: list[ViewEvent] = []
    taken_back: bool = False


class SessionView(msgspec.Struct):
    """One session as learning reads it."""

    thread_id: str
    path: str
    source: str
    cwd: str
    project: str
    branch: str | None
    started: str
    updated: str
    turns: list[Turn] = []
    repository_url: str | None = None
    """The repository and the commit that the session noted when it started."""
    commit_hash: str | None = None

    def events(self) -> list[ViewEvent]:
        """Return everything that happened and was not taken back, in order."""
        return [event for turn in self.turns if not turn.taken_back for event in turn.events]

    def dialogue_bytes(self) -> int:
        """Return how much was said, run and printed, as far as it is in the view."""
        ran = [event for event in self.events() if isinstance(event, ToolUse)]
        return self.spoken_bytes() + sum(_size(each.command or each.arguments) + _size(each.output) for each in ran)

    def spoken_bytes(self) -> int:
        """Return how much the person and the model said to each other."""
        return sum(_size(event.text) for event in self.events() if isinstance(event, UserText | ModelText))


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


_CODEX_FOLDERS: Final = frozenset({layout.SESSIONS, layout.ARCHIVED})
_context: Final = msgspec.json.Decoder(rollout.TurnContext)
_REFUSALS: Final = ("The user doesn't want to proceed", "The user doesn't want to take this action", "User rejected")
_REFUSED: Final = ("rejected by user", "exec command rejected", "patch rejected by user", "aborted by user")
_REFUSAL: Final = max(map(len, _REFUSED))


def read(path: Path, *, quotes_tools: bool = True) -> SessionView:
    """Read a session (raises NotASession, LedgerError).

    `quotes_tools` is false for a reader that of tools repeats only commands, what failed, and questions: secrets stay
    in the outputs of calls that succeeded and in other arguments, because to look for them takes most of the time.
    """
    return _SessionFold(chain.open_ledger(path)).view_of_ledger(quotes_tools=quotes_tools)


class _SessionFold(LedgerFold):
    def __init__(self, ledger: chain.Ledger) -> None:
        super().__init__()
        meta = ledger.meta
        self.ledger = ledger
        self.view = SessionView(
            meta.id,
            str(ledger.path),
            rollout.source_name(meta.source),
            meta.cwd,
            meta.project(),
            meta.git.branch if meta.git else None,
            meta.timestamp,
            meta.timestamp,
            repository_url=meta.git.repository_url if meta.git else None,
            commit_hash=meta.git.commit_hash if meta.git else None,
        )
        self.cwd = meta.cwd
        self.inherited = _inherited_turns(ledger)
        self.current = Turn(self.inherited)
        self.view.turns.append(self.current)
        self.calls: dict[str, ToolUse] = {}
        self.count = 0
        self.prompts = _typed_prompts(ledger)

    def view_of_ledger(self, *, quotes_tools: bool) -> SessionView:
        for record in reader.forward(self.ledger.path):
            if isinstance(record, Line) and self.count < MAX_EVENTS:
                self.view.updated = record.timestamp or self.view.updated
                self.see(record)
        _take_out(self.view, quotes_tools=quotes_tools)
        return self.view

    def compacted(self, line: Line) -> None:
        self._add(HistoryCut(self._at(line)))

    def other(self, line: Line) -> None:
        if line.type == "turn_context":
            self.cwd = _context.decode(line.payload).cwd or self.cwd

    def turn_ended(self, line: Line, *, aborted: bool) -> None:
        if aborted:
            self._stopped(line)

    def rolled_back(self, count: int) -> None:
        standing = [turn for turn in self.view.turns if not turn.taken_back and turn.number > self.inherited]
        for turn in standing[len(standing) - count :] if count < len(standing) else standing:
            turn.taken_back = True
        self._begin()

    def _begin(self) -> None:
        self.current = Turn(self.inherited + self.turn)
        self.view.turns.append(self.current)

    def item(self, view: items.View, line: Line, *, begins_turn: bool) -> None:
        if begins_turn:
            self._begin()
        origin = line.source()
        match view:
            case items.Message(role="user"):
                self._user(view, line)
            case items.Message(role="assistant"):
                self._add(ModelText(self._at(line), _cut(view.text(), _MAX_ANSWER)))
            case items.FunctionCall():
                self._call(line, view.name, view.arguments, view.call_id, view.namespace)
            case items.CustomToolCall():
                self._call(line, view.name, view.input, view.call_id, None)
            case items.LocalShellCall():
                self._call(line, "local_shell", _action(view), view.call_id or "", None)
            case items.FunctionCallOutput() | items.CustomToolCallOutput():
                self._output(line, view.call_id or "", view.output, origin)
            case _:
                pass

    def _user(self, message: items.Message, line: Line) -> None:
        if fragments.is_recalled(message):
            return
        at = self._at(line)
        noted = message.internal_chat_message_metadata_passthrough
        kinds = (noted.content_item_kinds if noted else None) or []
        if words := fragments.own_words(message):
            said = UserText(at, _cut(words, _MAX_WORDS))
            said.author, said.pasted = self._authorship(line, words)
            is_line = self.view.source == "exec" and (message.content[-1].text or "").endswith("\n")
            if is_line or fragments.is_from_stdin(message):  # a prompt that is an argument ends without a line end
                said.author = "harness"
            self._add(said)
        for kind, part in zip(kinds, message.content, strict=False):
            text = part.text or ""
            if kind == "imported.reply":
                self._add(UserText(at, _cut(text, _MAX_WORDS), "reply"))
            elif kind == "imported.slash_command" and (given := fragments.inside(text, "command-args")):
                self._add(UserText(at, _cut(given, _MAX_WORDS), "command"))
            elif kind == "imported.user_memory" and (given := fragments.inside(text, "user-memory-input")):
                self._add(UserText(at, _cut(given, _MAX_WORDS), "user"))
            elif kind == "imported.user_shell" and (given := fragments.inside(text, "bash-input")):
                self._add(UserText(at, _cut(given, _MAX_WORDS), "shell"))
            elif kind == "imported.interrupt":
                self._stopped(line)

    def _authorship(self, line: Line, words: str) -> tuple[str | None, Spans]:
        """Return who wrote a message and what of it was pasted: as its import noted, else as Codex's history tells."""
        origin = line.source()
        if origin is not None:
            spans = origin.pasted
            if spans and line.blob:  # the message was shortened: a paste that reaches into the gap goes to the end
                gap = words.find(blobs.GAP) if blobs.GAP in words else len(words)
                spans = tuple((start, end if end <= gap else len(words)) for start, end in spans if start < gap)
            return origin.author, tuple((start, min(end, _MAX_WORDS)) for start, end in spans if start < _MAX_WORDS)
        if self.prompts is not None and self.prompts.lacks(words, line.timestamp or ""):
            return "harness", ()
        return None, ()

    def _stopped(self, line: Line) -> None:
        if not self.current.events or not isinstance(self.current.events[-1], Interruption):
            self._add(Interruption(self._at(line)))

    def _call(self, line: Line, name: str, arguments: str, call_id: str, namespace: str | None) -> None:
        command, folder = commands.of_call(name, arguments)
        if namespace and name in question_tools.TOOLS:
            name = f"{namespace}.{name}"  # a server's tool of that name asks nobody
        called = ToolUse(self._at(line), name, _cut(arguments, _MAX_ANSWER), _cut(command, _MAX_ANSWER), folder)
        called.cwd = self.cwd
        called.is_memory = memory_traces.is_memory_tool(name, namespace) or memory_traces.reads_memory(arguments)
        self.calls[call_id] = called
        self._add(called)

    def _output(self, line: Line, call_id: str, output: str | list[items.Content], origin: Origin | None) -> None:
        called = self.calls.pop(call_id, None)
        if called is None:
            return
        text = output if isinstance(output, str) else "\n".join(part.text for part in output if part.text)
        ended = commands.ended(text)
        called.code = ended.code
        called.output = _ends(ended.text)
        called.output_at = self._at(line)
        noted = origin.ok if origin is not None else None
        called.ok = noted if noted is not None else ended.code == 0 if ended.code is not None else output_ok(output)
        called.is_memory = called.is_memory or (origin is not None and origin.memory)
        if called.name == question_tools.CODEX and (said := question_tools.codex_reply(called.arguments, text)):
            self._add(UserText(self._at(line), _cut(said, _MAX_WORDS), "reply"))
        called.refused = text.startswith(_REFUSALS) or text.lstrip()[:_REFUSAL].lower().startswith(_REFUSED)
        called.quotes_person = origin is not None and origin.refused

    def _add(self, event: ViewEvent) -> None:
        self.current.events.append(event)
        self.count += 1

    def _at(self, line: Line) -> EventSpan:
        return EventSpan(self.current.number, line.offset, line.offset + line.size, line.timestamp)


def _inherited_turns(ledger: chain.Ledger) -> int:
    """Count the turns that a fork has from its parents: they taught when the parents were read."""
    fold = LedgerFold()
    for part in reversed(ledger.parts[1:]):
        fold.run(reader.forward(part.path, end=part.end))
    return fold.turn


def _typed_prompts(ledger: chain.Ledger) -> SessionPrompts | None:
    """Return what was typed in a session that Codex's terminal wrote; its other clients write no history."""
    if ledger.meta.imported is not None or ledger.meta.source != "cli":
        return None
    history = prompt_history.beside(ledger.path, _CODEX_FOLDERS)
    return history.session(ledger.meta.id) if history is not None else None


class _ShellAction(msgspec.Struct):
    command: list[str] = []


def _action(call: items.LocalShellCall) -> str:
    try:
        return msgspec.json.encode(msgspec.json.decode(call.action, type=_ShellAction)).decode() if call.action else ""
    except msgspec.DecodeError:
        return ""


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[:size]


def _ends(text: str) -> str:
    if len(text) <= 2 * _KEPT_OUTPUT:
        return text
    return f"{text[:_KEPT_OUTPUT]}\n…\n{text[-_KEPT_OUTPUT:]}"


def _take_out(view: SessionView, *, quotes_tools: bool) -> None:
    """Take secrets out of every text of a view that may be quoted."""
    places = [
        (event, field)
        for turn in view.turns
        for event in turn.events
        for field in _fields(event, quotes_tools=quotes_tools)
        if getattr(event, field)
    ]
    clean = redact_all([str(getattr(event, field)) for event, field in places])
    for (event, field), text in zip(places, clean, strict=True):
        if isinstance(event, UserText) and event.pasted and text != event.text:
            event.pasted = _moved(event.pasted, event.text, text)
        setattr(event, field, text)


def _moved(spans: Spans, text: str, clean: str) -> Spans:
    """Return where stretches of a text are after secrets were taken out of it; a secret at a seam belongs to both."""

    def place(at: int) -> int | None:
        if clean.startswith(text[:at]):
            return at
        if clean.endswith(text[at:]):
            return len(clean) - len(text) + at
        before = redact(text[:at])
        return len(before) if clean.startswith(before) else None

    moved = [(place(start), place(end)) for start, end in spans]
    # Where a seam cannot be found again, nothing of the text is surely typed.
    return tuple((start or 0, len(clean) if end is None else end) for start, end in moved)


def _fields(event: ViewEvent, *, quotes_tools: bool) -> tuple[str, ...]:
    """Return the fields of an event that may be quoted."""
    if isinstance(event, UserText | ModelText):
        return ("text",)
    if not isinstance(event, ToolUse):
        return ()
    if quotes_tools or event.name in question_tools.TOOLS:
        return ("arguments", "command", "output")
    return ("command",) if event.ok is True else ("command", "output")
