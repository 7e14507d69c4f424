"""`commonplace exec` runs one turn without a terminal: it parses arguments, calls the library and prints.

With `--json` stdout carries the JSON lines of `exec_lines` and nothing else; without it, progress goes to stderr and
the answer to stdout. The options are those of `codex exec`, so that a program which drives Codex can drive this.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
import msgspec

from commonplace.errors import BadInput
from commonplace.surfaces.cli import output

if TYPE_CHECKING:
    from commonplace.agent import events
    from commonplace.agent.thread import Thread
    from commonplace.app.book import Book

MODES = ("read-only", "workspace-write", "danger-full-access")
WAYS = ("default", "plan", "execute", "pair_programming")
_SUB = ("resume", "fork")
_CLIENT = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE"
"""The variable in which Codex's SDKs say who they are."""


class ExecRequest(msgspec.Struct, kw_only=True):
    """The parsed command line of `exec`."""

    action: str = "start"
    thread: str | None = None
    prompt: str | None = None
    piped: str = ""
    from_stdin: bool = False
    json: bool = False
    output: Path | None = None
    schema: Path | None = None
    images: list[Path] = []
    cwd: Path = Path()
    everywhere: bool = False
    anywhere: bool = False
    """The folder need not be in a git repository."""
    wishes: dict[str, Any] = {}


@click.command("exec", context_settings={"ignore_unknown_options": False})
@click.argument("words", nargs=-1, metavar="[PROMPT | - | resume [ID | --last] [PROMPT] | fork ID [PROMPT]]")
@click.option("--json", "--experimental-json", "as_json", is_flag=True, help="Print events as JSON lines.")
@click.option("-C", "--cd", "cwd", type=click.Path(path_type=Path), default=Path(), help="The folder to work in.")
@click.option("-m", "--model", help="provider:model, or a known model's name.")
@click.option("-s", "--sandbox", type=click.Choice(MODES), help="What commands may do. [default: a setting]")
@click.option("--mode", type=click.Choice(WAYS), help="How the agent works; plan changes nothing. [default: a setting]")
@click.option("--add-dir", "roots", type=click.Path(path_type=Path), multiple=True, help="Another folder of the work.")
@click.option("-i", "--image", "images", multiple=True, help="A picture (or several, with commas between).")
@click.option("--output-schema", "schema", type=click.Path(path_type=Path), help="JSON schema that the answer follows.")
@click.option("-o", "--output-last-message", "file", type=click.Path(path_type=Path), help="Write the answer here.")
@click.option("--ephemeral", is_flag=True, help="Leave no file of the session.")
@click.option("-c", "--config", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting, for this run.")
@click.option("-p", "--profile", metavar="NAME", help="Use the settings of [profiles.NAME] in config.toml.")
@click.option("--last", is_flag=True, help="resume: the newest session of this folder.")
@click.option("--all", "everywhere", is_flag=True, help="With --last: of any folder.")
@click.option("--full-auto", is_flag=True, help="Short for --sandbox workspace-write.")
@click.option("--dangerously-bypass-approvals-and-sandbox", "--yolo", "bypass", is_flag=True, hidden=True)
@click.option("--skip-git-repo-check", is_flag=True, help="Work in a folder that is in no git repository, too.")
@click.option("--thread-source", default="user", hidden=True)
@click.option("--cyber-access-program", hidden=True)  # a client of Codex passes it
def command(words: tuple[str, ...], pairs: tuple[str, ...], profile: str | None, **options: Any) -> int:
    """Run an agent on one prompt, without a terminal.

    The prompt is the argument, all of stdin (with - or nothing), or both: then stdin is added to it. `exec resume`
    goes on with a session, `exec fork` with a copy of one.
    """
    from commonplace.app import config_overrides

    given = config_overrides.parse(pairs)
    for note in given.notes():
        output.warn(note)
    if options["cyber_access_program"] is not None:
        output.warn("--cyber-access-program means nothing here and is let be.")
    asked = _asked(words, options)
    asked.wishes["model"] = given.model(asked.wishes["model"])
    asked.from_stdin = asked.prompt in (None, "-")
    asked.prompt, asked.piped = _prompt(asked.prompt)

    async def inside() -> int:
        from commonplace.app import book as books

        async with books.open(
            flags=given.flags, providers=given.providers, profile=profile or given.profile, warn=output.warn
        ) as book:
            return await _run(book, asked)

    return anyio.run(inside)


def _asked(words: tuple[str, ...], options: dict[str, Any]) -> ExecRequest:
    """Return what the words and options mean (raises click.UsageError)."""
    sandbox = options["sandbox"] or ("workspace-write" if options["full_auto"] else None)
    asked = ExecRequest(
        json=options["as_json"],
        output=options["file"],
        schema=options["schema"],
        images=[Path(part) for value in options["images"] for part in value.split(",") if part],
        cwd=options["cwd"],
        everywhere=options["everywhere"],
        anywhere=options["skip_git_repo_check"] or options["bypass"],
        wishes={
            "cwd": options["cwd"],
            "model": options["model"],
            "roots": tuple(options["roots"]),
            "sandbox": "danger-full-access" if options["bypass"] else sandbox,
            "approval": "never",
            "mode": options["mode"],
            "ephemeral": options["ephemeral"],
            "thread_source": options["thread_source"],
            "originator": os.environ.get(_CLIENT) or "commonplace",
        },
    )
    rest = list(words)
    if rest and rest[0] in _SUB:
        asked.action = rest.pop(0)
        if not options["last"]:
            if not rest:
                raise click.UsageError(f"exec {asked.action} needs a session: its id, or --last.")
            asked.thread = rest.pop(0)
    elif options["last"]:
        raise click.UsageError("--last belongs to `exec resume`.")
    if len(rest) > 1:
        raise click.UsageError("Give one prompt; put it in quotes.")
    asked.prompt = rest[0] if rest else None
    return asked


def _prompt(given: str | None) -> tuple[str, str]:
    """Return the prompt, which is the argument or else standard input, and what was piped in beside an argument.

    Raises:
        BadInput: there is none.
    """
    written = None if given == "-" else given
    if sys.stdin is None or sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] (None: it is closed)
        if written is not None:
            return written, ""
        raise BadInput("There is no prompt.", hint='Write it behind the command: commonplace exec "…".')
    try:
        piped = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("Standard input is not UTF-8.", hint="Send text.") from None
    return (piped, "") if written is None else (written, piped)


async def _run(book: Book, request: ExecRequest) -> int:
    from commonplace.agent import events, folder_trust
    from commonplace.agent import user_input as inputs

    if not request.anywhere:
        folder_trust.check_repository(book.settings, request.cwd)
    given = inputs.text(
        request.prompt or "", request.images, _schema(request.schema), request.piped, from_stdin=request.from_stdin
    )
    _check_output(request.output)
    thread = await _thread(book, request)
    shown = _OutputGuard(_JsonOut() if request.json else _TextOut())
    shown.opening(thread)
    stop = thread.listen(shown.take)
    book.tasks.start_soon(_signals, thread)
    book.tasks.start_soon(shown.watch, thread)
    end = await thread.turn(given)
    stop()  # what still runs in the background is ended, and its end belongs to no turn
    shown.closing(end)
    if not isinstance(end, events.TurnCompleted):
        return 1
    if request.output is not None:
        await anyio.Path(request.output).write_text(end.message or "", "utf-8")
    return 0


def _check_output(path: Path | None) -> None:
    """Say before the work that its answer could not be written (raises BadInput)."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise BadInput(f"{path} cannot be written.", hint="Give a file in a folder that exists.")


async def _thread(book: Book, request: ExecRequest) -> Thread:
    if request.action == "start":
        return await book.start(**request.wishes)
    if request.wishes["ephemeral"]:
        raise BadInput("A session that is gone on with is written to.", hint="Leave --ephemeral out.")
    name = request.thread or await _newest(book, request)
    if request.action == "fork":
        await book.check(**request.wishes)
        name = (await book.sessions.fork(name)).thread_id
    return await book.resume(name, **request.wishes)


async def _newest(book: Book, request: ExecRequest) -> str:
    """Return the newest session of ours, in this folder or in any."""
    from commonplace.sessions import index

    return (await index.newest_thread(book.state, None if request.everywhere else request.cwd)).thread_id


async def _signals(thread: Thread) -> None:
    """Interrupt the turn when we are asked to end; the second time the system ends us."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            break
    await thread.interrupt()


def _schema(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", hint="Give a file with a JSON schema.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"{path} is no JSON object: {error}.", hint="Give a file with a JSON schema.") from None


class _OutputGuard:
    """Passes events to the output until writing fails; then it interrupts the turn, because nobody reads any more."""

    def __init__(self, out: _JsonOut | _TextOut) -> None:
        self._out = out
        self._failed = anyio.Event()
        self._error: OSError | None = None

    def opening(self, thread: Thread) -> None:
        self._out.opening(thread)

    def take(self, event: events.Event) -> None:
        if self._error is None:
            try:
                self._out.take(event)
            except OSError as error:  # a pipe whose reader went away, a full disk
                self._error = error
                self._failed.set()

    async def watch(self, thread: Thread) -> None:
        """Interrupt the turn when nothing can be shown any more."""
        await self._failed.wait()
        await thread.interrupt()

    def closing(self, end: events.End) -> None:
        """Show the end (raises OSError: something could not be shown)."""
        if self._error is not None:
            raise self._error
        self._out.closing(end)


class _JsonOut:
    """Writes events as lines, each at once."""

    def __init__(self) -> None:
        from commonplace.surfaces.cli.exec_lines import EventLines

        self._lines = EventLines()

    def opening(self, thread: Thread) -> None:
        output.print_json(self._lines.opening(thread.id))

    def take(self, event: events.Event) -> None:
        for line in self._lines.of(event):
            output.print_json(line)

    def closing(self, end: events.End) -> None:
        """Do nothing: every event was written as it came."""


class _TextOut:
    """Tells a person what happens on stderr, and the answer on stdout."""

    def opening(self, thread: Thread) -> None:
        choice, mode = thread.session.profile.choice, thread.session.profile.mode
        self._say(f"session {thread.id}\nmodel   {choice.name}:{choice.slug}")
        if mode != "default":
            self._say(f"mode    {mode}")

    def take(self, event: events.Event) -> None:
        from commonplace.agent import events as kinds
        from commonplace.surfaces.cli.exec_text import event_lines

        if isinstance(
            event, kinds.ItemCompleted | kinds.ItemStarted | kinds.ItemUpdated | kinds.Warned | kinds.Retrying
        ):
            for line in event_lines(event):
                self._say(line)

    def closing(self, end: events.End) -> None:
        from commonplace.agent import events as kinds

        if isinstance(end, kinds.TurnFailed):
            output.warn(end.error.sentence())
        elif isinstance(end, kinds.TurnAborted):
            output.warn("The turn was interrupted.")
        elif end.message:
            output.say(end.message)
        if end.info is not None:
            total = end.info.total_token_usage
            self._say(
                f"tokens  {total.input_tokens} in ({total.cached_input_tokens} cached), {total.output_tokens} out"
            )
        sys.stdout.flush()

    def _say(self, text: str) -> None:
        sys.stderr.write(output.safe(text) + "\n")
        sys.stderr.flush()
