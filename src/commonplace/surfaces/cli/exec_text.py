"""The events of a turn for a person who watches: one or two short lines each. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from commonplace.agent import events
from commonplace.surfaces.cli import output

_WIDTH = 100
"""How many columns of a command or a thought are shown."""
_TAIL = 3
"""How many lines of an output are shown."""


def event_lines(event: events.Event) -> Iterator[str]:
    """Yield what is told of an event."""
    match event:
        case events.ItemStarted(item=events.CommandExecution() as run):
            yield f"$ {output.one_line(_words(run.command), _WIDTH)}"
        case events.ItemUpdated(item=events.CommandExecution(process=int(process))):
            yield f"  goes on in the background as process {process}"
        case events.ItemCompleted(item=item):
            yield from _completed(item)
        case events.Warned():
            yield f"! {event.message}"
        case events.Retrying():
            yield f"! again in a moment ({event.attempt}/{event.limit}): {event.reason}"
        case _:
            pass


def _completed(item: events.Item) -> Iterator[str]:
    match item:
        case events.AgentMessage(phase="commentary") | events.ProposedPlan():
            yield item.text
        case events.Reasoning() if item.summary:
            yield f"~ {output.one_line(' '.join(item.summary), _WIDTH)}"
        case events.CommandExecution():
            yield from _ended(item)
        case events.FileChange():
            for change in item.changes:
                to = f" → {change.to}" if change.to else ""
                yield f"{change.kind:7} {change.path}{to}" + ("" if item.status == "completed" else f" ({item.status})")
        case events.ToolCall() | events.McpToolCall():
            yield f"{item.tool} {'' if item.status == 'completed' else item.status}".rstrip()
        case events.AgentCall():
            yield from _agent_call(item)
        case events.WebSearch():
            yield f"searched the web: {output.one_line(item.query, _WIDTH)}"
        case events.Plan():
            for step in item.steps:
                yield f"[{'x' if step.status == 'completed' else ' '}] {step.text}"
        case events.ContextCompaction():
            is_shorter = item.after < item.before
            told = f"was shortened: {item.before} → {item.after} tokens" if is_shorter else "stays as it is"
            yield f"the history {told}"
        case _:
            pass


def _agent_call(item: events.AgentCall) -> Iterator[str]:
    names = ", ".join(nickname or name[-6:] for name, nickname in item.receivers) or "an agent"
    done = {
        "spawn_agent": f"started {names}",
        "send_input": f"told {names}",
        "resume_agent": f"opened {names} again",
        "wait": f"waited for {names}",
        "close_agent": f"closed {names}",
    }[item.tool]
    task = f": {output.one_line(item.prompt, _WIDTH)}" if item.prompt else ""
    yield f"⑂ {done}{task}" + (" (failed)" if item.status == "failed" else "")


def _ended(item: events.CommandExecution) -> Iterator[str]:
    lines = item.output.rstrip().splitlines()
    if len(lines) > _TAIL:
        yield f"  … {len(lines) - _TAIL} more lines"
    for line in lines[-_TAIL:]:
        yield f"  {output.one_line(line, _WIDTH)}"
    if item.status != "completed":
        yield f"  {item.status}" + ("" if item.exit_code is None else f", exit code {item.exit_code}")


def _words(command: tuple[str, ...]) -> str:
    return command[2] if len(command) == 3 and command[1] in ("-c", "-lc") else " ".join(command)
