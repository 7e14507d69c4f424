"""`commonplace sessions search` and `memory search`: parses arguments, calls `Finder` and prints the hits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
import msgspec

from commonplace.app import book as books
from commonplace.errors import BadInput, CommonplaceError
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command import project_names
from commonplace.surfaces.cli.times import HELP as TIMES
from commonplace.surfaces.cli.times import since_seconds

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.memory.recall.tools import Reading
    from commonplace.search.hits import Hit
    from commonplace.search.query import Query

LIMIT = 10
_UNCUT_HIT = 244
"""How many columns a hit has where there is no terminal."""
limit_option = click.option("--limit", type=int, default=LIMIT, show_default=True, help="How many at most.")
project_option = click.option("--project", metavar="P", help="Only this project: an identity, its last part, a folder.")
since_option = click.option("--since", help=f"Only what was said after this: {TIMES}.")


class _BatchQuery(msgspec.Struct):
    """One line of `--batch`."""

    query: str
    limit: int = LIMIT
    project: str | None = None


_asked = msgspec.json.Decoder(_BatchQuery)


@click.command("search")
@click.argument("query", required=False)
@limit_option
@project_option
@since_option
@click.option("--in", "thread", metavar="THREAD", help="Only this thread: an id, a name, or any session file.")
@click.option("--exact", is_flag=True, help="Word for word, in everything: calls and tool output too; newest first.")
@click.option("--ignore-case", is_flag=True, help="With --exact: upper and lower case are the same.")
@click.option(
    "--assistant",
    type=click.FloatRange(0, 1),
    help="What the model's messages count for beside the person's.  [default: 0.3]",
)
@click.option("--batch", is_flag=True, help='Read queries from stdin, one JSON object {"query", …} per line.')
@output.json_option
def sessions(
    query: str | None,
    limit: int,
    project: str | None,
    since: str | None,
    thread: str | None,
    exact: bool,
    ignore_case: bool,
    assistant: float | None,
    batch: bool,
    as_json: bool,
) -> int:
    """Search sessions: messages, ranked by how well they answer, with their replies."""
    if batch == (query is not None):
        raise click.UsageError(
            "Give a QUERY, or --batch and queries on stdin." if not batch else "--batch has no QUERY."
        )
    if ignore_case and not exact:
        raise click.UsageError("--ignore-case goes with --exact; ranked search never looks at case.")
    if batch and (thread or exact):
        raise click.UsageError("--batch goes with neither --in nor --exact.")

    async def inside() -> list[Hit] | int:
        from commonplace.search.query import Query
        from commonplace.search.within import NamedThread

        async with books.open(warn=output.warn) as book:
            since_s = since_seconds(since, book.settings.now())
            if batch:
                return await _batch(book, project, since_s, assistant)
            asked = Query(query or "", limit, since_s=since_s, assistant=assistant)
            asked = await _in_project(book, asked, None if thread else project)
            if thread is not None:
                return await book.search.in_thread(NamedThread(thread), asked, exact=exact, ignore_case=ignore_case)
            return await _search(book, asked, exact=exact, ignore_case=ignore_case)

    found = anyio.run(inside)
    if isinstance(found, int):
        return found
    if as_json:
        output.print_json({"hits": found})
    else:
        _show_sessions(found)
    return 0


async def _search(book: Book, query: Query, *, exact: bool, ignore_case: bool) -> list[Hit]:
    progress = output.Progress("reading what is new")
    query.check()
    if exact:
        hits = await book.search.exact_sessions(query, ignore_case=ignore_case, progress=progress)
        progress.end()
        return hits
    await book.search.refresh(progress, memory=False)
    progress.end()
    return await book.search.sessions(query)


async def _in_project(book: Book, query: Query, project: str | None) -> Query:
    """Return a query of one project, or of all with those near this folder first."""
    from commonplace.projects import lookup
    from commonplace.projects.identity import identify

    scope = await lookup.named_scope(book.state, project, ()) if project is not None else None
    near = await anyio.to_thread.run_sync(identify, Path.cwd()) if scope is None else None
    return msgspec.structs.replace(query, scope=scope, near=near)


async def _batch(book: Book, project: str | None, since_s: int | None, assistant: float | None) -> int:
    """Answer each line of stdin by a line; return how the command ends."""
    from commonplace.projects import lookup
    from commonplace.search.query import Query

    await book.search.refresh(memory=False)
    scopes: dict[str, str] = {}
    failed = False
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        answer: Any
        try:
            asked = _asked.decode(line)
            name = asked.project if asked.project is not None else project
            if name is not None and name not in scopes:
                scopes[name] = await lookup.named_scope(book.state, name, ())
            scope = scopes[name] if name is not None else None
            answer = {"hits": await book.search.sessions(Query(asked.query, asked.limit, scope, since_s, assistant))}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            wrong = BadInput(f"A line of the batch is no query: {error}.", hint='Use {"query": "…"}, one per line.')
            answer, failed = _error(wrong), True
        except CommonplaceError as error:
            answer, failed = _error(error), True
        output.print_json(answer)
    return int(failed)


def _error(error: CommonplaceError) -> dict[str, Any]:
    output.warn(error.sentence())
    return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}


@click.command("search")
@click.argument("query")
@limit_option
@project_option
@since_option
@click.option("--exact", is_flag=True, help="Word for word, in every file of the memory.")
@click.option("--ignore-case", is_flag=True, help="With --exact: upper and lower case are the same.")
@output.json_option
def memory(
    query: str, limit: int, project: str | None, since: str | None, exact: bool, ignore_case: bool, as_json: bool
) -> None:
    """Search the memory: entries, candidates, and lines of the summaries of single sessions."""
    if ignore_case and not exact:
        raise click.UsageError("--ignore-case goes with --exact; ranked search never looks at case.")
    if exact and since:
        raise click.UsageError("--since does not go with --exact; lines of files tell no time.")

    async def inside() -> list[Hit]:
        from commonplace.search.query import Query

        async with books.open(warn=output.warn) as book:
            asked = Query(query, limit, since_s=since_seconds(since, book.settings.now()))
            asked = await _in_project(book, asked, project)
            asked.check()
            if exact:
                return await book.search.exact_memory(asked, ignore_case=ignore_case)
            await book.search.refresh(sessions=False)
            found = await book.search.memory(asked)
            await book.search.count(found)
            return found

    found = anyio.run(inside)
    if as_json:
        output.print_json({"hits": found})
    else:
        _show(found)


@click.command("read")
@click.argument("path")
@click.option("--from", "first", type=click.IntRange(1), default=1, show_default=True, help="The first line.")
@click.option("--lines", type=click.IntRange(1), help="How many lines.")
@project_option
@output.json_option
def read(path: str, first: int, lines: int | None, project: str | None, as_json: bool) -> None:
    """Print a file of the memory, by its path below the memory folder, such as MEMORY.md.

    With --project, lines about other projects are blank, as its agents see them.
    """

    async def inside() -> Reading:
        async with books.open(warn=output.warn) as book:
            return await book.memory.read(path, first=first, lines=lines, project=project)

    found = anyio.run(inside)
    if as_json:
        output.print_json(found)
    else:
        output.say(found.content.removesuffix("\n"))


def _show_sessions(hits: list[Hit]) -> None:
    """Print hits as people read them, those of one session together, best session first."""
    if not hits:
        output.say("Nothing was found.")
    names = project_names(hit.project for hit in hits)
    sessions: dict[str, list[Hit]] = {}
    for hit in hits:
        sessions.setdefault(str(hit.thread_id), []).append(hit)
    for number, (thread_id, found) in enumerate(sessions.items()):
        if number:
            output.say()
        output.say(f"{(found[0].time or '')[:10]}  {_project(found[0], names)}")
        for hit in found:
            _show_exchange(hit, f"turn {hit.turn}")
        output.say(f"  commonplace sessions show {thread_id} --turn {found[0].turn}")


def _project(hit: Hit, names: dict[str, str]) -> str:
    return names.get(hit.project or "", hit.project or "every project")


def _show_exchange(hit: Hit, where: str) -> None:
    width = output.terminal_width(_UNCUT_HIT) - 4
    output.say(f"  {where}")
    mark = {"user": "›", "assistant": "·"}.get(hit.role or "", " ")
    output.say(f"  {mark} {output.one_line(hit.text, width)}")
    if isinstance(hit.reply, str):
        output.say(f"  · {output.one_line(hit.reply, width)}")


def _show(hits: list[Hit]) -> None:
    """Print hits as people read them: where, when, what, and what was answered."""
    if not hits:
        output.say("Nothing was found.")
    names = project_names(hit.project for hit in hits)
    for hit in hits:
        when = (hit.time or "")[:10]
        where = hit.entry_id if isinstance(hit.entry_id, str) else None
        where = f"{where} (candidate)" if where and hit.candidate is True else where
        where = f"{where} ({', '.join(hit.people)})" if where and hit.people else where
        where = where or (f"{hit.path}:{hit.line}" if isinstance(hit.path, str) else f"{hit.thread_id} turn {hit.turn}")
        output.say(f"{when}  {_project(hit, names)}  {where}")
        mark = {"user": "›", "assistant": "·"}.get(hit.role or "", " ")
        output.say(f"  {mark} {output.one_line(hit.text, 240)}")
        if isinstance(hit.reply, str):
            output.say(f"  · {output.one_line(hit.reply, 240)}")
