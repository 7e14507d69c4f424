"""`sessions delete` removes payloads that nothing refers to, and no others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from command import Command

from ledgers import Script, user

OTHER = "0198c0de-0000-7000-8000-0000000000ff"
ROLLOUT = "0198c0df-0000-7000-8000-000000000001"


def store(home: Path, data: bytes) -> dict[str, Any]:
    """Put a blob into a home; return what a line says about it."""
    name = hashlib.sha256(data).hexdigest()
    (home / "blobs").mkdir(parents=True, exist_ok=True)
    (home / "blobs" / name).write_bytes(data)
    return {"pointer": "/content/0/text", "sha256": name, "bytes": len(data), "media_type": "text/plain"}


def names(home: Path) -> set[str]:
    return {path.name for path in (home / "blobs").iterdir()}


def reverted(home: Path, ref: dict[str, Any]) -> Script:
    """A thread of two files; only what the second took back refers to a blob."""
    script = Script(paginated=True).turn(user("one"))
    cut = len(script.data())
    script.item(user("big"), blob=[ref]).write_home(home)
    base = {"thread_id": script.thread_id, "end_byte_offset": cut, "end_ordinal_exclusive": 5}
    newer = Script(paginated=True, history_base=base).turn(user("instead"))
    name = f"rollout-2026-11-15T09-00-00-{script.thread_id}_{ROLLOUT}.jsonl"
    newer.write(home / "sessions" / "2026" / "11" / "15", name)
    return script


@pytest.mark.parametrize("archived", [False, True])
def test_a_payload_of_a_threads_old_file_outlives_another_thread(
    commonplace: Command, home: Path, *, archived: bool
) -> None:
    kept, gone = store(home, b"kept"), store(home, b"gone")
    old = reverted(home, kept)
    Script(OTHER).item(user("big"), blob=[gone]).write_home(home)
    if archived:
        commonplace.ok("sessions", "archive", old.thread_id)

    result = commonplace.ok("sessions", "delete", OTHER)

    assert result["blobs_removed"] == 1
    assert names(home) == {kept["sha256"]}


def from_the_future(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"legacy"', b'"sparse"'))


def without_its_head(path: Path) -> None:
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])


def cut_while_compressed(path: Path) -> None:
    data = zstandard.compress(path.read_bytes())
    path.with_name(f"{path.name}.zst").write_bytes(data[:-8])
    path.unlink()


@pytest.mark.parametrize("damage", [from_the_future, without_its_head, cut_while_compressed])
@pytest.mark.parametrize("archived", [False, True])
def test_a_file_that_cannot_be_read_keeps_its_payloads(
    commonplace: Command, home: Path, damage: Callable[[Path], None], *, archived: bool
) -> None:
    kept, gone = store(home, b"kept"), store(home, b"gone")
    script = Script().item(user("big"), blob=[kept])
    damage(script.write(home / "archived_sessions") if archived else script.write_home(home))
    Script(OTHER).item(user("big"), blob=[gone]).write_home(home)

    ran = commonplace("sessions", "delete", OTHER, "--json")

    assert ran.code == 0
    assert ran.json["blobs_removed"] == 0
    assert "No payloads were removed: 1 file(s) cannot be read" in ran.err
    assert names(home) == {kept["sha256"], gone["sha256"]}


def test_an_empty_file_refers_to_nothing(commonplace: Command, home: Path) -> None:
    Script(OTHER).item(user("big"), blob=[store(home, b"gone")]).write_home(home)
    (home / "sessions" / "rollout-2026-11-15T09-00-00-nothing.jsonl").touch()

    assert commonplace.ok("sessions", "delete", OTHER)["blobs_removed"] == 1
