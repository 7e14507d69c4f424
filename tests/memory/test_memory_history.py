"""How the memory changed is told once, whoever finishes a run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from commonplace.memory.edits import history
from commonplace.memory.entries import Entry, Source

TIME = "2026-11-15T12:00:00.000Z"


def entry(name: str, text: str) -> Entry:
    return Entry(name, "global", "preference", text, 1, [Source(text, "said by the user", "t1")], 0, 0)


TABS, SPACES = entry("m1", "tabs"), entry("m2", "spaces")


def tell(
    home: Path, entries: list[Entry], replaced: list[tuple[Entry, Entry]]
) -> list[tuple[str, str | None, str | None, str]]:
    changes = history.record(home, entries, replaced, TIME)
    return [(change.entry_id, change.before, change.after, change.cause) for change in changes]


def test_what_is_new_is_told_once(tmp_path: Path) -> None:
    assert tell(tmp_path, [TABS], []) == [("m1", None, "tabs", "learned")]
    assert tell(tmp_path, [TABS], []) == []


def test_what_took_the_place_of_something_is_named(tmp_path: Path) -> None:
    tell(tmp_path, [TABS], [])

    assert tell(tmp_path, [SPACES], [(TABS, SPACES)]) == [
        ("m2", None, "spaces", "learned"),
        ("m1", "tabs", None, "superseded by m2"),
    ]
    assert tell(tmp_path, [SPACES], [(TABS, SPACES)]) == []


def test_what_came_and_went_in_one_run_is_told_once(tmp_path: Path) -> None:
    first = tell(tmp_path, [SPACES], [(TABS, SPACES)])

    assert ("m1", "tabs", None, "superseded by m2") in first
    assert tell(tmp_path, [SPACES], [(TABS, SPACES)]) == []


def test_what_comes_back_is_told_again(tmp_path: Path) -> None:
    tell(tmp_path, [SPACES], [(TABS, SPACES)])

    assert ("m1", None, "tabs", "learned") in tell(tmp_path, [TABS], [(SPACES, TABS)])


def test_what_nothing_supports_any_more_is_gone(tmp_path: Path) -> None:
    tell(tmp_path, [TABS], [])

    assert tell(tmp_path, [], []) == [("m1", "tabs", None, "no longer supported")]


def test_of_many_that_finish_the_same_run_at_once_one_tells(tmp_path: Path) -> None:
    entries = [entry(f"m{number}", f"text {number}") for number in range(50)]
    with ThreadPoolExecutor(8) as pool:
        told = [pool.submit(tell, tmp_path, entries, []) for _ in range(8)]

    assert ([0] * 7 + [50], 50) == (sorted(len(each.result()) for each in told), len(history.read(tmp_path)))
