"""The decision table of the world state: what each section remembers, and when it speaks."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.context import instructions, permissions
from commonplace.context.injected_messages import InjectedText
from commonplace.context.instructions import Instructions
from commonplace.context.notices import notice
from commonplace.context.permissions import Permissions
from commonplace.context.sections import AgentsMd, Collaboration, ModelSection, Personality, StandingText
from commonplace.context.world_state import Absent, Before, KnownSnapshot, Section, SectionName, Unknown
from commonplace.protocol import fragments

EMPTY_MODE = "dfd53114f5f6f9f5fd7816370d0bf2847806246d"
"""What Codex notes for the default mode without instructions."""


def told(section: Section, before: Before) -> list[str]:
    return [text.text for text in section.tell(before)]


def tag(name: str, text: str) -> str:
    return f"<{name}>\n{text}\n</{name}>"


# --- Model.

SWITCH = tag("model_switch", notice("model_switch") + "\n\nBe brief.")


@pytest.mark.parametrize(
    ("section", "before", "speaks"),
    [
        (ModelSection("new", "Be brief.", "old"), Absent(), True),
        (ModelSection("new", "Be brief.", "old"), Unknown("<model_switch>?"), True),
        (ModelSection("new", "Be brief.", "new"), Absent(), False),
        (ModelSection("new", "Be brief.", None), Absent(), False),
        (ModelSection("new", "", "old"), Absent(), False),
        (ModelSection("new", "Be brief.", "new"), KnownSnapshot("old"), True),
        (ModelSection("new", "Be brief.", "old"), KnownSnapshot("new"), False),
        (ModelSection("new", "", None), KnownSnapshot("old"), False),
        (ModelSection("new", "Be brief.", "old"), KnownSnapshot({"model": "new", "more": 1}), False),
        (ModelSection("new", "Be brief.", "old"), KnownSnapshot(7), True),
    ],
)
def test_another_model_is_told_what_was_written_for_it(section: ModelSection, before: Before, speaks: bool) -> None:
    assert ([SWITCH] if speaks else []) == told(section, before)
    assert section.name.lapses
    assert "new" == section.snapshot()
    assert all(text.alone for text in section.tell(before))


# --- Personality.


def tone(name: str) -> str:
    return tag("personality_spec", notice(f"personality_{name}"))


@pytest.mark.parametrize(
    ("section", "before", "speaks"),
    [
        (Personality("m", "friendly"), KnownSnapshot({"model": "m", "personality": "pragmatic"}), True),
        (Personality("m", "friendly"), KnownSnapshot({"model": "m"}), True),
        (Personality("m", "none"), KnownSnapshot({"model": "m", "personality": "pragmatic"}), True),
        (Personality("m", "friendly"), KnownSnapshot({"model": "m", "personality": "friendly"}), False),
        (Personality("m", "friendly"), KnownSnapshot({"model": "other", "personality": "pragmatic"}), False),
        (Personality("m"), KnownSnapshot({"model": "m", "personality": "pragmatic"}), False),
        (Personality("m", "friendly", baked=True), KnownSnapshot({"model": "m", "personality": "pragmatic"}), True),
        (Personality("m", "friendly"), Absent(), True),
        (Personality("m", "friendly", baked=True), Absent(), False),
        (Personality("m", "none"), Absent(), False),
        (Personality("m"), Absent(), False),
        (Personality("m", "friendly"), Unknown(tone("friendly")), False),
        (Personality("m", "friendly"), Unknown(tone("pragmatic")), True),
    ],
)
def test_a_tone_is_told_where_it_changes_for_the_same_model(section: Personality, before: Before, speaks: bool) -> None:
    assert ([tone(str(section.personality))] if speaks else []) == told(section, before)
    assert not section.name.lapses


@pytest.mark.parametrize(
    ("section", "snapshot"),
    [
        (Personality("m", "friendly"), {"model": "m", "personality": "friendly"}),
        (Personality("m"), {"model": "m"}),
    ],
)
def test_a_tone_is_remembered_with_its_model(section: Personality, snapshot: dict[str, str]) -> None:
    assert snapshot == section.snapshot()


# --- AGENTS.md.

NEW = instructions.block("new", "/r").text
REPLACED = instructions.replacement_block("new", "/r").text
REMOVED = instructions.removal_notice().text


@pytest.mark.parametrize(
    ("text", "before", "expected"),
    [
        ("new", Absent(), [NEW]),
        ("", Absent(), []),
        ("new", KnownSnapshot({}), [NEW]),
        ("", KnownSnapshot({}), []),
        ("new", KnownSnapshot({"text": "new", "directory": "/r"}), []),
        ("new", KnownSnapshot({"text": "old", "directory": "/r"}), [REPLACED]),
        ("new", KnownSnapshot({"text": "new", "directory": "/other"}), [REPLACED]),
        ("new", KnownSnapshot({"text": "new"}), [REPLACED]),
        ("", KnownSnapshot({"text": "old", "directory": "/r"}), [REMOVED]),
        ("new", Unknown(NEW), []),
        ("new", Unknown(REPLACED), []),
        ("new", Unknown(instructions.block("old", "/r").text), [REPLACED]),
        ("", Unknown(NEW), [REMOVED]),
        ("", Unknown(REMOVED), []),
        ("new", Unknown(REMOVED), [NEW]),
    ],
)
def test_instructions_are_told_new_in_place_of_others_or_as_gone(
    text: str, before: Before, expected: list[str]
) -> None:
    section = AgentsMd(Instructions(text, "/r" if text else None))

    assert expected == told(section, before)
    assert not section.name.lapses


@pytest.mark.parametrize(
    ("found", "snapshot"),
    [
        (Instructions(), {}),
        (Instructions("t"), {"text": "t"}),
        (Instructions("t", "/r"), {"directory": "/r", "text": "t"}),
    ],
)
def test_instructions_are_remembered_word_for_word(found: Instructions, snapshot: dict[str, str]) -> None:
    assert snapshot == AgentsMd(found).snapshot()


# --- Permissions.

GIT, NPM = ("git", "commit"), ("npm", "test")
RULES = "<permissions instructions>\nRules.\n</permissions instructions>"
RULES_GIT = '<permissions instructions>\nRules.\n- ["git","commit"]\n</permissions instructions>'
SAVED = 'Approved command prefix saved:\n- ["npm","test"]'


def remembered(text: str, *prefixes: tuple[str, ...]) -> dict[str, Any]:
    return Permissions(text, prefixes).snapshot()


@pytest.mark.parametrize(
    ("prefixes", "before", "expected"),
    [
        ((), Absent(), [RULES]),
        ((GIT,), Absent(), [RULES_GIT]),
        ((), KnownSnapshot(remembered("Rules.")), []),
        ((GIT,), KnownSnapshot(remembered("Rules.", GIT)), []),
        ((GIT, NPM), KnownSnapshot(remembered("Rules.", GIT)), [SAVED]),
        ((), KnownSnapshot(remembered("Other.")), [RULES]),
        ((), KnownSnapshot(remembered("Rules.", GIT)), [RULES]),
        ((GIT,), KnownSnapshot(remembered("Rules.", NPM)), [RULES_GIT]),
        ((GIT,), KnownSnapshot(remembered("Other.", GIT)), [RULES_GIT]),
        ((GIT,), KnownSnapshot(remembered("Rules.")["instructions"]), []),
        ((), KnownSnapshot("0000"), [RULES]),
        ((), KnownSnapshot(7), [RULES]),
        ((), Unknown(RULES), []),
        ((), Unknown(RULES_GIT), [RULES]),
    ],
)
def test_permissions_are_told_whole_unless_only_commands_were_approved(
    prefixes: tuple[tuple[str, ...], ...], before: Before, expected: list[str]
) -> None:
    section = Permissions("Rules.", prefixes)

    assert expected == told(section, before)
    assert section.name.lapses


@pytest.mark.parametrize(
    ("prefixes", "lines", "whole"),
    [
        (tuple((f"c{number:03}",) for number in range(100)), 100, True),
        (tuple((f"c{number:03}",) for number in range(101)), 101, False),
        (tuple((str(number) + "x" * 985,) for number in range(5)), 5, True),
        (tuple((str(number) + "x" * 1_000,) for number in range(6)), 5, False),
    ],
)
def test_a_listing_of_commands_is_bounded(prefixes: tuple[tuple[str, ...], ...], lines: int, whole: bool) -> None:
    found = permissions.listing(prefixes).split("\n")

    assert lines == len(found)
    assert whole == (found[-1] != "- … (more were approved than are listed)")


# --- Collaboration mode.


def mode(body: str) -> str:
    return f"<collaboration_mode>{body}</collaboration_mode>"


PLAN = mode(notice("mode_plan"))
DEFAULT = mode(notice("mode_default"))
AS_PLAN = Collaboration("m", "plan").snapshot()
AS_DEFAULT = Collaboration("m").snapshot()


@pytest.mark.parametrize(
    ("section", "before", "expected"),
    [
        (Collaboration("m"), Absent(), []),
        (Collaboration("m", "plan"), Absent(), [PLAN]),
        (Collaboration("m", "execute"), Absent(), [mode(notice("mode_execute"))]),
        (Collaboration("m", "pair_programming"), Absent(), [mode(notice("mode_pair_programming"))]),
        (Collaboration("m", "default", "Own."), Absent(), [mode("Own.")]),
        (Collaboration("m", "plan", "Own."), KnownSnapshot(AS_PLAN), [mode("Own.")]),
        (Collaboration("m", "plan"), KnownSnapshot(AS_PLAN), []),
        (Collaboration("other", "plan"), KnownSnapshot(AS_PLAN), []),
        (Collaboration("m", "plan"), KnownSnapshot(AS_DEFAULT), [PLAN]),
        (Collaboration("m"), KnownSnapshot(AS_PLAN), [DEFAULT]),
        (Collaboration("m"), KnownSnapshot(AS_DEFAULT), []),
        (Collaboration("m", "execute"), KnownSnapshot(AS_DEFAULT), [mode(notice("mode_execute"))]),
        (Collaboration("m"), KnownSnapshot("plan"), [DEFAULT]),
        (Collaboration("m", "plan"), KnownSnapshot("plan"), []),
        (Collaboration("m"), KnownSnapshot("default"), []),
        (Collaboration("m"), KnownSnapshot({"mode": "plan", "model": "m"}), [DEFAULT]),
        (Collaboration("m", "plan"), KnownSnapshot({"mode": "plan", "model": "m"}), []),
        (Collaboration("m", "plan"), Unknown(PLAN), []),
        (Collaboration("m"), Unknown(PLAN), [DEFAULT]),
        (Collaboration("m"), Unknown(DEFAULT), []),
    ],
)
def test_a_mode_is_told_when_its_words_change_and_the_default_only_to_end_another(
    section: Collaboration, before: Before, expected: list[str]
) -> None:
    assert expected == told(section, before)
    assert section.name.lapses


@pytest.mark.parametrize(
    ("section", "name", "digest"),
    [
        (Collaboration("m"), "default", EMPTY_MODE),
        (Collaboration("m", "plan", "OWN PLAN TEXT"), "plan", "ab30deb22ab4e58f55485917880514e262a1511f"),
        (Collaboration("m", "execute", "X"), "default", "e8f887dda17a912657e7b9f2f1b283bcc6e7d9a2"),
    ],
)
def test_a_mode_is_remembered_as_codex_does(section: Collaboration, name: str, digest: str) -> None:
    assert {"mode": name, "model": "m", "instructions": digest} == section.snapshot()


@pytest.mark.parametrize(
    ("section", "name", "text"),
    [
        (Collaboration("m"), "default", None),
        (Collaboration("m", "plan"), "plan", None),
        (Collaboration("m", "plan", "Own."), "plan", "Own."),
        (Collaboration("m", "execute"), "default", notice("mode_execute")),
        (Collaboration("m", "pair_programming", "Own."), "default", "Own."),
    ],
)
def test_a_mode_that_codex_lacks_travels_as_its_text(section: Collaboration, name: str, text: str | None) -> None:
    settings = {"model": "m", "reasoning_effort": "low", "developer_instructions": text}

    assert {"mode": name, "settings": settings} == section.setting("low")


# --- Texts that hold for now.

SPEAK, WRITE = InjectedText("developer", "Speak.", "k"), InjectedText("developer", "Write.", "k")
ON = StandingText(name=SectionName("realtime", "realtime", lapses=True), remembered={"active": True}, text=SPEAK)
OFF = StandingText(name=ON.name, remembered={"active": False}, ending=WRITE)


@pytest.mark.parametrize(
    ("section", "before", "expected"),
    [
        (ON, Absent(), ["Speak."]),
        (OFF, Absent(), []),
        (ON, KnownSnapshot({"active": False}), ["Speak."]),
        (ON, KnownSnapshot({"active": True}), []),
        (OFF, KnownSnapshot({"active": True}), ["Write."]),
        (OFF, KnownSnapshot({"active": False}), []),
        (ON, Unknown("Speak."), []),
        (ON, Unknown("old"), ["Speak."]),
        (OFF, Unknown("Speak."), ["Write."]),
        (OFF, Unknown("Write."), []),
        (StandingText(name=ON.name), KnownSnapshot("old"), []),
        (StandingText(name=ON.name), Unknown("old"), []),
    ],
)
def test_a_standing_text_is_told_when_it_is_new_and_some_say_when_they_end(
    section: StandingText, before: Before, expected: list[str]
) -> None:
    assert expected == told(section, before)


@pytest.mark.parametrize(
    "section",
    [
        ModelSection("m", "I.", "old"),
        Personality("m", "friendly"),
        AgentsMd(Instructions("t")),
        Permissions("P."),
        Collaboration("m", "plan"),
    ],
    ids=lambda section: section.name.id,
)
def test_what_a_section_says_is_recognised_under_the_name_it_asks_the_history_for(section: Section) -> None:
    (text,) = section.tell(Absent())

    fragment = fragments.recognise(text.text, text.role)
    assert fragment is not None
    assert section.name.fragment == fragment.name
