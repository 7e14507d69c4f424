"""`commonplace memory note`, `forget`, `pin`, `reset` and `migrate`: a person changes the memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commonplace.errors import BadInput
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command import call

if TYPE_CHECKING:
    from commonplace.memory.edits.forget import Forgot

_SHOWN = 20


@click.command()
@click.argument("text")
@click.option("--project", metavar="P", help="For this project: an identity, its last part, or a folder.")
@click.option("--global", "everywhere", is_flag=True, help="For every project.")
@click.option("--change", metavar="ID|TEXT", help="It takes the place of this entry.")
@click.option("--forget", is_flag=True, help="Leave this out from now on; `memory forget` also removes it everywhere.")
@output.json_option
def note(text: str, project: str | None, everywhere: bool, change: str | None, forget: bool, as_json: bool) -> None:
    """Write down something to remember, to change or to leave out.

    It is for the project of the current folder unless said otherwise, and counts at once (with a
    model as the consolidator, from the next `learn` or `memory run`).
    """
    from commonplace.memory.edits.edits import NoteRequest

    told = NoteRequest(text=text, project=project, everywhere=everywhere, change=change, forget=forget)
    path = call(lambda memory: memory.note(told))
    if as_json:
        output.print_json({"path": str(path)})
    else:
        output.say(f"Noted in {path}.")


@click.command()
@click.argument("text", metavar="ID|TEXT")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@output.json_option
def forget(text: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove something from memory for good; it is not learned again.

    In a terminal it shows what would go and asks. A text that means several entries removes none of them. Session files
    keep what was said. `memory note` brings it back.
    """
    if not (dry_run or yes) and sys.stdin.isatty():
        _show_forgotten(call(lambda memory: memory.forget(text, dry_run=True)), would=True)
        click.confirm("Forget this?", abort=True, err=True)
    done = call(lambda memory: memory.forget(text, dry_run=dry_run))
    if as_json:
        output.print_json({"removed": done.removed, "files": done.files})
    else:
        _show_forgotten(done, would=dry_run)


def _show_forgotten(done: Forgot, *, would: bool) -> None:
    what = "would go" if would else "forgotten"
    output.say(f"{', '.join(done.removed) or 'no entry'} {what}; {len(done.files)} file(s) change or go:")
    for entry in done.entries:
        output.say(f"  {entry.id}  {output.one_line(entry.text, 120)}")
    for path in done.files[:_SHOWN]:
        output.say(f"  {path}")
    if len(done.files) > _SHOWN:
        output.say(f"  … and {len(done.files) - _SHOWN} more (--json lists them)")
    if done.others:
        output.say("These say something like it, and stay:")
        for other in done.others[:5]:
            output.say(f"  {other.id}  {output.one_line(other.text, 120)}")


@click.command()
@click.argument("entry", metavar="ID")
@click.option("--unpin", is_flag=True, help="Let it age again.")
@output.json_option
def pin(entry: str, unpin: bool, as_json: bool) -> None:
    """Keep an entry: it never ages out."""
    done = call(lambda memory: memory.pin(entry, pinned=not unpin))
    if as_json:
        output.print_json(done)
    else:
        output.say(f"{done['id']} is {'pinned' if done['pinned'] else 'no longer pinned'}.")


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@output.json_option
def reset(yes: bool, as_json: bool) -> None:
    """Forget everything that was learned, and begin anew.

    Sessions, thread modes, and decisions about what to forget and keep stay; notes go.
    """
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("A reset removes everything that was learned, notes too.", hint="Confirm it with --yes.")
        click.confirm("Remove everything that was learned, notes too?", abort=True, err=True)
    done = call(lambda memory: memory.reset())
    if as_json:
        output.print_json(done)
    else:
        output.say(
            f"{done['removed']} entries and {done['files']} files are gone. `commonplace memory run` learns anew."
        )


@click.command()
@click.argument("folder", metavar="P", type=click.Path(path_type=Path))
@output.json_option
def migrate(folder: Path, as_json: bool) -> None:
    """Take over a memory of Codex (either format), of an older version, or a folder of notes; it stays as it is.

    What is no statement, such as a skill or an index, is kept beside the memory and listed.
    """
    done = call(lambda memory: memory.migrate(folder))
    if as_json:
        output.print_json(done)
    else:
        output.say(f"{done.notes} note(s) and {done.inputs} session(s) taken over from {done.path}.")
        output.say(f"{done.skipped} left out: known already, or nothing that may be kept.")
        for one in done.kept:
            output.say(f"  {one.path}: {one.reason}; {'kept as ' + one.file if one.file else 'it stays where it is'}")
        output.say("They count from the next `commonplace memory run`.")


COMMANDS = (note, forget, pin, reset, migrate)
