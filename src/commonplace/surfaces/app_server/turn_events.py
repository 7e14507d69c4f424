"""The events of a session as notifications. Events in, notifications out; the time is a parameter.

Order of a turn, as Codex has it: status active, turn/started, items each started before completed, token usage and rate
limits after each answer, the status, the error if there was one, turn/completed. An item that the session only
completes is started here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from commonplace.agent import events
from commonplace.context.usage import TokenInfo, TokenUsage
from commonplace.models.base import Limit
from commonplace.surfaces.app_server import items
from commonplace.surfaces.app_server.hook_notices import HookNotices
from commonplace.surfaces.app_server.item_shapes import AgentMessageItem, ThreadItem
from commonplace.surfaces.app_server.read_state import ReadState
from commonplace.surfaces.app_server.shapes import (
    ActiveStatus,
    IdleStatus,
    SystemErrorStatus,
    ThreadStatus,
    TurnFailure,
    TurnStatus,
    WireTurn,
)

Json = dict[str, Any]
Notice = tuple[str, Json]
_ERRORS: Final = {
    "context_too_long": "contextWindowExceeded",
    "quota_exceeded": "usageLimitExceeded",
    "budget_spent": "sessionBudgetExceeded",
    "not_authorised": "unauthorized",
    "request_refused": "badRequest",
    "rate_limited": "serverOverloaded",
    "model_unavailable": "internalServerError",
    "internal": "internalServerError",
}
_ONLY_REASON: Final = "highRiskCyberActivity"
"""Why another model answers: the protocol has no other word, and no server says which."""
_STEPS: Final = {"pending": "pending", "in_progress": "inProgress", "completed": "completed"}


class TurnEvents:
    """Turns the events of one thread into notifications."""

    def __init__(
        self,
        thread_id: str,
        now: Callable[[], datetime],
        settings_file: Path,
        folder: Callable[[], Path],
        leaves_file: Callable[[], bool],
    ) -> None:
        self._thread = thread_id
        self._leaves_file = leaves_file
        self.read = ReadState(now)
        self._folder = folder
        """Where the work is; differences name files from there."""
        self._now = now
        self._started: set[tuple[str, str]] = set()
        """Turns and items that were started and are not completed; a command may go on after its turn."""
        self._hooks = HookNotices(now, settings_file)
        self._thinking: str | None = None
        """The item whose summary was told last."""
        self._last: AgentMessageItem | None = None
        self._diffs: dict[str, str] = {}
        self._began: datetime | None = None
        self.turn: WireTurn | None = None
        """The turn that runs."""
        self.rest: IdleStatus | SystemErrorStatus = IdleStatus()
        """The status while no turn runs: whether the last one failed."""

    def of(self, event: events.Event) -> Iterator[Notice]:
        """Yield the notifications of an event."""
        where: Json = {"threadId": self._thread, "turnId": event.turn_id}
        match event:
            case events.TurnStarted():
                yield from self._turn_started(event)
            case events.ItemStarted() | events.ItemUpdated() | events.ItemCompleted():
                yield from self._item(event, where)
            case events.TextDelta() | events.ReasoningDelta() | events.OutputDelta() | events.PlanDelta():
                yield from self._delta(event, where)
            case events.ProcessInput() | events.ServerChanged() | events.Rerouted():
                yield self._beside(event, where)
            case events.HookStarted() | events.HookCompleted():
                yield self._hooks.notice(self._thread, event)
            case events.TokenCount():
                if event.info is not None:
                    yield "thread/tokenUsage/updated", {**where, "tokenUsage": usage(event.info)}
                    yield "account/rateLimits/updated", {"rateLimits": rate_limits(event.limits)}
            case events.Retrying():
                message = f"Reconnecting... {event.attempt}/{event.limit}"
                error = TurnFailure(message=message, additional_details=event.reason)
                yield "error", {**where, "error": error, "willRetry": True}
            case events.Warned():
                yield "warning", {"threadId": self._thread, "message": event.message}
            case events.TurnCompleted() | events.TurnFailed() | events.TurnAborted():
                yield from self._turn_ended(event, where)
            case events.Asked():
                pass  # a question goes to the client as a request

    def _beside(self, event: events.ProcessInput | events.ServerChanged | events.Rerouted, where: Json) -> Notice:
        """Return what is told of something that happens beside the items."""
        match event:
            case events.ProcessInput():
                told = {"itemId": event.item_id, "processId": str(event.process), "stdin": event.text}
                return "item/commandExecution/terminalInteraction", {**where, **told}
            case events.ServerChanged():
                told = {"name": event.server, "status": event.status, "error": event.error, "failureReason": None}
                return "mcpServer/startupStatus/updated", {"threadId": self._thread, **told}
            case events.Rerouted():
                told = {"fromModel": event.asked, "toModel": event.answers, "reason": _ONLY_REASON}
                return "model/rerouted", {**where, **told}

    def _turn_started(self, event: events.TurnStarted) -> Iterator[Notice]:
        self._diffs.clear()
        self._last, self._began = None, self._now()
        started = WireTurn(id=event.turn_id, items_view="notLoaded", started_at=int(self._began.timestamp()))
        self.turn = started
        yield self.status(ActiveStatus())
        yield "turn/started", {"threadId": self._thread, "turn": started}

    def status(self, status: ThreadStatus) -> Notice:
        """Return the notification of a thread's status."""
        return "thread/status/changed", {"threadId": self._thread, "status": status}

    def _item(
        self, event: events.ItemStarted | events.ItemUpdated | events.ItemCompleted, where: Json
    ) -> Iterator[Notice]:
        """Yield what is told of an item; a plan is no item for clients, and is told whenever it changes."""
        if isinstance(event.item, events.Plan):
            if not isinstance(event, events.ItemCompleted):
                yield _plan(event.item, where)
        elif isinstance(event, events.ItemStarted):
            yield self._item_started(items.live(event.item), where)
        elif isinstance(event, events.ItemCompleted):
            yield from self._item_completed(event.item, where)

    def _item_started(self, item: ThreadItem, where: Json) -> Notice:
        self._started.add((where["turnId"], item.id))
        return "item/started", {"item": item, **where, "startedAtMs": self.now_ms()}

    def _item_completed(self, item: events.Item, where: Json) -> Iterator[Notice]:
        shown = items.live(item)
        if (where["turnId"], item.id) not in self._started:
            yield self._item_started(shown, where)
        self._started.discard((where["turnId"], item.id))
        if isinstance(shown, AgentMessageItem):
            self._last = shown
        yield "item/completed", {"item": shown, **where, "completedAtMs": self.now_ms()}
        if isinstance(item, events.FileChange) and item.status == "completed":
            for change in item.changes:
                self._diffs[change.path] = self._diffs.get(change.path, "") + git_diff(change, self._folder())
            yield "turn/diff/updated", {**where, "diff": "".join(self._diffs.values())}

    def _delta(
        self, event: events.TextDelta | events.ReasoningDelta | events.OutputDelta | events.PlanDelta, where: Json
    ) -> Iterator[Notice]:
        told = {**where, "itemId": event.item_id, "delta": event.text}
        match event:
            case events.PlanDelta():
                yield "item/plan/delta", told
            case events.TextDelta():
                yield "item/agentMessage/delta", told
            case events.OutputDelta():
                yield "item/commandExecution/outputDelta", told
            case events.ReasoningDelta(summary=True):
                if self._thinking != event.item_id:
                    self._thinking = event.item_id
                    part = {**where, "itemId": event.item_id, "summaryIndex": 0}
                    yield "item/reasoning/summaryPartAdded", part
                yield "item/reasoning/summaryTextDelta", {**told, "summaryIndex": 0}
            case events.ReasoningDelta():
                yield "item/reasoning/textDelta", {**told, "contentIndex": 0}

    def _turn_ended(self, end: events.End, where: Json) -> Iterator[Notice]:
        status: TurnStatus = "completed"
        error: TurnFailure | None = None
        if isinstance(end, events.TurnFailed):
            status, error = "failed", failure(end.error)
        elif isinstance(end, events.TurnAborted):
            status = "interrupted"
        now = self._now()
        began = self._began or now
        last = [self._last] if self._last is not None and status == "completed" else []
        turn = WireTurn(
            id=end.turn_id,
            items=[*last],
            items_view="summary" if last else "notLoaded",
            status=status,
            error=error,
            started_at=int(began.timestamp()),
            completed_at=int(now.timestamp()),
            duration_ms=max(0, round((now - began).total_seconds() * 1000)),
        )
        self.turn = None
        if last:
            yield from self._unread(end.turn_id)
        self.rest = IdleStatus() if error is None else SystemErrorStatus()
        yield self.status(self.rest)
        if error is not None:
            yield "error", {**where, "error": error, "willRetry": False}
            yield from self._unread(end.turn_id)
        yield "turn/completed", {"threadId": self._thread, "turn": turn}

    def _unread(self, turn_id: str) -> Iterator[Notice]:
        if self._leaves_file():
            self.read.ended(turn_id)
            yield "thread/readState/changed", {"threadId": self._thread, "readState": self.read.shown}

    def now_ms(self) -> int:
        """Return the time in milliseconds."""
        return int(self._now().timestamp() * 1000)


def _plan(item: events.Plan, where: Json) -> Notice:
    steps = [{"step": step.text, "status": _STEPS[step.status]} for step in item.steps]
    return "turn/plan/updated", {**where, "explanation": None, "plan": steps}


def failure(problem: events.Problem) -> TurnFailure:
    """Return why a turn failed, as clients are told."""
    return TurnFailure(
        message=problem.message,
        codex_error_info=_ERRORS.get(problem.code, "other"),
        additional_details=problem.hint or None,
    )


def stored_failure(message: str, code: str | None) -> TurnFailure:
    """Return why a turn failed, from what its thread's file says."""
    return TurnFailure(message=message, codex_error_info=None if code is None else _ERRORS.get(code, "other"))


def usage(info: TokenInfo) -> Json:
    """Return the tokens that were used."""
    return {
        "total": _breakdown(info.total_token_usage),
        "last": _breakdown(info.last_token_usage),
        "modelContextWindow": info.model_context_window,
    }


def rate_limits(limits: Sequence[Limit]) -> Json:
    """Return the provider's limits: the primary one and, of the others, those that are used most."""
    windows = [
        {
            "usedPercent": round(limit.used_percent),
            "windowDurationMins": limit.window_minutes,
            "resetsAt": None if limit.resets_at is None else int(limit.resets_at),
        }
        for limit in sorted(limits, key=lambda limit: (limit.name != "primary", -limit.used_percent))
    ]
    first, second = [*windows, None, None][:2]
    return {
        "limitId": None,
        "limitName": None,
        "primary": first,
        "secondary": second,
        "credits": None,
        "planType": None,
    }


def _breakdown(used: TokenUsage) -> Json:
    return {camel(name): getattr(used, name) for name in used.__struct_fields__}


def camel(name: str) -> str:
    """Return a name as it is on the wire."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def git_diff(change: events.Change, folder: Path) -> str:
    """Return one change as git shows it in a folder, as far as that is known without the repository."""
    name = _inside(Path(change.path), folder)
    to = name if change.to is None else _inside(folder / change.to, folder)
    if change.kind == "update":
        return f"diff --git a/{name} b/{to}\n--- a/{name}\n+++ b/{to}\n{change.diff}"
    lines = change.diff.splitlines()
    sign = "+" if change.kind == "add" else "-"
    body = "".join(f"{sign}{line}\n" for line in lines)
    count = f"1,{len(lines)}" if len(lines) != 1 else "1"
    if change.kind == "add":
        head = f"new file mode 100644\n--- /dev/null\n+++ b/{name}\n"
        hunk = f"@@ -0,0 +{count} @@\n" if lines else ""
    else:
        head = f"deleted file mode 100644\n--- a/{name}\n+++ /dev/null\n"
        hunk = f"@@ -{count} +0,0 @@\n" if lines else ""
    return f"diff --git a/{name} b/{name}\n{head}{hunk}{body}"


def _inside(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path).lstrip("/")
