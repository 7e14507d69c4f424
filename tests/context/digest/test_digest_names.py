"""Names in texts, one row for each rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context.digest import constraints, plain_words, shell, sources
from commonplace.context.digest.names import Kind, SessionNames


def found(text: str, cwd: str = "/repo") -> list[tuple[Kind, str]]:
    names = SessionNames(cwd)
    return [(names.known[number].kind, names.known[number].text) for number in names.count(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see src/auth.py", [(Kind.PATH, "src/auth.py")]),
        ("see /repo/src/auth.py.", [(Kind.PATH, "src/auth.py")]),
        ("--- a/src/auth.py", [(Kind.PATH, "src/auth.py")]),
        ("./scripts/run.sh", [(Kind.PATH, "scripts/run.sh")]),
        ("/etc/nginx/nginx.conf", [(Kind.PATH, "/etc/nginx/nginx.conf")]),
        ("~/papers/notes", [(Kind.PATH, "~/papers/notes")]),
        ("src/{a,b}.py", [(Kind.PATH, "src/a.py"), (Kind.PATH, "src/b.py")]),
        ("auth.py", [(Kind.PATH, "auth.py")]),
        ("Makefile", [(Kind.PATH, "Makefile")]),
        ("and/or", []),
        ("1/2", []),
        ("handle_login", [(Kind.SYMBOL, "handle_login")]),
        ("parseHTML", [(Kind.SYMBOL, "parseHTML")]),
        ("test_login_fails", [(Kind.TEST, "test_login_fails")]),
        ("TestLogin", [(Kind.TEST, "TestLogin")]),
        ("plain words only", []),
        ("3f2a9bc1", [(Kind.GIT, "3f2a9bc1")]),
        ("deadbeef", []),
        ("#123 and SHOP-77", [(Kind.GIT, "#123"), (Kind.GIT, "SHOP-77")]),
        ("01a1dddc-5c08-7863-8c91-eb8a612fb6a1", [(Kind.GIT, "01a1dddc-5c0")]),
        ("--no-verify", [(Kind.FLAG, "--no-verify")]),
        ("ENOENT SIGTERM TS2345", [(Kind.ERROR, "ENOENT"), (Kind.ERROR, "SIGTERM"), (Kind.ERROR, "TS2345")]),
        ("took 35 ms at 2.5%", [(Kind.NUMBER, "35 ms"), (Kind.NUMBER, "2.5%")]),
        ("https://example.org/a?b=1.", [(Kind.URL, "https://example.org/a?b=1")]),
        ("", []),
    ],
)
def test_a_run_is_judged_by_the_first_rule_that_fits(text: str, expected: list[tuple[Kind, str]]) -> None:
    assert found(text) == expected


def test_a_branch_is_known_once_it_was_named() -> None:
    names = SessionNames()
    assert not names.count("main-fix")
    names.add_branch("main-fix")
    assert [names.known[number].kind for number in names.count("on main-fix")] == [Kind.GIT]


@given(st.text(max_size=400))
def test_counting_is_the_same_every_time_and_never_fails(text: str) -> None:
    names = SessionNames("/repo")
    assert names.count(text) == names.count(text)
    assert found(text) == found(text)


@pytest.mark.parametrize(
    ("line", "normal"),
    [
        ("pytest -q tests/test_a.py", ["pytest -q"]),
        ("cd src && npm run build --silent", ["npm run build --silent"]),
        ("FOO=1 sudo docker compose up -d db", ["docker compose up -d"]),
        ("git commit -m 'a; b' && git push origin main", ["git commit -m", "git push origin"]),
        ("make test 2>&1 | tail -5", ["make test"]),
        ("cat a.txt; ls", []),
        ("./scripts/deploy.sh staging", ["./scripts/deploy.sh staging"]),
        ("python - <<'EOF'\nimport os; print(1)\nEOF", ["python -"]),
        ("", []),
    ],
)
def test_commands_are_told_without_what_changes(line: str, normal: list[str]) -> None:
    assert [piece.normal for piece in shell.pieces(line)] == [each.replace("python -", "python") for each in normal]


@given(st.text("abc '\"\\;&|\n#$(){}<-", max_size=80))
def test_no_command_line_breaks_the_splitter(line: str) -> None:
    shell.pieces(line)


def test_branches_are_taken_from_commands() -> None:
    (piece,) = shell.pieces("git checkout -b fix/coupon-cent")
    assert piece.branches == ("fix/coupon-cent",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix it. Never touch main.", ["Never touch main."]),
        ("please don't add a dependency", ["please don't add a dependency"]),
        ("use uv, not pip", ["use uv, not pip"]),
        ("bitte niemals force-push", ["bitte niemals force-push"]),
        ("不要修改旧文件", ["不要修改旧文件"]),
        ("what is this?", []),
    ],
)
def test_what_was_laid_down_is_found(text: str, expected: list[str]) -> None:
    assert constraints.constraints_in(text) == expected


def test_plain_words_are_those_that_are_no_names() -> None:
    assert [word for _, word in plain_words.words("the parser in src/auth.py drops parse_token silently")] == [
        "parser",
        "drops",
        "silently",
    ]


def test_edits_are_read_in_every_agents_way() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+def handler(token): pass\n*** End Patch"
    assert [(edit.path, edit.lines) for edit in sources.edits("apply_patch", patch)] == [
        ("src/a.py", ("def handler(token): pass",))
    ]
    (edit,) = sources.edits("Edit", '{"file_path": "src/b.py", "new_string": "return token_of(request)"}')
    assert (edit.path, edit.lines) == ("src/b.py", ("return token_of(request)",))
    assert sources.edits("Read", '{"file_path": "src/b.py"}') == []
    assert sources.edits("x", "not json") == []


def test_plans_are_read_in_every_agents_way() -> None:
    assert sources.plan("update_plan", '{"plan": [{"step": "look", "status": "completed"}, {"step": "fix"}]}') == [
        (False, "look"),
        (True, "fix"),
    ]
    assert sources.plan("TodoWrite", '{"todos": [{"content": "look", "status": "pending"}]}') == [(True, "look")]
    assert sources.plan("other", "{}") is None
