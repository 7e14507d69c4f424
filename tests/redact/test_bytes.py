"""Bytes that are not UTF-8: other encodings of a text, and bytes that are no text at all."""

from __future__ import annotations

import json
import random

import pytest

from commonplace.redact import MARK, Redactor, redact
from redact import made

FORMS = (
    "password=@",
    'PASSWORD: "@"',
    "DB_PASSWORD=@",
    "the password is @.",
    "mysql -u root -p@ shop",
    "postgres://app:@@db:5432/x",
    "Server=db;User Id=sa;Password=@;Encrypt=true",
    '{"user": "kim", "password": "@"}',
    "curl -u me:@ https://api.test",
    "machine a.test login kim password @",
)


def filled(form: str) -> tuple[str, str]:
    value = made.make("<A14>", random.Random(form))
    head, _, tail = form.partition("@")
    return value, f"{head}{value}{tail}"


def through(data: bytes, step: int = 1 << 20) -> bytes:
    redactor = Redactor()
    pieces = [redactor.feed(data[at : at + step]) for at in range(0, len(data), step)]
    return b"".join(pieces) + redactor.close()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("form", FORMS)
def test_a_password_goes_in_other_encodings_of_unicode_and_the_text_stays_one(form: str, encoding: str) -> None:
    value, text = filled(form)
    text = f"first line\r\n{text}\r\nlast line, Grüße\r\n"

    assert through(text.encode(encoding)).decode(encoding) == text.replace(value, MARK)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noise", [b"\xff\xfe\xfd", b"\x80\x81", b"caf\xe9 ", b"\xc3\x28", b"\x00\x01\x02"])
def test_a_password_goes_beside_bytes_that_are_no_text(form: str, noise: bytes) -> None:
    value, text = filled(form)
    data = noise + b"\n" + text.encode() + b"\n" + noise

    assert through(data) == data.replace(value.encode(), MARK.encode())


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("la contraseña es @", "latin-1"),
        ("contraseña: @", "latin-1"),
        ("la contraseña de staging es @", "cp1252"),
        ("la clé est @", "latin-1"),
        ("clé : @", "cp1252"),
        ("der Schlüssel ist @", "latin-1"),
        ("das Passwort für staging ist @", "latin-1"),
        ("le mot de passe du réseau est @", "latin-1"),
        ("密码是 @", "gb18030"),
        ("密码：@", "gbk"),
        ("口令: @", "gb18030"),
    ],
)
def test_a_password_goes_after_a_name_in_an_older_encoding(text: str, encoding: str) -> None:
    value = made.make("<A16>", random.Random(text))

    assert value.encode() not in through(text.replace("@", value).encode(encoding))


@pytest.mark.parametrize("value", ["Zürich77x!q", "Größe8812", "contraseña99X", "motdépasse123"])
def test_a_password_with_letters_of_an_older_encoding_goes_whole(value: str) -> None:
    data = f"DB_PASSWORD={value}\nPORT=1\n".encode("latin-1")

    assert through(data) == f"DB_PASSWORD={MARK}\nPORT=1\n".encode()


@pytest.mark.parametrize("step", [1, 7, 64, 4096])
def test_how_a_stream_is_cut_does_not_matter(step: int) -> None:
    value, text = filled(FORMS[0])
    data = ("\n".join(["line"] * 200) + f"\n{text}\n").encode("utf-16")

    assert value not in through(data, step).decode("utf-16")


@pytest.mark.parametrize(
    "invisible", ["\u200b", "\u2060", "\u202a", "\u200d", "\ufeff", "\u00ad", "\x01", "\x08", "\x7f"]
)
@pytest.mark.parametrize("text", ["password{0}: {1}", "pass{0}word={1}", "password={0}{1}{0}", "to{0}ken={1}"])
def test_what_nobody_sees_hides_no_secret(text: str, invisible: str) -> None:
    value = made.fill("<A26>", random.Random(7))[1]
    plain = text.format(invisible, value)

    assert value not in redact(plain)
    for ascii_only in (True, False) if invisible != "\x08" else ():  # JSON writes that one like `\\b` of an expression
        assert value not in redact(json.dumps({"line": f"set {plain} there"}, ensure_ascii=ascii_only))
    cut = f"ghp_{value[:10]}{invisible}{value[10:]}{value[:10]}"
    assert value[:10] not in redact(cut)


@pytest.mark.parametrize("character", ["é", "→", "\ufffd", "\U0001f600"])
def test_a_span_never_ends_inside_of_a_character(character: str) -> None:
    """A key block's end is looked for within so many bytes: those may end in the middle of a character."""
    for shift in range(len(character.encode())):
        text = f"PRIVATE KEY----\nIan: ear:rstwyuoxz23Y==KEY----{'x' * shift}{character * 100} and more"
        redacted = redact(text)

        assert MARK in redacted
        assert redacted.endswith(" and more")
        redactor = Redactor()
        assert redactor.feed(text.encode()) + redactor.close() == redacted.encode()
