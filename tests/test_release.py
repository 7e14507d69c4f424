"""A release: what must be so before it, what it builds, and an upgrade from an earlier version with its data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from release import make

from sources import ROOT

READY = "# Changelog\n\n## 1.2.0 (2026-11-19)\n\n### Added\n"
EARLIER = {"c3c8b4b": "state version 5", "68e9e54": "state version 6", "4a24bbd": "state version 8"}
"""Commits of earlier states of the program, whose data is taken over."""
SAMPLES = ROOT / "tests" / "data" / "codex_samples"


@pytest.mark.parametrize(
    ("changelog", "changed", "reason"),
    [
        (READY, "", None),
        (READY, " M README.md\n", "Commit these files first"),
        ("# Changelog\n\n## 1.2.0 (unreleased)\n", "", "begins with '1.2.0 (unreleased)'"),
        ("# Changelog\n\n## 1.1.0 (2026-11-01)\n", "", "begins with '1.1.0 (2026-11-01)'"),
        ("# Changelog\n", "", "needs '1.2.0 (YYYY-MM-DD)'"),
    ],
)
def test_a_release_is_refused_until_everything_is_said_and_committed(
    changelog: str, changed: str, reason: str | None
) -> None:
    if reason is None:
        make.check_ready("1.2.0", changelog, changed)
        return
    with pytest.raises(make.NotReady) as refused:
        make.check_ready("1.2.0", changelog, changed)
    assert reason in str(refused.value)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist of the tree."""
    wheel, sdist = make.build(tmp_path_factory.mktemp("dist"))
    return wheel, sdist


@pytest.mark.package
def test_the_sdist_makes_the_same_wheel_with_the_man_page_and_no_tests(built: tuple[Path, Path]) -> None:
    names = make.contents(built[0])  # `build` has compared it with the one from the sdist

    assert any(name.endswith("share/man/man1/commonplace.1") for name in names)
    assert "commonplace/py.typed" in names
    assert [] == [name for name in names if name.startswith(("tests/", "bench/"))]
    sums = make.write_sums(list(built))
    done = subprocess.run(["sha256sum", "--check", sums.name], cwd=sums.parent, capture_output=True, check=False)
    assert done.returncode == 0


def wheel_of(commit: str, folder: Path) -> Path:
    """Build the wheel of an earlier commit."""
    archive = subprocess.run(["git", "archive", commit, "src", "pyproject.toml", "README.md", "LICENSE"],
                             cwd=ROOT, capture_output=True, check=False)  # fmt: skip
    if archive.returncode:
        pytest.skip(f"commit {commit} is not in this clone")
    tree = folder / "tree"
    tree.mkdir()
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=tree, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[Path], Path]:
    """Installs a wheel over what is there, without a network; returns the command."""
    place = tmp_path / "venv"
    venv.create(place)
    (site,) = (place / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(str(Path(pytest.__file__).parent.parent), "utf-8")

    def install(wheel: Path) -> Path:
        pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet"]
        options = ["--no-deps", "--no-index", "--no-compile", "--force-reinstall"]
        subprocess.run([*pip, *options, str(wheel)], capture_output=True, check=True)
        return place / "bin" / "commonplace"

    return install


@pytest.mark.package
@pytest.mark.parametrize("commit", EARLIER, ids=EARLIER.get)
def test_an_upgrade_keeps_what_an_earlier_version_stored(
    commit: str, installed: Callable[[Path], Path], built: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "earlier"
    folder.mkdir()
    sessions = tmp_path / "codex" / "sessions" / "2026" / "11" / "10"
    sessions.mkdir(parents=True)
    for sample in SAMPLES.glob("*.jsonl"):
        shutil.copy2(sample, sessions)
    variables = {"HOME": str(tmp_path), "COMMONPLACE_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    variables["COMMONPLACE_NOW"] = "2026-11-15T12:00:00Z"

    def ask(command: Path, *words: str) -> Any:
        done = subprocess.run([command, *words, "--json"], env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return json.loads(done.stdout)

    command = installed(wheel_of(commit, folder))
    ask(command, "learn", "--path", str(tmp_path / "codex"))
    note = ask(command, "memory", "note", "the port of the test database is 5433")
    ask(command, "memory", "run")
    before = ask(command, "sessions", "list")["threads"]
    entries = ask(command, "memory", "list")["entries"]
    (said,) = [entry for entry in entries if "5433" in entry["text"]]
    ask(command, "memory", "pin", said["id"])

    command = installed(built[0])
    after = ask(command, "sessions", "list")["threads"]
    assert {each["thread_id"] for each in before} == {each["thread_id"] for each in after}
    assert ask(command, "doctor")["ok"]
    ask(command, "learn", "--path", str(tmp_path / "codex"))
    assert Path(note["path"]).is_file()
    (kept,) = [entry for entry in ask(command, "memory", "list")["entries"] if "5433" in entry["text"]]
    assert kept["pinned"]
    assert kept["sources"]
    found = ask(command, "sessions", "search", before[0]["preview"])["hits"]
    assert found
