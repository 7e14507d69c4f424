"""Kill a consolidation with a model before each of its steps, and look at what is left.

    python curation_crash.py HOME WORK EVERY

As `crash_program`, with a model that rewords what is new. Every try starts from the same home; whoever comes after the
one that was killed has a model that does the same.
"""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import crash_program
from curated import NOW, choice, edit, proposes, shown

from commonplace.app import book as books
from commonplace.learning.consolidate import phase2
from commonplace.learning.consolidate.curator import Curator
from commonplace.memory.workspace import layout, staging
from commonplace.models.base import Request
from commonplace.models.scripted import Answer, ScriptedModel
from commonplace.projects import assignment
from commonplace.state import jobs


def main() -> None:
    """Try every step."""
    template, work, every = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    crash_program.consolidate = by_model
    old = crash_program.state(template)
    reference = work / "reference"
    shutil.copytree(template, reference)
    assert crash_program.child(reference, None) == 0
    new = crash_program.state(reference)
    assert new != old
    assert b"in short: " in new["MEMORY.md"]
    tried = 0
    for step in range(0, 100_000, every):
        home = work / f"home{step}"
        shutil.copytree(template, home)
        status = crash_program.child(home, step)
        if status == 0:
            break
        assert status == -signal.SIGKILL, f"step {step}: {status}"
        staging.recover(home / layout.FOLDER)
        found = crash_program.state(home)
        assert found in (old, new), f"step {step}: neither the old nor the new state: {sorted(found)}"
        assert crash_program.child(home, None) == 0, f"step {step}: the next run failed"
        assert crash_program.state(home) == new, f"step {step}: the next run did not finish"
        assert not [path for path in home.iterdir() if path.name.startswith("memories.")], f"step {step}: left-overs"
        shutil.rmtree(home)
        tried += 1
    print(tried)


async def by_model(home: Path) -> None:
    """Run phase 2 with a model that rewords the first entry that it is shown."""
    environment = {"COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": NOW.isoformat(), "HOME": str(home)}

    def rewords(request: Request) -> Answer:
        name, text = next(iter(shown(request).items()))
        return proposes(edit("reword", name, text=f"in short: {text}"))

    async with books.open(environment=environment) as book:
        await (await book.state.index()).refresh(book.home)  # the home is a copy: its sessions are found again
        await assignment.settle(book.state)
        database = await book.state.database()
        maker = Curator(ScriptedModel(*[rewords] * 99), choice())
        phase = phase2.ConsolidationPhase(book.settings, database, maker, jobs.this_process())
        done_ = await phase2.run(phase)
    if done_.status not in ("succeeded", "unchanged"):
        raise RuntimeError(done_.status, done_.warnings)


if __name__ == "__main__":
    main()
