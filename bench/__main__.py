"""`make bench`: run everything, print it, and write `bench/results/`. Names of results as arguments run only those."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench import (
    agent,
    app_server,
    consolidation,
    context,
    curation,
    exact,
    extraction,
    handshake,
    imports,
    learning,
    ledger,
    measure,
    peers,
    redact,
    report,
    retention,
    retrieval,
    session_start,
    state,
    throughput,
    web,
)

RESULTS = Path(__file__).parent / "results"
RUNS = {
    "ledger": ("The ledger", ledger.run_all),
    "state": ("The shared state", state.run_all),
    "throughput": ("Workers and queues of a team", throughput.run_all),
    "redact": ("Redaction", redact.run_all),
    "imports": ("Importing sessions", imports.run_all),
    "learning": ("Learning from sessions", learning.run_all),
    "memory": ("Making a memory", consolidation.run_all),
    "extraction": ("Reading sessions with a model", extraction.run_all),
    "curation": ("Going over a memory with a model", curation.run_all),
    "retention": ("What a digest keeps", retention.run_all),
    "retrieval": ("Ranked search", retrieval.run_all),
    "exact": ("Exact search", exact.run_all),
    "mcp": ("The memory server", handshake.run_all),
    "session_start": ("The start of a session in Codex or Claude Code", session_start.run_all),
    "web": ("The web page", web.run_all),
    "context": ("The context", context.run_all),
    "agent": ("The agent", agent.run_all),
    "app_server": ("The app server", app_server.run_all),
    "peers": ("Beside its peers", peers.run_all),
}


def parse(arguments: Sequence[str]) -> list[str]:
    """Return the names of the results that are wanted; ends the program with help, or with what is wrong (exit 2)."""
    width = max(map(len, RUNS))
    names = "\n".join(f"  {name:{width}}  {title}" for name, (title, _) in RUNS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure, print tables, and write bench/results/NAME.md.",
        epilog=f"names (all of them if none is given):\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    chosen: list[str] = parser.parse_args(arguments).names
    for name in chosen:
        if name not in RUNS:
            near = difflib.get_close_matches(name, RUNS, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            parser.error(
                f"nothing is measured under the name {name!r}.{hint} `python -m bench --help` lists the names."
            )
    return chosen or list(RUNS)


def main(chosen: list[str]) -> None:
    """Measure and write the tables."""
    for name in chosen:
        title, run_all = RUNS[name]
        tables = run_all()
        text = f"# {title}, measured\n\n{measure.machine()}; {datetime.now(UTC):%Y-%m-%d}. Written by `make bench`.\n"
        for table in tables:
            text += f"\n## {table.title}\n\n| {' | '.join(table.header)} |\n|{'---|' * len(table.header)}\n"
            text += "".join(f"| {' | '.join(row)} |\n" for row in table.rows)
        text += kept(RESULTS / f"{name}.md", [table.title for table in tables])
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.md").write_text(text, "utf-8")
        print(f"\nwritten: {RESULTS / name}.md")
    report.write()


def kept(page: Path, titles: Sequence[str]) -> str:
    """Return the sections of a page about real sessions that were not measured anew: not everybody has the sessions."""
    _, *sections = (page.read_text("utf-8") if page.exists() else "").split("\n## ")
    left = [each.rstrip("\n") for each in sections if each.partition("\n")[0] not in titles]
    return "".join(f"\n## {each}\n" for each in left if "real sessions" in each.partition("\n")[0].lower())


if __name__ == "__main__":
    main(parse(sys.argv[1:]))
