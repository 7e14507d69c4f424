"""The names under which rows of a home, and of the memory that it shares, are stored.

A home without a root is known by its path, and its memory by the same. With a root (`memory_root`), several homes on
several hosts have one memory, which is known by the root; each home then has an id of its own in the file `home_id`,
because two hosts may have homes under the same path. A folder that several hosts see keeps one id.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from commonplace.config import Settings
from commonplace.errors import StateError
from commonplace.rollout.private_folders import make_private

FILE: Final = "home_id"
HOST_VARIABLE: Final = "COMMONPLACE_HOST"
"""Names the host where the name that the system has says nothing, as in a container."""


def folder(home: Path) -> str:
    """Return the resolved path of a home."""
    return str(home.resolve())


def home_key(settings: Settings, listed: Path | None = None) -> str:
    """Return the name of a home's rows: its path, or its id where it has a root.

    `listed` is a home whose sessions are listed, if that may be another program's.
    """
    place = folder(settings.home if listed is None else listed)
    if settings.memory_root is None:
        return place
    own = f"home:{_home_id(settings.home)}"
    return own if listed is None or place == folder(settings.home) else f"{own}:{place}"


def memory_key(settings: Settings) -> str:
    """Return the name of the rows of a home's memory: its root, else the home's path."""
    return folder(settings.home) if settings.memory_root is None else settings.memory_root


def host_name(environment: Mapping[str, str]) -> str:
    """Return the name of this host."""
    return environment.get(HOST_VARIABLE) or os.uname().nodename


def _home_id(home: Path) -> str:
    """Return the id of a home; it is made when it is first asked for (raises StateError)."""
    try:
        return _read_or_make(home / FILE)
    except OSError as error:
        reason = f"{home / FILE} cannot be made: {error.strerror}."
        raise StateError(reason, hint="Check the folder's permissions.") from error


def _read_or_make(file: Path) -> str:
    make_private(file.parent)
    if not file.exists():
        part = file.with_name(f"{FILE}.{os.urandom(4).hex()}")
        part.write_text(os.urandom(8).hex() + "\n", "ascii")
        part.chmod(0o600)
        try:
            os.link(part, file)  # whole or not at all, and the first one wins
        except FileExistsError:
            pass
        finally:
            part.unlink()
    return file.read_text("utf-8").strip()
