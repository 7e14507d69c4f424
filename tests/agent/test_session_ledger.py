"""What a session writes and what it tells the model of its surroundings: each thing once, and again when it changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from scripted_session import BASE, Stage, choice, stage, used
from session_invariants import Json, kinds

from commonplace.agent import events, user_input
from commonplace.agent.user_input import UserInput
from commonplace.context.additional import AdditionalContext
from commonplace.errors import BadInput
from commonplace.models.base import Limit, RateLimits
from commonplace.models.scripted import answer, call, say
from commonplace.protocol.rollout import Line
from commonplace.rollout import blobs, reader
from commonplace.rollout.blobs import BlobStore
from pictures import png


def of(here: Stage, kind: str) -> list[Json]:
    """Return the payloads of one kind of line."""
    return [line["payload"] for line, name in zip(here.lines(), kinds(here.lines()), strict=True) if name == kind]


# --- The shape


async def test_the_order_of_a_plain_turn_is_fixed(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("Hello."), usage=used(1_000))) as here:
        await here.run("Hello?")

        told = [(line["type"], name) for line, name in zip(here.lines(), kinds(here.lines()), strict=True)]
        assert [
            ("session_meta", "session_meta"),
            ("event_msg", "task_started"),
            ("response_item", "message"),
            ("response_item", "message"),
            ("world_state", "world_state"),
            ("turn_context", "turn_context"),
            ("response_item", "message"),
            ("event_msg", "item_completed"),
            ("response_item", "message"),
            ("event_msg", "item_completed"),
            ("event_msg", "token_count"),
            ("event_msg", "task_complete"),
        ] == told


async def test_the_first_line_says_how_the_thread_began(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("Hello."))) as here:
        await here.run("Hello?")
        (meta,) = of(here, "session_meta")

        assert (here.session.thread_id, here.session.thread_id) == (meta["id"], meta["session_id"])
        assert ("paginated", str(here.cwd), "exec") == (meta["history_mode"], meta["cwd"], meta["source"])
        assert BASE == meta["base_instructions"]["text"]
        assert here.session.prompt.window.id == meta["context_window"]["window_id"]


async def test_a_command_is_kept_with_all_that_it_printed_while_the_model_sees_less(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(call("shell", {"command": "seq 1 20000"}, "c1")), answer(say("Many."))) as here:
        await here.run("Count.")
        await here.session.ledger.flush()
        lines = [line for line in reader.forward(here.path) if isinstance(line, Line)]
        whole = [
            msgspec.json.decode(line.payload)
            for line in blobs.restored(lines, BlobStore(here.home), print, everything=True)
        ]
        shown = next(each["item"] for each in whole if each.get("item", {}).get("id") == "c1")
        (told,) = of(here, "function_call_output")

        assert "".join(f"{number}\n" for number in range(1, 20_001)) == shown["aggregated_output"]
        assert ("CommandExecution", 0, "completed") == (shown["type"], shown["exit_code"], shown["status"])
        assert "seq 1 20000" == shown["command"][-1]
        assert len(told["output"]) < 60_000
        assert told["output"] == here.outputs()["c1"]


async def test_every_item_notes_its_turn_and_no_request_carries_that(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("One.")), answer(say("Two."))) as here:
        await here.run("First.")
        await here.run("Second.")
        turns = [payload["turn_id"] for payload in of(here, "task_started")]
        noted = [each["internal_chat_message_metadata_passthrough"]["turn_id"] for each in of(here, "message")]

        assert turns == [*dict.fromkeys(noted)]
        assert turns == [payload["turn_id"] for payload in of(here, "task_complete")]


async def test_counts_and_limits_of_the_server_are_written_and_told(tmp_path: Path) -> None:
    limits = RateLimits((Limit("requests", 12.5),))
    async with stage(tmp_path, answer(say("Hello."), usage=used(1_000), limits=limits)) as here:
        await here.run("Hello?")
        (counted,) = of(here, "token_count")

        assert 1_000 == counted["info"]["last_token_usage"]["total_tokens"]
        assert 95_000 == counted["info"]["model_context_window"]
        assert "requests" == counted["rate_limits"]["limits"][0]["name"]
        (told,) = [event for event in here.events if isinstance(event, events.TokenCount)]
        assert limits.limits == told.limits


async def test_the_end_of_a_turn_says_how_long_it_took_and_when_the_first_word_came(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("Hello."))) as here:
        await here.run("Hello?")
        (end,) = of(here, "task_complete")

        assert "Hello." == end["last_agent_message"]
        assert 0 < end["time_to_first_token_ms"] <= end["duration_ms"]
        assert end["started_at"] == end["completed_at"] == int(here.clock.now().timestamp())


async def test_a_session_that_was_never_used_leaves_no_file(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        path = here.path

    assert not path.exists()


# --- What the model is told


async def test_everything_is_told_once_and_nothing_again_while_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("Be brief.")
    async with stage(tmp_path, *[answer(say(f"{number}.")) for number in range(3)]) as here:
        await here.run("One.")
        first = here.texts()
        await here.run("Two.")
        await here.run("Three.")

        assert 1 == sum("Be brief." in text for text in first)
        for mark in ("<permissions instructions>", "<environment_context>", "<token_budget>", "# AGENTS.md"):
            assert 1 == sum(text.startswith(mark) for text in here.texts()), mark
        assert ["One.", "0.", "Two.", "1.", "Three."] == here.said()
        assert 1 == len(of(here, "world_state"))
        assert 3 == len(of(here, "turn_context")), "each turn has its own id"


async def test_requests_of_a_thread_only_grow(tmp_path: Path) -> None:
    async with stage(
        tmp_path, answer(call("shell", {"command": "echo 1"}, "c1")), *[answer(say(f"{n}.")) for n in range(3)]
    ) as here:
        for words in ("One.", "Two.", "Three."):
            await here.run(words)

        for earlier, later in zip(here.requests, here.requests[1:], strict=False):
            assert earlier.input == later.input[: len(earlier.input)]
        assert {here.session.thread_id} == {request.prompt_cache_key for request in here.requests}


def changed_agents(here: Stage) -> None:
    (here.cwd / "AGENTS.md").write_text("Be thorough.")


def changed_model(here: Stage) -> None:
    here.session.profile = replace(here.session.profile, choice=choice("scripted-2"))


def changed_sandbox(here: Stage) -> None:
    here.session.profile = replace(here.session.profile, sandbox="read-only")


def changed_date(here: Stage) -> None:
    here.clock.pass_days(1)


def changed_budget(here: Stage) -> None:
    pass  # the answer of the first turn says that a fifth of the window is used


CHANGES = [
    (changed_agents, "Be thorough.", "agents_md"),
    (changed_model, "<model_switch>", "model"),
    (changed_sandbox, "Commands run in a sandbox of the mode `read-only`", "permissions"),
    (changed_date, "<current_date>2026-11-16</current_date>", "environments"),
    (changed_budget, "About 20,000 of 95,000 tokens", "token_budget"),
]


@pytest.mark.parametrize(("change", "told", "section"), CHANGES, ids=[row[2] for row in CHANGES])
@pytest.mark.parametrize("resumed", [False, True], ids=["", "resumed"])
async def test_what_changed_between_turns_is_told_once(
    tmp_path: Path, change: Any, told: str, section: str, resumed: bool
) -> None:
    total = 20_000 if change is changed_budget else 1_000
    async with stage(tmp_path, answer(say("0."), usage=used(total)), answer(say("1.")), answer(say("2."))) as here:
        await here.run("One.")
        assert not any(told in text for text in here.texts())
        if resumed:
            await here.resume()
        change(here)
        await here.run("Two.")
        assert 1 == sum(told in text for text in here.texts())
        assert section in of(here, "world_state")[1]["state"]
        assert not of(here, "world_state")[1]["full"]
        before = here.texts()
        await here.run("Three.")

        assert [*before, "1.", "Three."] == here.texts()
        assert before.index("Two.") == len(before) - 1, "the news stands before the words"


async def test_what_changes_in_the_middle_of_a_turn_is_told_before_the_next_request(tmp_path: Path) -> None:
    write = {"command": "echo 'Be thorough.' > AGENTS.md"}
    async with stage(tmp_path, answer(call("shell", write, "c1")), answer(say("Done."))) as here:
        await here.run("Write it down.")

        assert "Be thorough." in here.texts()[-1]
        assert "function_call_output" == here.items()[-2]["type"]
        assert 1 == len(of(here, "turn_context"))


async def test_the_room_that_is_left_is_told_at_each_tenth_and_no_more(tmp_path: Path) -> None:
    steps = [
        answer(call("shell", {"command": "true"}, f"c{number}"), usage=used(number * 4_750)) for number in range(1, 9)
    ]
    async with stage(tmp_path, *steps, answer(say("Done."))) as here:
        await here.run("Work.")
        told = [text for text in here.texts() if text.startswith("<token_budget>")]

        assert 5 == len(told), "0, 10, 20, 30 and 40 percent"
        assert len(set(told)) == len(told)


async def test_the_persons_own_instructions_come_before_those_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "AGENTS.md").write_text("Mine.")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("Ours.")
    async with stage(tmp_path, answer(say("Yes."))) as here:
        await here.run("Hello.")
        block = next(text for text in here.texts() if text.startswith("# AGENTS.md"))

        assert block.index("Mine.") < block.index("--- project-doc ---") < block.index("Ours.")


# --- What comes with the words


async def test_what_a_client_knows_is_told_before_the_words_in_the_order_of_its_keys(tmp_path: Path) -> None:
    knows = {"b": AdditionalContext("2", "untrusted"), "a": AdditionalContext("1", "application")}
    async with stage(tmp_path, answer(say("0.")), answer(say("1.")), answer(say("2."))) as here:
        await here.run(UserInput(parts=user_input.text("One.").parts, context=knows))
        assert ["<a>1</a>", "<external_b>2</external_b>", "One."] == here.said()
        assert ["developer", "user", "user"] == [item["role"] for item in here.items()[-3:]]
        await here.run(
            UserInput(
                parts=user_input.text("Two.").parts, context={**knows, "a": AdditionalContext("3", "application")}
            )
        )
        assert ["0.", "<a>3</a>", "Two."] == here.said()[3:]
        await here.run(
            UserInput(parts=user_input.text("Three.").parts, context={"b": AdditionalContext("2", "untrusted")})
        )

        assert ["1.", "Three."] == here.said()[6:]


async def test_context_that_cannot_be_sent_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        with pytest.raises(BadInput):
            await here.run(
                UserInput(parts=user_input.text("One.").parts, context={"\ud800": AdditionalContext("2", "untrusted")})
            )

        assert not here.path.exists()
        assert [] == here.events


async def test_the_shape_of_the_answer_is_asked_for_in_every_request_of_its_turn_alone(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    async with stage(
        tmp_path, answer(call("shell", {"command": "true"}, "c1")), answer(say('{"x": 1}')), answer(say("Free."))
    ) as here:
        await here.run(user_input.text("Give me x.", schema=schema))
        await here.run("Talk.")
        wanted = [request.output_schema for request in here.requests]

        assert [schema, schema] == [each.schema for each in wanted[:2] if each is not None]
        assert wanted[2] is None


@pytest.mark.parametrize(("modalities", "sent"), [(("text", "image"), True), (("text",), False)])
async def test_a_picture_is_sent_to_a_model_that_sees_and_to_no_other(
    tmp_path: Path, modalities: tuple[str, ...], sent: bool
) -> None:
    picture = tmp_path / "one.png"
    picture.write_bytes(png(4, 4))
    async with stage(tmp_path, answer(say("I see.")), choice=choice(modalities=modalities), check=False) as here:
        await here.run(user_input.text("Look.", [picture]))
        parts = [part["type"] for part in here.items()[-1]["content"]]

        assert sent == ("input_image" in parts)
        shown = next(item for item in here.completed() if isinstance(item, events.UserMessage))
        assert any(part["type"] == "input_image" for part in shown.content)
        assert any("image_url" in msgspec.json.encode(line).decode() for line in here.lines())


async def test_a_picture_comes_back_after_a_resume(tmp_path: Path) -> None:
    picture = tmp_path / "one.png"
    picture.write_bytes(png(4, 4))
    async with stage(tmp_path, answer(say("I see.")), answer(say("Still."))) as here:
        here.session.ledger.note("event_msg", {"type": "thread_settings_applied"})
        await here.run(user_input.text("Look.", [picture]))
        first = here.requests[0].input
        await here.resume()
        await here.run("And now?")

        assert first == here.requests[1].input[: len(first)]


async def test_the_page_of_formats_names_what_is_written(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text("utf-8")
    settings: dict[str, Any] = {"personality": "friendly", "effort": "low", "mode": "execute"}
    async with stage(
        tmp_path, answer(call("shell", {"command": "echo 1"}, "c1")), answer(say("Yes.")), **settings
    ) as here:
        await here.run("One.")
        lines = here.lines()

    names = {line["type"] for line in lines}
    for line in lines:
        payload = line["payload"]
        if line["type"] in ("session_meta", "turn_context"):
            names |= set(payload) | set(payload.get("collaboration_mode", {}).get("settings", {}))
        elif line["type"] == "event_msg":
            names.add(payload["type"])
    assert {name for name in names if not re.search(rf"\b{name}\b", page)} == set()
    assert {"collaboration_mode", "effort", "personality", "task_started", "item_completed"} <= names
