"""`commonplace memory prompt` and `audit`: the memory section of a prompt, and the problems of the memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command import call

if TYPE_CHECKING:
    from commonplace.memory.audit import Audit, Finding

_TOOLS: Final = ("list", "read", "search", "find")
_SHOWN: Final = 20
_KINDS: Final = {
    "duplicates": ("say the same twice", "`commonplace memory forget ID` drops one of the two"),
    "stale": ("name something that is gone", "`commonplace memory note --change`, or `commonplace memory forget ID`"),
    "unused": ("were never used", "`commonplace memory pin ID` keeps one, `commonplace memory forget ID` drops it"),
    "secrets": ("are secrets", "take it out of the file, then `commonplace memory run`; revoke it where it was issued"),
    "unsourced": ("rest on nothing", "`commonplace memory why ID`; a line by hand becomes a note at the next `learn`"),
    "loops": ("were learned from memory itself", "`commonplace memory forget ID`, or remove the file"),
}
"""What each kind of finding means, and what to do about it."""


@click.command()
@click.option(
    "-C", "folder", metavar="DIR", type=click.Path(path_type=Path), help="Where the agent works. [default: .]"
)
@click.option("--project", metavar="P", help="This project instead: an identity, its last part, or a folder.")
@click.option("--budget", metavar="TOKENS", type=click.IntRange(0), help="How long it may be. [default: a setting]")
@click.option("--tools", "has_tools", is_flag=True, help="Speak of the memory tools, because the agent has them.")
@click.option("--citations", is_flag=True, help="Ask for citations, because the agent takes them out of its answers.")
@output.json_option
def prompt(
    folder: Path | None, project: str | None, budget: int | None, has_tools: bool, citations: bool, as_json: bool
) -> None:
    """Print the memory section that an agent gets in this folder.

    Nothing is printed when nothing is remembered. What is told is counted as injected.
    """
    tools = _TOOLS if has_tools else ()
    made = call(
        lambda memory: memory.prompt(folder=folder, project=project, budget=budget, tools=tools, cites=citations)
    )
    if as_json:
        output.print_json(made)
    elif made.text:
        output.say(made.text)


@click.command()
@output.json_option
def audit(as_json: bool) -> None:
    """Look for what is wrong with the memory; nothing is changed."""
    found = call(lambda memory: memory.audit())
    if as_json:
        output.print_json(found)
    else:
        _show(found)


def _show(report: Audit) -> None:
    kinds = {name: getattr(report, name) for name in _KINDS}
    if not any(kinds.values()):
        output.say("Nothing is wrong with the memory.")
    for name, findings in kinds.items():
        if not findings:
            continue
        meaning, hint = _KINDS[name]
        output.say(f"{name}: {len(findings)} {meaning}")
        rows = [(_place(each), _finding_text(each)) for each in findings[:_SHOWN]]
        output.columns([(f"  {place}", told) for place, told in rows], ("  what", "why"))
        if len(findings) > _SHOWN:
            output.say(f"  … {len(findings) - _SHOWN} more with --json")
        output.say(f"  → {hint}\n")


def _place(finding: Finding) -> str:
    if finding.id is not None:
        return finding.id
    return f"{finding.file}:{finding.line}" if finding.line else finding.file or ""


def _finding_text(finding: Finding) -> str:
    return f"{finding.problem}: {finding.text}" if finding.text else finding.problem


COMMANDS = (prompt, audit)
