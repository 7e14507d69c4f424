"""`commonplace setup`: tells the agents of this machine about the memory, learns, and says what happens from now on."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import anyio
import click

from commonplace import config
from commonplace.clients import setup
from commonplace.clients.setup import AgentPlan, SetupOptions
from commonplace.errors import BadInput
from commonplace.surfaces.cli import output

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.learning.run import LearningReport
    from commonplace.memory.listing import Listed


@click.command("setup")
@click.option("--undo", is_flag=True, help="Put the agents' files back as they were.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--no-learn", is_flag=True, help="Do not learn now; it happens with the next session.")
@click.option("--no-permissions", is_flag=True, help="Claude Code still asks before it calls the reading tools.")
@output.json_option
def command(undo: bool, yes: bool, dry_run: bool, no_learn: bool, no_permissions: bool, as_json: bool) -> int:
    """Tell your agents about the memory; --undo takes it back.

    Finds Codex, Claude Code, OpenCode, Gemini CLI and Copilot CLI on this machine, shows what would change in which of
    their files, asks, changes it, and learns from the sessions that are there. From then on each new session is told
    what holds in its project, and learning goes on by itself.
    """
    settings = config.load()
    options = SetupOptions(prompt_hits=settings.memory.prompt_hits, is_allowed=not no_permissions)
    plans = setup.plan_undo(os.environ, settings.home) if undo else setup.plan(os.environ, options)
    if not as_json:
        _show(plans, is_undo=undo)
    if not dry_run:
        _consent(plans, yes=yes)
        setup.undo(plans, settings.home) if undo else setup.apply(plans, os.environ, settings.home)
    learned = None if undo or dry_run or no_learn else _learn(settings.home, as_json=as_json)
    if no_learn and not (undo or dry_run):
        _keep_sections()
    if as_json:
        output.print_json({"agents": [planned.row for planned in plans], "learned": learned})
    else:
        _tell(plans, is_undo=undo, is_dry=dry_run)
    for planned in plans:
        if planned.problem is not None:
            output.warn(f"{setup.NAMES[planned.agent]}: {planned.problem}")
    return 1 if any(planned.state == "failed" for planned in plans) else 0


def _show(plans: list[AgentPlan], *, is_undo: bool) -> None:
    for planned in plans:
        name = setup.NAMES[planned.agent]
        match planned.state:
            case "absent":
                output.say(f"{name}: not on this machine")
            case "plugin":
                output.say(f"{name}: the Commonplace plugin is installed there")
            case "unchanged":
                output.say(f"{name}: {'nothing to undo' if is_undo else 'set up already'}")
            case "failed":
                output.say(f"{name}: left as it is")
            case _:
                output.say(f"{name}:")
                for change in planned.row.changes:
                    output.say(change.diff.rstrip("\n"))
    output.say()


def _consent(plans: list[AgentPlan], *, yes: bool) -> None:
    wanted = [setup.NAMES[planned.agent] for planned in plans if planned.state == "planned"]
    if not wanted or yes:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"This changes files of {', '.join(wanted)}.", hint="Confirm it with --yes.")
    click.confirm("Make these changes?", abort=True, err=True)


def _learn(home: Path, *, as_json: bool) -> LearningReport | None:
    """Learn from what is there, and keep ready what the first session in each folder is told."""
    from commonplace.app import book as books
    from commonplace.app import ready_sections
    from commonplace.learning.learn import LearningPlan
    from commonplace.surfaces.cli import learn, memory_eval

    line = learn.ProgressLine()

    async def inside() -> tuple[LearningReport, list[Listed]]:
        async with books.open(warn=output.warn) as book:
            report = await book.memory.learn(LearningPlan(use_processes=True), line, memory_eval.ask)
            await ready_sections.keep_sections(book.memory_store)
            return report, await book.memory.entries()

    try:
        report, entries = anyio.run(inside)
    except BadInput as nothing:
        output.warn(nothing.sentence())
        return None
    finally:
        line.end()
    if not as_json:
        learn.show(report, entries, home)
        output.say()
    return report


def _keep_sections() -> None:
    from commonplace.app import ready_sections

    ready_sections.prepare(os.environ)


def _tell(plans: list[AgentPlan], *, is_undo: bool, is_dry: bool) -> None:
    done = [setup.NAMES[planned.agent] for planned in plans if planned.state in ("done", "undone")]
    if is_undo:
        output.say(f"{', '.join(done)}: as before. The memory stays; nothing tells it any more." if done else "Done.")
        return
    if is_dry:
        output.say("Nothing was changed (--dry-run).")
        return
    told = {planned.agent for planned in plans if planned.state in ("done", "unchanged", "plugin")}
    if not told:
        output.say("No agent was changed. Install one of them, then run `commonplace setup` again.")
        return
    if "codex" in told:
        output.say("Codex asks once whether you trust the hook: start `codex` in a terminal and accept it.")
        output.say("Until then, the server's instructions carry the best lessons of the project.")
    output.say("From now on each new session is told what holds in its project, and you see one line about it.")
    output.say(
        "Learning starts by itself. How it stands: commonplace doctor. To take it back: commonplace setup --undo."
    )
