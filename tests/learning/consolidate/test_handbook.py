"""`MEMORY.md` has a block for each project: a task that names the newest sessions, then the most useful entries."""

from __future__ import annotations

import pytest

from commonplace.learning.consolidate import handbook
from commonplace.learning.consolidate.handbook import LEAST_LINES, LEVELS, SessionFacts, within_lines
from commonplace.memory.entries import GLOBAL, Entry, Kind, Source
from commonplace.memory.files import handbook as parser
from commonplace.memory.files.raw_memories import RawMemory

SHOP, SITE = "example.org/acme/shop", "example.org/acme/site"
FRAME = 16
DAY = 86_400


def thread(number: int, version: int = 4) -> str:
    return f"{0xA1B2C3D0 + number:08x}-{number:04x}-{version}000-8000-000000000000"


def entry(number: int, *threads: str, scope: str = SHOP, kind: Kind = "rule", note: str | None = None) -> Entry:
    sources = [Source("x", "said by the user", each, 1, 0, 9, DAY * (1 + place)) for place, each in enumerate(threads)]
    sources += [Source("x", "written by the user", note=note)] if note else []
    return Entry(
        f"m{number}", scope, kind, f'"rule {number}"', len(sources), sources, 1, 1, confidence=0.9 - number / 100
    )


def facts(name: str, number: int, scope: str = SHOP, title: str = "fix the total") -> SessionFacts:
    raw = RawMemory(name, DAY * number, "/home/ada/shop", f"/s/{name}.jsonl", None, "raw", "summary", "slug")
    return SessionFacts(raw, f"rollout_summaries/{number}.md", scope, title, "success", ["cart", "tax"])


def blocks(text: str) -> list[str]:
    return [f"# Task Group: {part}" for part in text.split("# Task Group: ")[1:]]


@pytest.mark.parametrize(("lines", "kept"), [(40, 24), (FRAME + 7, 7), (FRAME, LEAST_LINES), (0, LEAST_LINES)])
def test_a_block_holds_the_most_useful_entries_that_fit(lines: int, kept: int) -> None:
    entries = [entry(number, thread(1)) for number in range(30)]

    assert entries[:kept] == within_lines(entries[::-1], lines)


def test_every_project_has_lines_of_its_own() -> None:
    entries = [entry(number, thread(1), scope=scope) for scope in (SHOP, SITE, GLOBAL) for number in range(9)]

    found = within_lines(entries, FRAME + 3)

    assert {SHOP: 5, SITE: 5, GLOBAL: 5} == {
        scope: sum(each.scope == scope for each in found) for scope in (SHOP, SITE, GLOBAL)
    }


def test_what_was_written_by_hand_always_fits() -> None:
    written = [entry(number, note=f"notes/{number}.md") for number in range(9)]

    assert 9 == len(within_lines([*written, entry(10, thread(1))], 0))


def test_a_block_has_lines_as_many_as_the_setting_says() -> None:
    threads = [thread(number) for number in range(4)]
    sessions = {name: facts(name, number) for number, name in enumerate(threads, 1)}
    entries = [entry(number, *threads, kind=kind) for kind in ("rule", "verify", "fix") for number in range(30)]

    (block,) = blocks(handbook.write(within_lines(entries, 40), sessions, {}))

    assert len(block.rstrip("\n").split("\n")) <= 40


def test_an_entry_names_its_newest_sessions_by_short_ids() -> None:
    threads = [thread(number) for number in range(4)]
    sessions = {name: facts(name, number) for number, name in enumerate(threads, 1)}

    text = handbook.write([entry(1, *threads)], sessions, {})

    newest = ", ".join(parser.SHORT_ID.findall(name)[0] for name in threads[:0:-1])
    assert f'- "rule 1" (4 sessions) [{newest}][Task 1]' in text.split("\n")


@pytest.mark.parametrize(("version", "length"), [(4, 8), (7, 13)])
def test_ids_that_begin_with_the_time_are_told_apart_by_a_longer_part(version: int, length: int) -> None:
    name = thread(5, version)

    text = handbook.write([entry(1, name)], {name: facts(name, 1)}, {})

    assert f'- "rule 1" [{name[:length]}][Task 1]' in text.split("\n")


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_a_brief_block_names_fewer_sessions(level: int) -> None:
    threads = [thread(number) for number in range(4)]
    sessions = {name: facts(name, number) for number, name in enumerate(threads, 1)}

    text = handbook.write([entry(1, *threads)], sessions, {}, LEVELS[level])

    (line,) = [line for line in text.split("\n") if line.startswith('- "rule 1"')]
    assert LEVELS[level].sources == len(line.partition("[")[2].partition("]")[0].split(","))
    assert LEVELS[level].files == text.count("(cwd=")


def test_a_block_has_one_task() -> None:
    names = {SHOP: [thread(1), thread(2)], SITE: [thread(3)]}
    sessions = {name: facts(name, number, scope) for scope, own in names.items() for number, name in enumerate(own, 1)}
    entries = [entry(number, *own, scope=scope) for scope, own in names.items() for number in range(3)]

    found = blocks(handbook.write(entries, sessions, {}))

    assert [1, 1] == [block.count("\n## Task ") for block in found]
    assert "## Task 1: fix the total and 1 more, success" in "".join(found)


def test_a_block_of_notes_has_a_task_that_says_so() -> None:
    (block,) = blocks(handbook.write([entry(1, note="notes/1.md")], {}, {}))

    assert "## Task 1: notes on shop, by hand\n### extension_resource_files\n- notes/1.md" in block
    assert '- "rule 1" [ad-hoc note] [Task 1]\n' in block


def test_what_holds_everywhere_comes_first() -> None:
    text = handbook.write([entry(1, thread(1)), entry(2, thread(1), scope=GLOBAL)], {}, {})

    assert ["scope: global", f"scope: project {SHOP}"] == [
        line for line in text.split("\n") if line.startswith("scope: ")
    ]


def test_the_order_of_entries_does_not_change_the_file() -> None:
    entries = [entry(number, thread(number), scope=scope) for scope in (SHOP, SITE) for number in range(5)]
    sessions = {thread(number): facts(thread(number), number) for number in range(5)}

    assert handbook.write(entries, sessions, {}) == handbook.write(entries[::-1], sessions, {})
