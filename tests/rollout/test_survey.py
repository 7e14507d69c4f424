"""What a listing knows: one pass, or many small ones as a file grows, or a look at both ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from recording import compress

from commonplace.errors import LedgerError, NotASession
from commonplace.rollout import survey as surveying
from commonplace.rollout.chain import read_head
from commonplace.rollout.survey import Survey, glance, survey
from generated_rows import strides
from ledgers import TIME, Json, Script, assistant, function_call, function_output, user

DATA = Path(__file__).parent.parent / "data"
RECORDINGS = sorted(DATA.glob("codex_*/*/rollout-*.jsonl"))
BLOB: Json = {"pointer": "/x", "sha256": "a" * 64, "bytes": 1, "media_type": "text/plain"}


def tokens(total: int | None) -> Json:
    return {"info": None if total is None else {"total_token_usage": {"total_tokens": total}}}


def test_a_survey_tells_what_a_listing_shows(home: Path) -> None:
    script = Script().turn(user("first words"), assistant("a")).event("token_count", **tokens(10))
    script.turn(user("second")).event("token_count", **tokens(25)).raw(b"bad")
    script.line(
        "response_item", {"type": "message", "role": "x", "content": []}, blob=[BLOB, BLOB | {"sha256": "../x"}]
    )
    path = script.write_home(home)
    found = survey(path)

    assert ("first words", "model-2", 25, 2, 1, {"a" * 64}) == (
        found.preview,
        found.model,
        found.tokens,
        found.turns,
        found.skipped,
        found.blobs,
    )
    assert (path.stat().st_size, True, TIME) == (found.offset, found.complete, found.updated_at)


def test_turns_that_were_rolled_back_are_not_counted(home: Path) -> None:
    path = Script().turn(user("1")).turn(user("2")).turn(user("3")).rollback(2).turn(user("4")).write_home(home)

    assert 2 == survey(path).turns


def test_the_newest_memory_mode_of_the_thread_itself_counts(home: Path) -> None:
    script = Script().line("session_meta", {"id": "someone else", "memory_mode": "disabled"})

    assert survey(script.write_home(home)).memory_mode is None

    script.line("session_meta", {"id": script.thread_id, "memory_mode": "polluted"}).turn(user("a"))

    assert "polluted" == survey(script.write_home(home)).memory_mode
    assert "polluted" == glance(script.write_home(home)).memory_mode


@pytest.mark.parametrize(
    "line",
    [
        ("event_msg", []),
        ("event_msg", {"no": "type"}),
        ("event_msg", {"type": 7}),
        ("event_msg", {"type": "thread_rolled_back", "num_turns": "x"}),
        ("response_item", "user"),
        ("response_item", {"type": "message", "role": "user"}),
        ("turn_context", 7),
        ("session_meta", {"id": 7}),
    ],
    ids=str,
)
def test_a_line_that_is_not_what_its_type_says_is_counted_and_changes_nothing(
    home: Path, line: tuple[str, object]
) -> None:
    plain = survey(Script().turn(user("a")).event("token_count", **tokens(7)).write_home(home))
    path = Script().turn(user("a")).event("token_count", **tokens(7)).line(*line).write_home(home)

    assert replace(plain, offset=path.stat().st_size, skipped=1) == survey(path)
    quick = glance(path)
    assert (plain.model, plain.tokens, plain.preview) == (quick.model, quick.tokens, quick.preview)


def busy_script() -> Script:
    script = Script().turn(user("wörter"), function_call("c"), function_output("c")).event("token_count", **tokens(5))
    script.raw(b"bad line").turn(user("b"), user("steer")).rollback(1).raw(b"").compacted([user("s")])
    script.event("task_started", turn_id="t").item(user("open turn")).event("token_count", **tokens(None))
    script.line("response_item", user("spilled"), blob=[BLOB]).item(user("no event")).event("turn_aborted", turn_id="t")
    return script.event("token_count", **tokens(9)).item(
        {"type": "agent_message", "author": "a", "recipient": "b", "content": []}
    )


@strides(7)
@pytest.mark.parametrize("newline", [True, False])
def test_a_survey_that_goes_on_after_a_cut_at_any_byte_ends_like_one_from_scratch(
    tmp_path: Path, newline: bool, stride: int
) -> None:
    data = busy_script().data()[: None if newline else -1]
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    whole = survey(path)
    for cut in range(data.index(b"\n"), len(data), stride):
        path.write_bytes(data[:cut])
        part = survey(path)
        path.write_bytes(data)

        assert whole == survey(path, part), cut


pieces = st.sampled_from(
    [
        b'{"timestamp":"t","type":"event_msg","payload":{"type":"task_started","turn_id":"t"}}',
        b'{"timestamp":"u","type":"event_msg","payload":{"type":"task_complete","turn_id":"t"}}',
        b'{"timestamp":"v","type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}',
        b'{"timestamp":"w","type":"event_msg","payload":{"info":{"total_token_usage":{"total_tokens":3}},"type":"token_count"}}',
        b'{"timestamp":"x","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}',
        b'{"timestamp":"y","type":"turn_context","payload":{"model":"m"}}',
        b'{"type":"inter_agent_communication","payload":{}}',
        b"garbage",
        b"",
        '{"é'.encode(),
    ]
)


@given(lines=st.lists(pieces, max_size=12), cuts=st.lists(st.integers(0, 1200), max_size=5))
def test_a_survey_in_any_number_of_steps_ends_like_one_from_scratch(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int]
) -> None:
    head = Script().data()
    data = head + b"".join(line + b"\n" for line in lines)
    path = tmp_path_factory.mktemp("any") / "s.jsonl"
    path.write_bytes(head)
    found = survey(path)
    for cut in sorted(cuts):
        path.write_bytes(data[: len(head) + cut])
        found = survey(path, found)
    path.write_bytes(data)

    assert survey(path) == survey(path, found)


def test_a_torn_last_line_waits_until_it_has_its_newline(home: Path) -> None:
    path = Script().turn(user("a")).write_home(home)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"torn')
    found = survey(path)

    assert (size, 0) == (found.offset, found.skipped)

    with path.open("ab") as file:
        file.write(b"\n")
    found = survey(path, found)

    assert (size + 7, 1) == (found.offset, found.skipped)


def test_a_glance_at_a_recording_tells_what_a_survey_tells() -> None:
    assert RECORDINGS
    unknown = {"turns": 0, "turn_state": 0, "offset": 0, "skipped": 0, "complete": False, "external_at": None}
    for path in RECORDINGS:
        assert replace(survey(path), **unknown, blobs=set()) == glance(path), path


@pytest.fixture
def small_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "_GLANCE_BYTES", 100_000)
    monkeypatch.setattr(surveying, "_GLANCE_RECORDS", 10)


def long_script() -> Script:
    script = Script().turn(user("first")).event("token_count", **tokens(1))
    for number in range(4000):
        script.item(function_output(str(number), "x" * 100))
    return script


@pytest.mark.usefixtures("small_glance")
def test_a_glance_takes_the_newest_of_each_from_the_end(home: Path) -> None:
    script = long_script().turn(user("a")).event("token_count", **tokens(7)).turn(user("b")).turn(user("c"))
    found = glance(script.write_home(home))

    assert ("first", "model-4", 7) == (found.preview, found.model, found.tokens)
    assert (False, 0, set()) == (found.complete, found.turns, found.blobs)


@pytest.mark.usefixtures("small_glance")
def test_a_glance_that_finds_nothing_at_the_end_keeps_what_the_beginning_said(home: Path) -> None:
    found = glance(long_script().write_home(home))

    assert ("first", "model-1") == (found.preview, found.model)


@pytest.mark.usefixtures("small_glance")
def test_a_glance_skips_token_counts_without_a_number(home: Path) -> None:
    script = long_script().event("token_count", **tokens(8)).turn(user("a")).event("token_count", **tokens(None))

    assert 8 == glance(script.write_home(home)).tokens


@pytest.mark.usefixtures("small_glance")
def test_a_glance_at_a_compressed_file_is_a_survey(home: Path) -> None:
    path = compress(long_script().turn(user("a")).write_home(home))

    assert survey(path) == glance(path)
    assert glance(path).complete


def test_what_is_no_session_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"{}\n")
    for look in (survey, glance):
        with pytest.raises(NotASession):
            look(path)
        with pytest.raises((NotASession, LedgerError)):
            look(tmp_path)


def test_a_preview_is_short(home: Path) -> None:
    path = Script().item(user("x" * 10_000)).write_home(home)

    assert surveying.PREVIEW_CHARS == len(survey(path).preview)


def test_a_survey_can_begin_from_what_a_row_remembers(home: Path) -> None:
    path = Script().turn(user("a")).event("task_started", turn_id="t").item(user("b")).write_home(home)
    half = survey(path)
    with path.open("ab") as file:
        file.write(Script().item(user("still b")).data().split(b"\n", 1)[1])
    again = Survey(read_head(path)[1], offset=half.offset, turns=half.turns, turn_state=half.turn_state)

    assert (2, 2) == (survey(path).turns, survey(path, again).turns)
