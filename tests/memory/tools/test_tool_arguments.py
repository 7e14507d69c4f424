"""Arguments: what is taken, what is refused, and with which words (spec §1.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from commonplace.errors import ToolError
from commonplace.memory.recall.tools import DEFINITIONS, Listing, MemoryFolder, NoteAdded, call
from commonplace.memory.recall.tools.arguments import ListArguments, NoteArguments, ReadArguments, SearchArguments
from commonplace.memory.recall.tools.results import MatchPage, Reading
from commonplace.memory.recall.visibility import Visibility


@pytest.mark.parametrize("arguments", ["", "   ", "\n\t\u3000", b"", b" \r\n", "{}", b" {} ", {}, '{"path": null}'])
def test_blank_text_is_no_arguments(folder: MemoryFolder, arguments: Any) -> None:
    assert isinstance(call(folder, "list", arguments, Visibility()), Listing)


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("list", {"query": "x"}, "unknown field `query`"),
        ("search", {"query": "x"}, "unknown field `query`"),
        ("search", {"queries": ["x"], "query": "x"}, "unknown field `query`"),
        ("read", {"path": "x", "max_tokens": 3}, "unknown field `max_tokens`"),
        ("add_ad_hoc_note", {"filename": "x", "note": "y", "path": "z"}, "unknown field `path`"),
        ("read", {}, "path"),
        ("read", {"path": None}, "path"),
        ("search", {}, "queries"),
        ("search", {"queries": "x"}, "queries"),
        ("search", {"queries": [1]}, "queries"),
        ("search", {"queries": [None]}, "queries"),
        ("search", {"queries": None}, "queries"),
        ("search", {"queries": ["x"], "match_mode": "any"}, "match_mode"),
        ("search", {"queries": ["x"], "match_mode": {}}, "type"),
        ("search", {"queries": ["x"], "match_mode": {"type": "some"}}, "some"),
        ("search", {"queries": ["x"], "match_mode": {"type": "all_within_lines"}}, "line_count"),
        ("search", {"queries": ["x"], "match_mode": {"type": "all_within_lines", "line_count": -1}}, "line_count"),
        ("search", {"queries": ["x"], "case_sensitive": 1}, "case_sensitive"),
        ("search", {"queries": ["x"], "normalized": "true"}, "normalized"),
        ("search", {"queries": ["x"], "context_lines": -1}, "context_lines"),
        ("list", {"max_results": -1}, "max_results"),
        ("list", {"max_results": 1.0}, "max_results"),
        ("list", {"max_results": 1.5}, "max_results"),
        ("list", {"max_results": True}, "max_results"),
        ("list", {"max_results": "1"}, "max_results"),
        ("list", {"max_results": 2**64}, "64 bits"),
        ("list", {"max_results": []}, "max_results"),
        ("list", {"cursor": 1}, "cursor"),
        ("list", {"path": 1}, "path"),
        ("list", {"path": ["a"]}, "path"),
        ("list", {"path": "\ud800"}, "surrogate"),
        ("list", {"\udfff": 1}, "surrogate"),
        ("search", {"queries": ["\udc80"]}, "surrogate"),
        ("list", {1: 2}, ""),
        ("list", {"path": b"a"}, "path"),
        ("list", {"path": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1}}}}}}}}}}, "deep"),
        ("add_ad_hoc_note", {"filename": "x"}, "note"),
        ("add_ad_hoc_note", {"note": "x"}, "filename"),
    ],
)
def test_arguments_of_another_shape_are_refused(folder: MemoryFolder, name: str, arguments: Any, word: str) -> None:
    with pytest.raises(ToolError) as caught:
        call(folder, name, arguments, Visibility())

    assert caught.value.kind == "bad_arguments"
    assert word in caught.value.message
    assert caught.value.message.encode()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        "1",
        '"x"',
        "{]",
        "{} {}",
        "{'path': 'x'}",
        '{"path": "a", "path": "b"}',
        '{"max_results": NaN}',
        '{"max_results": Infinity}',
        '{"max_results": 1e400}',
        '{"max_results": ' + "9" * 5000 + "}",
        '{"path": "\\ud800"}',
        '{"path": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "[" * 1_000_000,
        '{"a":' * 50_000,
        "\ufeff{}",
        b"\xff",
        b"\xef\xbb\xbf{}",
        '{"path": "a\nb"}',
        "{}".encode("utf-16"),
    ],
    ids=lambda text: repr(text)[:30],
)
def test_text_that_is_no_json_object_is_refused(folder: MemoryFolder, text: str | bytes) -> None:
    with pytest.raises(ToolError) as caught:
        call(folder, "list", text, Visibility())

    assert caught.value.kind == "bad_arguments"
    assert len(caught.value.message) < 2000


def test_null_is_as_good_as_left_out(root: Path, folder: MemoryFolder) -> None:
    (root / "a.md").write_text("x\n")
    nothing = ("match_mode", "path", "cursor", "context_lines", "case_sensitive", "normalized", "max_results")
    given = dict.fromkeys(nothing)

    assert call(folder, "search", {"queries": ["x"], **given}, Visibility()) == call(
        folder, "search", {"queries": ["x"]}, Visibility()
    )
    read = call(folder, "read", '{"path": "a.md", "line_offset": null, "max_lines": null}', Visibility())
    assert isinstance(read, Reading)
    assert read.content == "x\n"


def test_a_mode_may_hold_more_than_it_needs(root: Path, folder: MemoryFolder) -> None:
    (root / "a.md").write_text("x\n")
    result = call(folder, "search", {"queries": ["x"], "match_mode": {"type": "any", "line_count": 3}}, Visibility())

    assert isinstance(result, MatchPage)
    assert msgspec.json.encode(result.match_mode) == b'{"type":"any"}'


def test_the_largest_numbers_are_taken(root: Path, folder: MemoryFolder) -> None:
    (root / "a.md").write_text("x\n")
    most = 2**64 - 1

    call(folder, "list", {"max_results": most}, Visibility())
    call(folder, "read", {"path": "a.md", "max_lines": most}, Visibility())
    call(folder, "search", f'{{"queries": ["x"], "context_lines": {most}, "max_results": {most}}}', Visibility())


def test_the_tools_are_told_in_the_order_of_the_contract() -> None:
    assert [each.name for each in DEFINITIONS] == ["add_ad_hoc_note", "list", "read", "search"]
    assert [each.read_only for each in DEFINITIONS] == [False, True, True, True]


TAKEN = {"add_ad_hoc_note": NoteArguments, "list": ListArguments, "read": ReadArguments, "search": SearchArguments}
GIVEN = {"add_ad_hoc_note": NoteAdded, "list": Listing, "read": Reading, "search": MatchPage}


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.name)
def test_schemas_name_the_fields_that_are_taken_and_given(definition: Any) -> None:
    taken = msgspec.structs.fields(TAKEN[definition.name])
    given = msgspec.structs.fields(GIVEN[definition.name])
    takes, gives = definition.input_schema, definition.output_schema

    assert list(takes["properties"]) == [field.name for field in taken]
    assert takes["required"] == [field.name for field in taken if field.required]
    assert list(gives["properties"]) == gives["required"] == [field.name for field in given]
    assert takes["additionalProperties"] is gives["additionalProperties"] is False
    assert b'"null"' not in msgspec.json.encode(takes)


def test_the_note_tool_tells_what_a_name_looks_like_and_when_to_use_it() -> None:
    note = DEFINITIONS[0]

    assert "YYYY-MM-DDTHH-MM-SS-<slug>.md" in note.input_schema["properties"]["filename"]["description"]
    assert "explicitly asked" in note.description
