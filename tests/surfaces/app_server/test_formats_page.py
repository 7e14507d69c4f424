"""`docs/formats.md` names each kind of line, each kind of item and each field that a session writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app_server.app_client import AppClient

from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, custom_call, failure, reply, say
from exec_driver import make_place

Json = dict[str, Any]
PAGE = (Path(__file__).parents[3] / "docs" / "formats.md").read_text("utf-8")
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n"
CITED = "Yes.<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-2|note=[x]\n</citation_entries>\n</oai-mem-citation>"


class Story:
    """Answers the session by its requests in order, and its sub-agent always the same."""

    def __init__(self) -> None:
        plan = {"plan": [{"step": "look", "status": "in_progress"}]}
        thought: Json = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
        self._answers = iter(
            [
                answer(thought, say("I look.", phase="commentary"), call("exec_command", {"cmd": "echo hi"}, "c1")),
                answer(custom_call("apply_patch", PATCH, "c2"), call("update_plan", plan, "c3")),
                answer(call("spawn_agent", {"message": "A task."}, "c4", namespace="multi_agent_v1")),
                reply(CITED),
                failure("insufficient_quota"),
                reply("The summary."),
                reply("Done."),
            ]
        )

    def __call__(self, body: Json) -> Answer:
        return reply("7.") if '"text": "A task."' in json.dumps(body["input"]) else next(self._answers)


def written(home: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield what each line is, and its fields."""
    for path in home.rglob("*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            record: Json = json.loads(line)
            if "payload" not in record:
                yield path.name, [*record]
                continue
            payload: Json = record["payload"]
            kind = payload.get("kind") if record["type"] == "commonplace" else payload.get("type")
            yield f"{record['type']} {kind or ''}", [*record, *payload]
            if "item" in payload:
                yield f"item {payload['item']['type']}", [*payload["item"]]


def test_the_page_names_everything_that_a_session_writes(tmp_path: Path) -> None:
    with ScriptedResponses([Story()] * 8) as model, AppClient(make_place(tmp_path, model.base_url)) as client:
        thread = client.start()
        client.run(thread, "Do it.", clientUserMessageId="c")
        model.wait_for_requests(5)  # the sub-agent works beside it
        client.run(thread, "", input=[], toolOutput={"name": "mail", "output": "You have mail."})
        client.ask("thread/compact/start", {"threadId": thread})
        client.until(
            lambda: (
                sum(
                    each["params"]["threadId"] == thread
                    for each in client.told
                    if each.get("method") == "turn/completed"
                )
                == 3
            )
        )
        client.run(thread, "And now?")
        client.ask("thread/rollback", {"threadId": thread, "numTurns": 1})
        client.ask("thread/name/set", {"threadId": thread, "name": "called so"})
        client.ask("thread/memoryMode/set", {"threadId": thread, "mode": "disabled"})
        client.end()
    found = dict[str, set[str]]()
    for kind, fields in written(tmp_path / "home"):
        found.setdefault(kind, set()).update(fields)
    words = {*re.findall(r"\w+", PAGE)}

    assert {kind.partition(" ")[0] for kind in found} >= {
        "session_meta",
        "world_state",
        "compacted",
        "item",
        "event_msg",
    }
    unnamed = {kind: missing for kind, fields in found.items() if (missing := fields - words)}
    assert unnamed == {}
    assert [kind for kind in found if not {*re.findall(r"\w+", kind)} <= words] == []
