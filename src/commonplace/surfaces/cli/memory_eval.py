"""`commonplace memory eval`: scores how well a model reads sessions, so that a model can be chosen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import click

from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command import call

if TYPE_CHECKING:
    from commonplace.learning.estimate import Forecast

_SHOWN = 10
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


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
@click.option(
    "--corpus", type=_FOLDER, metavar="DIR", help="Real sessions instead of cases: DIR/homes, messages.jsonl."
)
@click.option("--labels", type=_FILE, metavar="FILE", help="The labels of the messages of --corpus, as JSON lines.")
@click.option("--commands", type=_FILE, metavar="FILE", help="Commands that are worth a line, as JSON lines.")
@click.option("--consolidation", is_flag=True, help="Score the memory of each case: merged, and gone over by --model.")
@click.option("--limit", type=click.IntRange(1), help="Read at most so many cases, or sessions of --corpus.")
@click.option("--yes", is_flag=True, help="Do not ask before a model reads much.")
@output.json_option
def command(
    model: str,
    sets: tuple[str, ...],
    corpus: Path | None,
    labels: Path | None,
    commands: Path | None,
    consolidation: bool,
    limit: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Let a model read labelled sessions, and score what it makes of them.

    The labels say what must be learned, what may be, and what may appear nowhere. One set, `near`, is installed
    with the program; more stand in bench/gold/ of the repository. The embedded reader is scored the same way, so the
    numbers can be compared.

    With --corpus and --labels, real sessions are learned from in a home of their own, and the memory is scored:
    which entries rest on what a label calls lasting, and which of what must be there is. With --consolidation, the
    memory of each case is scored twice: as the program merges it, and after --model went over it.
    """
    if (corpus is None) != (labels is None) or (commands is not None and corpus is None):
        raise click.UsageError("--corpus and --labels belong together; --commands is for them.")
    if corpus is not None and (sets or consolidation):
        raise click.UsageError("--corpus takes neither --set nor --consolidation.")
    consent = None if yes else ask
    if corpus is not None and labels is not None:
        from commonplace.app.evaluation import CorpusFiles

        place = CorpusFiles(corpus, labels, commands)
        found = call(lambda memory: memory.evaluate_corpus(model, place, limit=limit, consent=consent))
        show = _show_corpus
    elif consolidation:
        found = call(lambda memory: memory.evaluate_consolidation(model, sets=sets, limit=limit))
        show = _show_consolidation
    else:
        found = call(lambda memory: memory.evaluate(model, sets=sets, limit=limit, consent=consent))
        show = _show
    if as_json:
        output.print_json(found)
    else:
        show(found)


def _show_corpus(found: dict[str, Any]) -> None:
    told = found["told"]
    output.say(f"{found['extractor']} on {found['sessions']} sessions of {found['corpus']}")
    output.say(f"  precision   {found['precision']:.1%} of {found['entries']} entries")
    output.say(f"  told        {told['precision']:.1%} of {told['entries']} entries that an agent is told")
    output.say(f"  recall      {found['recall']:.1%} ({found['found']} of {found['musts']} that must be there)")
    output.columns([(f"  {why}", str(count)) for why, count in found["noise"].items()], ("  noise", "entries"))
    _show_failed(found)
    _show_cost(found)


def _show_consolidation(found: dict[str, Any]) -> None:
    output.say(f"The memories of {found['cases']} cases ({', '.join(found['sets'])})")
    rows: list[tuple[str, ...]] = []
    for name in ("merge", "curator"):
        if name in found:
            one = found[name]
            asked, kinds = one["cost"], one["kinds"]
            shares = ", ".join(f"{kind} {share:.0%}" for kind, share in kinds.items())
            cost = f"{asked['requests']:,} requests, {asked['tokens']:,} tokens" if asked["requests"] else "nothing"
            row = (f"{one['score']:.1f}", f"{one['precision']:.1%}", shares, cost, f"{one['seconds']:,} s")
            rows.append((f"  {name}", *row))
    output.columns(rows, ("  by", "score", "precision", "met", "cost", "time"))
    if "curator" not in found:
        output.say("  --model names who is to go over the memory")
    for each in found["warnings"][:_SHOWN]:
        output.say(f"  {output.one_line(each, 160)}")


def _show(found: dict[str, Any]) -> None:
    output.say(f"{found['extractor']} on {found['cases']} cases ({', '.join(found['sets'])})")
    output.say(f"  recall      {found['recall']:.1%} of what must be learned")
    output.say(f"  precision   {found['precision']:.1%} of what was learned")
    output.say(f"  outcomes    {found['outcomes']:.1%} told right")
    output.say(f"  leaks       {found['leaks']} texts that may appear nowhere")
    output.say(f"  noise       {found['noise']} cases that teach nothing and gave something")
    output.columns([(f"  {kind}", f"{share:.1%}") for kind, share in found["kinds"].items()], ("  kind", "recall"))
    _show_failed(found)
    _show_cost(found)


def _show_failed(found: dict[str, Any]) -> None:
    for each in found["failed"][:_SHOWN]:
        output.say(f"  failed      {each['thread_id']}: {output.one_line(each['reason'], 100)}")
    if len(found["failed"]) > _SHOWN:
        output.say(f"  … {len(found['failed']) - _SHOWN} more failed; --json tells them")


def _show_cost(found: dict[str, Any]) -> None:
    cost = found["cost"]
    asked = f"{cost['requests']:,} requests, {cost['tokens']:,} tokens" if cost["requests"] else "nothing"
    output.say(f"  cost        {asked}")
    output.say(f"  time        {found['seconds']:,} s")
