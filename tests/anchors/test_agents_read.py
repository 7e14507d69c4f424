"""The real Claude Code and the real Codex read sessions for `learn`, against scripted servers on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from anchors import claude_driver, codex_driver
from anchors.codex_driver import Missing
from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.errors import BadInput, BadSetting
from commonplace.learning.estimate import Forecast
from commonplace.learning.evaluate import files
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from commonplace.learning.learn import LearningPlan
from commonplace.learning.run import LearningReport
from model_server import stream
from waiting import until

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
AGENTS = ("claude-code", "codex")
Json = dict[str, Any]


def answer(words: str) -> Json:
    """What a careful reader says about a session that begins with these words."""
    row = {"task": 1, "section": "preference", "text": words, "quote": words, "turn": 1, "scope": "project"}
    tasks = [{"title": "t", "outcome": "success"}]
    wish = {**row, "what_to_do": "Use uv."}
    fact = {**row, "section": "environment", "text": "The parts of the project are installed with uv, one by one."}
    others = [
        {**fact, "what_to_do": f"Look at the part before you install it, and install it alone ({n})."} for n in range(3)
    ]
    return {"title": "t", "slug": "a-slug", "keywords": ["uv"], "tasks": tasks, "lessons": [wish, *others]}


@dataclass
class Vendor:
    """Both vendors' servers in one: what an agent asks is answered, refused, or left open."""

    trouble: Callable[[int], str] = lambda _: ""
    """What goes wrong with a request, by its number from 1: `limit`, `key`, `silence`, or nothing."""
    asked: list[Json] = field(default_factory=list[Json])
    spent: int = 0
    """Tokens, four bytes each, of what came and went."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def take(self, raw: bytes) -> tuple[str, str, int]:
        """Keep a request; return what goes wrong, the first words of the session, and the tokens of the request."""
        with self.lock:
            self.asked.append(json.loads(raw))
            number = len(self.asked)
        words = raw.decode().partition("\\nPERSON\\n  ")[2].partition("\\n")[0]
        return self.trouble(number), words, len(raw) // 4

    def count(self, tokens: int) -> None:
        with self.lock:
            self.spent += tokens


def handler(vendor: Vendor) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            trouble, words, size = vendor.take(self.rfile.read(int(self.headers.get("content-length", "0"))))
            if trouble == "silence":
                vendor.closing.wait(60)
                self.close_connection = True
            elif trouble == "limit":
                reset = {"type": "usage_limit_reached", "message": "usage limit reached", "resets_in_seconds": 9000}
                self._send(429, json.dumps({"type": "error", "error": reset}).encode())
            elif trouble == "key":
                error = {"type": "authentication_error", "code": "invalid_api_key", "message": "invalid key"}
                self._send(401, json.dumps({"type": "error", "error": error}).encode())
            else:
                said = json.dumps(answer(words))
                vendor.count(size + len(said) // 4)
                claude = "/messages" in self.path
                body = messages(said, size) if claude else responses(said, size)
                self._send(200, body, "text/event-stream")

        def do_GET(self) -> None:
            self._send(404, b"{}")

        def do_HEAD(self) -> None:
            self._send(404, b"{}")

        def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    return Handler


def messages(said: str, size: int) -> bytes:
    """An answer of the Messages API: the call of the tool by which Claude Code takes structured output."""
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "x", "stop_sequence": None}
    start: Json = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": size, "output_tokens": 1}}
    call: Json = {"type": "tool_use", "id": "toolu_1", "name": "StructuredOutput", "input": {}}
    delta = {"stop_reason": "tool_use", "stop_sequence": None}
    events: list[tuple[str, Json]] = [
        ("message_start", {"message": start}),
        ("content_block_start", {"index": 0, "content_block": call}),
        ("content_block_delta", {"index": 0, "delta": {"type": "input_json_delta", "partial_json": said}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": delta, "usage": {"output_tokens": len(said) // 4}}),
        ("message_stop", {}),
    ]
    return b"".join(f"event: {name}\ndata: {json.dumps({'type': name, **body})}\n\n".encode() for name, body in events)


def responses(said: str, size: int) -> bytes:
    """An answer of the Responses API."""
    usage = {"input_tokens": size, "output_tokens": len(said) // 4, "total_tokens": size + len(said) // 4}
    return stream(said).replace(
        json.dumps({"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000}).encode(),
        json.dumps(usage).encode(),
    )


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    serving = Vendor()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(serving))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    serving.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield serving
    serving.closing.set()
    server.shutdown()
    thread.join(60)
    server.server_close()


class Machine:
    """A person's machine: an agent with its login on PATH, sessions of theirs, and a home of ours."""

    def __init__(self, root: Path, agent: str, vendor: Vendor) -> None:
        found = claude_driver.locate() if agent == "claude-code" else codex_driver.locate()
        if isinstance(found, Missing):
            pytest.skip(found.reason)
        self.agent, self.root, self.home = agent, root, root / "home"
        programs = root / "bin"
        programs.mkdir()
        (programs / ("claude" if agent == "claude-code" else "codex")).symlink_to(found)
        if agent == "claude-code":
            variables = claude_driver.ClaudeHome(found, root / "claude", vendor.url).environment()
            self.user = Path(variables["HOME"])
        else:
            made = codex_driver.make_home(found, root / "own", f"{vendor.url}/v1")
            variables, self.user = made.environment(), made.codex_home
        self.user.mkdir(parents=True, exist_ok=True)
        self.variables = {
            **variables,
            "PATH": f"{programs}:/usr/bin:/bin",
            "COMMONPLACE_HOME": str(self.home),
            "COMMONPLACE_NOW": NOW.isoformat(),
        }

    def sessions(self, count: int) -> None:
        for number in range(count):
            events = [{"user": f"Always use uv, never pip, in part {number}."}, {"assistant": "Done. " + "x" * 8_000}]
            session = CaseSession("codex", "/repo", events, days_ago=1 + number / 100)
            files.write(Case(f"said-{number}", "", [session], ExpectedLessons()), self.root / "past", NOW)

    def book(self, model: str | None = None) -> AbstractAsyncContextManager[Book]:
        return books.open(environment=self.variables, flags={"memory.extract_model": model or self.agent})

    async def learn(self, book: Book, consent: Any = None) -> LearningReport:
        plan = LearningPlan("codex", (self.root / "past" / "codex",))
        return await book.memory.learn(plan, None, consent)

    def left(self) -> list[Path]:
        """The sessions that the agent left in its own folders."""
        return [path for path in self.user.rglob("*.jsonl") if "history" not in path.name]


@pytest.fixture(params=AGENTS)
def machine(request: pytest.FixtureRequest, tmp_path: Path, vendor: Vendor) -> Machine:
    return Machine(tmp_path, request.param, vendor)


@pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.soak)])
async def test_sessions_are_read_with_the_person_s_own_agent(machine: Machine, vendor: Vendor, count: int) -> None:
    machine.sessions(count)
    forecasts: list[Forecast] = []

    async def yes(told: Forecast) -> bool:
        forecasts.append(told)
        return True

    async with machine.book() as book:
        report = await machine.learn(book, yes)
        status = await book.memory.status()
        again = await machine.learn(book, yes)
    memory = (machine.home / "memories" / "MEMORY.md").read_text("utf-8")
    sent = json.dumps(vendor.asked)

    assert (count, 0, []) == (report.extracted, report.no_output, report.failed)
    assert (count, 0, count) == (len(vendor.asked), again.extracted, status.budget["memory_stage1"].requests)
    assert vendor.spent == report.cost["tokens"]
    assert 1 == len(forecasts)
    assert forecasts[0].is_agent
    assert abs(forecasts[0].tokens - vendor.spent) <= 0.15 * vendor.spent, (forecasts[0].tokens, vendor.spent)
    assert " -> Use uv." in memory
    assert "exec_command" not in sent
    assert [] == machine.left()


async def test_nothing_is_sent_before_the_person_agreed_and_their_decision_is_kept(
    machine: Machine, vendor: Vendor
) -> None:
    machine.sessions(1)

    async def no(_: Forecast) -> bool:
        return False

    async with machine.book() as book:
        with pytest.raises(BadInput, match="was not asked"):
            await machine.learn(book, no)
        with pytest.raises(BadSetting, match="You have not agreed yet"):
            await book.memory.run()
        before = len(vendor.asked)
        report = await machine.learn(book)
        machine.sessions(2)
        after = await machine.learn(book, no)

    assert (0, 1, 1) == (before, report.extracted, after.extracted)


async def test_a_run_that_is_cancelled_keeps_what_was_read_and_ends_the_agents(
    machine: Machine, vendor: Vendor
) -> None:
    machine.sessions(3)
    vendor.trouble = lambda number: "" if number == 1 else "silence"
    async with machine.book() as book:

        async def is_kept() -> bool:
            return (await book.memory.status()).outputs == 1

        with anyio.fail_after(120):
            async with anyio.create_task_group() as group:
                group.start_soon(machine.learn, book)
                await until(lambda: len(vendor.asked) == 3)
                await until(is_kept)
                group.cancel_scope.cancel()
        kept = (await book.memory.status()).outputs
        vendor.trouble = lambda _: ""
        vendor.closing.set()
        report = await machine.learn(book)

    assert (1, 2, []) == (kept, report.extracted, report.failed)


async def test_a_limit_of_the_subscription_stops_the_run_and_is_told(machine: Machine, vendor: Vendor) -> None:
    machine.sessions(3)
    vendor.trouble = lambda number: "" if number == 1 else "limit"
    async with machine.book() as book:
        report = await machine.learn(book)
        vendor.trouble = lambda _: ""
        after = await machine.learn(book)

    assert (1, []) == (report.extracted, report.failed)
    assert "limit" in report.warnings[0]
    assert "what was read is kept" in report.warnings[0]
    assert (2, []) == (after.extracted, after.failed)


@pytest.mark.parametrize("is_keyless", [False, True])
async def test_an_agent_that_is_logged_out_is_explained(machine: Machine, vendor: Vendor, is_keyless: bool) -> None:
    machine.sessions(1 if is_keyless else 2)
    vendor.trouble = lambda _: "key"
    if is_keyless and machine.agent == "claude-code":
        del machine.variables["ANTHROPIC_API_KEY"]
    async with machine.book() as book:
        report = await machine.learn(book)

    assert (0, []) == (report.extracted, report.failed)
    assert "is not logged in" in report.warnings[0]
    assert "login" in report.warnings[0]
    assert isinstance(report.error, dict)
    assert "nothing_read" == report.error["code"]


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_agent_that_is_not_there_is_explained(tmp_path: Path, agent: str) -> None:
    variables = {"COMMONPLACE_HOME": str(tmp_path / "home"), "PATH": str(tmp_path), "HOME": str(tmp_path)}
    async with books.open(environment=variables, flags={"memory.extract_model": agent}) as book:
        with pytest.raises(BadSetting, match="on PATH") as caught:
            await book.memory.learn(LearningPlan(), None, None)

    assert "Install it" in caught.value.hint


async def test_without_a_model_it_is_said_once_that_an_agent_would_read_better(
    machine: Machine, vendor: Vendor
) -> None:
    machine.sessions(1)
    async with machine.book("embedded") as book:
        first, second = await machine.learn(book), await machine.learn(book)

    assert [1, 0] == [sum("reads sessions far better" in each for each in one.warnings) for one in (first, second)]
    assert [] == vendor.asked


async def test_a_session_of_an_agent_that_read_for_us_is_never_learned_from(tmp_path: Path, machine: Machine) -> None:
    events = [{"user": "Always use uv, never pip."}, {"assistant": "Done."}]
    session = CaseSession("codex", "/tmp/commonplace-reader-x1y2", events)
    files.write(Case("reader", "", [session], ExpectedLessons()), machine.root / "past", NOW - timedelta(days=1))
    async with machine.book("embedded") as book:
        report = await machine.learn(book)

    assert (0, 1) == (report.extracted, report.skipped["not_a_persons_session"])
