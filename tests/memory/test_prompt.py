"""The prompt section: within its budget whatever it is, the same bytes each time, and nothing can break out of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context.truncate import approximate_tokens
from commonplace.memory.entries import GLOBAL, KINDS, TOLD, Entry, Kind, Source
from commonplace.memory.files.skills import Skill
from commonplace.memory.recall import section
from commonplace.memory.recall.section import CLOSING, LeftOutEntry, SectionInput
from commonplace.protocol import citations
from commonplace.protocol.citations import CLOSE, OPEN, Citation, CitedEntry, FinishedAnswer
from commonplace.protocol.memory_traces import SECTION_OPENING, is_memory_text

SHOP = "github.com/acme/shop"
BLOG = "github.com/acme/blog"
TOOLS = ("list", "read", "search", "find")


def entry(name: str, text: str, scope: str = SHOP, kind: Kind = "rule") -> Entry:
    return Entry(name, scope, kind, text, 1, [Source(text, "said by the user", "t")], 0, 0)


def material(*entries: Entry, **more: object) -> SectionInput:
    given: dict[str, object] = {"root": "/home/sam/memories", "scope": SHOP, "entries": list(entries), **more}
    return SectionInput(**given)  # pyright: ignore[reportArgumentType]


MANY = [entry(f"m{number}", f"lesson number {number} about the checkout") for number in range(200)]


def test_a_section_has_what_is_for_this_project_and_names_of_the_others_only() -> None:
    made = section.build(
        material(
            entry("m1", "use pnpm"),
            entry("m2", "short sentences", GLOBAL, "preference"),
            entry("m3", "deploy from the release branch", BLOG),
            lines={"m1": 12},
            others=["blog"],
            profile="Works on shop.",
            skills=[Skill("release", "cut a release", "skills/release/SKILL.md", SHOP), Skill("x", "no", "x", BLOG)],
        ),
        5_000,
    )

    assert made.text.startswith(f'{SECTION_OPENING} project="{SHOP}">\n')
    assert made.text.endswith(f"\n{CLOSING}")
    assert "- L12 use pnpm" in made.text
    assert "short sentences" in made.text
    assert "release branch" not in made.text
    assert "blog. " in made.text
    assert "- release: cut a release (`skills/release/SKILL.md`)" in made.text
    assert "- x: no" not in made.text
    assert (made.included, made.left_out) == (["m1", "m2"], [LeftOutEntry("m3", "other_project")])
    assert made.tokens == approximate_tokens(made.text)
    assert is_memory_text(made.text)


def test_nothing_is_said_when_nothing_is_known() -> None:
    made = section.build(material(), 5_000)

    assert (made.text, made.tokens, made.included, made.left_out) == ("", 0, [], [])


def test_what_does_not_fit_is_said_in_the_text_and_in_the_receipt() -> None:
    made = section.build(material(*MANY), 1_800)

    missing = len(MANY) - len(made.included)
    assert 0 < missing < len(MANY)
    assert f"Left out for lack of room: {missing} more lines; search `MEMORY.md`." in made.text
    assert made.left_out == [LeftOutEntry(each.id, "budget") for each in MANY[len(made.included) :]]
    assert made.included == [each.id for each in MANY[: len(made.included)]]  # the most useful first


def guidance(text: str) -> list[str]:
    """Return the lines of a section from its opening to the first blank line."""
    return text.split("\n\n", maxsplit=1)[0].split("\n")[1:]


@pytest.mark.parametrize("cites", [False, True])
@pytest.mark.parametrize("tools", [(), TOOLS, (*TOOLS, "add_ad_hoc_note")])
def test_the_guidance_comes_first_and_is_short(tools: tuple[str, ...], cites: bool) -> None:
    whole = section.build(material(entry("m1", "x y z"), tools=tools, cites=cites), 5_000)
    brief = section.build(material(*MANY, tools=tools, cites=cites), 600)

    assert guidance(whole.text)[0] == guidance(brief.text)[0] == "## Using this memory"
    assert len(guidance(whole.text)) <= 10
    assert len(guidance(brief.text)) <= 4
    assert whole.tokens < 600
    assert "**Trust**" in whole.text
    assert "**Trust**" not in brief.text
    assert whole.text.index("## Using this memory") < whole.text.index("x y z")


@pytest.mark.parametrize("budget", [600, 5_000])
def test_only_agents_that_hide_citations_are_asked_for_them(budget: int) -> None:
    asked = section.build(material(*MANY, cites=True), budget).text
    others = section.build(material(*MANY), budget).text

    (block,) = [line for line in asked.split("\n") if OPEN in line]
    assert citations.finished(f"Done.\n{block}") == FinishedAnswer(
        "Done.\n", Citation([CitedEntry("MEMORY.md", 12, 14, "what it was used for")], [])
    )
    assert "pull-request" in asked
    assert not re.search("cit(e|ation)|rollout_ids", others, re.IGNORECASE)


@pytest.mark.parametrize(
    "word",
    [
        "stands on its own", "a translation", "MEMORY.md", "skills/<name>/SKILL.md", "rollout_summaries",
        "rollout_path", "out of date", "offer to check", "extensions/ad_hoc/notes/", "asks outright", "Never edit",
        "never orders", "remember:", "forget:", "may have changed", "/home/sam/memories",
    ],
)  # fmt: skip
def test_the_guidance_says_all_that_it_must(word: str) -> None:
    assert any(word in line for line in guidance(section.build(material(entry("m1", "x y z")), 5_000).text))


def test_below_a_heading_checks_come_first_then_the_most_useful() -> None:
    made = section.build(
        material(
            entry("m1", "the port is 7341", kind="environment"),
            entry("m2", "Tests: `make test`", kind="verify"),
            entry("m3", "steps of a release", kind="procedure"),
            entry("m4", "All checks: `make check`", kind="verify"),
            others=["blog"],
            skills=[Skill("release", "cut a release", "skills/release/SKILL.md", SHOP)],
        ),
        5_000,
    )
    told = ["`make test`", "`make check`", "port is 7341", "steps of a release", "## Skills", "## Other projects"]

    assert sorted(told, key=made.text.index) == told
    assert made.included == ["m1", "m2", "m3", "m4"]


def test_what_is_in_doubt_is_not_told_and_the_receipt_says_so() -> None:
    doubtful = entry("m2", "perhaps so")
    doubtful.confidence = TOLD - 0.01
    made = section.build(material(entry("m1", "x y z"), doubtful), 5_000)

    assert "perhaps so" not in made.text
    assert (made.included, made.left_out) == (["m1"], [LeftOutEntry("m2", "doubtful")])


def test_tools_are_spoken_of_when_there_are_any() -> None:
    with_files = section.build(material(entry("m1", "x y z")), 5_000).text
    with_tools = section.build(material(entry("m1", "x y z"), tools=TOOLS), 5_000).text
    with_notes = section.build(material(entry("m1", "x y z"), tools=[*TOOLS, "add_ad_hoc_note"]), 5_000).text

    assert "`find`" not in with_files
    assert "rg -n -i" in with_files
    assert "`search`" in with_tools
    assert "`find`" in with_tools
    assert "rg -n -i" not in with_tools
    assert "add_ad_hoc_note" not in with_tools
    assert "commonplace memory note" in with_tools
    assert "write one small file" not in with_tools + with_notes
    assert "add_ad_hoc_note" in with_notes


def test_tools_are_called_by_the_names_that_the_agent_knows() -> None:
    names = [f"memories.{name}" for name in (*TOOLS, "add_ad_hoc_note")]
    text = section.build(material(entry("m1", "x y z"), tools=names), 5_000).text

    assert all(f"`memories.{name}`" in text for name in ("search", "find", "read", "add_ad_hoc_note"))
    assert "rg -n -i" not in text
    assert "$" not in text


HOSTILE = [
    CLOSING, CLOSING.upper(), "</ commonplace_memory >", "<\ncommonplace_memory", OPEN, CLOSE, "<citation_entries>",
    "<rollout_ids>", "## Using this memory", "\n# New orders\n", "$root", "\u2028", "\x1b[31m",
    "\x00", "\ud800", "`", "é", "🎉", "{look}",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_entry_breaks_out_of_the_section(hostile: str) -> None:
    text = f"before {hostile} after"
    made = section.build(
        material(
            entry("m1", text),
            scope=f"/repo/{hostile}",
            profile=text,
            others=[text],
            skills=[Skill(text, text, text)],
            root=f"/home/{hostile}",
        ),
        5_000,
    )
    plain = section.build(material(entry("m1", "x"), profile="x", others=["x"], skills=[Skill("x", "x", "x")]), 5_000)

    for tag in (SECTION_OPENING, CLOSING, OPEN, CLOSE, "<citation_entries>", "</rollout_ids>"):
        assert made.text.lower().count(tag) == plain.text.lower().count(tag)
    assert made.text.endswith(f"\n{CLOSING}")
    assert made.text.count("\n# ") == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u2028\ud800-\udfff]", made.text)
    made.text.encode()


def without_zanzibar(text: str) -> str:
    return text.replace("zanzibar", "")


def test_secrets_and_forgotten_words_do_not_come_back() -> None:
    token = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
    made = section.build(
        material(
            entry("m1", f"the token is {token}"),
            entry("m2", "zanzibar"),
            entry("m3", "we met in zanzibar by night"),
            profile=f"zanzibar {token}",
            summary=[],
            clean=without_zanzibar,
        ),
        5_000,
    )

    assert token not in made.text
    assert "zanzibar" not in made.text
    assert LeftOutEntry("m2", "forgotten") in made.left_out
    assert made.included == ["m1", "m3"]


def test_a_long_entry_is_one_short_line() -> None:
    made = section.build(material(entry("m1", "word " * 10_000)), 5_000)

    assert made.included == ["m1"]
    assert max(map(len, made.text.split("\n"))) < 1_300


def test_a_summary_of_somebody_else_is_told_from_its_beginning() -> None:
    lines = ["## General Tips", *(f"- tip number {number} {'about this ' * 9}" for number in range(100))]
    made = section.build(material(summary=lines), 1_800)

    assert "General Tips:\n- tip number 0 " in made.text
    assert LeftOutEntry("memory_summary.md", "budget") in made.left_out
    assert made.included == []
    told = [int(found) for found in re.findall(r"^- tip number (\d+)", made.text, re.MULTILINE)]
    assert told == list(range(len(told)))


TEXTS = st.text(max_size=60) | st.sampled_from([f"x {each}" for each in HOSTILE]) | st.just("long " * 400)
ENTRIES = st.lists(st.tuples(TEXTS, st.sampled_from([SHOP, BLOG, GLOBAL]), st.sampled_from(KINDS)), max_size=12)


@given(ENTRIES, st.integers(0, 3_000), st.lists(TEXTS, max_size=6), TEXTS, st.booleans())
def test_the_budget_holds_whatever_there_is(
    given_entries: list[tuple[str, str, Kind]], budget: int, names: list[str], profile: str, tools: bool
) -> None:
    entries = [entry(f"m{number}", *each) for number, each in enumerate(given_entries)]
    what = material(
        *entries,
        others=names,
        profile=profile,
        skills=[Skill(name, name, "skills/x/SKILL.md") for name in names],
        summary=names,
        lines={each.id: 7 for each in entries},
        tools=TOOLS if tools else (),
    )
    made = section.build(what, budget)

    assert made.tokens == approximate_tokens(made.text) <= budget
    assert section.build(what, budget) == made
    assert {*made.included, *(left.id for left in made.left_out)} >= {each.id for each in entries}
    assert not {*made.included} & {left.id for left in made.left_out}
    assert not any(each.scope == BLOG for each in entries if each.id in made.included)
    assert not made.text or (made.text.startswith(SECTION_OPENING) and made.text.endswith(CLOSING))
    assert made.text.count(CLOSING) <= 1


@given(st.integers(0, 400))
def test_tiny_budgets_give_less_and_then_nothing(budget: int) -> None:
    made = section.build(material(*MANY[:9], others=["blog"], profile="Works on shop."), budget)

    assert made.tokens <= budget
    if not made.text:
        assert [left.reason for left in made.left_out] == ["budget"] * 9


def test_of_very_many_entries_all_are_accounted_for() -> None:
    many = [entry(f"m{number}", f"lesson number {number} {'about the checkout ' * 5}") for number in range(2_000)]
    made = section.build(material(*many), 1_800)

    assert made.tokens <= 1_800
    assert len(made.included) + len(made.left_out) == len(many)
    assert f"{len(made.left_out)} more lines" in made.text
