"""`commonplace redact`: a filter that removes secrets from text."""

from __future__ import annotations

import os
import select
import sys
from typing import Final

import click

PIECE: Final = 256 * 1024


@click.command("redact")
@click.option("--report", is_flag=True, help="Say on stderr how many secrets of which kind were replaced.")
def command(report: bool) -> int:
    """Take secrets out of text: stdin to stdout.

    Tokens, keys, passwords and private key blocks become [REDACTED_SECRET]; everything else passes byte for byte, and
    JSON stays JSON. Works on streams of any length in bounded memory: complete lines are printed as soon as input
    pauses, except inside of a key block.
    """
    from commonplace.redact import Redactor

    source, sink = sys.stdin.fileno(), sys.stdout.buffer
    redactor = Redactor()
    while data := os.read(source, PIECE):
        sink.write(redactor.feed(data))
        if not _has_more(source):
            sink.write(redactor.flush())
            sink.flush()
    sink.write(redactor.close())
    sink.flush()
    if report:
        for kind, count in sorted(redactor.counts.items(), key=lambda one: (-one[1], one[0])):
            sys.stderr.write(f"{count:>7}  {kind}\n")
    return 0


def _has_more(source: int) -> bool:
    """Say whether more input can be read without waiting."""
    return bool(select.select([source], [], [], 0)[0])
