"""`commonplace completion SHELL`: prints the script that makes a shell complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from commonplace.surfaces.cli import output

PROGRAM = "commonplace"
VARIABLE = "_COMMONPLACE_COMPLETE"
"""How the script asks the program for completions."""


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(shell: str) -> None:
    """Print a script that completes commands in your shell.

    It completes options and their values, too.

    \b
    bash: eval "$(commonplace completion bash)"                     in ~/.bashrc
    zsh:  eval "$(commonplace completion zsh)"                      in ~/.zshrc
    fish: commonplace completion fish > ~/.config/fish/completions/commonplace.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None  # a choice above
    whole = click.get_current_context().find_root().command
    script = kind(whole, {}, PROGRAM, VARIABLE).source()
    # The script for fish would cut a description at its first comma.
    output.say(script.replace('(string split "," $completion)', '(string split --max 1 "," $completion)'))
