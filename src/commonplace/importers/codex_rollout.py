"""A Codex session that stands in no Codex home (a checkpoint of Entire, say): its lines become our ledger's, unchanged.

Codex's own files are referred to where they are (`codex`); this is for copies that have no such place.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from commonplace.importers.converter import UNKNOWN_PARENT, Converted, ConvertedRecord, Payload, SessionHead
from commonplace.importers.sources import CODEX
from commonplace.protocol.rollout import Line, Origin
from commonplace.rollout import chain, reader


def convert(path: Path) -> Converted:
    """Yield the thread of a Codex session; see `converter`."""
    first, meta = chain.read_head(path)
    source: object = meta.source
    is_subagent = isinstance(source, dict) and "subagent" in source
    yield SessionHead(
        source=CODEX,
        thread_id=meta.id,
        session_id=meta.id,
        started=meta.timestamp or first.timestamp or "",
        path=str(path),
        cwd=meta.cwd,
        version=meta.cli_version,
        branch=meta.git.branch if meta.git else None,
        repository=(meta.git.repository_url or "") if meta.git else "",
        parent=meta.parent_thread_id or (UNKNOWN_PARENT if is_subagent else None),
        entrypoint=source if isinstance(source, str) else "",
        provider=meta.model_provider or "",
    )
    for number, record in enumerate(reader.forward(path)):
        if not isinstance(record, Line):
            yield record
        elif record.type != "session_meta":
            key = str(number)
            payload = Payload(record.type, msgspec.Raw(record.payload), Origin(id=key, offset=record.offset))
            yield ConvertedRecord(meta.id, key, record.timestamp or "", [payload])
