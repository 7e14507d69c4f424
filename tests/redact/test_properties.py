"""What holds for every text: redacting twice is redacting once, JSON stays JSON, the rest stays byte for byte."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from commonplace.redact import MARK, Redactor, find, redact
from redact import made
from redact.adversary import PIECES

FORMATS = made.read("formats.txt")
NAMES = made.read("names.txt")
SCRAPS = sorted(
    {*PIECES.values(), MARK, "password", "api_key", "token", ": ", " = ", '"', "'", "\\", "\n", ",", "é→", "{", "}"}
)


@st.composite
def secrets(draw: st.DrawFn) -> str:
    """A made-up credential in a surrounding."""
    row = draw(st.sampled_from(FORMATS + NAMES))
    chosen = random.Random(draw(st.integers(0, 10_000)))
    value = chosen.choice(row.prefixes) + made.make(row.shape, chosen)
    return chosen.choice(made.cases(row.kind, value, named=row in NAMES)).text


def texts() -> st.SearchStrategy[str]:
    """Prose, scraps of syntax and credentials in any order."""
    return st.lists(st.one_of(st.text(max_size=20), st.sampled_from(SCRAPS), secrets()), max_size=12).map("".join)


def documents() -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | st.integers() | texts()
    names = st.sampled_from(["password", "token", "apiKey", "note", "output", "secret"]) | st.text(max_size=8)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
    )


@given(texts())
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)

    assert redact(once) == once


@given(documents(), st.integers(0, 2), st.booleans())
@example([{"password": "KEY", "\U00010000\U0001678a": None}], 0, True)
def test_json_stays_json_with_the_same_names(document: Any, depth: int, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only)
    for _ in range(depth):
        text = json.dumps({"output": text}, ensure_ascii=ascii_only)

    def names(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: names(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return [names(one) for one in value] if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]

    assert names(json.loads(redact(text))) == names(json.loads(text))


@given(texts())
def test_only_what_was_found_changes(text: str) -> None:
    parts: list[str] = []
    done = 0
    for finding in find(text):
        parts.append(text[done : finding.start])
        done = finding.end
    parts.append(text[done:])
    out = redact(text)

    assert out.replace(f'"{MARK}"', MARK).split(MARK) == MARK.join(parts).replace(f'"{MARK}"', MARK).split(MARK)


@given(st.lists(texts(), min_size=1, max_size=8), st.lists(st.integers(1, 4000), min_size=1, max_size=6))
def test_a_stream_cut_anywhere_gives_what_the_whole_gives(many: list[str], sizes: list[int]) -> None:
    text = "\n".join(many)
    data = text.encode("utf-8", "surrogatepass")
    redactor = Redactor()
    out = b""
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        out += redactor.feed(data[at : at + size])
        at += size
        turn += 1
    out += redactor.close()

    assert out == redact(text).encode("utf-8", "surrogatepass")


@given(st.binary(max_size=300), secrets())
def test_bytes_that_are_no_text_pass_unchanged(noise: bytes, text: str) -> None:
    redactor = Redactor()
    out = redactor.feed(noise + b"\n\xff\xfe\n" + text.encode()) + redactor.close()

    assert b"\n\xff\xfe\n" in out
