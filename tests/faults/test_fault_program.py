"""What `make faults` makes faults with fits the program: one run with harmless faults is a part of `make test`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from faulty_home import FaultyHome


def test_a_worker_elsewhere_whose_clock_is_wrong_does_its_work(
    new_home: Callable[..., FaultyHome], tmp_path: Path
) -> None:
    clock = tmp_path / "clock"
    clock.write_text("60")
    home = new_home()

    code, said = home.run(faults={"host": "elsewhere", "clock": str(clock)})

    assert code == 0, said
    home.check()
