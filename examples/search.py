"""Search sessions: ranked, with the answer that each question got, and the place in the ledger that it stands at.

    python examples/search.py

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
        async with commonplace.open(environment={**os.environ, "COMMONPLACE_HOME": folder}) as book:
            await book.sessions.import_("transcript", [TRANSCRIPT])
            hits: list[commonplace.Hit] = await book.search("which port does the database use", limit=1)
            for hit in hits:
                print(f"{hit.role}: {hit.text}")
                if isinstance(hit.reply, str):
                    print(f"answer: {hit.reply}")
                (link,) = await book.why(hit)
                print(f"turn {link.turn} of its ledger")
            exact = await book.search.exact_sessions(commonplace.Query("websocket"))
            print(f"{len(exact)} message says websocket")


anyio.run(main)
