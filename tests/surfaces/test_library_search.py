"""The library's own search: one call over memory and sessions, and from a hit down to the ledger's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import commonplace
from commonplace.errors import BadInput

pytestmark = pytest.mark.anyio


async def test_a_hit_leads_to_the_words_in_the_ledger(tmp_path: Path) -> None:
    lines = [
        {
            "session": "s",
            "id": "1",
            "time": "2026-03-01T10:00:00Z",
            "role": "user",
            "text": "the websocket test is flaky",
        },
        {"session": "s", "id": "2", "time": "2026-03-01T10:01:00Z", "role": "assistant", "text": "It races."},
    ]
    source = tmp_path / "talk.jsonl"
    source.write_text("".join(json.dumps({**line, "cwd": "/home/someone/shop"}) + "\n" for line in lines))
    async with commonplace.open() as book:
        await book.sessions.import_("transcript", [source])
        found = await book.search("flaky websocket test", limit=5)
        assert found[0].text == "the websocket test is flaky"
        assert found[0].reply == "It races."
        assert (await book.search("flaky", project="shop"))[0].text == found[0].text
        (link,) = await book.why(found[0])
        assert link.path is not None
        assert link.byte_start is not None
        raw = Path(link.path).read_bytes()[link.byte_start : link.byte_end]
        assert json.loads(raw)["payload"]["content"][0]["text"] == link.quote == found[0].text
        with pytest.raises(BadInput):
            await book.search("  ")
        with pytest.raises(BadInput):
            await book.search("x", project="nowhere")
