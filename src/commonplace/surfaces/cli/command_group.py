"""A group of commands that answers a misspelt one with the nearest that there is."""

from __future__ import annotations

import click


class CommandGroup(click.Group):
    """A group that suggests a command for one that it does not have."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called (raises UsageError, with the nearest one)."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as unknown:
            from difflib import get_close_matches  # slow to import, and most people make no such mistake

            near = get_close_matches(args[0].lower(), self.list_commands(ctx), n=1) or self.others(ctx, args[0].lower())
            if not near:
                raise
            raise click.UsageError(f"{unknown.message} Did you mean {' or '.join(map(repr, near))}?", ctx) from None

    def others(self, ctx: click.Context, name: str) -> list[str]:
        """Return what else a name may mean: the options for help, or commands of groups below this one."""
        if name == "help":
            return ["--help"]
        groups = ((group, self.get_command(ctx, group)) for group in self.list_commands(ctx))
        return [
            f"{group} {name}" for group, found in groups if isinstance(found, click.Group) and name in found.commands
        ]
