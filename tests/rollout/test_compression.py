"""Making a compressed file plain again: whole or not at all, and never over a plain one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from recording import compress

from commonplace.errors import LedgerError
from commonplace.rollout.compression import materialise
from ledgers import Script, user


@pytest.fixture
def packed(home: Path) -> Path:
    path = compress(Script().item(*(user(os.urandom(100).hex()) for _ in range(300))).write_home(home))
    os.utime(path, (1_000_000, 2_000_000))
    path.chmod(0o600)
    return path


def test_the_plain_file_has_the_bytes_the_time_and_the_mode(packed: Path, tmp_path: Path) -> None:
    expected = Script().item(user("x")).write(tmp_path / "other")
    small = compress(expected)
    os.utime(small, (5, 7))
    plain = materialise(small)

    assert Script().item(user("x")).data() == plain.read_bytes()
    assert (7, small.name.removesuffix(".zst")) == (plain.stat().st_mtime, plain.name)
    assert [plain] == list(plain.parent.iterdir())


def test_a_plain_file_that_is_there_is_left_alone(packed: Path) -> None:
    plain = packed.with_suffix("")
    plain.write_bytes(b"newer")

    assert plain == materialise(packed)
    assert b"newer" == plain.read_bytes()
    assert packed.exists()


@pytest.mark.parametrize("damage", ["cut", "junk", "flip"])
def test_a_damaged_file_is_kept_and_nothing_is_left_beside_it(packed: Path, damage: str) -> None:
    data = packed.read_bytes()
    packed.write_bytes({"cut": data[:-100], "junk": b"junk" * 10, "flip": b"\0" + data[1:]}[damage])
    before = packed.read_bytes()
    with pytest.raises(LedgerError):
        materialise(packed)

    assert [packed] == list(packed.parent.iterdir())
    assert before == packed.read_bytes()


def test_a_full_disk_keeps_the_compressed_file(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="No space"):
            materialise(packed)

    assert [packed] == list(packed.parent.iterdir())
