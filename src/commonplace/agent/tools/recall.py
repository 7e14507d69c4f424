"""`recall`: searching the thread's own ledger, so that what a compaction left out can still be found.

Ranked search goes over what was said; exact search over everything, calls and their outputs too. What a fork inherits
belongs to it. What `recall` itself asked and answered is not found again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio.to_thread
import msgspec
from msgspec import Meta

from commonplace.agent.tools.arguments import bad, decode, schema
from commonplace.agent.tools.described import description
from commonplace.agent.tools.registry import Call, Context, Definition, Output
from commonplace.context.truncate import truncate
from commonplace.errors import ToolError
from commonplace.protocol import items
from commonplace.protocol.rollout import Line
from commonplace.rollout import chain, reader
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, Part
from commonplace.search import exact_text as exact

if TYPE_CHECKING:
    from commonplace.search.rank.build import Passage

NAME: Final = "recall"
LIMIT: Final = 8
MOST: Final = 50
_LONGEST_QUERY: Final = 2_000
_SHOWN: Final = 2_000
"""Characters of one text that are shown."""
_HEADING: Final = "From the ledger of this thread"


class RecallArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `recall` takes."""

    query: Annotated[
        str,
        Meta(min_length=1, max_length=_LONGEST_QUERY, description="What to look for: words, or with `exact` a text."),
    ]
    exact: Annotated[bool, Meta(description="Find texts that hold exactly the query, in calls and outputs too.")] = (
        False
    )
    ignore_case: Annotated[bool, Meta(description="With `exact`: capitals do not matter.")] = False
    limit: Annotated[int, Meta(ge=1, le=MOST, description="How many to return.")] = LIMIT


class Recalled(msgspec.Struct, frozen=True):
    """A text of the ledger."""

    turn: int
    role: str
    time: str | None
    text: str
    offset: int

    def told(self) -> str:
        """Return it as a model gets it."""
        when = f", {self.time}" if self.time else ""
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…"
        return f"[turn {self.turn}, {self.role}{when}]\n{text}"


def _unchanged(text: str) -> str:
    return text


class Recall:
    """Searches the thread's own ledger; `clean` takes out what may not be shown again."""

    aliases = ()
    parallel = True
    mutates = False

    def __init__(self, clean: Callable[[str], str] = _unchanged) -> None:
        self._clean = clean
        self.definition = Definition(NAME, "function", description(NAME), schema(RecallArguments))

    async def run(self, call: Call, context: Context) -> Output:
        """Search."""
        wanted = decode(call.arguments, RecallArguments)
        if not wanted.query.strip():
            raise bad("the query is empty")
        path = context.ledger
        if path is None or not path.exists():
            raise ToolError("no_ledger", "this thread keeps no ledger; only what is in view is known")
        if wanted.exact:
            found, total = await anyio.to_thread.run_sync(word_for_word, path, context.home, wanted)
        else:
            found = await anyio.to_thread.run_sync(ranked, path, wanted.query, wanted.limit)
            total = len(found)
        return Output(content=truncate(self._told(wanted, found, total), context.policy))

    def _told(self, wanted: RecallArguments, found: list[Recalled], total: int) -> str:
        if not found:
            more = "Try other words." if wanted.exact else "Try other words, or `exact` to look into calls and outputs."
            return f"{_HEADING}: nothing was found. {more}"
        which = f"the newest {len(found)} of {total} matches" if total > len(found) else f"{len(found)} found"
        order = "" if wanted.exact else ", the best first"
        return "\n\n".join([f"{_HEADING}, {which}{order}:", *(self._clean(each.told()) for each in found)])


def ranked(path: Path, query: str, limit: int) -> list[Recalled]:
    """Return what was said in a thread that answers a question, the best first.

    Raises:
        LedgerError, NotASession: the ledger cannot be read.
    """
    # Arrays and the stemmer are slow to load, and most turns recall nothing.
    from commonplace.search import passages
    from commonplace.search.rank import analysis, score
    from commonplace.search.rank.build import Builder
    from commonplace.search.rank.segment import unpack_facts
    from commonplace.search.rank.segments import Index, Opened

    ledger = chain.open_ledger(path)
    builder = Builder()
    for part in _oldest_first(ledger):
        builder.add(str(part.path), str(part.path), _said(part))
    made = builder.segment()
    index = Index([Opened("", made.bits, unpack_facts(made.facts))])
    wanted = index.wants(list(analysis.query_terms(query).values()))
    index.hold({place: made.buckets[place[1]] for place in wanted})
    best = score.rank(index, query, limit=limit)
    found: list[Recalled] = []
    for number in best.passages:
        offset = int(index.offset[number])
        words = passages.read(Path(index.document(number).id), [offset]).get(offset)
        if words is not None:
            found.append(Recalled(int(index.turn[number]), words.role, words.time, words.text, offset))
    return found


def word_for_word(path: Path, home: Path, wanted: RecallArguments) -> tuple[list[Recalled], int]:
    """Return the newest texts of a thread that hold what is looked for, in their order, and how many there are.

    Raises:
        LedgerError, NotASession: the ledger cannot be read.
    """
    from commonplace.search import passages

    needle = exact.Needle(wanted.query, ignore_case=wanted.ignore_case)
    store = BlobStore(home)
    newest: deque[tuple[Part, exact.Match]] = deque(maxlen=wanted.limit)
    total = 0
    for part in _oldest_first(chain.open_ledger(path)):
        for match in exact.search(part.path, needle, store):
            if part.end is not None and match.offset >= part.end:
                break
            if not _is_own(part.path, match):
                newest.append((part, match))
                total += 1
    for part in {part.path: part for part, _ in newest}.values():
        matches = [match for each, match in newest if each.path == part.path]
        exact.number_turns(part.path, matches, passages.inherited_turns(part.path))
    return [Recalled(match.turn, match.role, match.time, match.text, match.offset) for _, match in newest], total


def _oldest_first(ledger: Ledger) -> tuple[Part, ...]:
    return tuple(reversed(ledger.parts))


def _said(part: Part) -> Iterator[Passage]:
    from commonplace.search import passages

    for passage in passages.of_session(part.path):
        if part.end is not None and passage.offset >= part.end:
            return
        yield passage


def _is_own(path: Path, match: exact.Match) -> bool:
    """Say whether a match is a question to this tool, or one of its answers."""
    if match.role == "call":
        return match.text.startswith(f"{NAME} ") or _begins(path, match.offset, NAME)
    return match.role == "tool" and (match.text.startswith(_HEADING) or _begins(path, match.offset, _HEADING))


def _begins(path: Path, offset: int, text: str) -> bool:
    """Say whether the call or output at a place begins with a text that its excerpt may not show."""
    if reader.is_compressed(path):  # a file at rest: nobody is calling tools there
        return False
    line = next(iter(reader.forward(path, start=offset)), None)
    if not isinstance(line, Line):
        return False
    try:
        view = items.view(line.payload)
    except (msgspec.DecodeError, RecursionError):
        return False
    if isinstance(view, items.FunctionCall):
        return view.name == text
    return isinstance(view, items.FunctionCallOutput) and isinstance(view.output, str) and view.output.startswith(text)
