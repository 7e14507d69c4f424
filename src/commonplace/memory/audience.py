"""Who is told what, in a memory that several people share.

A person's wishes are theirs: what only others wished, or said for everything they do, is told to nobody else. What
others said about a project is told with their names. What many people said in one project is a rule of the project, and
needs no name. Where one person is known, or none, everything is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from commonplace.memory.entries import Entry
from commonplace.projects import people
from commonplace.projects.people import Person
from commonplace.state.home import Home

CROWD: Final = 3
"""What so many people said in one project is a rule of the project."""


class Audience(msgspec.Struct, frozen=True):
    """The person who is told, by every address that they are known by, and how the others are called."""

    own: frozenset[str] = frozenset()
    titles: dict[str, str] = {}
    """How people are called; empty unless several are known."""

    def is_others(self, entry: Entry) -> bool:
        """Say whether an entry rests on others alone."""
        known = {person.key for person in entry.people}
        return bool(self.titles) and bool(known) and known.isdisjoint(self.own)

    def may_be_told(self, entry: Entry) -> bool:
        """Say whether an entry may be told unasked: not if it is only what others wish."""
        return not (self.is_others(entry) and (entry.is_global or entry.kind == "preference"))

    def credit(self, entry: Entry) -> str:
        """Return what follows the text of an entry that others said: their names, in brackets."""
        said = {source.person.key for source in entry.sources if source.person is not None and source.is_by_person}
        if not said or not self.is_others(entry) or len(said) >= CROWD:
            return ""
        return f" ({', '.join(sorted(self.titles.get(key, 'somebody') for key in said))})"


def of_prompt(home: Home, folder: Path | None, entries: Iterable[Entry]) -> Audience:
    """Return who is told when something is told in a folder, or (None) anywhere."""
    known = _known(entries) if home.is_shared else {}
    if not known:
        return Audience()
    here = people.of_folder(_place(folder), home.environment) if folder is not None else None
    user = people.of_user(home.environment) or people.of_folder(str(home.path), home.environment)
    own = [person for person in (here, user) if person is not None]
    everybody = known | {person.key: person for person in own[:1]}
    titles = people.titles(everybody.values()) if len(everybody) > 1 else {}
    return Audience(frozenset(person.key for person in own), titles)


def titles(entries: Iterable[Entry]) -> dict[str, str]:
    """Return how the people are called whom a memory knows; nothing if it knows one or none."""
    known = _known(entries)
    return people.titles(known.values()) if len(known) > 1 else {}


def common(entries: list[Entry]) -> list[Entry]:
    """Return the entries that a page for everybody may hold: of several people's, not what one of them wishes."""
    if len(_known(entries)) < 2:
        return entries
    return [entry for entry in entries if not entry.people or not (entry.is_global or entry.kind == "preference")]


def named(entry: Entry, titles: dict[str, str]) -> list[str]:
    """Return the names of the people on whom an entry rests."""
    return sorted({titles[person.key] for person in entry.people if person.key in titles})


def _place(folder: Path) -> str:
    """Return the path of a folder; what is none (a repository's address) stays as it is."""
    return str(folder.absolute() if folder.is_dir() else folder)


def _known(entries: Iterable[Entry]) -> dict[str, Person]:
    return {person.key: person for entry in entries for person in sorted(entry.people, key=people.encode)}
