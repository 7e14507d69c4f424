"""Somebody's program that uses the published Python SDK of Codex, one scene per call.

It runs in the SDK's own environment: nothing of ours is imported. It gets one JSON argument, and prints JSON lines:
`{"wait": n}` asks the test to answer on stdin once the model got n requests, `{"release": true}` to let the model go
on, and the last line is what the scene found.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openai_codex import AsyncCodex, Codex, CodexConfig, ExternalMessage, LocalImageInput, Sandbox, TextInput
from openai_codex.client import CodexClient
from openai_codex.errors import CodexError

GIVEN = json.loads(sys.argv[1])


def config(**more: Any) -> CodexConfig:
    return CodexConfig(cwd=GIVEN["cwd"], env=GIVEN["env"], **GIVEN["launch"], **more)


def wait(requests: int) -> None:
    print(json.dumps({"wait": requests}), flush=True)
    sys.stdin.readline()


def release() -> None:
    print(json.dumps({"release": True}), flush=True)


def dumped(value: Any) -> Any:
    return value.model_dump(by_alias=True, mode="json")


def result(turn: Any) -> dict[str, Any]:
    return {
        "id": turn.id,
        "status": turn.status.value,
        "answer": turn.final_response,
        "items": [item.root.type for item in turn.items],
        "tokens": None if turn.usage is None else turn.usage.total.total_tokens,
    }


def failing(action: Any) -> dict[str, Any]:
    try:
        action()
    except (CodexError, RuntimeError) as error:
        return {"kind": type(error).__name__, "text": str(error)}
    return {"kind": "none"}


def talk() -> Any:
    with Codex(config()) as codex:
        metadata = dumped(codex.metadata)
        thread = codex.thread_start()
        turns = [result(thread.run(f"turn {number}")) for number in range(2)]
        return {"metadata": metadata, "id": thread.id, "turns": turns}


def stream() -> Any:
    with Codex(config()) as codex:
        turn = codex.thread_start().turn("go")
        events = list(turn.stream())
        return {
            "events": [event.method for event in events],
            "kinds": [type(event.payload).__name__ for event in events],
            "text": "".join(e.payload.delta for e in events if e.method == "item/agentMessage/delta"),
            "output": "".join(e.payload.delta for e in events if e.method == "item/commandExecution/outputDelta"),
            "plan": [dumped(e.payload) for e in events if e.method == "turn/plan/updated"],
            "diff": [e.payload.diff for e in events if e.method == "turn/diff/updated"],
        }


def external() -> Any:
    with Codex(config()) as codex:
        thread = codex.thread_start()
        return result(thread.run(ExternalMessage("mail", "You have mail."), source="cron"))


def steer() -> Any:
    with Codex(config()) as codex:
        turn = codex.thread_start().turn("begin")
        wait(1)
        steered = turn.steer("and also this")
        release()
        return {"same": steered.turn_id == turn.id, **result(turn.run())}


def join() -> Any:
    """Start a second turn while one runs."""
    with Codex(config()) as codex:
        thread = codex.thread_start()
        first = thread.turn("begin")
        wait(1)
        second = thread.turn("more")
        release()
        return {"same": first.id == second.id, "first": result(first.run()), "second": result(second.run())}


def interrupt() -> Any:
    with Codex(config()) as codex:
        thread = codex.thread_start()
        turn = thread.turn("begin")
        wait(1)
        turn.interrupt()
        ended = result(turn.run())
        return {**ended, "after": result(thread.run("again")), "late": failing(turn.interrupt)}


def resume() -> Any:
    with Codex(config()) as codex:
        thread = codex.thread_start()
        thread.run("one")
        attached = codex.thread_resume(thread.id)
        again = result(attached.run("two"))
    with Codex(config()) as codex:
        resumed = codex.thread_resume(thread.id)
        turns = [[item.root.type for item in turn.items] for turn in resumed.read(include_turns=True).thread.turns]
        return {"id": resumed.id == thread.id, "again": again, "turns": turns, "third": result(resumed.run("three"))}


def fork() -> Any:
    with Codex(config()) as codex:
        thread = codex.thread_start()
        first = thread.run("one")
        thread.run("two")
        forked = codex.thread_fork(thread.id)
        answer = result(forked.run("three"))
        read = forked.read(include_turns=True).thread
        old = thread.read(include_turns=True).thread
        earlier = codex._client.thread_fork(thread.id, {"lastTurnId": first.id}).thread
        return {
            "from": read.forked_from_id == thread.id,
            "answer": answer,
            "turns": len(read.turns),
            "old": len(old.turns),
            "earlier": len(earlier.turns),
        }


def threads() -> Any:
    with Codex(config()) as codex:
        first = codex.thread_start()
        first.run("the first thing")
        second = codex.thread_start()
        second.run("the second thing")
        first.set_name("  called so  ")
        listed = codex.thread_list().data
        paged = codex.thread_list(limit=1)
        rest = codex.thread_list(limit=1, cursor=paged.next_cursor)
        codex.thread_archive(first.id)
        after = [each.id for each in codex.thread_list().data]
        archived = [each.id for each in codex.thread_list(archived=True).data]
        failed = failing(lambda: first.run("archived"))
        back = codex.thread_unarchive(first.id)
        again = codex.thread_resume(back.id)
        read = again.read(include_turns=True).thread
        return {
            "listed": [(each.preview, each.name) for each in listed],
            "pages": [paged.data[0].id == second.id, rest.data[0].id == first.id, rest.next_cursor],
            "after": after == [second.id],
            "archived": archived == [first.id],
            "failed": failed,
            "read": [dumped(turn)["status"] for turn in read.turns],
            "texts": [
                item.root.content[0].root.text for item in read.turns[0].items if item.root.type == "userMessage"
            ],
            "found": [each.preview for each in codex.thread_list(search_term="second").data],
        }


def compact() -> Any:
    with Codex(config()) as codex:
        thread = codex.thread_start()
        thread.run("one")
        thread.compact()
        seen: list[str] = []
        while "thread/status/changed idle" not in seen[1:] or "item" not in seen:
            event = codex._client.next_notification()
            status = getattr(event.payload, "status", None)
            kind = getattr(getattr(status, "root", None), "type", None)
            seen.append(f"{event.method} {kind}" if kind is not None else event.method)
            items = [turn.items for turn in thread.read(include_turns=True).thread.turns]
            if any(item.root.type == "contextCompaction" for each in items for item in each):
                seen.append("item")
        return {"seen": seen, "after": result(thread.run("two"))}


def approvals() -> Any:
    asked: list[Any] = []
    decisions = GIVEN["decisions"]

    def decide(method: str, params: Any) -> Any:
        asked.append([method, params.get("command"), sorted(params)])
        return {"decision": decisions.pop(0)}

    with CodexClient(config(), approval_handler=decide) as client:
        client.initialize()
        start = {"approvalPolicy": GIVEN["policy"], "sandbox": GIVEN["sandbox"], "cwd": GIVEN["cwd"]}
        thread = client.thread_start(start).thread
        turn = client.turn_start(thread.id, "do it").turn
        done = client.wait_for_turn_completed(turn.id)
        items = client.thread_read(thread.id, include_turns=True).thread.turns[-1].items
        shown = [[each.root.type, dumped(each).get("status")] for each in items]
        return {"asked": asked, "status": done.turn.status.value, "items": shown}


def settings() -> Any:
    with Codex(config()) as codex:
        models = codex.models()
        thread = codex.thread_start(
            model="gpt-5.4",
            sandbox=Sandbox.read_only,
            developer_instructions="Speak like a pirate.",
            base_instructions="You are a parrot.",
            config={"model_reasoning_effort": "low"},
        )
        schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
        first = result(thread.run("structured", output_schema=schema, effort="high"))
        picture = result(thread.run([TextInput("what is it?"), LocalImageInput(GIVEN["picture"])]))
        shown = thread.read(include_turns=True).thread.turns[-1].items[0].root.content
        codex.login_api_key("sk-test")
        account = dumped(codex.account())
        codex.logout()
        return {
            "models": [[model.id, model.is_default] for model in models.data],
            "account": account,
            "turns": [first, picture],
            "input": [part.root.type for part in shown],
        }


def errors() -> Any:
    with Codex(config()) as codex:
        client = codex._client
        thread = codex.thread_start()
        return {
            "failed": failing(lambda: thread.run("fail")),
            "unknown": failing(lambda: codex.thread_resume("01a1dddc-8646-7c22-bb1d-cc3d829fde08")),
            "no uuid": failing(lambda: codex.thread_resume("nothing")),
            "steer": failing(lambda: client.turn_steer(thread.id, "x", "hi")),
            "method": failing(lambda: client._request_raw("no/such/method", {})),
            "params": failing(lambda: client._request_raw("turn/start", {"threadId": 5})),
            "large": failing(lambda: client.turn_start(thread.id, "x" * (1024 * 1024 + 1))),
            "again": failing(client.initialize),
            "after": result(thread.run("still there?")),
        }


def plain() -> Any:
    """Use what is experimental without saying so."""
    with CodexClient(config(experimental_api=False)) as client:
        client.initialize()
        thread = client.thread_start({"cwd": GIVEN["cwd"]}).thread
        context = {"additionalContext": {"a": {"value": "b", "kind": "untrusted"}}}
        return {
            "field": failing(lambda: client.turn_start(thread.id, "hi", context)),
            "method": failing(lambda: client._request_raw("memory/reset", None)),
        }


def beside() -> Any:
    """Run two threads at the same time, with the asynchronous client."""

    async def both() -> list[Any]:
        async with AsyncCodex(config()) as codex:
            threads = [await codex.thread_start() for _ in range(2)]
            found = await asyncio.gather(*(thread.run("hello") for thread in threads))
            return [result(each) for each in found]

    return asyncio.run(both())


print(json.dumps({"found": globals()[GIVEN["scene"]]()}), flush=True)
