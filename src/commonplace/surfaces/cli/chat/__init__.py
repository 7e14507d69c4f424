"""`commonplace chat` is a conversation with an agent in a terminal: it parses arguments, calls the library and draws.

    conversation    turns what a person types into turns, text for the running turn, answers and commands
    commands        the commands that begin with a slash
    questions       approval questions that a person answers
    event_view      prints the events of a turn, and redraws what is still in progress
    markdown        splits streamed Markdown into finished blocks and the rest, and draws it for a terminal
    screen          the terminal: an input line at the bottom, everything else printed above it

Modules that are slow to import are imported when a conversation begins.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
import msgspec

from commonplace.app import book as books
from commonplace.errors import BadInput
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.exec import MODES, WAYS

if TYPE_CHECKING:
    from commonplace.agent.thread import Thread
    from commonplace.app.book import Book

ASKING = ("untrusted", "on-request", "never")
_SUB = ("resume", "fork")


class ChatRequest(msgspec.Struct, kw_only=True):
    """The parsed command line of `chat`."""

    action: str = "start"
    thread: str | None = None
    wishes: dict[str, Any] = {}


@click.command("chat")
@click.argument("words", nargs=-1, metavar="[resume [ID] | fork ID]")
@click.option("-C", "--cd", "cwd", type=click.Path(path_type=Path), default=Path(), help="The folder to work in.")
@click.option("-m", "--model", help="provider:model, or a known model's name.")
@click.option("-s", "--sandbox", type=click.Choice(MODES), help="What commands may do. [default: workspace-write]")
@click.option("-a", "--approval", type=click.Choice(ASKING), help="When you are asked. [default: on-request]")
@click.option("--mode", type=click.Choice(WAYS), help="How the agent works; plan changes nothing. [default: a setting]")
@click.option("--add-dir", "roots", type=click.Path(path_type=Path), multiple=True, help="Another folder of the work.")
@click.option("-c", "--config", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting, for this run.")
@click.option("-p", "--profile", metavar="NAME", help="Use the settings of [profiles.NAME] in config.toml.")
def command(words: tuple[str, ...], pairs: tuple[str, ...], profile: str | None, **options: Any) -> int:
    """Talk to an agent in the terminal.

    `chat resume` goes on with a session (without an id: the newest of this folder), `chat fork` with a copy of one.
    Enter sends, Alt-Enter or Ctrl-J begins a new line, Ctrl-C stops the agent, Ctrl-D leaves; /help tells the rest.
    """
    from commonplace.app import config_overrides

    asked = _asked(words, options)
    _check_terminal()
    given = config_overrides.parse(pairs)
    for note in given.notes():
        output.warn(note)
    asked.wishes["model"] = given.model(asked.wishes["model"])
    warnings = Warnings()

    async def inside() -> int:
        async with books.open(
            flags=given.flags, providers=given.providers, profile=profile or given.profile, warn=warnings
        ) as book:
            return await _talk(book, asked, warnings)

    return anyio.run(inside)


class Warnings:
    """Passes warnings on: to standard error, and to the screen once there is one."""

    def __init__(self) -> None:
        self.to = output.warn

    def __call__(self, text: str) -> None:
        """Pass one on."""
        self.to(text)


def _asked(words: tuple[str, ...], options: dict[str, Any]) -> ChatRequest:
    """Return what the words and options mean (raises click.UsageError)."""
    asked = ChatRequest(wishes={name: options[name] for name in ("cwd", "model", "sandbox", "approval", "mode")})
    asked.wishes |= {"roots": tuple(options["roots"]), "source": "cli"}
    rest = list(words)
    if rest:
        asked.action = rest.pop(0)
        if asked.action not in _SUB:
            raise click.UsageError(f"There is no `chat {asked.action}`; use resume or fork, or type it once it runs.")
        asked.thread = rest.pop(0) if rest else None
    if asked.action == "fork" and asked.thread is None:
        raise click.UsageError("chat fork needs a session: its id.")
    if rest:
        raise click.UsageError("Give one session.")
    return asked


def _check_terminal() -> None:
    """Say if there is nobody to talk to (raises BadInput)."""
    streams = (sys.stdin, sys.stdout)
    # A stream is None where it was closed before we began.
    is_terminal = all(stream is not None and stream.isatty() for stream in streams)  # pyright: ignore[reportUnnecessaryComparison]
    if not is_terminal or os.environ.get("TERM") == "dumb":
        raise BadInput("chat needs a terminal.", hint='Use `commonplace exec "…"` without one.')


async def _talk(book: Book, request: ChatRequest, warnings: Warnings) -> int:
    if book.settings.sources["sandbox"] == "default":  # somebody is there to be asked, so that more may be done
        request.wishes["sandbox"] = request.wishes["sandbox"] or "workspace-write"
    thread = await _thread(book, request)
    from commonplace.surfaces.cli.chat.conversation import Conversation
    from commonplace.surfaces.cli.chat.screen import Screen

    screen = Screen(book.home / "chat_history")
    warnings.to = screen.warn
    conversation = Conversation(book, thread, request.wishes, screen)
    try:
        await conversation.run()
    finally:
        warnings.to = output.warn
    return 0 if screen.was_left else 1


async def _thread(book: Book, request: ChatRequest) -> Thread:
    """Open the thread that is talked in."""
    if request.action == "start":
        return await book.start(**request.wishes)
    from commonplace.sessions import index

    name = request.thread or (await index.newest_thread(book.state, Path(request.wishes["cwd"]))).thread_id
    if request.action == "fork":
        await book.check(**request.wishes)
        name = (await book.sessions.fork(name)).thread_id
    return await book.resume(name, **request.wishes)
