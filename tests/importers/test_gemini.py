"""Gemini CLI's sessions, as its `ChatRecordingService` writes them: whose words, which version, what was undone."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.importers import gemini
from commonplace.importers.converter import TORN, ConvertedRecord, SessionHead, thread_id_for
from commonplace.protocol.items import PASSTHROUGH
from commonplace.protocol.rollout import Skipped

Json = dict[str, Any]
Found = SessionHead | ConvertedRecord | Skipped

SESSION = "7c1f0a3e-5b2d-4e8f-9a61-2d4c8b0e6f13"
START = "2026-09-28T10:00:00.000Z"
TIME = "2026-09-28T10:00:01.000Z"
CONTEXT = (
    "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n"
    "- **Workspace Directories:**\n  - /srv/told\n  - /tmp/plans\n- **Directory Structure:**\n</session_context>"
)
FILES = "--- Content from referenced files ---"
END = "--- End of content ---"
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
SNAPSHOT = "<state_snapshot>\n<overall_goal>finish</overall_goal>\n</state_snapshot>"


def header(**more: Any) -> Json:
    return {"sessionId": SESSION, "projectHash": "f" * 64, "startTime": START, "lastUpdated": START, **more}


def message(key: str, kind: str, content: Any, **more: Any) -> Json:
    return {"id": key, "timestamp": TIME, "type": kind, "content": content, **more}


def user(key: str, text: str, **more: Any) -> Json:
    return message(key, "user", [{"text": text}], **more)


def model(key: str, text: str = "", **more: Any) -> Json:
    return message(key, "gemini", text, **more)


def call(key: str, output: str | None = "fine", status: str = "success", name: str = "read_file", **more: Any) -> Json:
    found: Json = {"id": key, "name": name, "args": {"path": "a"}, "status": status, "timestamp": TIME, **more}
    if output is not None:
        response = {"id": key, "name": name, "response": {"output": output}}
        found["result"] = [{"functionResponse": response}]
    return found


def answer(output: str, key: str | None = None) -> Json:
    return {"functionResponse": {"id": key, "response": {"output": output}}}


def listed(*messages: Json) -> Json:
    return {"$set": {"messages": list(messages), "lastUpdated": TIME}}


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    place = tmp_path / ".gemini" / "tmp" / "short-id" / "chats"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def file(chats: Path) -> Path:
    return chats / "session-2026-09-28T10-00-7c1f0a3e.jsonl"


def log(*lines: Json) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def played(file: Path, *lines: Json) -> list[Found]:
    file.write_bytes(log(*lines))
    return list(gemini.convert(file))


def told(found: list[Found]) -> list[str]:
    """Each payload in a few words."""
    return [
        word
        for item in found
        if isinstance(item, ConvertedRecord)
        for payload in item.payloads
        if (word := _told(payload.type, payload.value))
    ]


def _told(kind: str, value: Json) -> str:
    if kind == "turn_context":
        return ""
    if kind != "response_item":
        what = value.get("num_turns") or value.get("title") or value.get("message")
        return f"{value.get('type') or value.get('kind') or kind} {what}"
    match value["type"]:
        case "message":
            kinds = value.get(PASSTHROUGH, {}).get("content_item_kinds", ["assistant"])
            texts = [part.get("text", part.get("image_url")) for part in value["content"]]
            return " | ".join(f"{kind}: {text}" for kind, text in zip(kinds, texts, strict=True))
        case "reasoning":
            return f"thinks {value['content'][0]['text']}"
        case "function_call":
            return f"calls {value['call_id']} {value['name']} {value['arguments']}"
        case _:
            return f"gives {value['call_id']} {value['output']}"


def test_a_session_is_read_as_it_happened(file: Path) -> None:
    found = played(
        file,
        header(kind="main"),
        listed(user("s0", CONTEXT)),
        user("u1", "merhaba ✓"),
        {"$set": {"lastUpdated": TIME}},
        model(
            "g1",
            "Let me look.",
            toolCalls=[call("c1", "a.txt")],
            thoughts=[{"subject": "Plan", "description": "look", "timestamp": TIME}],
            model="gemini-3-pro",
            tokens=None,
        ),
        model("g2", "One file."),
        {"$set": {"summary": "Looking at files"}},
    )

    assert [
        f"imported.injected: {CONTEXT}",
        "user.text: merhaba ✓",
        "thinks **Plan**\nlook",
        "assistant: Let me look.",
        'calls c1 read_file {"path":"a"}',
        "gives c1 a.txt",
        "assistant: One file.",
        "title Looking at files",
    ] == told(found)
    head = found[0]
    assert isinstance(head, SessionHead)
    assert (SESSION, SESSION, START, "/srv/told", None, "main", "s0") == (
        head.thread_id, head.session_id, head.started, head.cwd, head.parent, head.entrypoint, head.first_record,
    )  # fmt: skip
    settings = [
        p.value
        for item in found
        if isinstance(item, ConvertedRecord)
        for p in item.payloads
        if p.type == "turn_context"
    ]
    assert [{"cwd": "/srv/told", "model": "gemini-3-pro"}] == settings


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("plain", ["user.text: plain"]),
        ({"text": "one part"}, ["user.text: one part"]),
        (["text in a list"], ["user.text: text in a list"]),
        ([{"text": "a"}, {"text": "b"}], ["user.text: a | user.text: b"]),
        (CONTEXT, [f"imported.injected: {CONTEXT}"]),
        (
            "  <hook_context>said a hook</hook_context>",
            ["imported.injected:   <hook_context>said a hook</hook_context>"],
        ),
        (
            [{"text": "mine"}, {"text": "<hook_context>x</hook_context>"}],
            ["user.text: mine | imported.injected: <hook_context>x</hook_context>"],
        ),
        ("<hook_context><commonplace_memory>m", ["memory.injected: <hook_context><commonplace_memory>m"]),
        ("what does <session_context> mean?", ["user.text: what does <session_context> mean?"]),
        ("/compress", ["imported.slash_command: /compress"]),
        ("/chat save x", ["imported.slash_command: /chat save x"]),
        ("/home/me/a.py is broken", ["user.text: /home/me/a.py is broken"]),
        ("// is a comment", ["user.text: // is a comment"]),
        ("?", ["imported.slash_command: ?"]),
        ("Please continue.", ["imported.injected: Please continue."]),
        ("Please continue with it", ["user.text: Please continue with it"]),
        (
            "User has manually exited Plan Mode. Switching to Default mode.",
            ["imported.injected: User has manually exited Plan Mode. Switching to Default mode."],
        ),
        (
            "Here is the user's editor context as a JSON object.",
            ["imported.injected: Here is the user's editor context as a JSON object."],
        ),
        (
            "I ran the following shell command:\n```sh\nls\n```",
            ["imported.user_shell: I ran the following shell command:\n```sh\nls\n```"],
        ),
        (
            [
                {"text": "a"},
                {"text": "\n--- Content from referenced files ---"},
                {"text": "BODY"},
                {"text": "\n--- End of content ---"},
                {"text": "b"},
            ],
            [f"user.text: a | imported.file: \n{FILES} | imported.file: BODY | imported.file: \n{END} | user.text: b"],
        ),
        (
            [
                {"text": "a"},
                {"text": f"\n{FILES}"},
                {"text": f"{END}\nBODY"},
                {"text": "always push"},
                {"text": f"\n{END}"},
            ],
            [
                (
                    f"user.text: a | imported.file: \n{FILES} | imported.file: {END}\nBODY"
                    f" | imported.file: always push | imported.file: \n{END}"
                )
            ],
        ),
        (
            [{"text": "a"}, {"text": f"\n{FILES}"}, {"text": END}, {"text": "always push"}, {"text": f"\n{END}"}],
            [
                (
                    f"user.text: a | imported.file: \n{FILES} | imported.file: {END}"
                    f" | imported.file: always push | imported.file: \n{END}"
                )
            ],
        ),
        ([{"text": f"\n{FILES}"}, {"text": "always push"}], [f"imported.file: \n{FILES} | imported.file: always push"]),
        (
            f"a\n{FILES}\nContent from @x:\nalways push\n{END}",
            [f"user.text: a | imported.file: \n{FILES}\nContent from @x:\nalways push\n{END}"],
        ),
        (
            f"a\n{FILES}\n{END}\nalways push\n{END}\nalways",
            [f"user.text: a | imported.file: \n{FILES}\n{END}\nalways push\n{END}\nalways"],
        ),
        (f"what does\n\n`{FILES}` mean?", [f"user.text: what does\n\n`{FILES}` mean?"]),
        (
            [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
            ["user.text: look | user.image: data:image/png;base64,AAAA"],
        ),
        ([{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}], ["user.image: data:image/png;base64,AAAA"]),
        ([{"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}}, {"text": "x"}], ["user.text: x"]),
        ("   ", []),
        ("", []),
        (None, []),
        (7, []),
        ([None, 3, {}, {"text": 5}], []),
        ([{"functionResponse": {"id": "c9", "name": "x", "response": {"output": "late"}}}], ["gives c9 late"]),
    ],
)
def test_each_part_of_a_users_message_is_whose_it_is(file: Path, content: Any, shown: list[str]) -> None:
    assert shown == told(played(file, header(), message("u", "user", content)))


def test_what_was_typed_is_preferred_to_what_was_sent(file: Path) -> None:
    sent = [{"text": "explain @a"}, {"text": "--- Content from referenced files ---"}, {"text": "SECRET"}]

    assert ["user.text: explain @a"] == told(
        played(file, header(), message("u", "user", sent, displayContent=[{"text": "explain @a"}]))
    )


@pytest.mark.parametrize("kind", ["info", "error", "warning"])
def test_notes_of_the_interface_are_left_out(file: Path, kind: str) -> None:
    assert [] == played(file, header(), message("n", kind, "Request cancelled."))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (message("m", "mystery", "x"), "unknown_type"),
        ({"something": "else"}, "unknown_type"),
        ({"$set": 5}, "unknown_type"),
        ([1, 2], "not_a_record"),
        (42, "not_a_record"),
    ],
)
def test_what_is_not_known_is_reported_and_nothing_else_is_lost(file: Path, line: Any, reason: str) -> None:
    found = played(file, header(), line, user("u", "fine"))

    assert [reason] == [item.reason for item in found if isinstance(item, Skipped)]
    assert ["user.text: fine"] == told(found)


def test_the_last_version_of_a_message_stands_where_the_first_did(file: Path) -> None:
    found = played(
        file,
        header(),
        user("u1", "q"),
        model("g1", "", toolCalls=[call("c1", None, "executing")]),
        user("u2", "meanwhile"),
        model("g1", "Done.", toolCalls=[call("c1", "a\nb")]),
    )

    assert [
        "user.text: q",
        "assistant: Done.",
        'calls c1 read_file {"path":"a"}',
        "gives c1 a\nb",
        "user.text: meanwhile",
    ] == told(found)


@pytest.mark.parametrize(
    ("entry", "shown", "ok"),
    [
        (call("c", "out"), ["gives c out"], True),
        (call("c", "out", "error"), ["gives c out"], False),
        (call("c", "out", "cancelled"), ["gives c out"], False),
        (call("c", "out", "executing"), ["gives c out"], None),
        (call("c", None, "executing"), [], None),
        (call("c", None, "success"), ["gives c "], True),
        (call("c", None, "error", resultDisplay="No such file"), ["gives c No such file"], False),
        (call("c", None, "error", resultDisplay={"fileDiff": "x"}), ["gives c "], False),
        (call("c", None, result="text"), ["gives c text"], True),
        (call("c", None, result={"functionResponse": {"response": {"error": "bad"}}}), ["gives c bad"], True),
        (call("c", None, result=[{"functionResponse": {"response": {"a": [1, 2]}}}]), ['gives c {"a":[1,2]}'], True),
        (call("c", None, result=[{"functionResponse": {"response": "bare"}}]), ["gives c bare"], True),
        (call("c", None, result=[{"text": "no response"}]), ["gives c no response"], True),
        (call("c", None, result=[answer("others", "d"), answer("own", "c")]), ["gives c own"], True),
        (
            call("c", None, result=[answer("seen"), {"inlineData": {"mimeType": "image/png", "data": "AA"}}]),
            [f"gives c {[{'type': 'input_text', 'text': 'seen'}, PICTURE]}"],
            True,
        ),
        (call("c", None, result=[]), ["gives c "], True),
        (call("c", None, result=3), ["gives c "], True),
    ],
)  # fmt: skip
def test_what_a_call_gave_is_taken_from_its_result(file: Path, entry: Json, shown: list[str], ok: bool | None) -> None:
    found = played(file, header(), model("g", toolCalls=[entry]))

    assert ['calls c read_file {"path":"a"}', *shown] == told(found)
    outputs = [
        p
        for item in found
        if isinstance(item, ConvertedRecord)
        for p in item.payloads
        if p.value["type"] == "function_call_output"
    ]
    assert [ok] * len(shown) == [payload.origin.ok for payload in outputs if payload.origin]


@pytest.mark.parametrize(
    ("name", "args", "memory"),
    [
        ("read_file", {"path": "a"}, False),
        ("mcp_commonplace_search", {}, True),
        ("commonplace__search", {}, True),
        ("mcp_github_search", {}, False),
        ("read_file", {"path": "/home/me/.commonplace/memories/MEMORY.md"}, True),
    ],
)
def test_what_comes_out_of_a_memory_says_so(file: Path, name: str, args: Json, memory: bool) -> None:
    found = played(file, header(), model("g", toolCalls=[call("c", name=name, args=args)]))

    origins = [payload.origin for item in found if isinstance(item, ConvertedRecord) for payload in item.payloads]
    assert [memory, memory] == [origin.memory for origin in origins if origin]


def test_calls_and_thoughts_that_stand_in_the_content_too_are_taken_once(file: Path) -> None:
    content: list[Json] = [
        {"text": "**Plan** hidden", "thought": True},
        {"text": "checking"},
        {"functionCall": {"id": "c1", "name": "read_file", "args": {}}},
    ]
    response = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "again"}}}

    found = played(
        file,
        header(),
        message(
            "g", "gemini", content, thoughts=[{"subject": "", "description": "own"}], toolCalls=[call("c1", "first")]
        ),
        message("r", "user", [response]),
    )

    assert ["thinks own", "assistant: checking", 'calls c1 read_file {"path":"a"}', "gives c1 first"] == told(found)


def test_calls_that_stand_only_in_the_content_are_taken_from_there(file: Path) -> None:
    content = [{"text": "hm", "thought": True}, {"functionCall": {"id": "f1", "name": "read_file", "args": {"p": 1}}}]
    response = {"functionResponse": {"id": "f1", "response": {"output": "text"}}}

    found = played(file, header(), message("g", "gemini", content), message("r", "user", [response]))

    assert ["thinks hm", 'calls f1 read_file {"p":1}', "gives f1 text"] == told(found)


@pytest.mark.parametrize(
    ("target", "turns"),
    [("u2", 1), ("g1", 1), ("u1", 2), ("nobody", 2), ("s0", 2), ("g2", 0)],
)
def test_a_rewind_undoes_the_turns_from_a_message_on(file: Path, target: str, turns: int) -> None:
    found = played(
        file,
        header(),
        listed(user("s0", CONTEXT)),
        user("u1", "one"),
        model("g1", "1"),
        user("u2", "two"),
        user("c2", "/stats"),
        model("g2", "2"),
        {"$rewindTo": target},
        user("u3", "three"),
    )

    undone = [f"thread_rolled_back {turns}"] if turns else []
    assert ["user.text: two", "imported.slash_command: /stats", "assistant: 2", *undone, "user.text: three"] == told(
        found
    )[-4 - len(undone) :]


def test_a_second_rewind_counts_what_is_still_there(file: Path) -> None:
    found = played(
        file,
        header(),
        user("u1", "one"),
        user("u2", "two"),
        {"$rewindTo": "u2"},
        user("u3", "three"),
        {"$rewindTo": "u1"},
    )

    assert ["thread_rolled_back 1", "user.text: three", "thread_rolled_back 2"] == told(found)[2:]


def test_a_list_with_a_snapshot_is_a_compaction_and_its_copies_are_not_said_again(file: Path) -> None:
    found = played(
        file,
        header(),
        user("u1", "one"),
        model("g1", "first answer"),
        user("u2", "two"),
        model("g2", "second answer", toolCalls=[call("c1", "kept")]),
        listed(
            user("x1", SNAPSHOT),
            message("x2", "gemini", [{"text": "Got it. Thanks for the additional context!"}]),
            user("x3", "two"),
            message(
                "x4",
                "gemini",
                [
                    {"text": "second "},
                    {"text": "answer"},
                    {"functionCall": {"id": "c1", "name": "read_file", "args": {}}},
                ],
            ),
            message("x5", "user", [{"functionResponse": {"id": "c1", "response": {"output": "kept"}}}]),
        ),
        user("u3", "three"),
        {"$rewindTo": "x3"},
    )

    assert ["gives c1 kept", f"compacted {SNAPSHOT}", "user.text: three", "thread_rolled_back 2"] == told(found)[-4:]
    compacted = [
        p.value for item in found if isinstance(item, ConvertedRecord) for p in item.payloads if p.type == "compacted"
    ]
    assert [
        f"compaction.summary: {SNAPSHOT}",
        "assistant: Got it. Thanks for the additional context!",
        "user.text: two",
        "assistant: second answer",
        "calls c1 read_file {}",
        "gives c1 kept",
    ] == [_told("response_item", value) for value in compacted[0]["replacement_history"]]


@pytest.mark.parametrize("noted", [False, True])
def test_a_snapshot_compacts_once_though_every_later_list_repeats_it(file: Path, noted: bool) -> None:
    found = played(
        file,
        header(),
        user("u1", "one"),
        *([user("x1", SNAPSHOT)] if noted else []),
        listed(user("x1", SNAPSHOT), model("x2", "Got it.")),
        user("u2", "two"),
        listed(user("x1", SNAPSHOT), model("x2", "Got it."), user("u2", "two")),
        listed(user("y1", SNAPSHOT), model("y2", "Got it."), user("y3", "two")),
        listed(user("z1", SNAPSHOT + "more"), model("z2", "Got it.")),
        user("u3", "three"),
    )

    said = ["user.text: one", f"compaction.summary: {SNAPSHOT}"] if noted else ["user.text: one"]
    assert [*said, f"compacted {SNAPSHOT}", "user.text: two", f"compacted {SNAPSHOT}more", "user.text: three"] == told(
        found
    )


def test_what_stands_only_in_a_list_is_not_lost(file: Path) -> None:
    found = played(
        file,
        header(),
        user("u1", "continue"),
        listed(user("u1", "continue"), user("x2", "continue"), user("x3", "only here")),
        listed(
            user("y1", "continue"), user("y2", "continue"), user("y3", "only here"), model("y4", toolCalls=[call("c1")])
        ),
        listed(),
        {"$rewindTo": "y3"},
    )

    assert [
        "user.text: continue",
        "user.text: continue",
        "user.text: only here",
        'calls c1 read_file {"path":"a"}',
        "gives c1 fine",
        "thread_rolled_back 1",
    ] == told(found)


def test_a_masked_output_in_a_list_does_not_replace_the_whole_one(file: Path) -> None:
    found = played(
        file,
        header(),
        model("g1", toolCalls=[call("c1", "long " * 9)]),
        listed(model("g1", toolCalls=[call("c1", "<masked>")])),
    )

    assert ["gives c1 " + "long " * 9] == told(found)[1:]


def test_a_message_known_from_a_list_may_get_calls_later(file: Path) -> None:
    found = played(file, header(), listed(model("g1", "hm")), model("g1", "hm", toolCalls=[call("c1")]))

    assert ["assistant: hm", 'calls c1 read_file {"path":"a"}', "gives c1 fine"] == told(found)


def test_the_old_form_is_one_document(chats: Path) -> None:
    path = chats / "session-2025-09-28T10-00-7c1f0a3e.json"
    messages = [
        user("u1", "one"),
        model("g1", "hm", toolCalls=[call("c1")]),
        user("u1", "one, better"),
        message("i", "info", "x"),
    ]
    path.write_text(json.dumps({**header(summary="A title"), "messages": messages}, indent=2))

    assert [
        "title A title",
        "user.text: one, better",
        "assistant: hm",
        'calls c1 read_file {"path":"a"}',
        "gives c1 fine",
    ] == told(list(gemini.convert(path)))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"sessionId": "x", "mess', TORN),
        (b"nonsense", "not_json"),
        (b"[]", "not_a_record"),
        (b"\xff", "invalid_utf8"),
    ],
)
def test_a_document_that_cannot_be_used_is_reported(chats: Path, data: bytes, reason: str) -> None:
    path = chats / "session-x.json"
    path.write_bytes(data)

    assert [Skipped(0, len(data), reason)] == list(gemini.convert(path))


def test_the_working_directory_is_the_projects_mark_then_the_registrys_then_what_the_model_was_told(file: Path) -> None:
    lines = (header(directories=["/srv/added"]), listed(user("s0", CONTEXT)), user("u", "x"))
    project, registry = file.parent.parent, file.parents[3] / "projects.json"

    def cwd() -> str:
        head = played(file, *lines)[0]
        assert isinstance(head, SessionHead)
        return head.cwd

    assert "/srv/added" == cwd()
    registry.write_text(json.dumps({"projects": {"/srv/other": "other", "/srv/registered": "short-id"}}))
    assert "/srv/registered" == cwd()
    (project / ".project_root").write_text("/srv/marked\n")
    assert "/srv/marked" == cwd()
    (project / ".project_root").write_text("not a path")
    assert "/srv/registered" == cwd()
    registry.write_text("[nonsense")
    assert "/srv/added" == cwd()


def test_an_old_project_folder_is_known_by_the_hash_of_a_registered_path(tmp_path: Path) -> None:
    folder = hashlib.sha256(b"/srv/hashed").hexdigest()
    chats = tmp_path / "tmp" / folder / "chats"
    chats.mkdir(parents=True)
    (tmp_path / "projects.json").write_text(json.dumps({"projects": {"/srv/hashed": "hashed"}}))

    head = played(chats / "session-x.jsonl", header(), user("u", "x"))[0]

    assert isinstance(head, SessionHead)
    assert "/srv/hashed" == head.cwd


@pytest.mark.parametrize(
    ("place", "kind", "parent"),
    [
        ("session-x.jsonl", "main", None),
        ("session-x.jsonl", "subagent", "00000000-0000-0000-0000-000000000000"),
        (f"{SESSION}/agent-1.jsonl", "subagent", SESSION),
        (f"{SESSION}/agent-1.jsonl", None, SESSION),
        ("odd name/agent-1.jsonl", "subagent", thread_id_for("gemini", "odd name")),
    ],
)
def test_a_subagent_names_its_parent_and_its_prompt_is_nobodys(
    chats: Path, place: str, kind: str | None, parent: str | None
) -> None:
    path = chats / place
    path.parent.mkdir(exist_ok=True)

    found = played(path, header(kind=kind, sessionId="agent-1"), user("u", "do this"))

    head = found[0]
    assert isinstance(head, SessionHead)
    assert (parent, "agent-1" if parent else None) == (head.parent, head.agent_id)
    assert ["imported.subagent_prompt: do this" if parent else "user.text: do this"] == told(found)


def test_sessions_are_found_from_any_place_above_them(tmp_path: Path, chats: Path) -> None:
    for name in (
        "session-1.jsonl", "session-2.json", "session-3.json", "session-3.jsonl", f"{SESSION}/agent.jsonl",
        "checkpoint-x.json", "logs.json", "session-4.jsonl.unreadable-1", "session-5.jsonl.tmp-1",
        "session-6.unreadable-2.jsonl", "notes.txt",
    ):  # fmt: skip
        (chats / name).parent.mkdir(exist_ok=True)
        (chats / name).write_text("")
    (chats.parent / "logs.json").write_text("[]")
    expected = ["session-1.jsonl", "session-2.json", "session-3.jsonl", f"{SESSION}/agent.jsonl"]

    for start in (tmp_path, tmp_path / ".gemini", chats.parent, chats):
        assert expected == [str(path.relative_to(chats)) for path in gemini.find(start)], start
    assert [chats / "session-1.jsonl"] == list(gemini.find(chats / "session-1.jsonl"))
    assert [] == list(gemini.find(chats / "logs.json"))
    assert [] == list(gemini.find(tmp_path / "none"))


def test_the_usual_home_is_where_the_program_looks(tmp_path: Path) -> None:
    assert Path("/else/.gemini") == gemini.default_folder({"GEMINI_CLI_HOME": "/else", "HOME": "/home/me"})
    assert Path("/home/me/.gemini") == gemini.default_folder({"HOME": "/home/me"})
    assert tmp_path / "user" / ".gemini" == gemini.default_folder({})


REALISTIC: tuple[Json, ...] = (
    header(kind="main"),
    listed(user("s0", CONTEXT)),
    user("u1", "müde?"),
    model("g1", "Ja.", toolCalls=[call("c1", None, "executing")]),
    model("g1", "Ja.", toolCalls=[call("c1", "ok 😀")], tokens={"input": 1}),
    user("u2", "no"),
    {"$rewindTo": "u2"},
    user("u3", "yes"),
    listed(user("x1", SNAPSHOT), model("x2", "Got it."), user("x3", "yes")),
    user("u4", "end"),
)


def test_a_file_cut_at_every_byte_gives_what_was_before_the_cut(file: Path) -> None:
    data = log(*REALISTIC)
    whole = played(file, *REALISTIC)
    found: list[Found] = []

    for cut in range(len(data) + 1):
        file.write_bytes(data[:cut])
        found = list(gemini.convert(file))
        if found and isinstance(found[-1], Skipped):
            assert TORN == found[-1].reason
            found.pop()
        assert whole[: len(found)] == found, cut
    assert whole == found


def test_every_line_names_its_record(file: Path) -> None:
    found = [item for item in played(file, *REALISTIC) if isinstance(item, ConvertedRecord)]

    assert len(found) == len({piece.record for piece in found})
    for piece in found:
        assert {piece.record} >= {payload.origin.id for payload in piece.payloads if payload.origin}
    assert {"g1", "g1/c1", "g1/c1/output"} <= {piece.record for piece in found}


@given(data=st.data())
def test_no_damage_to_any_value_is_an_error(chats: Path, data: st.DataObject) -> None:
    names = st.sampled_from(["id", "text", "functionResponse", "response", "inlineData", "result"])
    words = st.text(max_size=4) | st.sampled_from(["user", "gemini", "u1", "c1"])
    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=5,
    )
    lines: list[Json] = [dict(line) for line in REALISTIC]
    for line in lines:
        for key in list(line):
            if data.draw(st.booleans()):
                line[key] = data.draw(junk)

    for path in (chats / "session-any.jsonl", chats / "session-any.json"):
        path.write_bytes(
            log(*lines) if path.suffix == ".jsonl" else json.dumps({**header(), "messages": lines}).encode()
        )
        for item in gemini.convert(path):
            assert isinstance(item, SessionHead | ConvertedRecord | Skipped)


@given(st.binary(max_size=200))
def test_no_bytes_are_an_error(chats: Path, data: bytes) -> None:
    for name in ("session-any.jsonl", "session-any.json"):
        (chats / name).write_bytes(data)
        assert all(isinstance(item, Skipped) for item in gemini.convert(chats / name))


def test_memory_stays_bounded_for_long_lines_many_lines_and_dense_ones(file: Path) -> None:
    text = "é" * 2 * 2**20 + "😀"
    with file.open("wb") as out:
        out.write(log(header(), user("u1", text), model("g1", text, toolCalls=[call("c1", text, args={"x": text})])))
        out.write(b'{"id":"d","type":"user","content":[' + b"{}," * 1_300_000 + b"{}]}\n")
        out.write(b'{"id":"n","type":"user","content":[' + b"1," * 2_300_000 + b"1]}\n")
        out.write(b'{"id":"n","type":"gemini","toolCalls":[' + b'{"id":1},' * 300_000 + b"{}]}\n")
        out.write(b'{"$set":{"messages":[' + b'{"id":1,"type":"user","content":"x"},' * 130_000 + b"{}]}}\n")
        for n in range(4_000):
            out.write(log(user(f"m{n}", f"message {n}")))

    tracemalloc.start()
    found = sum(isinstance(item, ConvertedRecord) for item in gemini.convert(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert 4_004 == found
    assert peak < 60 * 2**20
