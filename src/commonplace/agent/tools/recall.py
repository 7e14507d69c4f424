"""`recall`: a search in the thread's own ledger, so that the model finds what a compaction left out.

Ranked search covers what was said; exact search covers everything, calls and their outputs too. The part that a fork
inherits from its parent belongs to it. Calls of `recall` and their outputs are not found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio.to_thread
import msgspec
from msgspec import Meta

from commonplace.agent.tools.arguments import bad_arguments, decode, schema
from commonplace.agent.tools.registry import ToolContext, ToolDefinition, ToolInvocation, ToolOutput, description
from commonplace.context.truncate import truncate
from commonplace.errors import ToolError
from commonplace.protocol import items
from commonplace.protocol.rollout import Line
from commonplace.redact import redact_part
from commonplace.rollout import chain, reader
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, LedgerPart
from commonplace.search import exact_text as exact

if TYPE_CHECKING:
    from commonplace.search.rank.build import Passage

NAME: Final = "recall"
LIMIT: Final = 8
"""How many texts are returned by default."""
MOST: Final = 50
"""How many texts a call may ask for."""
_LONGEST_QUERY: Final = 2_000
"""The longest query, in characters."""
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


class RecalledText(msgspec.Struct, frozen=True):
    """A text that was found in the ledger."""

    turn: int
    role: str
    time: str | None
    text: str
    offset: int

    def rendered(self) -> str:
        """Return the text as a model gets it, with its turn and role."""
        when = f", {self.time}" if self.time else ""
        text = self.text if len(self.text) <= _SHOWN else f"{redact_part(self.text, 0, _SHOWN)}…"
        return f"[turn {self.turn}, {self.role}{when}]\n{text}"


def _unchanged(text: str) -> str:
    return text


class Recall:
    """Searches the thread's own ledger; `clean` takes secrets and forgotten words out of a text."""

    aliases = ()
    parallel = True
    mutates = False

    def __init__(self, clean: Callable[[str], str] = _unchanged) -> None:
        self._clean = clean
        self.definition = ToolDefinition(NAME, "function", description(NAME), schema(RecallArguments))

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Return the texts that a query finds."""
        wanted = decode(call.arguments, RecallArguments)
        if not wanted.query.strip():
            raise bad_arguments("the query is empty")
        path = context.ledger
        if path is None or not path.exists():
            raise ToolError("no_ledger", "this thread keeps no ledger; only what is in view is known")
        if wanted.exact:
            found, total = await anyio.to_thread.run_sync(exact_matches, path, context.home, wanted)
        else:
            found = await anyio.to_thread.run_sync(ranked, path, wanted.query, wanted.limit)
            total = len(found)
        return ToolOutput(content=truncate(self._rendered(wanted, found, total), context.policy))

    def _rendered(self, wanted: RecallArguments, found: list[RecalledText], total: int) -> str:
        if not found:
            more = "Try other words." if wanted.exact else "Try other words, or `exact` to look into calls and outputs."
            return f"{_HEADING}: nothing was found. {more}"
        which = f"the newest {len(found)} of {total} matches" if total > len(found) else f"{len(found)} found"
        order = "" if wanted.exact else ", the best first"
        return "\n\n".join([f"{_HEADING}, {which}{order}:", *(self._clean(each.rendered()) for each in found)])


def ranked(path: Path, query: str, limit: int) -> list[RecalledText]:
    """Return the messages of a thread that match a question best, the best first.

    Raises:
        LedgerError, NotASession: the ledger cannot be read.
    """
    # Arrays and the stemmer are slow to load, and most turns recall nothing.
    from commonplace.search import passages
    from commonplace.search.rank import analysis, score
    from commonplace.search.rank.build import Builder
    from commonplace.search.rank.segment import unpack_facts
    from commonplace.search.rank.segments import OpenSegment, SegmentIndex

    ledger = chain.open_ledger(path)
    builder = Builder()
    for part in _oldest_first(ledger):
        builder.add(str(part.path), str(part.path), _said(part))
    made = builder.segment()
    index = SegmentIndex([OpenSegment("", made.bits, unpack_facts(made.facts))])
    wanted = index.missing_buckets(list(analysis.query_terms(query).values()))
    index.cache_buckets({place: made.buckets[place[1]] for place in wanted})
    best = score.rank(index, query, limit=limit)
    found: list[RecalledText] = []
    for number in best.passages:
        offset = int(index.offset[number])
        words = passages.read(Path(index.document(number).id), [offset]).get(offset)
        if words is not None:
            found.append(RecalledText(int(index.turn[number]), words.role, words.time, words.text, offset))
    return found


def exact_matches(path: Path, home: Path, wanted: RecallArguments) -> tuple[list[RecalledText], int]:
    """Return the newest texts of a thread that contain the query, in their order, and how many there are in all.

    Raises:
        LedgerError, NotASession: the ledger cannot be read.
    """
    from commonplace.search import passages  # slow to load, and most turns recall nothing

    needle = exact.Needle(wanted.query, ignore_case=wanted.ignore_case)
    store = BlobStore(home)
    newest: deque[tuple[LedgerPart, exact.TextMatch]] = deque(maxlen=wanted.limit)
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
    return [RecalledText(match.turn, match.role, match.time, match.shown(), match.offset) for _, match in newest], total


def _oldest_first(ledger: Ledger) -> tuple[LedgerPart, ...]:
    return tuple(reversed(ledger.parts))


def _said(part: LedgerPart) -> Iterator[Passage]:
    from commonplace.search import passages  # slow to load, and most turns recall nothing

    for passage in passages.of_session(part.path):
        if part.end is not None and passage.offset >= part.end:
            return
        yield passage


def _is_own(path: Path, match: exact.TextMatch) -> bool:
    """Return whether a match is a call of this tool, or one of its outputs."""
    if match.role == "call":
        return match.begins_with(f"{NAME} ") or _begins(path, match.offset, NAME)
    return match.role == "tool" and (match.begins_with(_HEADING) or _begins(path, match.offset, _HEADING))


def _begins(path: Path, offset: int, text: str) -> bool:
    """Return whether the call or output at an offset begins with a text; the excerpt of a match may not show it."""
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
