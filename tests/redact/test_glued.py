"""Credentials that are glued to a word, before or behind them: `fix-ghp_…`, `a_AKIA…`, `x.glpat-…`, `ghp_…_old`."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from commonplace.redact import MARK, Redactor, find, redact
from commonplace.redact.catalogue import formats, unmistakable
from commonplace.redact.scan import scan
from generated_rows import strides
from redact import made
from redact.test_linear import calls

ANYWHERE = made.read("glued.txt")
APART = made.read("glued_apart.txt")
ROWS = [*ANYWHERE, *APART]
BEFORE = [
    "fix",
    "a",
    "x",
    "feature-x",
    "backup",
    "deploy-2",
    "user2",
    "my_app",
    "release-1.2",
    "LOG",
    "Notes",
    "main.py",
]
BEHIND = [".txt", "_old", "-2", ".tar.gz", "_backup_2024", "-copy-of-the-first", "."]
PREFIXES = sorted({prefix for row in ROWS for prefix in row.prefixes})
TRIES = 6

Glue = Callable[[str, random.Random], tuple[str, str]]


def before(sign: str) -> Glue:
    return lambda _, draw: (draw.choice(BEFORE) + sign, "")


GLUES: dict[str, Glue] = {
    "-": before("-"),
    "_": before("_"),
    ".": before("."),
    "nothing": before(""),
    "behind": lambda _, draw: ("", draw.choice(BEHIND)),
    "both": lambda _, draw: (draw.choice(BEFORE) + draw.choice("-_."), draw.choice(BEHIND)),
}


def is_left(value: str, prefix: str, out: str) -> bool:
    """Say whether the value, its first part or its end is still there."""
    body = value[len(prefix) :]
    return any(part in out for part in (value, body[:12], body[-12:]))


@strides(4)
@pytest.mark.parametrize(("number", "glue"), list(enumerate(GLUES)))
def test_a_glued_credential_is_found(number: int, glue: str, stride: int) -> None:
    too_often: dict[str, list[str]] = {}
    rows = ANYWHERE if glue == "nothing" else ROWS
    for row in rows[number % stride :: stride]:
        draw = random.Random(f"{row.kind} {glue}")
        missed: list[str] = []
        for prefix in row.prefixes:
            for _ in range(TRIES):
                value = prefix + made.make(row.shape, draw)
                head, tail = GLUES[glue](value, draw)
                if is_left(value, prefix, redact(f"see {head}{value}{tail} there")):
                    missed.append(head + value + tail)
        if len(missed) > len(row.prefixes) * TRIES // 12:
            too_often[row.kind] = missed

    assert too_often == {}


def test_99_of_100_glued_credentials_are_found() -> None:
    draw = random.Random("all")
    missed: list[str] = []
    tried = 0
    for _ in range(3):
        for row in ROWS:
            for prefix in row.prefixes:
                value = prefix + made.make(row.shape, draw)
                text = f"{draw.choice(BEFORE)}{draw.choice('-_.')}{value}{draw.choice(BEHIND)}"
                tried += 1
                if is_left(value, prefix, redact(text)):
                    missed.append(text)

    assert len(missed) <= tried // 100, missed


@pytest.mark.parametrize("glue", ["-", "_", ".", ""])
def test_the_word_before_stays(glue: str) -> None:
    draw = random.Random(glue)
    for prefix, shape in (("ghp_", "<A36>"), ("AKIA", "<Q16>"), ("glpat-", "<W20>"), ("shpat_", "<H32>")):
        value = prefix + made.make(shape, draw)
        assert redact(f"git checkout fix{glue}{value} now") == f"git checkout fix{glue}{MARK} now"


@pytest.mark.parametrize("tail", [".txt", "_old", "-2"])
def test_what_the_format_cannot_have_stays_behind(tail: str) -> None:
    draw = random.Random(tail)
    for prefix, shape in (("ghp_", "<A36>"), ("AKIA", "<Q16>"), ("npm_", "<A36>"), ("AIza", "<W35>")):
        value = prefix + made.make(shape, draw)
        assert redact(f"rm fix-{value}{tail}") == f"rm fix-{MARK}{tail}"
        assert redact(f"rm {value}{tail}") == f"rm {MARK}{tail}"


def test_a_tail_of_words_hides_nothing() -> None:
    draw = random.Random(8)
    for _ in range(40):
        value = "glpat-" + made.make("<W20>", draw)
        assert value not in redact(f"origin/{value}-rename-the-settings-of-every-deployment-to-something-else")


def test_several_in_one_word_are_all_found() -> None:
    draw = random.Random(9)
    for _ in range(40):
        one, two, three = (made.make("<A36>", draw) for _ in range(3))
        assert redact(f"a-ghp_{one}_gho_{two}-and-ghs_{three}.zip").count(MARK) >= 1
        assert not any(part in redact(f"a-ghp_{one}_gho_{two}-and-ghs_{three}.zip") for part in (one, two, three))


def test_one_with_the_signs_of_base64_does_not_hide_the_next() -> None:
    draw = random.Random(11)
    keys = ["LS0tLS1CRUdJTiBQUklWQVRFIEtFWS" + made.make("<B800>", draw) for _ in range(8)]
    out = redact(" ".join(f"key{number}-{key}" for number, key in enumerate(keys)))

    assert out == " ".join(f"key{number}-{MARK}" for number in range(8))


def test_the_kind_is_that_of_the_catalogue() -> None:
    kinds = {row.kind for row in (*unmistakable.ANYWHERE, *unmistakable.APART)}
    draw = random.Random(10)
    text = "fix-ghp_" + made.make("<A36>", draw)

    assert kinds <= {row.kind for row in formats()}
    assert ["github_token"] == [one.kind for one in find(text)]


def test_every_prefix_inside_of_words_has_made_up_values() -> None:
    known = {prefix for row in (*unmistakable.ANYWHERE, *unmistakable.APART) for prefix in row.prefixes}

    assert known == set(PREFIXES)


@pytest.mark.parametrize("word", ["example", "placeholder", "your-token", "x" * 12, "0" * 12, "REDACTED", "changeme"])
@pytest.mark.parametrize("sign", ["", "-", "_"])
def test_placeholders_stay_glued_too(word: str, sign: str) -> None:
    for prefix in PREFIXES:
        text = f"see fix-{prefix}{sign.join([word] * 12)} there"
        assert redact(text) == text


def test_the_documented_key_of_amazon_stays_glued_too() -> None:
    text = "a_AKIA" + "IOSFODNN7" + "EXAMPLE"

    assert redact(text) == text


def glued_text(seed: int, count: int) -> str:
    draw = random.Random(seed)
    parts: list[str] = []
    for _ in range(count):
        row = draw.choice(ROWS)
        value = draw.choice(row.prefixes) + made.make(row.shape, draw)
        head, tail = GLUES[draw.choice(list(GLUES))](value, draw)
        parts.append(f"{'lorem ipsum ' * draw.randrange(6)}{draw.choice(' /=,')}{head}{value}{tail}\n")
    return "".join(parts)


@pytest.mark.parametrize("seed", range(12))
def test_redacting_twice_is_redacting_once(seed: int) -> None:
    once = redact(glued_text(seed, 60))

    assert redact(once) == once


@pytest.mark.parametrize("size", [997, 60_000, 300_001])
def test_a_stream_gives_what_the_whole_gives(size: int) -> None:
    text = glued_text(size, 3000)
    data = text.encode()
    redactor = Redactor()
    out = b"".join(redactor.feed(data[at : at + size]) for at in range(0, len(data), size)) + redactor.close()

    assert out.decode() == redact(text)


@strides(9)
@pytest.mark.parametrize(("number", "form"), list(enumerate(["{}", "{}a_", "x.{}A1b2"])))
def test_a_prefix_again_and_again_costs_in_proportion(number: int, form: str, stride: int) -> None:
    too_many: dict[tuple[str, int], int] = {}
    for prefix in PREFIXES[number % stride :: stride]:
        piece = form.format(prefix)
        text = piece * (8_000 // len(piece) + 1)
        scan(text[:2_000].encode())  # what is made once is not counted
        for length in (2_000, 8_000):
            if (count := calls(text[:length].encode())) > 20 * length:
                too_many[prefix, length] = count

    assert too_many == {}
