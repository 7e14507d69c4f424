"""What a person may change from one turn to the next: the settings of a turn, checked, as a new profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict, get_args

import msgspec

from commonplace.agent.folder_trust import trust_of
from commonplace.agent.profile import GranularApproval, Profile
from commonplace.config import Approval, Mode, Sandbox, Tone
from commonplace.errors import BadInput
from commonplace.models.providers import choose, key_variables
from commonplace.rollout import decisions
from commonplace.state.home import Home


class TurnChanges(TypedDict, total=False):
    """The settings that a turn may change, as keyword arguments; None leaves one as it is.

    They hold from that turn on, as in Codex.
    """

    model: str | None
    mode: Mode | None
    mode_words: str | None
    """A client's own words about the mode, in place of ours; a mode without them has ours."""
    effort: str | None
    personality: Tone | None
    sandbox: Sandbox | None
    approval: Approval | None
    granular: GranularApproval | None
    """Which questions are asked; an approval without it asks all."""
    cwd: str | Path | None
    roots: tuple[Path, ...] | None
    """Folders besides the working folder that belong to the work."""
    network: bool | None
    """Commands in the sandbox may use the network."""
    summary: str | None
    """How the model's reasoning is summed up."""


_VALUES: dict[str, tuple[str, ...]] = {
    "mode": get_args(Mode),
    "personality": get_args(Tone),
    "sandbox": get_args(Sandbox),
    "approval": get_args(Approval),
}


def changed(home: Home, profile: Profile, changes: TurnChanges) -> Profile:
    """Return a profile with changes.

    Raises:
        BadInput: there is no such field or value, or no such folder.
        BadSetting: there is no such model.
    """
    given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    for name, value in given.items():
        _check(name, value)
    if (folder := given.pop("cwd", None)) is not None:
        given |= _in_folder(home, profile, folder)
    if (model := given.pop("model", None)) is not None:
        choice = choose(home.settings, model)
        withheld = (*profile.withheld, *key_variables(home.settings, choice))
        given |= {"choice": choice, "withheld": tuple(dict.fromkeys(withheld))}
    if "granular" in given:
        given["approval"] = "on-request"
    elif "approval" in given:
        given["granular"] = None
    if "mode" in given:
        given.setdefault("mode_words", None)
    return msgspec.structs.replace(profile, **given)


def _check(name: str, value: Any) -> None:
    if name not in TurnChanges.__annotations__:
        known = ", ".join(TurnChanges.__annotations__)
        raise BadInput(f"A turn has no setting {name!r}.", hint=f"Use {known}.")
    if (values := _VALUES.get(name)) is not None and value not in values:
        raise BadInput(f"{value!r} is no {name}.", hint=f"Use {', '.join(values)}.")


def _in_folder(home: Home, profile: Profile, folder: str | Path) -> dict[str, Any]:
    """Return the settings that depend on the folder; a relative one is meant from the present folder."""
    cwd = profile.cwd / Path(folder).expanduser()
    if not cwd.is_dir():
        raise BadInput(f"There is no folder {cwd}.", hint="Give the folder to work in.")
    cwd = Path(cwd.absolute() if ".." not in cwd.parts else cwd.resolve())
    allowed = tuple(decisions.allowed_commands(home.path, str(cwd)))
    return {"cwd": cwd, "trust": trust_of(home.settings, cwd), "allowed": allowed}
