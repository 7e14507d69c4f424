"""The worker that a session starts, as a process: it learns after the session has ended, once, and leaves nothing."""

from __future__ import annotations

import signal
import threading

import anyio
import anyio.to_thread
import pytest
from beginnings import BLOG, DEPLOY, PNPM, SHOP, Beside, jobs, workers

import processes
from anchors.scripted_responses import ScriptedResponses, answer, reply, say
from commonplace.app import background_process
from commonplace.models import scripted
from exec_driver import make_place

ARGUMENTS = "-P -m commonplace worker --once --background --current"


def run_exec(beside: Beside, server: ScriptedResponses, count: int = 1, **more: str) -> list[str]:
    """Run `exec` so many times at once; return the threads."""
    place = make_place(beside.root, server.base_url)
    variables = beside.variables({f"COMMONPLACE_{name.upper()}": text for name, text in more.items()})
    command = ["exec", "--skip-git-repo-check", "--json", "-C", str(place.cwd), "do it"]
    running = [processes.Process(command, env=variables) for _ in range(count)]
    ended = [process.communicate(timeout=100) for process in running]
    assert [(0, b"")] * count == [(process.returncode, err) for process, (_, err) in zip(running, ended, strict=True)]
    return [out.split(b'"thread_id":"', 1)[1][:36].decode() for out, _ in ended]


async def entries(beside: Beside, **more: str) -> tuple[str, dict[str, str]]:
    """Return what the memory says, and the state of the jobs."""
    async with beside.open(**more) as book:
        found = await book.memory.list()
        return "\n".join(entry.text for entry in found.entries), await jobs(book)


async def test_what_old_sessions_taught_is_known_after_an_exec_has_ended(beside: Beside, database_address: str) -> None:
    with ScriptedResponses([reply("Done.")]) as server:
        (thread,) = run_exec(beside, server, database=database_address)
        assert [f"{ARGUMENTS} {thread}"] == beside.started()

    told, states = await entries(beside, database=database_address)
    assert "pnpm" in told
    assert "release branch" in told
    assert {str(beside.home): "done", SHOP: "done", BLOG: "done"} == states
    log = beside.home / background_process.LOG
    assert "2 sessions read" in log.read_text()
    assert 0o600 == log.stat().st_mode & 0o777


async def test_several_at_once_start_one_and_those_after_it_none(beside: Beside, database_address: str) -> None:
    with ScriptedResponses([reply("Done.")] * 4) as server:
        run_exec(beside, server, 3, database=database_address)
        assert 1 == len(beside.started())
        run_exec(beside, server, database=database_address)

    assert 1 == len(beside.started())


def test_none_is_started_where_settings_forbid_it(beside: Beside) -> None:
    with ScriptedResponses([reply("Done.")]) as server:
        run_exec(beside, server, memory_background="false")

    assert [] == beside.started()
    assert not (beside.home / background_process.LOG).exists()
    assert not (beside.home / "memories").exists()


async def test_a_program_that_uses_the_library_goes_on_while_a_worker_learns(beside: Beside) -> None:
    async with beside.open() as book:
        thread = await beside.start(book, *[scripted.answer(scripted.say("Done."))] * 2)
        await thread.turn("One.")
        await book.background.close()
        (pid,) = book.background.started
        await thread.turn("Two.")
        assert 1 == len(await anyio.to_thread.run_sync(beside.started))
        assert [pid] == book.background.started

    assert PNPM.split()[2] in (await entries(beside))[0]


@pytest.fixture
def held() -> threading.Event:
    """Answers are held until it is set."""
    return threading.Event()


def worker(beside: Beside, **more: str) -> processes.Process:
    variables = beside.variables({f"COMMONPLACE_{name.upper()}": text for name, text in more.items()})
    return processes.Process(["worker", "--once", "--background"], env=variables)


async def test_a_worker_that_is_told_to_end_gives_its_leases_back(
    beside: Beside, database_address: str, held: threading.Event
) -> None:
    with ScriptedResponses([answer(say("{}"), hold=held)] * 2) as server:
        make_place(beside.root, server.base_url)
        process = worker(beside, database=database_address, memory_extract_model="mock:gpt-5.5")
        await anyio.to_thread.run_sync(server.wait_for_requests, 1)
        _, before = await entries(beside, database=database_address)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=100)
        held.set()
        server.drop()

    assert {SHOP: "running", BLOG: "running"} == before
    assert (128 + signal.SIGTERM, b"", b"") == (process.returncode, out, err)
    _, after = await entries(beside, database=database_address)
    assert {SHOP: "pending", BLOG: "pending"} == after
    worker(beside, database=database_address).communicate(timeout=100)
    told, done = await entries(beside, database=database_address)
    assert {"done"} == set(done.values())
    assert DEPLOY.split()[-2] in told


async def test_what_a_killed_worker_held_is_free_at_once(
    beside: Beside, database_address: str, held: threading.Event
) -> None:
    with ScriptedResponses([answer(say("{}"), hold=held)] * 2) as server:
        make_place(beside.root, server.base_url)
        process = worker(beside, database=database_address, memory_extract_model="mock:gpt-5.5")
        await anyio.to_thread.run_sync(server.wait_for_requests, 1)
        process.kill()
        process.communicate(timeout=100)
        held.set()
        server.drop()

    told = worker(beside, database=database_address).communicate(timeout=100)
    assert {"done"} == set((await entries(beside, database=database_address))[1].values()), told


def test_a_place_that_is_none_ends_a_worker_before_anything_is_read(beside: Beside) -> None:
    (beside.home / "memories").symlink_to(beside.root)
    process = worker(beside)
    _, err = process.communicate(timeout=100)

    assert 1 == process.returncode
    assert b"is a link" in err
    assert [] == workers(beside.home)


def test_options_that_need_others_say_so(beside: Beside) -> None:
    def refused(*words: str) -> bytes:
        done = processes.run(["worker", *words], env=beside.variables())
        assert 2 == done.returncode
        return done.stderr

    assert b"--background needs --once." in refused("--background")
    assert b"--current needs --background." in refused("--once", "--current", "x")


_RACE = """\
import sys
import anyio
from commonplace.app import book as books
from commonplace.state import learning_starts

async def main():
    async with books.open() as book:
        database = await book.state.database()
        print("ready", flush=True)
        sys.stdin.readline()
        print(await database.write(lambda tx: learning_starts.begin(tx, "home", now=int(sys.argv[1]))))

anyio.run(main)
"""


def race(variables: dict[str, str], now: int) -> list[str]:
    """Let several processes begin at once; return what each was told."""
    started = [processes.Process([now], env=variables, stdin=processes.PIPE, text=True, code=_RACE) for _ in range(3)]
    for process in started:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate("\n", timeout=100)[0].strip() for process in started]


def test_of_processes_that_race_one_may_begin(beside: Beside, database_address: str) -> None:
    variables = beside.variables({"COMMONPLACE_DATABASE": database_address})

    assert ["False", "False", "True"] == sorted(race(variables, 1_000))
    assert ["False"] * 3 == race(variables, 1_599)
    assert ["False", "False", "True"] == sorted(race(variables, 1_600))
