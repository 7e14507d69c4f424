"""How results look in a terminal."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import msgspec

from commonplace.importers.run import ImportOutcome
from commonplace.protocol.rollout import Skipped
from commonplace.sessions.imports import ImportReport
from commonplace.sessions.inspection import Context, Shown, Verified
from commonplace.state.threads import ThreadPage
from commonplace.surfaces.cli.output import columns, human_bytes, one_line, say

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


def threads(page: ThreadPage) -> None:
    """Print a page of threads."""
    if not page.threads:
        say("No threads here yet.")
        return
    rows = [
        (
            thread.thread_id,
            thread.updated_at[:16].replace("T", " "),
            "?" if thread.turns is None else str(thread.turns),
            one_line(thread.source, 12),
            one_line(thread.project, 36),
            thread.title or "(nothing said)",
        )
        for thread in page.threads
    ]
    columns(rows, ("thread", "updated (UTC)", "turns", "source", "project", "title"))
    if page.next_cursor:
        say(f"\nMore: --cursor '{page.next_cursor}'")


def thread(shown: Shown) -> None:
    """Print a thread."""
    say(f"thread   {shown.thread_id}\nfile     {shown.path}\nsource   {shown.source}\nproject  {shown.project}")
    say(f"\n{len(shown.user_texts)} thing(s) the person said:")
    for text in shown.user_texts:
        say(f"  › {one_line(text, 160)}")
    failed = Counter(call.name for call in shown.calls if not call.ok)
    called = Counter(call.name for call in shown.calls)
    say(f"\n{len(shown.calls)} call(s), {failed.total()} of them failed")
    for name, count in called.most_common():
        say(f"  {one_line(name, 60)} × {count}" + (f" ({failed[name]} failed)" if failed[name] else ""))
    for mark in shown.compactions:
        say(f"\ncompacted in turn {mark.turn} at {mark.time}{_retention_text(mark.score)}")
    for child in shown.sidechains:
        say(f"\nsub-agent {child.thread_id}")
    if shown.items is not None:
        say("\nItems:")
        for item in shown.items:
            say(f"  {item.turn:>4}  {_summary(msgspec.json.decode(item.item))}")
    _skipped(shown.skipped)


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


def _retention_text(score: Any) -> str:
    """Return what a compaction's score says, if it has one."""
    kept = cast("dict[str, Any]", score).get("r_p") if isinstance(score, dict) else None
    return f", {kept:.0%} of the names likely to be needed kept" if isinstance(kept, int | float) else ""


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
