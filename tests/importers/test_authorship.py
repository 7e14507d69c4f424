"""From a home of Claude Code or Codex to the author of each stretch: what fields and histories say reaches learning."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from claude_files import START, Transcript

from commonplace.importers import claude_code, ledger_writer
from commonplace.importers.ledger_writer import LedgerDestination
from commonplace.learning.lasting.authors import Author, stretches
from commonplace.learning.lasting.statements import PersonMessage, messages
from commonplace.learning.reading import session_view
from commonplace.learning.reading.session_view import UserText
from commonplace.protocol.rollout import Line
from commonplace.redact import MARK
from commonplace.rollout import reader
from ledgers import Script, user

DATA = Path(__file__).parents[1] / "data" / "claude_recorded"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
LOG = "\n".join(f"we always saw step {number} fail" for number in range(6))
ONE = "[Pasted text #1 +5 lines]"
Row = tuple[Author, str]


def typed(transcript: Transcript, display: str, second: float, **pasted: Any) -> str:
    """A line of the history, so many seconds after the session began."""
    moment = int((START + timedelta(seconds=second)).timestamp() * 1000)
    fields = {"display": display, "pastedContents": pasted, "timestamp": moment, "project": "/repo/app"}
    return json.dumps(fields | {"sessionId": transcript.session}) + "\n"


def session(home: Path) -> Transcript:
    return Transcript(home / "claude" / "projects" / "-repo-app")


def learned(home: Path, transcript: Transcript, *history: str, bound: int = 65536) -> list[PersonMessage]:
    """Import a session and its history, and return what learning reads."""
    transcript.write()
    if history:
        (home / "claude" / "history.jsonl").write_text("".join(history))
    return read(home, transcript.path, bound)


def read(home: Path, transcript: Path, bound: int = 65536) -> list[PersonMessage]:
    written, _ = ledger_writer.write(
        transcript, claude_code.convert, LedgerDestination(home / "ours", lambda: NOW, bound)
    )
    return messages(session_view.read(written[0].path))


def rows(message: PersonMessage) -> list[Row]:
    return [(part.author, message.text[part.start : part.end]) for part in stretches(message.text, marks=message.marks)]


@pytest.mark.parametrize(
    ("text", "fields", "author"),
    [
        (
            "review this\nFrom now on, always use tabs.\n",
            {"promptSource": "sdk"},
            "harness",
        ),  # as `x | claude -p` has it
        ("Always use tabs.\n", {"promptSource": "sdk", "entrypoint": "sdk-cli"}, "harness"),
        ("Always use tabs.", {"promptSource": "sdk", "entrypoint": "sdk-cli"}, None),
        ("Always use tabs.\n", {"promptSource": "typed", "origin": {"kind": "human"}}, None),
    ],
)
def test_what_is_piped_into_a_headless_prompt_is_a_programs(
    tmp_path: Path, text: str, fields: dict[str, Any], author: str | None
) -> None:
    transcript = session(tmp_path)
    transcript.says(text, **fields)
    transcript.answers("Good.")
    transcript.write()
    where = LedgerDestination(tmp_path / "home", lambda: NOW, 65536)
    ((written, *_), _) = ledger_writer.write(transcript.path, claude_code.convert, where)

    assert [author] == [said.author for said in session_view.read(written.path).events() if isinstance(said, UserText)]


@pytest.mark.parametrize(("source", "author"), [("exec", "harness"), ("cli", None)])
def test_a_prompt_of_codex_exec_that_ends_with_a_line_was_piped(
    tmp_path: Path, source: str, author: str | None
) -> None:
    script = Script("0198c0de-0000-7000-8000-0000000000aa", source=source).turn(user("Always use tabs.\n"))
    path = script.write_home(tmp_path)

    assert [author] == [said.author for said in session_view.read(path).events() if isinstance(said, UserText)]


def test_a_plan_is_known_by_its_field(tmp_path: Path) -> None:
    said = session(tmp_path)
    said.says("Split the parser, always.", planContent="Split the parser, always.")

    assert [(Author.PLAN, "Split the parser, always.")] == rows(learned(tmp_path, said)[0])


def test_an_import_without_the_mark_tells_a_plan_by_its_text(tmp_path: Path) -> None:
    said = session(tmp_path)
    said.says("Implement the following plan:\n\n# Split the parser, always.")

    assert [Author.PLAN] == [author for author, _ in rows(learned(tmp_path, said)[0])]


@pytest.mark.parametrize("fields", [{}, {"origin": {"kind": "auto-continuation"}}])
def test_what_a_person_adds_to_a_plan_is_theirs(tmp_path: Path, fields: dict[str, Any]) -> None:
    said = session(tmp_path)
    text = "Implement the following plan:\n\n# Split\n\nUser feedback on this plan: keep the lexer apart"
    said.says(text, planContent="# Split", **fields)

    found = rows(learned(tmp_path, said)[0])

    assert (Author.TYPED, "keep the lexer apart") == found[-1]
    assert [Author.PLAN] * (len(found) - 1) == [author for author, _ in found[:-1]]


def test_a_paste_is_known_by_the_field_of_its_record(tmp_path: Path) -> None:
    said = session(tmp_path)
    said.says(f"why? {LOG} tell me", pastedContents={"1": {"id": 1, "type": "text", "content": LOG}})

    assert [(Author.TYPED, "why? "), (Author.PASTED, LOG), (Author.TYPED, " tell me")] == rows(
        learned(tmp_path, said)[0]
    )


@pytest.mark.parametrize("pasted", [{"1": {"id": 1, "type": "text", "content": LOG}}, {}])
def test_a_paste_is_known_by_the_history(tmp_path: Path, pasted: dict[str, Any]) -> None:
    said = session(tmp_path)
    said.says(f"why? {LOG} tell me")

    found = learned(tmp_path, said, typed(said, f"why? {ONE} tell me", 1, **pasted))

    assert [(Author.TYPED, "why? "), (Author.PASTED, LOG), (Author.TYPED, " tell me")] == rows(found[0])


def test_a_prompt_that_waited_in_the_queue_has_its_pastes_too(tmp_path: Path) -> None:
    said = session(tmp_path)
    said.says("begin")
    said.calls("Bash", "c1", command="ls")
    said.gives("c1", "a.py")
    said.attaches("queued_command", prompt=f"also {LOG}", commandMode="prompt")
    said.notes("queue-operation", operation="enqueue", content=f"and {LOG}", timestamp="2026-11-15T06:00:06.000Z")
    said.notes("queue-operation", operation="remove", timestamp="2026-11-15T06:00:06.000Z")
    said.answers("done")

    history = [typed(said, "begin", 1), typed(said, f"also {ONE}", 3), typed(said, f"and {ONE}", 5)]
    found = learned(tmp_path, said, *history)

    assert [(Author.TYPED, "also "), (Author.PASTED, LOG)] == rows(found[1])
    assert [(Author.TYPED, "and "), (Author.PASTED, LOG)] == rows(found[2])


@pytest.mark.parametrize(
    ("fields", "author"),
    [
        ({}, Author.HARNESS),
        ({"entrypoint": "cli"}, Author.HARNESS),
        ({"promptSource": "typed"}, Author.TYPED),
        ({"origin": {"kind": "human"}}, Author.TYPED),
        ({"entrypoint": "claude-vscode"}, Author.TYPED),
    ],
)
def test_what_the_history_lacks_was_not_typed_unless_a_field_says_so(
    tmp_path: Path, fields: dict[str, Any], author: Author
) -> None:
    said = session(tmp_path)
    said.says("fix the cart")
    said.says("Run the nightly check and always report.", **fields)
    said.says("thanks")

    found = learned(tmp_path, said, typed(said, "fix the cart", 0.9), typed(said, "thanks", 2.9))

    assert [[Author.TYPED], [author], [Author.TYPED]] == [[part for part, _ in rows(message)] for message in found]


@pytest.mark.parametrize("lines", [[], ["{broken\n"], ["other"]])
def test_without_a_usable_history_nothing_changes(tmp_path: Path, lines: list[str]) -> None:
    said = session(tmp_path)
    for text in ("fix the cart", "run the nightly check", f"see\n{LOG}"):
        said.says(text)
    elsewhere = Transcript(tmp_path, "22222222-2222-4222-8222-222222222222")
    others = [typed(elsewhere, "fix the cart", 0), typed(elsewhere, f"see\n{ONE}", 9)]

    found = learned(tmp_path, said, *[line if line != "other" else "".join(others) for line in lines])

    assert all(message.marks.pasted == () and message.marks.author is None for message in found)


def test_the_mark_stands_beside_the_item_and_only_where_there_is_one(tmp_path: Path) -> None:
    said = session(tmp_path)
    said.says(f"why? {LOG}")
    said.says("plain words")
    learned(tmp_path, said, typed(said, f"why? {ONE}", 1))

    lines = [line for line in reader.forward(next((tmp_path / "ours").rglob("*.jsonl"))) if isinstance(line, Line)]
    users = [line for line in lines if b'"role":"user"' in bytes(line.payload)]

    assert [((5, 5 + len(LOG)),), ()] == [origin.pasted for line in users if (origin := line.source()) is not None]
    assert b"pasted" not in bytes(users[0].payload)
    assert b"pasted" not in bytes(users[1].origin)


def test_secrets_that_are_taken_out_move_the_stretches(tmp_path: Path) -> None:
    said = session(tmp_path)
    secret = "ghp_" + "a8Kd93jfLs02MxQe71Zv" + "Bn64Rt58YwUc10Pg"
    pasted = f"{LOG}\ntoken {secret}\nend of log"
    said.says(f"my {secret} leaked: {pasted} and we rotate it")

    message = learned(
        tmp_path, said, typed(said, f"my {secret} leaked: [Pasted text #1 +7 lines] and we rotate it", 1)
    )[0]

    assert secret not in message.text
    assert message.text.count(MARK) == 2
    assert [
        (Author.TYPED, f"my {MARK} leaked: "),
        (Author.PASTED, pasted.replace(secret, MARK)),
        (Author.TYPED, " and we rotate it"),
    ] == rows(message)


def test_a_secret_over_a_seam_leaves_nothing_of_the_paste_as_typed(tmp_path: Path) -> None:
    said = session(tmp_path)
    head, tail = "ghp_a8Kd93jfLs02", "MxQe71ZvBn64Rt58YwUc10Pg\n" + LOG
    said.says(f"mine is {head}{tail} ok")

    message = learned(tmp_path, said, typed(said, f"mine is {head}[Pasted text #1 +6 lines] ok", 1))[0]

    assert MARK in message.text
    assert not any("step" in text for author, text in rows(message) if author.is_own)


def test_a_paste_that_was_too_long_to_keep_stays_a_paste(tmp_path: Path) -> None:
    said = session(tmp_path)
    said.says(f"why? {LOG * 200} tell me")

    count = (LOG * 200).count("\n")
    found = learned(tmp_path, said, typed(said, f"why? [Pasted text #1 +{count} lines] tell me", 1), bound=4096)

    assert "left out" in found[0].text
    assert [(Author.TYPED, "why? ")] == rows(found[0])[:1]
    assert not any("step" in text for author, text in rows(found[0]) if author.is_own)


@pytest.mark.parametrize("version", ["2.0.77", "2.1.197"])
def test_a_recorded_paste_is_told_from_the_words_behind_it(tmp_path: Path, version: str) -> None:
    shutil.copytree(DATA / version / "tty_paste", tmp_path / "claude")
    found = read(tmp_path, next((tmp_path / "claude" / "projects").rglob("*.jsonl")))

    first = rows(found[0])
    assert [Author.PASTED, Author.TYPED] == [author for author, _ in first]
    assert first[0][1].endswith("PASTED line 29 of many words to be long enough")
    assert first[1][1].startswith(" and judge it")
    assert all(author is Author.TYPED for message in found[1:] for author, _ in rows(message))


@pytest.mark.parametrize(
    "file",
    sorted(
        path.relative_to(DATA).as_posix()
        for path in DATA.rglob("projects/*/*.jsonl")
        if (path.parents[2] / "history.jsonl").is_file()
    ),
)
def test_nothing_that_was_typed_in_a_recording_is_taken_for_a_programs(tmp_path: Path, file: str) -> None:
    written, _ = ledger_writer.write(
        DATA / file, claude_code.convert, LedgerDestination(tmp_path / "ours", lambda: NOW, 65536)
    )

    assert all(
        event.author is None
        for each in written
        for event in session_view.read(each.path).events()
        if isinstance(event, UserText)
    )


def test_the_answers_to_a_question_have_their_questions(tmp_path: Path) -> None:
    said = session(tmp_path)
    said.says("begin")
    asked = [{"question": "Which store?", "options": [{"label": "SQLite", "description": "one file"}]}]
    said.calls("AskUserQuestion", "c1", questions=asked)
    answer = 'User has answered your questions: "Which store?"="SQLite".'
    said.gives("c1", answer, toolUseResult={"questions": asked, "answers": {"Which store?": "SQLite"}})

    message = learned(tmp_path, said)[1]
    parts = stretches(message.text, marks=message.marks)

    assert [(Author.HARNESS, "Which store? "), (Author.ANSWER, "SQLite")] == rows(message)
    assert "Which store? / SQLite: one file" == parts[1].question


def codex_home(folder: Path, source: str, history: list[tuple[int, str]]) -> Path:
    """A Codex home with one session of three prompts, a minute apart."""
    thread = "33333333-3333-4333-8333-333333333333"
    meta = {
        "id": thread,
        "timestamp": "2026-11-15T06:00:00.000Z",
        "cwd": "/repo",
        "originator": "x",
        "cli_version": "1",
    }
    lines: list[tuple[str, dict[str, Any]]] = [("session_meta", meta | {"source": source})]
    for text in ("fix the cart", "Review the diff, always.", "thanks"):
        content = [{"type": "input_text", "text": text}]
        lines.append(("response_item", {"type": "message", "role": "user", "content": content}))
    path = folder / "sessions" / "2026" / "11" / "15" / f"rollout-2026-11-15T06-00-00-{thread}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(
        "".join(
            json.dumps({"timestamp": f"2026-11-15T06:{minute:02}:30.000Z", "type": kind, "payload": payload}) + "\n"
            for minute, (kind, payload) in enumerate(lines)
        )
    )
    start = int(START.timestamp())
    (folder / "history.jsonl").write_text(
        "".join(json.dumps({"session_id": thread, "ts": start + at, "text": text}) + "\n" for at, text in history)
    )
    return path


@pytest.mark.parametrize(
    ("source", "history", "author"),
    [
        ("cli", [(89, "fix the cart"), (209, "thanks")], Author.HARNESS),
        ("cli", [(89, "fix the cart"), (149, "Review the diff, always."), (209, "thanks")], Author.TYPED),
        ("cli", [(89, "fix the cart")], Author.TYPED),
        ("vscode", [(89, "fix the cart"), (209, "thanks")], Author.TYPED),
    ],
)
def test_a_codex_file_is_read_with_the_history_beside_it(
    tmp_path: Path, source: str, history: list[tuple[int, str]], author: Author
) -> None:
    found = messages(session_view.read(codex_home(tmp_path, source, history)))

    assert [[Author.TYPED], [author], [Author.TYPED]] == [[part for part, _ in rows(message)] for message in found]


def test_an_answer_in_codex_is_a_reply(tmp_path: Path) -> None:
    path = codex_home(tmp_path, "cli", [])
    asked = {"questions": [{"id": "store", "header": "Store", "question": "Which store?", "options": None}]}
    call = {"type": "function_call", "name": "request_user_input", "arguments": json.dumps(asked), "call_id": "c"}
    given = {"type": "function_call_output", "call_id": "c", "output": '{"answers":{"store":{"answers":["SQLite"]}}}'}
    with path.open("a") as file:
        for payload in (call, given):
            file.write(
                json.dumps({"timestamp": "2026-11-15T06:09:00.000Z", "type": "response_item", "payload": payload})
            )
            file.write("\n")

    message = messages(session_view.read(path))[-1]

    assert [(Author.HARNESS, "Which store? "), (Author.ANSWER, "SQLite")] == rows(message)
