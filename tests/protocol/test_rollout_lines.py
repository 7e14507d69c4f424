"""Lines of session files: three generations of envelopes, and each way in which a line can be unusable."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.protocol import rollout
from commonplace.protocol.rollout import LineError
from ledgers import Json

PARTS: Json = {
    "timestamp": "2026-11-15T09:00:00.000Z",
    "ordinal": 3,
    "type": "response_item",
    "payload": {"type": "message"},
    "metadata": {"client_authored": True},
}


def test_an_envelope_is_read_whatever_the_order_of_its_keys() -> None:
    for order in itertools.permutations(PARTS):
        raw = json.dumps({"more": [1], **{name: PARTS[name] for name in order}}).encode()

        line = rollout.decode(raw)

        assert ("2026-11-15T09:00:00.000Z", 3, "response_item") == (line.timestamp, line.ordinal, line.type), order
        assert {"type": "message"} == json.loads(bytes(line.payload)), order
        assert {"client_authored": True} == json.loads(bytes(line.metadata)), order
        assert (len(raw), -1) == (line.size, line.offset), order


def test_a_file_cannot_say_where_its_lines_stand() -> None:
    raw = b'{"type":"x","payload":{},"offset":7,"size":9,"::offset":7,"::size":9}'

    line = rollout.decode(raw)

    assert (-1, len(raw)) == (line.offset, line.size)


@pytest.mark.parametrize("timestamp", ["garbage", "", None])
def test_a_time_that_cannot_be_read_does_not_make_a_line_unusable(timestamp: str | None) -> None:
    raw = json.dumps({"timestamp": timestamp, "type": "x", "payload": {}}).encode()

    assert timestamp == rollout.decode(raw).timestamp


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.text(min_size=1), JSON, st.none() | st.integers(0, 2**60), st.none() | st.dictionaries(st.text(), JSON))
def test_lines_of_any_type_survive_reading_and_writing(
    line_type: str, payload: Any, ordinal: int | None, metadata: Json | None
) -> None:
    written = rollout.encode(line_type, payload, timestamp="t", ordinal=ordinal, metadata=metadata)

    line = rollout.decode(written[:-1])
    again = rollout.encode(
        line.type,
        line.payload,
        timestamp=line.timestamp or "",
        ordinal=line.ordinal,
        metadata=line.metadata or None,
    )

    assert written == again
    assert payload == json.loads(bytes(line.payload))


def test_a_line_is_written_with_keys_in_the_order_of_codex() -> None:
    blob = rollout.BlobRef("/output", "ab", 5, "text/plain")
    written = rollout.encode("x", {"b": 1}, timestamp="t", ordinal=0, metadata={"m": 1}, blob=[blob])

    assert (
        b'{"timestamp":"t","ordinal":0,"type":"x","payload":{"b":1},"metadata":{"m":1},'
        b'"blob":[{"pointer":"/output","sha256":"ab","bytes":5,"media_type":"text/plain"}]}\n'
    ) == written


def test_what_is_absent_is_not_written() -> None:
    assert b'{"timestamp":"t","type":"x","payload":null}\n' == rollout.encode("x", None, timestamp="t", blob=[])


def test_a_payload_over_several_lines_is_written_as_one() -> None:
    written = rollout.encode("x", msgspec.Raw(b'{\n"a":\n1}'), timestamp="t")

    assert 1 == written.count(b"\n")
    assert {"a": 1} == json.loads(bytes(rollout.decode(written).payload))


# --- Files of 2025.


@pytest.mark.parametrize(
    ("raw", "line_type", "timestamp"),
    [
        (
            b'{"id":"0198","timestamp":"2025-05-01T00:00:00Z","instructions":null}',
            "session_meta",
            "2025-05-01T00:00:00Z",
        ),
        (b'{"record_type":"state"}', "state", None),
        (b'{"type":"message","role":"user","content":[]}', "response_item", None),
        (b'{"type":"reasoning","summary":[]}', "response_item", None),
        (b'{"type":"message","role":"user","content":[],"payload":5}', "message", None),
    ],
    ids=["head", "state", "message", "reasoning", "with a payload it is an envelope"],
)
def test_bare_lines_get_an_envelope(raw: bytes, line_type: str, timestamp: str | None) -> None:
    line = rollout.decode(raw)

    assert (line_type, timestamp, len(raw)) == (line.type, line.timestamp, line.size)
    assert bytes(line.payload) == (b"5" if line_type == "message" else raw)


# --- Lines that cannot be used.


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not_json"),
        (b"no json", "not_json"),
        (b'{"type":"x","payload":{}', "not_json"),
        (b'{"type":"x","payload":{}} {}', "not_json"),
        (b'{"type":"x","payload":{"a":1,}}', "not_json"),
        (b"[]", "not_a_record"),
        (b'"text"', "not_a_record"),
        (b"5", "not_a_record"),
        (b"null", "not_a_record"),
        (b"{}", "not_a_record"),
        (b'{"type":5,"payload":{}}', "not_a_record"),
        (b'{"timestamp":"t","type":"response_item"}', "not_a_record"),
        (b'{"type":"response_item","timestamp":"t"}', "not_a_record"),
        (b'{"timestamp":"t","ordinal":"x","type":"response_item","payload":{}}', "not_a_record"),
        (b'{"timestamp":5,"type":"response_item","payload":{}}', "not_a_record"),
        (b'{"id":5,"timestamp":"t"}', "not_a_record"),
        (b'{"type":"x","payload":"\xff"}', "invalid_utf8"),
        (b'{"type":"x","payload":"\xed\xa0\x80"}', "invalid_utf8"),
        (b'{"type":"x","payload":"\xc3"}', "invalid_utf8"),
        (b'{"type":"x","payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too_deep"),
        (b'{"type":"x","payload":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "too_deep"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:40].decode(errors="replace"),
)
def test_a_line_that_cannot_be_used_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(LineError, match=f"^{reason}$"):
        rollout.decode(raw)


def test_a_line_of_very_many_values_is_too_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "MAX_LINE_VALUES", 50)
    envelope = b'{"type":"x","payload":[%s]}'

    assert "x" == rollout.decode(envelope % b",".join([b"1"] * 50)).type
    with pytest.raises(LineError, match=r"^too_dense$"):
        rollout.decode(envelope % b",".join([b"1"] * 51))


def test_a_long_line_of_few_values_is_not_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "MAX_LINE_VALUES", 50)

    assert "x" == rollout.decode(b'{"type":"x","payload":"%s"}' % (b"a" * 10_000)).type


# --- Payloads.


def line(line_type: str, payload: Any) -> rollout.Line:
    return rollout.decode(json.dumps({"timestamp": "t", "type": line_type, "payload": payload}).encode())


def test_a_session_meta_needs_only_an_id() -> None:
    meta = rollout.session_meta(line("session_meta", {"id": "i", "of_the_future": 1}))

    assert ("i", "legacy", None, None) == (meta.id, meta.history_mode, meta.history_base, meta.git)


@pytest.mark.parametrize(
    "payload",
    [{}, {"id": 5}, {"id": "i", "history_base": {"thread_id": "t"}}, {"id": "i", "cwd": 5}, {"id": "i", "git": "x"}],
    ids=str,
)
def test_a_damaged_session_meta_is_an_error(payload: Json) -> None:
    with pytest.raises(msgspec.DecodeError):
        rollout.session_meta(line("session_meta", payload))


@pytest.mark.parametrize(
    ("more", "number"),
    [
        ({}, None),
        ({"window_number": 2}, 2),
        ({"window_id": 3}, 3),
        ({"window_number": 2, "window_id": 3}, 2),
        ({"window_id": "0198c0de-0000-7000-8000-0000000000a1"}, None),
    ],
    ids=str,
)
def test_a_numeric_window_id_is_the_number(more: Json, number: int | None) -> None:
    assert number == rollout.compacted(line("compacted", {"message": "m", **more})).number()


MATCHING: list[tuple[Json, bool]] = [
    ({"message": "m"}, True),
    ({"message": "m", "replacement_history": [{}, {}], "replacement_history_metadata": [{}, {}]}, True),
    ({"message": "m", "replacement_history": [], "replacement_history_metadata": []}, True),
    ({"message": "m", "replacement_history": [{}], "replacement_history_metadata": None}, True),
    ({"message": "m", "replacement_history": [{}], "replacement_history_metadata": []}, False),
    ({"message": "m", "replacement_history": [{}], "replacement_history_metadata": [{}, {}]}, False),
    ({"message": "m", "replacement_history_metadata": [{}]}, False),
    ({"replacement_history": []}, False),
    ({"message": None, "replacement_history": []}, False),
    ({"message": "m", "replacement_history": {}}, False),
    ({"message": "m", "window_number": "1"}, False),
]


@pytest.mark.parametrize(("payload", "fine"), MATCHING, ids=str)
def test_a_compaction_is_damaged_when_its_lists_do_not_match_or_its_message_is_missing(
    payload: Json, fine: bool
) -> None:
    found = line("compacted", payload)
    if fine:
        assert payload["message"] == rollout.compacted(found).message
    else:
        with pytest.raises(msgspec.DecodeError):
            rollout.compacted(found)


@pytest.mark.parametrize(
    ("line_type", "payload", "is_one"),
    [
        ("compacted", {"message": "m", "replacement_history": []}, True),
        ("compacted", {"message": "m", "replacement_history": [{"type": "message"}]}, True),
        ("compacted", {"message": "m"}, False),
        ("compacted", {"message": "m", "replacement_history": None}, False),
        ("compacted", {"replacement_history": []}, False),
        ("compacted", "text", False),
        ("response_item", {"message": "m", "replacement_history": []}, False),
    ],
    ids=str,
)
def test_a_checkpoint_is_a_usable_compaction_with_its_replacement(line_type: str, payload: Any, is_one: bool) -> None:
    assert is_one == (rollout.checkpoint(line(line_type, payload)) is not None)


@pytest.mark.parametrize(
    ("payload", "legacy", "paginated"),
    [
        ({}, False, False),
        ({"window_number": 1, "resume_metadata": {}}, False, False),
        ({"replacement_history": []}, False, False),
        ({"replacement_history": [], "window_number": 1}, False, True),
        ({"replacement_history": [], "resume_metadata": {}}, False, False),
        ({"replacement_history": [], "window_number": 1, "resume_metadata": {}}, True, True),
        ({"replacement_history": [], "window_number": 0, "resume_metadata": {"x": 1}}, True, True),
        ({"replacement_history": [], "window_number": 1, "resume_metadata": None}, False, True),
        ({"replacement_history": [], "window_id": 1, "resume_metadata": {}}, False, False),
    ],
    ids=str,
)
def test_a_compaction_is_final_with_a_number_and_in_legacy_files_resume_metadata(
    payload: Json, legacy: bool, paginated: bool
) -> None:
    found = rollout.compacted(line("compacted", {"message": "m", **payload}))

    assert (legacy, paginated) == (found.is_final("legacy"), found.is_final("paginated"))


REF = {"pointer": "/output", "sha256": "ab", "bytes": 5, "media_type": "text/plain"}


@pytest.mark.parametrize(
    ("blob", "count"), [(None, 0), ([], 0), ([REF], 1), ([REF, REF], 2), ([{"pointer": "/x"}], 0), ("odd", 0)], ids=str
)
def test_references_to_spilled_values_are_read_or_there_are_none(blob: Any, count: int) -> None:
    siblings = {} if blob is None else {"blob": blob}
    raw = json.dumps({"type": "x", "payload": {}, **siblings}).encode()

    assert count == len(rollout.decode(raw).blobs())


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (None, "vscode"),
        ("cli", "cli"),
        ("exec", "exec"),
        ("mcp", "mcp"),
        ({"custom": "atlas"}, "atlas"),
        ({"internal": "memory_consolidation"}, "internal:memory_consolidation"),
        ({"subagent": "review"}, "subagent:review"),
        ({"subagent": {"other": "x"}}, "subagent:other"),
        ({"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1}}}, "subagent:thread_spawn"),
        ({}, "unknown"),
        ({"a": 1, "b": 2}, "unknown"),
        (["cli"], "unknown"),
        (5, "unknown"),
    ],
    ids=str,
)
def test_a_source_is_told_in_one_word(source: Any, name: str) -> None:
    assert name == rollout.source_name(source)
