"""Reading sessions in a terminal: the list, a conversation, and hits by session, at 50, 80 and 140 columns.

To renew the screens: UPDATE_SCREENS=1 .venv/bin/pytest tests/surfaces/test_reading_sessions.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from command import Command
from opencode_files import answered, asked, export, session, text, tool

from commonplace.surfaces.cli import views

SCREENS = Path(__file__).parents[1] / "data" / "screens"
_FILE = re.compile(r"(?m)^file .*\n(?: {9}.*\n)*")
"""The path of a thread, which is another in each run."""
WIDTHS = (50, 80, 140)
OTHER = "ses_30bb0000ffeShopTests0002"


@pytest.fixture
def shop(commonplace: Command, tmp_path: Path) -> str:
    """Two sessions of one project; returns the thread of the first."""
    long = "The database of the tests listens on port 5499, because the usual port is taken by the shop itself. " * 2
    calls = [
        tool(3, "read", {"filePath": "shop.py"}, output="port = 5499"),
        tool(4, "bash", {"command": "make test"}, output="1 failed", metadata={"exit": 2}),
        tool(5, "bash", {"command": "make test"}, output="ok", metadata={"exit": 0}),
    ]
    first = session(
        asked(1, text(1, "which port does the test database use\n\n    PORT=?"), text(2, "a reminder", synthetic=True)),
        answered(2, *calls, text(6, long.strip())),
        asked(3, text(7, "thanks, say it in the readme")),
        answered(4, text(8, "Done.\n" + "\n".join(f"line {number}" for number in range(60)))),
        title="The port of the test database and where the readme says it, at some length",
    )
    second = session(asked(1, text(1, "the database again")), answered(2, text(2, "Yes?")), id=OTHER, title="Again")
    export(tmp_path / "data" / "one.json", first)
    export(tmp_path / "data" / "two.json", second)
    commonplace.ok("sessions", "import", "--from", "opencode", "--path", tmp_path / "data")
    threads = commonplace.ok("sessions", "list")["threads"]
    return next(str(row["thread_id"]) for row in threads if row["turns"] == 2)


def screen(commonplace: Command, name: str, width: int, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """Compare what a command prints with the screen that is kept; `SCREENS` holds them, one file each."""
    monkeypatch.setenv("COLUMNS", str(width))
    ran = commonplace("sessions", *arguments)
    assert ran.code == 0, ran.err
    kept = SCREENS / f"{name}_{width}.txt"
    printed = _FILE.sub("", ran.out)
    if os.environ.get("UPDATE_SCREENS"):
        kept.write_text(printed, "utf-8")
    assert kept.read_text("utf-8") == printed
    too_long = [line for line in printed.splitlines() if len(line) > width and "commonplace sessions show" not in line]
    assert too_long == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_list_fits_the_terminal(
    commonplace: Command, shop: str, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    screen(commonplace, "list", width, monkeypatch, "list")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_session_is_a_conversation_with_its_calls_folded(
    commonplace: Command, shop: str, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    screen(commonplace, "show", width, monkeypatch, "show", shop[:8])


@pytest.mark.parametrize("width", WIDTHS)
def test_one_turn_is_shown_in_full(
    commonplace: Command, shop: str, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    screen(commonplace, "turn", width, monkeypatch, "show", shop, "--turn", "1", "--full")


@pytest.mark.parametrize("width", WIDTHS)
def test_hits_of_one_session_stand_together_with_the_command_that_opens_it(
    commonplace: Command, shop: str, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    screen(commonplace, "search", width, monkeypatch, "search", "database port")


def test_a_pipe_gets_the_list_uncut(commonplace: Command, shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    printed = commonplace("sessions", "list").out

    assert shop in printed
    assert "where the readme says it, at some length" in printed
    assert "/srv/shop" in printed


@pytest.mark.parametrize(
    ("options", "turns"),
    [
        ([], [2, 1]),
        (["--reverse"], [1, 2]),
        (["--since", "2026-09-21T14:13:23Z"], [2]),
        (["--since", "2030-01-01"], []),
        (["--reverse", "--limit", "1"], [1]),
    ],
)
def test_the_list_can_be_turned_and_begin_later(
    commonplace: Command, shop: str, options: list[str], turns: list[int]
) -> None:
    page = commonplace.ok("sessions", "list", *options)

    assert turns == [row["turns"] for row in page["threads"]]


def test_pages_of_the_turned_list_follow_each_other(commonplace: Command, shop: str) -> None:
    first = commonplace.ok("sessions", "list", "--reverse", "--limit", "1")
    second = commonplace.ok("sessions", "list", "--reverse", "--limit", "1", "--cursor", first["next_cursor"])

    assert ([row["turns"] for row in second["threads"]], second["next_cursor"]) == ([2], None)


def test_what_cannot_be_shown_gets_one_sentence(commonplace: Command, shop: str) -> None:
    ran = commonplace("sessions", "show", shop, "--turn", "3")

    assert (ran.code, ran.out) == (1, "")
    assert "The thread has 2 turns, and no turn 3." in ran.err
    assert commonplace("sessions", "show", shop, "--full", "--json").code == 2
    assert commonplace("sessions", "show", shop, "--items").code == 2
    assert commonplace("sessions", "list", "--since", "soon").code == 1


def test_ids_that_begin_alike_are_shown_as_far_as_they_must_be() -> None:
    one, two = "01a1c09d-0000-7000-8000-000000000001", "01a1c09d-0000-7000-8000-00000000002f"
    assert views.short_ids([one, two]) == {one: one[:35], two: two[:35]}
    assert views.short_ids([one]) == {one: "01a1c09d"}
