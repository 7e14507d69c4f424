"""Codex's files, referred to in place: which are new or went on since the last import, and what their answers cite.

A file is known by its rollout, not by its path: Codex moves files to its archive and compresses them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from commonplace.importers import session_citations
from commonplace.importers.run import ImportedBatch, ImportOutcome
from commonplace.importers.sources import CODEX
from commonplace.rollout import layout, reader
from commonplace.rollout.layout import FoundFile
from commonplace.state.import_files import ImportedFile


def count_files(
    outcome: ImportOutcome,
    files: Iterable[FoundFile],
    listed: Container[str],
    rows: Mapping[str, ImportedFile],
    *,
    citing: bool,
) -> ImportedBatch:
    """Count new, continued and unchanged files, and return the rows to note; `citing` says that there is a memory to
    cite.
    """
    before: dict[str, ImportedFile] = {}
    for row in rows.values():
        if row.source == CODEX and row.reason is None:
            key = _key(row.path)
            before[key] = max(row, before.get(key, row), key=_counted)
    noted = ImportedBatch()
    for file in files:
        outcome.found += 1
        row = before.get(_key(file.name))
        if file.name not in listed:
            left_out = rows.get(file.name)
            outcome.leave_out((left_out.reason if left_out else None) or "not_a_session")
            continue
        if row is None:
            outcome.imported += 1
        elif (row.size, row.mtime_ns) == (file.size, file.mtime_ns):
            outcome.unchanged += 1
            if row.path == file.name:
                continue
        else:
            outcome.updated += 1
        start = _counted(row) if row is not None else 0
        found, end = session_citations.citations_since(file.path, start) if citing else ([], _end(file))
        noted.rows.append(ImportedFile(file.name, CODEX, file.size, file.mtime_ns, ledger_size=end))
        noted.cited.extend(found)
    return noted


def _end(file: FoundFile) -> int:
    """Return how far a file counts as looked at when there was nothing that it could cite."""
    return 0 if reader.is_compressed(file.path) else file.size


def _counted(row: ImportedFile) -> int:
    """Return up to which byte a file's citations were counted."""
    return row.ledger_size or 0


def _key(path: str) -> str:
    named = layout.parse_name(Path(path).name)
    return named.rollout_id if named is not None else path
