"""Learn from sessions, and print what an agent in a folder would be told. No model, no key, no network.

    python examples/memory_prompt.py

It reads a small transcript beside it, in a home that is thrown away.
"""

import os
import tempfile
from pathlib import Path

import anyio

import commonplace

TRANSCRIPT = Path(__file__).with_name("tea_shop.jsonl")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "COMMONPLACE_HOME": folder, "COMMONPLACE_NOW": "2026-11-05T09:00:00Z"}
        async with commonplace.open(environment=environment) as book:
            report = await book.memory.learn(commonplace.LearningPlan("transcript", (TRANSCRIPT,)))
            print(f"{report.extracted} session taught something; {report.consolidation.added} entries")
            for entry in await book.memory.entries():
                print(f"- {entry.scope}: {entry.text}")
            here: commonplace.Prompt = await book.memory.prompt(folder=Path("/srv/teapot"))
            elsewhere = await book.memory.prompt(folder=Path("/srv/other"))
            print(f"an agent in {here.scope} is told {len(here.included)} of them")
            print(f"an agent in {elsewhere.scope} is told {len(elsewhere.included)}")
            print("make check" in here.text, "make check" in elsewhere.text)


anyio.run(main)
