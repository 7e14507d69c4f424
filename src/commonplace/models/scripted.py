"""A model that answers from a script: for tests of whatever is built on a model, without a server.

    async with ScriptedModel(
        answer(call("shell", {"command": ["ls"]}, "call_1")),
        answer(say("Two files."), usage=Usage(input=120, output=4, total=124)),
    ) as model:
        ...
    assert "shell" in model.requests[1].input[-2].decode()

It is strict in both directions. A request beyond the script fails at once; leaving the block while steps are unused
fails too, and so does a request that a step does not `expect`. The failure is a `ScriptError`, an AssertionError and no
error of ours, so no code that copes with models' failures swallows it.

A step is an `Answer`, an error to raise, or a function from the request to either. An answer with `breaks` raises its
error after its items, as a connection does that is lost in the middle; one with `hold` waits for the event before it
ends, so that a test can interrupt "while the model speaks".
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, NoReturn, Protocol

import msgspec

from commonplace.errors import ModelError
from commonplace.models.base import (
    Completed,
    Event,
    ItemAdded,
    ItemDone,
    RateLimits,
    ReasoningDelta,
    Request,
    Stop,
    TextDelta,
    Usage,
)
from commonplace.protocol import items


class ScriptError(AssertionError):
    """The model was asked for more, for less or for something else than its script has."""


class Hold(Protocol):
    """What an answer can wait for; an `anyio.Event` is one."""

    def wait(self) -> Awaitable[Any]:
        """Return when the answer may go on."""
        ...


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One scripted answer."""

    items: tuple[bytes, ...] = ()
    usage: Usage | None = None
    limits: RateLimits | None = None
    end_turn: bool | None = None
    stop: Stop | None = None
    """None: `tools` if there is a call, else `end`."""
    expect: Callable[[Request], object] | None = None
    """Called with the request; an answer of False, or an AssertionError, fails the script."""
    breaks: ModelError | None = None
    hold: Hold | None = None
    piece: int = 16
    """Characters per delta."""


Step = Answer | ModelError | Callable[[Request], Answer | ModelError]


def say(text: str, *, phase: str | None = None) -> dict[str, Any]:
    """Return an assistant's message."""
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return item if phase is None else {**item, "phase": phase}


def think(summary: str, encrypted: str = "scripted") -> dict[str, Any]:
    """Return reasoning."""
    parts = [{"type": "summary_text", "text": summary}]
    return {"type": "reasoning", "summary": parts, "content": None, "encrypted_content": encrypted}


def call(
    name: str, arguments: Mapping[str, Any] | str, call_id: str, *, namespace: str | None = None
) -> dict[str, Any]:
    """Return a function call."""
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    item = {"type": "function_call", "name": name, "arguments": text, "call_id": call_id}
    return item if namespace is None else {**item, "namespace": namespace}


def custom(name: str, text: str, call_id: str) -> dict[str, Any]:
    """Return a call with free text."""
    return {"type": "custom_tool_call", "status": "completed", "call_id": call_id, "name": name, "input": text}


def compaction(encrypted: str = "scripted") -> dict[str, Any]:
    """Return the item of a remote compaction."""
    return {"type": "compaction", "encrypted_content": encrypted}


def answer(*parts: Mapping[str, Any] | bytes, **options: Any) -> Answer:
    """Return an answer of these items; options are the fields of `Answer`."""
    encoded = tuple(part if isinstance(part, bytes) else msgspec.json.encode(part) for part in parts)
    return Answer(items=encoded, **options)


class ScriptedModel:
    """A `Model` that answers from a list of steps and keeps the requests."""

    def __init__(self, *steps: Step) -> None:
        self.requests: list[Request] = []
        self._steps = list(steps)
        self._problems: list[str] = []
        self._count = 0

    def add(self, *steps: Step) -> None:
        """Append to the script."""
        self._steps.extend(steps)

    def check(self) -> None:
        """Fail unless the script was followed to its end.

        Raises:
            ScriptError: a request was unexpected, or steps are left.
        """
        problems = list(self._problems)
        if self._steps:
            problems.append(f"{len(self._steps)} steps were never asked for")
        if problems:
            raise ScriptError("; ".join(problems))

    async def __aenter__(self) -> ScriptedModel:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.check()

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of the next step.

        Raises:
            ScriptError: the script has no such step.
            ModelError: the step is this error.
        """
        number = len(self.requests) + 1
        self.requests.append(request)
        if not self._steps:
            self._fail(f"request {number} is not in the script")
        step = self._steps.pop(0)
        step = step if isinstance(step, Answer | ModelError) else step(request)
        if isinstance(step, ModelError):
            raise step
        self._expected(step, request, number)
        for event in self._events(step, f"resp_{number}"):
            yield event
        if step.hold is not None:
            await step.hold.wait()
        if step.breaks is not None:
            raise step.breaks
        if step.usage is not None:
            yield step.usage
        calls = any(items.kind(item).endswith("_call") for item in step.items)
        yield Completed(f"resp_{number}", step.end_turn, step.stop or ("tools" if calls else "end"))

    def _expected(self, step: Answer, request: Request, number: int) -> None:
        try:
            met = step.expect is None or step.expect(request) is not False
        except AssertionError as error:
            self._fail(f"request {number} is not what the script expects: {error}")
        if not met:
            self._fail(f"request {number} is not what the script expects")

    def _fail(self, problem: str) -> NoReturn:
        self._problems.append(problem)
        raise ScriptError(problem)

    def _events(self, step: Answer, response_id: str) -> list[Event]:
        found: list[Event] = [step.limits] if step.limits is not None else []
        for given in step.items:
            self._count += 1
            fields = msgspec.json.decode(given, type=dict[str, msgspec.Raw])
            item_id = f"{response_id}_{self._count}"
            if "id" in fields:
                item_id = msgspec.json.decode(fields["id"], type=str)
            raw = given if "id" in fields else msgspec.json.encode({"id": item_id, **fields})
            view = items.view(raw)
            found.append(ItemAdded(item_id, raw))
            if isinstance(view, items.Message):
                found.extend(TextDelta(item_id, piece) for piece in _pieces(view.text(), step.piece))
            elif isinstance(view, items.Reasoning):
                text = "".join(part.text or "" for part in view.summary)
                found.extend(ReasoningDelta(item_id, piece) for piece in _pieces(text, step.piece))
            found.append(ItemDone(raw))
        return found


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
