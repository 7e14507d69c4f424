"""`commonplace projects …`: parses arguments, calls `Projects` and prints the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from commonplace.app import book as books
from commonplace.app.projects import Projects
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command_group import CommandGroup

if TYPE_CHECKING:
    from commonplace.projects.listing import ListedProject

_SHOWN_FOLDERS = 5


def call(action: Callable[[Projects], Awaitable[list[ListedProject]]]) -> list[ListedProject]:
    """Open the book, do one thing with its projects, close it."""

    async def inside() -> list[ListedProject]:
        async with books.open(warn=output.warn) as book:
            return await action(book.projects)

    return anyio.run(inside)


@click.group("projects", cls=CommandGroup)
def command() -> None:
    """List projects, and decide which folders belong together.

    Sessions tell which folders are one project: worktrees, clones, and folders that are gone. What only you know, you
    decide with `merge` and `split`; the newest decision counts.
    """


@command.command("list")
@click.option("--why", "with_why", is_flag=True, help="Also show why the folders of a project are one.")
@output.json_option
def list_(with_why: bool, as_json: bool) -> None:
    """Show the projects, their folders, and how many sessions and entries each has."""
    found = call(lambda projects: projects.list())
    _show(found, with_why=with_why, as_json=as_json)


@command.command()
@click.argument("kept", metavar="A")
@click.argument("other", metavar="B")
@output.json_option
def merge(kept: str, other: str, as_json: bool) -> None:
    """Make one project of two, under the name of the first.

    A and B are identities, their last parts, or folders. The memory follows at the next `learn` or `memory run`.
    """
    _show(call(lambda projects: projects.merge(kept, other)), with_why=False, as_json=as_json)


@command.command()
@click.argument("folder", metavar="PATH", type=click.Path(path_type=Path))
@output.json_option
def split(folder: Path, as_json: bool) -> None:
    """Make a folder a project of its own, with everything below it.

    The memory follows at the next `learn` or `memory run`.
    """
    _show(call(lambda projects: projects.split(folder)), with_why=False, as_json=as_json)


def _show(found: list[ListedProject], *, with_why: bool, as_json: bool) -> None:
    if as_json:
        output.print_json({"projects": found})
        return
    if not found:
        output.say("No project is known yet. `commonplace learn` reads your sessions.")
    for project in found:
        output.say(f"{project.name}  {project.sessions} sessions, {project.entries} entries  ({project.scope})")
        for folder in project.folders[:_SHOWN_FOLDERS]:
            output.say(f"  {folder}")
        if len(project.folders) > _SHOWN_FOLDERS:
            output.say(f"  … and {len(project.folders) - _SHOWN_FOLDERS} more (--json lists them)")
        for reason in project.why if with_why else ():
            output.say(f"  › {reason}")
