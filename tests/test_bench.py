"""`python -m bench` says what it can measure, before it measures anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bench.__main__ import kept

ROOT = Path(__file__).parent.parent


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_help_lists_every_name_with_its_title() -> None:
    done = run("--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert "  session_start  The start of a session in Codex or Claude Code\n" in done.stdout


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sesion_start", "nothing is measured under the name 'sesion_start'. Did you mean session_start?"),
        ("unknown", "nothing is measured under the name 'unknown'. `python -m bench --help` lists the names."),
        ("--fast", "unrecognized arguments: --fast"),
    ],
)
def test_a_name_that_is_none_ends_with_what_to_do(name: str, says: str) -> None:
    done = run("ledger", name)

    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_section_about_real_sessions_that_was_not_measured_stays_as_it_was(tmp_path: Path) -> None:
    page = tmp_path / "learning.md"
    assert kept(page, []) == ""
    page.write_text(
        "# Learning\n\n## Gold\n\n| 1 |\n\n## Real sessions (by hand)\n\n| 2 |\n\n## More\n\n| 3 |\n", "utf-8"
    )

    assert kept(page, ["Gold", "More"]) == "\n## Real sessions (by hand)\n\n| 2 |\n"
    assert kept(page, ["Gold", "Real sessions (by hand)"]) == ""
