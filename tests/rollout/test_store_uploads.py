"""What a home writes goes into its store: every whole line, once, whatever fails in between."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import recording

from commonplace.errors import BadSetting, StoreUnavailable
from commonplace.rollout import archive, layout
from commonplace.rollout.store.home_store import HomeStore
from commonplace.rollout.store.segments import SegmentManifest
from commonplace.rollout.store.upload_notes import FILE, NAME_FILE, UploadNote, UploadNotes, root_of
from ledgers import Script, user
from object_stores import Place


def ledger(home: Path, *texts: str) -> Path:
    path = recording.session_file(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(Script().item(*(user(text) for text in texts)).data())
    return path


def add(path: Path, *texts: str) -> None:
    lines = Script().item(*(user(text) for text in texts)).lines[1:]
    with path.open("ab") as file:
        file.writelines(line + b"\n" for line in lines)


def stored(place: Place, home: Path, path: Path) -> tuple[bytes, SegmentManifest]:
    """What the store has of a file."""
    folder = f"{root_of(home)}/{path.relative_to(home)}"
    raw = place.raw()
    manifest = SegmentManifest(folder, raw.list(folder))
    pieces = manifest.pieces(0, manifest.end)
    data = [
        bytes(piece.end - piece.start)
        if piece.segment is None
        else raw.read(piece.segment.key, piece.start - piece.segment.start, piece.end - piece.segment.start)
        for piece in pieces
    ]
    return b"".join(data), manifest


def test_whole_lines_go_up_in_order_and_a_torn_one_waits(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    uploads = place.home(home).uploads
    uploads.upload(path)
    first = path.read_bytes()
    assert stored(place, home, path)[0] == first

    with path.open("ab") as file:
        file.write(b'{"torn')
    uploads.upload(path)
    assert stored(place, home, path)[0] == first

    with path.open("ab") as file:
        file.write(b'":1}\n')
    uploads.upload(path)
    data, manifest = stored(place, home, path)
    assert (data, len(manifest.all)) == (path.read_bytes(), 2)
    assert uploads.pending().waiting == 0


def test_many_uploads_leave_few_segments_and_every_byte(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    uploads = place.home(home).uploads
    for number in range(60):
        add(path, f"turn {number}")
        uploads.upload(path)

    data, manifest = stored(place, home, path)
    assert data == path.read_bytes()
    assert len(manifest.all) <= 16


def test_a_store_that_was_away_gets_everything_when_it_is_back(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    with place.away():
        here = place.home(home)
        here.add(path)
        assert not here.drain()
        assert isinstance(here.problem, StoreUnavailable)
        pending = here.uploads.pending()
        assert (pending.waiting, pending.bytes) == (1, path.stat().st_size)
        here.store._opened = None  # pyright: ignore[reportPrivateUsage] (as a process that starts)
    here.add(path)  # the next turn
    assert here.drain()
    assert stored(place, home, path)[0] == path.read_bytes()

    other = path.with_name(path.name.replace("0001", "0002"))
    other.write_bytes(path.read_bytes())
    later = place.home(home)  # the next process begins with what is left
    later.begin()
    for thread in threading.enumerate():
        if thread.name == "ledger-uploads":
            thread.join(60)
    assert stored(place, home, other)[0] == other.read_bytes()


def test_what_is_added_goes_before_what_was_left(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    left = [path.with_name(path.name.replace("0001", f"{number:04}")) for number in range(2, 30)]
    for other in left:
        other.write_bytes(path.read_bytes())
    here = place.home(home)
    here.begin()
    here.add(path)
    assert here.drain()
    assert stored(place, home, path)[0] == path.read_bytes()

    here.add()  # now somebody waits for the rest
    assert here.drain()
    assert here.uploads.pending().waiting == 0


def test_a_process_killed_between_upload_and_note_leaves_nothing_double(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    uploads = place.home(home).uploads
    uploads.upload(path)
    add(path, "two")
    program = Path(__file__).with_name("upload_program.py")
    words = [sys.executable, str(program), str(home), place.address, str(path)]
    killed = subprocess.run(words, env={**os.environ, **place.variables}, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert stored(place, home, path)[0] == path.read_bytes()

    add(path, "three")
    place.home(home).uploads.sweep()
    data, manifest = stored(place, home, path)
    assert data == path.read_bytes()
    assert [each.start for each in manifest.all] == sorted({each.start for each in manifest.all})


def test_a_lost_note_costs_a_comparison_and_nothing_else(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    place.home(home).uploads.upload(path)
    before = place.objects()
    (home / FILE).unlink()

    place.home(home).uploads.sweep()
    assert place.objects() == before


def test_a_torn_segment_and_a_lost_one_are_made_good(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    uploads = place.home(home).uploads
    for text in ("two", "three", "four"):
        uploads.upload(path)
        add(path, text)
    uploads.upload(path)
    raw, (_, manifest) = place.raw(), stored(place, home, path)
    torn, lost, last = manifest.all[1], manifest.all[2], manifest.all[3]
    data = path.read_bytes()
    raw.delete([torn.key, lost.key, last.key])
    raw.create(torn.key, data[torn.start : torn.start + 5])
    raw.create(last.key, data[last.start : last.start + 7])

    uploads.sweep(check=True)
    assert stored(place, home, path)[0] == data


def test_archived_and_deleted_files_follow(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    thread = recording.meta()["id"]
    here = place.home(home)
    for text in ("two", "three"):
        here.uploads.upload(path)
        add(path, text)
    (moved,) = archive.archive(home, thread, [path])
    here.add(path)
    assert here.drain()  # whoever looks between the two calls sees only that the file is gone
    here.add(moved)
    assert here.drain()
    data, manifest = stored(place, home, moved)
    assert (data, len(manifest.all)) == (moved.read_bytes(), 3)  # what was there was moved inside the store
    assert stored(place, home, path)[0] == b""

    archive.delete(home, thread, [moved])
    with place.away():  # what was deleted while the store was away is removed later
        later = place.home(home)
        later.add(moved)
        assert not later.drain()
    place.home(home).uploads.sweep()
    assert place.objects() == {}


def test_files_that_vanish_by_themselves_stay_in_the_store(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    uploads = place.home(home).uploads
    uploads.upload(path)
    before = place.objects()
    shutil.rmtree(home / layout.SESSIONS)
    uploads.sweep(check=True)
    assert place.objects() == before


def test_a_copied_home_overwrites_nothing(place: Place, home: Path, tmp_path: Path) -> None:
    path = ledger(home, "one")
    place.home(home).uploads.upload(path)
    copy = tmp_path / "copy"
    shutil.copytree(home, copy)
    add(path, "said here, and longer")
    place.home(home).uploads.upload(path)
    before = stored(place, home, path)[0]
    theirs = copy / path.relative_to(home)
    add(theirs, "said there")

    uploads = place.home(copy).uploads
    uploads.upload(theirs)
    assert stored(place, home, path)[0] == before == path.read_bytes()
    assert uploads.pending().conflicts == 1

    for name in (NAME_FILE, FILE):  # what `doctor` says
        (copy / name).unlink()
    place.home(copy).uploads.sweep()
    assert stored(place, copy, theirs)[0] == theirs.read_bytes()


def test_a_file_that_an_import_wrote_anew_replaces_its_segments_and_keeps_them(place: Place, home: Path) -> None:
    path = ledger(home, "one", "two")
    uploads = place.home(home).uploads
    uploads.upload(path)
    old = path.read_bytes()
    ledger(home, "another", "beginning", "of it")
    uploads.upload(path)

    assert stored(place, home, path)[0] == path.read_bytes()
    (kept,) = [key for key in place.objects() if "/replaced/" in key]
    assert place.raw().get(kept) == old


def test_a_file_that_was_written_anew_replaces_nothing_that_another_home_added(
    place: Place, home: Path, tmp_path: Path
) -> None:
    path = ledger(home, "one", "two")
    place.home(home).uploads.upload(path)
    copy = tmp_path / "copy"
    shutil.copytree(home, copy)
    add(copy / path.relative_to(home), "said there")
    place.home(copy).uploads.sweep()
    before = place.objects()

    ledger(home, "another", "beginning")
    uploads = place.home(home).uploads
    uploads.upload(path)
    assert place.objects() == before
    assert uploads.pending().conflicts == 1


def test_an_interrupted_replacement_is_gone_on_with(place: Place, home: Path) -> None:
    path = ledger(home, "one", "two")
    uploads = place.home(home).uploads
    uploads.upload(path)
    ledger(home, "another", "beginning", "of it")
    note = uploads.notes.read()[str(path.relative_to(home))]
    uploads.notes.write(UploadNote(note.file, note.end, note.check, "replacing"))

    place.home(home).uploads.sweep()
    assert stored(place, home, path)[0] == path.read_bytes()


def test_notes_stay_as_short_as_what_they_tell(home: Path) -> None:
    home.mkdir()
    file = "sessions/2026/11/15/x.jsonl"
    (home / FILE).write_bytes(b"".join(b'{"file":"%s","end":%d}\n' % (file.encode(), end) for end in range(1200)))

    assert UploadNotes(home).read()[file].end == 1199
    assert (home / FILE).read_bytes().count(b"\n") == 1
    assert UploadNotes(home).read()[file].end == 1199


@pytest.mark.parametrize("address", ["s3://key:hunter2secret@b/x", "s3://", "file:///", "s3://b?key=hunter2secret"])
def test_an_address_that_cannot_be_used_is_refused_without_repeating_it(address: str, home: Path) -> None:
    with pytest.raises(BadSetting) as refused:
        HomeStore(home, address, {})
    assert "hunter2" not in refused.value.sentence()


def test_errors_of_a_store_tell_no_keys(place: Place, home: Path) -> None:
    path = ledger(home, "one")
    place.variables["AWS_SECRET_ACCESS_KEY"] = "hunter2secret"
    with place.away(), pytest.raises(StoreUnavailable) as away:
        place.home(home).uploads.upload(path)
    assert away.value.__cause__ is None
    for part in (*place.variables.values(), place.address):
        assert part not in away.value.sentence()


def test_a_server_that_knows_no_conditions_is_asked_first(s3_place: Place, home: Path) -> None:
    s3_place.variables["AWS_CONDITIONAL_PUT"] = "disabled"
    path = ledger(home, "one")
    place = s3_place
    place.home(home).uploads.upload(path)
    assert stored(place, home, path)[0] == path.read_bytes()
    assert not place.raw().create(next(iter(place.objects())), b"another")
