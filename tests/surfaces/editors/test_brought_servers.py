"""The MCP servers that an editor brings along serve its session."""

from __future__ import annotations

import sys
from pathlib import Path

import acp
import pytest
from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer
from editors.editor import editing

from anchors.scripted_responses import ScriptedResponses, answer, call, reply
from commonplace.surfaces.acp import prompts
from exec_driver import make_place

TESTS = Path(__file__).parents[2]


def test_servers_are_taken_as_settings_describe_them() -> None:
    by_command = McpServerStdio(
        name="my tools", command="/bin/tool", args=["-x"], env=[EnvVariable(name="A", value="b")]
    )
    by_address = HttpMcpServer(
        type="http", name="web", url="http://127.0.0.1:1/mcp", headers=[HttpHeader(name="X", value="y")]
    )

    assert prompts.servers([by_command, by_address]) == {
        "my_tools": {"command": "/bin/tool", "args": ["-x"], "env": {"A": "b"}},
        "web": {"url": "http://127.0.0.1:1/mcp", "http_headers": {"X": "y"}},
    }


async def test_a_server_that_an_editor_brings_is_called(tmp_path: Path) -> None:
    with ScriptedResponses(
        [answer(call("add", {"a": 1, "b": 2}, "c1", namespace="mcp__friendly")), reply("3.")]
    ) as model:
        place = make_place(tmp_path, model.base_url)
        server = McpServerStdio(
            name="friendly",
            command=sys.executable,
            args=[str(TESTS / "agent" / "servers" / "friendly.py"), "stdio"],
            env=[EnvVariable(name="PYTHONPATH", value=str(TESTS))],
        )
        async with editing(place) as (agent, editor):
            session = await agent.new_session(cwd=str(place.cwd), mcp_servers=[server])
            await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("add")])
            old = SseMcpServer(type="sse", name="old", url="http://127.0.0.1:1/sse", headers=[])
            with pytest.raises(acp.RequestError, match="transport of the server 'old'"):
                await agent.new_session(cwd=str(place.cwd), mcp_servers=[old])

    (shown,) = editor.calls().values()
    assert (shown[0].title, shown[-1].status, shown[-1].content[0].content.text) == ("friendly: add", "completed", "3")
