"""`sessions fork --copy` puts every payload back, whichever home it is in."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from command import Command

from ledgers import Script, function_call, function_output, user

FOREIGN, OWN = "from the other home " * 50, "from our home " * 50


def spilled(home: Path, call_id: str, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Put a text into a home's blobs; return the item that is left, and where its text went."""
    name = hashlib.sha256(text.encode()).hexdigest()
    (home / "blobs").mkdir(parents=True, exist_ok=True)
    (home / "blobs" / name).write_text(text, "utf-8")
    ref = {"pointer": "/output", "sha256": name, "bytes": len(text), "media_type": "text/plain"}
    return function_output(call_id, f"[kept as blob {name}]"), ref


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A thread in another home, with a payload there."""
    other = tmp_path / "other"
    item, ref = spilled(other, "c1", FOREIGN)
    return Script().item(user("go"), function_call("c1")).item(item, blob=[ref]).write_home(other)


def outputs(commonplace: Command, thread: str) -> list[str]:
    items = commonplace.ok("sessions", "context", thread)["items"]
    return [item["output"] for item in items if item["type"] == "function_call_output"]


def test_a_copy_of_a_thread_in_another_home_holds_its_payloads(commonplace: Command, parent: Path) -> None:
    fork = commonplace.ok("sessions", "fork", parent, "--copy")

    assert outputs(commonplace, fork["thread_id"]) == [FOREIGN]


@pytest.mark.parametrize("damaged_here", [False, True])
def test_a_copy_of_a_fork_holds_the_payloads_of_a_parent_in_another_home(
    commonplace: Command, home: Path, parent: Path, *, damaged_here: bool
) -> None:
    own = Path(commonplace.ok("sessions", "fork", parent)["path"])
    item, ref = spilled(home, "c2", OWN)
    with own.open("ab") as file:
        file.write(Script().item(user("more"), function_call("c2")).item(item, blob=[ref]).data().split(b"\n", 1)[1])
    if damaged_here:
        (home / "blobs" / hashlib.sha256(FOREIGN.encode()).hexdigest()).write_bytes(b"damaged")

    fork = commonplace.ok("sessions", "fork", own, "--copy")

    assert outputs(commonplace, fork["thread_id"]) == [FOREIGN, OWN]
    assert b'"blob"' not in Path(fork["path"]).read_bytes()


def test_a_fork_is_whole_while_its_parents_home_has_the_payloads(commonplace: Command, parent: Path) -> None:
    fork = commonplace.ok("sessions", "fork", parent)

    assert commonplace.ok("sessions", "verify", fork["thread_id"])["blobs"] == {
        "referenced": 1,
        "missing": 0,
        "corrupt": 0,
    }
