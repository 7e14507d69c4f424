"""A disk that is full or slow: what could not be written is told, nothing is lost, the next run goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faulty_home import FaultyHome, Taught

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]
NewHome = Callable[..., FaultyHome]
SIZE = 6 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of six mebibytes."""
    place = tmp_path / "small"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "none", str(place)]
    done = subprocess.run(mounting, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def leave(place: Path, size: int) -> Path:
    """Fill a file system but for so many bytes; return the file that does it."""
    ballast = place / "ballast"
    about = os.statvfs(place)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(about.f_bavail * about.f_frsize - size, 4096))
    return ballast


@pytest.mark.parametrize(
    "kilobytes", [0, 8, 24, 48, 80, 120, 160, 200, 240, 280, 320, 360, 400, 460, 520, 600, 700, 800]
)
@pytest.mark.parametrize("database_address", ["sqlite", "postgres"], indirect=True)
def test_a_disk_that_is_full_when_so_much_was_written(
    small_disk: Path, ten: Taught, database_address: str, kilobytes: int
) -> None:
    home = FaultyHome(small_disk, database_address, ten)
    ballast = leave(small_disk, kilobytes << 10)
    code, said = home.run()
    ballast.unlink()

    assert code in (0, 1), said
    assert "Traceback" not in said
    home.finish()
    home.check()


@pytest.mark.parametrize("share", range(3))
def test_a_disk_that_is_full_at_any_flush(new_home: NewHome, share: int) -> None:
    for number in range(share + 1, 1000, 3):
        home = new_home()
        code, said = home.run(faults={"at": {"point": "disk", "when": "before", "number": number, "does": "full"}})
        assert code in (0, 1), said
        assert "Traceback" not in said
        is_met = "No space left" in said
        home.finish()
        home.check()
        home.remove()
        if not is_met and number > 30:
            return


def test_a_slow_disk_costs_time_only(new_home: NewHome) -> None:
    home = new_home()
    code, said = home.run(faults={"slow": 0.03})

    assert code == 0, said
    home.check()
