"""What the real Codex injected into its model's input, turn by turn, is what these modules make of the same facts.

Each scene plays a recorded session again: the same files, settings and words, in order. Everything that stood in the
requests is compared, items, order, roles and texts; the vendor's prose is cut out of the recordings, so ours is cut
out of the replay. The `world_state` lines of the files are compared too, for the sections that exist here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commonplace.context import additional, filesystem, injected_messages, world_state
from commonplace.context.additional import AdditionalContext, LastGivenContext
from commonplace.context.environment import Environment, Environments
from commonplace.context.filesystem import FilesystemProfile, FilesystemRule
from commonplace.context.injected_messages import InjectedText
from commonplace.context.instructions import GlobalInstructions, Instructions, WorkEnvironment, discover, read_global
from commonplace.context.notices import notice
from commonplace.context.permissions import Permissions
from commonplace.context.sections import AgentsMd, Collaboration, ModelSection, StandingText
from commonplace.context.world_state import InjectedState, SectionName, WorldStateUpdate
from commonplace.protocol import items
from commonplace.protocol.rollout import TurnContext
from ledgers import Json, user

DATA = Path(__file__).parent.parent / "data"
OMITTED = "(text omitted)"
FREE, GUARDED = (
    FilesystemProfile("disabled"),
    FilesystemProfile("managed", (FilesystemRule(access="read", target="special", value=":root"),)),
)


class Turn(msgspec.Struct, kw_only=True):
    """What held in one turn, and what was said in it."""

    says: str
    cwd: str = "/repo/demo"
    model: str = "gpt-5.5"
    profile: FilesystemProfile = FREE
    rules: Instructions = Instructions()
    context: Json = {}
    steers: bool = False
    """It joins the turn before it, which has no answer yet."""


def surroundings(turn: Turn, previous: str | None) -> list[world_state.Section]:
    skills = InjectedText(
        "developer", f"<skills_instructions>\n{OMITTED}\n</skills_instructions>", "host_skills.instructions"
    )
    return [
        ModelSection(turn.model, "Be brief.", previous),
        StandingText(name=SectionName("host_skills", "skills"), remembered=turn.model, text=skills),
        Permissions(turn.profile.type),
        Collaboration(turn.model),
        AgentsMd(turn.rules),
        Environments(
            environments={"local": Environment(cwd=turn.cwd, shell="bash")},
            current_date="2026-11-15",
            timezone="Etc/UTC",
            filesystem=filesystem.element([turn.cwd], turn.profile),
        ),
    ]


def neutral(text: str) -> str:
    """Our prose cut out as the recordings cut out the vendor's."""
    text = re.sub(
        r"<(model_switch|permissions instructions)>.*</\1>", rf"<\1>\n{OMITTED}\n</\1>", text, flags=re.DOTALL
    )
    for name in ("agents_replaced", "agents_removed"):
        text = text.replace(notice(name), OMITTED)
    return text


def shape(found: Sequence[Json]) -> list[tuple[str, list[str]]]:
    return [(item["role"], [neutral(part["text"]) for part in item["content"]]) for item in found]


def parsed(context: Any) -> dict[str, AdditionalContext]:
    return msgspec.convert(context or {}, dict[str, AdditionalContext])


def play(
    turns: Sequence[Turn], answers: Sequence[Json]
) -> tuple[list[list[tuple[str, list[str]]]], list[WorldStateUpdate]]:
    """Return every request as its items' roles and texts, and what each turn began with."""
    history: list[Json] = []
    requests: list[list[tuple[str, list[str]]]] = []
    updates: list[WorldStateUpdate] = []
    remembered, baseline, reference, previous = LastGivenContext(), None, None, None
    left = iter(answers)
    for number, turn in enumerate(turns):
        given = parsed(turn.context)
        if turn.steers:
            remembered, fresh = additional.steer(remembered, given, [user(turn.says)])
        else:
            if number:
                history.append(next(left))
            current = TurnContext(turn_id=str(number), cwd=turn.cwd, model=turn.model)
            held = injected_messages.injected_kinds(items.view(msgspec.json.encode(item)) for item in history)
            update = world_state.begin(surroundings(turn, previous), InjectedState(baseline, held), current, reference)
            updates.append(update)
            history += update.items
            remembered, fresh = additional.start(remembered, given, [user(turn.says)])
            baseline, reference, previous = update.baseline, current, turn.model
        history += fresh
        requests.append(shape(history))
    return requests, updates


def recorded(folder: str) -> tuple[list[list[Json]], list[Json]]:
    """The requests without their base instructions, and the lines of the session file."""
    place = DATA / folder
    inputs: list[list[Json]] = json.loads((place / "model_inputs.json").read_text("utf-8"))
    (file,) = place.glob("rollout-*.jsonl")
    return [request[1:] for request in inputs], [json.loads(line) for line in file.read_bytes().splitlines()]


OURS = {"model", "permissions", "collaboration_mode", "agents_md", "environments"}


def noted(payload: Json) -> Json:
    """A `world_state` line, for the sections that are here, without the hashes of texts that differ."""
    state = {key: value for key, value in sorted(payload["state"].items()) if key in OURS}
    if "permissions" in state:
        state["permissions"] = {**state["permissions"], "instructions": "hash"}
    return {"full": payload["full"], "state": state}


def agents_md(tmp_path: Path) -> list[Turn]:
    home, root = tmp_path / "home", tmp_path / "demo"
    for folder in (home, root / ".git", root / "pkg"):
        folder.mkdir(parents=True)
    (home / "AGENTS.md").write_text("# Global rules\nAnswer in English.\n")
    (root / "AGENTS.md").write_text("# House rules\nUse tabs. Never say maybe.\n")
    (root / "pkg" / "AGENTS.md").write_text("# Package rules\nRun `make check` here.\n")
    found = discover(read_global(home), [WorkEnvironment(cwd=str(root / "pkg"))])
    rules = msgspec.structs.replace(found, directory="/repo/demo/pkg")
    return [Turn(says="hello", cwd="/repo/demo/pkg", rules=rules)]


def changed_agents_md(tmp_path: Path) -> list[Turn]:
    """Codex reads the files when a thread is loaded; the second turn did not see the change."""

    def rules(text: str) -> Instructions:
        (tmp_path / "AGENTS.md").write_text(text)
        found = discover(GlobalInstructions(), [WorkEnvironment(cwd=str(tmp_path))])
        return msgspec.structs.replace(found, directory=found.directory and "/repo/demo")

    one, two, none = rules("Rule one: be kind.\n"), rules("Rule two: be exact.\n"), rules("")
    return [
        Turn(says="one", rules=one),
        Turn(says="two", rules=one),
        Turn(says="three", rules=two),
        Turn(says="four", rules=none),
    ]


def moved(tmp_path: Path) -> list[Turn]:
    return [
        Turn(says="one"),
        Turn(says="two", cwd="/repo/demo/pkg"),
        Turn(says="three", cwd="/repo/demo/pkg", profile=GUARDED),
    ]


def switched(tmp_path: Path) -> list[Turn]:
    return [Turn(says="one"), Turn(says="two", model="unknown-model"), Turn(says="three")]


def with_context(tmp_path: Path) -> list[Turn]:
    def given(file: str) -> Json:
        # `name` is a field that nobody knows.
        return {
            "web.page": {"kind": "untrusted", "value": "text of a page", "name": "browser"},
            "ide.open_file": {"kind": "application", "value": f"open file: {file}"},
        }

    selection = {"ide.sel": {"kind": "application", "value": "selection: foo()"}}
    return [
        Turn(says="what is open?", context=given("main.py")),
        Turn(says="same context again", context=given("main.py")),
        Turn(says="changed context", context=given("other.py")),
        Turn(says="long job"),
        Turn(says="STEER: also do Y", steers=True, context=selection),
    ]


SCENES: list[tuple[str, Callable[[Path], list[Turn]]]] = [
    ("codex_fixtures/c_agents_md", agents_md),
    ("codex_fixtures/i_additional_context", with_context),
    ("codex_recorded/agents_md_changed", changed_agents_md),
    ("codex_recorded/moved", moved),
    ("codex_recorded/model_switch", switched),
]


@pytest.mark.parametrize(("folder", "scene"), SCENES, ids=[folder for folder, _ in SCENES])
def test_every_request_has_the_items_of_the_recording(
    folder: str, scene: Callable[[Path], list[Turn]], tmp_path: Path
) -> None:
    inputs, _ = recorded(folder)
    answers = [item for item in inputs[-1] if item["role"] == "assistant"]

    requests, _ = play(scene(tmp_path), answers)

    assert [shape(request) for request in inputs] == requests


@pytest.mark.parametrize(("folder", "scene"), SCENES, ids=[folder for folder, _ in SCENES])
def test_every_turn_notes_what_the_recording_notes(
    folder: str, scene: Callable[[Path], list[Turn]], tmp_path: Path
) -> None:
    inputs, lines = recorded(folder)
    answers = [item for item in inputs[-1] if item["role"] == "assistant"]

    _, updates = play(scene(tmp_path), answers)

    found: list[Any] = []
    for update in updates:
        if update.world is not None:
            found.append(noted(update.world))
        if update.turn_context:
            found.append("turn_context")
    expected = [
        noted(line["payload"]) if line["type"] == "world_state" else "turn_context"
        for line in lines
        if line["type"] in ("world_state", "turn_context")
    ]
    assert expected == found


@pytest.mark.parametrize("folder", [folder for folder, _ in SCENES])
def test_every_injected_text_is_noted_by_the_name_that_codex_gives_it(folder: str, tmp_path: Path) -> None:
    scene = dict(SCENES)[folder]
    inputs, lines = recorded(folder)
    answers = [item for item in inputs[-1] if item["role"] == "assistant"]

    _, updates = play(scene(tmp_path), answers)

    ours = [kind for update in updates for item in update.items for kind in _kinds(item)]
    theirs = [kind for line in lines if line["type"] == "response_item" for kind in _kinds(line["payload"])]
    extra = ("user.", "additional_content.", "unknown")
    assert [kind for kind in theirs if not kind.startswith(extra)] == ours


def test_context_that_did_not_change_is_not_told_again_after_a_compaction() -> None:
    _, lines = recorded("codex_recorded/additional_context")
    messages = [line["payload"] for line in lines if line["type"] == "response_item"]
    theirs = [(m["role"], m["content"][0]["text"]) for m in messages if _kinds(m)[0].startswith("additional_content.")]

    def given(build: str) -> Json:
        page = {"value": "text of a page", "kind": "untrusted"}
        return {"ci": {"value": build, "kind": "application"}, "page": page}

    remembered, ours = LastGivenContext(), list[tuple[str, str]]()
    # The thread was compacted between the second and the third.
    for context in (given("build is green"), given("build is red"), given("build is red"), None):
        remembered, told = remembered.merge(parsed(context))
        ours += [(text.role, text.text) for text in told]

    assert theirs == ours


def _kinds(item: Json) -> list[str]:
    return item[items.PASSTHROUGH]["content_item_kinds"]
