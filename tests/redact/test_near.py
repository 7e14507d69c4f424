"""A text is looked at again only near to what is different, and words end at commas: neither changes what is found."""

from __future__ import annotations

import random
import re
from itertools import chain

import pytest

from commonplace.redact import near
from commonplace.redact import scan as engine
from commonplace.redact.catalogue import formats, unmistakable
from commonplace.redact.catalogue.formats import shape_of
from redact import made

SECRETS = (
    "API_TOKEN={}\n",
    "\x1b[31mdb_password\x1b[0m\x1b[1m: \x1b[33m{}\x1b[0m\n",
    "t\x00o\x00k\x00e\x00n\x00=\x00{}\n",
    "API_TOKEN={}\x1b[0m{}\n",
    "name,pass\x1b[1mword\n" + "kim,changeme\n" * 120 + "lee,{}\n",
)
"""The last two begin before a hidden byte, or far behind it."""


def text(seed: int) -> bytes:
    """A long text with secrets, some of which hidden bytes keep from their names, far apart and close together."""
    draw = random.Random(seed)
    parts: list[str] = []
    for _ in range(8):
        parts.append("nothing to see in here, {}\n".format("word, " * 20) * draw.choice([3, 30, 6000]))
        parts.append(draw.choice(SECRETS).format(made.make("<A40>", draw), made.make("<A20>", draw)))
    return "".join(parts).encode()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_near_to_a_difference_is_found_as_in_the_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = text(seed)
    found = engine.scan(data)
    monkeypatch.setattr(near, "_WORTH", 0)

    assert len(found) >= 6
    assert found == engine.scan(data)


@pytest.mark.parametrize("edge", [near.AHEAD, near.CONTEXT, near.AHEAD + near.CONTEXT])
@pytest.mark.parametrize("off", [-40, -1, 0, 1, 40])
def test_a_secret_at_the_edge_of_what_is_looked_at_again_is_found_once(edge: int, off: int) -> None:
    secret = f"API_TOKEN={made.make('<A40>', random.Random(edge + off))}\n"
    apart = "a word\n" * ((edge + off) // 7) + "-" * ((edge + off) % 7) + "\n"
    data = ("a word\n" * 60_000 + "\x1b[1m" + apart + secret + apart + "\x1b[0m" + "a word\n" * 60_000).encode()

    assert ["assignment"] == [one.kind for one in engine.scan(data)]


def test_what_reaches_over_an_edge_is_looked_for_in_the_whole() -> None:
    looked: list[tuple[int, bool]] = []
    data = b" " * 1_000_000

    def look(part: bytes, cut: bool) -> list[engine.SecretSpan]:
        looked.append((len(part), cut))
        return [engine.SecretSpan(near.CONTEXT - 5, near.CONTEXT + 5, "any")]

    near.find(data, [(500_000, 500_001)], look, cut=False)

    assert looked == [(2 * (near.AHEAD + near.CONTEXT) + 1, True), (1_000_000, False)]


def test_nothing_that_is_looked_for_in_a_word_has_a_comma() -> None:
    rows = chain(formats(), unmistakable.ANYWHERE, unmistakable.APART)
    shapes = {row.shape: re.sub(rb"\{\d*,?\d*\}", b"", shape_of(row.shape).pattern) for row in rows}
    plain = {name: re.sub(rb"\[(?!\^)[^\]]*\]|\(\?[!=<]+[^)]*\)|\\.", b"", shape) for name, shape in shapes.items()}

    assert {} == {name: shape for name, shape in shapes.items() if b"," in shape}
    assert {} == {name: shape for name, shape in plain.items() if b"." in shape or b"[^" in shape}
    assert [] == [anchor for anchor in engine._LEXICON.anchors if b"," in anchor]
