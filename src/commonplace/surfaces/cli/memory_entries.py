"""`commonplace memory list`, `why` and `history`: the entries, their sources, and their changes."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

from commonplace.memory.entries import KINDS
from commonplace.memory.listing import LIMIT
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command import call, project_names

if TYPE_CHECKING:
    from commonplace.memory.evidence import Link
    from commonplace.memory.listing import Listed
    from commonplace.memory.why import Why

_WIDTH = 140
_QUOTE = 100
_LEAST = 20
"""How many columns of an entry are shown in the narrowest terminal."""
_NOTHING = "Nothing is known here yet. `commonplace learn` reads your sessions."
_NOTHING_CHOSEN = "No entry is what the options ask for."
_NO_CANDIDATES = "There are no candidates here."


@click.command("list")
@click.option("--project", metavar="P", help="Only this project: an identity, its last part, or a folder.")
@click.option("--kind", type=click.Choice(KINDS), help="Only this kind.")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True, help="How many at most.")
@click.option("--cursor", metavar="C", help="Go on where an earlier list ended.")
@click.option("--candidates", is_flag=True, help="Only what waits for another session or for `memory review`.")
@click.option("--evidence", is_flag=True, help="With what each entry rests on: session, turn, bytes and words.")
@output.json_option
def list_(
    project: str | None,
    kind: str | None,
    limit: int,
    cursor: str | None,
    candidates: bool,
    evidence: bool,
    as_json: bool,
) -> None:
    """Show what was learned, the most useful first."""
    page = call(
        lambda memory: memory.list(
            project=project, kind=kind, limit=limit, cursor=cursor, candidates=candidates, evidence=evidence
        )
    )
    if as_json:
        output.print_json(page)
        return
    if not page.entries:
        is_chosen = any(option is not None for option in (project, kind, cursor))
        output.say(_NO_CANDIDATES if candidates else _NOTHING_CHOSEN if is_chosen else _NOTHING)
    names = project_names(entry.scope for entry in page.entries)
    for scope, found in groupby(sorted(page.entries, key=lambda each: each.project or ""), _title):
        output.say(names.get(scope, scope))
        for entry in found:
            output.say(f"  {_line(entry)}")
            for link in entry.chain if isinstance(entry.chain, list) else ():
                output.say(f"    › {_source(link)}: {output.one_line(link.quote, _QUOTE)}")
        output.say()
    if page.next_cursor:
        output.say(f"More: --cursor {page.next_cursor}")


def _source(link: Link) -> str:
    return f"note {link.path}" if link.thread_id is None else f"{link.thread_id} turn {link.turn}"


def _title(entry: Listed) -> str:
    return entry.project or "every project"


def _line(entry: Listed) -> str:
    """Return an entry on one line below its project, as wide as the terminal; in a pipe nothing is cut."""
    marks = [f"{entry.support} sessions"] if entry.support > 1 else []
    marks += ["pinned"] if entry.pinned else []
    marks += [", ".join(entry.people)] if entry.people else []
    before, behind = f"{entry.id}  {entry.kind:<11} ", f"  ({', '.join(marks)})" if marks else ""
    room = output.terminal_width(output.UNCUT) - len(before) - len(behind) - 2
    return f"{before}{output.one_line(entry.text, max(_LEAST, room))}{behind}"


@click.command()
@click.argument("entry", metavar="ID|TEXT")
@output.json_option
def why(entry: str, as_json: bool) -> None:
    """Show what an entry or a candidate rests on: sessions, turns and the words."""
    found = call(lambda memory: memory.why(entry))
    if as_json:
        output.print_json({"entry": found.entry, "chain": found.chain})
    else:
        _show(found)


def _show(sources: Why) -> None:
    entry = sources.entry
    output.say(f"{entry.text}\n")
    state = " a candidate," if entry.candidate else ""
    taught = f", by {', '.join(entry.people)}" if entry.people else ""
    output.say(f"  {entry.id},{state} {entry.kind} for {_title(entry)}, known since {entry.first_seen[:10]}{taught}")
    for place, link in enumerate(sources.chain):
        output.say()
        if link.thread_id is None:
            output.say(f"  note {link.path}")
        else:
            output.say(f"  session {link.thread_id}, turn {link.turn}")
            where = f" on {link.host}" if isinstance(link.host, str) else ""
            output.say(f"  {link.path or 'its file is not known'}{where}, bytes {link.byte_start}-{link.byte_end}")
            output.say(f"  {link.summary_file or 'no summary'}")
        output.say(f"  › {output.one_line(link.quote, _WIDTH)}")
        if place in sources.missing:
            output.say("  (these words are no longer there)")
    if sources.others:
        output.say("\nPerhaps you meant:")
        for other in sources.others[:5]:
            output.say(f"  {_line(other)}")


@click.command()
@click.argument("entry", metavar="[ID]", required=False)
@output.json_option
def history(entry: str | None, as_json: bool) -> None:
    """Show how the memory changed, or one entry of it."""
    changes = call(lambda memory: memory.history(entry))
    if as_json:
        output.print_json({"changes": changes})
        return
    if not changes:
        output.say("Nothing changed yet.")
    for change in changes:
        when = change.time[:16].replace("T", " ")
        output.say(f"{when}  {change.entry_id}  {change.cause}")
        for mark, text in (("-", change.before), ("+", change.after)):
            if text is not None:
                output.say(f"                  {mark} {output.one_line(text, _WIDTH)}")


COMMANDS = (list_, why, history)
