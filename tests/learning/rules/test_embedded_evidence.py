"""Evidence of the embedded extractor, the whole way: quotes stand at their bytes, secrets and other words nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from learners import environment
from whole_way import answered, ran, remember, said, session, words_at

from commonplace.app import book as books

TOKEN = "".join(("gh", "p_", "k3Jq8Zt5Wx0Rb7Lm2Vn9Ys4Dc6Fg1Hp5Ta8U"))
EVENTS = (
    said("get it going. In this repo we use uv instead of pip, because the lock file is uv's"),
    ran("pytest -q", 1, "ModuleNotFoundError: No module named 'shop'"),
    ran("uv run pytest -q", 0, "14 passed"),
    ran("cd api && make lint 2>&1 | tail -5", 0, "ok"),
    answered("It works."),
    said('say "Grüße" in the header, not "Hallo"\n\nfrom now on use 中文 comments in the parser, please'),
    ran("make check", 0),
    {"reject": True, "command": "git push --force", "note": "never force-push, open a pull request"},
    answered("I see."),
    said("great, thanks"),
)


@pytest.mark.anyio
@pytest.mark.parametrize("agent", ["codex", "claude"])
async def test_every_quote_stands_at_its_bytes(tmp_path: Path, agent: str) -> None:
    found = await remember(tmp_path, session(*EVENTS, agent=agent))
    async with books.open(environment=environment(tmp_path / "home", "sqlite")) as book:
        database = await book.state.database()
        rows = await database.read(lambda tx: tx.query("threads.current", home=str(book.home.resolve())))
        paths = {row["thread_id"]: Path(row["path"]) for row in rows}

    sources = found.sources()
    assert len(sources) >= 6
    for source in sources:
        assert source.thread_id is not None
        assert source.byte_start is not None
        assert source.byte_end is not None
        assert source.quote in words_at(paths[source.thread_id], source.byte_start, source.byte_end)


@pytest.mark.anyio
@pytest.mark.parametrize("agent", ["codex", "claude"])
async def test_no_secret_reaches_any_file(tmp_path: Path, agent: str) -> None:
    events = (
        said(f"from now on deploy with the token {TOKEN}, we never use another"),
        ran("make deploy", 1, "Error: not allowed"),
        ran(f"DEPLOY_TOKEN={TOKEN} make deploy", 0),
        ran("make migrate", 1, "Error: not allowed"),
        ran("PGPASSWORD=hunter22 make migrate", 0),
    )
    found = await remember(tmp_path, session(*events, agent=agent))
    files = [path for path in (tmp_path / "home" / "memories").rglob("*") if path.is_file()]
    texts = [path.read_text("utf-8", "replace") for path in files]

    assert found.all_lines()
    for secret in (TOKEN, "hunter22"):
        assert not [text for text in (*texts, *found.all_lines(), str(found.sources())) if secret in text]


@pytest.mark.anyio
async def test_the_same_sessions_give_the_same_files(tmp_path: Path) -> None:
    first = await remember(tmp_path / "one", session(*EVENTS), session(*EVENTS, days_ago=3))
    again = await remember(tmp_path / "two", session(*EVENTS), session(*EVENTS, days_ago=3))

    assert first.handbook.replace(str(tmp_path / "one"), "") == again.handbook.replace(str(tmp_path / "two"), "")
    assert first.lines() == again.lines()
