"""`commonplace demo`: a minute with sample sessions, in a home that is thrown away afterwards.

Every figure that it prints is measured as it runs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from importlib import resources
from pathlib import Path

import anyio
import click

from commonplace.rollout.folders import make_private
from commonplace.runtime import book as books
from commonplace.runtime.sessions import Sessions
from commonplace.surfaces.cli import views
from commonplace.surfaces.cli.output import human_bytes, say

FILLER_BYTES = 100_000_000
"""How large the demo makes one of its sessions."""


@click.command("demo")
@click.option("--keep", type=click.Path(path_type=Path), help="Use this new folder as the home, and keep it.")
def command(keep: Path | None) -> None:
    """See what works, on sample sessions in a throw-away home."""
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"{keep} is not empty.")
    home = keep or Path(tempfile.mkdtemp(prefix="commonplace-demo-"))
    try:
        anyio.run(_tour, home)
        if keep is not None:
            say(f"\nThe home is kept: COMMONPLACE_HOME={keep} commonplace sessions list")
    finally:
        if keep is None:
            shutil.rmtree(home, ignore_errors=True)


async def _tour(home: Path) -> None:
    _copy_samples(home)
    environment = {**os.environ, "COMMONPLACE_HOME": str(home)}
    async with books.open(environment=environment) as book:
        sessions = book.sessions
        await _look(sessions)
        await _resume_large(sessions, home)
        await _pull_the_plug(sessions)
        await _fork(sessions)
    say("\nOn your own sessions:  commonplace sessions list --home ~/.codex")


def _copy_samples(home: Path) -> None:
    for sample in resources.files("commonplace.samples").iterdir():
        if sample.name.endswith(".jsonl"):
            year, month, day = sample.name.removeprefix("rollout-")[:10].split("-")
            folder = home / "sessions" / year / month / day
            make_private(folder)
            (folder / sample.name).write_bytes(sample.read_bytes())
            (folder / sample.name).chmod(0o600)


def _title(text: str) -> None:
    say(f"\n── {text} ".ljust(78, "─"))


async def _look(sessions: Sessions) -> None:
    _title("1. Three sessions, as files that you can read")
    views.threads(await sessions.list())
    _title("2. What one of them was about: whose words, what failed, where it was compacted")
    page = await sessions.list()
    views.thread(await sessions.show(page.threads[1].thread_id))


async def _resume_large(sessions: Sessions, home: Path) -> None:
    _title("3. Size does not matter: the same session, grown to 100 MB")
    page = await sessions.list()
    source = Path(page.threads[1].path)
    lines = source.read_bytes().splitlines(keepends=True)
    checkpoint = next(place for place, line in enumerate(lines) if b'"type":"compacted"' in line)
    large = source.with_name(source.name.replace("14-02-00", "14-02-01"))
    output = next(line for line in lines if b"function_call_output" in line)
    with large.open("wb") as file:
        file.writelines(lines[:checkpoint])
        filler = output * (FILLER_BYTES // 50 // len(output))
        for _ in range(50):
            file.write(filler)
        file.writelines(lines[checkpoint:])
    begun = time.perf_counter()
    found = await sessions.context(str(large))
    elapsed = time.perf_counter() - begun
    size = large.stat().st_size
    large.unlink()
    say(
        f"What the model would see next: {len(found.items)} items, found in {elapsed * 1000:.0f} ms "
        f"by reading {human_bytes(found.receipt.bytes_read)} of {human_bytes(size)}."
    )


async def _pull_the_plug(sessions: Sessions) -> None:
    _title("4. Pull the plug in the middle of a line: nothing before it is lost, and it is said")
    page = await sessions.list()
    path = Path(page.threads[0].path)
    data = path.read_bytes()
    path.write_bytes(data[:-40])
    views.verified(await sessions.verify(str(path)))
    await sessions.rollback(page.threads[0].thread_id, 1)
    say("The thread goes on after it (here: its last turn is taken back), and the torn line stays as it was:")
    views.context(await sessions.context(page.threads[0].thread_id))


async def _fork(sessions: Sessions) -> None:
    _title("5. Forks refer to their past instead of copying it")
    page = await sessions.list()
    parent = next(thread for thread in page.threads if thread.turns and thread.turns > 2)
    fork = await sessions.fork(parent.thread_id, at="1")
    size = Path(fork.path).stat().st_size
    say(f"{fork.thread_id} is a fork after turn 1 of {parent.thread_id}: a file of {human_bytes(size)}.")
    views.context(await sessions.context(fork.thread_id))
