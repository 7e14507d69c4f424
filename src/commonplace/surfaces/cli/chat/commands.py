"""The commands of a conversation: words that begin with a slash. Each calls one operation and shows what it did."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, get_args

import msgspec

from commonplace.config import Approval, Mode, Sandbox, Tone
from commonplace.errors import BadInput
from commonplace.patterns import regex
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.chat import questions
from commonplace.version import __version__

if TYPE_CHECKING:
    from commonplace.agent.subagents.agent import Agent, AgentInfo
    from commonplace.agent.subagents.status import AgentStatus
    from commonplace.agent.thread import Thread
    from commonplace.app.book import Book
    from commonplace.surfaces.cli.chat.event_view import EventView
    from commonplace.surfaces.cli.chat.questions import ChatQuestion
    from commonplace.surfaces.cli.chat.screen import Screen

_COMMAND: Final = regex(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)
_LISTED: Final = 10
"""Sessions that `/resume` offers."""


class ChatConversation(Protocol):
    """The conversation that a command acts on."""

    book: Book
    thread: Thread
    wishes: dict[str, Any]
    screen: Screen
    shown: EventView
    is_busy: bool

    def enter(self, text: str) -> None:
        """Take a line as if the person had typed it."""
        ...

    def tell(self, words: str, *, later: bool = False) -> None:
        """Pass words on to the agent."""
        ...

    def ask(self, question: ChatQuestion) -> None:
        """Put a question to the person."""
        ...

    def compact(self) -> None:
        """Shorten the thread's history."""
        ...

    async def go_on_in(self, thread: Thread) -> None:
        """Leave the present thread for another."""
        ...


class ChatCommand(msgspec.Struct, frozen=True):
    """One command."""

    run: Callable[[ChatConversation, str], Awaitable[None]]
    takes: str
    does: str
    waits: bool = False
    """It is not possible while the agent works."""


def parse(text: str) -> tuple[str, str] | None:
    """Return the name and the argument of a command; None if the words are none, such as a path."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1], (found[2] or "").strip()) if found else None


async def run(chat: ChatConversation, name: str, argument: str) -> None:
    """Run a command.

    Raises:
        BadInput: there is none of that name, or it cannot be used now.
    """
    command = COMMANDS.get(name)
    if command is None:
        raise BadInput(f"There is no command /{name}.", hint="/help lists them.")
    if command.waits and chat.is_busy:
        raise BadInput(f"/{name} waits until the agent is done.", hint="Ctrl-C stops it.")
    if argument and not command.takes:
        raise BadInput(f"/{name} takes nothing.", hint="Leave the rest out.")
    await command.run(chat, argument)


def greet(chat: ChatConversation) -> None:
    """Say where and with whom this is, and what was said last."""
    profile = chat.thread.profile
    here = f"commonplace {__version__} · {_model(chat)} · {profile.cwd} · {profile.sandbox}{_mode_note(chat)}"
    chat.screen.say(here, "dim", wraps=False)
    chat.screen.say("/help lists the commands, Ctrl-D leaves.", "dim")
    _last(chat)


def part(chat: ChatConversation) -> None:
    """Say how to come back."""
    path = chat.thread.path
    if path is not None and path.exists():
        chat.screen.say(f"To come back: commonplace chat resume {chat.thread.id}", "dim", "end")


def _last(chat: ChatConversation) -> None:
    """Show the last exchange of a thread that is gone on with."""
    asked, answered = chat.thread.last_words()
    if asked:
        chat.shown.show_input(asked)
    if answered:
        chat.shown.answer(answered)


def _mode_note(chat: ChatConversation) -> str:
    """Return the mode for a line that says where this is; the usual one is not named."""
    mode = chat.thread.profile.mode
    return "" if mode == "default" else f" · {mode} mode"


def _model(chat: ChatConversation) -> str:
    choice = chat.thread.profile.choice
    return f"{choice.name}:{choice.slug}"


async def _help(chat: ChatConversation, argument: str) -> None:
    rows = [(f"/{name} {command.takes}".rstrip(), command.does) for name, command in COMMANDS.items()]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(width)}  {does}" for name, does in rows]
    keys = "Enter sends, Alt-Enter or Ctrl-J begins a new line, Ctrl-C stops the agent, Ctrl-R searches what you typed."
    chat.screen.say("\n".join([*lines, "", keys]))


async def _status(chat: ChatConversation, argument: str) -> None:
    thread, profile = chat.thread, chat.thread.profile
    info = thread.usage
    used = "nothing yet"
    if info is not None:
        total = info.total_token_usage
        used = f"{total.input_tokens:,} in ({total.cached_input_tokens:,} cached), {total.output_tokens:,} out"
        left = info.percent_left
        used += f"; {left} % of the window left" if left is not None else ""
    path = thread.path
    rows = {
        "model": f"{_model(chat)}, effort {profile.effective_effort or 'as the model has it'}",
        "folder": ", ".join(str(each) for each in (profile.cwd, *profile.roots)),
        "sandbox": f"{profile.sandbox}, approval {profile.approval}, mode {profile.mode}",
        "tokens": used,
        "thread": thread.id,
        "file": str(path) if path is not None and path.exists() else "none yet",
    }
    chat.screen.say("\n".join(f"{name:8} {value}" for name, value in rows.items()), wraps=False)


async def _compact(chat: ChatConversation, argument: str) -> None:
    chat.compact()


async def _undo(chat: ChatConversation, argument: str) -> None:
    await _go(chat, redo=False)


async def _redo(chat: ChatConversation, argument: str) -> None:
    await _go(chat, redo=True)


async def _go(chat: ChatConversation, *, redo: bool) -> None:
    done = await chat.thread.undo(redo=redo)
    signs = {"changed": "M", "removed": "D", "recreated": "A"}
    lines = [f"{sign} {path}" for name, sign in signs.items() for path in done[name]]
    lines += [f"  {left['path']} was left alone: {left['reason']}" for left in done["left_alone"]]
    count = sum(len(done[name]) for name in signs)
    chat.screen.say(
        "\n".join([*lines, f"{count} path(s) went {'forward' if redo else 'back'} in {done['tree']}."]), wraps=False
    )


async def _fork(chat: ChatConversation, argument: str) -> None:
    old = chat.thread
    if old.path is None or not old.path.exists():
        raise BadInput("Nothing was said yet.", hint="There is nothing to make a copy of.")
    made = await chat.book.sessions.fork(str(old.path))
    thread = await chat.book.resume(made.path, **chat.wishes)
    thread.change(mode=old.profile.mode)
    await chat.go_on_in(thread)
    chat.screen.say(f"This is a copy now: {chat.thread.id}. The other one is {old.id}.")


async def _resume(chat: ChatConversation, argument: str) -> None:
    if argument:
        await _go_on(chat, argument)
        return
    from commonplace.sessions import index

    found = await index.own_threads(chat.book.state, Path(chat.wishes["cwd"]), _LISTED + 1)
    rows = [row for row in found if row.thread_id != chat.thread.id][:_LISTED]
    if not rows:
        raise BadInput("There is no other session in this folder.", hint="Give an id: /resume ID.")
    listed = [
        f"{row.updated_at[:16].replace('T', ' ')}  {output.one_line(row.title or '(nothing said)', 60)}" for row in rows
    ]

    def chosen(place: int) -> None:
        chat.enter(f"/resume {rows[place].thread_id}")

    chat.ask(questions.choice("Which session?", listed, chosen))


async def _go_on(chat: ChatConversation, name: str) -> None:
    if name == chat.thread.id:
        raise BadInput("This is that session.", hint="")
    wishes: dict[str, Any] = chat.wishes | {"mode": None}  # the other session has its own
    await chat.go_on_in(await chat.book.resume(name, **wishes))
    chat.screen.say(f"This is {chat.thread.id} now{_mode_note(chat)}.")
    _last(chat)


async def _memory(chat: ChatConversation, argument: str) -> None:
    thread = chat.thread
    if argument in ("on", "off"):
        await thread.set_memory("enabled" if argument == "on" else "disabled")
    elif argument:
        raise BadInput(f"/memory {argument} means nothing.", hint="Use /memory, /memory on or /memory off.")
    told = await chat.book.memory.prompt(folder=thread.profile.cwd, cites=True, count=False)
    others = sum(1 for left in told.left_out if left.reason == "other_project")
    room = len(told.left_out) - others
    learns = "is" if thread.memory_mode == "enabled" else "is not"
    chat.screen.say(
        f"The agent is told {len(told.included)} entries here ({told.tokens:,} tokens); {room} are left out, "
        f"{others} belong to other projects.\nThis session {learns} learned from."
    )


async def _agents(chat: ChatConversation, argument: str) -> None:
    found = chat.thread.agents
    if argument:
        await _look_into(chat, argument)
        return
    if not found:
        chat.screen.say("This session has no sub-agents.")
        return
    top = min(agent.depth for agent in found)
    names = [f"{'  ' * (agent.depth - top)}{_agent_name(agent)}" for agent in found]
    wide = max(map(len, names))
    lines: list[str] = []
    for name, agent in zip(names, found, strict=True):
        told = " · ".join(text for text in (_agent_status(agent.status), agent.task) if text)
        lines.append(f"{name.ljust(wide)}  {output.one_line(told, 100)}")
    chat.screen.say("\n".join([*lines, "/agents NAME shows what one said and did."]))


async def _look_into(chat: ChatConversation, name: str) -> None:
    """Show the thread of a sub-agent, named by its nickname or by the beginning of its id."""
    found = [each for each in chat.thread.agents if name.lower() in (each.thread_id, (each.nickname or "").lower())]
    found = found or [each for each in chat.thread.agents if each.thread_id.startswith(name.lower())]
    if len(found) != 1:
        raise BadInput(f"{name!r} names no single sub-agent.", hint="/agents lists them.")
    from commonplace.surfaces.cli.conversation import ConversationView

    (agent,) = found
    if agent.path is None or not agent.path.exists():
        raise BadInput(f"{_agent_name(agent)} has written nothing yet.", hint="/agents says what it does.")
    shown = await chat.book.sessions.show(str(agent.path), with_items=True)
    lines = ConversationView(shown, turn=None, full=False).lines()
    chat.screen.say("\n".join([f"{_agent_name(agent)}: {_agent_status(agent.status)}", *lines]), wraps=False)


def _agent_name(agent: AgentInfo) -> str:
    role = f" ({agent.role})" if agent.role else ""
    return f"{agent.nickname or agent.thread_id[-6:]}{role}"


def _agent_status(status: AgentStatus) -> str:
    words = status.kind.replace("_", " ")
    return f"{words}: {output.one_line(status.message, 80)}" if status.message else words


def agent_line(agent: Agent) -> str:
    """Return the line that says that a sub-agent is done."""
    return f"⑂ {agent.identity.nickname or agent.thread_id[-6:]} {_agent_status(agent.status)}"


def _setting(name: str) -> ChatCommand:
    """Return the command that shows a setting of the next turn, or takes another value for it."""
    command, takes, does = _SETTINGS[name]

    async def run(chat: ChatConversation, argument: str) -> None:
        if argument:
            chat.thread.change(**{name: argument})  # pyright: ignore[reportArgumentType]  # it is checked there
            if name not in ("mode", "cwd"):  # which another thread has for itself
                chat.wishes[name] = argument
            chat.screen.say(f"From the next turn on: {_value(chat, name)}.")
        else:
            chat.screen.say(f"{_value(chat, name)}; /{command} {takes.strip('[]')} takes another one.")

    return ChatCommand(run, takes, does)


_SETTINGS: Final = {
    "model": ("model", "[NAME]", "the model, or another one for later turns"),
    "mode": ("mode", "[NAME]", f"how the agent works: {', '.join(get_args(Mode))}"),
    "effort": ("effort", "[LEVEL]", "how hard the model thinks: low, medium, high, …"),
    "personality": ("personality", "[TONE]", f"the tone of answers: {', '.join(get_args(Tone))}"),
    "sandbox": ("sandbox", "[KIND]", f"what commands may do: {', '.join(get_args(Sandbox))}"),
    "approval": ("approval", "[WHEN]", f"when you are asked: {', '.join(get_args(Approval))}"),
    "cwd": ("cd", "[FOLDER]", "the folder to work in"),
}


def _value(chat: ChatConversation, name: str) -> str:
    if name == "model":
        return _model(chat)
    profile = chat.thread.profile
    value = profile.effective_effort if name == "effort" else getattr(profile, name)
    return str(value or "as the model has it")


async def _plan(chat: ChatConversation, argument: str) -> None:
    is_on = chat.thread.profile.mode == "plan"
    chat.thread.change(mode="default" if is_on else "plan")
    chat.screen.say(
        "Plan mode is off." if is_on else "Plan mode is on from the next turn: it plans and changes nothing."
    )


async def _queue(chat: ChatConversation, argument: str) -> None:
    if not argument:
        raise BadInput("There is nothing to keep.", hint="/queue WORDS are said when the agent is done.")
    chat.tell(argument, later=True)


async def _quit(chat: ChatConversation, argument: str) -> None:
    chat.screen.leave()


COMMANDS: Final = {
    "compact": ChatCommand(
        _compact, "", "shorten what the next request carries; the record keeps everything", waits=True
    ),
    "undo": ChatCommand(
        _undo, "", "put the files back as they were before the last turn that changed some", waits=True
    ),
    "redo": ChatCommand(_redo, "", "take the last /undo back", waits=True),
    "fork": ChatCommand(_fork, "", "go on in a copy of this session", waits=True),
    "resume": ChatCommand(
        _resume, "[ID]", "go on with another session; without an id, choose one of this folder", waits=True
    ),
    "memory": ChatCommand(_memory, "[on|off]", "what is remembered here; learn from this session or not"),
    "agents": ChatCommand(_agents, "[NAME]", "the sub-agents of this session; with a name, what one said and did"),
    "status": ChatCommand(_status, "", "model, folder, sandbox, tokens, thread and file"),
    **{_SETTINGS[name][0]: _setting(name) for name in _SETTINGS},
    "plan": ChatCommand(_plan, "", "plan mode on or off"),
    "queue": ChatCommand(_queue, "WORDS", "say this when the agent is done, instead of now"),
    "help": ChatCommand(_help, "", "this list"),
    "quit": ChatCommand(_quit, "", "leave, as Ctrl-D does"),
}
