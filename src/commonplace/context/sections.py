"""The sections of the world state that are texts: model, personality, AGENTS.md, collaboration mode, and the rest.

Each follows one row of the decision table of the format: what its snapshot is, and when it speaks. `StandingText`
serves all rows that say "this text holds now".
"""

from __future__ import annotations

from typing import Any, Final, cast, get_args

import msgspec

from commonplace.config import Mode, Tone
from commonplace.context import instructions
from commonplace.context.injected_messages import InjectedText
from commonplace.context.instructions import Instructions
from commonplace.context.notices import notice
from commonplace.context.world_state import Absent, Before, KnownSnapshot, SectionName, Unknown


def _tagged(tag: str, text: str, kind: str, *, alone: bool = False) -> InjectedText:
    return InjectedText("developer", f"<{tag}>\n{text}\n</{tag}>", kind, alone)


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class ModelSection(msgspec.Struct, frozen=True):
    """The model that answers; another one than before is told so, with the instructions written for it."""

    slug: str
    instructions: str = ""
    previous: str | None = None
    """What the last turn ran with; asked where no snapshot says it."""

    @property
    def name(self) -> SectionName:
        return SectionName("model", "model_switch", lapses=True)

    def snapshot(self) -> str:
        """Return the model's name."""
        return self.slug

    def tell(self, before: Before) -> list[InjectedText]:
        """Return the notice of a switch."""
        last = self.previous
        if isinstance(before, KnownSnapshot):
            value = before.value
            last = value if isinstance(value, str) else _fields(value).get("model", last)
        if not last or last == self.slug or not self.instructions:
            return []
        text = f"{notice('model_switch')}\n\n{self.instructions}"
        return [_tagged("model_switch", text, "model_switch.instructions", alone=True)]


class Personality(msgspec.Struct, frozen=True):
    """The tone a person asked for."""

    model: str
    personality: Tone | None = None
    baked: bool = False
    """The base instructions already speak in this tone."""

    @property
    def name(self) -> SectionName:
        return SectionName("personality", "personality")

    def snapshot(self) -> dict[str, Any]:
        """Return the tone and for whom it was meant."""
        found = {"model": self.model, "personality": self.personality}
        return {key: value for key, value in found.items() if value is not None}

    def tell(self, before: Before) -> list[InjectedText]:
        """Return the tone if it is another one; a new model gets its tone with its instructions."""
        if self.personality is None:
            return []
        text = _tagged("personality_spec", notice(f"personality_{self.personality}"), "personality.instructions")
        match before:
            case KnownSnapshot(value=value):
                old = _fields(value)
                news = old.get("model") == self.model and old.get("personality") != self.personality
            case Unknown(text=last):
                news = last.strip() != text.text
            case Absent():
                news = not self.baked and self.personality != "none"
        return [text] if news else []


class AgentsMd(msgspec.Struct, frozen=True):
    """The standing instructions of files."""

    found: Instructions

    @property
    def name(self) -> SectionName:
        return SectionName("agents_md", "agents_md")

    def snapshot(self) -> dict[str, Any]:
        """Return text and directory, so that a change of either shows."""
        return self.found.snapshot()

    def tell(self, before: Before) -> list[InjectedText]:
        """Return the instructions: new, in place of others, or the word that they are gone."""
        text, directory = self.found.text, self.found.directory
        if isinstance(before, KnownSnapshot):
            old = _fields(before.value)
            if old == self.snapshot():
                return []
            had = bool(old.get("text"))
        elif isinstance(before, Unknown):
            had = before.text.strip() != instructions.removal_notice().text
            if text and before.text in (form(text, directory).text for form in (instructions.block, _replacing)):
                return []
        else:
            had = False
        if not text:
            return [instructions.removal_notice()] if had else []
        return [_replacing(text, directory) if had else instructions.block(text, directory)]


_replacing: Final = instructions.replacement_block


class Collaboration(msgspec.Struct, frozen=True):
    """How the person and the model work together. The default mode is told only where another one is to end."""

    model: str
    mode: Mode = "default"
    instructions: str | None = None
    """A client's own words in place of ours."""

    @property
    def name(self) -> SectionName:
        return SectionName("collaboration_mode", "collaboration_mode", lapses=True)

    @property
    def wire_mode(self) -> str:
        """The mode as ledgers say it: Codex knows two, and reads any other as the default one."""
        return "plan" if self.mode == "plan" else "default"

    def setting(self, effort: str | None = None) -> dict[str, Any]:
        """Return the mode as a `turn_context` holds it; a mode that Codex lacks travels as its text."""
        own = self.instructions or (None if self.mode == self.wire_mode else self._body())
        settings = {"model": self.model, "reasoning_effort": effort, "developer_instructions": own}
        return {"mode": self.wire_mode, "settings": settings}

    def snapshot(self) -> dict[str, Any]:
        """Return the mode, the model and the hash of the text."""
        return {"mode": self.wire_mode, "model": self.model, "instructions": _mode(self._body()).digest()}

    def tell(self, before: Before) -> list[InjectedText]:
        """Return the mode's text if it is another one than before."""
        body = self._body()
        text = _mode(body or notice("mode_default"))
        match before:
            case KnownSnapshot(value=str(mode)):  # the older form
                news = mode != self.wire_mode
            case KnownSnapshot(value=value):
                old, now = _fields(value), self.snapshot()
                key = "instructions" if "instructions" in old else "mode"
                news = old.get(key) != now[key]
            case Unknown(text=last):
                news = last.strip() != text.text
            case Absent():
                news = bool(body)
        return [text] if news else []

    def _body(self) -> str:
        return self.instructions or ("" if self.mode == "default" else notice(f"mode_{self.mode}"))


def mode_of(setting: Any) -> tuple[Mode, str | None]:
    """Return the mode that a `turn_context` holds, and a client's own words for it; the inverse of `setting`.

    One of our modes that Codex lacks is known by the heading of its text, so that later words for it change nothing.
    """
    fields = {"mode": setting} if isinstance(setting, str) else _fields(setting)
    mode: Mode = "plan" if fields.get("mode") == "plan" else "default"
    own: Any = _fields(fields.get("settings")).get("developer_instructions")
    if not isinstance(own, str) or not own.strip():
        return mode, None
    heading = own.split("\n", 1)[0].strip()
    known: tuple[Mode, ...] = get_args(Mode)
    for each in known:
        if heading == notice(f"mode_{each}").split("\n", 1)[0].strip():
            return each, None
    return mode, own


def _mode(body: str) -> InjectedText:
    text = f"<collaboration_mode>{body}</collaboration_mode>"
    return InjectedText("developer", text, "collaboration_mode.instructions")


class StandingText(msgspec.Struct, frozen=True, kw_only=True):
    """A text that holds for now: told when its snapshot is new, and again if it fell out of the history."""

    name: SectionName
    remembered: Any = None
    """The snapshot."""
    text: InjectedText | None = None
    ending: InjectedText | None = None
    """What is told when the text stops to hold."""

    def snapshot(self) -> Any:
        """Return what is remembered."""
        return self.remembered

    def tell(self, before: Before) -> list[InjectedText]:
        """Return the text, or its ending."""
        match before:
            case KnownSnapshot(value=value):
                told = None if value == self.remembered else (self.text or self.ending)
            case Unknown(text=last):
                other = self.text or self.ending
                told = None if other is None or last.strip() == other.text.strip() else other
            case Absent():
                told = self.text
        return [told] if told is not None else []
