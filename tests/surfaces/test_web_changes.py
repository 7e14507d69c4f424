"""Changes on the page: previewed, made, taken back; and what somebody sees who is late."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import pytest
import taught_homes as taught
import web_homes as homes
from serving_web import Seen, Visitor, serving

from commonplace.app import book as books
from commonplace.memory.edits.edits import NoteRequest
from commonplace.memory.listing import Listed

NEW = "Always use bun in this repo, pnpm is history"
KINDS: dict[str, dict[str, str]] = {
    "reword": {"text": NEW},
    "rescope": {"scope": "global"},
    "pin": {},
    "drop": {},
    "forget": {},
}


@pytest.fixture
def variables(home: Path) -> Mapping[str, str]:
    taught.write(home)
    found = homes.environment(home)

    async def learn() -> None:
        async with books.open(environment=found) as book:
            await book.memory.run()

    anyio.run(learn)
    return found


@pytest.fixture
def visitor(variables: Mapping[str, str], tmp_path: Path) -> Iterator[Visitor]:
    with serving(variables, tmp_path) as found:
        yield found.enter()


def entries(variables: Mapping[str, str]) -> list[Listed]:
    async def read() -> list[Listed]:
        async with books.open(environment=variables) as book:
            return [*await book.memory.entries(), *(await book.memory.list(candidates=True)).entries]

    return anyio.run(read)


def told(variables: Mapping[str, str]) -> dict[str, tuple[str, str, bool]]:
    return {each.id: (each.text, each.scope, each.pinned) for each in entries(variables)}


def meant(variables: Mapping[str, str], words: str) -> str:
    return next(each.id for each in entries(variables) if words in each.text)


def version(page: Seen) -> str:
    found = re.search(r'name="version" value="(\w+)"', page.text)
    assert found, page.plain[:300]
    return found[1]


def undo(visitor: Visitor, page: Seen) -> Seen:
    found = re.search(r'name="id" value="([\w-]+)"', page.text)
    assert found, page.plain[:300]
    return visitor.post("/undo", id=found[1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_shown_first_then_made_then_taken_back(
    visitor: Visitor, variables: Mapping[str, str], kind: str
) -> None:
    name = meant(variables, "instead of npm")
    before = told(variables)
    page = visitor.get(f"/entry/{name}")
    form = {"kind": kind, "version": version(page), **KINDS[kind]}

    shown = visitor.post(f"/entry/{name}/preview", **form)
    assert shown.status == 200
    assert "Nothing is changed yet" in shown.plain
    assert 'class="differences"' in shown.text
    assert told(variables) == before

    done = visitor.post(f"/entry/{name}/change", **form)
    assert done.status == 200
    assert told(variables) != before

    back = undo(visitor, done)
    assert back.status == 200
    if kind == "forget":  # its words are back, as a note
        assert taught.PNPM in [text for text, _, _ in told(variables).values()] or any(
            "instead of npm" in text for text, _, _ in told(variables).values()
        )
    else:
        assert told(variables) == before
    assert undo_is_refused(visitor, done)


def undo_is_refused(visitor: Visitor, page: Seen) -> bool:
    return undo(visitor, page).status == 400


def test_two_entries_are_merged_and_come_apart_again(visitor: Visitor, variables: Mapping[str, str]) -> None:
    name, into = meant(variables, "instead of npm"), meant(variables, "push to main")
    before = told(variables)
    form = {"kind": "join", "into": into, "version": version(visitor.get(f"/entry/{name}"))}

    done = visitor.post(f"/entry/{name}/change", **form)
    page = visitor.get(f"/entry/{into}")
    assert "instead of npm" in page.plain  # what the other rested on is its own now
    assert name not in told(variables)

    undo(visitor, done)
    assert told(variables) == before


def test_who_is_late_in_another_tab_is_told_and_shown_both_texts(
    visitor: Visitor, variables: Mapping[str, str]
) -> None:
    name = meant(variables, "instead of npm")
    seen = version(visitor.get(f"/entry/{name}"))
    visitor.post(f"/entry/{name}/change", kind="reword", text=NEW, version=seen)

    late = visitor.post(f"/entry/{name}/change", kind="reword", text="Always use yarn here", version=seen)

    assert late.status == 409
    assert "Somebody was faster" in late.plain
    assert "bun" in late.plain
    assert "yarn" in late.plain
    assert any(NEW in text for text, _, _ in told(variables).values())
    again = visitor.post(
        f"/entry/{meant(variables, NEW)}/change", kind="reword", text="Always use yarn here", version=version(late)
    )
    assert again.status == 200
    assert any("yarn" in text for text, _, _ in told(variables).values())


def test_who_is_later_than_the_command_line_is_told(visitor: Visitor, variables: Mapping[str, str]) -> None:
    name = meant(variables, "instead of npm")
    seen = version(visitor.get(f"/entry/{name}"))

    async def note() -> None:
        async with books.open(environment=variables) as book:
            await book.memory.note(NoteRequest(text=NEW, change=name))

    anyio.run(note)
    for step in ("preview", "change"):
        late = visitor.post(f"/entry/{name}/{step}", kind="forget", version=seen)
        assert late.status == 409
        assert "nothing is lost" in late.plain
        assert NEW in late.plain
    assert any(NEW in text for text, _, _ in told(variables).values())


def test_a_page_that_was_opened_before_a_pin_cannot_forget_the_entry(
    visitor: Visitor, variables: Mapping[str, str]
) -> None:
    name = meant(variables, "instead of npm")
    seen = version(visitor.get(f"/entry/{name}"))
    visitor.post(f"/entry/{name}/change", kind="pin", version=seen)

    assert visitor.post(f"/entry/{name}/change", kind="forget", version=seen).status == 409
    assert told(variables)[name][2]


def test_tabs_that_change_the_same_entry_at_once_lose_nothing(visitor: Visitor, variables: Mapping[str, str]) -> None:
    name = meant(variables, "instead of npm")
    seen = version(visitor.get(f"/entry/{name}"))
    wanted = [f"Always use tool{number} here" for number in range(4)]
    answers: dict[str, Seen] = {}

    def send(text: str) -> None:
        form = {"csrf": visitor.csrf, "kind": "reword", "text": text, "version": seen}
        answers[text] = Visitor(visitor.port, "", dict(visitor.cookies)).ask(f"/entry/{name}/change", form)

    tabs = [threading.Thread(target=send, args=(text,)) for text in wanted]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()

    won = [text for text, answer in answers.items() if answer.status == 303]
    assert len(won) == 1
    assert [answers[text].status for text in wanted if text not in won] == [409] * 3
    assert any(won[0] in text for text, _, _ in told(variables).values())


def test_a_change_waits_for_a_consolidation_that_runs_and_both_count(
    visitor: Visitor, variables: Mapping[str, str]
) -> None:
    name = meant(variables, "instead of npm")
    seen = version(visitor.get(f"/entry/{name}"))

    async def both() -> None:
        async with books.open(environment=variables) as book, anyio.create_task_group() as tasks:
            await book.memory.note(NoteRequest(text="Keep replies in Danish", everywhere=True))
            tasks.start_soon(book.memory.rebuild)
            form = {"kind": "reword", "text": NEW, "version": seen}
            done = await anyio.to_thread.run_sync(lambda: visitor.post(f"/entry/{name}/change", **form))
            assert done.status in (200, 409), done.plain[:300]
            assert done.status == 200

    anyio.run(both)
    texts = [text for text, _, _ in told(variables).values()]
    assert any(NEW in text for text in texts)
    assert any("Danish" in text for text in texts)


def test_a_review_keeps_and_drops_and_takes_back(visitor: Visitor, variables: Mapping[str, str]) -> None:
    page = visitor.get("/review")
    versions = dict(
        re.findall(r'name="entry" value="(m\w{9})"><input type="hidden" name="version" value="([\w-]+)"', page.text)
    )
    ids = list(versions)
    assert ids
    first = ids[0]

    dropped = visitor.post("/review/decide", entry=first, version=versions[first], verdict="drop")
    assert first not in re.findall(r'name="entry" value="(m\w{9})"', dropped.text)
    assert "follow now" in dropped.plain
    undo(visitor, dropped)
    assert first in re.findall(r'name="entry" value="(m\w{9})"', visitor.get("/review").text)

    kept = visitor.post("/review/decide", entry=first, version=versions[first], verdict="keep")
    assert kept.status == 200
    assert "follow now" not in visitor.post("/review/finish").plain
    assert first in [each.id for each in entries(variables) if not each.candidate]


def test_a_review_of_what_changed_meanwhile_decides_nothing(visitor: Visitor) -> None:
    page = visitor.get("/review")
    first = re.findall(r'name="entry" value="(m\w{9})"', page.text)[0]

    assert visitor.post("/review/decide", entry=first, version="0" * 16, verdict="drop").status == 400
    assert visitor.post("/review/decide", entry=f"{first} m000000000", version="- -", verdict="drop").status == 400
    assert first in visitor.get("/review").text


def test_another_rank_is_tried_made_and_taken_back(visitor: Visitor, variables: Mapping[str, str]) -> None:
    def order() -> list[str]:
        return re.findall(r'data-drag="(m\w{9})"', visitor.get("/prompt?project=github.com/acme/shop").text)

    before = order()
    last = before[-1]
    tried = visitor.get(f"/prompt?project=github.com/acme/shop&try={last}&to=pin")
    assert "If it were pinned" in tried.plain
    assert told(variables)[last][2] is False
    done = visitor.post(
        "/prompt/rank", entry=last, to="pin", version=version(tried), project="github.com/acme/shop", budget="5000"
    )
    assert "The rank is changed" in done.plain
    assert told(variables)[last][2] is True
    undo(visitor, done)
    assert told(variables)[last][2] is False
    assert order() == before


def test_a_line_is_moved_down_and_up_again(visitor: Visitor, variables: Mapping[str, str]) -> None:
    shop = "/prompt?project=github.com/acme/shop"

    async def note() -> None:
        async with books.open(environment=variables) as book:
            for text in ("Ask before adding a package", "Name branches after the ticket"):
                await book.memory.note(NoteRequest(text=text, project="github.com/acme/shop"))

    anyio.run(note)
    before = re.findall(r'data-drag="(m\w{9})"', visitor.get(shop).text)
    link = re.search(r'href="(/prompt[^"]*try=(m\w{9})&amp;to=after:(m\w{9}))', visitor.get(shop).text)
    assert link
    tried = visitor.get(link[1].replace("&amp;", "&").partition("#")[0])
    order = re.search(r'name="order" value="([\w ]+)"', tried.text)
    assert order
    assert "The prompt would be the same" not in tried.plain
    form = {"entry": link[2], "to": f"after:{link[3]}", "order": order[1], "project": "github.com/acme/shop"}

    done = visitor.post("/prompt/rank", **form, version=version(tried), budget="5000")

    assert "The rank is changed" in done.plain
    after = re.findall(r'data-drag="(m\w{9})"', visitor.get(shop).text)
    assert after.index(link[2]) == after.index(link[3]) + 1
    undo(visitor, done)
    assert re.findall(r'data-drag="(m\w{9})"', visitor.get(shop).text) == before


def test_learning_is_paused_and_goes_on(visitor: Visitor, home: Path) -> None:
    assert "Learning starts by itself" in visitor.get("/pipeline").plain

    paused = visitor.post("/pipeline/act", action="pause")
    assert "The background is paused" in paused.plain
    assert "background = false" in (home / "config.toml").read_text("utf-8")
    assert "Pause the background" in visitor.post("/pipeline/act", action="resume").plain
    assert visitor.post("/pipeline/act", action="nonsense").status == 400


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/entry/m000000000/change", {"kind": "forget"}),
        ("/entry/m000000000/preview", {"kind": "nonsense"}),
        ("/undo", {"id": "nonsense"}),
        ("/prompt/rank", {"entry": "m000000000"}),
        ("/review/decide", {"entry": "", "verdict": "keep"}),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_changes_nothing(
    visitor: Visitor, variables: Mapping[str, str], path: str, form: dict[str, str]
) -> None:
    before = told(variables)
    found = visitor.post(path, **form)

    assert found.status in (400, 409)
    assert "Traceback" not in found.text
    assert told(variables) == before
