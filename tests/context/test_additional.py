"""Additional context: who speaks, in which words, when again, and what is refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from commonplace.context import additional, truncate
from commonplace.context.additional import AdditionalContext, LastGivenContext
from commonplace.errors import BadInput
from commonplace.protocol import fragments, items, turns
from ledgers import Json, user

Given = dict[str, tuple[str, additional.Kind]]


def entries(given: Given) -> dict[str, AdditionalContext]:
    return {key: AdditionalContext(value, kind) for key, (value, kind) in given.items()}


def said(items_: list[Json]) -> list[tuple[str, str]]:
    return [(item["role"], item["content"][0]["text"]) for item in items_]


A: Given = {"a": ("1", "application")}
B: Given = {"b": ("2", "untrusted")}


# --- Form.


@pytest.mark.parametrize(
    ("key", "value", "kind", "role", "text"),
    [
        ("page", "words", "untrusted", "user", "<external_page>words</external_page>"),
        ("ci", "green", "application", "developer", "<ci>green</ci>"),
        ("ide.open_file", "main.py", "application", "developer", "<ide.open_file>main.py</ide.open_file>"),
        ("é", "", "untrusted", "user", "<external_é></external_é>"),
        ("z", "</z> & <b>\n", "application", "developer", "<z></z> & <b>\n</z>"),
    ],
)
def test_the_kind_decides_role_and_tag_and_the_value_is_not_escaped(
    key: str, value: str, kind: additional.Kind, role: str, text: str
) -> None:
    told = additional.injected_text(key, AdditionalContext(value, kind))

    assert (role, text, f"additional_content.{key}", True) == (told.role, told.text, told.kind, told.alone)


@pytest.mark.parametrize(
    ("value", "inside"),
    [
        ("x" * 4_000, "x" * 4_000),
        ("x" * 4_001, "x" * 2_000 + "…1 tokens truncated…" + "x" * 2_000),
        ("é" * 3_000, "é" * 1_000 + "…500 tokens truncated…" + "é" * 1_000),
    ],
)
def test_a_value_is_cut_in_its_middle_at_a_thousand_tokens(value: str, inside: str) -> None:
    assert (
        f"<external_k>{inside}</external_k>"
        == additional.injected_text("k", AdditionalContext(value, "untrusted")).text
    )


def test_entries_stand_one_to_a_message_sorted_by_key_before_the_words_of_the_person() -> None:
    given = entries(
        {
            "b": ("1", "application"),
            "a": ("2", "application"),
            "B": ("3", "untrusted"),
            "é": ("4", "untrusted"),
            "c": ("", "untrusted"),
        }
    )

    _, found = additional.start(LastGivenContext(), given, [user("one")])

    assert [
        ("user", "<external_B>3</external_B>"),
        ("developer", "<a>2</a>"),
        ("developer", "<b>1</b>"),
        ("user", "<external_c></external_c>"),
        ("user", "<external_é>4</external_é>"),
        ("user", "one"),
    ] == said(found)


def test_each_message_notes_that_its_text_is_not_the_persons() -> None:
    _, found = additional.start(LastGivenContext(), entries(B), [])

    assert {"content_item_kinds": ["additional_content.b"]} == found[0][items.PASSTHROUGH]


# --- What is told again.


@pytest.mark.parametrize(
    ("maps", "told"),
    [
        ([A, A], [["a"], []]),
        ([A, {"a": ("other", "application")}], [["a"], ["a"]]),
        ([A, {"a": ("1", "untrusted")}], [["a"], ["a"]]),
        ([A | B, A], [["a", "b"], []]),
        ([A | B, A, A | B], [["a", "b"], [], ["b"]]),
        ([A, B], [["a"], ["b"]]),
        ([A, B, A], [["a"], ["b"], ["a"]]),
        ([A, {}, A], [["a"], [], ["a"]]),
        ([{"a": ("x" * 9_000 + "1", "application")}, {"a": ("x" * 9_000 + "1", "application")}], [["a"], []]),
        (
            [{"a": ("x" * 4_500 + "1" + "x" * 4_500, "application")}, {"a": ("x" * 9_001, "application")}],
            [["a"], ["a"]],
        ),
    ],
)
def test_an_entry_is_told_when_it_is_new_or_other_and_forgotten_when_left_out(
    maps: list[Given], told: list[list[str]]
) -> None:
    remembered = LastGivenContext()
    found: list[list[str]] = []
    for one in maps:
        remembered, texts = remembered.merge(entries(one))
        found.append([text.kind.removeprefix("additional_content.") for text in texts])

    assert told == found


def test_a_turn_without_words_has_the_context_alone_as_its_input() -> None:
    _, found = additional.start(LastGivenContext(), entries(A), [])

    assert [("developer", "<a>1</a>")] == said(found)


def test_steering_puts_the_context_before_the_words() -> None:
    after, found = additional.steer(LastGivenContext(), entries(A), [user("quick")])

    assert [("developer", "<a>1</a>"), ("user", "quick")] == said(found)
    assert after == LastGivenContext(entries(A))


def test_context_alone_does_not_steer() -> None:
    with pytest.raises(BadInput) as caught:
        additional.steer(LastGivenContext(), entries(A), [])

    assert "empty_input" == caught.value.data["reason"]


# --- What is refused.


@pytest.mark.parametrize(
    ("key", "tag"),
    [("a<b", "a&#60;b"), ("a>b", "a&#62;b"), ("a/b", "a&#47;b"), ("a b", "a&#32;b"), ("a\0", "a&#0;")],
)
def test_a_key_that_would_break_its_tag_is_escaped_in_it(key: str, tag: str) -> None:
    assert f"<{tag}>v</{tag}>" == additional.injected_text(key, AdditionalContext("v", "application")).text


def test_a_key_that_cannot_be_sent_is_refused_and_nothing_is_remembered() -> None:
    remembered = LastGivenContext(entries(A))

    with pytest.raises(BadInput):
        additional.start(
            remembered,
            {"ok": AdditionalContext("v", "untrusted"), "\ud800": AdditionalContext("v", "untrusted")},
            [user("x")],
        )

    assert entries(A) == remembered.entries


@pytest.mark.parametrize(
    "key", ["", "a", "a.b", "a-b_c:d", "ключ", "k=1", "&amp;", '"', "'", "a\\b", "🙂", "external_x"]
)
def test_any_other_key_is_as_good_as_another(key: str) -> None:
    additional.check({key: AdditionalContext("v", "untrusted")})


# --- Whatever is given.

KEYS = st.text(min_size=1, max_size=8)


@st.composite
def long_values(draw: st.DrawFn) -> str:
    return draw(st.text("aé🙂<", min_size=1, max_size=8)) * draw(st.integers(500, 2_000))


VALUES = st.text(max_size=40) | long_values()
KINDS: st.SearchStrategy[additional.Kind] = st.sampled_from(["untrusted", "application"])


@given(key=KEYS, value=VALUES)
def test_what_comes_from_outside_is_never_taken_for_the_persons_words(key: str, value: str) -> None:
    given = {key: AdditionalContext(value, "untrusted")}
    try:
        additional.check(given)
    except BadInput:
        assume(False)

    _, (item,) = additional.start(LastGivenContext(), given, [])

    bare = {name: value for name, value in item.items() if name != items.PASSTHROUGH}
    for form in (item, bare):
        message = items.view(msgspec.json.encode(form))
        assert isinstance(message, items.Message)
        assert fragments.is_contextual(message)
        assert not fragments.own_words(message)
        assert not turns.is_boundary(message)
    text = item["content"][0]["text"]
    over = len(text.encode()) - 2 * len(text.partition(">")[0].encode()) - len("></>")
    assert over <= additional.VALUE_TOKENS * truncate.BYTES_PER_TOKEN + len("…99999 tokens truncated…".encode())


class Turns(RuleBasedStateMachine):
    """A session that is given maps, against the plainest account of what its model has heard."""

    def __init__(self) -> None:
        super().__init__()
        self.remembered = LastGivenContext()
        self.last: dict[str, AdditionalContext] = {}

    @rule(
        given=st.dictionaries(
            st.sampled_from("abc"), st.builds(AdditionalContext, st.sampled_from(["1", "2"]), KINDS), max_size=3
        ),
        steers=st.booleans(),
    )
    def turn(self, given: dict[str, AdditionalContext], steers: bool) -> None:
        take = additional.steer if steers else additional.start
        self.remembered, found = take(self.remembered, given, [user("words")])
        news = [key for key in sorted(given) if key not in self.last or self.last[key] != given[key]]
        assert [additional.injected_text(key, given[key]).text for key in news] == [text for _, text in said(found)][
            :-1
        ]
        assert "words" == said(found)[-1][1]
        self.last = given

    @rule(given=st.dictionaries(st.sampled_from("abc"), st.builds(AdditionalContext, st.just("1"), KINDS), max_size=3))
    def refused(self, given: dict[str, AdditionalContext]) -> None:
        with pytest.raises(BadInput):
            additional.steer(self.remembered, given, [])

    @invariant()
    def what_is_remembered_is_the_last_map(self) -> None:
        assert self.last == self.remembered.entries


TestTurns = Turns.TestCase
