"""`commonplace memory eval`: scores how well a model reads sessions, so that a model can be chosen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import click

from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command import call

if TYPE_CHECKING:
    from commonplace.learning.estimate import Forecast

_SHOWN = 10


async def ask(forecast: Forecast) -> bool:
    """Ask whether a model may read so much; where nobody can be asked, it may not."""
    if not sys.stdin.isatty():
        return False
    login = " with your own login" if forecast.is_agent else ""
    question = (
        f"{forecast.model}{login} would read {forecast.sessions} session(s), about {forecast.tokens:,} tokens. Go on?"
    )
    return await anyio.to_thread.run_sync(lambda: click.confirm(question, err=True))


@click.command("eval")
@click.option(
    "--model",
    default="embedded",
    show_default=True,
    help="Who reads: `embedded`, `claude-code`, `codex` or `provider:model`.",
)
@click.option("--set", "sets", multiple=True, help="Which cases: `near`, or a file of cases. [default: near]")
@click.option("--limit", type=click.IntRange(1), help="Read at most so many cases.")
@click.option("--yes", is_flag=True, help="Do not ask before a model reads much.")
@output.json_option
def command(model: str, sets: tuple[str, ...], limit: int | None, yes: bool, as_json: bool) -> None:
    """Let a model read labelled sessions, and score what it makes of them.

    The labels say what must be learned, what may be, and what may appear nowhere. One set, `near`, is installed
    with the program; more stand in bench/gold/ of the repository. The embedded reader is scored the same way, so the
    numbers can be compared.
    """
    consent = None if yes else ask
    found = call(lambda memory: memory.evaluate(model, sets=sets, limit=limit, consent=consent))
    if as_json:
        output.print_json(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    cost = found["cost"]
    output.say(f"{found['extractor']} on {found['cases']} cases ({', '.join(found['sets'])})")
    output.say(f"  recall      {found['recall']:.1%} of what must be learned")
    output.say(f"  precision   {found['precision']:.1%} of what was learned")
    output.say(f"  outcomes    {found['outcomes']:.1%} told right")
    output.say(f"  leaks       {found['leaks']} texts that may appear nowhere")
    output.say(f"  noise       {found['noise']} cases that teach nothing and gave something")
    output.columns([(f"  {kind}", f"{share:.1%}") for kind, share in found["kinds"].items()], ("  kind", "recall"))
    for each in found["failed"][:_SHOWN]:
        output.say(f"  failed      {each['thread_id']}: {output.one_line(each['reason'], 100)}")
    if len(found["failed"]) > _SHOWN:
        output.say(f"  … {len(found['failed']) - _SHOWN} more failed; --json tells them")
    asked = f"{cost['requests']:,} requests, {cost['tokens']:,} tokens" if cost["requests"] else "nothing"
    output.say(f"  cost        {asked}")
    output.say(f"  time        {found['seconds']:,} s")
