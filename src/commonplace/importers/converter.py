"""The interface of converters: a file of another agent becomes heads and records of ledgers.

A converter is a generator over one source file. It yields a `SessionHead` once for each thread that the file holds
(mostly one; old files hold their sub-agents too), before any record of that thread; a `ConvertedRecord` for each record
that is kept, in the order of the conversation; and a `Skipped` for each stretch that it could not use. It writes
nothing and never holds the whole file. The same bytes always give the same pieces, and a file that grew gives the old
pieces first wherever the source allows that: this is what lets an import go on where it stopped.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.protocol import rollout
from commonplace.protocol.ids import is_uuid
from commonplace.protocol.rollout import Origin, Skipped

MAX_RECORD_BYTES: Final = 16 * 2**20
"""Longest record that is loaded: with its decoded text and its encoded line it must fit the promised memory."""
TORN: Final = "torn"
"""Why a last line without its end is left out: it may be completed later."""
UNKNOWN_PARENT: Final = "00000000-0000-0000-0000-000000000000"
"""Stands for the parent of a sub-agent's session that does not tell it."""
_NAMESPACE: Final = uuid.UUID("7e0bf1f5-5c0b-5f6e-9a3e-0c6f3d0d6a11")


class SessionHead(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a thread: what becomes the first line of its ledger."""

    source: str
    """Whose session it is, as `--from` names it."""
    thread_id: str
    session_id: str
    """What the source calls it."""
    started: str
    """ISO time of the first record, in Codex's form (`2026-11-15T06:22:13.354Z`); empty when nothing tells it."""
    path: str
    """The file it was read from."""
    cwd: str = ""
    made_from: str = ""
    """The folder that `cwd` was made from as a second working tree."""
    version: str = ""
    branch: str | None = None
    repository: str = ""
    """The address of its repository, where the source names it."""
    via: str = ""
    """The program that kept the session for the agent, as `--from` names it; empty where the agent kept it itself."""
    parent: str | None = None
    """The thread that started this one as its sub-agent."""
    agent_id: str | None = None
    entrypoint: str = ""
    """How the source was run (interactive, headless), in its own words."""
    provider: str = ""
    first_record: str = ""
    """Id of the first record: forks and copies of a session share it."""
    first_answer: str = ""
    """Id of the model's first answer: shared also by copies whose records got new ids."""


class ConvertedRecord(msgspec.Struct, gc=False):
    """One record of the source, as payloads for the ledger of one thread."""

    thread_id: str
    record: str
    """Id of the record, unique in its thread."""
    time: str
    payloads: list[Payload]


class Payload(msgspec.Struct, gc=False):
    """One line of a ledger before it is written: its type, its payload (values or raw JSON), and facts from
    its source.
    """

    type: str
    value: Any
    origin: Origin | None = None
    side_file: Path | None = None
    """A file with the whole of an output that the payload only shows a part of."""


Converted = Iterator[SessionHead | ConvertedRecord | Skipped]
Converter = Callable[[Path], Converted]


def thread_id_for(source: str, session_id: str) -> str:
    """Return the thread that a session becomes: its own UUID, else one made from source and id."""
    lowered = session_id.lower()
    return lowered if is_uuid(lowered) else str(uuid.uuid5(_NAMESPACE, f"{source}\0{session_id}"))


def meta(head: SessionHead, project: str | None = None) -> dict[str, Any]:
    """Return the `session_meta` payload of a head; `project` is what its folder belonged to when it was imported."""
    source: Any = {"custom": head.source}
    if head.parent is not None:
        source = {"subagent": {"thread_spawn": {"parent_thread_id": head.parent, "depth": 1}}}
    found: dict[str, Any] = {
        "session_id": head.thread_id,
        "id": head.thread_id,
        "timestamp": head.started,
        "cwd": head.cwd,
        "originator": head.source,
        "cli_version": head.version,
        "source": source,
        "parent_thread_id": head.parent,
        "model_provider": head.provider or None,
        "history_mode": "legacy",
        "git": _git(head),
        "imported": {
            "source": head.source,
            "session_id": head.session_id,
            "path": head.path,
            "entrypoint": head.entrypoint or None,
            "agent_id": head.agent_id,
            "via": head.via or None,
            "project": project,
        },
    }
    found["imported"] = {key: value for key, value in found["imported"].items() if value is not None}
    return {key: value for key, value in found.items() if value is not None}


def _git(head: SessionHead) -> dict[str, str] | None:
    facts = {"branch": head.branch or "", "repository_url": head.repository}
    return {name: value for name, value in facts.items() if value} or None


def skip_note(skipped: Skipped) -> Payload:
    """Return the line that keeps note of what could not be used."""
    return Payload(rollout.OWN_TYPE, {"kind": "skipped", **msgspec.structs.asdict(skipped)})


def title_note(title: str, *, chosen: bool) -> Payload:
    """Return the line that keeps a session's title; `chosen` by a person, or made by a model."""
    return Payload(rollout.OWN_TYPE, {"kind": "title", "title": title, "chosen": chosen})
