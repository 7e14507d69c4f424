"""Ledgers that importers write: they grow with their source, appear whole, and never hold a record twice."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from claude_files import Transcript, uid
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import ThreadBusy
from commonplace.importers import claude_code, ledger_writer, transcript
from commonplace.importers.ledger_writer import LedgerDestination, SessionLeftOut, WrittenThread
from commonplace.learning.reading import session_view
from commonplace.learning.reading.session_view import UserText
from commonplace.protocol import items
from commonplace.protocol.rollout import Line
from commonplace.rollout import chain, reader
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.locks import WriterLock
from commonplace.rollout.transcript import read_transcript
from commonplace.search import passages
from generated_rows import strides

DATA = Path(__file__).parents[1] / "data" / "claude_fixtures"
FIXTURES = sorted(DATA.rglob("projects/**/*.jsonl"))
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def place(home: Path) -> LedgerDestination:
    return LedgerDestination(home, lambda: NOW, 65536)


def imported(path: Path, where: LedgerDestination) -> WrittenThread:
    written, _ = ledger_writer.write(path, claude_code.convert, where)
    return written[0]


def lines(path: Path) -> list[Line]:
    found = list(reader.forward(path))
    assert all(isinstance(record, Line) for record in found)
    return [record for record in found if isinstance(record, Line)]


def records(path: Path) -> list[str]:
    """The records of a ledger in order, each once."""
    found = [origin.id for line in lines(path) if (origin := line.source()) is not None]
    assert len(set(found)) == sum(one != two for one, two in zip(found, [*found[1:], None], strict=True))
    return list(dict.fromkeys(found))


def user_texts(path: Path) -> list[str]:
    return read_transcript(chain.open_ledger(path), chain.SkipLog()).user_texts


def cuts(raw: bytes) -> list[int]:
    """Bytes to cut a file at: around every newline, and a spread of others."""
    ends = [place for place, byte in enumerate(raw) if byte == 10]
    return sorted({0, 1, *(end + shift for end in ends for shift in (-1, 0, 1, 2)), *range(0, len(raw), 997)})


@pytest.mark.parametrize(
    "fixture", FIXTURES, ids=[path.parts[-4 if "subagents" in path.parts else -2] for path in FIXTURES]
)
@strides(3)
def test_a_file_cut_anywhere_goes_on_later_without_loss_or_duplicate(
    fixture: Path, tmp_path: Path, stride: int
) -> None:
    raw = fixture.read_bytes()
    source = tmp_path / "source" / fixture.name
    source.parent.mkdir()
    source.write_bytes(raw)
    whole = records(imported(source, place(tmp_path / "whole")).path)
    said = user_texts(imported(source, place(tmp_path / "whole2")).path)

    for number, cut in enumerate(cuts(raw)[::stride]):
        where = place(tmp_path / f"home{number}")
        source.write_bytes(raw[:cut])
        ledger_writer.write(source, claude_code.convert, where)
        source.write_bytes(raw)
        after = imported(source, where)

        assert (whole, said) == (records(after.path), user_texts(after.path)), cut


def test_what_comes_before_a_cut_is_there_before_the_rest_comes(tmp_path: Path) -> None:
    script = Transcript(tmp_path / "source")
    for number in range(5):
        script.says(f"prompt {number}")
        script.answers(f"answer {number}")
    where = place(tmp_path / "home")
    seen: list[str] = []
    for count in range(1, 11):
        written = imported(script.write(count), where)
        before, seen = seen, records(written.path)
        assert seen[: len(before)] == before
        assert len(seen) == len(before) + 1
        assert written.status == ("imported" if count == 1 else "updated")
        if count == 1:
            continue
        script.path.write_bytes(b"".join(script.lines()[:count])[:-7])
        assert imported(script.path, where).status == "unchanged"  # a source that lost something


def test_a_ledger_that_grows_keeps_its_bytes_and_an_unchanged_one_is_not_touched(tmp_path: Path) -> None:
    script = Transcript(tmp_path / "source")
    script.says("one")
    where = place(tmp_path / "home")
    first = imported(script.write(), where).path
    before = first.read_bytes()
    stamp = first.stat().st_mtime_ns
    again = imported(script.write(), where)
    untouched = first.stat().st_mtime_ns
    script.answers("two")
    grown = imported(script.write(), where).path

    assert ("unchanged", stamp) == (again.status, untouched)
    assert first == grown
    assert grown.read_bytes().startswith(before)
    assert grown.stat().st_mode & 0o777 == 0o600


def test_a_note_about_a_torn_line_goes_when_the_line_is_finished(tmp_path: Path) -> None:
    script = Transcript(tmp_path / "source")
    script.says("one")
    script.says("two")
    raw = b"".join(script.lines())
    script.write()
    script.path.write_bytes(raw[:-20])
    where = place(tmp_path / "home")
    torn = imported(script.path, where).path
    log = chain.SkipLog()
    read_transcript(chain.open_ledger(torn), log)
    assert ["torn"] == [entry.reason for entry in log.entries]

    script.path.write_bytes(raw)
    log = chain.SkipLog()
    told = read_transcript(chain.open_ledger(imported(script.path, where).path), log)
    assert (["one", "two"], []) == (told.user_texts, log.entries)


def test_records_that_come_in_another_order_make_a_new_file_of_the_thread(tmp_path: Path) -> None:
    script = Transcript(tmp_path / "source")
    script.says("one")
    script.answers("two")
    where = place(tmp_path / "home")
    first = imported(script.write(), where).path
    script.records.insert(0, script.records[0] | {"uuid": uid(50), "message": {"role": "user", "content": "zero"}})
    written = imported(script.write(), where)

    assert written.path != first
    assert first.exists()
    assert ("updated", ["zero", "one"]) == (written.status, user_texts(written.path))


def test_a_copy_that_says_something_else_is_left_out_while_the_first_file_is_there(tmp_path: Path) -> None:
    script, other = Transcript(tmp_path / "one"), Transcript(tmp_path / "two", first=20)
    script.says("mine")
    other.says("another")
    where = place(tmp_path / "home")
    first = imported(script.write(), where).path
    with pytest.raises(SessionLeftOut, match="copy"):
        imported(other.write(), where)

    script.path.unlink()
    assert ["another"] == user_texts(imported(other.path, where).path)
    assert ["mine"] == user_texts(first)


@pytest.mark.parametrize("damage", [b"", b"\0" * 4096, b"not json\n"])
def test_a_ledger_that_a_crash_left_without_its_first_line_is_written_again(tmp_path: Path, damage: bytes) -> None:
    script = Transcript(tmp_path / "source")
    script.says("one")
    where = place(tmp_path / "home")
    path = imported(script.write(), where).path
    path.write_bytes(damage)

    assert ["one"] == user_texts(imported(script.path, where).path)


def test_a_ledger_that_is_damaged_inside_is_replaced(tmp_path: Path) -> None:
    script = Transcript(tmp_path / "source")
    script.says("one")
    script.says("two")
    where = place(tmp_path / "home")
    path = imported(script.write(), where).path
    raw = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([raw[0], b"\0" * 100, *raw[2:]]))

    assert ["one", "two"] == user_texts(imported(script.path, where).path)


def test_what_a_person_added_to_an_imported_thread_stays(tmp_path: Path) -> None:
    script = Transcript(tmp_path / "source")
    script.says("one")
    where = place(tmp_path / "home")
    path = imported(script.write(), where).path
    payload = {"type": "thread_rolled_back", "num_turns": 1}
    rolled = {"timestamp": "2026-11-15T07:00:00.000Z", "type": "event_msg", "payload": payload}
    with path.open("ab") as file:
        file.write(json.dumps(rolled).encode() + b"\n")
    script.says("two")
    imported(script.write(), where)

    assert ["session_meta", "response_item", "event_msg", "response_item"] == [line.type for line in lines(path)]


def test_a_thread_that_somebody_writes_to_is_left_alone(tmp_path: Path) -> None:
    script = Transcript(tmp_path / "source")
    script.says("one")
    where = place(tmp_path / "home")
    path = imported(script.write(), where).path
    before = path.read_bytes()
    script.says("two")
    lock = WriterLock(tmp_path / "home", script.session)
    lock.acquire()
    with pytest.raises(ThreadBusy):
        imported(script.write(), where)
    lock.release()

    assert before == path.read_bytes()
    assert [path] == list(path.parent.iterdir())


def test_a_disk_that_fails_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Transcript(tmp_path / "source")
    script.says("one")
    where = place(tmp_path / "home")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        imported(script.write(), where)

    assert [] == [file for file in (tmp_path / "home" / "sessions").rglob("*") if file.is_file()]


def test_large_outputs_and_side_files_are_kept_as_blobs(tmp_path: Path) -> None:
    script = Transcript(tmp_path / "source")
    script.calls("Bash", "c1")
    script.gives("c1", "x" * 100_000)
    script.calls("Bash", "c2")
    script.gives("c2", "<persisted-output>\nsaved to: /gone/tool-results/abc.txt\npreview")
    side = script.path.with_suffix("") / "tool-results" / "abc.txt"
    side.parent.mkdir(parents=True)
    side.write_text("the whole output\n" * 1000)
    path = imported(script.write(), place(tmp_path / "home")).path

    store = BlobStore(tmp_path / "home")
    refs = [ref for line in lines(path) for ref in line.blobs()]
    assert [b"x" * 100_000, side.read_bytes()] == [store.get(ref.sha256) for ref in refs]
    assert all(line.size < 40_000 for line in lines(path))


@pytest.mark.parametrize("name", ["../../../secret.txt", "link.txt"])
def test_a_side_file_is_only_looked_for_beside_the_transcript(tmp_path: Path, name: str) -> None:
    script = Transcript(tmp_path / "source")
    script.calls("Bash", "c1")
    script.gives("c1", f"<persisted-output>\nsaved to: /x/tool-results/{name}\n")
    folder = script.path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    path = imported(script.write(), place(tmp_path / "home")).path

    assert [] == [ref for line in lines(path) for ref in line.blobs()]


def copy_of(script: Transcript, folder: Path, session: str, *, rename: bool, forget: bool) -> Transcript:
    """A session that begins with a copy of another, as versions of Claude Code make them."""
    first = script.first + 500
    copy = Transcript(folder, session, first=first)
    new = {
        record["uuid"]: uid(first + 300 + place) if rename else record["uuid"]
        for place, record in enumerate(script.records)
    }
    for original in script.records:
        record = json.loads(json.dumps(original))
        record |= {"uuid": new[record["uuid"]], "sessionId": session}
        record["parentUuid"] = new.get(record["parentUuid"])
        if forget:
            record.pop("isMeta", None)
            if isinstance(record["message"]["content"], str):
                record["message"]["content"] = [{"type": "text", "text": record["message"]["content"]}]
        copy.records.append(record)
        copy.last = record["uuid"]
    return copy


@pytest.mark.parametrize("rename", [False, True])
@pytest.mark.parametrize("forget", [False, True])
def test_a_session_that_begins_with_a_copy_of_another_refers_to_it(tmp_path: Path, rename: bool, forget: bool) -> None:
    script = Transcript(tmp_path / "a")
    script.says("teal is my colour")
    script.says("body of a command", isMeta=True)
    script.answers("noted", answer="msg_unique")
    session = "a8880b0c-dbbf-4386-9726-0d81686c3093"
    copy = copy_of(script, tmp_path / "b", session, rename=rename, forget=forget)
    copy.says("which colour?")
    where = place(tmp_path / "home")
    first = imported(script.write(), where).path
    second = imported(copy.write(), where).path

    assert ["teal is my colour", "which colour?"] == user_texts(second)
    assert ["session_meta", "response_item"] == [line.type for line in lines(second)]
    assert first == chain.open_ledger(second).parts[1].path
    copy.answers("teal")
    assert "updated" == imported(copy.write(), where).status
    assert ["teal is my colour", "which colour?"] == user_texts(second)
    third = copy_of(copy, tmp_path / "c", "b8880b0c-dbbf-4386-9726-0d81686c3093", rename=rename, forget=forget)
    third.says("and now?")
    last = imported(third.write(), where).path
    assert ["teal is my colour", "which colour?", "and now?"] == user_texts(last)
    assert [last, second, first] == [part.path for part in chain.open_ledger(last).parts]


def test_a_session_that_leaves_its_origin_early_shares_only_the_beginning(tmp_path: Path) -> None:
    script = Transcript(tmp_path / "a")
    for number in range(4):
        script.says(f"prompt {number}")
        script.answers(f"answer {number}", answer=f"msg_{number}")
    copy = copy_of(script, tmp_path / "b", "a8880b0c-dbbf-4386-9726-0d81686c3093", rename=True, forget=True)
    del copy.records[4:]
    copy.last = copy.records[-1]["uuid"]
    copy.says("another way")
    where = place(tmp_path / "home")
    imported(script.write(), where)

    assert ["prompt 0", "prompt 1", "another way"] == user_texts(imported(copy.write(), where).path)


def test_sessions_that_only_begin_alike_share_nothing(tmp_path: Path) -> None:
    one = Transcript(tmp_path / "a")
    two = Transcript(tmp_path / "b", "a8880b0c-dbbf-4386-9726-0d81686c3093", first=100)
    for script, answer in ((one, "x"), (two, "y")):
        script.says("hi")
        script.answers("hello", answer=f"msg_{answer}")
    where = place(tmp_path / "home")
    imported(one.write(), where)

    assert 1 == len(chain.open_ledger(imported(two.write(), where).path).parts)


def test_answers_that_cite_a_memory_are_told_once(tmp_path: Path) -> None:
    cited = "01a1dddc-5c08-7863-8c91-eb8a612fb6a1"
    block = f"<oai-mem-citation>\n<rollout_ids>\n{cited}\n{cited}\nnot an id\n</rollout_ids>\n</oai-mem-citation>"
    script = Transcript(tmp_path / "source")
    script.says(f"what is {block}")
    script.answers(f"because\n{block}")
    where = place(tmp_path / "home")

    assert [(cited,)] == [answer.threads for answer in imported(script.write(), where).cited]
    script.says("thanks")
    assert [] == imported(script.write(), where).cited


def test_a_source_with_thousands_of_threads_needs_no_file_open_for_each(tmp_path: Path) -> None:
    source = tmp_path / "many.jsonl"
    rows = [{"session": f"s{number % 3000}", "role": "user", "text": f"line {number}"} for number in range(6000)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    most = 0

    def counting(path: Path) -> Any:
        nonlocal most
        for found in transcript.convert(path):
            most = max(most, len(os.listdir("/proc/self/fd")))
            yield found

    written, _ = ledger_writer.write(source, counting, place(tmp_path / "home"))
    assert 3000 == len(written)
    assert most < 100


@given(st.binary(max_size=4000))
def test_no_bytes_make_an_import_fail(tmp_path: Path, raw: bytes) -> None:
    source = tmp_path / "6ac42589-1bd0-4e41-b0ff-ba06dc9add47.jsonl"
    source.write_bytes(raw)
    ledger_writer.write(source, claude_code.convert, place(tmp_path / "home"))


@given(st.data())
def test_no_damage_to_a_real_file_makes_an_import_fail(tmp_path: Path, data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(FIXTURES)).read_bytes())
    for _ in range(data.draw(st.integers(1, 20))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 50))] = data.draw(st.binary(max_size=50))
    source = tmp_path / "6ac42589-1bd0-4e41-b0ff-ba06dc9add47.jsonl"
    source.write_bytes(bytes(raw))
    written, _ = ledger_writer.write(source, claude_code.convert, place(tmp_path / f"home{data.draw(st.uuids())}"))

    for each in written:
        for line in lines(each.path):
            if line.type == "response_item":
                items.view(line.payload)


def active_texts(path: Path) -> list[str]:
    """What the person said and did not take back."""
    return [event.text for event in session_view.read(path).events() if isinstance(event, UserText)]


def test_a_branch_that_is_gone_on_with_is_imported_once_and_grows(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    answers: list[str] = []
    for number, parent in enumerate([None, 0, 0, 1]):
        transcript.says(f"prompt {number}", parent=None if parent is None else answers[parent])
        answers.append(transcript.answers(f"answer {number}"))
    where = place(tmp_path / "home")
    first = imported(transcript.write(), where)
    again = imported(transcript.write(), where)
    transcript.says("and on")
    grown = imported(transcript.write(), where)

    assert ["prompt 0", "prompt 1", "prompt 3"] == active_texts(first.path)
    assert [f"prompt {number}" for number in range(4)] == user_texts(first.path), "what is said again is said once"
    assert 4 == sum(hit.is_user for hit in passages.of_session(first.path))
    assert ("unchanged", first.path) == (again.status, again.path)
    assert ["prompt 0", "prompt 1", "prompt 3", "and on"] == active_texts(grown.path)


def test_a_turn_that_is_rewound_to_its_middle_is_imported_once_and_grows(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    transcript.says("do it")
    first = transcript.answers("I look.")
    transcript.answers("done")
    transcript.says("differently", parent=first)
    where = place(tmp_path / "home")
    ledger = imported(transcript.write(1), where)
    for count in range(2, 5):  # it grows record by record
        ledger = imported(transcript.write(count), where)
    again = imported(transcript.write(), where)
    transcript.answers("so be it")
    grown = imported(transcript.write(), where)

    assert ("unchanged", "updated", ledger.path) == (again.status, grown.status, grown.path)
    assert ["do it", "differently"] == active_texts(grown.path) == user_texts(grown.path)
    assert ["do it", "I look.", "done", "differently", "so be it"] == [
        hit.text for hit in passages.of_session(grown.path)
    ]
