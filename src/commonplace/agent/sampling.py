"""One request and its answer: what is sent, what streams back, what is recorded of it.

An item is recorded when the model has finished it, and a tool call begins at that moment, while the answer still
streams. Of an answer that is cut off by an interrupt, the words that were said so far are recorded as a message; of one
that breaks off, they are shown and not recorded, since the answer is asked for again.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from commonplace.agent import events
from commonplace.agent.calls import Calls
from commonplace.agent.profile import Profile
from commonplace.agent.tools.registry import Definition
from commonplace.context.usage import TokenUsage
from commonplace.models import base
from commonplace.models.base import CustomTool, FunctionTool, OutputSchema, Request
from commonplace.protocol import citations, external_content, items

if TYPE_CHECKING:
    from commonplace.agent.current import Turn
    from commonplace.agent.session import Session


class Sampled(msgspec.Struct):
    """What came of a request."""

    follow_up: bool = False
    """The model is not done: it called tools, or its server says that the turn goes on."""
    answered: bool = False
    """Something of an answer was given; the model's own repetition ends there."""


async def sample(session: Session, turn: Turn, sampled: Sampled) -> None:
    """Send one request and take in its answer, tools included; `sampled` tells how far that got, whatever happens.

    Raises:
        ModelError: there is no answer, or no more of it.
        WriteFailed: the ledger cannot be written.
    """
    answer = _Answer(session, turn, sampled)
    broken = False
    try:
        wanted = request(session, turn)
        async with Calls(session, turn) as calls, aclosing(session.model.stream(wanted)) as stream:
            async for event in stream:
                answer.take(event, calls)
    except Exception:
        broken = True
        raise
    finally:
        answer.cut_off(stands=not broken)
        if sampled.answered:
            session.note("event_msg", _counted(session))
            session.tell(events.TokenCount(turn_id=turn.id, info=session.history.info, limits=session.limits))
    await session.flush()


def request(session: Session, turn: Turn) -> Request:
    """Return the next request of a turn."""
    profile = session.profile
    info = profile.choice.info
    schema = turn.given.schema
    return Request(
        model=profile.choice.slug,
        instructions=profile.base,
        input=tuple(session.history.for_prompt(info.modalities)),
        tools=(*(offered(each) for each in session.tools.definitions()), *hosted(profile)),
        effort=profile.effective_effort,
        summary=profile.summary if info.efforts else None,
        verbosity=profile.verbosity,
        output_schema=None if schema is None else OutputSchema(schema, name="codex_output_schema"),
        prompt_cache_key=session.thread_id,
    )


def offered(definition: Definition) -> base.Tool:
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


def _counted(session: Session) -> dict[str, Any]:
    from commonplace.agent import lines

    return lines.token_count(session.history.info, session.limits)


class _Answer:
    """Takes in the events of one answer."""

    def __init__(self, session: Session, turn: Turn, sampled: Sampled) -> None:
        self._session = session
        self._turn = turn
        self._sampled = sampled
        self._counted = False
        """The server said what the answer took."""
        self._shown = citations.Streams()
        self._open: dict[str, tuple[events.AgentMessage | events.Reasoning, list[str]]] = {}
        """What streams: each as it began, and the pieces that came so far."""

    def take(self, event: base.Event, calls: Calls) -> None:
        """Take in one event."""
        session, turn = self._session, self._turn
        if not isinstance(event, base.Retrying | base.RateLimits):
            self._sampled.answered = True
        match event:
            case base.Retrying():
                retrying = events.Retrying(
                    turn_id=turn.id, attempt=event.attempt, limit=event.limit, reason=event.reason
                )
                session.tell(retrying)
            case base.RateLimits():
                session.limits = event.limits
            case base.ItemAdded():
                self._added(event)
            case base.TextDelta():
                self._begin(events.AgentMessage(id=event.id, text="")).append(event.text)
                self._say(event.id, self._shown.delta(event.id, event.text))
            case base.ReasoningDelta():
                self._begin(events.Reasoning(id=event.id)).append(event.text)
                delta = events.ReasoningDelta(turn_id=turn.id, item_id=event.id, text=event.text, summary=event.summary)
                session.tell(delta)
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
                session.history.record_usage(usage, session.profile.window.effective)
                self._counted = True
            case base.Completed():
                if not self._counted:
                    session.estimate()
                paused = event.stop == "paused" or event.end_turn is False
                self._sampled.follow_up = bool(len(calls)) or paused

    def _added(self, event: base.ItemAdded) -> None:
        view = items.view(event.item)
        if isinstance(view, items.Message) and view.role == "assistant":
            self._begin(events.AgentMessage(id=event.id, text="", phase=view.phase))
        elif isinstance(view, items.Reasoning):
            self._begin(events.Reasoning(id=event.id))

    def _begin(self, item: events.AgentMessage | events.Reasoning) -> list[str]:
        """Tell that an item began, once; return where its pieces are kept."""
        if item.id not in self._open:
            self._open[item.id] = (item, [])
            self._session.tell(events.ItemStarted(turn_id=self._turn.id, item=item))
        return self._open[item.id][1]

    def _say(self, item_id: str, text: str) -> None:
        if not text:
            return
        if self._turn.first_token is None:
            self._turn.first_token = self._session.outside.monotonic()
        self._session.tell(events.TextDelta(turn_id=self._turn.id, item_id=item_id, text=text))

    def _done(self, raw: bytes, calls: Calls) -> None:
        session = self._session
        entry = session.record(raw)
        if entry is None:
            return
        view = entry.view
        if not isinstance(view, items.FunctionCall) and (source := external_content.source(view)) is not None:
            session.external(source)  # of calls, whoever runs them knows
        match view:
            case items.Message(role="assistant"):
                self._said(view)
            case items.Reasoning():
                self._open.pop(view.id or "", None)
                session.show(reasoning(view, raw))
            case items.WebSearchCall():
                session.show(web_search(view))
            case _:
                calls.start(raw)

    def _said(self, view: items.Message) -> None:
        item_id = view.id or ""
        self._open.pop(item_id, None)
        self._say(item_id, self._shown.done(item_id))
        said = citations.finished("".join(part.text or "" for part in view.content))
        if said.citation is not None:
            self._turn.cited.append(said.citation)
        self._turn.message = said.last_message or self._turn.message
        self._session.show(events.AgentMessage(id=item_id, text=said.visible, phase=view.phase, citation=said.citation))

    def cut_off(self, *, stands: bool) -> None:
        """End what is not finished, since nobody will finish it; if it `stands`, the words that were said are recorded.

        If not, they are shown as they were heard, and the model says it all again.
        """
        for item_id, (item, pieces) in self._open.items():
            text = "".join(pieces)
            if isinstance(item, events.Reasoning):
                self._session.show(events.Reasoning(id=item_id, summary=[text] if text else []))
                continue
            self._say(item_id, self._shown.done(item_id))
            if stands and text.strip():
                content = [{"type": "output_text", "text": text}]
                named = {"id": item_id} if item_id else {}
                self._session.record({"type": "message", **named, "role": "assistant", "content": content})
            self._session.show(msgspec.structs.replace(item, text=citations.strip(text)[0]))
        self._open.clear()


class _Thought(msgspec.Struct):
    content: list[items.Content] | None = None


def reasoning(view: items.Reasoning, raw: bytes) -> events.Reasoning:
    """Return what a person sees of a model's reasoning."""
    shown = msgspec.json.decode(raw, type=_Thought).content or []
    return events.Reasoning(
        id=view.id or "",
        summary=[part.text for part in view.summary if part.text],
        text=[part.text for part in shown if part.text],
    )


def web_search(view: items.WebSearchCall) -> events.WebSearch:
    """Return what a person sees of a search."""
    try:
        found = msgspec.json.decode(view.action, type=dict[str, Any] | None) if view.action else None
    except msgspec.DecodeError:
        found = None
    query = found.get("query") if found else None
    return events.WebSearch(id=view.id or "", query=query if isinstance(query, str) else "", action=found)
