"""Rendering a digest as text: the person's messages first, then the state of the work, then names by file."""

from __future__ import annotations

import os.path
from collections import defaultdict
from typing import Final

from commonplace.context.digest.names import Kind
from commonplace.context.digest.packing import DigestContents
from commonplace.context.digest.tally import Tally

_OPEN: Final = "open"
_DONE: Final = "done"
_FEW: Final = 4
"""Fewer names of a file that is not shown itself stand among the others."""


def render(packed: DigestContents, tally: Tally) -> str:
    """Return the text of a digest."""
    parts: list[str] = []
    _add(parts, "## What the person said", [f"- {_flat(text)}" for _, text in packed.messages])
    _add(parts, "## What they laid down", [f"- {_flat(text)}" for text in packed.constraint_lines])
    _add(parts, "## Plan", [f"- [{_OPEN if is_open else _DONE}] {text}" for is_open, text in packed.plan])
    _add(parts, "## Last answers", packed.last)
    by_age = sorted(packed.lines, key=lambda line: line.step)
    _add(parts, "## Findings", [f"- {line.text}" for line in by_age if line.section == "findings"])
    _add(parts, "## Commands", [f"$ {line.text}" for line in by_age if line.section == "commands"])
    _add(parts, "## Failures seen", [f"! {line.text}" for line in by_age if line.section == "errors"])
    _add(parts, "## Files", _files(packed, tally))
    _add(parts, "## What happened last", packed.recent)
    return "\n".join(parts)


def _flat(text: str) -> str:
    return text.strip().replace("\n", "\n  ")


def _add(parts: list[str], heading: str, lines: list[str]) -> None:
    if lines:
        parts += [heading, *lines]


def _files(packed: DigestContents, tally: Tally) -> list[str]:
    """Return lines by file, then bare paths by folder, then whatever names are left."""
    known = tally.names.known
    lines: dict[int | None, list[str]] = defaultdict(list)
    for line in sorted((each for each in packed.lines if each.section == "files"), key=lambda each: each.step):
        lines[line.file].append(line.text)
    inside: dict[int | None, list[str]] = defaultdict(list)
    for number in packed.bare:
        if known[number].kind is not Kind.PATH:
            inside[tally.files.get(number)].append(known[number].text)
    bare = {number for number in packed.bare if known[number].kind is Kind.PATH}
    found: list[str] = []
    for file, own in lines.items():
        edits = tally.edit_counts.get(file, 0) if file is not None else 0
        marks = f" *{edits}" if edits else ""
        names = " ".join(inside.pop(file, ())) if file is not None else ""
        found.append(f"{known[file].text}{marks}: {names}".rstrip() if file is not None else "elsewhere:")
        found += [f"  {text}" for text in dict.fromkeys(own)]
    rest = inside.pop(None, [])
    named: set[int] = set()
    for file, own in inside.items():
        if file is None or (file not in bare and len(own) < _FEW):
            rest += own
            continue
        named.add(file)
        path = known[file].text
        found.append(f"{path if file in bare else f'({os.path.basename(path)})'}: {' '.join(own)}")  # noqa: PTH119
    shown = named | {file for file in lines if file is not None}
    paths = [known[number].text for number in packed.bare if number in bare and number not in shown]
    found += _by_folder(paths)
    if rest:
        found.append(f"also: {' '.join(rest)}")
    return found


def _by_folder(paths: list[str]) -> list[str]:
    folders: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        folders[os.path.dirname(path)].append(os.path.basename(path))  # noqa: PTH119, PTH120
    found: list[str] = []
    single: list[str] = []
    for folder, names in folders.items():
        if folder and len(names) > 1:
            found.append(f"{folder}/{{{','.join(names)}}}")
        else:
            single += [f"{folder}/{name}" if folder else name for name in names]
    return [*found, *([" ".join(single)] if single else [])]
