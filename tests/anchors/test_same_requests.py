"""The real Codex and `commonplace exec`, driven alike against the same script, show the model the same kinds of items.

Texts of our own aside: base instructions, permissions and summaries are worded differently. What else may differ is
named in `ASIDE` and `fronted`, each with its reason.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

import exec_driver
from anchors import codex_driver
from anchors.codex_driver import CodexHome
from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, custom_call, failure, reply, say
from exec_driver import Place

pytestmark = pytest.mark.anchor

Json = dict[str, Any]
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch"
SKILL = b"---\nname: deploy\ndescription: brings it out\n---\nFirst, breathe.\n"
PLAN = {"plan": [{"step": "look", "status": "in_progress"}, {"step": "mend", "status": "pending"}]}
THOUGHT: Json = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"}
ASIDE = (
    "<skills_instructions>",  # Codex brings skills along and lists them; we have none
    "<token_budget>",  # we tell how much room is left; Codex does not
)
"""Openings of parts that only one of the two sends."""


def shell(command: str, call_id: str) -> Json:
    return call("exec_command", {"cmd": command}, call_id)


@dataclass(frozen=True)
class Story:
    """Turns of one thread: the answers of each; the first gets the prompt `turn 0` and the options."""

    turns: list[list[Answer]]
    compact_at: int | None = None
    options: tuple[str, ...] = ()
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    codes: tuple[int, ...] = ()
    """Exit codes, if any turn fails."""
    prompts: tuple[str, ...] = ()
    """What is said, if not `turn N`."""

    def prompt(self, number: int) -> str:
        return self.prompts[number] if self.prompts else f"turn {number}"


STORIES = {
    "a plain turn": Story([[reply("Hi.")]]),
    "a command": Story([[answer(shell("echo hi; false", "c1")), reply("It ran.")]]),
    "two commands at once": Story([[answer(shell("echo one", "c1"), shell("echo two", "c2")), reply("They ran.")]]),
    "a long output": Story([[answer(shell("seq 1 30000", "c1")), reply("Long.")]]),
    "a patch": Story([[answer(say("I write it."), custom_call("apply_patch", PATCH, "c1")), reply("Written.")]]),
    "a broken patch": Story([[answer(custom_call("apply_patch", "nonsense", "c1")), reply("No.")]]),
    "a tool that nobody has": Story([[answer(call("nonsense", {"a": 1}, "c1")), reply("No.")]]),
    "arguments that are no JSON": Story(
        [[answer({**shell("echo", "c1"), "arguments": '{"cmd": '}), reply("I see.")]],
    ),
    "a plan": Story([[answer(call("update_plan", PLAN, "c1")), reply("Planned.")]]),
    "reasoning": Story([[answer(THOUGHT, say("Hm."))], [reply("Again.")]]),
    "three turns": Story(
        [[reply("One.")], [answer(shell("echo hi", "c1")), reply("Two.")], [reply("Three.")]],
    ),
    "instructions in the folder": Story([[reply("One.")], [reply("Two.")]], files={"AGENTS.md": b"Be kind.\n"}),
    "a skill that is named": Story(
        [[reply("One.")], [reply("Two.")], [reply("Three.")]],
        files={".agents/skills/deploy/SKILL.md": SKILL},
        prompts=("Look around.", "Now $deploy it.", "Well done; that cost 5$ and a $HOME."),
    ),
    "a picture": Story(
        [[reply("A dot.")], [reply("Still a dot.")]],
        options=("--image", "dot.png"),
        files={"dot.png": base64.b64decode(DOT)},
    ),
    "a picture that the model looks at": Story(
        [[answer(call("view_image", {"path": "dot.png"}, "c1")), reply("A dot.")], [reply("Still a dot.")]],
        files={"dot.png": base64.b64decode(DOT)},
    ),
    "a turn that failed": Story([[failure("server_error")], [reply("Now.")]], codes=(1, 0)),
    "compaction in a turn": Story(
        [
            [answer(shell("seq 1 4000", "c1"), input_tokens=30_000), reply("SUMMARY"), reply("Done.")],
            [reply("On.")],
        ],
        compact_at=20_000,
    ),
    "compaction before a turn": Story(
        [
            [answer(shell("seq 1 4000", "c1")), reply("Done.", input_tokens=30_000)],
            [reply("SUMMARY"), reply("On.")],
            [reply("And on.")],
        ],
        compact_at=20_000,
    ),
}


def played_by_codex(binary: Path, root: Path, story: Story) -> list[list[Json]]:
    with ScriptedResponses([step for turn in story.turns for step in turn]) as server:
        limit = {} if story.compact_at is None else {"model_auto_compact_token_limit": str(story.compact_at)}
        home = codex_driver.make_home(binary, root, server.base_url, settings=limit)
        prepare(home, story)
        thread = None
        codes: list[int] = []
        for number in range(len(story.turns)):
            # Its --image takes any number of values; `--` ends them.
            options = [*story.options, "--"] if story.options and number == 0 else []
            done = codex_driver.run_exec(home, story.prompt(number), resume=thread, options=options)
            thread = done.thread_id
            codes.append(done.code)
    assert codes == [*(story.codes or [0] * len(story.turns))]
    return server.inputs()


def played_by_us(root: Path, story: Story) -> list[list[Json]]:
    with ScriptedResponses([step for turn in story.turns for step in turn]) as server:
        limit = {} if story.compact_at is None else {"model_auto_compact_token_limit": story.compact_at}
        place = exec_driver.make_place(root, server.base_url, settings=limit)
        prepare(place, story)
        thread: list[str] = []
        codes: list[int] = []
        for number in range(len(story.turns)):
            options = story.options if number == 0 else ()
            done = exec_driver.run_exec(place, *options, *thread, story.prompt(number))
            thread = ["resume", done.thread_id]
            codes.append(done.code)
    assert codes == [*(story.codes or [0] * len(story.turns))]
    return server.inputs()


def prepare(home: CodexHome | Place, story: Story) -> None:
    for name, content in story.files.items():
        (home.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (home.cwd / name).write_bytes(content)


def kinds(shown: list[Json]) -> list[tuple[Any, ...]]:
    """What the items of a request are: type, role and kinds of parts; of calls and outputs, which and for what."""
    found: list[tuple[Any, ...]] = []
    for item in fronted(shown):
        parts = [part["type"] for part in _parts(item, "content") if not _aside(part)]
        if item["type"] == "message" and not parts:
            continue  # a message that only one of the two sends
        given = [part["type"] for part in _parts(item, "output")]
        call = (item.get("call_id"), item.get("name"), item.get("arguments"), item.get("input"))
        found.append((item["type"], item.get("role"), parts, given, *call))
    return found


def _parts(item: Json, name: str) -> list[Json]:
    """The parts of a content or an output; one that is text counts as one part."""
    value = item.get(name)
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return cast("list[Json]", value or [])


def _aside(part: Json) -> bool:
    return str(part.get("text", "")).startswith(ASIDE)


def fronted(shown: list[Json]) -> list[Json]:
    """Put the context to the front, where it stands unless the history was compacted between two turns.

    Then Codex begins the new history with it, and we tell it with the turn that follows, as we always do; the items
    are the same.
    """
    is_context = [_text(item).startswith(("<permissions", "<skills_", "<environment_")) for item in shown]
    context = [item for item, yes in zip(shown, is_context, strict=True) if yes]
    return [shown[0], *context, *(item for item, yes in zip(shown[1:], is_context[1:], strict=True) if not yes)]


def _text(item: Json) -> str:
    parts = _parts(item, "content")
    return str(parts[0].get("text", "")) if parts else ""


def said(shown: list[Json]) -> list[str]:
    """The words of the person and of the model, without what either program tells."""
    texts = [_text(item) for item in shown if item["type"] == "message" and item["role"] in ("user", "assistant")]
    return [
        text
        for text in texts
        if not text.startswith(("<environment_context>", "# AGENTS.md", "<image name=", "<skill>"))
    ]


@pytest.mark.parametrize("name", STORIES)
def test_the_model_is_shown_the_same_kinds_of_items(codex: Path, tmp_path: Path, name: str) -> None:
    story = STORIES[name]
    theirs = played_by_codex(codex, tmp_path / "theirs", story)
    ours = played_by_us(tmp_path / "ours", story)

    assert [kinds(request) for request in ours] == [kinds(request) for request in theirs]
    if story.compact_at is None:  # what is said while and after compacting is each one's own
        assert [said(request) for request in ours] == [said(request) for request in theirs]


def test_the_folder_s_instructions_are_told_in_the_same_words(codex: Path, tmp_path: Path) -> None:
    story = STORIES["instructions in the folder"]
    theirs = played_by_codex(codex, tmp_path / "theirs", story)[0]
    ours = played_by_us(tmp_path / "ours", story)[0]

    def told(shown: list[Json], root: Path) -> list[str]:
        texts = [part["text"] for item in shown if item.get("role") == "user" for part in item["content"]]
        return [text.replace(str(root), "ROOT") for text in texts if text.startswith("# AGENTS.md")]

    assert told(ours, tmp_path / "ours") == told(theirs, tmp_path / "theirs") != []


MODES = (None, "plan", "plan", "default")
"""None: nobody names a mode. Codex tells the default one where a client names it; we, only where another one ends."""


def test_a_change_of_the_mode_is_told_as_codex_tells_it(codex: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("Yes.")] * len(MODES)) as server:
        home = codex_driver.make_home(codex, tmp_path / "theirs", server.base_url)
        with codex_driver.AppServer(home) as app:
            thread = app.start_thread()
            for number, mode in enumerate(MODES):
                settings = {"model": "gpt-5.5", "reasoning_effort": None, "developer_instructions": None}
                named = {"collaborationMode": {"mode": mode, "settings": settings}} if mode else {}
                app.turn(thread, f"turn {number}", **named)
    theirs = server.inputs()
    with ScriptedResponses([reply("Yes.")] * len(MODES)) as server:
        place = exec_driver.make_place(tmp_path / "ours", server.base_url)
        resume: list[str] = []
        for number, mode in enumerate(MODES):
            chosen = ["--mode", mode] if mode else []
            done = exec_driver.run_exec(place, *chosen, *resume, f"turn {number}")
            resume = ["resume", done.thread_id]
    ours = server.inputs()

    def told(shown: list[Json]) -> list[str]:
        texts = [part["text"] for item in shown if item.get("role") == "developer" for part in item["content"]]
        return [text.partition(">")[0] for text in texts if text.startswith("<collaboration_mode>")]

    assert [kinds(request) for request in ours] == [kinds(request) for request in theirs]
    assert [len(told(request)) for request in ours] == [len(told(request)) for request in theirs] == [0, 1, 1, 2]


def test_a_named_skill_is_told_in_the_same_words(codex: Path, tmp_path: Path) -> None:
    story = STORIES["a skill that is named"]
    theirs = played_by_codex(codex, tmp_path / "theirs", story)[1]
    ours = played_by_us(tmp_path / "ours", story)[1]

    def told(shown: list[Json], root: Path) -> list[tuple[str, str]]:
        found = [(item["role"], part["text"]) for item in shown if "role" in item for part in item["content"]]
        return [(role, text.replace(str(root), "ROOT")) for role, text in found if text.startswith("<skill>")]

    assert told(ours, tmp_path / "ours") == told(theirs, tmp_path / "theirs") != []


def test_a_picture_is_sent_as_codex_sends_it(codex: Path, tmp_path: Path) -> None:
    story = STORIES["a picture"]
    theirs = played_by_codex(codex, tmp_path / "theirs", story)[0][-1]
    ours = played_by_us(tmp_path / "ours", story)[0][-1]

    # We name the whole path, as the command may run elsewhere (`-C`); Codex repeats what was written.
    assert json.loads(json.dumps(ours["content"]).replace(f"{tmp_path / 'ours' / 'demo'}/", "")) == theirs["content"]
