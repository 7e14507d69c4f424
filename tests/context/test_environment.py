"""The environment context: its form, and which changes are worth telling."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.context import filesystem, world_state
from commonplace.context.environment import Environment, Environments
from commonplace.context.filesystem import FilesystemProfile, FilesystemRule
from commonplace.context.world_state import Absent, KnownSnapshot, Unknown
from commonplace.protocol import fragments

HERE = Environment(cwd="/repo/demo", shell="bash")
THERE = Environment(cwd="/srv", shell="zsh", is_primary=False)


def one(place: Environment = HERE, **facts: Any) -> Environments:
    return Environments(environments={"local": place}, **facts)


def two(**facts: Any) -> Environments:
    return Environments(environments={"local": HERE, "far": THERE}, **facts)


def text(section: Environments, before: world_state.Before | None = None) -> str | None:
    told = section.tell(before or Absent())
    return told[0].text if told else None


def wrapped(*lines: str) -> str:
    return "\n".join(["<environment_context>", *(f"  {line}" for line in lines), "</environment_context>"])


# --- The whole.

LIST = (
    "<environments>",
    '  <environment id="local" primary="true">',
    "    <cwd>/repo/demo</cwd>",
    "    <shell>bash</shell>",
    "  </environment>",
    '  <environment id="far" primary="false">',
    "    <cwd>/srv</cwd>",
    "    <shell>zsh</shell>",
    "  </environment>",
    "</environments>",
)


@pytest.mark.parametrize(
    ("section", "lines"),
    [
        (one(), ["<cwd>/repo/demo</cwd>", "<shell>bash</shell>"]),
        (one(Environment(cwd="/a")), ["<cwd>/a</cwd>"]),
        (one(Environment(cwd="/a&<b>\"'")), ["<cwd>/a&amp;&lt;b&gt;&quot;&apos;</cwd>"]),
        (
            one(current_date="2026-08-20", timezone="Europe/Oslo"),
            [
                "<cwd>/repo/demo</cwd>",
                "<shell>bash</shell>",
                "<current_date>2026-08-20</current_date>",
                "<timezone>Europe/Oslo</timezone>",
            ],
        ),
        (one(Environment(cwd="/a"), filesystem="<filesystem/>"), ["<cwd>/a</cwd>", "<filesystem/>"]),
        (two(), LIST),
        (
            one(Environment(cwd="/a", status="starting")),
            [
                "<environments>",
                '  <environment id="local">',
                "    <cwd>/a</cwd>",
                "    <status>starting</status>",
                "  </environment>",
                "</environments>",
            ],
        ),
        (Environments(environments={}, current_date="d"), ["<current_date>d</current_date>"]),
    ],
)
def test_a_thread_is_told_its_whole_environment_at_first(section: Environments, lines: list[str]) -> None:
    (told,) = section.tell(Absent())

    assert wrapped(*lines) == told.text
    assert ("user", "environments.environment_context") == (told.role, told.kind)
    fragment = fragments.recognise(told.text, "user")
    assert fragment is not None
    assert "environment_context" == fragment.name


# --- What changed.

FACTS: dict[str, Any] = {"current_date": "d", "timezone": "z", "filesystem": "<f/>"}


def facts(**other: Any) -> dict[str, Any]:
    return {**FACTS, **other}


REPEATED = ("<current_date>d</current_date>", "<timezone>z</timezone>", "<f/>")


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (one(**FACTS), one(**FACTS), None),
        (
            one(**FACTS),
            one(Environment(cwd="/b", shell="bash"), **FACTS),
            ("<cwd>/b</cwd>", "<shell>bash</shell>", *REPEATED),
        ),
        (one(**FACTS), one(**facts(current_date="e")), ("<current_date>e</current_date>", *REPEATED[1:])),
        (
            one(**FACTS),
            one(**facts(timezone="y")),
            (REPEATED[0], "<timezone>y</timezone>", REPEATED[2]),
        ),
        (one(**FACTS), one(**facts(filesystem="<g/>")), (*REPEATED[:2], "<g/>")),
        (one(**FACTS), one(**facts(filesystem=None)), REPEATED[:2]),
        (one(), one(Environment(cwd="/repo/demo", shell="zsh")), ("<cwd>/repo/demo</cwd>", "<shell>zsh</shell>")),
        (one(), one(Environment(cwd="/repo/demo")), None),
        (one(Environment(cwd="/repo/demo")), one(), None),
        (one(Environment(cwd="/repo/demo", shell="bash", status="starting")), one(), LIST[2:4]),
        (one(), two(), ("<environments>", *LIST[5:])),
        (
            two(),
            one(),
            ("<environments>", '  <environment id="far" status="unavailable" />', "</environments>"),
        ),
        (
            two(),
            Environments(environments={"local": HERE, "far": Environment(cwd="/new", is_primary=False)}),
            (
                "<environments>",
                '  <environment id="far" primary="false">',
                "    <cwd>/new</cwd>",
                "  </environment>",
                "</environments>",
            ),
        ),
        (
            two(),
            Environments(
                environments={
                    "local": msgspec.structs.replace(HERE, is_primary=False),
                    "far": msgspec.structs.replace(THERE, is_primary=True),
                }
            ),
            (
                "<environments>",
                '  <environment id="local" primary="false">',
                *LIST[2:5],
                '  <environment id="far" primary="true">',
                *LIST[6:],
            ),
        ),
        (one(), one(msgspec.structs.replace(HERE, is_primary=False)), None),
    ],
)
def test_only_changed_environments_are_told_and_short_facts_are_repeated(
    before: Environments, after: Environments, lines: tuple[str, ...] | None
) -> None:
    expected = (
        None if lines is None else wrapped(*(line.removeprefix("    ") if len(lines) == 2 else line for line in lines))
    )

    assert expected == text(after, KnownSnapshot(_stored(before.snapshot())))


def _stored(snapshot: Any) -> Any:
    """As a ledger gives it back."""
    return msgspec.json.decode(msgspec.json.encode(snapshot))


@pytest.mark.parametrize(
    ("before", "silent"),
    [(text(one()), True), (f"\n{text(one())}\n", True), (text(two()), False), ("<environment_context>?", False)],
)
def test_without_a_snapshot_the_history_is_asked(before: str, silent: bool) -> None:
    assert (None if silent else text(one())) == text(one(), Unknown(before))


@pytest.mark.parametrize("value", [None, 7, "text", [], {"environments": 3}, {"environments": {"local": None}}])
def test_a_snapshot_that_cannot_be_read_means_everything_is_told(value: Any) -> None:
    assert text(one()) == text(one(), KnownSnapshot(value))


def test_the_snapshot_has_the_form_of_the_recordings() -> None:
    section = one(current_date="2026-11-15", timezone="Etc/UTC", filesystem="<filesystem/>")

    assert {
        "environments": {"local": {"cwd": "/repo/demo", "status": "available", "shell": "bash"}},
        "current_date": "2026-11-15",
        "timezone": "Etc/UTC",
        "filesystem": "<filesystem/>",
    } == section.snapshot()


PLACES = st.builds(
    Environment,
    cwd=st.sampled_from(["/a", "/b"]),
    status=st.sampled_from(["available", "starting"]),
    shell=st.sampled_from([None, "bash", "zsh"]),
    is_primary=st.booleans(),
)
SECTIONS = st.builds(
    Environments,
    environments=st.dictionaries(st.sampled_from(["x", "y", "z"]), PLACES, max_size=3),
    current_date=st.sampled_from([None, "d", "e"]),
    timezone=st.sampled_from([None, "z"]),
    filesystem=st.sampled_from([None, "<f/>"]),
)


@given(before=SECTIONS, after=SECTIONS)
def test_what_is_not_told_again_is_what_the_model_knows(before: Environments, after: Environments) -> None:
    told = after.tell(KnownSnapshot(_stored(before.snapshot())))

    assert [] == after.tell(KnownSnapshot(_stored(after.snapshot())))
    old, new = before.snapshot(), after.snapshot()
    for key, place in new["environments"].items():
        was = old["environments"].get(key)
        if was is None or (was["cwd"], was["status"]) != (place["cwd"], place["status"]):
            assert f"<cwd>{place['cwd']}</cwd>" in told[0].text
    for key in old["environments"].keys() - new["environments"].keys():
        assert f'<environment id="{key}" status="unavailable" />' in told[0].text
    for key in ("current_date", "timezone", "filesystem"):
        if old.get(key) != new.get(key):
            assert told


# --- The files.

RESTRICTED = '<permission_profile type="managed"><file_system type="restricted">'
ROOT = FilesystemRule(access="read", target="special", value=":root")


@pytest.mark.parametrize(
    ("roots", "profile", "expected"),
    [
        (
            ["/r"],
            FilesystemProfile("disabled"),
            '<permission_profile type="disabled"><file_system type="unrestricted" />',
        ),
        (["/r"], FilesystemProfile("external"), '<permission_profile type="external"><file_system type="external" />'),
        (
            ["/r"],
            FilesystemProfile("managed"),
            '<permission_profile type="managed"><file_system type="unrestricted" />',
        ),
        (
            ["/r"],
            FilesystemProfile("managed", (ROOT,)),
            RESTRICTED + '<entry access="read"><special>:root</special></entry></file_system>',
        ),
        (
            ["/r"],
            FilesystemProfile(
                "managed",
                (
                    FilesystemRule(access="write", target="path", value="/x&y"),
                    FilesystemRule(access="deny", target="glob", value="**/.env"),
                    FilesystemRule(access="write", target="path", value="/x&y"),
                ),
            ),
            RESTRICTED + '<entry access="write"><path>/x&amp;y</path></entry>'
            '<entry access="deny" escalatable="false"><glob>**/.env</glob></entry></file_system>',
        ),
    ],
)
def test_files_are_told_by_root_and_profile(roots: list[str], profile: FilesystemProfile, expected: str) -> None:
    inside = f"<workspace_roots><root>/r</root></workspace_roots>{expected}</permission_profile>"

    assert f"<filesystem>{inside}</filesystem>" == filesystem.element(roots, profile)
