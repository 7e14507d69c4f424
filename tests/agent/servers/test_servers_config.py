"""What is configured, offered and given back: values, without any server."""

from __future__ import annotations

import base64
import tomllib
from typing import Any

import msgspec
import pytest

from commonplace.agent.servers.config import ServerAddress, ServerCommand, ServerConfig, configured
from commonplace.agent.servers.results import MOST_IMAGES, CallResult, McpResult, failure, image_url, output
from commonplace.agent.servers.tool_list import ListedTool, namespace, schema, tools_to_offer, unique
from commonplace.agent.tools.registry import ToolDefinition
from commonplace.context.truncate import TruncationPolicy
from commonplace.errors import BadSetting
from pictures import gif, jpeg, png

POLICY = TruncationPolicy("tokens", 100)


def test_servers_are_configured_as_codex_writes_them() -> None:
    table = tomllib.loads("""
[one]
command = "npx"
args = ["-y", "server"]
env = { LEVEL = "debug" }
env_vars = ["TOKEN", { name = "OTHER", source = "local" }]
cwd = "sub"
startup_timeout_sec = 20
tool_timeout_sec = 1.5
enabled_tools = ["a"]
disabled_tools = ["b"]
scopes = ["x"]
[two]
url = "https://example.org/mcp"
bearer_token_env_var = "KEY"
http_headers = { X-A = "b" }
env_http_headers = { X-B = "VAR" }
enabled = false
required = true
startup_timeout_ms = 500
""")
    found = configured(table)

    assert (
        ServerConfig(
            "one",
            ServerCommand("npx", ("-y", "server"), {"LEVEL": "debug"}, ("TOKEN", "OTHER"), "sub"),
            start_seconds=20,
            call_seconds=1.5,
            enabled_tools=frozenset({"a"}),
            disabled_tools=frozenset({"b"}),
        ),
        ServerConfig(
            "two",
            ServerAddress("https://example.org/mcp", "KEY", {"X-A": "b"}, {"X-B": "VAR"}),
            enabled=False,
            required=True,
            start_seconds=0.5,
        ),
    ) == found.servers
    assert ("mcp_servers.one.scopes is not known here and is ignored.",) == found.notes


def test_no_table_means_no_servers() -> None:
    assert () == configured(None).servers
    assert () == configured({}).servers


@pytest.mark.parametrize(
    ("table", "place"),
    [
        (5, "mcp_servers is no table"),
        ({"a": 5}, "mcp_servers.a is no table"),
        ({"a b": {"command": "x"}}, "'a b'"),
        ({"": {"command": "x"}}, "''"),
        ({"x" * 65: {"command": "x"}}, "xxx"),
        ({"a": {}}, "mcp_servers.a cannot be used: it needs command or url"),
        ({"a": {"command": "x", "url": "http://h"}}, "not both"),
        ({"a": {"command": 5}}, "`$.command`"),
        ({"a": {"command": " "}}, "mcp_servers.a.command"),
        ({"a": {"command": "x\0"}}, "mcp_servers.a.command"),
        ({"a": {"command": "x", "args": "y"}}, "`$.args`"),
        ({"a": {"command": "x", "env": {"A=B": "c"}}}, "mcp_servers.a.env"),
        ({"a": {"command": "x", "env": {"A": "c\0"}}}, "mcp_servers.a.env"),
        ({"a": {"command": "x", "env": {"A": 5}}}, "`$.env"),
        ({"a": {"command": "x", "http_headers": {}}}, "mcp_servers.a.http_headers"),
        ({"a": {"url": "http://h", "args": []}}, "mcp_servers.a.args"),
        ({"a": {"url": "ftp://h"}}, "mcp_servers.a.url"),
        ({"a": {"url": "http://"}}, "mcp_servers.a.url"),
        ({"a": {"url": "http://h:99999"}}, "mcp_servers.a.url"),
        ({"a": {"url": "http://h\n"}}, "mcp_servers.a.url"),
        ({"a": {"url": "http://h", "bearer_token": "x"}}, "mcp_servers.a.bearer_token"),
        ({"a": {"url": "http://h", "http_headers": {"A B": "c"}}}, "mcp_servers.a.http_headers"),
        ({"a": {"url": "http://h", "http_headers": {"A": "b\r\nC: d"}}}, "mcp_servers.a.http_headers"),
        ({"a": {"command": "x", "enabled": "yes"}}, "`$.enabled`"),
        ({"a": {"command": "x", "startup_timeout_sec": 0}}, "mcp_servers.a.startup_timeout_sec is 0"),
        ({"a": {"command": "x", "tool_timeout_sec": float("inf")}}, "mcp_servers.a.tool_timeout_sec"),
        ({"a": {"command": "x", "tool_timeout_sec": float("nan")}}, "mcp_servers.a.tool_timeout_sec"),
    ],
)
def test_a_bad_value_is_named_with_its_place(table: Any, place: str) -> None:
    with pytest.raises(BadSetting) as caught:
        configured(table)

    assert place in caught.value.sentence()


def listed(name: str, server: str = "s") -> ListedTool:
    return tools_to_offer(ServerConfig(server, ServerCommand("x")), [{"name": name, "inputSchema": {}}]).tools[0]


def test_names_that_would_be_the_same_differ_in_a_hash() -> None:
    several = ["a.b", "a b", "a_b", "x" * 100, "x" * 101]
    tools = unique([("s", listed(name)) for name in several] + [("s_", listed("a_b", "s_"))])
    keys = [each.definition.key for _, each in tools]

    assert 6 == len({*keys})
    assert "mcp__s__a_b" == keys[0]
    assert keys == [each.definition.key for _, each in unique([(server, each) for server, each in tools])]
    assert all(len(key) <= 64 for key in keys)


def test_a_long_server_name_leaves_room_for_tools() -> None:
    assert len(namespace("n" * 64)) <= 36
    assert namespace("n" * 64) != namespace("n" * 63)
    assert len(listed("t" * 200, "n" * 64).definition.key) <= 64


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {"type": "object", "properties": {}}),
        ([], {"type": "object", "properties": {}}),
        ({"type": "array"}, {"type": "object", "properties": {}}),
        ({"properties": {"a": 5}}, {"type": "object", "properties": {"a": {}}}),
        ({"properties": []}, {"type": "object", "properties": {}}),
        ({"properties": {"a": {"type": 7}}}, {"type": "object", "properties": {"a": {}}}),
        ({"required": "all", "anyOf": {}}, {"type": "object", "properties": {}}),
        ({"$schema": "http://x", "$id": "y"}, {"type": "object", "properties": {}}),
        ({"default": object()}, {"type": "object", "properties": {}}),
        ({"required": ["a"]}, {"type": "object", "properties": {}, "required": ["a"]}),
    ],
)
def test_a_senseless_schema_is_made_into_one_that_an_api_takes(given: Any, expected: Any) -> None:
    assert expected == schema(given)


def test_annotations_are_believed_only_when_they_do_not_contradict_themselves() -> None:
    hints = [None, {}, {"readOnlyHint": True}, {"readOnlyHint": True, "destructiveHint": True}, {"readOnlyHint": "yes"}]
    config = ServerConfig("s", ServerCommand("x"))
    tools = [tools_to_offer(config, [{"name": "t", "annotations": each}]).tools[0] for each in hints]

    assert [False, False, True, False, False] == [each.read_only for each in tools]


def test_texts_share_one_budget() -> None:
    blocks = [{"type": "text", "text": letter * 300} for letter in "abc"]
    found = output(CallResult(blocks), 0.5, POLICY)

    assert isinstance(found.content, list)
    texts = [str(part["text"]) for part in found.content]
    assert "Wall time: 0.5000 seconds\nOutput:" == texts[0]
    assert "a" * 300 == texts[1]
    assert "tokens truncated" in texts[2]
    assert "[omitted 1 text items ...]" == texts[-1]
    assert isinstance(found.detail, McpResult)
    assert blocks == found.detail.content


def test_a_structure_is_told_where_no_text_tells_it() -> None:
    alone = output(CallResult((), {"n": 2**70, "s": "\ud800", "nan": float("nan")}), 0.1, POLICY)
    beside = output(CallResult([{"type": "text", "text": "two"}], {"n": 2}), 0.1, POLICY)

    assert '{"n":"1180591620717411303424","s":"?","nan":null}' == alone.content[-1]["text"]  # pyright: ignore[reportArgumentType, reportIndexIssue, reportUnknownMemberType]
    assert "two" == beside.content[-1]["text"]  # pyright: ignore[reportArgumentType, reportIndexIssue, reportUnknownMemberType]
    assert msgspec.json.encode(alone.detail)


def test_a_huge_structure_is_not_shown() -> None:
    found = output(CallResult((), {"a": "x" * 10**6}), 0.1, POLICY)

    assert isinstance(found.detail, McpResult)
    assert found.detail.structured_content is None
    assert len(str(found.content)) < 2000


@pytest.mark.parametrize("data", [png(3, 2), gif(3, 2), jpeg(3, 2)])
def test_a_picture_is_what_its_bytes_say(data: bytes) -> None:
    assert str(image_url(base64.b64encode(data).decode())).startswith("data:image/")


@pytest.mark.parametrize(
    "data", ["", "!!", "bm8=", base64.b64encode(png(100_000, 100_000)).decode(), "iVBOR", "A" * 20_000_000]
)
def test_what_is_no_picture_is_not_shown_as_one(data: str) -> None:
    assert image_url(data) is None


def test_only_so_many_pictures_go_to_the_model() -> None:
    picture = {"type": "image", "data": base64.b64encode(png(1, 1)).decode(), "mimeType": "image/png"}
    found = output(CallResult([picture] * (MOST_IMAGES + 5)), 0.1, POLICY)

    assert MOST_IMAGES == str(found.content).count("input_image'")


def test_a_failure_is_short_and_clean() -> None:
    found = failure("\x1b[31m" + "x" * 10**6)

    assert len(str(found.content)) < 4100
    assert "\x1b" not in str(found.content)
    assert McpResult(error=str(found.content)) == found.detail


def test_definitions_are_functions_in_the_namespace_of_their_server() -> None:
    assert ToolDefinition("t", "function", "", {"type": "object", "properties": {}}, "mcp__s") == listed("t").definition
