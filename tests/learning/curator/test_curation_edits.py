"""Edits of a model: honest ones are used and stay, each wrong one is dropped alone, provenance is exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from curated import FACT, LIMITS, SHOP, Memory, edit, fact, nothing, proposes, sent, session, shown, wish

from commonplace.learning.consolidate import entry_edits
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory, entries_of
from commonplace.learning.consolidate.curator import CuratorLimits
from commonplace.memory.edits.forgotten import Forgotten, decision
from commonplace.memory.entries import GLOBAL, Entry, entry_id
from commonplace.rollout.decisions import DecisionLine

pytestmark = pytest.mark.anyio
UV = "always use uv, never pip"
COMMITS = "write commit messages in the imperative"
CHANGES = "begin the subject line of a commit with a verb, as the kernel does"
EVERYWHERE = "in all my projects the main branch is called trunk"
PORT = "the staging server listens on port 8085"
DEPLOY = "deploy with `make ship` after `make check` passed"
PAGE = "the page of the vendor says to disable the firewall"


DECIDED = (FACT, f'decided by the user: "{EVERYWHERE}"', "decided by the user", EVERYWHERE)


def name(words: str, kind: Any = "preference") -> str:
    return entry_id(SHOP, kind, words)


NAMES = {
    UV: name(UV), COMMITS: name(COMMITS), CHANGES: name(CHANGES), EVERYWHERE: name(EVERYWHERE, "decision"),
    PORT: name(PORT, "environment"), DEPLOY: name(DEPLOY, "environment"), PAGE: name(PAGE, "environment"),
}  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    found = Memory(tmp_path)
    found.add(
        session(1, wish(UV), wish(COMMITS), fact(PORT)),
        session(2, wish(CHANGES), DECIDED, fact(DEPLOY), fact(PAGE)),
    )
    return found


def tells(memory: ConsolidatedMemory, words: str) -> Entry:
    """The entry that has the id of some words."""
    (found,) = [each for each in memory.entries if each.id == NAMES[words]]
    return found


HONEST: dict[str, dict[str, Any]] = {
    "reword a wish": edit("reword", NAMES[UV], text="packages: always uv, never pip"),
    "reword with the person's words": edit("reword", NAMES[UV], text=f'for packages, "{UV}" -> use uv'),
    "reword a fact": edit("reword", NAMES[PORT], text="staging server: port 8085"),
    "reword what has commands": edit("reword", NAMES[DEPLOY], text="to deploy: `make check`, then `make ship`"),
    "join": edit(
        "join",
        NAMES[COMMITS],
        NAMES[CHANGES],
        text="commit messages: imperative, the subject line begins with a verb, as the kernel does",
    ),
    "retitle": edit(
        "retitle",
        NAMES[DEPLOY],
        NAMES[PORT],
        scope=SHOP,
        text="deploy to the staging server",
        keywords=["staging", "make ship"],
    ),
    "move to global": edit("move_to_global", NAMES[EVERYWHERE]),
    "write a skill": edit(
        "write_skill", NAMES[DEPLOY], scope=SHOP, name="deploy", steps=["run `make check`", "deploy with `make ship`"]
    ),
    "order": edit("order", NAMES[PAGE], NAMES[DEPLOY], NAMES[PORT]),
}


@pytest.mark.parametrize("kind", HONEST)
async def test_an_honest_edit_is_used(memory: Memory, kind: str) -> None:
    found = await memory.learn(proposes(HONEST[kind]))

    assert found.warnings == []
    assert len(entry_edits.read(memory.root).kept) == 1


async def test_all_honest_edits_together_are_used_and_seen_in_the_files(memory: Memory) -> None:
    found = await memory.learn(proposes(*HONEST.values()))
    text = memory.text()

    assert found.warnings == []
    assert 'for packages, "always use uv, never pip" -> use uv' in text
    assert "# Task Group: shop: deploy to the staging server" in text
    assert "- staging, make ship\n" in text
    assert tells(found, EVERYWHERE).scope == GLOBAL
    assert text.index(PAGE) < text.index("to deploy: ") < text.index("staging server: port 8085")
    skill = memory.text("skills/deploy/SKILL.md")
    assert f"scope: project {SHOP}\n" in skill
    assert "1. run `make check`\n2. deploy with `make ship`\n" in skill
    assert "Related skill: skills/deploy/SKILL.md" in text


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an entry that was not shown": (edit("reword", "m000000000", text=UV), "names an entry that was not shown"),
    "another number": (edit("reword", NAMES[PORT], text="staging server: port 8086"), "rests on nothing"),
    "a part of a number": (
        edit("reword", NAMES[PORT], text="the staging server listens on port 80"),
        "rests on nothing",
    ),
    "a command of its own": (
        edit("reword", NAMES[DEPLOY], text="deploy with `make ship` after `make check` and `make e2e`"),
        "rests on nothing",
    ),
    "a path of its own": (
        edit("reword", NAMES[PORT], text="the staging server listens on port 8085, see /etc/hosts"),
        "rests on nothing",
    ),
    "a command is lost": (edit("reword", NAMES[DEPLOY], text="deploy with `make ship`"), "leaves out"),
    "other words": (edit("reword", NAMES[COMMITS], text="squash everything into one branch"), "rests on nothing"),
    "a wish turned round": (edit("reword", NAMES[UV], text="always use pip, never uv"), "the opposite"),
    "a denial left out": (edit("reword", NAMES[UV], text="always use uv and pip"), "the opposite"),
    "a denial put in": (
        edit("reword", NAMES[COMMITS], text="never write commit messages in the imperative"),
        "opposite",
    ),
    "an order out of a fact": (
        edit("reword", NAMES[PAGE], text="always disable the firewall, says the page of the vendor"),
        "rests on nothing",
    ),
    "a quotation that nobody said": (
        edit("reword", NAMES[COMMITS], text='commit messages: "imperative or else"'),
        "rests on nothing",
    ),
    "a wish and a fact in one": (edit("join", NAMES[COMMITS], NAMES[PORT], text=f"{COMMITS}; {PORT}"), "joins entries"),
    "one of the two is lost": (edit("join", NAMES[COMMITS], NAMES[UV], text=COMMITS), "leaves out"),
    "no words": (edit("reword", NAMES[UV], text=""), "is no line"),
    "a link": (edit("reword", NAMES[PORT], text=f"{PORT}, see [here](https://evil.example/x)"), "is no line"),
    "structure": (edit("reword", NAMES[PORT], text=f"{PORT} [Task 9]"), "is no line"),
    "a page": (edit("reword", NAMES[PORT], text=PORT * 20), "is no line"),
    "global, of one project": (edit("move_to_global", NAMES[COMMITS]), "makes global"),
    "a title of something else": (
        edit("retitle", NAMES[UV], scope=SHOP, text="kubernetes migration", keywords=[]),
        "rests on nothing",
    ),
    "a keyword of its own": (
        edit("retitle", NAMES[UV], scope=SHOP, text="always use uv", keywords=["poetry"]),
        "rests on nothing",
    ),
    "a title elsewhere": (edit("retitle", NAMES[UV], scope="example.org/x", text="always use uv"), "another project"),
    "a skill of another project": (
        edit("write_skill", NAMES[DEPLOY], scope=GLOBAL, name="deploy", steps=["`make ship`"]),
        "another project",
    ),
    "a skill with a step of its own": (
        edit("write_skill", NAMES[DEPLOY], scope=SHOP, name="deploy", steps=["`make ship`", "`rm -rf build`"]),
        "rests on nothing",
    ),
    "a skill outside": (
        edit("write_skill", NAMES[DEPLOY], scope=SHOP, name="../deploy", steps=["`make ship`"]),
        "no skill",
    ),
    "one entry in order": (edit("order", NAMES[UV]), "is no edit"),
}


@pytest.mark.parametrize("kind", WRONG)
async def test_a_wrong_edit_is_dropped_alone_and_counted(memory: Memory, kind: str) -> None:
    wrong, reason = WRONG[kind]
    before = (await memory.learn(nothing(), settings=CuratorLimits(requests=1))).entries
    (memory.root / ".edits.jsonl").unlink()
    found = await memory.learn(proposes(HONEST["move to global"], wrong, HONEST["order"]))
    texts = {each.id: each.text for each in before}

    assert "2 used, 1 dropped" in found.warnings[0]
    assert reason in found.warnings[0]
    assert {each.id: each.text for each in found.entries} == texts
    assert tells(found, EVERYWHERE).scope == GLOBAL


async def test_a_joined_entry_has_exactly_the_sources_of_its_parts(memory: Memory) -> None:
    before = {each.id: each for each in (await memory.learn(nothing())).entries}
    (memory.root / ".edits.jsonl").unlink()
    found = await memory.learn(proposes(HONEST["join"], HONEST["reword a fact"]))
    joint, first, second = tells(found, COMMITS), before[NAMES[COMMITS]], before[NAMES[CHANGES]]

    assert joint.sources == [*first.sources, *second.sources]
    assert (joint.support, joint.kind, joint.scope) == (2, first.kind, first.scope)
    assert tells(found, PORT).sources == before[NAMES[PORT]].sources
    assert (second.id, joint.id) in [(old.id, new.id) for old, new in found.replaced]
    assert NAMES[CHANGES] not in {each.id for each in found.entries}


async def test_edits_apply_again_without_a_model_and_nobody_is_asked_twice(memory: Memory) -> None:
    first = await memory.learn(proposes(*HONEST.values()))
    text = memory.text()
    again = await memory.learn()

    assert memory.model.requests == []
    assert text == memory.text()
    assert {each.id: each.text for each in again.entries} == {each.id: each.text for each in first.entries}
    assert {each.text for each in entries_of(memory.material())} == {each.text for each in first.entries}


async def test_a_session_that_joins_changes_no_wording_and_only_it_is_asked_about(memory: Memory) -> None:
    await memory.learn(proposes(*HONEST.values()))
    new = "the linter of this repository is ruff, run it with `ruff check`"
    memory.add(session(3, fact(new), wish(UV)))
    found = await memory.learn(nothing())

    assert 'for packages, "always use uv, never pip" -> use uv' == tells(found, UV).text
    assert tells(found, UV).support == 2
    assert new in shown(memory.model.requests[0]).values()
    assert NAMES[EVERYWHERE] not in sent(memory.model.requests[0])


async def test_an_edit_whose_entry_says_something_else_now_is_stale_and_asked_again(memory: Memory) -> None:
    await memory.learn(proposes(HONEST["reword a fact"], HONEST["reword a wish"]))
    longer = "the staging server listens on port 8085, and it restarts every night at four"
    memory.sessions[0] = session(1, wish(UV), wish(COMMITS), (FACT, longer, "printed by a tool", longer))
    found = await memory.learn(nothing())

    assert longer in shown(memory.model.requests[0]).values()
    assert longer in {each.text for each in found.entries}
    assert tells(found, UV).text == "packages: always uv, never pip"
    assert len(entry_edits.read(memory.root).kept) == 1


async def test_a_later_edit_of_a_joined_entry_keeps_all_its_parts(memory: Memory) -> None:
    await memory.learn(proposes(HONEST["join"]))
    memory.add(session(3, wish("the body of a commit message wraps at 72 columns")))
    text = "commits: messages in the imperative, a subject line that begins with a verb as in the kernel"
    found = await memory.learn(
        lambda request: (
            proposes(edit("reword", NAMES[COMMITS], text=text)) if NAMES[COMMITS] in shown(request) else nothing()
        )
    )

    assert tells(found, COMMITS).text == text
    assert {source.thread_id for source in tells(found, COMMITS).sources} >= {
        memory.sessions[0].thread_id, memory.sessions[1].thread_id
    }  # fmt: skip
    assert NAMES[CHANGES] not in {each.id for each in found.entries}


async def test_what_two_repositories_taught_may_become_global_and_is_one_then(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.add(session(1, fact(PORT), fact(DEPLOY)))
    memory.add(session(2, fact(PORT), cwd="/home/dev/blog"), project="example.org/acme/blog")
    twin = entry_id("example.org/acme/blog", "environment", PORT)
    moves = [edit("move_to_global", each) for each in (NAMES[PORT], NAMES[DEPLOY], twin)]
    found = await memory.learn(proposes(*moves, edit("join", NAMES[PORT], twin, text=PORT)))

    assert "3 used, 1 dropped (1 × makes global what was said of one project)" in found.warnings[0]
    assert (tells(found, PORT).scope, tells(found, PORT).support) == (GLOBAL, 2)
    assert tells(found, DEPLOY).scope == SHOP


@pytest.mark.parametrize("kind", ["pinned", "noted"])
async def test_what_a_person_pinned_or_noted_is_not_changed(memory: Memory, kind: str) -> None:
    if kind == "pinned":
        memory.pinned = {NAMES[UV]}
    else:
        memory.note(UV)
    found = await memory.learn(
        lambda request: proposes(
            *(
                edit("reword", each, text="packages: always uv, never pip")
                for each, text in shown(request).items()
                if UV in text
            )
        )
    )

    assert "changes what a person pinned, noted or confirmed" in found.warnings[0]
    assert any(UV in each.text for each in found.entries)


async def test_what_was_forgotten_does_not_come_back_by_an_edit(memory: Memory) -> None:
    await memory.learn(proposes(HONEST["reword a fact"]))
    made = decision(["staging server: port 8085"])
    memory.forgotten = Forgotten([DecisionLine(kind="forget", time="2026-11-15T11:00:00Z", **made)])
    found = await memory.learn()

    assert "8085" not in memory.text()
    assert NAMES[PORT] not in {each.id for each in found.entries}


async def test_only_a_part_at_a_time_is_sent_and_what_waits_is_said(memory: Memory) -> None:
    found = await memory.learn(*[nothing()] * 7, settings=CuratorLimits(part_bytes=1, sleep=LIMITS.sleep))
    first = sent(memory.model.requests[0])

    assert found.warnings == []
    assert len(memory.model.requests) == 7
    assert "at most 40 edits" in first
    assert "6 more entries wait" in first


async def test_a_run_asks_only_so_often_and_says_what_is_left(memory: Memory) -> None:
    limits = CuratorLimits(part_bytes=1, requests=2)
    found = await memory.learn(nothing(), nothing(), settings=limits)
    await memory.learn(*[nothing()] * 2, settings=limits)

    assert "did not go over 5 of 7 entries: A run asks at most 2 times." in found.warnings[0]
    assert len({each for request in memory.model.requests for each in shown(request)}) >= 2


async def test_a_memory_of_another_program_is_not_gone_over(memory: Memory) -> None:
    memory.merged()
    found = await memory.learn()

    assert "Another program wrote the memory" in found.warnings[0]


async def test_no_secret_is_sent_or_kept(memory: Memory) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    memory.add(session(3, fact(f"the token of the deploy bot is {secret}")))
    found = await memory.learn(proposes(edit("reword", NAMES[PORT], text=f"{PORT} {secret}")))

    assert secret not in sent(memory.model.requests[0])
    assert secret not in memory.text() + (memory.root / ".edits.jsonl").read_text("utf-8")
    assert found.entries


async def test_lines_of_the_edits_that_cannot_be_read_are_left_out(memory: Memory) -> None:
    await memory.learn(proposes(HONEST["reword a fact"], HONEST["reword a wish"]))
    place = memory.root / ".edits.jsonl"
    lines = place.read_text("utf-8").split("\n")
    place.write_text("\n".join(["{", '{"edit": {"type": "burn"}}', *lines[1:]]), "utf-8")
    found = await memory.learn(nothing())

    assert tells(found, PORT).text == PORT
    assert tells(found, UV).text == "packages: always uv, never pip"
