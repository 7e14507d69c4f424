"""Commonplace gives coding agents a durable past.

    async with commonplace.open() as book:
        page = await book.sessions.list(limit=10)
        context = await book.sessions.context(page.threads[0].thread_id)

    Book            what `open` gives: `sessions`, `memory`, `projects`, `search`, `start`, `resume`, `why`, `settings`
    Sessions        threads: list, show, context, verify, fork, compact, import, move, delete
    Memory          what was learned: learn, list, why, note, forget, pin, prompt, audit, status
    Projects        which folders are one project: list, merge, split
    Finder          ranked and exact search over both
    Thread          a thread with an agent: turns, and their events as a stream
    client          a client of an app server, with its typed calls
    events          what a turn tells; `models` and `scripted`: models, and one that follows a script

Every type that these take, return or raise is exported here. What is exported is public, documented (`docs/library.md`)
and tested; everything else may change. Importing this package only defines names; the parts load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.version import __version__

if TYPE_CHECKING:
    from commonplace import client, models
    from commonplace.agent import events
    from commonplace.agent.approvals.requests import Decision
    from commonplace.agent.profile import GranularApproval
    from commonplace.agent.subagents.agent import AgentInfo
    from commonplace.agent.subagents.delegates import Delegate
    from commonplace.agent.subagents.status import AgentStatus
    from commonplace.agent.thread import Thread
    from commonplace.agent.turn_changes import TurnChanges
    from commonplace.agent.user_input import ExternalText, Input, UserInput
    from commonplace.app.book import Book, open  # noqa: A004 (the name users write is commonplace.open)
    from commonplace.app.evaluation import CorpusFiles
    from commonplace.app.memory import Memory
    from commonplace.app.projects import Projects
    from commonplace.app.threads import OptionChanges, ThreadOptions
    from commonplace.config import (
        AgentSettings,
        Approval,
        CompactionSettings,
        MemorySettings,
        Mode,
        Sandbox,
        Settings,
        Tone,
    )
    from commonplace.context.additional import AdditionalContext
    from commonplace.context.digest.retention import Retention
    from commonplace.context.usage import TokenInfo, TokenUsage
    from commonplace.errors import (
        AmbiguousThread,
        AppServerError,
        BadAnswer,
        BadInput,
        BadSetting,
        BlobDamaged,
        BudgetSpent,
        CommonplaceError,
        ConsolidationFailed,
        ContextTooLong,
        DamagedSnapshot,
        DatabaseBusy,
        DatabaseNewer,
        EntryOutdated,
        ExtractionFailed,
        ForeignFile,
        IncompleteSnapshot,
        LedgerError,
        MemoryInvalid,
        ModelError,
        ModelUnavailable,
        NoProgress,
        NotASession,
        NotAuthorised,
        ParentMissing,
        QuotaExceeded,
        RateLimited,
        RequestRefused,
        StateError,
        StoreUnavailable,
        StreamBroken,
        ThreadBusy,
        ThreadInUse,
        ToolError,
        UndoError,
        UnknownSnapshot,
        UnknownThread,
        WindowTooSmall,
        WorkspaceBusy,
        WorkspaceChanged,
        WorkspaceError,
        WriteFailed,
    )
    from commonplace.importers.run import ImportOutcome
    from commonplace.learning.estimate import Forecast
    from commonplace.learning.extract.phase1 import FailedExtraction
    from commonplace.learning.learn import Consent, LearningPlan, LearningSteps
    from commonplace.learning.run import ConsolidationReport, LearningReport
    from commonplace.learning.status import Cost, FailedJob, HeldLease, Status
    from commonplace.learning.worker import WorkerState
    from commonplace.memory.audit import Audit, Finding
    from commonplace.memory.edits.edits import NoteRequest
    from commonplace.memory.edits.forget import Forgot
    from commonplace.memory.edits.history import EntryChange
    from commonplace.memory.edits.migration import KeptAside, Migrated
    from commonplace.memory.edits.review import Decided
    from commonplace.memory.evidence import Link
    from commonplace.memory.listing import EntryPage, Listed
    from commonplace.memory.recall.find import Finder
    from commonplace.memory.recall.section import LeftOutEntry, Prompt
    from commonplace.memory.recall.tools import Reading
    from commonplace.memory.recall.usage_counts import CitationReceipt, UnknownCitation
    from commonplace.memory.source_turn import TurnLine
    from commonplace.memory.why import Why
    from commonplace.models import Model, scripted
    from commonplace.models.scripted import ScriptedModel, ScriptError
    from commonplace.projects.listing import ListedProject
    from commonplace.protocol.citations import Citation, CitedEntry
    from commonplace.protocol.rollout import GitInfo, Skipped
    from commonplace.rollout.sidechains import Sidechain
    from commonplace.rollout.transcript import CompactionMark, TranscriptCall, TranscriptItem
    from commonplace.search.hits import Hit
    from commonplace.search.query import Query
    from commonplace.search.within import NamedThread
    from commonplace.sessions.compact import CompactionReport, CompactionRequest
    from commonplace.sessions.imports import ImportReport
    from commonplace.sessions.inspection import BlobCount, Context, ContextReceipt, Shown, Verified
    from commonplace.sessions.sessions import Forked, Sessions
    from commonplace.sessions.turn_list import StoredTurn, ThreadDescription
    from commonplace.state.thread_pages import ThreadPage, ThreadRow
    from commonplace.state.threads import Refreshed
    from commonplace.state.usage import Limits

__all__ = [
    "AdditionalContext",
    "AgentInfo",
    "AgentSettings",
    "AgentStatus",
    "AmbiguousThread",
    "AppServerError",
    "Approval",
    "Audit",
    "BadAnswer",
    "BadInput",
    "BadSetting",
    "BlobCount",
    "BlobDamaged",
    "Book",
    "BudgetSpent",
    "Citation",
    "CitationReceipt",
    "CitedEntry",
    "CommonplaceError",
    "CompactionMark",
    "CompactionReport",
    "CompactionRequest",
    "CompactionSettings",
    "Consent",
    "ConsolidationFailed",
    "ConsolidationReport",
    "Context",
    "ContextReceipt",
    "ContextTooLong",
    "CorpusFiles",
    "Cost",
    "DamagedSnapshot",
    "DatabaseBusy",
    "DatabaseNewer",
    "Decided",
    "Decision",
    "Delegate",
    "EntryChange",
    "EntryOutdated",
    "EntryPage",
    "ExternalText",
    "ExtractionFailed",
    "FailedExtraction",
    "FailedJob",
    "Finder",
    "Finding",
    "Forecast",
    "ForeignFile",
    "Forgot",
    "Forked",
    "GitInfo",
    "GranularApproval",
    "HeldLease",
    "Hit",
    "ImportOutcome",
    "ImportReport",
    "IncompleteSnapshot",
    "Input",
    "KeptAside",
    "LearningPlan",
    "LearningReport",
    "LearningSteps",
    "LedgerError",
    "LeftOutEntry",
    "Limits",
    "Link",
    "Listed",
    "ListedProject",
    "Memory",
    "MemoryInvalid",
    "MemorySettings",
    "Migrated",
    "Mode",
    "Model",
    "ModelError",
    "ModelUnavailable",
    "NamedThread",
    "NoProgress",
    "NotASession",
    "NotAuthorised",
    "NoteRequest",
    "OptionChanges",
    "ParentMissing",
    "Projects",
    "Prompt",
    "Query",
    "QuotaExceeded",
    "RateLimited",
    "Reading",
    "Refreshed",
    "RequestRefused",
    "Retention",
    "Sandbox",
    "ScriptError",
    "ScriptedModel",
    "Sessions",
    "Settings",
    "Shown",
    "Sidechain",
    "Skipped",
    "StateError",
    "Status",
    "StoreUnavailable",
    "StoredTurn",
    "StreamBroken",
    "Thread",
    "ThreadBusy",
    "ThreadDescription",
    "ThreadInUse",
    "ThreadOptions",
    "ThreadPage",
    "ThreadRow",
    "TokenInfo",
    "TokenUsage",
    "Tone",
    "ToolError",
    "TranscriptCall",
    "TranscriptItem",
    "TurnChanges",
    "TurnLine",
    "UndoError",
    "UnknownCitation",
    "UnknownSnapshot",
    "UnknownThread",
    "UserInput",
    "Verified",
    "Why",
    "WindowTooSmall",
    "WorkerState",
    "WorkspaceBusy",
    "WorkspaceChanged",
    "WorkspaceError",
    "WriteFailed",
    "__version__",
    "client",
    "events",
    "models",
    "open",
    "scripted",
]

_PLACES = {
    "agent.approvals.requests": "Decision",
    "agent.profile": "GranularApproval",
    "agent.subagents.agent": "AgentInfo",
    "agent.subagents.delegates": "Delegate",
    "agent.subagents.status": "AgentStatus",
    "agent.user_input": "ExternalText Input UserInput",
    "agent.thread": "Thread",
    "agent.turn_changes": "TurnChanges",
    "app.book": "Book open",
    "app.evaluation": "CorpusFiles",
    "app.memory": "Memory",
    "app.projects": "Projects",
    "app.threads": "OptionChanges ThreadOptions",
    "config": "AgentSettings Approval CompactionSettings MemorySettings Mode Sandbox Settings Tone",
    "context.additional": "AdditionalContext",
    "context.digest.retention": "Retention",
    "context.usage": "TokenInfo TokenUsage",
    "importers.run": "ImportOutcome",
    "learning.estimate": "Forecast",
    "learning.extract.phase1": "FailedExtraction",
    "learning.learn": "Consent LearningPlan LearningSteps",
    "learning.run": "ConsolidationReport LearningReport",
    "learning.worker": "WorkerState",
    "learning.status": "Cost FailedJob HeldLease Status",
    "memory.audit": "Audit Finding",
    "memory.edits.edits": "NoteRequest",
    "memory.edits.forget": "Forgot",
    "memory.edits.history": "EntryChange",
    "memory.edits.migration": "KeptAside Migrated",
    "memory.edits.review": "Decided",
    "memory.evidence": "Link",
    "memory.listing": "EntryPage Listed",
    "memory.recall.find": "Finder",
    "memory.recall.section": "LeftOutEntry Prompt",
    "memory.recall.tools": "Reading",
    "memory.recall.usage_counts": "CitationReceipt UnknownCitation",
    "memory.source_turn": "TurnLine",
    "memory.why": "Why",
    "models": "Model",
    "models.scripted": "ScriptError ScriptedModel",
    "projects.listing": "ListedProject",
    "protocol.citations": "Citation CitedEntry",
    "protocol.rollout": "GitInfo Skipped",
    "rollout.sidechains": "Sidechain",
    "rollout.transcript": "CompactionMark TranscriptCall TranscriptItem",
    "search.hits": "Hit",
    "search.query": "Query",
    "search.within": "NamedThread",
    "sessions.compact": "CompactionReport CompactionRequest",
    "sessions.imports": "ImportReport",
    "sessions.inspection": "BlobCount Context ContextReceipt Shown Verified",
    "sessions.sessions": "Forked Sessions",
    "sessions.turn_list": "StoredTurn ThreadDescription",
    "state.thread_pages": "ThreadPage ThreadRow",
    "state.threads": "Refreshed",
    "state.usage": "Limits",
}
"""The modules that the public names stand in; the others are errors."""
_MODULES = {"client": "client", "events": "agent.events", "models": "models", "scripted": "models.scripted"}

if not TYPE_CHECKING:  # a checker would take any name for granted

    def __getattr__(name: str) -> object:
        """Load a public name when it is first asked for (PEP 562)."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module 'commonplace' has no attribute {name!r}")
        places = (place for place, names in _PLACES.items() if name in names.split())
        module = _MODULES.get(name) or next(places, "errors")
        loaded = import_module(f"commonplace.{module}")
        found = loaded if name in _MODULES else getattr(loaded, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """Return the public names, whether they are loaded or not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
