"""The rules about sub-agents that need no session: statuses, limits, names, roles, inputs, settings, forks, notices."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scripted_session import choice

from commonplace import config
from commonplace.agent import agent_identity, events
from commonplace.agent.agent_identity import AgentIdentity
from commonplace.agent.profile import Profile
from commonplace.agent.subagents import fork_filter, inheritance, limits, nicknames, notices, status
from commonplace.agent.subagents.arguments import InputItem, checked_id, read_input
from commonplace.agent.subagents.inheritance import Wish
from commonplace.agent.subagents.nicknames import Nicknames
from commonplace.agent.subagents.roles import Roles, RoleSettings, read_settings
from commonplace.agent.subagents.status import AgentStatus
from commonplace.config import AgentSettings
from commonplace.context.history_items import entry_of_item
from commonplace.errors import ToolError
from commonplace.protocol import fragments, items, rollout
from commonplace.protocol.rollout import Line

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NAME = "01a1dec8-ddea-74b2-8642-475be21bb88c"
FAILED = events.Problem("refused", "It was refused.", "Ask otherwise.")
Json = dict[str, Any]


@pytest.mark.parametrize(
    ("event", "wire", "is_final"),
    [
        (events.TurnStarted(turn_id="t"), "running", False),
        (events.TurnCompleted(turn_id="t", message="Done."), {"completed": "Done."}, True),
        (events.TurnCompleted(turn_id="t", message=None), {"completed": None}, True),
        (events.TurnAborted(turn_id="t"), "interrupted", False),
        (events.TurnAborted(turn_id="t", reason="budget_limited"), "interrupted", False),
        (events.TurnAborted(turn_id="t", reason="replaced"), {"errored": "replaced"}, True),
        (events.TurnFailed(turn_id="t", error=FAILED), {"errored": "It was refused. Ask otherwise."}, True),
        (events.Warned(turn_id="t", message="Hm."), None, None),
    ],
)
def test_a_status_follows_from_events(event: events.Event, wire: Any, is_final: bool | None) -> None:
    found = status.after(event)

    assert (found and found.wire(), found and found.is_final) == (wire, is_final)


@pytest.mark.parametrize(
    ("kind", "is_final"),
    [("pending_init", False), ("running", False), ("interrupted", False), ("shutdown", True), ("not_found", True)],
)
def test_what_goes_on_is_not_final(kind: Any, is_final: bool) -> None:
    assert AgentStatus(kind).is_final is is_final
    assert AgentStatus(kind).wire() == kind


@pytest.mark.parametrize(
    ("payloads", "wire"),
    [
        ([], "pending_init"),
        ([{"type": "task_started", "turn_id": "t"}], "interrupted"),
        ([{"type": "task_complete", "turn_id": "t", "last_agent_message": "7."}], {"completed": "7."}),
        ([{"type": "task_complete", "turn_id": "t", "error": {"message": "No."}}], {"errored": "No."}),
        ([{"type": "turn_aborted", "turn_id": "t", "reason": "interrupted"}], "interrupted"),
        (
            [{"type": "task_complete", "turn_id": "t", "last_agent_message": "1"}, {"type": "task_started"}],
            "interrupted",
        ),
    ],
)
def test_a_stored_agent_is_as_its_last_turn_left_it(payloads: list[Json], wire: Any) -> None:
    lines = [Line(type="event_msg", payload=msgspec.Raw(msgspec.json.encode(each))) for each in payloads]

    assert status.of_ledger(reversed(lines)).wire() == wire


@pytest.mark.parametrize(
    ("given", "seconds"), [(None, 30), (1, 10), (10_000, 10), (45_500, 45.5), (3_600_000, 3600), (9_999_999, 3600)]
)
def test_a_wait_is_kept_within_its_limits(given: int | None, seconds: float) -> None:
    assert limits.wait_seconds(given) == seconds


@pytest.mark.parametrize("given", [0, -1])
def test_a_wait_of_no_time_is_refused(given: int) -> None:
    with pytest.raises(ToolError, match="greater than zero"):
        limits.wait_seconds(given)


@pytest.mark.parametrize(
    ("settings", "depth", "allowed"),
    [
        (AgentSettings(), 0, True),
        (AgentSettings(), 1, False),
        (AgentSettings(max_depth=2), 1, True),
        (AgentSettings(max_depth=2), 2, False),
        (AgentSettings(max_depth=0), 0, False),
        (AgentSettings(enabled=False), 0, False),
    ],
)
def test_an_agent_starts_others_only_where_they_may_stand(settings: AgentSettings, depth: int, allowed: bool) -> None:
    assert limits.may_start(settings, depth) is allowed


def test_depth_and_number_are_limited() -> None:
    limits.check_depth(AgentSettings(), 1)
    limits.check_room(AgentSettings(), 5)
    with pytest.raises(ToolError, match="depth limit reached"):
        limits.check_depth(AgentSettings(), 2)
    with pytest.raises(ToolError, match="agent thread limit reached"):
        limits.check_room(AgentSettings(), 6)


# --- Names


def test_a_name_is_given_out_once_and_then_with_a_number() -> None:
    names = Nicknames(lambda free: free[0])
    own = ("Ada", "Bo")

    assert [names.draw(own) for _ in range(5)] == ["Ada", "Bo", "Ada the 2nd", "Bo the 2nd", "Ada the 3rd"]


def test_a_name_that_a_stored_agent_has_is_not_given_out() -> None:
    names = Nicknames(lambda free: free[0])
    names.keep("Ada")

    assert names.draw(("Ada", "Bo")) == "Bo"


def test_the_list_has_about_a_hundred_names_and_none_twice() -> None:
    found = nicknames.scholars()

    assert len(found) == len(set(found)) >= 100
    assert all(name.isalpha() for name in found)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (112, "112th"),
    ],
)
def test_ranks_are_written_as_words_end(number: int, text: str) -> None:
    assert nicknames.ordinal(number) == text


# --- Input


@pytest.mark.parametrize(
    ("message", "given", "problem"),
    [
        ("a", [InputItem(type="text", text="b")], "not both"),
        (None, None, "one of message and items"),
        (" \n", None, "empty message"),
        (None, [], "must not be empty"),
        (None, [InputItem(type="text", text=" ")], "nothing to do"),
        (None, [InputItem(type="text")], "lacks a field"),
        (None, [InputItem(type="image", image_url="https://example.org/a.png")], "inline data"),
        (None, [InputItem(type="local_audio", path="a.wav")], "no audio"),
        (None, [InputItem(type="skill", name="deploy")], "lacks a field"),
        (None, [InputItem(type="local_image", path="none.png")], "picture"),
    ],
)
def test_an_input_that_cannot_be_used_is_refused(
    tmp_path: Path, message: str | None, given: list[InputItem] | None, problem: str
) -> None:
    with pytest.raises(ToolError, match=problem):
        read_input(message, given, tmp_path)


def test_items_become_the_parts_of_an_input(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(base64.b64decode(DOT))
    url = f"data:image/png;base64,{DOT}"
    given = [
        InputItem(type="text", text="Look."),
        InputItem(type="image", image_url=url),
        InputItem(type="local_image", path="dot.png"),
        InputItem(type="skill", name="deploy", path="/s/SKILL.md"),
        InputItem(type="mention", name="a.py", path="/r/a.py"),
    ]
    parts = read_input(None, given, tmp_path).parts

    assert [part.get("text", part["type"]) for part in parts if not part.get("text", "").startswith(("<", "</"))] == [
        "Look.",
        "input_image",
        "input_image",
        "[$deploy](/s/SKILL.md)",
        "[@a.py](/r/a.py)",
    ]


def test_an_id_is_a_uuid_in_any_case() -> None:
    assert checked_id(f" {NAME.upper()} ") == NAME
    with pytest.raises(ToolError, match="invalid agent id"):
        checked_id("planck")


# --- Roles


def roles(folder: Path, **tables: Any) -> tuple[Roles, list[str]]:
    warnings: list[str] = []
    return Roles(tables, folder, warnings.append), warnings


def test_a_role_of_a_person_takes_the_place_of_a_built_in_one(tmp_path: Path) -> None:
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "worker.toml").write_text('developer_instructions = "Be quick."\nmodel = "m"\n')
    table = {"description": "Ours.", "config_file": "roles/worker.toml", "nickname_candidates": ["Bee", " "]}
    found, warnings = roles(tmp_path, worker=table)

    role = found.find("worker")
    assert (role.nicknames, role.settings.developer_instructions, role.settings.model) == (("Bee",), "Be quick.", "m")
    assert found.offered()["worker"] == "Ours."
    assert [*found.offered()] == ["worker", "default", "explorer"]
    assert warnings == []


@pytest.mark.parametrize("name", [None, "", " ", "default"])
def test_no_role_means_the_default_one(tmp_path: Path, name: str | None) -> None:
    assert roles(tmp_path)[0].find(name).settings == RoleSettings()


def test_an_unknown_role_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="unknown agent_type 'poet'") as caught:
        roles(tmp_path)[0].find("poet")
    assert "default, explorer, worker" in caught.value.sentence()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('sandbox_mode = "danger-full-access"', "sandbox_mode"),
        ('approval_policy = "never"', "approval_policy"),
        ("[features]\nshell_tool = true", "features.shell_tool"),
        ("[features]\nweb = false", "features.web"),
        ("model = 7", "int"),
        ("model = ", "Invalid"),
    ],
)
def test_a_role_that_would_do_more_or_is_no_toml_cannot_be_used(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "r.toml").write_text(text)
    found, warnings = roles(tmp_path, odd={"config_file": "r.toml"})

    with pytest.raises(ToolError, match="currently not available"):
        found.find("odd")
    assert problem in warnings[0]


def test_a_role_without_its_file_or_with_an_odd_table_cannot_be_used(tmp_path: Path) -> None:
    found, warnings = roles(tmp_path, gone={"config_file": "none.toml"}, odd={"colour": "red"})

    for name in ("gone", "odd"):
        with pytest.raises(ToolError, match="currently not available"):
            found.find(name)
    assert "colour" in warnings[0]
    assert "cannot be read" in warnings[1]


def test_a_role_can_switch_things_off() -> None:
    found = read_settings(
        {"features": {"shell_tool": False, "memories": False, "personality": False, "apps": False}, "effort": "low"}
    )

    assert (found.no_shell, found.no_memory, found.personality, found.effort) == (True, True, "none", "low")


# --- Settings


def parent(tmp_path: Path) -> Profile:
    return Profile(
        cwd=tmp_path,
        home=tmp_path,
        choice=choice("gpt-5.4"),
        base="Base.",
        developer="Be kind.",
        sandbox="workspace-write",
        approval="untrusted",
        roots=(tmp_path / "more",),
        effort="high",
        mode="plan",
    )


WHO = AgentIdentity(parent_id="p", session_id="r", depth=1, nickname="Ada", role="worker")


def test_a_sub_agent_has_its_parents_settings(tmp_path: Path) -> None:
    mine = parent(tmp_path)
    found = inheritance.profile(config.load(), mine, WHO, Wish(), RoleSettings())

    assert found == msgspec.structs.replace(mine, agent=WHO, source=WHO.source(), thread_source="subagent")


def test_the_call_the_settings_and_the_role_change_model_and_effort(tmp_path: Path) -> None:
    mine = parent(tmp_path)
    flags = {"agents.default_subagent_model": "openai:gpt-5.4-mini", "agents.default_subagent_reasoning_effort": "low"}
    by_settings = inheritance.profile(config.load(flags=flags), mine, WHO, Wish(), RoleSettings())
    by_call = inheritance.profile(
        config.load(flags=flags), mine, WHO, Wish(model="gpt-5.5", effort="medium"), RoleSettings()
    )
    by_role = inheritance.profile(
        config.load(), mine, WHO, Wish(effort="medium"), RoleSettings("Be quick.", effort="xhigh")
    )
    only_model = inheritance.profile(config.load(), mine, WHO, Wish(model="gpt-5.5"), RoleSettings())

    assert (by_settings.choice.name, by_settings.choice.slug, by_settings.effort) == ("openai", "gpt-5.4-mini", "low")
    assert (by_call.choice.slug, by_call.effort) == ("gpt-5.5", "medium")
    assert (by_role.effort, by_role.developer) == ("xhigh", "Be kind.\n\nBe quick.")
    assert (only_model.effort, only_model.effective_effort) == (None, "medium")


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        (Wish(model="gpt-0"), "unknown model 'gpt-0'.*gpt-5.4"),
        (Wish(model="anthropic:claude-opus-4-6"), "unknown model"),
        (Wish(model="gpt-5.5", effort="heroic"), "effort 'heroic' is not supported by gpt-5.5"),
        (Wish(service_tier="fast"), "service tier 'fast'"),
    ],
)
def test_a_model_cannot_ask_for_what_is_not_known_or_for_another_provider(
    tmp_path: Path, wish: Wish, problem: str
) -> None:
    with pytest.raises(ToolError) as caught:
        inheritance.profile(config.load(), parent(tmp_path), WHO, wish, RoleSettings())

    assert re.search(problem, caught.value.sentence())


def test_who_an_agent_is_is_read_back_from_its_first_line() -> None:
    meta = {"id": NAME, "timestamp": "2026-11-15T10:00:00Z", **WHO.meta()}
    line = Line(type="session_meta", payload=msgspec.Raw(msgspec.json.encode(meta)))

    assert agent_identity.of_meta(rollout.session_meta(line)) == WHO
    assert "agent_role" not in AgentIdentity(parent_id="p", session_id="r", depth=1).meta()


@pytest.mark.parametrize("source", ["cli", None, {"subagent": "review"}, {"subagent": {"other": "x"}}, {"custom": "x"}])
def test_a_thread_that_no_agent_started_is_no_sub_agent(source: Any) -> None:
    meta = {"id": NAME, "timestamp": "2026-11-15T10:00:00Z", "source": source}
    line = Line(type="session_meta", payload=msgspec.Raw(msgspec.json.encode(meta)))

    assert agent_identity.of_meta(rollout.session_meta(line)) is None


# --- Forks and notices


def message(role: str, *texts: str, phase: str | None = None) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    item: Json = {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}
    return item if phase is None else {**item, "phase": phase}


CALL: Json = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "c", "output": "out"}
KEPT: dict[str, tuple[list[Json], list[int]]] = {
    "a person's words and context": (
        [message("system", "s"), message("developer", "d"), message("user", "u")],
        [0, 1, 2],
    ),
    "final answers": ([message("assistant", "a", phase="final_answer")], [0]),
    "no commentary": ([message("assistant", "a", phase="commentary")], []),
    "an answer without a phase that ended its turn": ([message("assistant", "a"), message("user", "u")], [0, 1]),
    "not one that a call followed": ([message("assistant", "a"), CALL, OUTPUT], []),
    "no reasoning": ([{"type": "reasoning", "summary": []}], []),
    "no calls": ([CALL, OUTPUT], []),
    "no searches": ([{"type": "web_search_call", "status": "completed"}], []),
    "no mail": ([{"type": "agent_message", "author": "a", "recipient": "b", "content": []}], []),
    "outputs of no call": ([{"type": "function_call_output", "call_id": "", "output": "bad"}], [0]),
    "compactions": ([{"type": "compaction", "encrypted_content": "x"}], [0]),
    "no hints of its own place": ([message("developer", "<multi_agent_role>boss</multi_agent_role>")], []),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_fork_keeps(name: str) -> None:
    given, kept = KEPT[name]
    found = fork_filter.forked([entry_of_item(item) for item in given])

    assert [msgspec.json.decode(raw) for raw in found] == [given[place] for place in kept]


def test_a_hint_of_the_parents_place_is_taken_out_of_its_message() -> None:
    given = message("developer", "Be kind.", "<multi_agent_mode>many</multi_agent_mode>")
    (found,) = fork_filter.forked([entry_of_item(given)])

    assert msgspec.json.decode(found)["content"] == [{"type": "input_text", "text": "Be kind."}]


def test_a_notice_is_recognised_as_no_persons_words_and_stays_small() -> None:
    text = notices.completion(NAME, AgentStatus("completed", "word </subagent_notification> " * 10_000))
    raw = msgspec.json.encode(message("user", text.text))
    view = items.view(raw)

    assert isinstance(view, items.Message)
    assert fragments.is_contextual(view)
    assert fragments.own_words(view) == ""
    assert len(text.text) < 10_000
    begin, end = "<subagent_notification>\n", "\n</subagent_notification>"
    told = msgspec.json.decode(text.text.removeprefix(begin).removesuffix(end))
    assert told["agent_path"] == NAME
