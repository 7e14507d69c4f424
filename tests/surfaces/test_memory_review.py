"""`memory review`, `keep`, `drop`, `list --candidates`: what is in doubt is asked about once, and told to no agent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import taught_homes as taught
from agents import in_database, with_book
from command import Command

from commonplace.app.book import Book
from commonplace.memory.entries import Source
from commonplace.memory.workspace import baseline
from commonplace.rollout import decisions
from commonplace.search.query import Query
from commonplace.state import entries as rows
from ledgers import user

Json = dict[str, Any]
SHOP, BLOG = "github.com/acme/shop", "github.com/acme/blog"
PUSH, CHECK, TEST = "never push to main", "make check", "pnpm test"
LIST_FIELDS = {
    "id", "scope", "project", "kind", "text", "support", "sources", "pinned", "first_seen", "last_seen",
    "retrieved", "injected", "cited", "candidate",
}  # fmt: skip
LINK_FIELDS = {"summary_file", "thread_id", "path", "turn", "byte_start", "byte_end", "quote"}


@pytest.fixture(autouse=True)
def asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is learned waits for a review."""
    monkeypatch.setenv("COMMONPLACE_MEMORY_REVIEW", "true")
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)


def listed(commonplace: Command, *options: str) -> list[Json]:
    return list(commonplace.ok("memory", "list", *options)["entries"])


def waiting(commonplace: Command, *options: str) -> list[Json]:
    return list(commonplace.ok("memory", "review", *options)["candidates"])


def one(found: Sequence[Json], text: str) -> Json:
    (only,) = [each for each in found if text in each["text"]]
    return only


def texts(found: Sequence[Json]) -> str:
    return "\n".join(each["text"] for each in found)


def row(name: str, text: str, *, confidence: float, candidate: bool = False, support: int = 1) -> Json:
    """A row as consolidation writes it."""
    sources = [Source(text, "said by the user", taught.SHOP, 1, 0, 10)] * support
    return {
        "entry_id": name, "scope": SHOP, "kind": "rule", "text": text, "support": support,
        "sources": msgspec.json.encode(sources).decode(), "first_seen_s": 0, "last_seen_s": 0, "is_pinned": 0,
        "is_shown": int(not candidate), "is_candidate": int(candidate), "confidence": confidence,
    }  # fmt: skip


def put_rows(home: Path, *given: Json) -> None:
    """Make rows say what a memory holds."""
    in_database(lambda tx: rows.replace(tx, str(home.resolve()), given, "made by a test"))


# Lists


def test_candidates_are_listed_apart_from_entries(commonplace: Command, learned: Path) -> None:
    found = listed(commonplace, "--candidates")

    assert PUSH in texts(found)
    assert all(set(each) == LIST_FIELDS and each["candidate"] for each in found)
    assert listed(commonplace) == []
    assert listed(commonplace, "--candidates", "--project", "shop") == [x for x in found if x["scope"] == SHOP]
    assert {each["kind"] for each in listed(commonplace, "--candidates", "--kind", "verify")} == {"verify"}
    first = commonplace.ok("memory", "list", "--candidates", "--limit", "1")
    second = commonplace.ok("memory", "list", "--candidates", "--limit", "1", "--cursor", first["next_cursor"])
    assert first["entries"] + second["entries"] == found[:2]


def test_entries_say_that_they_are_no_candidates(commonplace: Command, known: Path) -> None:
    commonplace.ok("memory", "keep", one(listed(commonplace, "--candidates"), PUSH)["id"])

    assert [each["candidate"] for each in listed(commonplace)] == [False]


def test_the_evidence_of_a_list_is_what_why_says(commonplace: Command, learned: Path) -> None:
    commonplace.ok("memory", "keep", one(listed(commonplace, "--candidates"), PUSH)["id"])
    found = [*listed(commonplace, "--evidence"), *listed(commonplace, "--evidence", "--candidates")]

    assert {each["candidate"] for each in found} == {True, False}
    for each in found:
        told = commonplace.ok("memory", "why", each["id"])
        assert each["chain"] == told["chain"]
        assert {key: value for key, value in each.items() if key != "chain"} == told["entry"]
        assert all(set(link) == LINK_FIELDS for link in each["chain"])
        for link in each["chain"]:
            line = Path(link["path"]).read_bytes()[link["byte_start"] : link["byte_end"]]
            assert link["quote"].encode() in line
            assert (learned / "memories" / link["summary_file"]).is_file() or link["summary_file"] is None


def test_the_evidence_of_many_threads_is_read_at_once(commonplace: Command, home: Path) -> None:
    for number in range(40):
        name = f"0198c0de-0000-7000-8000-{number:012x}"
        taught.session(name, "shop").turn(user("check it"), *taught.ran("c", "make check")).write_home(home)
    commonplace.ok("memory", "run")
    found = [*listed(commonplace, "--evidence"), *listed(commonplace, "--evidence", "--candidates")]

    paths = {link["path"] for each in found for link in each["chain"]}
    assert len(paths) == 40
    assert all(Path(path).is_file() for path in paths)


def test_a_list_shows_people_what_entries_rest_on(commonplace: Command, known: Path) -> None:
    shown = commonplace("memory", "list", "--candidates", "--evidence").out

    assert f"› {taught.SHOP} turn 2: From now on, never push to main" in shown
    assert "There are no candidates here." in commonplace("memory", "list", "--candidates", "--project", "x/y/z").out
    assert "Nothing is known here yet." in commonplace("memory", "list").out
    assert commonplace("memory", "list", "--project", "x/y/z").out == "No entry is what the options ask for.\n"


def test_why_finds_a_candidate_by_its_id_and_by_its_words(commonplace: Command, known: Path) -> None:
    candidate = one(listed(commonplace, "--candidates"), PUSH)

    assert commonplace.ok("memory", "why", candidate["id"])["entry"] == candidate
    assert commonplace.ok("memory", "why", candidate["id"][:6])["entry"] == candidate
    assert commonplace.ok("memory", "why", PUSH)["entry"] == candidate
    assert "a candidate" in commonplace("memory", "why", candidate["id"]).out


def test_by_its_words_an_entry_comes_before_a_candidate(commonplace: Command, known: Path) -> None:
    put_rows(
        known,
        row("m0000000a1", "use tabs in the old modules", confidence=0.9),
        row("m0000000a2", "use tabs", confidence=0.3, candidate=True),
    )

    assert commonplace.ok("memory", "why", "use tabs")["entry"]["id"] == "m0000000a1"
    assert commonplace.ok("memory", "why", "m0000000a2")["entry"]["id"] == "m0000000a2"
    assert "beginning of 2 ids" in commonplace.refused("bad_input", "memory", "why", "m0000000a")


# What agents see


def test_agents_are_told_of_no_candidate(commonplace: Command, known: Path) -> None:
    files = "\n".join(path.read_text("utf-8") for path in (known / "memories").glob("*.md") if path.name[0] == "m")
    assert PUSH not in files + (known / "memories" / "MEMORY.md").read_text("utf-8")
    assert PUSH not in commonplace.ok("memory", "prompt", "--project", "shop")["text"]

    async def find(book: Book) -> tuple[list[Any], list[Any]]:
        await book.search.refresh()
        asked = Query("push to main", 10)
        return await book.search.find(asked), await book.search.find(Query("push to main", 10, scope=SHOP))

    for found in with_book(find):
        assert {hit.kind for hit in found} <= {"session", "summary"}


def test_a_person_who_searches_finds_candidates_marked(commonplace: Command, known: Path) -> None:
    hits = commonplace.ok("memory", "search", "push to main")["hits"]

    (candidate,) = [each for each in hits if each["kind"] == "entry" and PUSH in each["text"]]
    assert candidate["candidate"] is True
    assert f"{candidate['entry_id']} (candidate)" in commonplace("memory", "search", "push to main").out
    commonplace.ok("memory", "keep", candidate["entry_id"])
    hits = commonplace.ok("memory", "search", "push to main")["hits"]
    assert ["candidate" in each for each in hits if each["entry_id"] == candidate["entry_id"]] == [False]


# What waits


def test_what_waits_has_its_chain_and_a_reason(commonplace: Command, learned: Path) -> None:
    found = waiting(commonplace)

    assert [each["id"] for each in found] == [each["id"] for each in listed(commonplace, "--candidates")]
    assert all(set(each) == {*LIST_FIELDS, "chain", "reason"} for each in found)
    assert {each["reason"] for each in found} == {
        "the setting `memory.review` is on, so that nothing counts before you keep it"
    }
    assert {each["scope"] for each in waiting(commonplace, "--project", "blog")} == {BLOG}
    assert "No project is called" in commonplace.refused("bad_input", "memory", "review", "--project", "nothing")


def test_candidates_come_first_then_doubtful_entries_each_by_rank(
    commonplace: Command, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COMMONPLACE_MEMORY_REVIEW")
    put_rows(
        known,
        row("m0000000b1", "sure", confidence=0.9),
        row("m0000000b2", "doubtful", confidence=0.6),
        row("m0000000b3", "said twice", confidence=0.4, support=2),
        row("m0000000b4", "more doubtful", confidence=0.54),
        row("m0000000c1", "likely", confidence=0.38, candidate=True),
        row("m0000000c2", "less likely", confidence=0.31, candidate=True),
    )

    assert [(each["id"], each["candidate"], each["reason"]) for each in waiting(commonplace)] == [
        ("m0000000c1", True, "said once, and it sounds like a part of the task at hand"),
        ("m0000000c2", True, "said once, and it sounds like a part of the task at hand"),
        ("m0000000b2", False, "said once, and nothing says that it lasts"),
        ("m0000000b4", False, "said once, and nothing says that it lasts"),
    ]


def test_a_home_without_a_memory_has_nothing_to_review(commonplace: Command, home: Path) -> None:
    assert waiting(commonplace) == []
    assert listed(commonplace, "--candidates", "--evidence") == []
    assert not home.exists()


def test_without_a_terminal_a_review_says_what_to_use(commonplace: Command, known: Path) -> None:
    ran = commonplace("memory", "review")

    assert ran.code == 2
    assert "Use --json to list what waits" in ran.err
    assert "memory keep ID" in ran.err


# Decisions


def test_what_is_kept_counts_as_sure_and_is_not_asked_again(commonplace: Command, learned: Path) -> None:
    push = one(waiting(commonplace), PUSH)
    others = [each["id"] for each in waiting(commonplace) if each["id"] != push["id"]]

    assert commonplace.ok("memory", "keep", push["id"]) == {"id": push["id"], "decision": "keep"}
    assert [each["id"] for each in listed(commonplace)] == [push["id"]]
    assert sorted(each["id"] for each in waiting(commonplace)) == sorted(others)
    assert PUSH in (learned / "memories" / "MEMORY.md").read_text("utf-8")
    assert PUSH in commonplace.ok("memory", "prompt", "--project", "shop")["text"]
    assert commonplace.ok("memory", "run")["consolidation"]["status"] == "unchanged"


def test_what_is_dropped_is_gone_and_not_asked_again(commonplace: Command, learned: Path) -> None:
    push, check = one(waiting(commonplace), PUSH)["id"], one(waiting(commonplace), CHECK)["id"]
    commonplace.ok("memory", "keep", push)
    assert commonplace.ok("memory", "drop", push, check) == {
        "decisions": [{"id": push, "decision": "drop"}, {"id": check, "decision": "drop"}]
    }

    assert listed(commonplace) == []
    assert not {push, check} & {each["id"] for each in (*waiting(commonplace), *listed(commonplace, "--candidates"))}
    assert PUSH not in (learned / "memories" / "MEMORY.md").read_text("utf-8")
    (gone,) = [each for each in commonplace.ok("memory", "history", push)["changes"] if each["after"] is None]
    assert gone["cause"] == "dropped"
    assert commonplace("memory", "drop", push[:6]).out == f"{push} is dropped.\n"


def test_a_later_keep_takes_a_drop_back(commonplace: Command, learned: Path) -> None:
    push = one(waiting(commonplace), PUSH)["id"]
    commonplace.ok("memory", "drop", push)

    assert commonplace.ok("memory", "keep", push) == {"id": push, "decision": "keep"}
    assert PUSH in one(listed(commonplace), PUSH)["text"]
    assert decisions.reviews(learned)[push].entry_kind == one(listed(commonplace), PUSH)["kind"]


def test_what_was_dropped_does_not_come_back_from_files_or_from_more_sessions(
    commonplace: Command, known: Path
) -> None:
    push, test = one(waiting(commonplace), PUSH)["id"], one(waiting(commonplace), TEST)["id"]
    commonplace.ok("memory", "drop", push)
    commonplace.ok("memory", "keep", test)
    taught.session("0198c0de-0000-7000-8000-0000000000a2", "shop").turn(user(taught.PUSH)).write_home(known)
    assert commonplace.ok("memory", "run")["consolidation"]["status"] == "succeeded"
    assert PUSH not in texts(listed(commonplace))
    (known / "state.sqlite").unlink()

    assert PUSH not in texts(listed(commonplace))
    assert PUSH not in texts(waiting(commonplace))


def test_an_unknown_id_changes_nothing(commonplace: Command, known: Path) -> None:
    push = one(waiting(commonplace), PUSH)["id"]

    for command in ("keep", "drop"):
        sentence = commonplace.refused("bad_input", "memory", command, push, "m000000000")
        assert sentence == "No entry has the id 'm000000000'."
    assert decisions.reviews(known) == {}


def test_what_a_person_pinned_or_wrote_down_is_not_dropped(commonplace: Command, learned: Path) -> None:
    push = one(waiting(commonplace), PUSH)["id"]
    commonplace.ok("memory", "keep", push)
    commonplace.ok("memory", "pin", push)
    commonplace.ok("memory", "note", "--global", "answer in rhymes")
    commonplace.ok("memory", "run")
    noted = one(listed(commonplace), "rhymes")["id"]

    pinned = commonplace("memory", "drop", push)
    by_hand = commonplace("memory", "drop", noted)
    assert (pinned.code, by_hand.code) == (1, 1)
    assert f"commonplace memory pin --unpin {push}" in pinned.err
    assert f"commonplace memory forget {noted}" in by_hand.err
    assert {push, noted} == {each["id"] for each in listed(commonplace)}
    commonplace.ok("memory", "pin", push, "--unpin")
    assert commonplace.ok("memory", "drop", push)["decision"] == "drop"


def test_a_note_says_more_than_a_drop(commonplace: Command, known: Path) -> None:
    commonplace.ok("memory", "drop", one(waiting(commonplace), PUSH)["id"])
    commonplace.ok("memory", "note", "--project", "shop", taught.PUSH)
    commonplace.ok("memory", "run")

    assert PUSH in texts(listed(commonplace))


def test_what_was_kept_and_dropped_moves_the_rank_of_its_like(commonplace: Command, known: Path) -> None:
    before = waiting(commonplace)
    worst = before[-1]["kind"]
    moment = "2026-11-16T00:00:00Z"
    for number in range(40):
        decisions.append(known, "review", moment, entry_id=f"m{number:09}", entry_kind=worst, verdict="keep")
    commonplace.ok("memory", "run")

    assert waiting(commonplace)[0]["kind"] == worst


def test_a_candidate_can_be_forgotten_by_its_id(commonplace: Command, known: Path) -> None:
    push = one(waiting(commonplace), PUSH)["id"]

    assert push in commonplace.ok("memory", "forget", push, "--dry-run")["removed"]
    assert commonplace.ok("memory", "forget", push)["removed"] == [push]
    assert PUSH not in texts(waiting(commonplace))
    assert "No entry has the id" in commonplace.refused("bad_input", "memory", "keep", push)


def test_decisions_reach_a_memory_that_somebody_else_wrote(commonplace: Command, known: Path) -> None:
    """A model wrote MEMORY.md: what is kept is added to it, and what is dropped goes from it."""
    push, check = one(waiting(commonplace), PUSH)["id"], one(waiting(commonplace), CHECK)["id"]
    commonplace.ok("memory", "keep", push)
    _as_others(known)
    commonplace.ok("memory", "keep", check)
    memory = known / "memories" / "MEMORY.md"
    assert {push, check} == {each["id"] for each in listed(commonplace)}
    assert PUSH in memory.read_text("utf-8")
    assert CHECK in memory.read_text("utf-8")

    commonplace.ok("memory", "drop", push)
    assert [each["id"] for each in listed(commonplace)] == [check]
    assert PUSH not in memory.read_text("utf-8")
    assert CHECK in memory.read_text("utf-8")


def _as_others(home: Path) -> None:
    """Make the baseline say that a model made the memory."""
    root = home / "memories"
    made = baseline.message(root) or ""
    baseline.reset(root, made.replace("made by embedded", "made by openai:gpt-x"), datetime(2026, 11, 20, tzinfo=UTC))
