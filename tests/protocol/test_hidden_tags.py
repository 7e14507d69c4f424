"""Hidden tags: streaming in any pieces gives what the whole text gives, for one kind of tag and for several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.protocol.citations import CLOSE, OPEN, TAG, CitationStripper, strip
from commonplace.protocol.hidden_tags import Body, HiddenTags, Tag

PLAN = Tag("plan", "<plan>", "</plan>")
LONGER = Tag("planned", "<plan>>", "<<")
INSIDE = Tag("inside", "lan", "x")
HAN = Tag("han", "【隐】", "【完】")
SEVERAL = (TAG, PLAN, LONGER, INSIDE, HAN)
PIECES = [OPEN, CLOSE, "<oai-mem-", "citation>", "</oai-mem-", "<", ">", "/", "a", " ", "é", "\n", OPEN[:-1], CLOSE[1:]]
OTHERS = ["<plan>", "</plan>", "<pla", "n>", ">", "<<", "x", "lan", "la", "【", "隐】", "【完", "】"]


def streamed(tags: tuple[Tag, ...], chunks: list[str]) -> tuple[str, list[Body]]:
    hidden = HiddenTags(tags)
    visible = [hidden.push(chunk) for chunk in chunks]
    return "".join(visible) + hidden.finish(), hidden.found


def naive(tags: tuple[Tag, ...], text: str) -> tuple[str, list[Body]]:
    """The rules, word for word: earliest opening, then the longer one, then the one declared first."""
    visible, found = "", list[Body]()
    while True:
        places = [(text.find(tag.open), -len(tag.open), number) for number, tag in enumerate(tags) if tag.open in text]
        if not places:
            return visible + text, found
        start, size, number = min(places)
        visible, rest = visible + text[:start], text[start - size :]
        body, _, text = rest.partition(tags[number].close)
        found.append(Body(tags[number].name, body))


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({min(place, len(text)) for place in places})
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join), st.lists(st.integers(0, 200), max_size=12))
def test_every_split_of_every_text_gives_what_the_whole_gives(text: str, places: list[int]) -> None:
    stripper = CitationStripper()
    visible = "".join([*(stripper.push(chunk) for chunk in cut(text, places)), stripper.finish()])

    assert (visible, stripper.bodies) == strip(text)
    whole = naive((TAG,), text)
    assert (visible, [Body("citation", body) for body in stripper.bodies]) == whole


@given(st.text(alphabet="<>/oai-mem ctn", max_size=80))
def test_one_character_at_a_time_gives_what_the_whole_gives(text: str) -> None:
    text = text + OPEN + text + CLOSE + text

    assert streamed((TAG,), list(text)) == naive((TAG,), text)


@given(
    st.lists(st.sampled_from(PIECES + OTHERS), max_size=16).map("".join),
    st.lists(st.integers(0, 120), max_size=12),
    st.permutations(SEVERAL),
)
def test_several_kinds_of_tags_stream_as_the_whole_text_reads(text: str, places: list[int], tags: list[Tag]) -> None:
    assert streamed(tuple(tags), cut(text, places)) == naive(tuple(tags), text)


@pytest.mark.parametrize(
    ("text", "visible", "found"),
    [
        ("a<plan>b</plan>c", "ac", [Body("plan", "b")]),
        ("a<plan>>b<<c", "ac", [Body("planned", "b")]),
        (f"<plan>{OPEN}</plan>{OPEN}x{CLOSE}", "", [Body("plan", OPEN), Body("citation", "x")]),
        (f"{OPEN}<plan>{CLOSE}</plan>", "</plan>", [Body("citation", "<plan>")]),
        ("é【隐】密【完】ü", "éü", [Body("han", "密")]),
        ("<plan>b", "", [Body("plan", "b")]),
        ("<plan", "<plan", []),
    ],
)
def test_the_earliest_opening_wins_then_the_longer(text: str, visible: str, found: list[Body]) -> None:
    tags = (TAG, PLAN, LONGER, HAN)
    assert streamed(tags, [text]) == streamed(tags, list(text)) == (visible, found)


def test_of_two_tags_that_open_alike_the_one_declared_first_counts() -> None:
    one, two = Tag("one", "<a>", "1"), Tag("two", "<a>", "2")

    assert streamed((one, two), ["<a>x2y1z"])[1] == [Body("one", "x2y")]
    assert streamed((two, one), ["<a>x2y1z"])[1] == [Body("two", "x")]


@pytest.mark.parametrize("tags", [(), (Tag("a", "", "x"),), (TAG, Tag("a", "x", ""))])
def test_tags_without_a_text_are_refused(tags: tuple[Tag, ...]) -> None:
    with pytest.raises(ValueError, match="needs an opening"):
        HiddenTags(tags)


@pytest.mark.parametrize("text", ["<" * 4000, OPEN[:-1] * 300, CLOSE * 300, "plain " * 300])
def test_what_is_held_back_is_shorter_than_a_tag(text: str) -> None:
    hidden = HiddenTags([TAG])
    shown = 0
    for pushed, char in enumerate(text, 1):
        shown += len(hidden.push(char))
        assert pushed - shown < len(OPEN)

    assert shown + len(hidden.finish()) == len(text)
