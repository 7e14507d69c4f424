"""The environment context: the folders, shell and network of the work; told whole at first, then only its changes.

One available environment is told flat (`<cwd>`, `<shell>`); several, or one that is not ready, as a list. A change
tells the environments it is about, and repeats the short facts (date, time zone, network, files) every time. A change
of the sub-agents alone is not worth a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from commonplace.context.filesystem import escape
from commonplace.context.injected_messages import InjectedText
from commonplace.context.world_state import Before, KnownSnapshot, SectionName, Unknown

_SCALARS: Final = ("current_date", "timezone", "filesystem")
"""Facts whose change is told; in the order they are told in."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """One place that commands run in."""

    cwd: str
    status: Literal["available", "starting"] = "available"
    shell: str | None = None
    is_primary: bool = True
    """Told only where there are several."""


class Environments(msgspec.Struct, frozen=True, kw_only=True):
    """The section `environments` of the world state."""

    environments: dict[str, Environment]
    current_date: str | None = None
    timezone: str | None = None
    filesystem: str | None = None
    """The element that `filesystem.element` makes."""

    @property
    def name(self) -> SectionName:
        return SectionName("environments", "environment_context")

    def snapshot(self) -> dict[str, Any]:
        """Return what is remembered."""
        several = len(self.environments) > 1
        places = {
            key: {
                "cwd": place.cwd,
                "status": place.status,
                "shell": place.shell,
                "is_primary": place.is_primary if several else None,
            }
            for key, place in self.environments.items()
        }
        found: dict[str, Any] = {
            "environments": {key: _set(fields) for key, fields in places.items()},
            "current_date": self.current_date,
            "timezone": self.timezone,
            "filesystem": self.filesystem,
        }
        return _set(found)

    def tell(self, before: Before) -> list[InjectedText]:
        """Return the whole context, or what changed of it."""
        if isinstance(before, KnownSnapshot):
            return self._changes(before.value)
        text = self._rendered(self.environments, (), several=len(self.environments) > 1)
        if isinstance(before, Unknown) and before.text.strip() == text.text:
            return []
        return [text]

    def _changes(self, value: Any) -> list[InjectedText]:
        old, now = _object(value), self.snapshot()
        known = {key: _object(fields) for key, fields in _object(old.get("environments")).items()}
        new = now["environments"]
        changed = {key: place for key, place in self.environments.items() if _differs(new[key], known.get(key))}
        gone = [key for key in known if key not in self.environments]
        if not changed and not gone and all(old.get(key) == now.get(key) for key in _SCALARS):
            return []
        return [self._rendered(changed, gone, several=max(len(known), len(self.environments)) > 1)]

    def _rendered(self, places: Mapping[str, Environment], gone: Sequence[str], *, several: bool) -> InjectedText:
        lines = [*_places(places, gone, several=several), *self._facts()]
        inside = "".join(f"  {line}\n" for line in lines)
        return InjectedText(
            "user",
            f"<environment_context>\n{inside}</environment_context>",
            "environments.environment_context",
        )

    def _facts(self) -> Iterator[str]:
        if self.current_date is not None:
            yield f"<current_date>{escape(self.current_date)}</current_date>"
        if self.timezone is not None:
            yield f"<timezone>{escape(self.timezone)}</timezone>"
        if self.filesystem is not None:
            yield self.filesystem


def _places(places: Mapping[str, Environment], gone: Sequence[str], *, several: bool) -> Iterator[str]:
    """Return the lines about environments; none where none changed."""
    only = next(iter(places.values())) if len(places) == 1 else None
    if only is not None and only.status == "available" and not gone and not several:
        yield from _facts_of(only)
        return
    if not places and not gone:
        return
    yield "<environments>"
    for key, place in places.items():
        primary = f' primary="{str(place.is_primary).lower()}"' if several else ""
        yield f'  <environment id="{escape(key)}"{primary}>'
        yield from (f"    {line}" for line in _facts_of(place))
        yield "  </environment>"
    yield from (f'  <environment id="{escape(key)}" status="unavailable" />' for key in gone)
    yield "</environments>"


def _facts_of(place: Environment) -> Iterator[str]:
    yield f"<cwd>{escape(place.cwd)}</cwd>"
    if place.shell is not None:
        yield f"<shell>{escape(place.shell)}</shell>"
    if place.status != "available":
        yield f"<status>{place.status}</status>"


def _differs(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> bool:
    """Say whether an environment must be told again; a shell that was not known is no news."""
    if old is None:
        return True
    # One that is alone says nothing about being the primary one, and is it.
    for key, usual in (("cwd", None), ("status", "available"), ("is_primary", True)):
        if new.get(key, usual) != old.get(key, usual):
            return True
    shells = {new.get("shell"), old.get("shell")} - {None}
    return len(shells) > 1


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _set(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
