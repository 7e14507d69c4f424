"""Which commands only look, row by row, and which first words allow which commands."""

from __future__ import annotations

import pytest

from commonplace.agent.approvals.harmless_commands import Prefix, is_allowed, is_harmless, prefixes_of


def _shell(script: str) -> tuple[str, ...]:
    return ("/bin/bash", "-c", script)


@pytest.mark.parametrize(
    "script",
    [
        "ls -la",
        "cat a.txt | grep -n needle | head -5",
        "cd src && rg retry",
        "git status",
        "git log --oneline -5 && git diff HEAD~1",
        "find . -name '*.py'",
        "sed -n 10,20p file",
        "sort names | uniq -c",
        "wc -l a b; pwd",
    ],
)
def test_what_only_looks_is_harmless(script: str) -> None:
    assert is_harmless(_shell(script))


@pytest.mark.parametrize(
    "script",
    [
        "rm -rf .",
        "ls && rm x",
        "find . -delete",
        "find . -exec rm {} +",
        "rg --pre=./x y",
        "rg --pre ./x y",
        "sort -o out in",
        "sort -oout in",
        "git commit -m x",
        "git -c core.pager=./x log",
        "git --git-dir=x status",
        "git diff --output=x",
        "git grep -O./x y",
        "sed -i s/a/b/ x",
        "sed -n 'w out' x",
        "echo hi > file",
        "echo $(rm x)",
        "echo `rm x`",
        "cat <(rm x)",
        "ls & rm x",
        "X=1 ls",
        "env rm x",
        "date -s now",
        "xargs rm",
        "",
    ],
)
def test_what_may_do_more_is_not(script: str) -> None:
    assert not is_harmless(_shell(script))


def test_a_program_and_its_arguments_are_judged_without_a_shell() -> None:
    assert is_harmless(("ls", "$(rm x)"))
    assert not is_harmless(("rm", "x"))


@pytest.mark.parametrize(
    ("script", "prefixes"),
    [
        ("git commit -m x", (("git", "commit"),)),
        ("npm test", (("npm", "test"),)),
        ("pytest -q", (("pytest",),)),
        ("npm test && ls && cargo build", (("npm", "test"), ("cargo", "build"))),
        ("ls", ()),
        ("rm -rf x", ()),
        ("sudo make install", ()),
        ("bash -c 'npm test'", ()),
        ("./run.sh", ()),
        ("python3 -c 'x'", ()),
        ("npm test > out", ()),
        ("curl example.test", ()),
    ],
)
def test_the_first_words_that_are_remembered(script: str, prefixes: tuple[Prefix, ...]) -> None:
    assert prefixes_of(_shell(script)) == prefixes


@pytest.mark.parametrize(
    ("script", "allowed"),
    [
        ("npm test", True),
        ("npm test -- --watch", True),
        ("npm test && git status", True),
        ("npm run evil", False),
        ("npm test && rm x", False),
        ("npm test; npm run evil", False),
        ("npm test $(rm x)", False),
        ("npm test > /etc/passwd", False),
        ("npm", False),
    ],
)
def test_remembered_words_allow_what_begins_with_them_and_nothing_beside(script: str, allowed: bool) -> None:
    assert is_allowed(_shell(script), [("npm", "test")]) is allowed
