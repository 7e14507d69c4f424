"""Where session files stand and what their names say."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import NotASession
from commonplace.rollout import layout
from ledgers import FILE, THREAD

OTHER = "0198c0de-0000-7000-8000-00000000000f"
MOMENT = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)


def touch(path: Path, data: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_name_says_when_and_whose() -> None:
    assert layout.RolloutName(MOMENT, THREAD, THREAD, compressed=False) == layout.parse_name(FILE)


def test_a_name_with_two_ids_is_a_replacement_of_the_first() -> None:
    name = FILE.replace(".jsonl", f"_{OTHER}.jsonl.zst")

    assert layout.RolloutName(MOMENT, THREAD, OTHER, compressed=True) == layout.parse_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "notes.jsonl",
        FILE.upper(),
        FILE + ".gz",
        FILE + "\n",
        "x" + FILE,
        FILE.replace("-11-15", "-13-15"),
        FILE.replace("-11-15", "-02-30"),
        FILE.replace("T09", "T25"),
        FILE.replace(THREAD, "short"),
        FILE.replace(THREAD, THREAD + "_"),
        FILE.replace(".jsonl", ""),
        "rollout-..-..-..T09-00-00-" + THREAD + ".jsonl",
    ],
)
def test_a_name_that_is_not_a_rollouts_says_nothing(name: str) -> None:
    assert layout.parse_name(name) is None


@given(st.text(max_size=120))
def test_any_text_is_a_name_or_it_is_not(text: str) -> None:
    assert layout.parse_name(f"rollout-{text}.jsonl") is None or len(text) > 50


@given(st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_a_new_path_reads_back_as_what_it_was_made_from(moment: datetime) -> None:
    path = layout.new_path(Path("/home"), moment, THREAD)
    named = layout.parse_name(path.name)

    assert named is not None
    assert (THREAD, moment.astimezone().replace(microsecond=0, tzinfo=None)) == (
        named.thread_id,
        named.created.replace(tzinfo=None),
    )
    assert path == layout.unarchived_path(Path("/home"), layout.archived_path(Path("/home"), path))


def test_days_are_local_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        path = layout.new_path(Path("/home"), datetime(2026, 11, 15, 23, 30, tzinfo=UTC), THREAD)
    finally:
        monkeypatch.undo()
        time.tzset()

    assert Path("/home/sessions/2026/11/16") == path.parent
    assert path.name.startswith("rollout-2026-11-16T13-30-00-")


def test_a_file_with_another_name_has_no_day_to_go_back_to() -> None:
    with pytest.raises(NotASession):
        layout.unarchived_path(Path("/home"), Path("/home/archived_sessions/rollout-..-..-..x.jsonl"))


def test_a_walk_finds_sessions_and_archived_ones_and_nothing_else(home: Path) -> None:
    day = home / "sessions" / "2026" / "11" / "15"
    plain = touch(day / FILE, b"12345")
    archived = touch(home / "archived_sessions" / FILE.replace(THREAD, OTHER))
    odd = touch(home / "sessions" / "rollout-odd.jsonl")
    touch(day / "notes.jsonl")
    touch(day / f".{FILE}.1.part")
    touch(home / "rollout-outside.jsonl")
    (day / "rollout-folder.jsonl").mkdir()
    (day / "loop").symlink_to(home)

    assert {(plain, 5, False), (archived, 1, True), (odd, 1, False)} == {
        (file.path, file.size, file.archived) for file in layout.walk(home)
    }


def test_a_plain_file_hides_its_compressed_sibling_in_a_walk(home: Path) -> None:
    day = home / "sessions" / "2026"
    plain = touch(day / FILE)
    touch(day / (FILE + ".zst"))
    alone = touch(day / (FILE.replace(THREAD, OTHER) + ".zst"))

    assert {plain, alone} == {file.path for file in layout.walk(home)}


def test_a_walk_of_no_home_finds_nothing(tmp_path: Path) -> None:
    touch(tmp_path / "file")

    assert [] == [*layout.walk(tmp_path / "none"), *layout.walk(tmp_path / "file")]


def test_links_that_lead_nowhere_are_passed_over(home: Path) -> None:
    (home / "sessions").mkdir(parents=True)
    (home / "sessions" / FILE).symlink_to(home / "gone")

    assert [] == list(layout.walk(home))


def test_folders_in_folders_without_end_are_walked(home: Path) -> None:
    (home / "sessions").mkdir(parents=True)
    here = Path.cwd()
    try:
        os.chdir(home / "sessions")
        for _ in range(1500):
            Path("d").mkdir()
            os.chdir("d")
        Path(FILE).write_bytes(b"x")
        found = [file.path.name for file in layout.walk(home)]
    finally:
        os.chdir(here)
        subprocess.run(["rm", "-rf", str(home)], check=True)  # Python's own way to remove it goes too deep

    assert [FILE] == found


def test_the_home_of_a_file_is_above_its_sessions(home: Path) -> None:
    assert home == layout.home_of(home / "sessions" / "2026" / "11" / "15" / FILE)
    assert home == layout.home_of(home / "archived_sessions" / FILE)
    assert layout.home_of(Path("/tmp/elsewhere") / FILE) is None


@pytest.mark.parametrize(
    "place",
    ["sessions/2026/11/15", "archived_sessions", "sessions/2025/08/19", "sessions/2025/08/18", "sessions/any/where"],
)
@pytest.mark.parametrize("ending", ["", ".zst"])
def test_a_rollout_is_found_by_its_id_wherever_it_stands(home: Path, place: str, ending: str) -> None:
    path = touch(home / place / (FILE + ending))
    touch(home / place / FILE.replace(THREAD, OTHER))

    assert path == layout.find_rollout(THREAD, near=None, homes=[home])


def test_a_rollout_is_looked_for_beside_the_one_that_needs_it_first(home: Path, tmp_path: Path) -> None:
    touch(home / "archived_sessions" / FILE)
    near = touch(tmp_path / "near" / FILE)

    assert near == layout.find_rollout(THREAD, near=tmp_path / "near" / "child.jsonl", homes=[home])


def test_a_rollout_is_found_by_its_own_id_and_not_by_its_threads(home: Path) -> None:
    first = touch(home / "sessions" / FILE)
    second = touch(home / "sessions" / FILE.replace(".jsonl", f"_{OTHER}.jsonl"))

    assert first == layout.find_rollout(THREAD, near=None, homes=[home])
    assert second == layout.find_rollout(OTHER, near=None, homes=[home])


@pytest.mark.parametrize("part", ["", "1", THREAD[-12:], "-" + THREAD, "*", "ffffffff-ffff-7fff-8fff-ffffffffffff"])
def test_a_part_of_an_id_finds_nothing(home: Path, part: str) -> None:
    touch(home / "sessions" / "2026" / "11" / "15" / FILE)
    touch(home / "archived_sessions" / FILE)

    assert layout.find_rollout(part, near=home / "archived_sessions" / "x", homes=[home]) is None
