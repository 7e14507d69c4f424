"""Ranked search: how often it finds what holds the answer, with each step switched off in turn; and how fast it is.

The set in `retrieval_set/` was written for this by somebody who did not know the ranker: sessions of a coding assistant
in several projects, talks between people, and sessions in Chinese, Japanese and German, with questions and the messages
that answer them.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import anyio
import msgspec

from bench.ledger import Table
from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.protocol import rollout
from commonplace.search import hits, session_index
from commonplace.search.index import SearchIndex
from commonplace.search.passages import MONTHS
from commonplace.search.query import Query
from commonplace.search.rank import score
from commonplace.search.rank.build import Builder, Passage
from commonplace.search.rank.recipe import RECIPE, WEIGHTS, Recipe, RerankWeights
from commonplace.search.rank.segment import unpack_facts
from commonplace.search.rank.segments import OpenSegment, SegmentIndex

SET: Final = Path(__file__).parent / "retrieval_set"
_NEIGHBOURS: Final = {"previous": 0.0, "next": 0.0, "previous_but_one": 0.0, "next_but_one": 0.0}
PASSAGES: Final = 100_000


class Question(msgspec.Struct):
    """What somebody asks, and the messages that answer it."""

    id: str
    question: str
    evidence: list[str]
    type: str
    project: str | None = None


class Message(msgspec.Struct):
    """One line of the set."""

    session: str
    id: str
    time: str
    role: str
    text: str
    cwd: str | None = None
    name: str = ""


def messages() -> list[Message]:
    """Return the set's messages, in order."""
    return [msgspec.json.decode(line, type=Message) for line in (SET / "sessions.jsonl").read_bytes().splitlines()]


def questions() -> list[Question]:
    """Return the set's questions."""
    return [msgspec.json.decode(line, type=Question) for line in (SET / "questions.jsonl").read_bytes().splitlines()]


def _date(time: str) -> str:
    year, month, day = time[:10].split("-")
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"


def _index(said: Sequence[Message], *, dated: bool = True, named: bool = True) -> tuple[SegmentIndex, list[str]]:
    """Open the set as one index; return it and the messages in its order."""
    sessions: dict[str, list[Message]] = {}
    for message in said:
        sessions.setdefault(message.session, []).append(message)
    builder = Builder()
    order: list[str] = []
    for name, each in sessions.items():
        passages = [
            Passage(
                message.text,
                place,
                message.role == "user" or bool(message.name),
                message.name if named else "",
                _date(message.time) if dated else "",
            )
            for place, message in enumerate(each)
        ]
        builder.add(name, each[0].cwd or "", passages)
        order += [message.id for message in each]
    made = builder.segment()
    index = SegmentIndex([OpenSegment("", made.bits, unpack_facts(made.facts))])
    index.cache_buckets({("", number): data for number, data in enumerate(made.buckets)})
    return index, order


class Scored(msgspec.Struct):
    """How a way of ranking did: by the messages that were ranked, and by the exchanges that are shown."""

    at5: float = 0.0
    at10: float = 0.0
    shown5: float = 0.0
    shown10: float = 0.0
    mrr: float = 0.0

    def cells(self) -> list[str]:
        """Return the numbers as a table has them."""
        return [f"{value:.1f}" for value in (self.at5, self.at10, self.shown5, self.shown10, self.mrr)]


Rank = Callable[[Question], list[tuple[str, str | None]]]
"""The messages that answer a question, each with the answer that is shown beside it."""


def evaluate(asked: Sequence[Question], rank: Rank) -> Scored:
    """Score a way of ranking."""
    total = Scored()
    share = 100 / max(len(asked), 1)
    for question in asked:
        found, gold = rank(question), set(question.evidence)
        for field, count in (("at5", 5), ("at10", 10)):
            held = len(gold & {name for name, _ in found[:count]}) / len(gold)
            setattr(total, field, getattr(total, field) + share * held)
        for field, count in (("shown5", 5), ("shown10", 10)):
            held = len(gold & {name for pair in found[:count] for name in pair}) / len(gold)
            setattr(total, field, getattr(total, field) + share * held)
        total.mrr += share * next((1 / place for place, pair in enumerate(found, 1) if gold & set(pair)), 0.0)
    return total


def _ranker(index: SegmentIndex, order: list[str], recipe: Recipe = RECIPE, weights: RerankWeights = WEIGHTS) -> Rank:
    def rank(question: Question) -> list[tuple[str, str | None]]:
        mask = None
        if question.project is not None:
            chosen = (place for place, each in enumerate(index.documents) if each.place == question.project)
            mask = index.passages_of(chosen)
        ranked = score.rank(index, question.question, limit=30, mask=mask, recipe=recipe, weights=weights)
        found = [each.number for each in hits.choose_passages(index, ranked, 10)]
        replies = [hits.reply_of(index, number) for number in found]
        return [
            (order[number], order[reply] if reply is not None else None)
            for number, reply in zip(found, replies, strict=True)
        ]

    return rank


def _without(**fields: float | bool) -> Recipe:
    return msgspec.structs.replace(RECIPE, **fields)


def quality() -> list[Table]:
    """Recall with each step of the recipe switched off in turn, and by type of question."""
    said, asked = messages(), questions()
    index, order = _index(said)
    plain = _without(
        **_NEIGHBOURS, k1=1.2, b=0.75, coverage=0.0, assistant=1.0, assistant_evidence=1.0, question=0.0, speaker=0.0,
        time=0.0, session=0.0, rerank=False,
    )  # fmt: skip
    blind = msgspec.structs.replace(WEIGHTS, user=0.0)
    ways: list[tuple[str, Rank]] = [
        ("the recipe", _ranker(index, order)),
        ("plain BM25", _ranker(index, order, plain)),
        ("without the second ordering", _ranker(index, order, _without(rerank=False))),
        ("without neighbours", _ranker(index, order, _without(**_NEIGHBOURS))),
        ("without question flow", _ranker(index, order, _without(question_flow=1.0))),
        ("without the session's share", _ranker(index, order, _without(session=0.0))),
        ("without best turns in the session", _ranker(index, order, _without(best_turns=0.0))),
        ("without coverage", _ranker(index, order, _without(coverage=0.0))),
        ("blind to roles", _ranker(index, order, _without(assistant=1.0), blind)),
        ("without the speaker's share", _ranker(index, order, _without(speaker=0.0))),
        ("without the time's share", _ranker(index, order, _without(time=0.0))),
        ("without dates in the text", _ranker(*_index(said, dated=False))),
        ("without names in the text", _ranker(*_index(said, named=False))),
    ]
    steps = Table(
        f"Recall on the bundled set: {len(asked)} questions, {len(said)} messages",
        ("ranking", "message@5", "message@10", "exchange@5", "exchange@10", "MRR of exchanges"),
    )
    for name, rank in ways:
        steps.add(name, *evaluate(asked, rank).cells())
    kinds = Table("By type of question", ("type", "questions", "exchange@5", "exchange@10", "plain BM25 exchange@10"))
    for kind in sorted({question.type for question in asked}):
        chosen = [question for question in asked if question.type == kind]
        found, usual = evaluate(chosen, ways[0][1]), evaluate(chosen, ways[1][1])
        kinds.add(kind, len(chosen), f"{found.shown5:.1f}", f"{found.shown10:.1f}", f"{usual.shown10:.1f}")
    return [steps, kinds]


def _write(home: Path, count: int, seed: int = 7) -> float:
    """Write many sessions, put together from the set's sentences with names of their own; return megabytes of text."""
    rng = random.Random(seed)
    sentences = [part for message in messages() for part in message.text.replace("\n", " ").split(". ") if part]
    kinds = ("Handler", "Store", "_cache", "View", "_job")
    names = [f"{rng.choice('abcdefghij')}{rng.choice(kinds)}{number}" for number in range(40_000)]
    folder = home / "sessions/2026/03/01"
    folder.mkdir(parents=True)
    total, size, number = 0, 0, 0
    moment = "2026-03-01T10:00:00.000Z"
    while total < count:
        thread = f"01970000-0000-7000-8000-{number:012x}"
        meta = {"id": thread, "timestamp": moment, "cwd": f"/home/someone/p{number % 40}", "originator": "bench"}
        lines = [rollout.encode("session_meta", {**meta, "cli_version": "0", "source": "cli"}, timestamp=moment)]
        for place in range(min(rng.randint(20, 140), count - total)):
            is_user = place % 2 == 0
            many = rng.randint(1, 4) if is_user else rng.randint(4, 40)
            text = ". ".join(f"{rng.choice(sentences)} {rng.choice(names)}" for _ in range(many))
            part = {"type": "input_text" if is_user else "output_text", "text": text}
            item = {"type": "message", "role": "user" if is_user else "assistant", "content": [part]}
            lines.append(rollout.encode("response_item", item, timestamp=moment))
            size += len(text.encode())
            total += 1
        (folder / f"rollout-2026-03-01T10-00-00-{thread}.jsonl").write_bytes(b"".join(lines))
        number += 1
    return size / 1e6


async def _build(book: Book) -> dict[str, float]:
    await (await book.state.index()).refresh(book.home)
    begun = time.process_time()
    await session_index.refresh(book.state)
    return {"seconds": time.process_time() - begun}


async def _ask(book: Book) -> dict[str, float]:
    asked = [question.question for question in questions()]
    opened = SearchIndex(await book.state.database(), str(book.home.resolve()))
    cold: list[float] = []
    warm: list[float] = []
    whole: list[float] = []
    for turn in range(3):
        for question in asked:
            begun = time.perf_counter()
            index = (await opened.open_for_query("sessions", question)).index
            score.rank(index, question)
            (warm if turn else cold).append(1000 * (time.perf_counter() - begun))
    await book.search.sessions(Query(asked[0]))
    for question in asked:
        begun = time.perf_counter()
        await book.search.sessions(Query(question))
        whole.append(1000 * (time.perf_counter() - begun))
    warm.sort()
    index = (await opened.open("sessions")).index
    return {
        "cold": statistics.median(cold),
        "p50": statistics.median(warm),
        "p95": warm[int(len(warm) * 0.95)],
        "whole": statistics.median(whole),
        "passages": index.size,
        "segments": len(index.segments),
    }


def _program(work: str) -> None:
    """Build or ask in this process; print what was measured."""

    async def main() -> dict[str, float]:
        async with books.open() as book:
            return await (_build(book) if work == "build" else _ask(book))

    found = anyio.run(main)
    print(json.dumps({**found, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000}))


def _run(work: str, home: Path, database: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.retrieval", work]
    if (taskset := shutil.which("taskset")) is not None:
        command = [taskset, "-c", "0", *command]
    own = {"COMMONPLACE_HOME": str(home), "COMMONPLACE_DATABASE": database, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **own})
    return json.loads(done.stdout)


def speed() -> Table:
    """What taking in and asking cost at a hundred thousand passages."""
    header = (
        "database", "passages", "taking in, one core", "memory", "question, first time", "warm p50", "warm p95",
        "with the words of ten hits, p50", "memory, asking", "segments",
    )  # fmt: skip
    table = Table("Ranked search over session files, on one core", header)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = _write(folder / "home", PASSAGES)
        for kind, address in _addresses(folder):
            made, asked = _run("build", folder / "home", address), _run("ask", folder / "home", address)
            table.add(
                kind,
                f"{asked['passages']:,.0f} ({size:.0f} MB of text)",
                f"{size / made['seconds']:.1f} MB/s",
                f"{made['memory']:.0f} MB",
                f"{asked['cold']:.1f} ms",
                f"{asked['p50']:.1f} ms",
                f"{asked['p95']:.1f} ms",
                f"{asked['whole']:.1f} ms",
                f"{asked['memory']:.0f} MB",
                f"{asked['segments']:.0f}",
            )
    return table


def _addresses(folder: Path) -> list[tuple[str, str]]:
    found = [("SQLite", "sqlite")]
    try:
        import pgserver  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return found
    server: Any = cast("Any", pgserver).get_server(folder / "pg")
    return [*found, ("PostgreSQL", server.get_uri())]


def run_all() -> list[Table]:
    """Measure everything."""
    return [*quality(), speed()]


if __name__ == "__main__":
    _program(sys.argv[1])
