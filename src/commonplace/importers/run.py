"""Importing the files of one source: which changed, what became of each, what was left out and why.

Runs on a thread, knows no database: what earlier imports noted comes in, what this one did goes out through `note`, a
few files at a time, so that an import that is stopped goes on where it was. Files are taken oldest first: a session
that continues another is read after it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import CommonplaceError, NotASession
from commonplace.importers import ledger_writer
from commonplace.importers.converter import Converter
from commonplace.importers.ledger_writer import LedgerDestination, SessionLeftOut, WrittenThread
from commonplace.importers.session_citations import CitingAnswer
from commonplace.protocol.rollout import Skipped
from commonplace.state.import_files import ImportedFile

_NOTED_AT_ONCE: Final = 200
"""How many files are noted in one transaction."""
_MAX_WARNINGS: Final = 50
"""How many warnings a report holds."""
Progress = Callable[[int, int], None]


def file_stamp(path: Path) -> tuple[int, int]:
    """Return the size of a file and when it was last written, in ns (raises OSError)."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


class ImportOutcome(msgspec.Struct):
    """What an import of one source did (an entry of the JSON of `sessions import`)."""

    source: str = msgspec.field(name="from")
    path: str
    found: int = 0
    imported: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0
    reasons: dict[str, int] = {}
    """Why files were left out, and how often."""
    lines_skipped: dict[str, int] = {}
    """Why records inside imported files could not be used, and how often."""

    def leave_out(self, reason: str) -> None:
        """Count a file that is left out."""
        self.skipped += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


class ImportedBatch(msgspec.Struct):
    """The rows and citations of some files, to be noted together."""

    rows: list[ImportedFile] = []
    cited: list[CitingAnswer] = []


class SourceImport:
    """The import of one source's files."""

    def __init__(
        self,
        outcome: ImportOutcome,
        convert: Converter,
        place: LedgerDestination,
        rows: Mapping[str, ImportedFile],
        sync: Callable[[], None] = os.sync,
        stamp: Callable[[Path], tuple[int, int]] = file_stamp,
    ) -> None:
        self.outcome = outcome
        self._sync = sync
        """Makes what was written survive a loss of power, before it is noted as done."""
        self._stamp = stamp
        """Returns a session's size and when it was last written."""
        self.warnings: list[str] = []
        self._convert = convert
        self._place = place
        self._known = rows

    def run(
        self,
        files: Iterable[Path],
        note: Callable[[ImportedBatch], None],
        progress: Progress | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Import the files that changed; stop after the current file if `is_stopped` says so."""
        stamped = sorted(self._stamps(files), key=lambda stamp: (stamp.mtime_ns, stamp.path))
        noted = ImportedBatch()
        for count, stamp in enumerate(stamped, 1):
            if is_stopped():
                break
            before = self._known.get(stamp.path)
            if before is not None and _is_unchanged(before, stamp):
                if before.reason is None:
                    self.outcome.unchanged += 1
                else:
                    self.outcome.leave_out(before.reason)
            else:
                try:
                    self._one(stamp, noted)
                except OSError:  # nothing can be written any more: what was done so far is done
                    self._note(noted, note)
                    raise
            if len(noted.rows) >= _NOTED_AT_ONCE:
                self._note(noted, note)
                noted = ImportedBatch()
            if progress is not None:
                progress(count, len(stamped))
        self._note(noted, note)

    def _stamps(self, files: Iterable[Path]) -> Iterator[ImportedFile]:
        for path in files:
            try:
                size, written = self._stamp(path)
                str(path).encode()
            except FileNotFoundError:
                continue
            except UnicodeEncodeError:
                name = str(path).encode(errors="replace").decode()
                self._failed("bad_name", f"{name} has a name that is not text.")
            except OSError as error:
                self._failed("unreadable", f"{path}: {error.strerror}.")
            else:
                yield ImportedFile(str(path), self.outcome.source, size, written)
            self.outcome.found += 1

    def _note(self, noted: ImportedBatch, note: Callable[[ImportedBatch], None]) -> None:
        if any(row.ledger for row in noted.rows):
            self._sync()
        if noted.rows:
            note(noted)

    def _one(self, stamp: ImportedFile, noted: ImportedBatch) -> None:
        """Import one file and count what became of it."""
        try:
            written, skipped = ledger_writer.write(Path(stamp.path), self._convert, self._place)
        except SessionLeftOut as reason:
            self.outcome.leave_out(str(reason))
            noted.rows.append(_changed_stamp(stamp, reason=str(reason)))
            return
        except NotASession as error:
            self._failed("unreadable", error.sentence())
            return
        except CommonplaceError as error:
            self._failed(error.code, error.sentence())
            return
        except OSError as error:
            if _is_at_home(error, self._place.home):
                raise
            self._failed("unreadable", f"{stamp.path}: {error.strerror}.")
            return
        for entry in skipped:
            self.outcome.lines_skipped[entry.reason] = self.outcome.lines_skipped.get(entry.reason, 0) + 1
        if not written:
            reason = _empty_reason(skipped)
            self.outcome.leave_out(reason)
            noted.rows.append(_changed_stamp(stamp, reason=reason))
            return
        self._count(written)
        noted.rows.append(_row(stamp, written))
        noted.cited.extend(answer for each in written for answer in each.cited)

    def _count(self, written: list[WrittenThread]) -> None:
        states = {each.status for each in written}
        if written[0].status == "imported":
            self.outcome.imported += 1
        elif states == {"unchanged"}:
            self.outcome.unchanged += 1
        else:
            self.outcome.updated += 1

    def _failed(self, reason: str, sentence: str) -> None:
        """Count a file that may go in another time."""
        self.outcome.leave_out(reason)
        if len(self.warnings) < _MAX_WARNINGS:
            self.warnings.append(sentence)


def _empty_reason(skipped: list[Skipped]) -> str:
    """Return why a file gave no thread."""
    return "not_a_session" if any(entry.reason != "torn" for entry in skipped) else "empty"


def _is_at_home(error: OSError, home: Path) -> bool:
    """Say whether it is our own home that cannot be written, so that the next file would fare no better."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return True
    return error.filename is not None and Path(str(error.filename)).is_relative_to(home)


def _is_unchanged(before: ImportedFile, stamp: ImportedFile) -> bool:
    """Say whether a file is as it was, and so is what it became: a ledger that was lost or cut is made again."""
    if (before.source, before.size, before.mtime_ns) != (stamp.source, stamp.size, stamp.mtime_ns):
        return False
    if before.reason is not None or before.ledger is None:
        return before.reason is not None
    try:
        return Path(before.ledger).stat().st_size >= (before.ledger_size or 0)
    except OSError:
        return False


def _row(stamp: ImportedFile, written: list[WrittenThread]) -> ImportedFile:
    first = written[0]
    return _changed_stamp(
        stamp,
        thread_id=first.head.thread_id,
        ledger=str(first.path),
        ledger_size=first.size,
        first_record=first.head.first_record or None,
        first_answer=first.head.first_answer or None,
    )


def _changed_stamp(stamp: ImportedFile, **changes: object) -> ImportedFile:
    return msgspec.structs.replace(stamp, **changes)
