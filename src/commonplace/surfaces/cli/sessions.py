"""`commonplace sessions …`: parses arguments, calls `Sessions` and prints the result."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import click

from commonplace.app import book as books
from commonplace.sessions.sessions import Sessions
from commonplace.state.thread_pages import ThreadPage
from commonplace.surfaces.cli import compact, output, search, views
from commonplace.surfaces.cli.command_group import CommandGroup
from commonplace.surfaces.cli.conversation import ConversationView
from commonplace.surfaces.cli.import_options import path_option, source_option
from commonplace.surfaces.cli.times import HELP as TIMES
from commonplace.surfaces.cli.times import since_seconds

T = TypeVar("T")

home_option = click.option(
    "--home",
    type=click.Path(path_type=Path),
    help="Another home, such as ~/.codex; it is only read.",
)
thread_argument = click.argument("thread")


def call(action: Callable[[Sessions], Awaitable[T]]) -> T:
    """Open the book, do one thing with its sessions, close it."""

    async def inside() -> T:
        async with books.open(warn=output.warn) as book:
            return await action(book.sessions)

    return anyio.run(inside)


def done(result: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    """Print what a command changed."""
    if as_json:
        output.print_json(result)
    else:
        output.say(sentence.format(**result))


@click.group("sessions", cls=CommandGroup)
def command() -> None:
    """List, show, search, fork, import and verify sessions.

    THREAD is a thread id, the beginning of one, a name, or the path of a session file.
    """


command.add_command(search.sessions)
command.add_command(compact.command)


@command.command("list")
@home_option
@click.option("--cwd", help="Only threads that started in this folder.")
@click.option(
    "--source",
    help="Only threads from this source (cli, exec, vscode, …; sub-agents are left out otherwise).",
)
@click.option("--limit", type=click.IntRange(1, 10_000), default=25, show_default=True, help="How many.")
@click.option("--cursor", help="Where an earlier page ended (its next_cursor).")
@click.option("--archived", is_flag=True, help="The archived threads instead.")
@click.option("--since", help=f"Only threads that went on after this: {TIMES}.")
@click.option("--reverse", is_flag=True, help="Oldest first.")
@output.json_option
def list_(
    home: Path | None,
    cwd: str | None,
    source: str | None,
    limit: int,
    cursor: str | None,
    archived: bool,
    since: str | None,
    reverse: bool,
    as_json: bool,
) -> None:
    """List threads, newest first."""
    progress = output.Progress("indexing sessions")

    async def inside() -> ThreadPage:
        async with books.open(warn=output.warn) as book:
            return await book.sessions.list(
                home,
                limit=limit,
                cursor=cursor,
                cwd=cwd,
                source=source,
                archived=archived,
                since_s=since_seconds(since, book.settings.now()),
                reverse=reverse,
                progress=progress,
            )

    page = anyio.run(inside)
    progress.end()
    if as_json:
        output.print_json({"threads": page.threads, "next_cursor": page.next_cursor})
    else:
        is_chosen = archived or any(option is not None for option in (cwd, source, cursor, since))
        views.threads(page, is_other_home=home is not None, is_chosen=is_chosen)


@command.command("import")
@source_option
@path_option
@output.json_option
def import_(source: str | None, paths: tuple[Path, ...], as_json: bool) -> None:
    """Bring in the sessions of other agents; their files are only read.

    Codex sessions are referred to where they are, all others are converted into your home. Importing again takes in
    what is new.
    """
    progress = output.Progress("importing sessions")
    report = call(lambda sessions: sessions.import_(source, paths, progress=progress))
    progress.end()
    if as_json:
        output.print_json(report)
    else:
        views.imported(report)


@command.command()
@thread_argument
@home_option
@click.option("--turn", type=click.IntRange(1), metavar="N", help="Only this turn.")
@click.option("--full", is_flag=True, help="Everything: each call with its output, long messages, injected texts.")
@click.option("--items", "with_items", is_flag=True, help="With --json: also every item of the record.")
@output.json_option
def show(thread: str, home: Path | None, turn: int | None, full: bool, with_items: bool, as_json: bool) -> None:
    """Show a thread as a conversation: turns, answers, and the calls between them folded into one line.

    In a terminal, what is longer than the screen opens in your pager.
    """
    if as_json and (turn is not None or full):
        raise click.UsageError("--turn and --full do not go with --json; --items adds every item.")
    if with_items and not as_json:
        raise click.UsageError("--items goes with --json; --full shows everything as text.")
    shown = call(lambda sessions: sessions.show(thread, home, with_items=with_items or not as_json))
    if as_json:
        output.print_json(shown)
    else:
        output.page(list(ConversationView(shown, turn=turn, full=full).lines()))


@command.command()
@thread_argument
@home_option
@output.json_option
def context(thread: str, home: Path | None, as_json: bool) -> None:
    """Print exactly the items that the next request would carry."""
    found = call(lambda sessions: sessions.context(thread, home))
    if as_json:
        output.print_json(found)
    else:
        views.context(found)


@command.command()
@thread_argument
@home_option
@click.option("--copy", is_flag=True, help="Copy everything into the new file, so that it stands alone (for Codex).")
@click.option("--at", metavar="TURN", help="Fork after this turn: a number (1 is the first) or a turn id.")
@output.json_option
def fork(thread: str, home: Path | None, copy: bool, at: str | None, as_json: bool) -> None:
    """Start a thread of your own from another's past; the other is not changed."""
    made = call(lambda sessions: sessions.fork(thread, home, copy=copy, at=at))
    result = {"thread_id": made.thread_id, "path": made.path, "forked_from": made.forked_from}
    done(result, "Forked {forked_from}: the new thread is {thread_id}\n{path}", as_json=as_json)


@command.command()
@thread_argument
@home_option
@click.option("--turns", type=click.IntRange(1), required=True, help="How many turns to take back.")
@output.json_option
def rollback(thread: str, home: Path | None, turns: int, as_json: bool) -> None:
    """Take back the last turns of a thread; the record keeps them."""
    result = call(lambda sessions: sessions.rollback(thread, turns, home))
    done(result, "Took back {rolled_back} turn(s) of {thread_id}.", as_json=as_json)


@command.command()
@thread_argument
@click.option("--redo", is_flag=True, help="Take the last undo back.")
@click.option("--dry-run", is_flag=True, help="Show what would change and change nothing.")
@output.json_option
def undo(thread: str, redo: bool, dry_run: bool, as_json: bool) -> None:
    """Put the files back as they were before the last turn of a thread."""
    result = call(lambda sessions: sessions.undo(thread, redo=redo, dry_run=dry_run))
    if as_json:
        output.print_json(result)
    else:
        views.undone(result, dry_run=dry_run)


@command.command()
@thread_argument
@home_option
@output.json_option
def archive(thread: str, home: Path | None, as_json: bool) -> None:
    """Move a thread to the archive."""
    result = call(lambda sessions: sessions.archive(thread, home))
    done(result, "Archived {thread_id}.", as_json=as_json)


@command.command()
@thread_argument
@home_option
@output.json_option
def unarchive(thread: str, home: Path | None, as_json: bool) -> None:
    """Move a thread back out of the archive."""
    result = call(lambda sessions: sessions.unarchive(thread, home))
    done(result, "{thread_id} is back.", as_json=as_json)


@command.command()
@thread_argument
@click.argument("name")
@home_option
@output.json_option
def rename(thread: str, name: str, home: Path | None, as_json: bool) -> None:
    """Give a thread a name (an empty one takes it away)."""
    result = call(lambda sessions: sessions.rename(thread, name, home))
    done(
        result,
        "{thread_id} is now called {name}." if result["name"] else "{thread_id} has no name.",
        as_json=as_json,
    )


@command.command()
@thread_argument
@home_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@output.json_option
def delete(thread: str, home: Path | None, yes: bool, as_json: bool) -> None:
    """Remove a thread, its name, and payloads that nothing else refers to.

    In a terminal it shows which thread that is, and asks. The file of a thread that is referred to where it is stays;
    the thread is no longer listed or learned from.
    """
    if not yes and sys.stdin.isatty():
        shown = call(lambda sessions: sessions.show(thread, home))
        first = output.one_line(next(iter(shown.user_texts), "nothing was said"), output.terminal_width(80) - 4)
        output.say(f"{shown.thread_id}  {shown.cwd}\n  {first}\n  {shown.path}")
        click.confirm("Delete this thread?", abort=True, err=True)
    result = call(lambda sessions: sessions.delete(thread, home))
    kept = "Forgot {thread_id}; its file belongs to another program and stays: {kept}"
    done(result, kept if "kept" in result else "Deleted {thread_id}.", as_json=as_json)


@command.command()
@thread_argument
@home_option
@output.json_option
def verify(thread: str, home: Path | None, as_json: bool) -> int:
    """Check every line and every spilled payload; exit 1 when something is wrong."""
    found = call(lambda sessions: sessions.verify(thread, home))
    if as_json:
        output.print_json(found)
    else:
        views.verified(found)
    return 0 if found.ok else 1


@command.command()
@home_option
@output.json_option
def reindex(home: Path | None, as_json: bool) -> None:
    """Build the index again, from the files alone."""
    progress = output.Progress("indexing sessions")
    result = call(lambda sessions: sessions.reindex(home, progress=progress))
    progress.end()
    counts = {
        "files": result.files,
        "threads": result.threads,
        "bytes": result.bytes,
        "skipped": result.skipped,
    }
    done(
        counts,
        "{threads} threads in {files} files, {bytes} bytes; {skipped} files hold no session.",
        as_json=as_json,
    )
