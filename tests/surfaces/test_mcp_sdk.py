"""Conformance, proved by the official SDK's client: the same talk over each transport and each era of the protocol."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from serving_http import served
from talking import INITIALIZE, PROGRAM, Talk, checkout, teach

from commonplace.surfaces.mcp import protocol

WAYS = [
    pytest.param(transport, mode, id=f"{transport}-{mode}")
    for transport in ("stdio", "http")
    for mode in ("auto", "legacy", "2026-07-28")
]
NOTE = {"filename": "2026-11-15T10-20-30-use-tabs.md", "note": "remember: use tabs in this project"}


@pytest.fixture
def taught(home: Path) -> Path:
    teach(home)
    return home


@asynccontextmanager
async def connected(
    transport: str, mode: str, cwd: Path, *options: str, roots: list[Path] | None = None
) -> AsyncGenerator[Client]:
    """Connect the SDK's client to a server of its own."""
    more: dict[str, Any] = {"mode": mode}
    if roots is not None:

        async def tell(_: ClientRequestContext) -> types.ListRootsResult:
            return types.ListRootsResult(roots=[types.Root(uri=root.as_uri()) for root in roots])  # pyright: ignore[reportArgumentType]

        more["list_roots_callback"] = tell
    if transport == "stdio":
        environment = {name: value for name, value in os.environ.items() if name.startswith("COMMONPLACE_")}
        server = StdioServerParameters(
            command=PROGRAM[0], args=[*PROGRAM[1:], "mcp", *options], env=environment, cwd=cwd
        )
        async with Client(server, **more) as client:
            yield client
        return
    with served(*options, cwd=cwd) as place:
        headers = {"authorization": f"Bearer {place.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(place.url, http_client=http), **more) as client,
        ):
            yield client


def plain(result: Any) -> tuple[Any, Any]:
    """Return what a tool answered as text, decoded, and as structure."""
    (block,) = result.content
    return json.loads(block.text), result.structured_content


@pytest.mark.parametrize(("transport", "mode"), WAYS)
@pytest.mark.anyio
async def test_the_sdk_s_client_finds_its_way(transport: str, mode: str, taught: Path, tmp_path: Path) -> None:
    shop = checkout(tmp_path / "work", "shop")
    async with connected(transport, mode, shop, "--allow-notes") as client:
        listed = (await client.list_tools()).tools
        calls: dict[str, dict[str, Any]] = {
            "list": {},
            "read": {"path": "MEMORY.md"},
            "search": {"queries": ["pnpm"]},
            "find": {"query": "pnpm or npm", "limit": 3},
            "add_ad_hoc_note": NOTE,
        }
        results = {name: await client.call_tool(name, arguments) for name, arguments in calls.items()}
        refused = await client.call_tool("read", {"path": "../config.toml"})
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("nothing", {})
        resources = (await client.list_resources()).resources
        (summary,) = (await client.read_resource(str(resources[0].uri))).contents
        with pytest.raises(MCPError):
            await client.read_resource("commonplace://memory/nothing")
        templates = (await client.list_resource_templates()).resource_templates

    assert [tool.name for tool in listed] == ["list", "read", "search", "find", "add_ad_hoc_note"]
    for tool in listed:
        assert tool.output_schema
        assert tool.annotations
        assert tool.annotations.read_only_hint is (tool.name != "add_ad_hoc_note")
        assert tool.annotations.open_world_hint is False
        assert ("project" in tool.input_schema["properties"]) is (tool.name != "add_ad_hoc_note")
    for result in results.values():
        assert not result.is_error
        text, structure = plain(result)
        assert text == structure
    assert any("pnpm" in match["content"] for match in plain(results["search"])[0]["matches"])
    assert any("pnpm" in hit["text"] for hit in plain(results["find"])[0]["hits"])
    assert (taught / "memories" / "extensions" / "ad_hoc" / "notes" / NOTE["filename"]).is_file()
    assert refused.is_error
    assert refused.structured_content is None
    assert unknown.value.code == protocol.INVALID_PARAMS
    assert [(each.name, each.mime_type) for each in resources] == [("memory_summary.md", "text/markdown")]
    assert isinstance(summary, types.TextResourceContents)
    assert summary.text.startswith("<commonplace_memory")
    assert "pnpm" in summary.text
    assert "release branch" not in summary.text
    assert "quokkas" not in summary.text
    assert templates == []


@pytest.mark.parametrize(("transport", "mode"), WAYS)
@pytest.mark.anyio
async def test_the_client_learns_which_era_is_spoken(transport: str, mode: str, tmp_path: Path) -> None:
    async with connected(transport, mode, tmp_path) as client:
        version = client.protocol_version
        await client.list_tools()

    assert version == ("2025-11-25" if mode == "legacy" else "2026-07-28")


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.anyio
@pytest.mark.usefixtures("taught")
async def test_the_sdk_s_client_is_asked_for_its_roots(transport: str, tmp_path: Path) -> None:
    blog = checkout(tmp_path / "blog", "blog")
    async with connected(transport, "legacy", tmp_path, roots=[blog]) as client:
        first = plain(await client.call_tool("read", {"path": "MEMORY.md"}))[0]["content"]
        again = plain(await client.call_tool("read", {"path": "MEMORY.md"}))[0]["content"]

    assert "release branch" in first
    assert "pnpm" not in first
    assert again == first


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.anyio
async def test_without_leave_there_are_no_notes(transport: str, tmp_path: Path, home: Path) -> None:
    async with connected(transport, "auto", tmp_path) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        with pytest.raises(MCPError):
            await client.call_tool("add_ad_hoc_note", NOTE)

    assert names == ["list", "read", "search", "find"]
    assert not (home / "memories").exists()


def test_the_versions_are_those_of_the_sdk() -> None:
    assert HANDSHAKE_PROTOCOL_VERSIONS == protocol.HANDSHAKE_VERSIONS
    assert MODERN_PROTOCOL_VERSIONS == protocol.MODERN_VERSIONS


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
@pytest.mark.usefixtures("taught")
def test_results_have_the_shape_of_every_version(version: str) -> None:
    asked: dict[str, dict[str, Any]] = {
        "tools/list": {},
        "tools/call": {"name": "list"},
        "resources/list": {},
        "resources/read": {"uri": "commonplace://memory/summary"},
        "resources/templates/list": {},
        "prompts/list": {},
        "ping": {},
        "logging/setLevel": {"level": "debug"},
    }
    with Talk() as talk:
        begun = talk.request("initialize", {**INITIALIZE, "protocolVersion": version})["result"]
        results = {method: talk.request(method, params)["result"] for method, params in asked.items()}

    for method, result in {"initialize": begun, **results}.items():
        methods.validate_server_result(method, version, result)
