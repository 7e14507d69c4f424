"""No file can make a reader run out of memory: readers of absurd files, each in a process with little of it."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

LIMIT = 1536 * 2**20
GOOD = b'{"timestamp":"2026-11-15T09:00:00.000Z","type":"event_msg","payload":{"type":"x"}}\n'

PROGRAM = """
import json, sys
from pathlib import Path
from commonplace.rollout import reader
read = getattr(reader, sys.argv[1])
kinds = [getattr(r, "reason", None) or [r.type, r.offset] for r in read(Path(sys.argv[2]))]
print(json.dumps(kinds[:10]))
"""


def read_with_little_memory(direction: str, path: Path, limit: int = LIMIT) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, direction, str(path)],
        check=False,
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert (0, b"") == (done.returncode, done.stderr)
    return json.loads(done.stdout)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_line_larger_than_memory_is_reported_and_its_neighbours_are_read(tmp_path: Path, direction: str) -> None:
    path = tmp_path / "sparse.jsonl"
    huge = 700 * 2**20
    with path.open("wb") as file:
        file.write(GOOD)
        file.seek(len(GOOD) + huge)
        file.write(b"\n" + GOOD)

    records = read_with_little_memory(direction, path, huge)

    lines = [["event_msg", 0], "too_long", ["event_msg", len(GOOD) + huge + 1]]
    assert (lines if direction == "forward" else lines[::-1]) == records


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_longest_line_that_is_loaded_fits_whatever_characters_it_holds(tmp_path: Path, direction: str) -> None:
    path = tmp_path / "long.jsonl"
    head, tail = '{"timestamp":"t","type":"x","payload":"🎉'.encode(), b'"}'
    path.write_bytes(head + b"a" * (128 * 2**20 - len(head) - len(tail)) + tail + b"\n")

    assert [["x", 0]] == read_with_little_memory(direction, path)


def test_a_small_compressed_file_that_unpacks_to_gigabytes_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.zst"
    with path.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as packer:
        packer.write(GOOD)
        for _ in range(1024):
            packer.write(b"\0" * 2**20)
        packer.write(b"\n" + GOOD)

    assert path.stat().st_size < 2**20
    assert [["event_msg", 0], "too_long", ["event_msg", len(GOOD) + 2**30 + 1]] == read_with_little_memory(
        "forward", path
    )
