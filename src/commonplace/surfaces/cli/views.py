"""How results look in a terminal."""

from __future__ import annotations

from typing import Any

import msgspec

from commonplace.importers.run import ImportOutcome
from commonplace.projects import paths
from commonplace.protocol.remotes import is_commit
from commonplace.protocol.rollout import Skipped
from commonplace.sessions.imports import ImportReport
from commonplace.sessions.inspection import Context, Verified
from commonplace.state.thread_pages import ThreadPage
from commonplace.surfaces.cli.output import columns, human_bytes, one_line, say, terminal_width

_NARROW = 70
"""Terminals below this many columns get three columns of the list."""
_SHORT_ID = 8
"""How many characters of an id are shown at least."""
REASONS = {
    "excluded": "excluded by memory.exclude",
    "deleted": "deleted here before",
    "copy": "a copy of a session that was imported from another file",
    "empty": "nothing was said in it",
    "not_a_session": "not a session",
    "taken": "another thread has its id",
    "unreadable": "cannot be read",
    "bad_name": "its name is not text",
}
"""What the reasons for leaving a file out mean."""


def threads(page: ThreadPage, *, is_other_home: bool = False, is_chosen: bool = False) -> None:
    """Print a page of threads; `is_chosen` says that options leave some out."""
    if not page.threads:
        say("No thread here is what the options ask for." if is_chosen else "No threads here yet.")
        if is_other_home:
            say("--home takes a home of Codex or of this program; `sessions import --path PATH` takes in others'.")
        return
    ids = short_ids([thread.thread_id for thread in page.threads])
    is_piped = not terminal_width(0)
    rows = [
        (
            thread.thread_id if is_piped else ids[thread.thread_id],
            thread.updated_at[:16].replace("T", " "),
            "?" if thread.turns is None else str(thread.turns),
            thread.source if is_piped else one_line(thread.source, 11),
            thread.project if is_piped else one_line(short_project(thread.project, thread.cwd), 14),
            thread.title or "(nothing said)",
        )
        for thread in page.threads
    ]
    if terminal_width(_NARROW) < _NARROW:  # the two that a person looks for: which, and what it was about
        rows = [(thread, when[5:10], title) for thread, when, _, _, _, title in rows]
        columns(rows, ("thread", "day", "title"))
    else:
        columns(rows, ("thread", "updated (UTC)", "turns", "source", "project", "title"))
    if page.next_cursor:
        say(f"\nMore: --cursor '{page.next_cursor}'")


def short_ids(threads: list[str]) -> dict[str, str]:
    """Return the beginning of each id by which a person may name it: 8 characters, more where two would be alike."""
    known = sorted(set(threads))
    short: dict[str, str] = {}
    for place, thread in enumerate(known):
        beside = known[max(place - 1, 0) : place] + known[place + 1 : place + 2]
        size = next(
            size for size in range(8, len(thread) + 2) if not any(each[:size] == thread[:size] for each in beside)
        )
        short[thread] = thread[:size]
    return short


def short_project(project: str, folder: str) -> str:
    """Return the last part of a project's identity; a repository without a remote is called by its folder."""
    if is_commit(project):
        return paths.title(folder)
    return project.rstrip("/\\").replace("\\", "/").rpartition("/")[2] or project


def imported_source(source: ImportOutcome) -> None:
    """Print in one line what was taken in from a source."""
    left = f", {source.skipped} left out" if source.skipped else ""
    counts = f"{source.imported} new, {source.updated} continued{left}"
    say(f"{source.source}: {source.found} session file(s) in {source.path} ({counts})")


def imported(report: ImportReport) -> None:
    """Print what an import did, and what it left out."""
    for source in report.sources:
        say(f"{source.source}: {source.found} session file(s) in {source.path}")
        counts = f"{source.imported} new, {source.updated} continued, {source.unchanged} unchanged"
        say(f"  {counts}, {source.skipped} left out")
        for reason, count in sorted(source.reasons.items()):
            say(f"    {count} × {REASONS.get(reason, reason)}")
        for reason, count in sorted(source.lines_skipped.items()):
            say(f"  {count} record(s) not usable: {reason}")
    for warning in report.warnings:
        say(f"warning: {warning}")


def context(result: Context) -> None:
    """Print what the model would get."""
    for item in result.items:
        say(_summary(msgspec.json.decode(item)))
    receipt = result.receipt
    where = (
        "the beginning" if receipt.checkpoint_offset is None else f"a checkpoint at byte {receipt.checkpoint_offset}"
    )
    say(
        f"\n{len(result.items)} items, window {result.window_number}, rebuilt from {where}; "
        f"{human_bytes(receipt.bytes_read)} read."
    )
    _skipped(receipt.skipped)


def verified(result: Verified) -> None:
    """Print whether a thread is sound."""
    blobs = result.blobs
    state = "sound" if result.ok else "damaged"
    say(
        f"{state}: {result.lines} lines, {len(result.skipped)} not usable; "
        f"{blobs.referenced} payloads, {blobs.missing} missing, {blobs.corrupt} corrupt"
    )
    _skipped(result.skipped)


def _skipped(entries: list[Skipped]) -> None:
    for entry in entries[:20]:
        say(f"not usable: {entry.bytes} bytes at {entry.offset} ({entry.reason})")
    if len(entries) > 20:
        say(f"… and {len(entries) - 20} more (--json lists them)")


def _summary(item: dict[str, Any]) -> str:
    """Return one line for an item."""
    kind = str(item.get("type"))
    if kind == "message":
        texts = [part.get("text") or f"[{part.get('type')}]" for part in item.get("content", [])]
        return one_line(f"{item.get('role')}: {' '.join(texts)}", 160)
    if "output" in item:
        output = item["output"]
        text = output if isinstance(output, str) else " ".join(str(part.get("text", part["type"])) for part in output)
        return "  → " + one_line(text, 156)
    if "arguments" in item or "input" in item:
        return "  " + one_line(f"{item.get('name', kind)} {item.get('arguments', item.get('input'))}", 158)
    return one_line(f"({kind})", 160)


def undone(result: dict[str, Any], *, dry_run: bool) -> None:
    """Tell what an undo changed, or would."""
    for name, sign in (("changed", "M"), ("removed", "D"), ("recreated", "A")):
        for path in result[name]:
            say(f"{sign} {path}")
    for left in result["left_alone"]:
        say(f"  {left['path']} was left alone: {left['reason']}")
    count = sum(len(result[name]) for name in ("changed", "removed", "recreated"))
    say(f"{count} path(s) {'would go' if dry_run else 'went'} back in {result['tree']}.")
