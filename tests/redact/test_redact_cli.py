"""`commonplace redact`: a filter between two pipes."""

from __future__ import annotations

import os
import random
import subprocess
import sys

from commonplace.redact import MARK
from redact import made

PROGRAM = [sys.executable, "-m", "commonplace", "redact"]


def test_text_passes_and_secrets_do_not() -> None:
    token = "ghp_" + made.make("<A36>", random.Random(1))
    text = f"before \xff é\n{token}\nno newline at the end".encode("latin-1")
    done = subprocess.run(PROGRAM, input=text, capture_output=True, check=True)

    assert text.replace(token.encode(), MARK.encode()) == done.stdout
    assert done.stderr == b""


def test_report_counts_kinds_on_stderr() -> None:
    token = "ghp_" + made.make("<A36>", random.Random(2))
    done = subprocess.run([*PROGRAM, "--report"], input=f"{token}\n".encode() * 3, capture_output=True, check=True)

    assert b"3  github_token" in done.stderr
    assert f"{MARK}\n".encode() * 3 == done.stdout


def test_a_line_comes_out_before_the_next_goes_in() -> None:
    password = made.make("<A14>", random.Random(3))
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as filter_:
        assert filter_.stdin is not None
        assert filter_.stdout is not None
        for line, expected in (
            (b"one\n", b"one\n"),
            (f"password={password}\n".encode(), f"password={MARK}\n".encode()),
        ):
            filter_.stdin.write(line)
            filter_.stdin.flush()
            assert filter_.stdout.readline() == expected
        filter_.stdin.close()

    assert filter_.returncode == 0


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(PROGRAM, input=b"x\n" * 2_000_000, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)

    assert b"Traceback" not in done.stderr
