"""`commonplace sessions compact`: parses arguments, calls `Sessions.compact` and prints the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from commonplace.app import book as books
from commonplace.surfaces.cli import output

if TYPE_CHECKING:
    from commonplace.sessions.compact import CompactionReport


@click.command("compact")
@click.argument("thread")
@click.option("--home", type=click.Path(path_type=Path), help="Another home, such as ~/.codex; with --dry-run only.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would come of it and write nothing; works on any session file."
)
@click.option(
    "--window", type=click.IntRange(1), help="Tokens that the model's context holds. [default: as the session says]"
)
@click.option(
    "--target", metavar="PCT", type=click.IntRange(1, 90), help="Share of the window to shrink to. [default: a setting]"
)
@click.option("--digest-tokens", type=click.IntRange(0, 64_000), help="Tokens of the digest. [default: a setting]")
@click.option("--model", metavar="M", help="The model that summarises. [default: none, the digest stands alone]")
@output.json_option
def command(
    thread: str,
    home: Path | None,
    dry_run: bool,
    window: int | None,
    target: int | None,
    digest_tokens: int | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Shrink what the next request of a thread would carry; its record keeps everything."""

    async def inside() -> CompactionReport:
        from commonplace.sessions.compact import CompactionRequest

        async with books.open(warn=output.warn) as book:
            request = CompactionRequest(window, target, digest_tokens, model)
            return await book.sessions.compact(thread, request, home, dry_run=dry_run)

    report = anyio.run(inside)
    if as_json:
        output.print_json(report)
    else:
        _show(report)


def _show(report: CompactionReport) -> None:
    if report.status == "unchanged":
        output.say(f"Nothing to do: {report.tokens_before} tokens are within the target.")
        if report.digest:
            output.say()
            output.say(report.digest)
        return
    output.say(f"{report.tokens_before} tokens became {report.tokens_after}, in {len(report.items)} items.")
    if report.score is not None:
        kept = report.score
        told = f"names likely to be needed: {kept.r_p:.0%} kept, {kept.r_d:.0%} with what was said of them"
        output.say(f"{told}; what was laid down: {kept.constraints:.0%}.")
    for text in report.texts():
        output.say()
        output.say(text)
