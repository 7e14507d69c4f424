"""What is stored about projects: the evidence of each session, the projects as last decided, and their names.

The evidence is derived from session files, the rest from the evidence and from what a person decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from commonplace.state.database import Row, Transaction


class ProjectName(msgspec.Struct, frozen=True):
    """A name by which a project is known: a folder with the identity that was noted there, or an address."""

    name: str
    project: str
    noted: str = ""


def of_home(home: str | None) -> tuple[str, dict[str, str]]:
    """Return the filter, and its values, for the threads of a home; None: of all homes that share this memory."""
    return ("shared", {}) if home is None else ("own", {"home": home})


def put_evidence(tx: Transaction, evidence: Mapping[str, str]) -> None:
    """Keep what sessions tell about the projects of their folders: JSON by thread id."""
    tx.execute_many("evidence.put", [{"thread_id": key, "evidence": text} for key, text in evidence.items()])


def delete_evidence(tx: Transaction, thread_id: str) -> None:
    """Forget what a session tells."""
    tx.execute("evidence.delete", thread_id=thread_id)


def replace(tx: Transaction, home: str, why: Mapping[str, Iterable[str]], names: Iterable[ProjectName]) -> None:
    """Replace the projects of a home: why the folders of each are one, and the names of all.

    Others that do so at the same time wait, since each deletes what it sees and adds its own.
    """
    tx.serialise("projects")
    tx.execute("projects.clear", home=home)
    tx.execute("project_names.clear", home=home)
    reasons = {project: msgspec.json.encode(list(found)).decode() for project, found in why.items()}
    tx.execute_many("projects.put", [{"home": home, "project": key, "why": text} for key, text in reasons.items()])
    tx.execute_many("project_names.put", [{"home": home, **msgspec.structs.asdict(each)} for each in names])


def names(tx: Transaction, home: str) -> list[ProjectName]:
    """Return every name of every project."""
    return [ProjectName(row["name"], row["project"], row["noted"]) for row in tx.query("project_names.all", home=home)]


def reasons(tx: Transaction, home: str) -> dict[str, list[str]]:
    """Return why the folders of each project are one."""
    return {
        row["project"]: msgspec.json.decode(row["why"], type=list[str]) for row in tx.query("projects.all", home=home)
    }


def threads(tx: Transaction, home: str | None) -> list[Row]:
    """Return the folder of each thread, what it noted of its repository, and its evidence if there is any; without a
    home, of the threads of all homes that share this memory.
    """
    chosen, values = of_home(home)
    return tx.query("threads.folders", chosen, **values)
