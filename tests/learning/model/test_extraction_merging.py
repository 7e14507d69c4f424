"""Slices of one session, merged."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from made_sessions import session, user
from taught_by_model import FAILURES, KNOWLEDGE, PREFERENCES, STEPS

from commonplace.learning.extract.model import assemble, merge
from commonplace.learning.extract.model.verified import VerifiedBullet, VerifiedSession, VerifiedTask
from commonplace.learning.reading.findings import FindingEvidence
from commonplace.learning.reading.session_view import EventSpan, SessionView
from commonplace.memory.files import lesson_text, output_shape
from commonplace.state.outputs import Output


def written(view: SessionView, found: VerifiedSession, reader: str) -> Output:
    """What is stored of what a model told."""
    return lesson_text.output(assemble.session_lessons(view, found, reader))


def said(words: str, at: int = 0, *, section: str = PREFERENCES) -> VerifiedBullet:
    evidence = FindingEvidence(EventSpan(1, at, at + 9), words, "said by the user")
    return VerifiedBullet(section, f'said by the user: "{words}"', (evidence,))


def shown(text: str, at: int = 0, *, section: str = FAILURES) -> VerifiedBullet:
    return VerifiedBullet(section, text, (FindingEvidence(EventSpan(1, at, at + 9), text, "shown by a command"),))


def told(*bullets: VerifiedBullet, name: str = "fix it", outcome: str = "success", **changes: Any) -> VerifiedSession:
    return VerifiedSession(tasks=[VerifiedTask(name, outcome, list(bullets), list(bullets))], **changes)


def texts(found: VerifiedSession) -> list[str]:
    return [each.text for task in found.tasks for each in task.memory_bullets]


def test_what_two_slices_say_is_told_once_with_the_evidence_of_both() -> None:
    found = merge.merge([told(said("always use tabs", 10)), told(said("always use tabs", 90))])

    assert ['said by the user: "always use tabs"'] == texts(found)
    assert [10, 90] == [each.at.start for each in found.tasks[0].memory_bullets[0].evidence]


def test_the_same_wish_in_other_words_is_one_wish() -> None:
    one = said("please use tabs for indentation in the Makefile")
    found = merge.merge([told(one), told(said("use tabs for indentation in the Makefile, please", 90))])

    assert [one.text] == texts(found)


def test_of_what_contradicts_the_later_holds() -> None:
    found = merge.merge([told(said("use npm for everything")), told(said("use pnpm for everything", 90))])

    assert ['said by the user: "use pnpm for everything"'] == texts(found)
    assert texts(found) == [each.text for task in found.tasks for each in task.summary_bullets]


def test_the_same_fix_of_two_slices_is_one() -> None:
    fix = "`pip install {0}` failed (externally managed); `uv pip install {0}` worked (exit 0)"
    found = merge.merge([told(shown(fix.format("x"))), told(shown(fix.format("x"), 90))])

    assert [fix.format("x")] == texts(found)


def test_what_one_slice_says_is_left_as_it_is() -> None:
    one = told(said("use npm for everything"), said("use pnpm for everything"))

    assert one is merge.merge([one])
    assert one is merge.merge([VerifiedSession(), one, VerifiedSession()])
    assert VerifiedSession() == merge.merge([VerifiedSession(), VerifiedSession()])


def test_a_task_that_goes_on_is_one_task_and_ends_as_the_later_slice_says() -> None:
    slices = [told(said("use tabs"), outcome="partial"), told(said("sign commits", 90), name="Fix  it", outcome="fail")]
    found = merge.merge([*slices, told(said("no emojis please", 190), name="other")])

    assert [("fix it", "fail", 2), ("other", "success", 1)] == [
        (task.name, task.outcome, len(task.memory_bullets)) for task in found.tasks
    ]


def test_the_head_is_made_anew_and_titles_are_joined() -> None:
    first = told(said("use tabs"), title="One", slug="one", description="gone")
    first.keywords = ["a", "b"]
    second = told(said("sign commits", 90), name="two", title="Two", context="then this")
    second.keywords = ["b", "c"]
    view = session(user("x"))
    found = written(view, merge.merge([first, second]), "m with prompt 1")

    assert "\nkeywords: a, b, c\n" in found.raw_memory
    assert (
        '\ndescription: fix it (success); two (success). Best takeaway: said by the user: "use tabs"'
        in found.raw_memory
    )
    assert found.rollout_summary.startswith("# One; Two\n")
    assert "read by m with prompt 1. then this\n" in found.rollout_summary
    assert "one" == found.rollout_slug


VOCABULARY = ("use", "tabs", "spaces", "npm", "pnpm", "never", "always", "tests", "small", "diffs", "sign", "no")
WORDS = st.lists(st.sampled_from(VOCABULARY), min_size=1)


def made(words: list[str], at: int, section: str) -> VerifiedBullet:
    return said(" ".join(words), at) if section == PREFERENCES else shown(" ".join(words), at, section=section)


def of_bullets(names: list[str], bullets: list[list[VerifiedBullet]]) -> VerifiedSession:
    pairs = zip(names, bullets, strict=False)
    return VerifiedSession(
        tasks=[
            VerifiedTask(name, "success", [each for each in own if each.section != STEPS], own) for name, own in pairs
        ]
    )


BULLETS = st.builds(made, WORDS, st.integers(0, 50), st.sampled_from([PREFERENCES, KNOWLEDGE, FAILURES, STEPS]))
NAMES = st.lists(st.sampled_from(["one", "two", "three"]), max_size=3)
SLICES = st.lists(
    st.builds(of_bullets, NAMES, st.lists(st.lists(BULLETS, max_size=4), min_size=3, max_size=3)), max_size=5
)


@given(SLICES)
def test_whatever_is_merged_has_the_right_shape_and_says_nothing_new(slices: list[VerifiedSession]) -> None:
    found = merge.merge(slices)
    output = written(session(user("x")), found, "m with prompt 1")

    assert output_shape.problem(output) is None
    assert {*texts(found)} <= {text for each in slices for text in texts(each)}
    assert found.is_empty == all(each.is_empty for each in slices)


@given(SLICES)
def test_no_text_of_two_slices_is_told_twice(slices: list[VerifiedSession]) -> None:
    once = [told(*dict.fromkeys(each for task in one.tasks for each in task.memory_bullets)) for one in slices]
    for one in once:  # a text with other evidence is the same text
        one.tasks[0].memory_bullets = list(
            {(each.section, each.text): each for each in one.tasks[0].memory_bullets}.values()
        )
    pairs = [(each.section, each.text) for task in merge.merge(once).tasks for each in task.memory_bullets]

    assert len(pairs) == len(set(pairs))


@given(SLICES)
def test_merging_the_same_again_changes_no_text(slices: list[VerifiedSession]) -> None:
    once = merge.merge(slices)
    if not once.is_empty:
        assert texts(once) == texts(merge.merge([once, VerifiedSession()]))
