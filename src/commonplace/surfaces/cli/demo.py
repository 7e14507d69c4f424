"""`commonplace demo`: the first minute with Commonplace, on sample sessions in a throw-away home.

Fourteen sessions of one made-up developer are written as Codex and Claude Code would have, learned from as `learn`
does, and looked at: what is known, why, what changed, and what did not get in.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import textwrap
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import anyio
import click
from rich.console import Console
from rich.text import Text

from commonplace import package_files
from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.clients import registration
from commonplace.learning.evaluate import cases, files
from commonplace.learning.learn import LearningPlan
from commonplace.memory.entries import GLOBAL
from commonplace.memory.listing import Listed
from commonplace.surfaces.cli import learn_report, output

SAMPLE = "learn/sessions.json"
_QUESTION = "which port does the test database use"
"""What is in the sessions and may not be in the memory."""


@click.command("demo")
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Make the home and the samples in this new folder, and keep them."
)
def command(keep: Path | None) -> None:
    """Show what Commonplace does, on sample sessions in a throw-away home."""
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"{keep} is not empty.")
    folder = keep or Path(tempfile.mkdtemp(prefix="commonplace-demo-"))
    try:
        anyio.run(_tour, folder)
        if keep is not None:
            output.say(f"\nThe home is kept: COMMONPLACE_HOME={keep / 'home'} commonplace memory list")
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


async def _tour(folder: Path) -> None:
    screen = learn_report.console()
    environment = {**os.environ, "COMMONPLACE_HOME": str(folder / "home"), "COMMONPLACE_DATABASE": "sqlite"}
    environment.pop("COMMONPLACE_MEMORY_ROOT", None)
    async with books.open(environment=environment) as book:
        person, count = _write(folder, book.settings.now())
        _title(screen, "1", f"{count} sessions of Codex and Claude Code")
        told = textwrap.fill(person, screen.width - 2, initial_indent="  ", subsequent_indent="  ")
        screen.print(Text(told, style="dim"))
        begun = time.perf_counter()
        places = tuple(place for place in (folder / "codex", folder / "claude") if place.is_dir())
        report = await book.memory.learn(LearningPlan(paths=places))
        elapsed = time.perf_counter() - begun
        _title(screen, "2", "commonplace learn")
        learn_report.read(report)
        shown = await book.memory.entries()
        learn_report.memory(shown, shown=4)
        screen.print(Text(f"\n{len(shown)} entries in {elapsed:.1f} s, no model, no network.", style="bold"))
        await _why(screen, book, shown)
        await _history(screen, book)
        await _search(screen, book)
        await _prompt(screen, book, shown)
        _safety(screen, folder)
        _files(screen, book)
    _title(screen, "→", f"In your own agents:  {_program()} setup")


def _program() -> str:
    """Return how the person starts this program here: by its name, if the shell finds this one by that name."""
    ours = registration.command()
    found = shutil.which("commonplace")
    return "commonplace" if found and Path(found).resolve() == Path(ours[0]).resolve() else shlex.join(ours)


def _write(folder: Path, now: datetime) -> tuple[str, int]:
    """Write the sample sessions as the agents would have; return whose they are, and how many."""
    text = package_files.text(f"samples/{SAMPLE}")
    person, case = cases.sample("demo", text)
    files.write(case, folder, now)
    return person, len(case.sessions)


def _title(screen: Console, number: str, text: str) -> None:
    screen.print(Text.assemble("\n", (f" {number} ", "bold reverse"), (f" {text}", "bold")))


async def _why(screen: Console, book: Book, entries: list[Listed]) -> None:
    """Show the exact words that the best-supported entry rests on."""
    best = max(entries, key=lambda entry: (entry.kind == "preference", entry.support, entry.scope == GLOBAL))
    found = await book.memory.why(best.id)
    _title(screen, "3", f"commonplace memory why {best.id}")
    screen.print(Text(f"  {output.one_line(found.entry.text, screen.width - 4)}", style="magenta"))
    for link in found.chain[:3]:
        where = f"turn {link.turn}, bytes {link.byte_start}–{link.byte_end}"
        path = Path(link.path or "").name
        screen.print(Text(f'    "{output.one_line(link.quote, screen.width - 10)}"'))
        screen.print(Text(f"      {where} of {output.safe(path)}", style="dim"))


async def _history(screen: Console, book: Book) -> None:
    """Show what was reversed: the newest holds, the old one is history."""
    from commonplace.memory.edits import history

    gone = [change for change in history.read(book.home) if change.cause.startswith("superseded")]
    if not gone:
        return
    _title(screen, "4", "What changed its mind: commonplace memory history")
    known = {each.id: each.text for each in await book.memory.entries()}
    for change in gone[:3]:
        now = known.get(change.cause.rpartition(" ")[2], "")
        screen.print(Text(f"  was  {output.one_line(change.before or '', screen.width - 8)}", style="dim"))
        screen.print(Text(f"  now  {output.one_line(now, screen.width - 8)}"))


async def _search(screen: Console, book: Book) -> None:
    """Ask about something that was said weeks ago, in other words."""
    _title(screen, "5", f'commonplace sessions search "{_QUESTION}"')
    for hit in (await book.search(_QUESTION, limit=4))[:4]:
        if hit.kind == "session":
            screen.print(Text(f"  › {output.one_line(hit.text, screen.width - 6)}", style="magenta"))
            if isinstance(hit.reply, str):
                screen.print(Text(f"  · {output.one_line(hit.reply, screen.width - 6)}"))
            where = f"turn {hit.turn} of {hit.thread_id}, {(hit.time or '')[:10]}, {hit.project}"
            screen.print(Text(f"    {where}", style="dim"))
            return


async def _prompt(screen: Console, book: Book, entries: list[Listed]) -> None:
    """Count what an agent is told in each project: its own and what is for all, nothing of the others."""
    _title(screen, "6", "What an agent is told there: commonplace memory prompt, commonplace mcp install")
    for scope in sorted({entry.project for entry in entries if entry.project}):
        told = await book.memory.prompt(project=scope, count=False)
        named = Counter(entry.project for entry in entries if entry.id in told.included)
        own, everywhere = named.pop(scope, 0), named.pop(None, 0)
        name = scope.rpartition("/")[2]
        screen.print(f"  {name:14} {own:2} of its own, {everywhere} for all, {named.total()} of other projects")


def _safety(screen: Console, folder: Path) -> None:
    """Show what did not get in, by looking for it in every file of the memory."""
    memory = "\n".join(
        path.read_text("utf-8", "replace")
        for path in sorted((folder / "home/memories").rglob("*"))
        if path.is_file() and ".git" not in path.parts
    )
    ledgers = "\n".join(
        path.read_text("utf-8", "replace")
        for place in ("codex", "claude")
        for path in sorted((folder / place).rglob("*.jsonl"))
    )
    _title(screen, "7", "What did not get in")
    for what, text in (
        ("a token that was typed", "ghp_"),
        ("a key in an output", "AKIA"),
        ("an order in a web page", "IGNORE"),
    ):
        seen, kept = ledgers.count(text), memory.count(text)
        screen.print(f"  {what:28} in the sessions: {seen}   in the memory: {kept}")


def _files(screen: Console, book: Book) -> None:
    """Show the files, which are the memory."""
    _title(screen, "8", "It is all text files, which Codex can read too")
    root = book.home / "memories"
    for name in ("MEMORY.md", "memory_summary.md"):
        size = output.human_bytes((root / name).stat().st_size)
        screen.print(f"  {name:24} {size}")
    for skill in sorted(root.glob("skills/*/SKILL.md")):
        screen.print(f"  {skill.relative_to(root)!s:24} steps that worked in two sessions")
    count = len(list((root / "rollout_summaries").glob("*.md")))
    screen.print(f"  rollout_summaries/       {count} files, one per session that taught something")
