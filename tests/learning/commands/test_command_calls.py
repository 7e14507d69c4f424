"""Shell calls are cut into simple commands, and each has the status that the call tells of it."""

from __future__ import annotations

import pytest
from command_views import ROOT, used, view

from commonplace.learning.commands.calls import Call, calls_of, shows_failure
from commonplace.learning.reading.session_view import EventSpan, ToolUse

FAILED = "3 failed, 9 passed"


def call_of(command: str, code: int | None = 0, output: str = "", folder: str | None = None) -> Call:
    return calls_of(view(used(command, code, output, folder=folder)))[0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("npm test", ["npm test"]),
        ("npm test 2>&1 | tail -20", ["npm test"]),
        ("a && b; c || d\ne &", ["a", "b", "c", "d", "e"]),
        ("FOO=1 BAR=2 make check", ["make check"]),
        ("timeout -k 5 30 sudo -u ada nice -n 3 make test", ["make test"]),
        ("time npm test", ["npm test"]),
        ("command -v go", ["command -v go"]),
        ("bash -lc 'npm ci && npm test'", ["npm ci", "npm test"]),
        ("timeout 60 bash -c \"sh -c 'make test'\"", ["make test"]),
        ('pwsh -Command "Set-Location api; dotnet test"', ["dotnet test"]),
        ("for f in *.py; do python $f; done; make test", ["make test"]),
        ("if true; then make a; else make b; fi\nmake c", ["make c"]),
        ("while true; do for x in 1 2; do a; done; done && b", ["b"]),
        ("f() { make a; }; make b", ["make b"]),
        ("cat > x.py <<'EOF'\nmake test\nEOF\nmake lint", ["cat", "make lint"]),
        ("echo 'a && b' # make test", ["echo 'a && b'"]),
        ("cd api", []),
        ("git -C api log --oneline", ["git log --oneline"]),
    ],
)
def test_a_call_is_cut_into_simple_commands(line: str, expected: list[str]) -> None:
    assert expected == [command.text for command in call_of(line).commands]


@pytest.mark.parametrize(
    ("line", "code", "output", "expected"),
    [
        ("a", 0, "", ["ok"]),
        ("a", 1, "", ["failed"]),
        ("a", None, "", ["unknown"]),
        ("a", 0, FAILED, ["ok"]),
        ("a && b", 0, FAILED, ["ok", "ok"]),
        ("a && b", 1, "", ["unknown", "unknown"]),
        ("a; b", 0, "", ["ok", "ok"]),
        ("a; b", 0, FAILED, ["failed", "ok"]),
        ("a; b", 1, "", ["unknown", "failed"]),
        ("a; b; c; d", 0, FAILED, ["ok", "ok", "ok", "ok"]),
        ("a | tail -5", 0, "", ["ok"]),
        ("a | tail -5", 0, FAILED, ["failed"]),
        ("a | tail -5", 0, "0 failed, 9 passed", ["ok"]),
        ("a || b", 0, "", ["ok", "unknown"]),
        ("a || true", 0, FAILED, ["failed", "unknown"]),
        ("cd api && a", 1, "", ["failed"]),
        ("a &", 0, "", ["unknown"]),
    ],
)
def test_the_status_of_a_command_is_what_the_call_tells(
    line: str, code: int | None, output: str, expected: list[str]
) -> None:
    assert expected == [command.status for command in call_of(line, code, output).commands]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a", [ROOT]),
        ("cd api && a; b", [f"{ROOT}/api", f"{ROOT}/api"]),
        ("(cd api && a); b", [f"{ROOT}/api", ROOT]),
        ("pushd api && a", [f"{ROOT}/api"]),
        ("cd /srv/x && a", ["/srv/x"]),
        ("cd api && cd .. && a", [ROOT]),
        ("cd api && cd - && a", [ROOT]),
        ("cd $WHERE && a", [None]),
        ("cd ~/x && a", [None]),
        ("cd $(git rev-parse --show-toplevel) && a", [ROOT]),
        ("git -C api status", [f"{ROOT}/api"]),
    ],
)
def test_the_folder_of_a_command_follows_what_moves_it(line: str, expected: list[str | None]) -> None:
    assert expected == [command.folder for command in call_of(line).commands]


def test_a_folder_that_the_call_names_counts() -> None:
    assert [f"{ROOT}/web"] == [command.folder for command in call_of("a", folder="web").commands]


def test_the_shell_of_claude_code_stays_in_the_folder_that_it_went_to() -> None:
    calls = calls_of(view(used("cd api && a"), used("b"), used("cd /srv && c"), used("d")))

    assert [f"{ROOT}/api", f"{ROOT}/api", "/srv", f"{ROOT}/api"] == [call.commands[0].folder for call in calls]


def test_other_shells_begin_in_the_sessions_folder() -> None:
    calls = calls_of(view(used("cd api && a"), used("b"), source="codex"))

    assert [f"{ROOT}/api", ROOT] == [call.commands[0].folder for call in calls]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("export CI=1; a", [("CI=1",)]),
        ("CI=1 a; b", [("CI=1",), ()]),
        ("$env:CI='1'; a", [("CI=1",)]),
        ("export CI=1 && X=2 a", [("CI=1", "X=2")]),
    ],
)
def test_variables_belong_to_what_follows(line: str, expected: list[tuple[str, ...]]) -> None:
    assert expected == [command.assignments for command in call_of(line).commands]


@pytest.mark.parametrize(("line", "counts"), [("a | grep x | wc -l", True), ("a | xargs rm", False), ("a | sh", False)])
def test_what_feeds_more_than_a_filter_does_not_count(line: str, counts: bool) -> None:
    assert [counts] == [command.is_counted for command in call_of(line).commands]


def test_refused_calls_are_left_out() -> None:
    refused = used("make test", 1)
    refused.refused = True

    assert [] == calls_of(view(refused))


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("Exit code 2", 2),
        ("Permission to use Bash with command make has been denied.", None),
        ("Command running in background with ID: b1", None),
        ("something else", 1),
    ],
)
def test_an_error_without_a_code_is_read(output: str, code: int | None) -> None:
    use = used("make", 1, output)
    use.code = None

    assert code == calls_of(view(use))[0].code


def test_the_end_of_a_background_call_is_told_by_a_later_one() -> None:
    begun = used("npm test", 0, "Process running with session ID 7\nOutput:\n")
    later = ToolUse(EventSpan(1, 0, 0), "write_stdin", '{"session_id": 7}', ok=False, code=1, output=FAILED)

    call = calls_of(view(begun, later, source="codex"))[0]

    assert (1, ["failed"]) == (call.code, [command.status for command in call.commands])


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("--- FAIL: TestCart (0.00s)", True),
        ("  FAIL src/cart.test.ts", True),
        ("Tests:  2 failed, 8 passed", True),
        ("src/cart.ts(3,1): error TS2304: x", True),
        ("✖ 4 problems (2 errors, 2 warnings)", True),
        ("cart.go:3:5: undefined: total", True),
        ("make: *** [test] Error 2", True),
        ("found 12 errors", True),
        ("0 errors, 0 failures", False),
        ("8 passed", False),
        ("all good, failover is tested", False),
        ("", False),
    ],
)
def test_an_output_shows_a_failure(output: str, expected: bool) -> None:
    assert expected == shows_failure(output)
