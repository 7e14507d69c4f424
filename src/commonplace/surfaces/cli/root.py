"""The root command: knows the names of all commands, loads the one that was asked for, and prints errors.

An error is one sentence on stderr; with `--json` it is also a document on stdout. Nothing that a user can do gives a
traceback.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys

import click

from commonplace.errors import CommonplaceError
from commonplace.surfaces.cli import output
from commonplace.surfaces.cli.command_group import CommandGroup

COMMANDS = {
    "setup": (
        "commonplace.surfaces.cli.setup",
        "Tell your agents about the memory; --undo takes it back.",
    ),
    "learn": ("commonplace.surfaces.cli.learn", "Learn from the sessions that your agents left on this machine."),
    "exec": ("commonplace.surfaces.cli.exec", "Run an agent on one prompt, without a terminal."),
    "chat": ("commonplace.surfaces.cli.chat", "Talk to an agent in the terminal."),
    "sessions": (
        "commonplace.surfaces.cli.sessions",
        "List, show, search, fork, import and verify sessions.",
    ),
    "demo": ("commonplace.surfaces.cli.demo", "Show what Commonplace does, on sample sessions in a throw-away home."),
    "memory": ("commonplace.surfaces.cli.memory", "List, search and change what was learned."),
    "web": (
        "commonplace.surfaces.cli.web",
        "Show what is remembered, where it came from, and change it, in your browser.",
    ),
    "projects": ("commonplace.surfaces.cli.projects", "List projects, and decide which folders belong together."),
    "mcp": ("commonplace.surfaces.cli.mcp", "Serve the memory to other agents (MCP)."),
    "app-server": (
        "commonplace.surfaces.cli.app_server",
        "Serve editors and SDKs that speak the protocol of Codex's app server.",
    ),
    "acp": ("commonplace.surfaces.cli.acp", "Be the agent of an editor: Zed, JetBrains, Neovim."),
    "plugin": ("commonplace.surfaces.cli.plugin", "Write a plugin for Codex and Claude Code into a folder."),
    "redact": ("commonplace.surfaces.cli.redact", "Take secrets out of text: stdin to stdout."),
    "worker": ("commonplace.surfaces.cli.worker", "Import and learn repeatedly, alone or beside other workers."),
    "doctor": (
        "commonplace.surfaces.cli.doctor",
        "Check files, database and jobs against each other; --repair rebuilds rows.",
    ),
    "config": ("commonplace.surfaces.cli.config", "Show and change the settings."),
    "completion": ("commonplace.surfaces.cli.completion", "Print a script that completes commands in your shell."),
}
"""Name → module (with a click command called `command`) and one line of help, so that --help loads none of them."""


_RESUMED = (("learn",), ("setup",), ("worker",), ("memory", "run"), ("sessions", "import"), ("sessions", "reindex"))
"""Commands that go on where they were stopped."""


class LazyGroup(CommandGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module that a command lives in."""
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(COMMANDS[cmd_name][0]).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="commonplace", message="commonplace %(version)s")
@click.option("-c", "--config", "pairs", multiple=True, hidden=True)
@click.pass_context
def root(context: click.Context, pairs: tuple[str, ...]) -> None:
    """Give coding agents a durable past."""
    if pairs and context.invoked_subcommand != "app-server":  # Codex's SDKs put settings before this one
        raise click.UsageError("--config belongs behind the command.")
    context.obj = pairs


def run(arguments: list[str]) -> int:
    """Run one command line; return the exit code."""
    _encode_anything()
    as_json = "--json" in arguments or "--experimental-json" in arguments
    try:
        result = root.main(args=arguments, prog_name="commonplace", standalone_mode=False)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as wrong:
        wrong.show()
        if as_json:
            output.print_error("usage", wrong.format_message(), "Run the command with --help.")
        return wrong.exit_code
    except CommonplaceError as error:
        return fail(error.code, error.message, error.hint, as_json=as_json)
    except (KeyboardInterrupt, click.Abort) as stopped:
        return _stopped(arguments, is_answer=isinstance(stopped, click.Abort) and stopped.__cause__ is None)
    except BrokenPipeError:
        return _closed_pipe()
    except OSError as error:
        reason = error.strerror or str(error)
        place = f"{error.filename}: " if error.filename else ""
        return fail("io_error", f"{place}{reason}.", "Check the disk and its permissions.", as_json=as_json)
    except UnicodeEncodeError:
        hint = "Rename the file or folder to a name that is valid text."
        return fail("bad_name", "A file or folder has a name that is not text.", hint, as_json=as_json)
    except MemoryError:
        return fail("out_of_memory", "There is not enough memory for this.", "Close other programs.", as_json=as_json)
    return result if isinstance(result, int) else 0


def _encode_anything() -> None:
    """Print a question mark for what the terminal's encoding has no character for, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="replace")


def _stopped(arguments: list[str], *, is_answer: bool) -> int:
    """Say what is left after a person said no, or pressed Ctrl-C."""
    if is_answer:
        output.warn("Nothing was changed.")
    elif any(tuple(arguments[: len(words)]) == words for words in _RESUMED):
        output.warn("Stopped. What was done so far is kept; run the command again to go on.")
    return 128 + signal.SIGINT


def fail(code: str, message: str, hint: str, *, as_json: bool) -> int:
    """Print an error and return the exit code for it."""
    sys.stderr.write(output.safe(f"commonplace: {message} {hint}".rstrip()) + "\n")
    if as_json:
        output.print_error(code, message, hint)
    return 1


def _closed_pipe() -> int:
    """End quietly, as other tools do: the reader of our output went away (`| head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
