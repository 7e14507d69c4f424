"""List sessions, and see what the next request of one would carry.

    python examples/list_sessions.py

It takes in a small transcript beside it, in a home that is thrown away. For your own sessions, leave `environment` out;
`import_()` without arguments looks where the agents on this machine keep theirs.
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
            report: commonplace.ImportReport = await book.sessions.import_("transcript", [TRANSCRIPT])
            print(f"{sum(source.imported for source in report.sources)} file taken in")
            page: commonplace.ThreadPage = await book.sessions.list(limit=10)
            for thread in page.threads:
                context = await book.sessions.context(thread.thread_id)
                print(f"{thread.updated_at:.10}  {len(context.items)} items  {thread.title}")
            try:
                await book.sessions.show("nothing-of-that-name")
            except commonplace.UnknownThread as error:
                print(f"{error.code}: {error.hint}")


anyio.run(main)
