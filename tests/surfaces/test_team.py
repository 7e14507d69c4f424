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
