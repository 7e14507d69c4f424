"""Whose a session is: the git identity of its folder, else the name of the home folder that it ran in.

The identity is `user.name` and `user.email` as git has them: the configuration of the repository counts before that of
the user. Nothing is run. A person is told apart by their address, and shown by their name: an address is in rows and in
private files of the home, never in the memory's files or in prompts.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.projects.repository_files import common_folder, find_git_folder

_HOME: Final = regex(r"(?:/Users/|/home/|[A-Za-z]:[/\\\\]Users[/\\\\])([^/\\\\]+)")
_STRANGE: Final = regex(r"[^\w .'’-]+")
"""What is no part of a name; a name comes from a file that somebody else wrote, and prompts tell it."""
_MAX_NAME: Final = 40


class Person(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody who worked with an agent."""

    name: str = ""
    email: str = ""

    @property
    def key(self) -> str:
        """What tells them apart from others."""
        return (self.email or self.name).lower()

    @property
    def handle(self) -> str:
        """What stands before the @ of their address."""
        return _plain(self.email.partition("@")[0])

    @property
    def title(self) -> str:
        """The name that is shown."""
        return _plain(self.name.partition("@")[0]) or self.handle or "somebody"


def _plain(text: str) -> str:
    return " ".join(_STRANGE.sub(" ", text).split())[:_MAX_NAME].strip()


_decoder: Final = msgspec.json.Decoder(Person)


def encode(person: Person) -> str:
    """Return the text that rows store."""
    return msgspec.json.encode(person).decode()


def decode(text: str | None) -> Person | None:
    """Return the person that a row stores; None if nobody is known, or a newer version wrote it."""
    try:
        return _decoder.decode(text) if text else None
    except msgspec.MsgspecError:
        return None


def titles(people: Iterable[Person]) -> dict[str, str]:
    """Return how each person is called, by their keys; two of one name are told apart by what stands before the @."""
    known = {person.key: person for person in sorted(people, key=encode)}
    counts = Counter(person.title for person in known.values())
    return {
        key: person.title if counts[person.title] == 1 or not person.handle else f"{person.title} ({person.handle})"
        for key, person in known.items()
    }


def home_name(folder: str) -> str:
    """Return the name of the home folder that a folder is in; empty if it is in none."""
    found = _HOME.match(folder)
    return found[1] if found else ""


def of_folder(folder: str, environment: Mapping[str, str]) -> Person | None:
    """Return whose a session in a folder is; None if nobody is known.

    A folder that is not here may be somebody else's: the name of its home folder tells.
    """
    own = home_name(folder)
    is_here = folder.startswith("/") and Path(folder).is_dir()
    if not is_here and own and own != home_name(environment.get("HOME", "")):
        return Person(own)
    found = (_of_repository(Path(folder), environment) if is_here else None) or of_user(environment)
    return found or (Person(own) if own else None)


def of_user(environment: Mapping[str, str]) -> Person | None:
    """Return the identity that the user's own configuration of git has."""
    named = environment.get("GIT_CONFIG_GLOBAL")
    user = environment.get("HOME", "")
    other = environment.get("XDG_CONFIG_HOME") or (f"{user}/.config" if user else "")
    places = [named] if named is not None else [f"{user}/.gitconfig" if user else "", other and f"{other}/git/config"]
    return _identity([Path(place) for place in places if place])


def _of_repository(folder: Path, environment: Mapping[str, str]) -> Person | None:
    """Return the identity that a repository's configuration has, with what the user's says about this repository."""
    try:
        git = find_git_folder(folder)
        if git is None:
            return None
        own = _identity([common_folder(git) / "config"])
    except (OSError, ValueError, RuntimeError):
        return None
    is_usual = environment.get("HOME") == os.environ.get("HOME") and "GIT_CONFIG_GLOBAL" not in environment
    return own or (_by_condition(git) if is_usual else None)


def _by_condition(git: Path) -> Person | None:
    """Return the identity that git would use: the user's configuration may have parts for some repositories only."""
    import pygit2

    try:
        config = pygit2.Repository(str(git), pygit2.enums.RepositoryOpenFlag.NO_SEARCH).config
        return _person(_value(config, "user.name"), _value(config, "user.email"))
    except (pygit2.GitError, KeyError, ValueError, OSError):
        return None


def _identity(files: Iterable[Path]) -> Person | None:
    """Return the identity that configuration files have, the first one first."""
    import pygit2

    name = email = ""
    for file in files:
        try:
            config = pygit2.Config(str(file)) if file.is_file() else None
        except (pygit2.GitError, ValueError, OSError):
            continue
        if config is not None:
            name, email = name or _value(config, "user.name"), email or _value(config, "user.email")
    return _person(name, email)


def _person(name: str, email: str) -> Person | None:
    return Person(" ".join(name.split()), "".join(email.split())) if name.strip() or email.strip() else None


def _value(config: object, key: str) -> str:
    """Return a value of a configuration; empty if it has none, or one that cannot be read."""
    try:
        return str(config[key])  # type: ignore[index]  # pygit2 has no types for it
    except (KeyError, ValueError, OSError):
        return ""
