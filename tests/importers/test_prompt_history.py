"""A prompt history tells what was pasted and what nobody typed, and claims nothing that it cannot know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.importers import prompt_history
from commonplace.importers.prompt_history import SessionPrompts

HERE = "11111111-1111-4111-8111-111111111111"
LOG = "\n".join(f"step {number} done" for number in range(6))
PROJECTS = frozenset({"projects"})


def entry(display: str, minute: int, pasted: dict[str, Any] | None = None, session: str = HERE) -> str:
    """A line of Claude Code's history, so many minutes after the epoch."""
    return json.dumps(
        {
            "display": display,
            "pastedContents": pasted or {},
            "timestamp": minute * 60_000,
            "project": "/r",
            "sessionId": session,
        }
    )


def time(minute: float) -> str:
    return f"1970-01-01T00:{int(minute):02}:{int(minute % 1 * 60):02}.000Z"


def prompts(tmp_path: Path, *lines: str, session: str = HERE) -> SessionPrompts | None:
    (tmp_path / "history.jsonl").write_text("".join(line + "\n" for line in lines))
    history = prompt_history.beside(tmp_path / "projects" / "-r" / f"{session}.jsonl", PROJECTS)
    assert history is not None
    return history.session(session)


def text_paste(content: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": 1, "type": "text"} | ({} if content is None else {"content": content}) | fields


ONE = "[Pasted text #1 +5 lines]"


@pytest.mark.parametrize(
    ("display", "pasted", "message", "found"),
    [
        pytest.param(f"why? {ONE} tell me", {"1": text_paste(LOG)}, f"why? {LOG} tell me", [LOG], id="kept"),
        pytest.param(f"why? {ONE} tell me", {}, f"why? {LOG} tell me", [LOG], id="lost, between words"),
        pytest.param(ONE, {"1": text_paste(LOG + "\n")}, LOG, [LOG], id="alone, stored without its last line end"),
        pytest.param(ONE, {}, LOG, [LOG], id="lost and alone, by its number of lines"),
        pytest.param(ONE, {}, "one line", [], id="lost and alone, other number of lines"),
        pytest.param("[Pasted text #1]", {}, "any words", [], id="lost and alone, nothing to go by"),
        pytest.param(
            "[Pasted text #1] ok", {"1": text_paste("x" * 900)}, "x" * 900 + " ok", ["x" * 900], id="one line"
        ),
        pytest.param(
            f"{ONE} and [Pasted text #2]",
            {"1": text_paste(LOG), "2": text_paste("two and three")},
            f"{LOG} and two and three",
            [LOG, "two and three"],
            id="two",
        ),
        pytest.param(
            f"{ONE} and [Pasted text #2]", {}, f"{LOG} and two and three", [], id="two, and the seam is not certain"
        ),
        pytest.param(f"a {ONE} b", {"1": text_paste(LOG.replace("\n", "\r\n"))}, f"a {LOG} b", [LOG], id="line ends"),
        pytest.param(f"why? {ONE}", {"1": text_paste(LOG)}, f"how? {LOG}", [], id="another prompt"),
        pytest.param("[Image #1] look", {"1": {"type": "image"}}, "[Image #1] look", [], id="a picture"),
        pytest.param(
            "start [...Truncated text #1 +5 lines...] end",
            {"1": text_paste(LOG)},
            f"start {LOG} end",
            [],
            id="shortened",
        ),
        pytest.param(" and ".join([ONE] * 70), {}, " and ".join([LOG] * 70), [], id="too many"),
    ],
)
def test_placeholders_become_stretches(
    tmp_path: Path, display: str, pasted: dict[str, Any], message: str, found: list[str]
) -> None:
    known = prompts(tmp_path, entry(display, 1, pasted))
    assert known is not None

    assert found == [message[start:end] for start, end in known.pasted(message)]


def test_a_long_paste_stands_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "paste-cache").mkdir()
    (tmp_path / "paste-cache" / "0123456789abcdef.txt").write_text("two and three")
    pasted = {
        "1": text_paste(LOG),
        "2": text_paste(contentHash="0123456789abcdef"),
        "3": text_paste(contentHash="../x"),
    }
    known = prompts(tmp_path, entry(f"{ONE} and [Pasted text #2]", 1, pasted))
    assert known is not None

    assert len(known.pasted(f"{LOG} and two and three")) == 2


def test_the_history_of_another_session_tells_nothing(tmp_path: Path) -> None:
    assert prompts(tmp_path, entry(f"see {ONE}", 1, session="other", pasted={"1": text_paste(LOG)})) is None


@pytest.mark.parametrize(
    ("lines", "message", "minute", "lacks"),
    [
        pytest.param([entry("one", 1), entry("two", 9)], "Run the nightly check.", 5, True, id="nobody typed it"),
        pytest.param([entry("one", 1), entry("run it", 5), entry("two", 9)], "run it", 5, False, id="typed"),
        pytest.param([entry("one", 1), entry("two", 9)], "Run it again.", 0.5, False, id="before the first"),
        pytest.param([entry("one", 1), entry("two", 9)], "Run it again.", 9.5, False, id="after the last"),
        pytest.param([entry("one", 1)], "Run it again.", 1.5, False, id="one prompt covers nothing"),
        pytest.param(
            [entry("one", 1), "{broken", entry("two", 9)], "Run it again.", 5, False, id="a broken line there"
        ),
        pytest.param(
            [entry("one", 1), entry("x", 2, session="other"), "{", entry("y", 3, session="other"), entry("two", 9)],
            "Run it again.",
            5,
            False,
            id="a broken line between the same prompts",
        ),
        pytest.param(
            [entry("one", 1), "{", entry("two", 3), entry("three", 9)],
            "Run it again.",
            5,
            True,
            id="a broken line elsewhere",
        ),
        pytest.param(
            [entry("one", 1), entry("also fix the docs", 3), entry("and the tests", 4), entry("two", 9)],
            "also fix the docs\nand the tests",
            5,
            False,
            id="two queued prompts that came as one",
        ),
        pytest.param(
            [entry("one", 1), entry("[Pasted text #1]", 3), entry("two", 9)],
            "Run it again.",
            5,
            False,
            id="a lost beginning",
        ),
        pytest.param([entry("one", 1), entry("two", 9)], "Run it again.", -1, False, id="no time"),
        pytest.param([entry("one", 1), entry("two", 9)], "[image]", 5, False, id="too short to tell"),
        pytest.param(
            [entry("one", 1), entry("y", 4), entry("two", 9)], "Yearly check of keys.", 5, True, id="a short prompt"
        ),
    ],
)
def test_a_prompt_is_missing_only_where_the_history_is_whole(
    tmp_path: Path, lines: list[str], message: str, minute: float, lacks: bool
) -> None:
    known = prompts(tmp_path, *lines)
    assert known is not None

    assert lacks is known.lacks(message, time(minute) if minute >= 0 else "")


def test_codex_writes_seconds_and_whole_texts(tmp_path: Path) -> None:
    lines = [
        {"session_id": HERE, "ts": 60, "text": "one"},
        {"session_id": HERE, "ts": 540, "text": "use [$lint](s/lint)"},
    ]
    known = prompts(tmp_path, *(json.dumps(line) for line in lines))
    assert known is not None

    assert not known.lacks("use $lint", time(5))
    assert known.lacks("Review the diff.", time(5))


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "3", '{"display": 3}', '{"sessionId": 5}', '{"timestamp": "x"}', "[" * 5000, "\x00"]
)
def test_a_broken_line_costs_only_itself(tmp_path: Path, line: str) -> None:
    known = prompts(tmp_path, line, entry(f"see {ONE}", 1, {"1": text_paste(LOG)}), line)
    assert known is not None

    assert known.pasted(f"see {LOG}")


def test_a_line_that_is_broken_inside_counts_as_broken(tmp_path: Path) -> None:
    bad = json.dumps({"display": 3, "timestamp": 300_000, "sessionId": HERE})
    known = prompts(tmp_path, entry("one", 1), bad, entry("two", 9))
    assert known is not None

    assert not known.lacks("Run it again.", time(5))


def test_without_a_history_there_is_none(tmp_path: Path) -> None:
    assert prompt_history.beside(tmp_path / "projects" / "x.jsonl", PROJECTS) is None
    assert prompt_history.beside(tmp_path / "elsewhere" / "x.jsonl", PROJECTS) is None


def test_of_a_large_history_the_newest_part_is_read(tmp_path: Path) -> None:
    big = entry("filler " * 1000, 1, session="other")
    count = prompt_history._MAX_BYTES // len(big) + 2  # pyright: ignore[reportPrivateUsage]
    known = prompts(tmp_path, entry("old", 0), *[big] * count, entry(f"see {ONE}", 9, {"1": text_paste(LOG)}))
    assert known is not None

    assert known.pasted(f"see {LOG}")
    assert not known.lacks("Run it again.", time(5))


@given(
    st.lists(st.tuples(st.text("ab \n", max_size=8), st.text("ab\n", min_size=1, max_size=30)), max_size=3),
    st.text("ab", max_size=5),
)
def test_stretches_are_in_order_and_inside(pieces: list[tuple[str, str]], end: str) -> None:
    display, message = "", ""
    pasted: dict[str, Any] = {}
    for number, (literal, paste) in enumerate(pieces, 1):
        display += f"{literal}[Pasted text #{number} +{paste.count(chr(10))} lines]"
        message += literal + paste
        pasted[str(number)] = text_paste(paste)
    display, message = display + end, (message + end).strip()
    history = prompt_history.PromptHistory(Path("nowhere"), [entry(display, 1, pasted).encode()])
    known = history.session(HERE)
    assert known is not None

    spans = known.pasted(message)

    places = [place for span in spans for place in span]
    assert places == sorted(places)
    assert all(0 <= place <= len(message) for place in places)
    if message == display:
        assert not spans
