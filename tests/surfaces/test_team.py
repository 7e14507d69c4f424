"""Many hosts, one memory: what one host's sessions taught, and what a person did on any of them, is everywhere."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from taught_homes import PNPM, PUSH, SHORT
from team_hosts import Host, drop

import processes
from commonplace.app import book as books
from commonplace.learning.consolidate import entry_rows
from commonplace.memory.edits.edits import NoteRequest
from model_server import ModelServer, Silence
from waiting import until

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

    assert "pnpm" in told["text"]
    assert "(Ana)" in told["text"]
    assert ben.files() == ana.files()
    assert (ben.home / "memory_history.jsonl").read_bytes() == (ana.home / "memory_history.jsonl").read_bytes()
    (entry,) = ben.run("memory", "list")["entries"]
    (link,) = ben.run("memory", "why", entry["id"])["chain"]
    assert (link["thread_id"], link["host"]) == (thread, "host-ana")
    assert link["path"].startswith(str(ana.home))
    assert "pnpm" in link["quote"]
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
    # Ben edits a file and writes a note; Ana forgets, pins and notes. Neither has seen what the other did.
    memory = ben.home / "memories" / "MEMORY.md"
    lines = memory.read_text("utf-8").split("\n")
    place = next(number for number, line in enumerate(lines) if line.startswith('- "In this project'))
    memory.write_text("\n".join([*lines[:place], "- Tag every release twice.", *lines[place:]]), "utf-8")
    for each, word in ((ben, "zebra"), (ana, "okapi")):
        folder = each.home / "memories/extensions/ad_hoc/notes"
        folder.mkdir(parents=True, exist_ok=True)
        text = f"The demo host is called {word}.\nscope: project github.com/acme/shop\n"
        (folder / "2026-11-20T08-00-00-same-name.md").write_text(text, "utf-8")
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
    assert "pnpm" in done.stdout
    assert "(Ana)" in done.stdout
    assert "short sentences" not in done.stdout, "her own wish is not told to him, also without rows"
    assert {each["reason"] for each in before["left_out"]} == {"said_by_others"}
    assert "not available" in done.stderr


def test_two_hosts_that_consolidate_at_once_take_turns(host: MakeHost) -> None:
    hosts = [host("ana"), host("ben")]
    hosts[0].session(PNPM)
    hosts[1].session("In this project we always deploy from the release branch.")

    with hosts[0].start("memory", "run") as one, hosts[1].start("memory", "run") as two:
        assert [run.wait(100) for run in (one, two)] == [0, 0]

    told = [each.prompt()["text"] for each in hosts]
    for text in told:
        assert "pnpm" in text
        assert "release branch" in text
    assert hosts[0].files() == hosts[1].files()


async def test_when_the_holder_is_killed_another_host_goes_on(host: MakeHost, postgres_server: str) -> None:
    ana, ben = host("ana"), host("ben")
    ana.session(PNPM)
    with ModelServer(lambda _: Silence()) as server:
        ana.add_settings("[memory]", 'consolidate_model = "here:m"', server.provider())
        with ana.start("memory", "run") as holder:
            await until(lambda: bool(server.asked) or holder.poll() is not None)
            assert server.asked
            os.kill(holder.pid, signal.SIGKILL)
    ben.session("In this project we always deploy from the release branch.")
    later = {"COMMONPLACE_NOW": "2026-11-20T11:00:00Z"}  # no process of this host can tell that the holder is dead

    done = ben.done("memory", "run", "--json", more=later)

    assert json.loads(done.stdout)["consolidation"]["status"] == "succeeded", done.stderr
    texts = ben.texts()
    assert {word for word in ("pnpm", "release branch") if any(word in text for text in texts)} == {
        "pnpm",
        "release branch",
    }
    assert ana.prompt()["text"].count("release branch") == 1


def killed(*_: object) -> None:
    """End what is done."""
    raise RuntimeError("killed")


def test_a_database_that_was_lost_takes_nothing_with_it(host: MakeHost, postgres_server: str) -> None:
    ana, ben = host("ana"), host("ben")
    ana.session(PNPM)
    ana.run("memory", "note", "--global", "Answer in English")
    ana.learn()
    ben.run("memory", "note", "--global", "The demo host is called okapi")
    drop(postgres_server, [ana.root])

    ben.run("memory", "note", "--global", "The demo port is 4242")
    ana.learn()
    ben.prompt()

    for each in (ana, ben):
        texts = " ".join(each.texts())
        assert [word for word in ("pnpm", "English", "okapi", "4242") if word not in texts] == []
    assert ana.files() == ben.files()


async def test_a_state_that_was_never_published_costs_nothing(host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ana's process ends after her files took their place and before the rows were stored."""
    ana, ben = host("ana"), host("ben")
    ana.session(PNPM)
    ana.learn()
    with monkeypatch.context() as broken:
        broken.setattr(entry_rows, "write", killed)
        async with books.open(environment=ana.variables) as book:
            await book.memory.note(NoteRequest(text="The demo host is called okapi", everywhere=True), ana.user)

    ben.run("memory", "note", "--global", "The demo port is 4242")
    ana.run("memory", "note", "--global", "Answer in English")
    ben.prompt()

    for each in (ana, ben):
        texts = " ".join(each.texts())
        assert [word for word in ("pnpm", "okapi", "4242", "English") if word not in texts] == []
    assert ana.files() == ben.files()


def test_the_model_of_another_host_gets_what_is_meant_for_it(host: MakeHost) -> None:
    ana, ben = host("ana"), host("ben")
    ana.session(PNPM, SHORT)
    ana.learn()
    folder = ben.clone()
    with ModelServer(lambda _: "Done.") as server:
        ben.add_settings(server.provider())
        asked = ben.done("exec", "-m", "here:m", "--ephemeral", "Hello", folder=folder)
        mine = ana.done("memory", "prompt", "-C", str(ana.clone()))
    (body,) = server.asked
    text = json.dumps(body)

    assert asked.returncode == 0, asked.stderr
    assert "pnpm instead of npm in this repo.\\" in text or "pnpm instead of npm in this repo" in text
    assert "(Ana)" in text
    assert "short sentences" not in text
    assert "short sentences" in mine.stdout
    assert "(Ana)" not in mine.stdout
    assert not [path for each in (ana, ben) for path, data in each.files().items() if b"@example.com" in data]


def test_a_person_is_kept_as_git_knew_them_when_the_session_was_first_seen(host: MakeHost) -> None:
    ana = host("ana")
    folder = ana.clone()
    with (folder / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write("[user]\n\tname = Ana at work\n\temail = ana@work.example\n")
    ana.session(PNPM, cwd=str(folder))
    ana.run("sessions", "list")
    (folder / ".git" / "config").write_text("", "utf-8")
    ana.session(SHORT, project="blog", number=1)  # of a folder that is not here: as her own configuration says
    ana.session("In this project we always deploy from the release branch.", cwd="/home/kim/shop", number=2)

    ana.learn()

    people = {text: each["people"] for text, each in ana.texts().items()}
    assert {names[0] for text, names in people.items() if "pnpm" in text} == {"Ana at work"}
    assert {names[0] for text, names in people.items() if "short" in text} == {"Ana"}
    assert {names[0] for text, names in people.items() if "deploy" in text} == {"kim"}


def test_a_root_needs_a_server_and_a_name(home: Path) -> None:
    for more, words in (
        ({"COMMONPLACE_MEMORY_ROOT": "acme"}, "memory_root is 'acme', and the database is SQLite"),
        ({"COMMONPLACE_MEMORY_ROOT": "No Name", "COMMONPLACE_DATABASE": "postgresql://x"}, "memory_root"),
    ):
        done = processes.run(["memory", "list"], env={**os.environ, **more}, text=True)

        assert (done.returncode, done.stdout) == (1, "")
        assert words in done.stderr
    assert not home.exists()


def test_who_empties_the_memory_empties_it_everywhere(host: MakeHost) -> None:
    ana, ben = host("ana"), host("ben")
    ana.session(PNPM)
    ana.run("memory", "note", "--global", "Answer in English")
    ben.prompt()
    assert ben.files()["MEMORY.md"]

    ana.run("memory", "reset", "--yes")

    assert ben.prompt()["included"] == []
    assert not [path for path in ben.files() if path.endswith(".md") and "instructions" not in path]
