"""The public `Input`: words, pictures and what a client knows, for a turn, for a running one and for one after it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from scripted_session import Model

import commonplace
from commonplace import AdditionalContext, Input
from commonplace.agent import events
from commonplace.agent.thread import Thread
from commonplace.app.book import Book
from commonplace.errors import BadInput
from commonplace.models.base import Request
from commonplace.models.scripted import Answer, answer, say

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
Json = dict[str, Any]


async def started(book: Book, tmp_path: Path, model: Model) -> Thread:
    (tmp_path / "project").mkdir(exist_ok=True)
    return await book.start(cwd=tmp_path / "project", speaker=model, model="gpt-5.4")


def said(request: Request) -> list[tuple[str, str]]:
    """The role and the text of each part that is neither context of ours nor around a picture."""
    found: list[tuple[str, str]] = []
    for raw in request.input:
        item: Json = json.loads(raw)
        found += [(item["role"], part.get("text") or part["type"]) for part in item.get("content") or ()]
    return [each for each in found if not each[1].startswith(("<perm", "<env", "<token", "<image", "</image", "# "))]


async def test_a_turn_takes_words_pictures_and_context(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(base64.b64decode(DOT))
    given = Input(
        "What is this?",
        images=(tmp_path / "dot.png", f"data:image/png;base64,{DOT}"),
        context={"page": "a <b>page</b>", "ci": AdditionalContext("green", "application")},
    )
    async with Model(answer(say("A dot."))) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        await thread.turn(given)

    assert said(model.requests[0]) == [
        ("developer", "<ci>green</ci>"),
        ("user", "<external_page>a <b>page</b></external_page>"),
        ("user", "input_image"),
        ("user", "input_image"),
        ("user", "What is this?"),
    ]


async def test_context_is_told_once_and_again_after_it_was_left_out(tmp_path: Path) -> None:
    async with Model(*[answer(say("Yes."))] * 4) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        for context in ({"page": "one"}, {"page": "one"}, {}, {"page": "one"}):
            await thread.turn(Input("Go.", context=context))

    told = [text for _, text in said(model.requests[-1])]
    page = "<external_page>one</external_page>"
    assert told == [page, "Go.", "Yes.", "Go.", "Yes.", "Go.", "Yes.", page, "Go."]


async def test_context_alone_begins_a_turn_and_steers_none(tmp_path: Path) -> None:
    asked, go = anyio.Event(), anyio.Event()

    def hold(_: Request) -> Answer:
        asked.set()
        return answer(say("I see."), hold=go)

    async with Model(hold, answer(say("Both."))) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        async with anyio.create_task_group() as group:
            group.start_soon(thread.turn, Input(context={"page": "one"}))
            await asked.wait()
            with pytest.raises(BadInput, match="cannot be steered without input"):
                thread.steer(Input(context={"page": "two"}))
            thread.steer(Input("And this?", context={"page": "three"}))
            go.set()

    assert said(model.requests[0]) == [("user", "<external_page>one</external_page>")]
    assert said(model.requests[1])[1:] == [
        ("assistant", "I see."),
        ("user", "<external_page>three</external_page>"),
        ("user", "And this?"),
    ]


async def test_an_input_that_waits_keeps_its_context_for_its_own_turn(tmp_path: Path) -> None:
    asked, go = anyio.Event(), anyio.Event()

    def hold(_: Request) -> Answer:
        asked.set()
        return answer(say("One."), hold=go)

    async with Model(hold, answer(say("Two."))) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        ends: list[events.Event] = []
        thread.listen(lambda event: ends.append(event) if isinstance(event, events.TurnCompleted) else None)
        async with anyio.create_task_group() as group:
            group.start_soon(thread.turn, "First.")
            await asked.wait()
            thread.queue(Input("Second.", context={"page": "two"}))
            go.set()

    assert len(ends) == 2
    assert [text for _, text in said(model.requests[0])] == ["First."]
    assert [text for _, text in said(model.requests[1])][2:] == ["<external_page>two</external_page>", "Second."]


async def test_a_prompt_that_a_hook_refuses_keeps_its_context(tmp_path: Path, home: Path) -> None:
    home.mkdir(exist_ok=True)
    hook = "grep -q secret && { echo no >&2; exit 2; } || true"
    (home / "config.toml").write_text(f'[[hooks.user_prompt_submit]]\ncommand = "{hook}"\n')
    async with Model(answer(say("Yes."))) as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        await thread.turn(Input("A secret.", context={"page": "one"}))
        assert model.requests == []
        await thread.turn(Input("Well?", context={"page": "one"}))

    assert [text for _, text in said(model.requests[0])] == ["<external_page>one</external_page>", "Well?"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (Input(), "nothing to do"),
        (Input(" ", images=()), "nothing to do"),
        (Input("Go.", context={"page": "\ud800"}), "not valid Unicode"),
        (Input("Go.", images=("none.png",)), "picture cannot be used"),
    ],
)
async def test_an_input_that_cannot_be_used_is_refused(tmp_path: Path, given: Input, problem: str) -> None:
    async with Model() as model, commonplace.open() as book:
        thread = await started(book, tmp_path, model)
        with pytest.raises(BadInput, match=problem):
            await thread.turn(given)
