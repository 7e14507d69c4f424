"""Where secrets stand: a thousand rows by family, in everything that shows text; the secret goes and the rest stays."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from commonplace.redact import MARK, find, redact
from generated_rows import strides
from redact import made

TOKEN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:+/=$%|{}!#"

CONTROLS = str.maketrans({"␍": "\r", "␋": "\v", "␌": "\f", "␠": "\u00a0", "␣": "\u2003"})


def families() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in (made.HERE / "classes.txt").read_text("utf-8").splitlines():
        if line.startswith("## "):
            rows = found.setdefault(line[3:], [])
        elif not line.startswith("# "):
            rows.append(line.replace("⏎", "\n").replace("⇥", "\t").replace("␛", "\x1b").translate(CONTROLS))
    return found


FAMILIES = families()


def shown(text: str) -> Iterator[tuple[str, str]]:
    """A text as a session shows it."""
    lines = text.split("\n")
    yield "plain", f"{text}\n"
    yield "added lines", "@@ -1,3 +1,4 @@\n one\n" + "".join(f"+{line}\n" for line in lines) + " two\n-three\n"
    yield "numbered lines", "".join(f"{number:6}→{line}\n" for number, line in enumerate(lines, 61))
    yield "markdown", f"Here it is:\n\n```\n{text}\n```\n\nShall I change it?\n"
    once = json.dumps({"output": f"Build finished\n{text}\nDone"})
    yield "json", once
    yield "json in json", json.dumps({"payload": once})
    if len(lines) == 1:
        yield "prose", f"I looked through the files and found {text} in there, so I run it again."


def is_left(value: str, out: str) -> bool:
    """Say whether a value is left; a full stop at its end may be taken for that of a sentence."""
    return any(part in out for part in (value.rstrip("."), json.dumps(value.rstrip("."))[1:-1]))


@strides(3)
@pytest.mark.parametrize("family", FAMILIES)
def test_99_of_100_secrets_of_a_family_are_replaced_wherever_it_is_shown(family: str, stride: int) -> None:
    missed: list[str] = []
    tried = 0
    for number, row in enumerate(FAMILIES[family]):
        values, text = made.fill(row, random.Random(row))
        for name, surrounded in [*shown(text)][number % stride :: stride]:
            out = redact(surrounded)
            tried += 1
            if any(is_left(value, out) for value in values):
                missed.append(f"{name}: {text}")
            if name.startswith("json"):
                json.loads(out)
            assert redact(out) == out

    assert len(missed) <= max(1, tried // 100), missed


@pytest.mark.parametrize("family", FAMILIES)
def test_what_stands_before_and_behind_a_secret_stays(family: str) -> None:
    for row in FAMILIES[family]:
        values, text = made.fill(row, random.Random(row + "!"))
        if len(values) != 1 or "BEGIN" in text:
            continue
        before, _, behind = text.partition(values[0])
        out = redact(text)
        assert out.startswith(before.rstrip(TOKEN)), (text, out)
        assert out.endswith(behind.lstrip(TOKEN)), (text, out)


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=@",
        'REDIS_PASSWORD="@"',
        "app --password @",
        "mysql_root_password: @",
        "export SMTP_PASS=@",
    ],
)
@pytest.mark.parametrize("word", ["correcthorse", "Rumpelstiltskin", "blauervogel"])
def test_a_word_is_a_password_after_an_unmistakable_name(text: str, word: str) -> None:
    assert redact(text.replace("@", word)) == text.replace("@", MARK)


@pytest.mark.parametrize(
    "text",
    [
        "Server=db1;User Id=app;Password=@;",
        "Uid=app;Pwd=@;Database=shop",
        "host=db1 user=app password=@ dbname=shop",
        "jdbc:postgresql://db1/shop?user=app&password=@",
        '"Data Source=db1;Initial Catalog=shop;User ID=sa;Password=@"',
        "Password=@;Server=db1",
        "${DB_PASSWORD:-@}",
    ],
)
@pytest.mark.parametrize("word", ["tulipwindow", "Tulipwindow", "wallabies"])
def test_a_word_is_a_password_in_a_connection_string(text: str, word: str) -> None:
    assert redact(text.replace("@", word)) == text.replace("@", MARK)


@pytest.mark.parametrize(
    "text",
    [
        "connect(host=db, user=user, password=given)",
        "the line user=alice password=refused came from host a",
        "Server=db;Password=changeme;",
        "Server=db;Password=${secret};",
        "host = db\npassword = given\n",
    ],
)
def test_a_word_that_is_in_no_connection_string_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("word", ["changeme", "password", "postgres", "example", "yourpassword", "secret", "wordpress"])
def test_a_stock_word_stays_even_there(word: str) -> None:
    assert redact(f"DB_PASSWORD={word}") == f"DB_PASSWORD={word}"


def test_the_host_behind_a_token_in_a_url_stays() -> None:
    token = "ghp_" + made.make("<A36>", random.Random(1))
    text = f"https://x-access-token:{token}@github.com/acme/infra.git"

    assert redact(text) == text.replace(token, MARK)
    assert [finding.kind for finding in find(text)] == ["github_token"]


def test_every_cell_of_a_column_goes_and_the_other_columns_stay() -> None:
    draw = random.Random(2)
    rows = [(made.make("<C6>", draw), made.make("<J>", draw)) for _ in range(40)]
    for begin, between, end in (("", ",", ""), ("| ", " | ", " |"), ("", "\t", "")):
        head = f"{begin}user{between}password{end}\n"
        text = head + "".join(f"{begin}{user}{between}{value}{end}\n" for user, value in rows)
        assert redact(text) == head + "".join(f"{begin}{user}{between}{MARK}{end}\n" for user, _ in rows)
