"""Whose a session is: what git says in its folder, else what it says of the user, else the home folder's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.projects import people
from commonplace.projects.people import Person


def config(name: str, email: str) -> str:
    return f"[user]\n\tname = {name}\n\temail = {email}\n"


def repository(folder: Path, text: str = "") -> Path:
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    (folder / ".git" / "config").write_text(text, "utf-8")
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    user = tmp_path / "user"
    user.mkdir()
    (user / ".gitconfig").write_text(config("Ana", "ana@example.com"), "utf-8")
    return {"HOME": str(user)}


def test_the_repository_counts_before_the_user(environment: dict[str, str], tmp_path: Path) -> None:
    at_work = repository(tmp_path / "shop", config("Ana Kim", "ana@work.example"))
    plain = repository(tmp_path / "blog")
    (at_work / "src").mkdir()

    assert people.of_folder(str(at_work / "src"), environment) == Person("Ana Kim", "ana@work.example")
    assert people.of_folder(str(plain), environment) == Person("Ana", "ana@example.com")
    assert people.of_folder(str(tmp_path), environment) == Person("Ana", "ana@example.com")


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/gone/shop", Person("Ana", "ana@example.com")),
        ("/home/kim/shop", Person("kim")),
        (r"C:\Users\kim\shop", Person("kim")),
        ("", Person("Ana", "ana@example.com")),
    ],
)
def test_a_folder_that_is_not_here_may_be_somebody_elses(
    folder: str, expected: Person, environment: dict[str, str]
) -> None:
    assert people.of_folder(folder, environment) == expected


def test_without_git_the_home_folder_has_the_name(tmp_path: Path) -> None:
    nobody = {"HOME": "/home/kim"}

    assert people.of_folder("/home/kim/shop", nobody) == Person("kim")
    assert people.of_folder(str(tmp_path), nobody) is None


def test_a_broken_configuration_is_none(environment: dict[str, str], tmp_path: Path) -> None:
    broken = repository(tmp_path / "shop", "[user\nname = x")

    assert people.of_folder(str(broken), environment) == Person("Ana", "ana@example.com")


def test_people_of_one_name_are_told_apart_by_what_stands_before_the_at() -> None:
    found = people.titles(
        [Person("Ana", "a.k@x.example"), Person("Ana", "ana@y.example"), Person("Ben", "b@x.example")]
    )

    assert found == {"a.k@x.example": "Ana (a.k)", "ana@y.example": "Ana (ana)", "b@x.example": "Ben"}


def test_what_rows_hold_comes_back() -> None:
    assert people.decode(people.encode(Person("Ana", "a@x.example"))) == Person("Ana", "a@x.example")
    assert people.decode(None) is people.decode("") is people.decode("not json") is None
