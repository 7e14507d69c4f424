"""Scenarios in which history is cut, replaced or inherited: compaction, rollback, revert, fork, crash.

Each function is a small play; the table at the end names it and says what the recording shows. The texts
are ours and short, so that a test can state the expected model input literally.
"""

from __future__ import annotations

from scripted_responses import Json, answer, call, failure, reply, say
from stage import Scenario, Stage

ENCRYPTED = "ENCRYPTED-SUMMARY"


def _remote(text: str) -> Json:
    return {"type": "compaction", "encrypted_content": text}


def _remote_compaction(stage: Stage) -> None:
    stage.script(answer(call("exec_command", {"cmd": "echo one"}, "call_1")), reply("Done one."))
    stage.script(answer(_remote(f"{ENCRYPTED}-1")), reply("Done two."))
    stage.script(answer(_remote(f"{ENCRYPTED}-2")), reply("Done three."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "do one")
        app.compact(thread)
        app.turn(thread, "do two")
        app.compact(thread)
        app.turn(thread, "do three")


def _two_compactions(stage: Stage) -> None:
    stage.script(
        reply("Noted 41."),
        reply("SUMMARY A: 41."),
        reply("Noted 42."),
        reply("SUMMARY B: 41, 42."),
        reply("Both."),
    )
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "remember 41")
        app.compact(thread)
        app.turn(thread, "remember 42")
        app.compact(thread)
        app.turn(thread, "which numbers?")


def _compaction_then_resume(stage: Stage) -> None:
    stage.script(reply("Noted 42."), reply("SUMMARY: 42."), reply("It is 42."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "remember 42")
        app.compact(thread)
    with stage.app() as app:
        app.resume(thread)
        app.turn(thread, "which number?")


def _compaction_before_turn(stage: Stage) -> None:
    stage.script(reply("Noted 42.", input_tokens=30000), reply("SUMMARY: 42."), reply("It is 42."), reply("Still 42."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "remember 42")
        app.turn(thread, "which number?")
        app.turn(thread, "and now?")


def _two_compactions_in_one_turn(stage: Stage) -> None:
    step = {"cmd": "echo step"}
    stage.script(answer(say("First.", phase="commentary"), call("exec_command", step, "call_1"), input_tokens=30000))
    stage.script(reply("SUMMARY A."))
    stage.script(answer(call("exec_command", step, "call_2"), input_tokens=30000))
    stage.script(reply("SUMMARY B."), reply("Finished."), reply("Bye."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "do it in steps")
        app.turn(thread, "thanks")


def _long_user_message_compacted(stage: Stage) -> None:
    stage.script(reply("Read it."), reply("Read that too."), reply("SUMMARY: two long messages."), reply("Yes."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "filler " * 9000)
        app.turn(thread, "filler " * 6000 + "end")
        app.compact(thread)
        app.turn(thread, "did you read?")


def _context_error(stage: Stage) -> None:
    stage.script(reply("One."), failure("context_length_exceeded"), reply("SUMMARY: one."), reply("Three."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        app.turn(thread, "two, too long")
        app.turn(thread, "three")


def _legacy_rollback(stage: Stage) -> None:
    stage.script(reply("One."), reply("Two."), reply("Three."), reply("Four."))
    with stage.app() as app:
        thread = app.start_thread(historyMode="legacy")
        app.turn(thread, "one")
        app.turn(thread, "two")
        app.turn(thread, "three")
    stage.append_event(thread, {"type": "thread_rolled_back", "num_turns": 2})
    with stage.app() as app:
        app.resume(thread)
        app.turn(thread, "four")


def _legacy_rollback_past_compaction(stage: Stage) -> None:
    stage.script(
        reply("One."),
        reply("Two."),
        reply("SUMMARY: one, two."),
        reply("Three."),
        reply("Four."),
        reply("Five."),
    )
    with stage.app() as app:
        thread = app.start_thread(historyMode="legacy")
        app.turn(thread, "one")
        app.turn(thread, "two")
        app.compact(thread)
        app.turn(thread, "three")
    stage.append_event(thread, {"type": "thread_rolled_back", "num_turns": 2})
    with stage.app() as app:
        app.resume(thread)
        app.turn(thread, "four")
        app.turn(thread, "five")


def _legacy_rollback_after_compaction(stage: Stage) -> None:
    stage.script(reply("One."), reply("SUMMARY: one."), reply("Two."), reply("Three."), reply("Four."))
    with stage.app() as app:
        thread = app.start_thread(historyMode="legacy")
        app.turn(thread, "one")
        app.compact(thread)
        app.turn(thread, "two")
        app.turn(thread, "three")
    stage.append_event(thread, {"type": "thread_rolled_back", "num_turns": 1})
    with stage.app() as app:
        app.resume(thread)
        app.turn(thread, "four")


def _legacy_fork(stage: Stage) -> None:
    stage.script(reply("One."), reply("Two."), reply("Fork three."), reply("Cut two."))
    with stage.app() as app:
        thread = app.start_thread(historyMode="legacy")
        first = app.turn(thread, "one")
        app.turn(thread, "two")
        app.turn(app.fork(thread), "fork three")
        app.turn(app.fork(thread, lastTurnId=first), "cut two")


def _revert(stage: Stage) -> None:
    stage.script(reply("One."), reply("Two."), reply("Three."), reply("Four."), reply("Five."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        second = app.turn(thread, "two")
        app.turn(thread, "three")
        app.revert(thread, second)
        app.turn(thread, "four")
    with stage.app() as app:
        app.resume(thread)
        app.turn(thread, "five")


def _revert_twice(stage: Stage) -> None:
    stage.script(reply("One."), reply("Two."), reply("Three."), reply("Four."), reply("Five."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        second = app.turn(thread, "two")
        app.revert(thread, second)
        app.turn(thread, "three")
        fourth = app.turn(thread, "four")
        app.revert(thread, fourth)
        app.turn(thread, "five")


def _revert_past_compaction(stage: Stage) -> None:
    stage.script(reply("One."), reply("Two."), reply("SUMMARY: one, two."), reply("Three."), reply("Four."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        second = app.turn(thread, "two")
        app.compact(thread)
        app.turn(thread, "three")
        app.revert(thread, second)
        app.turn(thread, "four")


def _fork_of_reverted(stage: Stage) -> None:
    stage.script(reply("One."), reply("Two."), reply("Three."), reply("Fork."), reply("Four."))
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "one")
        second = app.turn(thread, "two")
        app.revert(thread, second)
        app.turn(thread, "three")
        app.turn(app.fork(thread), "fork of the reverted")
        app.turn(thread, "four")


def _fork_at_turn(stage: Stage) -> None:
    stage.script(reply("One."), reply("Two."), reply("Three."), reply("Through one."), reply("Before three."))
    with stage.app() as app:
        thread = app.start_thread()
        first = app.turn(thread, "one")
        app.turn(thread, "two")
        third = app.turn(thread, "three")
        app.turn(app.fork(thread, lastTurnId=first), "fork through one")
        app.turn(app.fork(thread, beforeTurnId=third), "fork before three")


def _fork_of_fork(stage: Stage) -> None:
    stage.script(reply("Root."), reply("Child."), reply("Child again."), reply("Grandchild."), reply("Root again."))
    with stage.app() as app:
        root = app.start_thread()
        app.turn(root, "root turn")
        child = app.fork(root)
        turn = app.turn(child, "child turn")
        app.turn(child, "child second turn")
        app.turn(app.fork(child, lastTurnId=turn), "grandchild turn")
        app.turn(root, "root second turn")


def _fork_of_compacted(stage: Stage) -> None:
    stage.script(reply("Noted 42."), reply("SUMMARY: 42."), reply("Go on."), reply("Fork says 42."), reply("Cut."))
    with stage.app() as app:
        thread = app.start_thread()
        first = app.turn(thread, "remember 42")
        app.compact(thread)
        app.turn(thread, "go on")
        app.turn(app.fork(thread), "which number?")
        app.turn(app.fork(thread, lastTurnId=first), "fork before the compaction")


def _fork_compacts(stage: Stage) -> None:
    stage.script(
        reply("Noted 42."),
        reply("Fork here."),
        reply("SUMMARY: fork of 42."),
        reply("Fork: 42."),
        reply("Root: 42."),
    )
    with stage.app() as app:
        thread = app.start_thread()
        app.turn(thread, "remember 42")
        child = app.fork(thread)
        app.turn(child, "you are the fork")
        app.compact(child)
        app.turn(child, "which number?")
        app.turn(thread, "root, which number?")


def _killed_mid_call(stage: Stage) -> None:
    command = {"cmd": "sleep 30", "yield_time_ms": 30000}
    stage.script(answer(say("Starting.", phase="commentary"), call("exec_command", command, "call_1")))
    with stage.app() as app:
        thread = app.start_thread()
        app.start_turn(thread, "run something long")
        app.wait("item/started", lambda params: params["item"]["type"] == "commandExecution")
        app.kill()
    stage.script(reply("Resumed."), reply("Again."))
    stage.exec("what happened?", resume=thread)
    stage.exec("and now?", resume=thread)


HISTORY = (
    Scenario(
        "remote_compaction",
        "provider named OpenAI: two server-side compactions",
        _remote_compaction,
        provider_name="OpenAI",
    ),
    Scenario("two_compactions", "two local compactions asked for by the client", _two_compactions),
    Scenario(
        "compaction_then_resume",
        "local compaction, then a new process resumes the thread",
        _compaction_then_resume,
    ),
    Scenario(
        "compaction_before_turn",
        "usage above model_auto_compact_token_limit at the end of a turn: the next turn compacts first",
        _compaction_before_turn,
        {"model_auto_compact_token_limit": "20000"},
    ),
    Scenario(
        "two_compactions_in_one_turn",
        "two compactions in the middle of one turn, then another turn",
        _two_compactions_in_one_turn,
        {"model_auto_compact_token_limit": "20000"},
    ),
    Scenario(
        "long_user_messages_compacted",
        "two long user messages, then local compaction",
        _long_user_message_compacted,
    ),
    Scenario(
        "context_error",
        "a turn fails with context_length_exceeded, the next one compacts first",
        _context_error,
    ),
    Scenario(
        "legacy_rollback",
        "legacy file, marker of two turns written by the recorder, next turn",
        _legacy_rollback,
    ),
    Scenario(
        "legacy_rollback_past_compaction",
        "legacy file, marker (written by the recorder) that reaches behind a compaction, two more turns; "
        "the real summary prefix, cut here, kept the summary from counting as a turn",
        _legacy_rollback_past_compaction,
    ),
    Scenario(
        "legacy_rollback_after_compaction",
        "legacy file, marker (written by the recorder) that stays behind the compaction",
        _legacy_rollback_after_compaction,
    ),
    Scenario("legacy_fork", "forks of a legacy thread copy: whole, and through its first turn", _legacy_fork),
    Scenario("revert", "thread/revert before the second of three turns, a turn, then a new process", _revert),
    Scenario("revert_twice", "two reverts: the second file continues the first replacement", _revert_twice),
    Scenario("revert_past_compaction", "thread/revert to before a compaction", _revert_past_compaction),
    Scenario("fork_of_reverted", "a fork refers to the replacement file by its rollout id", _fork_of_reverted),
    Scenario("fork_at_turn", "forks by reference cut with lastTurnId and with beforeTurnId", _fork_at_turn),
    Scenario("fork_of_fork", "a chain of three files, the second cut; the root goes on", _fork_of_fork),
    Scenario(
        "fork_of_compacted",
        "forks of a compacted thread: whole, and cut before the compaction",
        _fork_of_compacted,
    ),
    Scenario("fork_compacts", "a fork compacts, its parent goes on uncompacted", _fork_compacts),
    Scenario("killed_mid_call", "SIGKILL while a command runs; resumed twice", _killed_mid_call),
)
