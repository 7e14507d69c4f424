"""The one exception tree.

    CommonplaceError
    ├── BadInput                what was asked for is wrong; nothing was changed
    │   ├── NotASession         a file that holds no session
    │   ├── UnknownThread       a name, id or path that names nothing
    │   ├── AmbiguousThread     a prefix or name that names several
    │   ├── ForeignFile         a change to a file that another program owns
    │   ├── EntryOutdated       an entry of the memory that somebody else changed meanwhile
    │   ├── BadSetting          a setting outside its range, or a config file that cannot be read
    │   └── ToolError           a memory tool was called wrongly, or what it was to read cannot be read
    ├── LedgerError             the session files
    │   ├── WriteFailed         a barrier could not make everything durable; items stay queued
    │   ├── ThreadBusy          another writer has the thread
    │   ├── ParentMissing       a fork whose parent file is not there
    │   ├── ThreadInUse         forks still refer to the thread
    │   ├── BlobDamaged         a spilled payload is missing or not what its name says
    │   └── StoreUnavailable    the store that ledgers are kept in cannot be used now
    ├── StateError              the database
    │   ├── DatabaseBusy        another process holds the write lock for too long
    │   └── DatabaseNewer       written by a newer program; opened read-only
    ├── WorkspaceError          the memory folder
    │   ├── MemoryInvalid       what a consolidator wrote cannot be used; the memory is as it was
    │   ├── WorkspaceBusy       another process is making a new state of it
    │   └── WorkspaceChanged    somebody saved a file there while a new state was being made
    ├── UndoError               the snapshots of working trees
    │   ├── UnknownSnapshot     no snapshot has this id
    │   ├── IncompleteSnapshot  it stopped at a bound, so there is no whole tree to go back to
    │   └── DamagedSnapshot     the contents of some files are gone
    ├── AppServerError          an app server refused a request (`rpc_code`), or is gone
    ├── WindowTooSmall          a window that cannot hold a request and anything about the work
    ├── NoProgress              a turn compacts again and again and does nothing new
    ├── ExtractionFailed        a model gave no answer about a session that can be used
    ├── ConsolidationFailed     a model could not put the memory together
    ├── BudgetSpent             a limit on what may be spent on models is reached
    └── ModelError              a model's server; `retryable` says whether the same request may succeed later
        ├── ContextTooLong      the request does not fit the model's window
        ├── QuotaExceeded       the account has nothing left
        ├── NotAuthorised       the key is missing, wrong or not good for this model
        ├── RequestRefused      the server will not answer this request, now or later
        ├── RateLimited         too many requests or tokens in a short time
        ├── ModelUnavailable    the server cannot be reached, is overloaded or failed
        ├── StreamBroken        an answer ended in the middle, or nothing came for too long
        └── BadAnswer           an answer that does not follow its API

Every error carries `code` (stable, for `--json`), a sentence, a `hint` that says what to do next, and its data as
attributes. Catch `CommonplaceError` at a surface; catch a leaf only to act on its data.
"""

from __future__ import annotations

from typing import ClassVar


class CommonplaceError(Exception):
    """Something went wrong that a person can act on."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "", **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def sentence(self) -> str:
        """Return the message and what to do next as one line of text."""
        return f"{self.message} {self.hint}".strip()


class BadInput(CommonplaceError):
    """What was asked for is wrong; nothing was changed."""

    code = "bad_input"


class NotASession(BadInput):
    """The file holds no session."""

    code = "not_a_session"


class UnknownThread(BadInput):
    """No thread has this id, name or path."""

    code = "unknown_thread"


class AmbiguousThread(BadInput):
    """Several threads match."""

    code = "ambiguous_thread"


class ForeignFile(BadInput):
    """The file belongs to another program and is never changed."""

    code = "foreign_file"


class EntryOutdated(BadInput):
    """The entry is not what it was when the change was thought of; nothing was changed."""

    code = "entry_outdated"


class BadSetting(BadInput):
    """A setting cannot be used."""

    code = "bad_setting"


class ToolError(BadInput):
    """A memory tool cannot do what it was asked; the model is told why and the turn goes on."""

    code = "tool_error"

    def __init__(self, kind: str, message: str, *, hint: str = "", **data: object) -> None:
        super().__init__(message, hint=hint, kind=kind, **data)
        self.kind = kind


class LedgerError(CommonplaceError):
    """A session file could not be read or written."""

    code = "ledger_error"


class WriteFailed(LedgerError):
    """A barrier could not write everything; what is missing stays queued."""

    code = "write_failed"


class ThreadBusy(LedgerError):
    """Another writer has this thread open."""

    code = "thread_busy"


class ParentMissing(LedgerError):
    """A fork refers to a parent file that is not there."""

    code = "parent_missing"


class ThreadInUse(LedgerError):
    """Forks refer to this thread."""

    code = "thread_in_use"


class BlobDamaged(LedgerError):
    """A spilled payload is missing or damaged."""

    code = "blob_damaged"


class StoreUnavailable(LedgerError):
    """The store that ledgers are kept in cannot be reached, or refuses."""

    code = "store_unavailable"


class StateError(CommonplaceError):
    """The database could not be used."""

    code = "state_error"


class DatabaseBusy(StateError):
    """Another process holds the database's write lock."""

    code = "database_busy"


class DatabaseNewer(StateError):
    """The database was written by a newer program."""

    code = "database_newer"


class WorkspaceError(CommonplaceError):
    """The memory folder could not be used."""

    code = "workspace_error"


class MemoryInvalid(WorkspaceError):
    """What a consolidator wrote cannot be used; the memory is as it was."""

    code = "memory_invalid"


class WorkspaceBusy(WorkspaceError):
    """Another process is making a new state of the memory folder."""

    code = "workspace_busy"


class WorkspaceChanged(WorkspaceError):
    """Somebody changed the memory folder while a new state of it was being made; begin anew from what is there."""

    code = "workspace_changed"


class UndoError(CommonplaceError):
    """A snapshot could not be taken, read or restored."""

    code = "undo_error"


class UnknownSnapshot(UndoError):
    """No snapshot has this id; it may have been pruned."""

    code = "unknown_snapshot"


class IncompleteSnapshot(UndoError):
    """The snapshot stopped at a bound, so there is no whole tree to go back to."""

    code = "incomplete_snapshot"


class DamagedSnapshot(UndoError):
    """The contents of some files are gone from the store or from the repository that they were borrowed from."""

    code = "damaged_snapshot"


class ModelError(CommonplaceError):
    """A model's server did not give an answer that can be used."""

    code = "model_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None, **data: object) -> None:
        super().__init__(message, hint=hint, retry_after=retry_after, **data)
        self.retry_after = retry_after
        """Seconds that the server asks to wait, where it says so."""


class ContextTooLong(ModelError):
    """The request does not fit the model's context window."""

    code = "context_too_long"


class QuotaExceeded(ModelError):
    """The account has no credit or quota left."""

    code = "quota_exceeded"


class NotAuthorised(ModelError):
    """The server does not accept the key, or not for this model."""

    code = "not_authorised"


class RequestRefused(ModelError):
    """The server will not answer this request, however often it is sent."""

    code = "request_refused"


class RateLimited(ModelError):
    """Too much was asked in a short time."""

    code = "rate_limited"
    retryable = True


class ModelUnavailable(ModelError):
    """The server cannot be reached, is overloaded or failed."""

    code = "model_unavailable"
    retryable = True


class StreamBroken(ModelError):
    """The answer ended before it was complete."""

    code = "stream_broken"
    retryable = True


class BadAnswer(ModelError):
    """The answer does not follow the API that the provider is said to speak."""

    code = "bad_answer"
    retryable = True


class AppServerError(CommonplaceError):
    """An app server refused a request, or is gone."""

    code = "app_server_error"

    def __init__(self, message: str, *, hint: str = "", rpc_code: int | None = None, rpc_data: object = None) -> None:
        super().__init__(message, hint=hint, rpc_code=rpc_code, rpc_data=rpc_data)
        self.rpc_code = rpc_code
        """The code of the answer; None if there was none."""
        self.rpc_data = rpc_data


class WindowTooSmall(CommonplaceError):
    """The target is too small for any compaction."""

    code = "window_too_small"


class NoProgress(CommonplaceError):
    """A turn compacts again and again and does nothing new."""

    code = "no_progress"


class ExtractionFailed(CommonplaceError):
    """A model gave no answer about a session that can be used."""

    code = "extraction_failed"


class ConsolidationFailed(CommonplaceError):
    """A model could not put the memory together."""

    code = "consolidation_failed"


class BudgetSpent(CommonplaceError):
    """A limit on what may be spent on models is reached; what waits is as good as before."""

    code = "budget_spent"

    def __init__(self, message: str, *, hint: str = "", limit: str, **data: object) -> None:
        super().__init__(message, hint=hint, limit=limit, **data)
        self.limit = limit
        """Which limit: `run` or `day`."""
