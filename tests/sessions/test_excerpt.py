"""Stretches of a session file: from its end, around a byte, page by page; images, exports and the family."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from commonplace.rollout import reader
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import open_ledger
from commonplace.sessions import excerpt, markdown
from commonplace.sessions.excerpt import ExcerptCall, ExcerptMark, Said
from ledgers import Script, assistant, function_call, function_output, user

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def long_session(home: Path, turns: int = 200) -> Path:
    script = Script()
    for number in range(turns):
        call = function_call(f"c{number}", arguments=json.dumps({"cmd": f"make {number}"}))
        script.turn(user(f"ask {number}"), call, function_output(f"c{number}", "x" * 500), assistant(f"done {number}"))
    return script.write_home(home)


def said(found: excerpt.Excerpt, who: str = "user") -> list[str]:
    return [each.text for each in found.blocks if isinstance(each, Said) and each.who == who]


def test_the_newest_stretch_ends_with_the_last_turn_and_reads_little(home: Path) -> None:
    path = long_session(home)
    meter = reader.Meter()

    found = excerpt.newest(path)
    for _ in reader.backward(path, end=found.before, meter=meter):
        break

    assert said(found)[-1] == "ask 199"
    assert found.after is None
    assert found.before is not None
    assert found.before > path.stat().st_size * 3 // 4


@pytest.mark.parametrize("compressed", [False, True])
def test_paging_back_and_forth_shows_every_turn_once(home: Path, compressed: bool) -> None:
    path = long_session(home)
    if compressed:
        import zstandard

        packed = path.with_name(f"{path.name}.zst")
        packed.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
        path = packed
    asked = [f"ask {number}" for number in range(200)]

    back: list[str] = []
    before = None
    while True:
        found = excerpt.newest(path, before=before)
        back = said(found) + back
        before = found.before
        if before is None:
            break
    onward: list[str] = []
    start: int | None = 0
    while start is not None:
        found = excerpt.following(path, start)
        onward += said(found)
        start = found.after

    assert back == asked
    assert onward == asked


def test_an_address_shows_its_line_with_the_turn_that_it_stands_in(home: Path) -> None:
    path = long_session(home)
    lines = [line for line in reader.forward(path) if not isinstance(line, excerpt.reader.Skipped)]
    middle = lines[len(lines) // 2]

    found = excerpt.around(path, middle.offset)

    assert found.before is not None
    assert found.before <= middle.offset
    first = next(each for each in found.blocks if isinstance(each, Said))
    assert first.begins_turn


def test_an_answer_belongs_to_its_call_and_tells_how_it_went(home: Path) -> None:
    script = Script().turn(
        user("go"),
        function_call("c1"),
        function_call("c2"),
        function_output("c2", "Exit code: 1\nOutput:\nno"),
        function_output("c1", "Exit code: 0\nOutput:\nyes"),
    )

    calls = [each for each in excerpt.newest(script.write_home(home)).blocks if isinstance(each, ExcerptCall)]

    assert [(call.ok, call.output) for call in calls] == [
        (True, "Exit code: 0\nOutput:\nyes"),
        (False, "Exit code: 1\nOutput:\nno"),
    ]


def test_a_compaction_is_marked_with_its_score_and_a_rollback_with_its_turns(home: Path) -> None:
    score = {"r_p": 0.5, "r_d": 0.4, "constraints": 1.0}
    script = Script().turn(user("one")).compacted([user("kept")], message="what is left")
    script.line("commonplace", {"kind": "retention", "score": score}).event("thread_rolled_back", num_turns=2)

    marks = [each for each in excerpt.newest(script.write_home(home)).blocks if isinstance(each, ExcerptMark)]

    assert [(mark.what, mark.text, mark.score) for mark in marks] == [
        ("compacted", "what is left", score),
        ("rolled_back", "2", None),
    ]


def test_what_cannot_be_read_is_a_mark_and_stops_nothing(home: Path) -> None:
    script = Script().turn(user("one")).raw(b"{ torn").line("response_item", {"type": "message"}).turn(user("two"))

    found = excerpt.newest(script.write_home(home))

    assert said(found) == ["one", "two"]
    assert sum(isinstance(each, ExcerptMark) and each.what == "skipped" for each in found.blocks) == 2


def test_the_tokens_of_all_requests_are_found_with_the_compactions_between_them(home: Path) -> None:
    script = Script()
    for size in (10, 20):
        script.event("token_count", info={"last_token_usage": {"total_tokens": size}})
    script.compacted([]).event("token_count", info={"last_token_usage": {"total_tokens": 5}}).event("token_count")

    points, compacted = excerpt.tokens(script.write_home(home))

    assert [point.tokens for point in points] == [10, 20, 5]
    assert points[1].offset < compacted[0] < points[2].offset


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        (f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}", "image/png"),
        (f"data:image/png;base64,{base64.b64encode(b'<svg onload=1>').decode()}", None),
        ("data:image/svg+xml;base64,PHN2Zz4=", None),
        ("data:image/png;base64,%%%", None),
        ("https://elsewhere.example/picture.png", None),
    ],
)
def test_only_images_that_hold_no_program_are_given_out(home: Path, address: str, kind: str | None) -> None:
    item = user("look")
    item["content"].append({"type": "input_image", "image_url": address})
    path = Script().turn(item).write_home(home)
    offset = next(each.offset for each in excerpt.newest(path).blocks if isinstance(each, Said))

    found = excerpt.image(open_ledger(path), BlobStore(home), offset, 0)

    assert found == ((PIXEL, kind) if kind else None)
    assert excerpt.image(open_ledger(path), BlobStore(home), offset, 1) is None
    assert excerpt.image(open_ledger(path), BlobStore(home), offset + 1, 0) is None


def test_a_turn_is_exported_alone_and_a_session_whole(home: Path) -> None:
    path = long_session(home, 60)
    starts = [each.offset for each in excerpt.newest(path).blocks if isinstance(each, Said) and each.begins_turn]

    one = markdown.turn(path, starts[3], str.upper)
    everything = "".join(markdown.whole(path, str))

    assert one.count("## Person") == 1
    assert "ASK " in one
    assert [f"ask {number}" in everything for number in range(60)] == [True] * 60
    assert everything.count("# Session") == 1


def test_no_text_ends_the_fence_that_it_stands_in() -> None:
    assert markdown.fenced("a\n```\nb\n`````") == "``````\na\n```\nb\n`````\n``````"
