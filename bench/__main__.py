"""`make bench`: run everything, print it, and write `bench/results/ledger.md`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bench import ledger, measure

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Measure and write the table."""
    tables = ledger.run_all()
    text = f"# The ledger, measured\n\n{measure.machine()}; {datetime.now(UTC):%Y-%m-%d}. Written by `make bench`.\n"
    for table in tables:
        text += f"\n## {table.title}\n\n| {' | '.join(table.header)} |\n|{'---|' * len(table.header)}\n"
        text += "".join(f"| {' | '.join(row)} |\n" for row in table.rows)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "ledger.md").write_text(text, "utf-8")
    print(f"\nwritten: {RESULTS / 'ledger.md'}")


if __name__ == "__main__":
    main()
