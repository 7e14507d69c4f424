"""The entry point of the command line: it imports as little as possible before it knows the command."""

from __future__ import annotations

import atexit
import gc
import sys

_OBJECTS = 100_000
"""New objects between two collections: loading modules makes many that all stay."""


def main() -> None:
    """Run the program: exit 0 when it did what was asked, 1 when not, 2 for wrong usage."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from commonplace.version import __version__

        sys.stdout.write(f"commonplace {__version__}\n")
        return
    if sys.argv[1:3] == ["mcp", "hook"]:
        from commonplace.surfaces.cli import hooks

        if hooks.is_plain(sys.argv[3:]):
            hooks.answer(sys.argv[3], notes=len(sys.argv) > 4)
            return
    gc.set_threshold(_OBJECTS, 50, 50)
    atexit.register(gc.freeze)  # nothing is looked through once more before the process ends
    from commonplace.surfaces.cli.root import run

    sys.exit(run(sys.argv[1:]))
