"""Real sessions with labels: what people typed, which of it lasts, and how good the memory of those sessions is.

    DIR/homes/claude, codex, …   the sessions, as agents keep them
    DIR/messages.jsonl           what people typed: {session, uuid, text, time}
    LABELS                       what each message is: {session, uuid, label, span?, also?, strength?, topic?, gist?}
    COMMANDS                     commands that are worth a line: {kind, regex, strength, gist}

An entry is good if its evidence is a sentence that a label calls lasting, or if it is the first entry that tells a
wanted command. Recall counts the topics and commands whose strength is `must`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from commonplace.errors import BadInput
from commonplace.importers import sources
from commonplace.memory.listing import Listed
from commonplace.patterns import regex

HOMES: Final = {"claude": "claude-code", "codex": "codex", "opencode": "opencode", "copilot": "copilot"}
"""The folders of agents in a corpus, and the names of the agents here."""
_LASTING: Final = "lasting"
_MUST: Final = "must"
_QUOTE: Final = 120
"""How many characters of a quotation are looked for in a message."""
_SHARED: Final = 0.3
"""The share of words that evidence and a lasting sentence must have in common."""
_SHOWN_ONCE: Final = ("verify", "procedure", "fix", "failure")
_MARKS: Final = regex(r"[^\w]+")
_HINT: Final = "docs/learning.md tells what the folder and the files hold."

Struct = TypeVar("Struct", bound=msgspec.Struct)
Key = tuple[str, str]
"""What an entry tells: a topic or a command, and its name."""


class TypedMessage(msgspec.Struct, frozen=True):
    """One message of a session that a person may have typed."""

    session: str
    text: str
    uuid: str | None = None
    time: str | None = None


class MessageLabel(msgspec.Struct, frozen=True):
    """What a message is, and which sentences of it last."""

    session: str
    label: str
    uuid: str | None = None
    span: tuple[int, int] | None = None
    """The sentence that carries the lesson; None: the whole message."""
    also: tuple[tuple[int, int], ...] = ()
    """Further sentences that are worth a line."""
    strength: str = ""
    topic: str | None = None
    gist: str = ""

    @property
    def key(self) -> Key:
        """The topic that it belongs to, or the message alone."""
        return ("topic", self.topic or self.uuid or "")


class CommandLabel(msgspec.Struct, frozen=True):
    """A command that is worth a line of the memory."""

    regex: str
    gist: str
    strength: str = ""
    kind: str = ""


class LabelledCorpus(msgspec.Struct):
    """Real sessions, and the labels of what was typed in them."""

    places: list[tuple[str, Path]]
    """Whose sessions are where."""
    messages: dict[str, list[TypedMessage]]
    """By session."""
    labels: dict[tuple[str, str | None], MessageLabel]
    commands: list[CommandLabel]

    @property
    def musts(self) -> set[Key]:
        """What a good memory definitely holds."""
        topics = {each.key for each in self.labels.values() if each.strength == _MUST}
        return topics | {("command", each.gist) for each in self.commands if each.strength == _MUST}

    def day_after(self) -> datetime | None:
        """Return the time a day after the last message; None if no message has a time."""
        times = [each.time[:19] for own in self.messages.values() for each in own if each.time]
        try:
            return datetime.fromisoformat(max(times)).replace(tzinfo=UTC) + timedelta(days=1) if times else None
        except ValueError:
            return None


def load(folder: Path, labels: Path, commands: Path | None = None) -> LabelledCorpus:
    """Return the sessions of a folder and their labels.

    Raises:
        BadInput: the folder holds no sessions, or a file cannot be read.
    """
    homes = folder / "homes"
    places = [(agent, homes / name) for name, agent in HOMES.items() if (homes / name).is_dir()]
    unknown = [agent for agent, _ in places if agent not in sources.NAMES]
    if unknown:
        raise BadInput(f"Sessions of {unknown[0]} cannot be imported.", hint=_HINT)
    if not places:
        raise BadInput(f"{folder} holds no folder `homes` with sessions of {', '.join(HOMES)}.", hint=_HINT)
    typed: defaultdict[str, list[TypedMessage]] = defaultdict(list)
    for message in _lines(folder / "messages.jsonl", TypedMessage):
        typed[message.session].append(message)
    wanted = _lines(commands, CommandLabel) if commands is not None else []
    for each in wanted:
        try:
            re.compile(each.regex)
        except re.error as error:
            raise BadInput(f"{commands}: {each.regex!r} is no regular expression: {error}.", hint=_HINT) from None
    known = {(each.session, each.uuid): each for each in _lines(labels, MessageLabel)}
    if not known:
        raise BadInput(f"{labels} holds no labels.", hint=_HINT)
    return LabelledCorpus(places, dict(typed), known, wanted)


def _lines(path: Path, kind: type[Struct]) -> list[Struct]:
    """Return the objects of a file of JSON lines (raises BadInput)."""
    found: list[Struct] = []
    try:
        rows = (line for line in path.read_bytes().split(b"\n") if line.strip())
        found.extend(msgspec.json.decode(line, type=kind) for line in rows)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", hint=_HINT) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be used after {len(found)} lines: {error}.", hint=_HINT) from None
    return found


class Verdict(NamedTuple):
    """Whether an entry is good, why, and what it tells."""

    is_good: bool
    why: str
    key: Key | None = None


class CorpusScore(msgspec.Struct):
    """How good a memory of real sessions is."""

    verdicts: dict[str, Verdict]
    """By entry."""
    told: list[str]
    """The entries that an agent is told in the project that has the most."""
    musts: set[Key]

    @property
    def reached(self) -> set[Key]:
        """The musts that some entry tells."""
        return {each.key for each in self.verdicts.values() if each.key is not None} & self.musts

    def document(self) -> dict[str, Any]:
        """Return the JSON of it."""
        good = sum(each.is_good for each in self.verdicts.values())
        told = [self.verdicts[name].is_good for name in self.told if name in self.verdicts]
        noise = Counter(each.why.partition(":")[0] for each in self.verdicts.values() if not each.is_good)
        return {
            "entries": len(self.verdicts),
            "good": good,
            "precision": _share(good, len(self.verdicts)),
            "told": {"entries": len(told), "good": sum(told), "precision": _share(sum(told), len(told))},
            "musts": len(self.musts),
            "found": len(self.reached),
            "recall": _share(len(self.reached), len(self.musts)),
            "noise": dict(noise.most_common()),
            "missed": sorted(name for _, name in self.musts - self.reached),
        }


def score(corpus: LabelledCorpus, entries: Sequence[Listed], told: Collection[str]) -> CorpusScore:
    """Score entries with their evidence; `told` are the ids of those that an agent is told."""
    used: set[str] = set()
    verdicts = {entry.id: _verdict(corpus, entry, used) for entry in entries}
    return CorpusScore(verdicts, [entry.id for entry in entries if entry.id in told], corpus.musts)


def _verdict(corpus: LabelledCorpus, entry: Listed, used: set[str]) -> Verdict:
    for wanted in corpus.commands:
        if re.search(wanted.regex, entry.text, re.IGNORECASE):
            if wanted.gist in used and entry.kind in _SHOWN_ONCE:
                return Verdict(False, f"said already: {wanted.gist}")
            used.add(wanted.gist)
            return Verdict(True, wanted.gist, ("command", wanted.gist))
    why = "no lasting words behind it"
    for link in entry.chain if isinstance(entry.chain, list) else []:
        quote = _normal(link.quote)[:_QUOTE]
        for message in corpus.messages.get(link.thread_id or "", []):
            label = corpus.labels.get((message.session, message.uuid))
            if not quote or label is None or quote not in _normal(message.text):
                continue
            if label.label != _LASTING:
                why = label.label
                continue
            verdict = _lasting(label, message.text, link.quote)
            if verdict is not None:
                return verdict
            why = "another sentence of a lasting message"
    return Verdict(False, why)


def _lasting(label: MessageLabel, text: str, quote: str) -> Verdict | None:
    """Return the verdict on words of a lasting message; None if they are not the sentences that last."""
    said = set(_normal(quote).split())
    for place, span in enumerate([label.span or (0, len(text)), *label.also]):
        words = set(_normal(text[slice(*span)]).split())
        if len(words & said) >= _SHARED * min(len(words), len(said)):
            return Verdict(True, label.gist, label.key if place == 0 else None)
    return None


def _normal(text: str) -> str:
    return " ".join(_MARKS.sub(" ", text.lower()).split())


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
