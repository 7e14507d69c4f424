"""Whether a person trusts a folder: its `trust_level` in the table `[projects]`, or that of its repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

from commonplace.config import Settings
from commonplace.context.instructions import Trust
from commonplace.errors import BadInput, BadSetting

_LEVEL: Final = "trust_level"
_LEVELS: Final[tuple[Trust, ...]] = get_args(Trust)


def trust_of(settings: Settings, folder: Path) -> Trust | None:
    """Return what a person said about a folder, else about the repository that it is in; None if nothing.

    Raises:
        BadSetting: the settings name no such level.
    """
    places = [folder] if (root := repository_root(folder)) is None else [folder, root]
    for place in places:
        row = settings.projects.get(str(place))
        if row is not None:
            return _level(row, place)
    return None


def repository_root(folder: Path) -> Path | None:
    """Return the top of the git repository that a folder is in; None outside of one."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def check_repository(settings: Settings, folder: Path) -> None:
    """Refuse to work without a person at hand in a folder that is neither in a repository nor trusted.

    Raises:
        BadInput: it is neither.
    """
    place = folder.expanduser().absolute()
    if repository_root(place) is None and trust_of(settings, place) != "trusted":
        raise BadInput(
            f"{place} is in no git repository, and you have not said that you trust it.",
            hint="Add --skip-git-repo-check to work there all the same.",
        )


def _level(row: object, place: Path) -> Trust:
    level: Any = cast("Mapping[str, Any]", row).get(_LEVEL) if isinstance(row, Mapping) else row
    for known in _LEVELS:
        if level == known:
            return known
    raise BadSetting(
        f'projects."{place}".{_LEVEL} is {level!r}.', hint=f"Use one of {', '.join(_LEVELS)} in config.toml."
    )
