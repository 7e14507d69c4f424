"""Skills in a session: told once, told again when they change, read with the shell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scripted_session import Stage, stage

from commonplace.agent import user_input
from commonplace.agent.sandbox import detect
from commonplace.models.base import Request
from commonplace.models.scripted import Answer, answer, call, say


def put(folder: Path, name: str, description: str) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\nFirst, breathe.\n")
    return path


def told(here: Stage) -> list[str]:
    return [text for text in here.texts() if text.startswith("<skills_instructions>")]


async def test_skills_are_told_once_and_again_when_they_change(tmp_path: Path) -> None:
    path = put(tmp_path / "home" / "skills", "deploy", "brings it out")
    async with stage(tmp_path, *[answer(say("Yes."))] * 5) as here:
        await here.run("One.")
        (first,) = told(here)
        assert f"- deploy: brings it out (file: {path})" in first
        await here.run("Two.")
        assert [first] == told(here)
        put(here.cwd / ".agents" / "skills", "review", "reads it")
        await here.run("Three.")
        assert 2 == len(told(here))
        assert "- review: reads it" in told(here)[1]
        assert "- deploy: brings it out" in told(here)[1]
        await here.resume()
        await here.run("Four.")
        assert 2 == len(told(here))
        put(tmp_path / "home" / "skills", "deploy", "brings it out at night")
        await here.run("Five.")
        assert "- deploy: brings it out at night" in told(here)[2]


async def test_that_skills_are_gone_is_told(tmp_path: Path) -> None:
    put(tmp_path / "home" / "skills", "deploy", "brings it out")
    async with stage(tmp_path, *[answer(say("Yes."))] * 2) as here:
        await here.run("One.")
        shutil.rmtree(tmp_path / "home" / "skills")
        await here.run("Two.")

        assert "<skills_instructions>\nThere are no skills any more.\n</skills_instructions>" == told(here)[-1]


@pytest.mark.parametrize("sandbox", ["danger-full-access", "read-only"])
async def test_a_skill_is_read_with_the_shell(tmp_path: Path, sandbox: str) -> None:
    if sandbox == "read-only" and detect().mechanism == "none":
        pytest.skip(detect().detail)
    path = put(tmp_path / "home" / "skills", "deploy", "brings it out")
    steps = [answer(call("shell", {"command": f"cat {path}"}, "c1")), answer(say("I breathe."))]
    async with stage(tmp_path, *steps, sandbox=sandbox) as here:
        await here.run("Deploy.")

        assert "First, breathe." in here.outputs()["c1"]


async def test_where_there_are_no_skills_nothing_is_told(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("Yes."))) as here:
        await here.run("One.")
        assert [] == told(here)


# --- A message that names a skill brings it along.


def brought(here: Stage) -> list[str]:
    return [text for text in here.texts() if text.startswith("<skill>")]


async def test_a_skill_that_a_message_names_is_told_whole_after_the_message(tmp_path: Path) -> None:
    path = put(tmp_path / "home" / "skills", "deploy", "brings it out")
    put(tmp_path / "home" / "skills", "review", "reads it")
    async with stage(tmp_path, *[answer(say("Yes."))] * 3) as here:
        await here.run("Please $deploy this.")
        head = f"<skill>\n<name>deploy</name>\n<path>{path}</path>\n"
        assert [f"{head}{path.read_text()}\n</skill>"] == brought(here)
        assert here.texts()[-2:] == ["Please $deploy this.", brought(here)[0]]
        assert "user" == here.items()[-1]["role"]
        await here.resume()
        await here.run("And again.")
        assert 1 == len(brought(here))  # it was not named again, and the history holds it
        await here.run("Now ($review) and $deploy, $deploy!")
        assert ["deploy", "deploy", "review"] == [text.split("name>")[1][:-2] for text in brought(here)]


@pytest.mark.parametrize(
    "words", ["deploy it", "cost is 5$deploy", "$$deploy", "$DEPLOY", "$deployment", "$HOME", "$deploy_x"]
)
async def test_other_words_bring_no_skill(tmp_path: Path, words: str) -> None:
    put(tmp_path / "home" / "skills", "deploy", "brings it out")
    async with stage(tmp_path, answer(say("Yes."))) as here:
        await here.run(words)
        assert [] == brought(here)


async def test_a_skill_cannot_end_its_block_and_a_long_one_is_cut(tmp_path: Path) -> None:
    path = put(tmp_path / "home" / "skills", "deploy", "brings it out")
    path.write_text(path.read_text() + "</skill>\n" + "x" * 70_000)
    async with stage(tmp_path, answer(say("Yes."))) as here:
        await here.run("$deploy")
        (text,) = brought(here)
        assert 1 == text.count("</skill>")
        assert "more bytes are in the file]\n</skill>" in text
        assert len(text) < 34_000


async def test_what_a_program_piped_in_names_no_skill(tmp_path: Path) -> None:
    put(tmp_path / "home" / "skills", "deploy", "brings it out")
    async with stage(tmp_path, answer(say("Yes."))) as here:
        await here.run(user_input.text("What is this?", piped="$deploy"))
        assert [] == brought(here)


async def test_a_skill_that_is_named_while_a_turn_runs_is_told_with_it(tmp_path: Path) -> None:
    put(tmp_path / "home" / "skills", "deploy", "brings it out")

    def steering(_: Request) -> Answer:
        here.session.steer(user_input.text("Use $deploy."))
        return answer(say("First."))

    async with stage(tmp_path, steering, answer(say("Yes."))) as here:
        await here.run("Begin.")
        assert ["Use $deploy.", brought(here)[0]] == here.texts()[-2:]
