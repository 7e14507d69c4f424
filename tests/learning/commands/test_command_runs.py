"""What is stored of a session is small, can be written as JSON, and knows where everything stands."""

from __future__ import annotations

import msgspec
from command_views import ROOT, stored, used, view
from hypothesis import given
from hypothesis import strategies as st

from commonplace.learning.commands.choose import choose
from commonplace.learning.commands.runs import SessionRuns, runs_of

WORDS = """
make|test|go test ./...|cd |api|&&|;|tail|'|"|$(|)|(|<<E|E|\\|for x in|do|done|if|fi|{|}|bash -c|npx|uv run
docker compose exec|-C|--|-t|git tag v1|nx|pnpm|yarn workspace|make -C|X=1|export|timeout|`|$X|/tmp/x|~|gofmt -l
"""
PIECES = st.sampled_from([*WORDS.strip().replace("\n", "|").split("|"), "|", "||", "\n"])
OUTPUTS = st.sampled_from(["", "FAIL", "fatal: unable to read 1234567", "x: command not found", "> web@1 test /x"])


def test_what_is_stored_survives_json() -> None:
    runs = stored("make fmt && make lint", "make ci", used("make test", 1, "sh: jest: command not found"), "npm ci")

    assert runs == msgspec.json.decode(msgspec.json.encode(runs), type=SessionRuns)


def test_runs_of_one_command_are_counted_together() -> None:
    runs = stored("make test | tail -5", used("make test", 2), "CI=1 make test")

    (run,) = runs.runs
    assert (3, 2, 1, {"make test": 3}, {"CI=1": 1}) == (run.runs, run.ok, run.failed, run.forms, run.assignments)


def test_a_run_knows_its_folder_and_place() -> None:
    runs = stored(used("make test", 2), "cd api && make test -s")

    assert [("", 0), ("api", 100)] == [(run.folder, run.place.start) for run in runs.runs]


def test_a_folder_outside_of_the_sessions_is_absolute() -> None:
    assert ["/srv/other"] == [run.folder for run in stored("cd /srv/other && make test").runs]


def test_chains_of_checks_are_kept() -> None:
    runs = stored(
        "make fmt && make lint", "make lint && git push", "make test && make test-unit", "make fmt; make lint"
    )

    assert ["make fmt && make lint"] == [chain.text for chain in runs.chains]


def test_a_package_manager_tells_folders_of_packages() -> None:
    runs = stored(used("pnpm -r test", 0, f"> @shop/web@1.0.0 test {ROOT}/apps/web\n> vitest run\n"))

    assert {"@shop/web": "apps/web"} == runs.packages


def test_what_is_stored_is_bounded() -> None:
    calls = [used(f"make t{number} && make lint{number}", 1, "x" * 9000) for number in range(600)]

    assert len(msgspec.json.encode(runs_of(view(*calls)))) < 50_000


@given(st.text(max_size=200), OUTPUTS, st.integers(0, 2))
def test_any_text_is_read(command: str, output: str, code: int) -> None:
    sessions = [runs_of(view(used(command or "x", code, output), used("make test")))]

    assert isinstance(choose(sessions, [ROOT]), list)


@given(st.lists(st.lists(PIECES, max_size=12).map(" ".join), max_size=5), OUTPUTS, st.integers(0, 2))
def test_any_command_line_is_read(lines: list[str], output: str, code: int) -> None:
    calls = [used(line or "x", code, output) for line in lines]
    sessions = [runs_of(view(*calls, thread=thread)) for thread in "ab"]

    found = choose(sessions, [ROOT])

    assert all(line.text and len(line.text) <= 160 and line.sources for line in found)
    assert sessions == msgspec.json.decode(msgspec.json.encode(sessions), type=list[SessionRuns])
