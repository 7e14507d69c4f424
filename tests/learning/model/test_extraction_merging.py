"""Slices of one session, merged."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from made_sessions import session, user

from commonplace.learning.extract.model import assemble, merge
from commonplace.learning.extract.model.trust import VerifiedSession
from commonplace.memory.entries import KINDS, Kind
from commonplace.memory.files import lesson_text, output_shape
from commonplace.memory.lessons import Evidence, Lesson, RefusedLesson, TaskLessons


def said(words: str, at: int = 0, **fields: Any) -> Lesson:
    evidence = Evidence(1, at, at + 9, words, "said by the user")
    return Lesson(kind="preference", words=words, lead="said by the user", evidence=(evidence,), **fields)


def shown(text: str, at: int = 0, kind: Kind = "fix") -> Lesson:
    return Lesson(kind=kind, shown=text, evidence=(Evidence(1, at, at + 9, text, "shown by a command"),))


def told(*lessons: Lesson, name: str = "fix it", outcome: str = "success", **changes: Any) -> VerifiedSession:
    return VerifiedSession(tasks=(TaskLessons(name, outcome, lessons),), **changes)


def texts(found: VerifiedSession) -> list[str]:
    return [each.text for task in found.tasks for each in task.lessons]


def test_what_two_slices_say_is_told_once_with_the_evidence_of_both() -> None:
    found = merge.merge([told(said("always use tabs", 10)), told(said("always use tabs", 90))])

    assert ['said by the user: "always use tabs"'] == texts(found)
    assert [10, 90] == [each.start for each in found.tasks[0].lessons[0].evidence]


def test_the_same_wish_in_other_words_is_one_wish() -> None:
    one = said("please use tabs for indentation in the Makefile")
    found = merge.merge([told(one), told(said("use tabs for indentation in the Makefile, please", 90))])

    assert [one.text] == texts(found)


def test_of_what_contradicts_the_later_holds() -> None:
    found = merge.merge([told(said("use npm for everything")), told(said("use pnpm for everything", 90))])

    assert ['said by the user: "use pnpm for everything"'] == texts(found)


def test_the_same_fix_of_two_slices_is_one() -> None:
    fix = "`pip install {0}` failed (externally managed); `uv pip install {0}` worked (exit 0)"
    found = merge.merge([told(shown(fix.format("x"))), told(shown(fix.format("x"), 90))])

    assert [fix.format("x")] == texts(found)


def test_what_one_slice_says_is_left_as_it_is() -> None:
    one = told(said("use npm for everything"), said("use pnpm for everything"))

    assert one == merge.merge([one])
    assert one == merge.merge([VerifiedSession(), one, VerifiedSession()])
    assert VerifiedSession() == merge.merge([VerifiedSession(), VerifiedSession()])


def test_what_was_refused_in_any_slice_is_refused_in_the_session() -> None:
    first, second = (RefusedLesson("rule", text, "why") for text in ("a", "b"))
    slices = [VerifiedSession(refused=(first,)), told(said("use tabs"), refused=(second,))]

    assert (first, second) == merge.merge(slices).refused
    assert (first, second) == merge.merge([*slices, told(said("sign commits", 90), name="two")]).refused


def test_a_task_that_goes_on_is_one_task_and_ends_as_the_later_slice_says() -> None:
    slices = [told(said("use tabs"), outcome="partial"), told(said("sign commits", 90), name="Fix  it", outcome="fail")]
    found = merge.merge([*slices, told(said("no emojis please", 190), name="other")])

    assert [("fix it", "fail", 2), ("other", "success", 1)] == [
        (task.name, task.outcome, len(task.lessons)) for task in found.tasks
    ]


def test_the_head_is_made_anew_and_titles_are_joined() -> None:
    first = told(said("use tabs"), title="One", slug="one", keywords=("a", "b"))
    second = told(said("sign commits", 90), name="two", title="Two", keywords=("b", "c"))
    merged = merge.merge([first, second])
    found = lesson_text.output(assemble.session_lessons(session(user("x")), merged, "m with prompt 1"))

    assert "\nkeywords: a, b, c\n" in found.raw_memory
    assert (
        '\ndescription: fix it (success); two (success). Best takeaway: said by the user: "use tabs"'
        in found.raw_memory
    )
    assert found.rollout_summary.startswith("# One; Two\n")
    assert "read by m with prompt 1.\n" in found.rollout_summary
    assert "one" == found.rollout_slug


VOCABULARY = ("use", "tabs", "spaces", "npm", "pnpm", "never", "always", "tests", "small", "diffs", "sign", "no")
WORDS = st.lists(st.sampled_from(VOCABULARY), min_size=1)


def made(words: list[str], at: int, kind: Kind) -> Lesson:
    return said(" ".join(words), at) if kind in ("preference", "rule") else shown(" ".join(words), at, kind)


def of_lessons(names: list[str], lessons: list[list[Lesson]]) -> VerifiedSession:
    pairs = zip(names, lessons, strict=False)
    return VerifiedSession(tasks=tuple(TaskLessons(name, "success", tuple(own)) for name, own in pairs))


LESSONS = st.builds(made, WORDS, st.integers(0, 50), st.sampled_from(KINDS))
NAMES = st.lists(st.sampled_from(["one", "two", "three"]), max_size=3)
SLICES = st.lists(
    st.builds(of_lessons, NAMES, st.lists(st.lists(LESSONS, max_size=4), min_size=3, max_size=3)), max_size=5
)


@given(SLICES)
def test_whatever_is_merged_has_the_right_shape_and_says_nothing_new(slices: list[VerifiedSession]) -> None:
    found = merge.merge(slices)
    output = lesson_text.output(assemble.session_lessons(session(user("x")), found, "m with prompt 1"))

    assert output_shape.problem(output) is None
    assert {*texts(found)} <= {text for each in slices for text in texts(each)}
    assert found.is_empty == all(each.is_empty for each in slices)


@given(SLICES)
def test_no_text_of_two_slices_is_told_twice(slices: list[VerifiedSession]) -> None:
    once = [
        told(*{(each.kind, each.text): each for task in one.tasks for each in task.lessons}.values()) for one in slices
    ]
    pairs = [(each.kind, each.text) for task in merge.merge(once).tasks for each in task.lessons]

    assert len(pairs) == len(set(pairs))


@given(SLICES)
def test_merging_the_same_again_changes_no_text(slices: list[VerifiedSession]) -> None:
    once = merge.merge(slices)
    if not once.is_empty:
        assert texts(once) == texts(merge.merge([once, VerifiedSession()]))
