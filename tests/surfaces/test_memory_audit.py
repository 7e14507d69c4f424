"""`commonplace memory audit`: what is wrong with the memory is found, shown with what to do, and nothing is changed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import taught_homes as taught
from agents import in_database, stamps
from command import Command

from commonplace.memory.audit import is_recalled
from commonplace.memory.audit_run import duplicates
from commonplace.memory.entries import Entry, Kind, Source
from commonplace.state import entries as rows
from commonplace.state.database import Transaction
from ledgers import Script, assistant, user

KINDS = {"duplicates", "stale", "unused", "secrets", "unsourced", "loops"}
SHOP = "github.com/acme/shop"
TOKEN = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
NOTE = "extensions/ad_hoc/notes/2026-11-15T09-00-00-x.md"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)


def add(home: Path, *entries: Entry) -> None:
    """Let the memory hold more than its sessions taught."""
    root = str(home.resolve())

    def body(tx: Transaction) -> None:
        for place, entry in enumerate(entries, 1000):
            tx.execute(
                "entries.put",
                root=root,
                place=place,
                entry_id=entry.id,
                scope=entry.scope,
                kind=entry.kind,
                text=entry.text,
                support=entry.support,
                sources=msgspec.json.encode(entry.sources).decode(),
                first_seen_s=entry.first_seen_s,
                last_seen_s=entry.last_seen_s,
                is_pinned=0,
                is_shown=1,
                is_candidate=0,
                confidence=1.0,
            )
        assert rows.everything(tx, root)

    in_database(body)


def entry(name: str, text: str, *sources: Source, scope: str = SHOP, kind: Kind = "rule", seen: int = 2**31) -> Entry:
    return Entry(name, scope, kind, text, len(sources), list(sources), seen, seen)


def found(commonplace: Command, kind: str) -> list[dict[str, Any]]:
    return list(commonplace.ok("memory", "audit")[kind])


def test_a_memory_with_nothing_wrong_has_no_findings(commonplace: Command, learned: Path) -> None:
    before = stamps(learned / "memories")
    audited = commonplace.ok("memory", "audit")

    assert set(audited) == KINDS
    assert audited == {kind: [] for kind in KINDS}
    assert stamps(learned / "memories") == before
    assert commonplace("memory", "audit").out == "Nothing is wrong with the memory.\n"


def test_an_empty_home_has_no_findings(commonplace: Command, home: Path) -> None:
    assert commonplace.ok("memory", "audit") == {kind: [] for kind in KINDS}
    assert not home.exists()


def test_entries_that_say_the_same_are_told_together(commonplace: Command, learned: Path) -> None:
    source = Source("x", "said", taught.SHOP)
    add(learned, entry("mtwice", "always use pnpm and never npm in this repo please", source))
    (pnpm,) = [each for each in commonplace.ok("memory", "list")["entries"] if taught.PNPM in each["text"]]

    (told,) = found(commonplace, "duplicates")
    assert (told["id"], told["other"]) == ("mtwice", pnpm["id"])


def test_another_project_or_another_wish_is_no_duplicate() -> None:
    shop = entry("a", "always use pnpm instead of npm")
    same = entry("b", "always use pnpm instead of npm", scope="github.com/acme/blog")
    clash = entry("c", "always use yarn instead of npm")

    assert list(duplicates([shop, same, clash])) == []
    assert [each.id for each in duplicates([shop, entry("d", "always use pnpm, not npm", scope="global")])] == ["d"]


def test_a_duplicate_is_found_behind_many_entries_of_other_projects() -> None:
    text = "always use pnpm instead of npm"
    others = [entry(f"o{number}", text, scope=f"github.com/acme/{number}") for number in range(200)]

    (told,) = duplicates([entry("a", text), *others, entry("b", text)])
    assert (told.id, told.other) == ("b", "a")


def test_many_entries_are_compared_quickly_enough() -> None:
    many = [entry(f"m{number}", f"the service number{number} listens on port {number}") for number in range(1_500)]

    assert list(duplicates(many)) == []


def test_paths_and_commands_that_are_gone_are_told_where_the_project_is(
    commonplace: Command, learned: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "-C", folder, "remote", "add", "origin", f"https://{SHOP}.git"], check=True)
    (folder / "Makefile").write_text("test:\n\ttrue\n")
    assert found(commonplace, "stale") == []  # /repo/shop is not on this machine

    thread = "0198c0de-0000-7000-8000-0000000000c1"
    remote = {"repository_url": f"https://{SHOP}.git", "branch": "main"}
    Script(thread, cwd=str(folder), git=remote).turn(user("hello"), assistant("hi")).write_home(learned)
    commonplace.ok("sessions", "list")
    source = Source("x", "said", taught.SHOP)
    add(
        learned,
        entry("mpath", "amounts live in src/money.ts", source),
        entry("mmake", "verify with `make release`", source, kind="verify"),
        entry("mfine", "verify with `make test`", source, kind="verify"),
        entry("melse", "amounts live in src/money.ts", source, scope="github.com/acme/blog"),
    )
    told = {(each["id"], each["kind"], each["name"]) for each in found(commonplace, "stale")}

    assert {each for each in told if each[0].startswith("m") and each[0] in ("mpath", "mmake", "mfine", "melse")} == {
        ("mpath", "path", "src/money.ts"),
        ("mmake", "command", "make release"),
    }


def test_what_nobody_asked_for_in_a_long_time_is_unused(
    commonplace: Command, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commonplace.ok("memory", "note", "indent with tabs", "--global")
    commonplace.ok("memory", "run")
    everything = commonplace.ok("memory", "list")["entries"]
    (pnpm,) = [each["id"] for each in everything if taught.PNPM in each["text"]]
    by_hand = [each["id"] for each in everything if "tabs" in each["text"]]
    commonplace.ok("memory", "pin", pnpm)
    assert found(commonplace, "unused") == []

    monkeypatch.setenv("COMMONPLACE_NOW", "2027-03-01T00:00:00Z")
    told = {each["id"] for each in found(commonplace, "unused")}
    assert told == {each["id"] for each in everything} - {pnpm, *by_hand}


def test_a_secret_is_told_by_its_place_and_never_shown(commonplace: Command, learned: Path) -> None:
    path = learned / "memories" / "MEMORY.md"
    text = path.read_text("utf-8")
    path.write_text(f"{text}- the token is {TOKEN}\n", "utf-8")
    ran, shown = commonplace("memory", "audit", "--json"), commonplace("memory", "audit")

    (told,) = ran.json["secrets"]
    assert (told["file"], told["line"]) == ("MEMORY.md", text.count("\n") + 1)
    assert told["kind"]
    assert TOKEN not in ran.out + shown.out
    assert f"MEMORY.md:{told['line']}" in shown.out


def test_lines_and_entries_that_rest_on_nothing_are_told(commonplace: Command, learned: Path) -> None:
    path = learned / "memories" / "MEMORY.md"
    path.write_text(path.read_text("utf-8").rstrip("\n") + "\n- nobody said this\n", "utf-8")
    gone = Source("x", "written by the user", note=NOTE)
    add(learned, entry("mnone", "from nowhere", Source("x", "said")), entry("mnote", "from a note that is gone", gone))
    told = [(each["id"], each.get("file")) for each in found(commonplace, "unsourced")]

    assert told == [("mnone", None), ("mnote", NOTE), (None, "MEMORY.md")]


def test_what_was_learned_from_memory_itself_is_a_loop(commonplace: Command, learned: Path) -> None:
    thread = "0198c0de-0000-7000-8000-0000000000d1"
    section = '<commonplace_memory project="x">\n- use gulp for builds\n</commonplace_memory>'
    script = Script(thread, cwd="/repo/shop")
    places: list[int] = []
    for text in (f"hello\n{section}", "use gulp for builds, as I said", section):
        places.append(len(script.data()))
        script.item(user(text))
    script.write_home(learned)
    commonplace.ok("sessions", "list")

    def source(place: int) -> Source:
        return Source("use gulp for builds", "said by the user", thread, 1, place, place + 10)

    add(
        learned,
        entry("mloop", "use gulp for builds", source(places[0]), source(places[2])),
        entry("mfine", "gulp builds it all", source(places[0]), source(places[1])),
        entry("mgone", "somewhere else", Source("x", "said", thread, 1, 10**9, 10**9)),
    )
    note = learned / "memories" / NOTE
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(f"remember: {section}\n")
    told = [(each["id"], each.get("file")) for each in found(commonplace, "loops")]

    assert told == [("mloop", None), (None, NOTE)]


@pytest.mark.parametrize(
    ("text", "recalled"),
    [
        ("use tabs", False),
        ("<commonplace_memory>use tabs</commonplace_memory>", True),
        ("x <commonplace_memory>use tabs</commonplace_memory> y", True),
        ("<commonplace_memory>use tabs</commonplace_memory> use tabs", False),
        ("<commonplace_memory>use tabs and no end", True),
        ("<commonplace_memory>other</commonplace_memory>", False),
        ("<claude-mem-context>use tabs", True),
        ("a <claude-mem-context>use tabs", False),
    ],
)
def test_words_are_recalled_if_memory_alone_says_them(text: str, recalled: bool) -> None:
    assert is_recalled("use  tabs", text) == recalled


def test_findings_are_shown_with_what_to_do(commonplace: Command, learned: Path) -> None:
    add(learned, entry("mnone", "from nowhere", Source("x", "said")))
    ran = commonplace("memory", "audit")

    assert ran.code == 0
    assert "unsourced: 1 rest on nothing" in ran.out
    assert "mnone" in ran.out
    assert "→ `commonplace memory why ID`" in ran.out
    assert "duplicates" not in ran.out


def test_without_a_database_the_files_are_looked_at(commonplace: Command, learned: Path) -> None:
    (learned / "state.sqlite").unlink(missing_ok=True)
    summary = next((learned / "memories" / "rollout_summaries").iterdir())
    path = f"rollout_summaries/{summary.name}"
    summary.write_text(summary.read_text("utf-8") + f"\n{path}:1-2|note=[itself]\n", "utf-8")
    audited = commonplace.ok("memory", "audit")

    assert [(each["id"], each["file"], each["problem"]) for each in audited["loops"]] == [
        (None, path, "it cites itself")
    ]
    assert audited["unused"] == []
