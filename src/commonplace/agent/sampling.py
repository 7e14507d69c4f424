"""One request and its answer: what is sent, what streams back, what is recorded of it.

An item is recorded when the model has finished it, and a tool call begins at that moment, while the answer still
streams. When an interrupt cuts an answer off, its words so far are recorded as a message. When an answer breaks off,
its words so far are shown and not recorded, since the answer is asked for again.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import msgspec

from commonplace.agent import events
from commonplace.agent.answer_text import AnswerText
from commonplace.agent.profile import Profile
from commonplace.agent.session import Session
from commonplace.agent.tool_calls import ToolCalls
from commonplace.agent.tools.registry import ToolDefinition
from commonplace.agent.turn_state import TurnState
from commonplace.context.usage import TokenUsage
from commonplace.models import base
from commonplace.models.base import CustomTool, FunctionTool, OutputSchema, Request
from commonplace.protocol import citations, external_content, items


class Sampled(msgspec.Struct):
    """The outcome of a request."""

    follow_up: bool = False
    """The model is not done: it called tools, or its server says that the turn goes on."""
    answered: bool = False
    """Part of an answer arrived; from then on the loop repeats a failed request, not the model's client."""


async def sample(session: Session, turn: TurnState, sampled: Sampled) -> None:
    """Send one request and process its answer, tool calls included; `sampled` says how far that got, even on an error.

    Raises:
        ModelError: there is no answer, or no more of it.
        WriteFailed: the ledger cannot be written.
    """
    answer = _AnswerReader(session, turn, sampled)
    broken = False
    try:
        stream = session.model.stream(request(session, turn))
        async with ToolCalls(session, turn) as calls, aclosing(stream):
            async for event in stream:
                answer.process(event, calls)
    except Exception:
        broken = True
        raise
    finally:
        answer.finish_open_items(record=not broken)
        if sampled.answered:
            usage = session.usage
            session.ledger.note("event_msg", usage.line())
            session.ledger.publish(usage.event(turn.id))
    await session.ledger.flush()


def request(session: Session, turn: TurnState) -> Request:
    """Return the next request of a turn."""
    profile = turn.profile
    info = profile.choice.info
    schema = turn.given.schema
    return Request(
        model=profile.choice.slug,
        instructions=profile.base,
        input=tuple(session.history.for_prompt(info.modalities)),
        tools=(*(offered(each) for each in session.tools.definitions()), *hosted(profile)),
        effort=profile.requested_effort,
        summary=profile.summary if info.efforts else None,
        verbosity=profile.verbosity,
        output_schema=None if schema is None else OutputSchema(schema, name="codex_output_schema"),
        prompt_cache_key=session.thread_id,
        headers={"originator": profile.originator},
    )


def offered(definition: ToolDefinition) -> base.Tool:
    """Return a tool as a request offers it."""
    if definition.kind == "custom":
        return CustomTool(definition.name, definition.description)
    return FunctionTool(definition.name, definition.description, definition.parameters, namespace=definition.namespace)


def hosted(profile: Profile) -> tuple[base.Tool, ...]:
    """Return the tools that the model's server runs itself, where its API has them."""
    if profile.web_search == "disabled" or profile.choice.provider.api != "responses":
        return ()
    search = {"type": "web_search", "external_web_access": profile.web_search == "live"}
    return (base.HostedTool(msgspec.json.encode(search)),)


class _AnswerReader:
    """Processes the events of one answer."""

    def __init__(self, session: Session, turn: TurnState, sampled: Sampled) -> None:
        self._session = session
        self._turn = turn
        self._sampled = sampled
        self._ledger = session.ledger
        self._is_counted = False
        """Whether the server said how many tokens the answer took."""
        self._text = AnswerText(session.ledger, turn)
        self._open: dict[str, tuple[events.AgentMessage | events.Reasoning, list[str]]] = {}
        """The items that stream: each as it began, and the pieces that came so far."""

    def process(self, event: base.Event, calls: ToolCalls) -> None:
        """Process one event."""
        session, turn, ledger = self._session, self._turn, self._ledger
        if not isinstance(event, base.Retrying | base.RateLimits | base.ModelNamed):
            self._sampled.answered = True
        match event:
            case base.Retrying():
                retrying = events.Retrying(
                    turn_id=turn.id, attempt=event.attempt, limit=event.limit, reason=event.reason
                )
                ledger.publish(retrying)
            case base.RateLimits():
                session.usage.update_limits(event.limits)
            case base.ModelNamed():
                self._rerouted(event.model)
            case base.ItemAdded():
                self._added(event)
            case base.TextDelta():
                self._begin(events.AgentMessage(id=event.id, text="")).append(event.text)
                self._show_text(event.id, event.text)
            case base.ReasoningDelta():
                self._begin(events.Reasoning(id=event.id)).append(event.text)
                delta = events.ReasoningDelta(turn_id=turn.id, item_id=event.id, text=event.text, summary=event.summary)
                ledger.publish(delta)
            case base.ItemDone():
                self._done(event.item, calls)
            case base.Usage():
                usage = TokenUsage(
                    input_tokens=event.input,
                    cached_input_tokens=event.cached,
                    output_tokens=event.output,
                    reasoning_output_tokens=event.reasoning,
                    total_tokens=event.total,
                )
                session.usage.count(usage, turn.profile)
                self._is_counted = True
            case base.Completed():
                if not self._is_counted:
                    session.usage.count_by_estimate(turn.profile)
                paused = event.stop == "paused" or event.end_turn is False
                self._sampled.follow_up = bool(len(calls)) or paused

    def _rerouted(self, answers: str) -> None:
        """Tell once in a turn that another model answers; a dated release of the same model is no other one."""
        asked = self._turn.profile.choice.slug
        is_same = answers.lower() == asked.lower() or answers.lower().startswith(f"{asked.lower()}-20")
        if not is_same and self._turn.note_rerouted():
            self._ledger.publish(events.Rerouted(turn_id=self._turn.id, asked=asked, answers=answers))
            self._ledger.warn(f"The provider answers with the model {answers}; {asked} was asked.")

    def _added(self, event: base.ItemAdded) -> None:
        view = items.view(event.item)
        if isinstance(view, items.Message) and view.role == "assistant":
            self._begin(events.AgentMessage(id=event.id, text="", phase=view.phase))
        elif isinstance(view, items.Reasoning):
            self._begin(events.Reasoning(id=event.id))

    def _begin(self, item: events.AgentMessage | events.Reasoning) -> list[str]:
        """Publish that an item began, once; return the list of its pieces."""
        if item.id not in self._open:
            self._open[item.id] = (item, [])
            if isinstance(item, events.AgentMessage):
                self._text.begin(item)
            else:
                self._ledger.publish(events.ItemStarted(turn_id=self._turn.id, item=item))
        return self._open[item.id][1]

    def _show_text(self, item_id: str, text: str) -> None:
        item, _ = self._open[item_id]
        if isinstance(item, events.Reasoning):  # a server gave two items one id
            item = events.AgentMessage(id=item_id, text="")
        if self._text.delta(item, text) and self._turn.first_token is None:
            self._turn.note_first_token(self._session.environment.monotonic())

    def _done(self, raw: bytes, calls: ToolCalls) -> None:
        entry = self._ledger.record(raw)
        if entry is None:
            return
        view = entry.view
        if not isinstance(view, items.FunctionCall) and (source := external_content.source(view)) is not None:
            self._session.note_external(source)  # for calls, `ToolCalls` notes it
        match view:
            case items.Message(role="assistant"):
                self._message(view)
            case items.Reasoning():
                self._open.pop(view.id or "", None)
                self._ledger.complete(reasoning(view, raw))
            case items.WebSearchCall():
                self._ledger.complete(web_search(view))
            case _:
                calls.start(raw)

    def _message(self, view: items.Message) -> None:
        item_id = view.id or ""
        self._open.pop(item_id, None)
        message = citations.finished("".join(part.text or "" for part in view.content))
        if message.citation is not None:
            self._turn.add_citation(message.citation)
        item = events.AgentMessage(id=item_id, text="", phase=view.phase, citation=message.citation)
        if (seen := self._text.end(item, message.visible)).strip():
            self._turn.note_message(seen)

    def finish_open_items(self, *, record: bool) -> None:
        """Complete the items that the model did not finish; with `record` their words also go into the history.

        Without it they are only shown, since the model says it all again.
        """
        for item_id, (item, pieces) in self._open.items():
            text = "".join(pieces)
            if isinstance(item, events.Reasoning):
                self._ledger.complete(events.Reasoning(id=item_id, summary=[text] if text else []))
                continue
            if record and text.strip():
                content = [{"type": "output_text", "text": text}]
                named = {"id": item_id} if item_id else {}
                self._ledger.record({"type": "message", **named, "role": "assistant", "content": content})
            self._text.end(item, citations.strip(text)[0])
        self._open.clear()


class _ReasoningContent(msgspec.Struct):
    content: list[items.Content] | None = None


def reasoning(view: items.Reasoning, raw: bytes) -> events.Reasoning:
    """Return what a person sees of a model's reasoning."""
    shown = msgspec.json.decode(raw, type=_ReasoningContent).content or []
    return events.Reasoning(
        id=view.id or "",
        summary=[part.text for part in view.summary if part.text],
        text=[part.text for part in shown if part.text],
    )


def web_search(view: items.WebSearchCall) -> events.WebSearch:
    """Return what a person sees of a search."""
    try:
        action = msgspec.json.decode(view.action, type=dict[str, Any] | None) if view.action else None
    except msgspec.DecodeError:
        action = None
    query = action.get("query") if action else None
    return events.WebSearch(id=view.id or "", query=query if isinstance(query, str) else "", action=action)
