"""Nothing of other projects comes out of the memory server, unless they are asked for by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Command
from talking import INITIALIZE, Talk, checkout, teach

from commonplace.protocol.citations import OPEN
from commonplace.surfaces.mcp.protocol import META_CAPABILITIES, META_CLIENT, META_VERSION

SHOP, BLOG, TIDE = "pnpm", "release branch", "quokkas"
"""Words that only one project's memory has."""
SUMMARY = "commonplace://memory/summary"


@pytest.fixture
def shop(home: Path, tmp_path: Path) -> Path:
    """A clone of the first project, and a memory of three."""
    teach(home)
    return checkout(tmp_path / "shop", "shop")


@pytest.fixture
def talk(shop: Path) -> Iterator[Talk]:
    with Talk(cwd=shop) as begun:
        begun.begin()
        yield begun


def everything(talk: Talk, **project: str) -> str:
    """Return all that the tools tell, as text."""
    told: list[Any] = []
    for word in (SHOP, BLOG, TIDE, "project"):
        told.append(talk.call("search", {"queries": [word], "case_sensitive": False, **project}))
        told.append(talk.call("find", {"query": f"what about {word}?", "limit": 50, **project}))
    files = [entry["path"] for entry in talk.call("list", project)["structuredContent"]["entries"]]
    for folder in ("rollout_summaries", "skills", "extensions/ad_hoc/notes"):
        listed = talk.call("list", {"path": folder, **project})
        files += [entry["path"] for entry in listed.get("structuredContent", {"entries": []})["entries"]]
    told += [talk.call("read", {"path": path, **project}) for path in files]
    # A search repeats what was asked: that is not told.
    return "\n".join(_without_questions(result) for result in told)


def _without_questions(result: Any) -> str:
    told = dict(result.get("structuredContent", {}))
    for name in ("query", "queries"):
        told.pop(name, None)
    for match in told.get("matches", ()):
        match.pop("matched_queries")
    return json.dumps(told)


def test_the_tools_tell_of_one_project(talk: Talk) -> None:
    told = everything(talk)

    assert SHOP in told
    assert BLOG not in told
    assert TIDE not in told
    assert "short sentences" in told


@pytest.mark.parametrize(
    "name", ["blog", "github.com/acme/blog", "GitHub.com/ACME/Blog", "https://github.com/acme/blog"]
)
def test_another_project_is_told_of_by_name(name: str, talk: Talk) -> None:
    told = everything(talk, project=name)

    assert BLOG in told
    assert SHOP not in told
    assert TIDE not in told


def test_a_star_means_all(talk: Talk) -> None:
    told = everything(talk, project="*")

    assert all(word in told for word in (SHOP, BLOG, TIDE))


def test_a_project_that_nobody_knows_is_a_tool_error(talk: Talk) -> None:
    for name in ("list", "search", "find", "read"):
        result = talk.call(name, {"project": "nothing", "path": "MEMORY.md", "queries": ["a"], "query": "a"})
        assert result["isError"] is True
        assert "nothing" in result["content"][0]["text"]


def test_the_resource_tells_of_one_project(talk: Talk) -> None:
    (content,) = talk.request("resources/read", {"uri": SUMMARY})["result"]["contents"]

    assert content["text"].startswith('<commonplace_memory project="github.com/acme/shop">')
    assert SHOP in content["text"]
    assert BLOG not in content["text"]
    assert TIDE not in content["text"]


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
@pytest.mark.parametrize(("client", "cites"), [("codex-mcp-client", True), ("claude-code", False), (None, False)])
def test_only_a_client_that_hides_citations_is_asked_for_them(
    shop: Path, client: str | None, cites: bool, modern: bool
) -> None:
    info = {} if client is None else {"name": client, "version": "1"}
    params: dict[str, Any] = {"uri": SUMMARY}
    with Talk(cwd=shop) as talk:
        if modern:
            params["_meta"] = {META_VERSION: "2026-07-28", META_CAPABILITIES: {}, META_CLIENT: info}
        else:
            talk.request("initialize", {**INITIALIZE, "clientInfo": info})
        (content,) = talk.request("resources/read", params)["result"]["contents"]

    assert (OPEN in content["text"]) == cites


def test_a_project_can_be_chosen_for_the_server(shop: Path) -> None:
    with Talk("--project", "tide", cwd=shop) as talk:
        talk.begin(roots={})
        told = everything(talk)
        (content,) = talk.request("resources/read", {"uri": SUMMARY})["result"]["contents"]

    for text in (told, content["text"]):
        assert TIDE in text
        assert SHOP not in text
        assert BLOG not in text


def test_a_project_that_the_server_does_not_know_is_a_tool_error(shop: Path) -> None:
    with Talk("--project", "nothing", cwd=shop) as talk:
        talk.begin()
        result = talk.call("list")

    assert result["isError"] is True


@pytest.mark.usefixtures("shop")
def test_a_folder_without_a_project_sees_what_is_for_all(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with Talk(cwd=tmp_path / "elsewhere") as talk:
        talk.begin()
        told = everything(talk)

    assert "short sentences" in told
    assert not any(word in told for word in (SHOP, BLOG, TIDE))


def test_line_numbers_hold_where_lines_are_hidden(talk: Talk) -> None:
    def lines(**project: str) -> list[str]:
        return str(talk.call("read", {"path": "MEMORY.md", **project})["structuredContent"]["content"]).split("\n")

    whole, ours = lines(project="*"), lines()

    assert len(whole) == len(ours)
    assert all(mine in ("", line) for mine, line in zip(ours, whole, strict=True))
    assert whole != ours


def counts(commonplace: Command, word: str) -> tuple[int, int]:
    entries = commonplace.ok("memory", "list")["entries"]
    return tuple(sum(each[use] for each in entries if word in each["text"]) for use in ("retrieved", "injected"))  # pyright: ignore[reportReturnType]


def test_what_is_given_out_is_counted(shop: Path, commonplace: Command) -> None:
    with Talk(cwd=shop) as talk:
        talk.begin()
        talk.call("search", {"queries": ["instead of npm"], "path": "MEMORY.md"})
        talk.call("find", {"query": "pnpm instead of npm"})
        assert talk.end() == 0
    retrieved, injected = counts(commonplace, "pnpm")
    assert retrieved >= 2
    assert injected == 0
    assert counts(commonplace, BLOG) == (0, 0)

    with Talk(cwd=shop) as talk:
        talk.begin()
        talk.request("resources/read", {"uri": SUMMARY})
        assert talk.end() == 0
    assert counts(commonplace, "pnpm")[1] >= 1
    assert counts(commonplace, BLOG) == (0, 0)


def test_what_find_promises_is_what_it_gives(talk: Talk) -> None:
    from commonplace.search.hits import Hit

    tools = {tool["name"]: tool for tool in talk.request("tools/list")["result"]["tools"]}
    hit = tools["find"]["outputSchema"]["properties"]["hits"]["items"]

    of_agents = [name for name in Hit.__struct_fields__ if name != "candidate"]  # candidates are for people
    assert list(hit["properties"]) == of_agents


def test_both_forms_of_a_result_say_the_same(talk: Talk) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list", {}),
        ("read", {"path": "MEMORY.md"}),
        ("search", {"queries": ["a"]}),
        ("find", {"query": "pnpm"}),
    ]
    for name, arguments in calls:
        result = talk.call(name, arguments)
        (block,) = result["content"]
        assert json.loads(block["text"]) == result["structuredContent"]
        assert result["isError"] is False


def test_a_secret_that_somebody_put_into_a_file_is_not_given_out(shop: Path, home: Path) -> None:
    secret = "ghp_" + "a8Kd93mXq2Lr7Tz0Wv5Yb1Nc6Ge4Hf8Jp2Rs"[:36]
    (home / "memories" / "skills").mkdir(exist_ok=True)
    (home / "memories" / "skills" / "deploy.md").write_text(f"deploy with the token {secret}\nand wait\n")
    with Talk(cwd=shop) as talk:
        talk.begin()
        read = talk.call("read", {"path": "skills/deploy.md"})
        found = talk.call("search", {"queries": ["deploy with"]})

    assert "deploy with the token" in json.dumps(read)
    assert "deploy with the token" in json.dumps(found)
    assert secret not in json.dumps([read, found])


LIFTED: list[Any] = [
    "*",
    " * ",
    "blog",
    "github.com/acme/blog",
    "BLOG",
    "tide",
    "https://github.com/acme/tide",
    "/repo/blog",
]


@pytest.mark.parametrize("where", ["shop", "elsewhere"])
def test_a_server_of_one_project_only_shows_no_other_whatever_is_asked(where: str, shop: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with Talk("--project", "shop", "--only", cwd=shop if where == "shop" else tmp_path / where) as talk:
        talk.begin()
        for name in [*LIFTED, "", None, 1, ["*"], {"*": 1}, "../blog", "global"]:
            for tool, arguments in (
                ("list", {}),
                ("read", {"path": "MEMORY.md"}),
                ("search", {"queries": [BLOG], "case_sensitive": False}),
                ("find", {"query": f"what about {BLOG}?"}),
            ):
                result = _without_questions(talk.call(tool, {**arguments, "project": name}))
                assert not any(word in result for word in (BLOG, TIDE)), (tool, name)
        told = everything(talk)
        named = everything(talk, project="shop")
        section = json.dumps(talk.request("resources/read", {"uri": SUMMARY}))
        tools = talk.request("tools/list", {})["result"]["tools"]

    assert SHOP in told
    assert SHOP in named
    assert not any(word in told + named + section for word in (BLOG, TIDE, "acme/blog", "acme/tide"))
    assert not any("project" in tool["inputSchema"]["properties"] for tool in tools)


def test_a_server_of_one_project_only_does_not_tell_which_others_there_are(shop: Path) -> None:
    def refusal(talk: Talk, name: Any) -> str:
        result = talk.call("find", {"query": "x", "project": name})
        assert result["isError"], result
        return json.dumps(result["content"])

    with Talk("--project", "shop", "--only", cwd=shop) as talk:
        talk.begin()
        refusals = {refusal(talk, name) for name in ("blog", "acme/blog", "nonesuch", "*", "", "x" * 600, "a\x00b")}

    assert 1 == len(refusals)


def test_only_needs_a_project(commonplace: Command) -> None:
    refused = commonplace("mcp", "--only")

    assert refused.code == 2
    assert "--only needs --project" in refused.err


def _paths(memories: Path) -> list[str]:
    """Return every path below the memory, and other ways to write some of them."""
    known = [str(path.relative_to(memories)) for path in memories.rglob("*")]
    plain = [path for path in known if not path.startswith(".git/objects/")]
    ways = ("./MEMORY.md", "memory.md", "skills/../MEMORY.md", str(memories / "MEMORY.md"), "MEMORY.md/", "", ".", "..")
    return [*plain, *ways, ".git", ".git/HEAD", "../commonplace.db", "../ledger", "/", "~", "%2e%2e", "MEMORY.md\x00"]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"context_lines": 10**6},
    {"max_results": 10**6},
    {"cursor": "0", "max_results": 1},
    {"match_mode": {"type": "all_within_lines", "line_count": 10**6}},
    {"match_mode": {"type": "all_on_same_line"}},
    {"normalized": True, "case_sensitive": False},
    {"project": "shop", "context_lines": 50},
]


def test_no_argument_of_any_tool_lifts_the_one_project(shop: Path, home: Path) -> None:
    paths = _paths(home / "memories")
    told: list[tuple[str, dict[str, Any], str]] = []
    with Talk("--project", "shop", "--only", "--allow-notes", cwd=shop) as talk:
        talk.begin()

        def call(tool: str, arguments: dict[str, Any]) -> None:
            told.append((tool, arguments, _without_questions(talk.call(tool, arguments))))

        for path in paths:
            call("list", {"path": path})
            call("read", {"path": path})
            call("read", {"path": path, "line_offset": 2, "max_lines": 10**6})
            call("search", {"queries": ["e"], "path": path, "max_results": 200})
        for word in (BLOG, TIDE, "acme", "a", "."):
            for options in OPTIONS:
                call("search", {"queries": [word], **options})
                call("search", {"queries": [SHOP, word], **options})
        for query in (BLOG, TIDE, "project:blog", "scope:* quokkas", "acme/blog", "\\* quokkas", SHOP):
            call("find", {"query": query, "limit": 10**6})
            call("find", {"query": query, "scope": "*"})
            call("find", {"query": query, "projects": ["*"]})
        uris = (SUMMARY, f"{SUMMARY}?project=*", f"{SUMMARY}/../MEMORY.md", "commonplace://memory/MEMORY.md")
        told += [("resource", {"uri": uri}, json.dumps(talk.request("resources/read", {"uri": uri}))) for uri in uris]

    assert len(told) > 100
    assert any(SHOP in answer for _, _, answer in told)
    assert [] == [(tool, given) for tool, given, answer in told if BLOG in answer or TIDE in answer]
