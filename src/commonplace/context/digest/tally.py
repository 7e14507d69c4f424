"""The tally of a session: which names occurred where and when, and which lines mention them.

A *step* is one message of the person, or one answer of the model with its calls and their outputs. Everything that a
digest is made of is kept here per event: occurrences as plain numbers, and the lines that may be shown, the newest of
each sort within a bound. Nothing is ever counted twice, and a digest reads nothing else.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final

import msgspec

from commonplace.context.digest import shell, sources
from commonplace.context.digest.names import Kind, SessionName, SessionNames
from commonplace.context.digest.sources import Edit, PlannedStep
from commonplace.protocol import commands, fragments, items
from commonplace.rollout.transcript import output_ok

MOST_EACH: Final = 3
"""Of a name that is all over one event, so many occurrences count."""
_MOST_SENTENCES: Final = 1_500
"""How many sentences of answers a tally keeps, the newest."""
_MOST_ERRORS: Final = 150
"""How many error lines it keeps."""
_MOST_LINES: Final = 900
"""How many lines of edits, and of definitions, it keeps."""
_MOST_SAID: Final = 400
"""How many messages of the person it keeps."""
_MOST_RECENT: Final = 80
"""How many calls and outputs it keeps for the record of the last steps."""
_RECENT_CALL: Final = 600
"""How many characters of a call that record shows."""
_RECENT_OUTPUT: Final = 400
"""How many characters of an output that record shows."""
_KEPT_OUTPUT: Final = 1_000_000
"""How many bytes of the newest outputs are kept, so that lines of them can be shown."""
_SHORTEST_LINE: Final = 12
"""Shorter lines of outputs, in characters, are not shown."""
_LONGEST_LINE: Final = 170
"""Longer lines of outputs, in characters, are not shown."""
_LONGEST_TEXT: Final = 400_000
"""How much of one event is looked at: its head and its tail."""


class Channel(IntEnum):
    """Where a name occurred."""

    USER = 0
    ASSISTANT = 1
    CALL = 2
    RESULT = 3


class TallyMessage(msgspec.Struct):
    """A message of the person or of the model."""

    step: int
    text: str


class CommandRun(msgspec.Struct):
    """The last run of a command, and how it ended."""

    step: int
    line: str
    name: int
    ok: bool | None = None
    """Whether it succeeded; None if that is not known, as behind a pipe."""
    error: str = ""
    is_telling: bool = True
    """How its line ended tells how it ended."""


class TallyLine(msgspec.Struct):
    """A line that may be shown, and the file that it belongs to."""

    step: int
    text: str
    file: int | None = None
    is_first: bool = False
    names: tuple[int, ...] | None = None
    """The names in it, once somebody asked: of most lines nobody ever does."""


class Tally:
    """Everything that a digest of one session is made from."""

    def __init__(self, cwd: str = "", branch: str | None = None) -> None:
        self.names = SessionNames(cwd)
        if branch:
            self.names.add_branch(branch)
        self.step = 0
        self.ids: array[int] = array("I")
        self.steps: array[int] = array("I")
        self.channels: array[int] = array("B")
        self.often: array[int] = array("B")
        self.edited: array[int] = array("I")
        self.failed: array[int] = array("I")
        self.said: deque[TallyMessage] = deque(maxlen=_MOST_SAID)
        self.first_said: TallyMessage | None = None
        self.answers: deque[TallyMessage] = deque(maxlen=2)
        self.long_answer: TallyMessage | None = None
        self.sentences: deque[TallyLine] = deque(maxlen=_MOST_SENTENCES)
        self.commands: dict[str, CommandRun] = {}
        self.errors: deque[TallyLine] = deque(maxlen=_MOST_ERRORS)
        self.edits: deque[TallyLine] = deque(maxlen=_MOST_LINES)
        self.definitions: deque[TallyLine] = deque(maxlen=_MOST_LINES)
        self.edit_counts: Counter[int] = Counter()
        self.files: dict[int, int] = {}
        """For each name, the file in which it was last seen."""
        self.plan: list[tuple[bool, str]] = []
        self.recent: deque[TallyMessage] = deque(maxlen=_MOST_RECENT)
        """What happened last, call by call, each cut short."""
        self.last_user: frozenset[int] = frozenset()
        self._calls: dict[str, _OpenCall] = {}
        self._outputs: deque[TallyMessage] = deque()
        self._output_bytes = 0
        self._answering = False
        self._turns: list[int] = []

    def see(self, view: items.View, *, ok: bool | None = None) -> None:
        """Take in one item."""
        match view:
            case items.Message(role="user"):
                self._user(view)
            case items.Message(role="assistant"):
                self._begin_answer()
                self._assistant(view.text())
            case items.FunctionCall():
                self._begin_answer()
                self._call(view.call_id, view.name, view.arguments)
            case items.CustomToolCall():
                self._begin_answer()
                self._call(view.call_id, view.name, view.input)
            case items.LocalShellCall():
                self._begin_answer()
                self._call(view.call_id or "", "local_shell", bytes(view.action).decode("utf-8", "replace"))
            case items.FunctionCallOutput() | items.CustomToolCallOutput():
                text = view.output if isinstance(view.output, str) else _texts(view.output)
                self._output(view.call_id or "", text, output_ok(view.output) if ok is None else ok)
            case _:
                pass

    def roll_back(self, turns: int) -> None:
        """Forget the last turns of the person and everything since: they were taken back."""
        if turns <= 0 or not self._turns:
            return
        first = self._turns[-min(turns, len(self._turns))]
        self._turns = [step for step in self._turns if step < first]
        place = bisect_left(self.steps, first)
        for numbers in (self.ids, self.steps, self.channels, self.often):
            del numbers[place:]
        for kept in (
            self.said,
            self.answers,
            self.sentences,
            self.errors,
            self.edits,
            self.definitions,
            self._outputs,
            self.recent,
        ):
            while kept and kept[-1].step >= first:
                kept.pop()
        for pairs in (self.edited, self.failed):
            while pairs and pairs[-1] >= first:
                del pairs[-2:]
        self.commands = {name: ran for name, ran in self.commands.items() if ran.step < first}
        if self.long_answer is not None and self.long_answer.step >= first:
            self.long_answer = None
        if self.first_said is not None and self.first_said.step >= first:
            self.first_said = None
        self.last_user = frozenset(self.names.count(self.said[-1].text)) if self.said else frozenset()
        self._calls.clear()
        self.step, self._answering = first - 1, False

    def _begin_answer(self) -> None:
        """Begin a step of the model: everything that it says and calls until it gets something back."""
        if not self._answering:
            self._answering = True
            self.step += 1

    def _user(self, message: items.Message) -> None:
        words = fragments.own_words(message)
        if fragments.is_summary_message(message):
            self._fold(message.text())
            return
        if not words and not (words := "\n".join(fragments.further_words(message))):
            self._count(Channel.RESULT, _bounded(message.text()))
            return
        self._answering = False
        self.step += 1
        self._turns.append(self.step)
        messages = TallyMessage(self.step, words)
        self.said.append(messages)
        self.first_said = self.first_said or messages
        self.last_user = frozenset(self._count(Channel.USER, _bounded(words)))

    def _fold(self, text: str) -> None:
        """Take in what an earlier summary says: of what it rests on, it may be all that is left."""
        self._count(Channel.ASSISTANT, _bounded(text))
        for sentence in sources.sentences(text):
            self.sentences.append(self._tally_line(sentence))

    def _assistant(self, text: str) -> None:
        if not text.strip():
            return
        self.answers.append(TallyMessage(self.step, text))
        self._recently(text, _RECENT_CALL)
        if len(text) > sources.LONG_ANSWER:
            self.long_answer = self.answers[-1]
        self._count(Channel.ASSISTANT, _bounded(text))
        for sentence in sources.sentences(text):
            self.sentences.append(self._tally_line(sentence))

    def _call(self, call_id: str, name: str, arguments: str) -> None:
        line, _ = commands.of_call(name, arguments)
        edits = sources.edits(name, arguments)
        found = self._count(Channel.CALL, _bounded(line or sources.argument_strings(arguments)))
        opened = _OpenCall(name, reads=sources.reads(name, arguments))
        if (plan := sources.plan(name, arguments)) is not None:
            self.plan = plan
        elif (step := sources.planned_step(name, arguments)) is not None:
            self.plan = _with_step(self.plan, step)
        for edit in edits:
            self._edit(edit, found)
        self._recently(f"$ {line}" if line else f"$ {name} {sources.argument_strings(arguments)}", _RECENT_CALL)
        for piece in shell.pieces(line):
            opened.commands.append(self._command(piece))
        if call_id:
            self._calls[call_id] = opened

    def _command(self, piece: shell.CommandPiece) -> str:
        number = self.names.number(SessionName(Kind.COMMAND, piece.normal))
        for branch in piece.branches:
            self.names.add_branch(branch)
        self._note(Channel.CALL, {number: 1})
        self.commands.pop(piece.normal, None)
        self.commands[piece.normal] = CommandRun(self.step, piece.text, number, is_telling=piece.is_telling)
        return piece.normal

    def _edit(self, edit: Edit, counts: Counter[int]) -> None:
        number = self._file(edit.path)
        self.edited.extend(value for each in counts for value in (each, self.step))
        if number is not None:
            self.edit_counts[number] += 1
        for place, text in enumerate(edit.lines):
            told = self._tally_line(text, number)
            self._place(self.names_in(told), number)
            told.is_first = place < 2
            self.edits.append(told)

    def _output(self, call_id: str, text: str, ok: bool) -> None:
        self._answering = False
        call = self._calls.pop(call_id, None) or _OpenCall("")
        body = commands.ended(text).text
        found = self._count(Channel.RESULT, _bounded(body))
        if not ok:
            self.failed.extend(value for each in found for value in (each, self.step))
        self._keep(body)
        self._recently(f"→ {body}" if body.strip() else "→", _RECENT_OUTPUT)
        errors = sources.error_lines(body) if not ok or (call.commands and not call.reads) else []
        for line in errors:
            self.errors.append(self._tally_line(line))
        for normal in call.commands:
            ran = self.commands.get(normal)
            if ran is not None:
                ran.ok = ok if ran.is_telling else None
                ran.error = errors[0] if errors and not ran.ok else ""
        if call.reads:
            file = self._file(call.reads)
            self._place(found, file)
            for line in sources.definitions(body):
                self.definitions.append(self._tally_line(line, file))
        else:
            for path, line in sources.found_lines(body):
                self._place(self.names.count(line), self._file(path))

    def _file(self, path: str) -> int | None:
        """Return the number of a path."""
        return next((each for each in self.names.count(path) if self.names.known[each].kind is Kind.PATH), None)

    def _place(self, names: Iterable[int], file: int | None) -> None:
        """Note that names were seen in a file."""
        if file is not None:
            self.files.update((name, file) for name in names if self.names.known[name].kind is not Kind.PATH)

    def _recently(self, text: str, most: int) -> None:
        flat = text.strip()
        self.recent.append(
            TallyMessage(self.step, flat if len(flat) <= most else f"{flat[: most // 2]} … {flat[-most // 2 :]}")
        )

    def _keep(self, text: str) -> None:
        """Keep the newest outputs, so that lines of them can be shown."""
        text = _bounded(text)
        self._outputs.append(TallyMessage(self.step, text))
        self._output_bytes += len(text)
        while self._output_bytes > _KEPT_OUTPUT and len(self._outputs) > 1:
            self._output_bytes -= len(self._outputs.popleft().text)

    def shown_lines(self) -> Iterator[TallyLine]:
        """Yield lines of the newest outputs with the names in them, the newest first."""
        for output in reversed(self._outputs):
            for line in reversed(output.text.split("\n")):
                flat = line.strip()
                if _SHORTEST_LINE <= len(flat) <= _LONGEST_LINE and (names := self.names.count(flat)):
                    yield TallyLine(output.step, flat, names=tuple(names))

    def names_in(self, line: TallyLine) -> tuple[int, ...]:
        """Return the names in a line."""
        if line.names is None:
            line.names = tuple(self.names.count(line.text))
        return line.names

    def _tally_line(self, text: str, file: int | None = None) -> TallyLine:
        return TallyLine(self.step, text, file)

    def _count(self, channel: Channel, text: str) -> Counter[int]:
        found = self.names.count(text)
        self._note(channel, found)
        return found

    def _note(self, channel: Channel, counts: Counter[int] | dict[int, int]) -> None:
        self.ids.extend(counts)
        self.often.extend(min(times, MOST_EACH) for times in counts.values())
        self.steps.extend([self.step] * len(counts))
        self.channels.extend([channel] * len(counts))


class _OpenCall(msgspec.Struct):
    """A call whose output has not come yet."""

    name: str
    commands: list[str] = []
    reads: str = ""
    """The file that it reads."""


def _with_step(plan: list[tuple[bool, str]], step: PlannedStep) -> list[tuple[bool, str]]:
    """Return a plan with one step more, or with the step of that number changed."""
    place = step.number - 1
    if not 0 <= place < len(plan):
        return [*plan, (step.is_open, step.text)] if step.text and not step.number else plan
    return [*plan[:place], (step.is_open, step.text or plan[place][1]), *plan[place + 1 :]]


def _texts(parts: list[items.Content]) -> str:
    return "\n".join(part.text for part in parts if part.text)


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]}\n{text[-half:]}"
