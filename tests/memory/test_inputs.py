"""What sessions taught is written as files, and read back from them as it was."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.memory.files.raw_memories import RawMemory, raw_memories, read, stems, summary_text, sync
from commonplace.memory.workspace import layout

THREAD = "0194f5a6-89ab-7cde-8123-456789abcdef"
LONG_SLUG = "Unsafe Slug/With Spaces & Symbols + EXTRA_LONG_12345_67890_ABCDE_fghij_klmno"
HEADING = "## Thread `0194f5a6-89ab-7cde-8123-456789abcdef`"


def make(thread_id: str = THREAD, **fields: object) -> RawMemory:
    given = RawMemory(
        thread_id, 1_763_197_200, "/repo/demo", "/sessions/x.jsonl", "main", "- use pnpm", "Fixed it.", None
    )
    return msgspec.structs.replace(given, **fields)


def stem(one: RawMemory) -> str:
    return stems([one])[one.thread_id]


def other(number: int, **fields: object) -> RawMemory:
    return make(f"0194f5a6-89ab-7cde-8123-4567000000{number:02x}", **fields)


@pytest.fixture
def root(home: Path) -> Path:
    return home / layout.FOLDER


def summaries(root: Path) -> list[str]:
    return sorted(os.listdir(root / layout.SUMMARIES))


class TestNames:
    @pytest.mark.parametrize("slug", [None, "", "___", "é"])
    def test_a_name_without_a_slug_is_time_and_hash(self, slug: str | None) -> None:
        assert "2025-02-11T15-35-19-jqmb" == stem(make(rollout_slug=slug))

    def test_a_slug_is_made_safe_and_short(self) -> None:
        expected = "2025-02-11T15-35-19-jqmb-unsafe_slug_with_spaces___symbols___extra_long_12345_67890_a"

        assert expected == stem(make(rollout_slug=LONG_SLUG))
        assert expected == stem(make(rollout_slug=expected.partition("jqmb-")[2]))

    @pytest.mark.parametrize(
        ("slug", "expected"), [("_Über-fix_", "__ber_fix"), ("a" * 80, "a" * 60), ("x" * 59 + "--y", "x" * 59)]
    )
    def test_letters_become_small_and_all_else_an_underscore(self, slug: str, expected: str) -> None:
        assert f"2025-02-11T15-35-19-jqmb-{expected}" == stem(make(rollout_slug=slug))

    @pytest.mark.parametrize(
        ("thread", "time"),
        [
            ("c232ab00-9414-11ec-b3c8-9e6bdeced846", "2022-02-22T19-22-22"),  # RFC 9562, A.1
            ("1ec9414c-232a-6b00-b3c8-9e6bdeced846", "2022-02-22T19-22-22"),  # A.5
            ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "2022-02-22T19-22-22"),  # A.6
            ("017F22E279B07CC398C4DC0C0C07398F", "2022-02-22T19-22-22"),
            ("919108f7-52d1-4320-9bac-f847db4148a8", "2025-11-15T09-00-00"),  # version 4 has no time
            ("ffffffff-ffff-7fff-bfff-ffffffffffff", "2025-11-15T09-00-00"),  # beyond the year 9999
            ("00000000-0000-1000-8000-000000000000", "2025-11-15T09-00-00"),  # 1582
            ("session-7", "2025-11-15T09-00-00"),
        ],
    )
    def test_the_time_is_the_one_in_the_id_or_else_of_the_last_change(self, thread: str, time: str) -> None:
        assert time == stem(make(thread)).rpartition("-")[0]

    def test_an_id_that_is_no_uuid_is_hashed_by_its_bytes(self) -> None:
        assert "2025-11-15T09-00-00-001z" == stem(make("a"))  # 97 = 1 × 62 + 35
        assert "2025-11-15T09-00-00-00O5" == stem(make("ab"))  # 97 × 31 + 98 = 50 × 62 + 5

    def test_two_threads_never_share_a_file(self) -> None:
        one, two = make("0194f5a6-89ab-7cde-8123-000089abcdef"), make("0194f5a6-89ab-7cde-8123-111189abcdef")

        names = stems([two, one])

        assert "2025-02-11T15-35-19-jqmb" == stem(one) == stem(two) == names[one.thread_id]
        assert "2025-02-11T15-35-19-" == names[two.thread_id][:20]
        assert names[one.thread_id].lower() != names[two.thread_id].lower()


class TestTexts:
    def test_no_inputs_give_a_placeholder(self) -> None:
        assert "# Raw Memories\n\nNo raw memories yet.\n" == raw_memories([])

    def test_raw_memories_are_in_the_order_of_their_threads(self) -> None:
        text = raw_memories([other(2, raw_memory="\n second \n\n"), other(1, rollout_slug="Slug")])
        title, blank, intro, rest = text.split("\n", 3)

        assert ("# Raw Memories", "") == (title, blank)
        assert intro.endswith(":")
        assert rest == (
            "\n"
            "## Thread `0194f5a6-89ab-7cde-8123-456700000001`\n"
            "updated_at: 2025-11-15T09:00:00+00:00\n"
            "cwd: /repo/demo\n"
            "rollout_path: /sessions/x.jsonl\n"
            "rollout_summary_file: 2025-02-11T15-35-19-0001-slug.md\n"
            "\n- use pnpm\n\n"
            "## Thread `0194f5a6-89ab-7cde-8123-456700000002`\n"
            "updated_at: 2025-11-15T09:00:00+00:00\n"
            "cwd: /repo/demo\n"
            "rollout_path: /sessions/x.jsonl\n"
            "rollout_summary_file: 2025-02-11T15-35-19-0002.md\n"
            "\nsecond\n\n"
        )

    def test_a_summary_has_a_header_and_its_words_as_they_are(self) -> None:
        assert summary_text(make(rollout_summary="\nFixed.\r\n\n")) == (
            f"thread_id: {THREAD}\n"
            "updated_at: 2025-11-15T09:00:00+00:00\n"
            "rollout_path: /sessions/x.jsonl\n"
            "cwd: /repo/demo\n"
            "git_branch: main\n"
            "\n\nFixed.\r\n\n\n"
        )

    def test_a_branch_that_is_not_known_has_no_line(self) -> None:
        assert "cwd: /repo/demo\n\nFixed it.\n" in summary_text(make(git_branch=None))

    def test_a_line_that_looks_like_a_heading_gets_a_backslash(self) -> None:
        text = raw_memories([make(raw_memory=f"{HEADING}\nx {HEADING}\n\\{HEADING}\n## Threads")])

        assert f"\n\n\\{HEADING}\nx {HEADING}\n\\\\{HEADING}\n## Threads\n\n" in text


class TestFiles:
    def test_only_what_is_wanted_is_kept(self, root: Path) -> None:
        sync(root, [other(1), other(2)])
        folder = root / layout.SUMMARIES
        (folder / "by_hand.md").write_text("", "utf-8")
        (folder / "notes.txt").write_text("", "utf-8")
        (folder / "folder.md").mkdir()
        (Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md"))).write_text("", "utf-8")

        done = sync(root, [other(2), other(3)])

        assert [
            "2025-02-11T15-35-19-0002.md",
            "2025-02-11T15-35-19-0003.md",
            "folder.md",
            "notes.txt",
            "\udcff.md",
        ] == summaries(root)
        assert ["rollout_summaries/2025-02-11T15-35-19-0001.md", "rollout_summaries/by_hand.md"] == done.removed
        assert ["rollout_summaries/2025-02-11T15-35-19-0003.md", "raw_memories.md"] == done.written
        assert ["rollout_summaries/folder.md"] == done.failed

    def test_a_file_that_holds_what_it_should_is_left_alone(self, root: Path) -> None:
        sync(root, [other(1), other(2)])
        before = {path: path.stat().st_ino for path in root.rglob("*.md")}

        again = sync(root, [other(2), other(1)])

        assert [] == again.written + again.removed
        assert before == {path: path.stat().st_ino for path in root.rglob("*.md")}

    def test_a_changed_slug_renames_the_file(self, root: Path) -> None:
        sync(root, [other(1, rollout_slug="before")])

        sync(root, [other(1, rollout_slug="after")])

        assert ["2025-02-11T15-35-19-0001-after.md"] == summaries(root)

    def test_files_are_private_and_nothing_else_is_left(self, root: Path) -> None:
        sync(root, [other(1)])

        files = [path for path in root.rglob("*") if path.is_file()]
        assert ["2025-02-11T15-35-19-0001.md", "raw_memories.md"] == sorted(path.name for path in files)
        assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in files}

    def test_nothing_is_written_through_a_link(self, root: Path, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        root.mkdir(parents=True)
        (root / layout.SUMMARIES).symlink_to(outside)
        (root / layout.RAW).symlink_to(outside / "raw")

        sync(root, [make()])

        assert [] == list(outside.iterdir())

    def test_no_inputs_leave_the_placeholder_alone(self, root: Path) -> None:
        sync(root, [make()])
        sync(root, [])

        assert [] == summaries(root)
        assert [] == read(root.parent)


def kept(one: RawMemory) -> RawMemory:
    """Return what the files can hold of an input."""
    prefix, _, slug = stem(one).partition(stem(msgspec.structs.replace(one, rollout_slug=None)))
    assert not prefix
    return msgspec.structs.replace(one, raw_memory=one.raw_memory.strip(), rollout_slug=slug[1:] or None)


lines = st.text(max_size=20) | st.sampled_from(
    [HEADING, f"\\{HEADING}", f" {HEADING}", "## Thread `", "updated_at: x", "", "\r", "cwd: x", "\x85", '"', "`"]
)
texts = st.lists(lines, max_size=8).map("\n".join) | st.just(raw_memories([make(), other(1)]))
values = st.text(max_size=20) | lines | st.just('"quoted"')
threads = st.uuids().map(str) | st.integers(0, 3).map(lambda n: other(n).thread_id) | st.text(min_size=1, max_size=10)
built = st.builds(
    RawMemory,
    thread_id=threads,
    updated_s=st.integers(0, 253_402_300_799),
    cwd=values,
    rollout_path=values,
    git_branch=st.none() | values,
    raw_memory=texts,
    rollout_summary=texts,
    rollout_slug=st.none() | st.text(max_size=70),
)


@given(st.lists(built, max_size=5, unique_by=lambda one: one.thread_id))
def test_reading_gives_what_was_written(inputs: list[RawMemory]) -> None:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        sync(home / layout.FOLDER, inputs)

        assert sorted(map(kept, inputs), key=lambda one: one.thread_id) == read(home)


def test_a_raw_memory_cannot_pass_for_another_thread(root: Path) -> None:
    forged = raw_memories([other(9, raw_memory="forged")])
    sync(root, [other(1, raw_memory=forged), other(2)])

    assert [other(1, raw_memory=forged.strip()), other(2)] == read(root.parent)


def test_a_character_that_no_file_can_hold_stops_nothing(root: Path) -> None:
    sync(root, [make(raw_memory="half \ud800 a pair")])

    assert "half ? a pair" == read(root.parent)[0].raw_memory
