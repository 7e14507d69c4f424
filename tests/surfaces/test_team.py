"""Many hosts, one memory: what one host's sessions taught, and what a person did on any of them, is everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from taught_homes import PNPM, PUSH, SHORT
from team_hosts import Host, drop

MakeHost = Callable[..., Host]


@pytest.fixture
def host(tmp_path: Path, postgres_server: str) -> Iterator[MakeHost]:
    """Make hosts that share a memory, or (`root`) another one."""
    own, roots = f"t{uuid4().hex[:10]}", set[str]()

    def make(name: str, root: str = "", email: str | None = "") -> Host:
        chosen = f"{own}{root}"
        roots.add(chosen)
        address = f"{name}@example.com" if email == "" else email
        return Host(tmp_path / f"{name}{root}", postgres_server, chosen, name, address)

    yield make
    drop(postgres_server, roots)


def test_a_host_is_told_what_a_session_on_another_host_taught(host: MakeHost) -> None:
    ana, ben = host("ana"), host("ben")
    thread = ana.session(PNPM)
    assert ana.learn()["extracted"] == 1

    told = ben.prompt()

    assert "pnpm" in told["text"] and "(Ana)" in told["text"]
    assert ben.files() == ana.files()
    assert (ben.home / "memory_history.jsonl").read_bytes() == (ana.home / "memory_history.jsonl").read_bytes()
    (entry,) = ben.run("memory", "list")["entries"]
    (link,) = ben.run("memory", "why", entry["id"])["chain"]
    assert (link["thread_id"], link["host"]) == (thread, "host-ana")
    assert link["path"].startswith(str(ana.home)) and "pnpm" in link["quote"]
    assert "on host-ana" in ben.done("memory", "why", entry["id"]).stdout
    assert ben.learn()["consolidation"]["status"] == "unchanged"


def test_two_memories_in_one_database_know_nothing_of_each_other(host: MakeHost) -> None:
    ana, eve = host("ana"), host("eve", "other")
    shared = ana.session(PNPM)
    copied = next(ana.home.glob(f"sessions/*/*/*/*{shared}.jsonl"))
    place = eve.home / copied.relative_to(ana.home)
    place.parent.mkdir(parents=True)
    place.write_bytes(copied.read_bytes())  # the same session: what one memory forgets, the other keeps
    eve.session(PUSH)
    assert ana.learn()["extracted"] == 1
    assert eve.learn()["extracted"] == 2
    (entry,) = ana.run("memory", "list")["entries"]

    assert ana.run("memory", "forget", entry["id"], "--yes")["removed"] == [entry["id"]]

    assert not ana.texts()
    assert any("pnpm" in text for text in eve.texts())
    assert ana.run("memory", "status")["outputs"] < eve.run("memory", "status")["outputs"]


def test_homes_under_the_same_path_are_two_homes(host: MakeHost) -> None:
    """Two hosts, simulated by two folders that take turns at one path."""
    ana = host("ana")
    place, away = ana.home.parent, [ana.home.parent.with_name(name) for name in ("ana.away", "ben.away")]
    threads = [ana.session(PNPM)]
    ana.learn()
    place.rename(away[0])
    ben = host("ana", email="ben@example.com")
    threads.append(ben.session(PUSH))

    assert ben.learn()["extracted"] == 1

    assert [row["thread_id"] for row in ben.run("sessions", "list")["threads"]] == [threads[1]]
    assert any("pnpm" in text for text in ben.texts()), "what the other host taught is there all the same"
    place.rename(away[1])
    away[0].rename(place)
    assert [row["thread_id"] for row in ana.run("sessions", "list")["threads"]] == [threads[0]]
    assert ana.learn()["extracted"] == 0
    assert len(ana.texts()) == 2


def test_what_people_do_on_two_hosts_at_once_is_kept(host: MakeHost) -> None:
    ana, ben = host("ana"), host("ben")
    ana.session(PNPM, "In this project we always deploy from the release branch.")
    ana.learn()
    ben.prompt()
    ids = {text: each["id"] for text, each in ana.texts().items()}
    pnpm = next(name for text, name in ids.items() if "pnpm" in text)
    deploy = next(name for text, name in ids.items() if "deploy" in text)
    # Ben edits a line by hand and writes a note file; Ana forgets, pins and notes. Neither has seen the other's.
    memory = ben.home / "memories" / "MEMORY.md"
    edited = memory.read_text("utf-8").replace(
        "## User preferences", "## User preferences\n- Tag every release twice.", 1
    )
    assert "Tag every release" in edited or "###" in edited
    memory.write_text(edited if "Tag every" in edited else edited + "- Tag every release twice.\n", "utf-8")
    notes = ben.home / "memories/extensions/ad_hoc/notes"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "2026-11-20T08-00-00-same-name.md").write_text(
        "The staging host is called zebra.\nscope: project github.com/acme/shop\n"
    )
    mine = ana.home / "memories/extensions/ad_hoc/notes"
    mine.mkdir(parents=True, exist_ok=True)
    (mine / "2026-11-20T08-00-00-same-name.md").write_text(
        "The demo host is called okapi.\nscope: project github.com/acme/shop\n"
    )
    ana.run("memory", "forget", pnpm, "--yes")
    ana.run("memory", "pin", deploy)

    ben.learn()
    ana.learn()

    for each in (ana, ben):
        texts = each.texts()
        assert not any("pnpm" in text for text in texts)
        assert [entry["pinned"] for text, entry in texts.items() if "deploy" in text] == [True]
        for word in ("Tag every release", "zebra", "okapi"):
            assert any(word in text for text in texts), (each.name, word, list(texts))
        assert each.prompt()["included"]
    assert ana.files() == ben.files()
    assert not any(b"pnpm" in data for data in ben.files().values())
    assert b"pnpm" not in (ben.home / "memory_history.jsonl").read_bytes()


def test_without_the_database_a_host_tells_what_was_published_last(host: MakeHost) -> None:
    ana, ben = host("ana"), host("ben")
    ana.session(PNPM, SHORT)
    ana.learn()
    before = ben.prompt()
    lost = {"COMMONPLACE_DATABASE": "postgresql://nobody@127.0.0.1:1/none"}

    done = ben.done("memory", "prompt", "--project", "github.com/acme/shop", "--json", more=lost)

    assert done.returncode == 0, done.stderr
    assert "pnpm" in done.stdout and "(Ana)" in done.stdout
    assert "short sentences" not in done.stdout, "her own wish is not told to him, also without rows"
    assert {each["reason"] for each in before["left_out"]} == {"said_by_others"}
    assert "not available" in done.stderr
