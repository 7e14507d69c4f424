"""Which texts nobody typed: a row for every matcher, and near misses that must stay a person's words."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from commonplace.protocol import fragments, items
from ledgers import Json, message, user

HOOK = '<hook_prompt hook_run_id="run-1">go on</hook_prompt>'

RECOGNISED = [
    ("agents_md", "# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>"),
    ("agents_md", "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>"),
    ("agents_md", "# agents.MD INSTRUCTIONS for /repo\n\n<instructions>\nx\n</instructions>"),
    ("environment_context", "<environment_context>\n  <cwd>/</cwd>\n</environment_context>"),
    ("environment_context", "\n <ENVIRONMENT_CONTEXT>x</Environment_Context>\t\n"),
    ("additional_context", "<external_ci>red</external_ci>"),
    ("additional_context", "  <external_a.b-c>x > y</external_a.b-c>\n"),
    ("skill", "<skill>\n<name>x</name>\n</skill>"),
    ("skill", "<Skill>x</SKILL>"),
    ("user_shell_command", "<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>"),
    ("turn_aborted", "<turn_aborted>\nx\n</turn_aborted>"),
    ("subagent_notification", '<subagent_notification>\n{"agent_path":"a"}\n</subagent_notification>'),
    ("internal_context", '<codex_internal_context source="goal_2">x</codex_internal_context>'),
    ("goal_context", "<goal_context>x</goal_context>"),
    ("recommended_plugins", "<recommended_plugins>x</recommended_plugins>"),
    ("old_warning", "Warning: The maximum number of unified exec processes you can keep open is 60"),
    ("old_warning", "Warning: apply_patch was requested via exec_command. Use the tool instead."),
    ("old_warning", "Warning: Your account was flagged for potentially high-risk cyber activity"),
    ("hook_prompt", HOOK),
    ("hook_prompt", "<hook_prompt kind='stop' hook_run_id='r'>x</hook_prompt>"),
    ("user_instructions", "<user_instructions>\nx\n</user_instructions>"),
]

NEAR_MISSES = [
    "",
    "# AGENTS.md instructions for /repo",
    "what do the # AGENTS.md instructions say? </INSTRUCTIONS>",
    "<environment_context>x",
    "x</environment_context>",
    "<environment_context>x</environment_context> and now my question",
    "look at <environment_context>x</environment_context>",
    "<external_api>",
    "<external_a>x</external_b>",
    "<EXTERNAL_a>x</EXTERNAL_a>",
    "<external_a>x</EXTERNAL_a>",
    "<external_a x</external_a",
    "<internal_a>x</internal_a>",
    "<skill>how do I write one?",
    "<skills>x</skills>",
    '<codex_internal_context source="Goal">x</codex_internal_context>',
    '<codex_internal_context source="2goal">x</codex_internal_context>',
    '<codex_internal_context source="">x</codex_internal_context>',
    '<CODEX_INTERNAL_CONTEXT source="goal">x</CODEX_INTERNAL_CONTEXT>',
    "<codex_internal_context>x</codex_internal_context>",
    '<hook_prompt hook_run_id=" ">x</hook_prompt>',
    '<hook_prompt hook_run_id="">x</hook_prompt>',
    "<hook_prompt>x</hook_prompt>",
    HOOK.removesuffix("</hook_prompt>"),
    f"why did I get {HOOK}",
    "Warning: I am angry",
    "The maximum number of unified exec processes",
    "<permissions instructions>x</permissions instructions>",
    "<collaboration_mode>x</collaboration_mode>",
    "# Context from my IDE setup:\n\n## Open tabs",
    '<image name=[Image #1] path="/a.png">',
    "<div>html</div>",
]

DEVELOPER_OPENINGS = [
    "<permissions instructions>",
    "Approved command prefix saved:",
    "<model_switch>",
    "<managed_developer_instructions>",
    "<apps_instructions>",
    "<collaboration_mode>",
    "<multi_agent_role>",
    "<multi_agent_mode>",
    "<environments_instructions>",
    "<git_attribution>",
    "<plugins_instructions>",
    "<realtime_conversation>",
    "<skills_instructions>",
    "<tools>",
    "<persistent_mode>",
    "<personality_spec>",
    "<token_budget>",
    "<context_window>",
    "<context_window_guidance>",
    "<rollout_budget>",
]


def seen(item: Json) -> items.Message:
    found = items.view(json.dumps(item).encode())
    assert isinstance(found, items.Message)
    return found


def parts(*texts: str | Json, kinds: list[str] | None = None, role: str = "user") -> items.Message:
    content = [{"type": "input_text", "text": text} if isinstance(text, str) else text for text in texts]
    noted = {items.PASSTHROUGH: {"content_item_kinds": kinds}} if kinds is not None else {}
    return seen({"type": "message", "role": role, "content": content, **noted})


@pytest.mark.parametrize(("name", "text"), RECOGNISED)
def test_an_injected_text_is_recognised(name: str, text: str) -> None:
    found = fragments.recognise(text, "user")

    assert found is not None
    assert name == found.name


def test_every_kind_of_injected_user_text_has_a_row_here() -> None:
    assert {name for name, _ in RECOGNISED} == {fragment.name for fragment in fragments.USER_FRAGMENTS}


@pytest.mark.parametrize("text", NEAR_MISSES)
def test_a_person_who_writes_something_similar_stays_a_person(text: str) -> None:
    assert fragments.recognise(text, "user") is None


@pytest.mark.parametrize("opening", DEVELOPER_OPENINGS)
@pytest.mark.parametrize("change", [str, str.upper, "\n  {}".format], ids=["as is", "upper", "indented"])
def test_a_developer_text_is_recognised_by_its_opening(opening: str, change: Any) -> None:
    assert fragments.recognise(change(opening) + "\nanything, never closed", "developer") is not None
    assert fragments.recognise("see " + opening, "developer") is None


def test_every_developer_opening_has_a_row_here() -> None:
    assert DEVELOPER_OPENINGS == [fragment.start for fragment in fragments.DEVELOPER_FRAGMENTS]


@pytest.mark.parametrize(
    "text",
    ["## Memory\n\nx", "You are `/root`, an agent", "<ci>red</ci>", "<image_resize_notice>x", "", RECOGNISED[3][1]],
)
def test_other_developer_texts_are_free(text: str) -> None:
    assert fragments.recognise(text, "developer") is None


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_no_text_of_another_role_is_injected(role: str) -> None:
    assert [] == [text for _, text in RECOGNISED if fragments.recognise(text, role)]


@pytest.mark.parametrize(
    ("texts", "contextual"),
    [
        (["hello"], False),
        (["hello", RECOGNISED[3][1]], True),
        ([RECOGNISED[3][1], "hello"], True),
        ([{"type": "input_image", "image_url": "data:,"}], False),
        ([""], False),
        ([], False),
    ],
)
def test_one_injected_part_makes_a_message_contextual(texts: list[str | Json], contextual: bool) -> None:
    assert contextual == fragments.is_contextual(parts(*texts))


def test_kinds_that_a_writer_noted_do_not_make_a_message_contextual() -> None:
    assert not fragments.is_contextual(parts("hello", kinds=["environments.environment_context"]))
    assert fragments.is_contextual(parts(RECOGNISED[3][1], kinds=["user.text"]))


# --- Summaries.

OPENING = "p" * 399


@pytest.fixture
def codex_opening(monkeypatch: pytest.MonkeyPatch) -> str:
    """A stand-in for the vendor's text, which only its hash is kept of."""
    monkeypatch.setattr(fragments, "_CODEX_PREFIX_SHA256", hashlib.sha256(OPENING.encode()).hexdigest())
    return OPENING


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{OPENING}\nwhat happened", True),
        (f"{OPENING}\n", True),
        (OPENING, False),
        (f"{OPENING} what happened", False),
        (f" {OPENING}\nwhat", False),
        (f"{OPENING[1:]}\nwhat", False),
        ("é" + OPENING[2:] + "\nwhat", False),
        (f"{fragments.OWN_SUMMARY_PREFIX}\nwhat happened", True),
        (fragments.OWN_SUMMARY_PREFIX, False),
        (f"I wrote: {fragments.OWN_SUMMARY_PREFIX}\n", False),
        ("", False),
    ],
    ids=lambda value: str(value)[:12],
)
@pytest.mark.usefixtures("codex_opening")
def test_a_summary_is_known_by_its_opening(text: str, expected: bool) -> None:
    assert expected == fragments.is_summary(text)
    assert expected == fragments.is_summary_message(parts(text))


def test_the_opening_of_real_codex_summaries_is_not_in_the_source() -> None:
    assert not fragments.is_summary(f"{OPENING}\nwhat happened")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (parts("any words", kinds=["compaction.summary"]), True),
        (parts("any words", kinds=["user.text"]), False),
        (parts("any words"), False),
        (parts(kinds=["compaction.summary"]), False),
        (parts(f"{fragments.OWN_SUMMARY_PREFIX}\nx", role="assistant"), False),
        (parts({"type": "input_image", "image_url": "data:,"}), False),
    ],
    ids=["noted", "noted otherwise", "not noted", "empty", "another role", "an image"],
)
def test_a_summary_message_is_known_by_its_writers_note(found: items.Message, expected: bool) -> None:
    assert expected == fragments.is_summary_message(found)


# --- What the person said.

IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (parts("  hello \n"), "hello"),
        (parts("one", "two"), "one\ntwo"),
        (parts("one", "", IMAGE, "two"), "one\ntwo"),
        (parts(IMAGE), ""),
        (parts(RECOGNISED[3][1]), ""),
        (parts("hello", RECOGNISED[3][1]), ""),
        (parts("hello", role="developer"), ""),
        (parts("hello", role="assistant"), ""),
        (parts(f"{fragments.OWN_SUMMARY_PREFIX}\nx"), ""),
        # Noted kinds are believed before the text, part by part.
        (parts("hello", "<cwd>", kinds=["user.text", "environments.environment_context"]), "hello"),
        (parts(RECOGNISED[3][1], kinds=["user.text"]), RECOGNISED[3][1]),
        (parts("hello", kinds=["environments.environment_context"]), ""),
        (parts("hello", kinds=["compaction.summary"]), ""),
        (parts("hello", IMAGE, kinds=["user.text", "user.image"]), "hello"),
        # Notes that do not fit, or say nothing, are not.
        (parts("hello", "there", kinds=["environments.environment_context"]), "hello\nthere"),
        (parts("hello", kinds=["unknown"]), "hello"),
        (parts("hello", kinds=[]), "hello"),
        (parts(RECOGNISED[3][1], kinds=["unknown"]), ""),
        # Labels around media, and what an editor puts above a request.
        (parts('<image name=[Image #1] path="/a b.png">', IMAGE, "</image>", "what is it?"), "what is it?"),
        (parts("<image name=[Image #1]>", IMAGE, "</image>"), ""),
        (parts("<audio name=[Audio #2]>", "</audio>", "listen"), "listen"),
        (parts("<image> is a tag"), "<image> is a tag"),
        (parts("# Context from my IDE setup:\n\n## My request for Codex:\nfix it\n"), "fix it"),
        (parts("## My request for Codex:"), ""),
    ],
)
def test_own_words_are_what_the_person_typed(found: items.Message, words: str) -> None:
    assert words == fragments.own_words(found)


def test_only_what_a_person_chose_may_be_learnt_from() -> None:
    learnable = {fragment.name for fragment in fragments.REGISTRY if fragment.learnable}
    personal = {fragment.name for fragment in fragments.REGISTRY if fragment.personal}

    assert {"user_shell_command"} == learnable == personal


def test_names_in_the_registry_are_unique() -> None:
    names = [fragment.name for fragment in fragments.REGISTRY]

    assert sorted(set(names)) == sorted(names)
    assert not fragments.Fragment("nothing", "user", "codex").matches("")
    assert fragments.Fragment("exact", "user", "codex", "<A>", "</A>", exact=True).matches("<A>x</A>")
    assert not fragments.Fragment("exact", "user", "codex", "<A>", "</A>", exact=True).matches("<a>x</a>")


def test_builders_of_these_tests_write_what_codex_writes() -> None:
    assert "hello" == fragments.own_words(seen(user("hello")))
    assert "" == fragments.own_words(seen(message("developer", "hello")))
