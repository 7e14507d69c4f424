"""Nothing that others wrote makes a reader crash: a small corpus in each run, a fuzzer for longer in `make soak`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchors import fetch
from fuzz.targets import TARGETS

CORPUS = Path(__file__).parents[1] / "data" / "fuzz"
SECONDS = int(os.environ.get("COMMONPLACE_FUZZ_SECONDS", "60"))
"""How long the fuzzer works on each target."""


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_and_every_shortened_and_bent_file_of_it_are_read(target: str) -> None:
    files = sorted((CORPUS / target).iterdir())
    assert files
    for file in files:
        data = file.read_bytes()
        for end in {*range(0, len(data), 1 + len(data) // 20), len(data)}:
            TARGETS[target](data[:end])
            TARGETS[target](data[:end] + b"\xff" + data[end + 1 :])


@pytest.mark.parametrize("target", TARGETS)
def test_any_bytes_are_read(target: str) -> None:
    @given(st.binary(max_size=200))
    def check(data: bytes) -> None:
        TARGETS[target](data)

    check()


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("target", TARGETS)
def test_a_fuzzer_finds_nothing(target: str, tmp_path: Path) -> None:
    if not fetch.has_fuzzer():
        pytest.skip("no fuzzer in the cache: make anchors")
    program = Path(__file__).with_name("fuzz_program.py")
    ran = subprocess.run(
        [str(fetch.fuzzer()), str(program), target, str(tmp_path), str(CORPUS / target), str(SECONDS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stderr=subprocess.PIPE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-5000:].decode(errors="replace")
