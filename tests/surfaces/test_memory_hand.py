"""`commonplace memory list`, `why`, `note`, `pin`, `history`, `reset`: what a person sees of memory and does to it."""

from __future__ import annotations

import json
import operator
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import taught_homes as taught
from agents import in_database, stamps
from command import Command

import processes
from commonplace.state import usage

FIELDS = {
    "id", "scope", "project", "kind", "text", "support", "sources", "pinned", "first_seen", "last_seen",
    "retrieved", "injected", "cited", "candidate",
}  # fmt: skip


def entries(commonplace: Command, *arguments: str) -> list[dict[str, Any]]:
    return list(commonplace.ok("memory", "list", *arguments)["entries"])


def one(commonplace: Command, text: str) -> dict[str, Any]:
    (found,) = [each for each in entries(commonplace) if text in each["text"]]
    return found


def test_a_list_tells_everything_of_each_entry(commonplace: Command, learned: Path) -> None:
    found = entries(commonplace)
    pnpm = one(commonplace, taught.PNPM)
    short = one(commonplace, taught.SHORT)

    assert all(set(each) == FIELDS for each in found)
    assert (pnpm["scope"], pnpm["project"], pnpm["kind"]) == ("github.com/acme/shop", "github.com/acme/shop", "rule")
    assert (short["scope"], short["project"]) == ("global", None)
    assert pnpm["sources"] == [taught.SHOP]
    assert (pnpm["support"], pnpm["pinned"], pnpm["cited"]) == (1, False, 0)
    assert pnpm["first_seen"] == pnpm["last_seen"] == "2026-11-15T09:00:00Z"


def test_a_list_is_narrowed_by_project_and_kind(commonplace: Command, learned: Path, tmp_path: Path) -> None:
    by_name = entries(commonplace, "--project", "shop")
    rules = entries(commonplace, "--kind", "rule")

    assert {each["project"] for each in by_name} == {"github.com/acme/shop"}
    assert by_name == entries(commonplace, "--project", "github.com/acme/shop")
    assert by_name == entries(commonplace, "--project", "/repo/shop")
    assert {each["kind"] for each in rules} == {"rule"}
    assert entries(commonplace, "--project", str(tmp_path)) == []
    assert "github.com/acme/shop" in commonplace("memory", "list", "--project", "nonsense").err
    assert commonplace("memory", "list", "--kind", "nonsense").code == 2


def test_pages_of_a_list_join_to_the_whole(commonplace: Command, learned: Path) -> None:
    whole = [each["id"] for each in entries(commonplace)]
    pages: list[str] = []
    cursor: list[str] = []
    while True:
        page = commonplace.ok("memory", "list", "--limit", 2, *cursor)
        pages += [each["id"] for each in page["entries"]]
        if page["next_cursor"] is None:
            break
        cursor = ["--cursor", page["next_cursor"]]

    assert whole == pages
    commonplace.refused("bad_input", "memory", "list", "--cursor", "nonsense")


def test_uses_are_counted_apart(commonplace: Command, learned: Path) -> None:
    chosen = one(commonplace, taught.PNPM)["id"]
    in_database(lambda tx: usage.record_entries(tx, "retrieved", [chosen, chosen], now=1))
    in_database(lambda tx: usage.record_entries(tx, "cited", [chosen], now=1))

    found = one(commonplace, taught.PNPM)

    assert (found["retrieved"], found["injected"], found["cited"]) == (2, 0, 1)


def test_a_list_without_rows_is_read_from_the_files(
    commonplace: Command, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_rows = entries(commonplace)
    monkeypatch.setenv("COMMONPLACE_DATABASE", "postgresql://nobody@127.0.0.1:1/nothing")

    ran = commonplace("memory", "list", "--json")

    assert ran.code == 0
    assert "reading the files instead" in ran.err
    by_id = operator.itemgetter("id")  # files do not tell how the person writes, which moves the rank
    assert sorted(ran.json["entries"], key=by_id) == sorted(with_rows, key=by_id)


def test_looking_at_nothing_leaves_no_trace(commonplace: Command, home: Path) -> None:
    assert commonplace.ok("memory", "list") == {"entries": [], "next_cursor": None}
    assert commonplace.ok("memory", "history") == {"changes": []}
    commonplace.refused("bad_input", "memory", "why", "anything")
    commonplace.refused("bad_input", "memory", "pin", "anything")
    commonplace.refused("bad_input", "memory", "history", "anything")

    assert not home.exists()


def test_why_shows_the_words_in_the_bytes_of_the_ledger(commonplace: Command, learned: Path) -> None:
    found = commonplace.ok("memory", "why", taught.PNPM)
    (link,) = found["chain"]
    line = Path(link["path"]).read_bytes()[link["byte_start"] : link["byte_end"]]

    assert found["entry"] == one(commonplace, taught.PNPM)
    assert (link["thread_id"], link["turn"], link["quote"]) == (taught.SHOP, 1, taught.PNPM)
    assert taught.PNPM in json.loads(line)["payload"]["content"][0]["text"]
    assert (learned / "memories" / link["summary_file"]).is_file()
    assert found == commonplace.ok("memory", "why", found["entry"]["id"][:5])


def test_every_link_of_every_chain_is_where_it_says(commonplace: Command, learned: Path) -> None:
    for entry in entries(commonplace):
        ran = commonplace("memory", "why", entry["id"])
        assert "no longer there" not in ran.out


def test_why_finds_an_entry_by_other_words_and_names_what_else_was_meant(commonplace: Command, learned: Path) -> None:
    near = commonplace.ok("memory", "why", "never push main unless asked first")
    ran = commonplace("memory", "why", "pnpm")

    assert taught.PUSH in near["entry"]["text"]
    assert "Perhaps you meant:" in ran.out
    commonplace.refused("bad_input", "memory", "why", "kubernetes helm charts")


def test_why_says_when_a_ledger_no_longer_holds_the_words(commonplace: Command, learned: Path) -> None:
    ledger = Path(commonplace.ok("memory", "why", taught.PNPM)["chain"][0]["path"])
    ledger.write_bytes(ledger.read_bytes().replace(b"Always use pnpm", b"Seldom use pnpm"))

    assert "no longer there" in commonplace("memory", "why", taught.PNPM).out


def test_a_note_is_a_file_and_counts_from_the_next_run(commonplace: Command, learned: Path) -> None:
    path = Path(commonplace.ok("memory", "note", "prefer tabs over spaces", "--global")["path"])
    commonplace.ok("memory", "run")
    found = one(commonplace, "prefer tabs over spaces")
    (link,) = commonplace.ok("memory", "why", "prefer tabs")["chain"]

    assert path.parent == learned / "memories" / "extensions" / "ad_hoc" / "notes"
    assert path.name == "2026-11-20T09-00-00-prefer-tabs-over-spaces.md"
    assert found["project"] is None
    assert found["sources"] == [f"extensions/ad_hoc/notes/{path.name}"]
    assert (link["summary_file"], link["thread_id"], link["path"]) == (None, None, str(path))
    assert link["quote"] == "prefer tabs over spaces"
    assert "prefer tabs over spaces" in (learned / "memories" / "MEMORY.md").read_text("utf-8")


def test_a_note_is_for_the_project_of_the_folder(
    commonplace: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run(
        ["git", "-C", str(repository), "remote", "add", "origin", "git@github.com:acme/tool.git"], check=True
    )
    monkeypatch.chdir(repository)
    here = Path(commonplace.ok("memory", "note", "run make before a commit")["path"])
    everywhere = Path(commonplace.ok("memory", "note", "be brief", "--global")["path"])
    monkeypatch.chdir(tmp_path)
    nowhere = Path(commonplace.ok("memory", "note", "be kind")["path"])

    assert "scope: project github.com/acme/tool" in here.read_text("utf-8")
    assert "scope:" not in everywhere.read_text("utf-8") + nowhere.read_text("utf-8")


def test_a_note_changes_an_entry(commonplace: Command, learned: Path) -> None:
    commonplace.ok("memory", "note", "use bun instead of npm here", "--change", one(commonplace, taught.PNPM)["id"])
    commonplace.ok("memory", "run")
    texts = [each["text"] for each in entries(commonplace, "--project", "shop")]

    assert any("use bun instead of npm" in text for text in texts)
    assert not any(taught.PNPM in text for text in texts)


def test_the_newer_of_two_notes_counts(commonplace: Command, learned: Path) -> None:
    commonplace.ok("memory", "note", "prefer tabs over spaces", "--global")
    commonplace.ok("memory", "note", "prefer tabs over spaces", "--global", "--forget")
    commonplace.ok("memory", "run")
    gone = [each for each in entries(commonplace) if "tabs" in each["text"]]
    commonplace.ok("memory", "note", "prefer tabs over spaces", "--global")
    commonplace.ok("memory", "run")

    assert gone == []
    assert one(commonplace, "prefer tabs over spaces")


@pytest.mark.parametrize(
    "text",
    [
        "see [the guide](https://example.com/guide) before a release",
        "**never** skip the hooks",
        "as in [Task 9] of skills/ship/SKILL.md",
        "ask at <https://example.com> first",
        'say "please" in every commit message',
        "# always begin with a test",
    ],
)
def test_no_note_stops_the_memory(commonplace: Command, home: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    taught.write(home)
    commonplace.ok("memory", "note", text, "--global")

    report = commonplace.ok("memory", "run")

    assert report["consolidation"]["status"] == "succeeded"
    assert any(each["sources"][0].startswith("extensions/") for each in entries(commonplace))


def test_secrets_do_not_get_into_notes(commonplace: Command, home: Path) -> None:
    token = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
    path = Path(commonplace.ok("memory", "note", f"the token is {token}", "--global")["path"])

    assert token not in path.read_text("utf-8") + path.name


@pytest.mark.parametrize(
    "arguments",
    [
        ("note", " "),
        ("note", "x", "--project", "nonsense"),
        ("note", "x", "--project", "shop", "--global"),
        ("note", "x", "--forget", "--change", "y"),
        ("migrate", "/nowhere/at/all"),
        ("reset",),
    ],
)
def test_what_is_asked_wrongly_changes_nothing(commonplace: Command, home: Path, arguments: tuple[str, ...]) -> None:
    commonplace.refused("bad_input", "memory", *arguments)

    assert not home.exists()


def test_an_entry_is_pinned_and_unpinned(commonplace: Command, learned: Path) -> None:
    kept = one(commonplace, taught.PNPM)["id"]

    assert commonplace.ok("memory", "pin", kept) == {"id": kept, "pinned": True}
    assert one(commonplace, taught.PNPM)["pinned"] is True
    assert commonplace.ok("memory", "pin", kept, "--unpin") == {"id": kept, "pinned": False}
    assert one(commonplace, taught.PNPM)["pinned"] is False


def test_forty_days_in_which_nothing_happens_change_nothing(
    commonplace: Command, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = learned / "memories"
    names = ("MEMORY.md", "memory_summary.md", "raw_memories.md")
    before, known = [(root / name).read_bytes() for name in names], entries(commonplace)
    days = range(1, 41) if os.environ.get("COMMONPLACE_DATABASE", "sqlite") == "sqlite" else (1, 2, 30, 31, 40)
    for day in days:
        now = datetime(2026, 11, 20, 9, tzinfo=UTC) + timedelta(days=day)
        monkeypatch.setenv("COMMONPLACE_NOW", now.isoformat())
        assert commonplace.ok("memory", "run")["consolidation"]["status"] == "unchanged"

    assert [(root / name).read_bytes() for name in names] == before
    assert entries(commonplace) == known


def test_history_tells_each_change_with_its_time(commonplace: Command, learned: Path) -> None:
    commonplace.ok("memory", "note", "prefer tabs over spaces", "--global")
    commonplace.ok("memory", "run")
    changes = commonplace.ok("memory", "history")["changes"]
    noted = one(commonplace, "prefer tabs")["id"]

    assert set(changes[-1]) == {"time", "entry_id", "before", "after", "cause", "sources"}
    assert changes[-1]["entry_id"] == noted
    assert commonplace.ok("memory", "history", noted)["changes"] == [changes[-1]]
    assert "2026-11-20 09:00" in commonplace("memory", "history").out


def test_a_reset_empties_the_workspace_and_everything_is_learned_again(commonplace: Command, learned: Path) -> None:
    before = entries(commonplace)
    commonplace.ok("memory", "mode", taught.BLOG, "disabled")
    commonplace.ok("memory", "mode", taught.BLOG, "enabled")
    decided = (learned / "decisions.jsonl").read_bytes()

    done = commonplace.ok("memory", "reset", "--yes")
    left = sorted(path.name for path in (learned / "memories").iterdir())
    status = commonplace.ok("memory", "status")
    changes = commonplace.ok("memory", "history")["changes"]
    empty = entries(commonplace)
    again = commonplace.ok("memory", "run")

    assert done["removed"] == len(before)
    assert done["files"] > 3
    assert left == [] == empty
    assert (status["outputs"], status["jobs"]) == (0, {})
    assert [change["cause"] for change in changes[-len(before) :]] == ["reset"] * len(before)
    assert decided == (learned / "decisions.jsonl").read_bytes()
    assert again["extracted"] == 2
    assert [each["text"] for each in before] == [each["text"] for each in entries(commonplace)]


def test_a_reset_does_not_follow_a_link(commonplace: Command, home: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "precious.md").write_text("mine", "utf-8")
    home.mkdir(mode=0o700)
    (home / "memories").symlink_to(target)
    before = stamps(target)

    commonplace.refused("workspace_error", "memory", "reset", "--yes")
    commonplace.refused("workspace_error", "memory", "note", "x", "--global")

    assert before == stamps(target)


def test_the_program_itself_notes_and_lists(home: Path, tmp_path: Path) -> None:
    variables = {**os.environ, "COMMONPLACE_NOW": taught.NOW}
    taught.write(home)

    def run(*arguments: str) -> str:
        done = processes.run(arguments, env=variables, cwd=tmp_path, text=True)
        assert 0 == done.returncode, done.stderr
        return done.stdout

    run("memory", "note", "prefer tabs over spaces")
    run("memory", "run")
    listed = run("memory", "list")

    assert listed.startswith("every project\n")
    assert "prefer tabs over spaces" in listed
    assert "github.com/acme/shop" in listed
    assert run("memory", "why", "tabs").startswith('"prefer tabs over spaces"')
