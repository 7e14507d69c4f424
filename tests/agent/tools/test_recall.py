"""Recalling: what a compaction left out is found in the thread's own ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commonplace.agent.tools.recall import Recall
from commonplace.agent.tools.registry import Registry, ToolContext, ToolInvocation, ToolOutput
from commonplace.context.truncate import TruncationPolicy
from commonplace.rollout.blobs import BlobStore, spill
from ledgers import TIME, Script, assistant, function_call, function_output, user

Surrounded = Callable[..., ToolContext]


@pytest.fixture
def ledger(home: Path) -> Path:
    return (
        Script()
        .turn(
            user("Please use port 8443 for the staging proxy."),
            function_call("c1", "shell", json.dumps({"command": "ss -ltnp | grep 8443"})),
            function_output("c1", "Exit code: 1\nWall time: 0.0 seconds\nOutput:\nnothing listens on 8443\n"),
            assistant("Nothing uses it, so the staging proxy will listen on 8443."),
        )
        .turn(user("And how is the weather?"), assistant("I cannot look outside."))
        .compacted([user("summary")], "They talked.")
        .turn(user("Go on."), assistant("Going on."))
        .write_home(home)
    )


async def _recall(context: ToolContext, clean: Callable[[str], str] | None = None, **arguments: Any) -> ToolOutput:
    tool = Recall(clean) if clean else Recall()
    return await Registry([tool]).run(ToolInvocation("1", "recall", json.dumps(arguments)), context)


async def test_what_was_said_before_a_compaction_is_found_by_its_words(surrounded: Surrounded, ledger: Path) -> None:
    output = await _recall(surrounded(ledger=ledger), query="which port has the staging proxy", limit=2)

    text = str(output.content)
    assert text.startswith("From the ledger of this thread, 2 found, the best first:\n\n")
    assert "[turn 1, user, 2026-11-15T09:00:00.000Z]\nPlease use port 8443 for the staging proxy." in text
    assert "weather" not in text


async def test_an_exact_text_is_found_in_calls_and_outputs(surrounded: Surrounded, ledger: Path) -> None:
    output = await _recall(surrounded(ledger=ledger), query="8443", exact=True)

    text = str(output.content)
    assert "4 found:" in text
    assert "[turn 1, call, 2026-11-15T09:00:00.000Z]\nshell ss -ltnp | grep 8443" in text
    assert "nothing listens on 8443" in text


async def test_of_many_matches_the_newest_are_told(surrounded: Surrounded, ledger: Path) -> None:
    output = await _recall(surrounded(ledger=ledger), query="8443", exact=True, limit=1)

    assert "the newest 1 of 4 matches" in str(output.content)
    assert "will listen on 8443" in str(output.content)


@pytest.mark.parametrize(("ignore_case", "found"), [(True, True), (False, False)])
async def test_capitals_matter_unless_said_otherwise(
    surrounded: Surrounded, ledger: Path, ignore_case: bool, found: bool
) -> None:
    output = await _recall(surrounded(ledger=ledger), query="STAGING", exact=True, ignore_case=ignore_case)

    assert found == ("proxy" in str(output.content))


@pytest.mark.parametrize("filler", ["", "x" * 500])
async def test_what_recall_asked_and_answered_is_not_found_again(
    surrounded: Surrounded, home: Path, filler: str
) -> None:
    path = (
        Script()
        .turn(
            user("The needle is here."),
            function_call("c1", "recall", json.dumps({"query": f"{filler} needle"})),
            function_output("c1", f"From the ledger of this thread, 1 found:\n{filler}\nThe needle is here."),
        )
        .write_home(home)
    )

    output = await _recall(surrounded(ledger=path), query="needle", exact=True)

    assert "1 found:" in str(output.content)


async def test_a_fork_recalls_what_it_inherits_and_nothing_after(surrounded: Surrounded, home: Path) -> None:
    parent = Script().turn(user("The parent chose sqlite."), assistant("Fine."))
    end = len(parent.data())
    count = len(parent.lines)
    parent.turn(user("Later the parent chose postgres."), assistant("Fine too."))
    parent.write_home(home)
    base = {"thread_id": parent.thread_id, "end_ordinal_exclusive": count, "end_byte_offset": end}
    fork_id = "0198c0de-0000-7000-8000-000000000002"
    fork = Script(fork_id, paginated=True, forked_from_id=parent.thread_id, history_base=base)
    path = fork.turn(user("The fork chose duckdb."), assistant("Sure.")).write_home(home)

    exact = await _recall(surrounded(ledger=path), query="chose", exact=True)
    ranked = await _recall(surrounded(ledger=path), query="what was chose")

    for output in (exact, ranked):
        assert "[turn 1, user, 2026-11-15T09:00:00.000Z]\nThe parent chose sqlite." in str(output.content)
        assert "[turn 2, user, 2026-11-15T09:00:00.000Z]\nThe fork chose duckdb." in str(output.content)
        assert "postgres" not in str(output.content)


async def test_what_was_spilled_is_looked_into(surrounded: Surrounded, home: Path) -> None:
    whole = "begin " + "x" * 9000 + " a needle in the middle " + "y" * 9000
    payload, refs = spill("response_item", function_output("c1", whole), BlobStore(home), 1000)
    line = {"timestamp": TIME, "type": "response_item", "payload": payload, "blob": refs}
    path = Script().turn(user("look"), function_call("c1")).raw(msgspec.json.encode(line)).write_home(home)

    output = await _recall(surrounded(ledger=path), query="a needle in the middle", exact=True)

    assert "needle" not in path.read_text()
    assert "1 found" in str(output.content)


@pytest.mark.parametrize("exact", [True, False])
async def test_nothing_found_says_what_to_try(surrounded: Surrounded, ledger: Path, exact: bool) -> None:
    output = await _recall(surrounded(ledger=ledger), query="zeppelin", exact=exact)

    assert output.ok
    assert "nothing was found. Try other words" in str(output.content)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": " "}, "the query is empty"),
        ({"query": ""}, "length >= 1"),
        ({"query": "x", "limit": 0}, ">= 1"),
        ({"query": "x" * 3000}, "length <= 2000"),
    ],
)
async def test_what_cannot_be_asked_is_refused(
    surrounded: Surrounded, ledger: Path, arguments: dict[str, Any], said: str
) -> None:
    output = await _recall(surrounded(ledger=ledger), **arguments)

    assert not output.ok
    assert said in str(output.content)


async def test_a_thread_without_a_ledger_recalls_nothing(surrounded: Surrounded, tmp_path: Path) -> None:
    for ledger in (None, tmp_path / "none.jsonl"):
        output = await _recall(surrounded(ledger=ledger), query="x")
        assert "keeps no ledger" in str(output.content)


async def test_a_damaged_ledger_is_told_of(surrounded: Surrounded, tmp_path: Path) -> None:
    path = tmp_path / "rollout-2026-11-15T09-00-00-0198c0de-0000-7000-8000-000000000001.jsonl"
    path.write_bytes(b"junk\n")

    for exact in (True, False):
        output = await _recall(surrounded(ledger=path), query="x", exact=exact)
        assert not output.ok
        assert "recall failed: " in str(output.content)


async def test_what_is_recalled_is_cleaned_and_cut(surrounded: Surrounded, ledger: Path) -> None:
    context = surrounded(ledger=ledger, policy=TruncationPolicy("bytes", 200))

    output = await _recall(context, lambda text: text.replace("8443", "####"), query="staging proxy port")

    assert "8443" not in str(output.content)
    assert "chars truncated" in str(output.content)


@pytest.mark.parametrize(("before", "behind"), [("", " the needle"), ("the needle " + "x" * 1_575, "")])
async def test_a_secret_that_an_excerpt_cuts_is_taken_out(
    surrounded: Surrounded, home: Path, before: str, behind: str
) -> None:
    letters = "Zq8vT3mKx2Wd7Rb5Yc9Nf4Hs6Lj1Pg0"
    token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIx" + letters * 5 + "." + letters * 2
    path = (
        Script()
        .turn(user("Go."), function_call("c1", "shell", "{}"), function_output("c1", f"{before} {token}{behind}"))
        .write_home(home)
    )

    text = str((await _recall(surrounded(ledger=path), query="the needle", exact=True)).content)

    assert "the needle" in text
    assert letters not in text
    assert "eyJ" not in text
    assert "REDACTED" in text
