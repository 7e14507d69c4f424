"""Entire checkpoints: sessions of several agents that a repository keeps on its branch `entire/checkpoints/v1`.

A checkpoint is a folder with `metadata.json` and the agent's own file as `full.jsonl`, in pieces (`full.jsonl.001`, …)
where it is long. A session has a checkpoint for each of its commits, each with the whole session up to there: the
longest counts. The branch is read from the repository's objects, without a checkout, in every place that has it (the
local branch and those of remotes). A copy of a repository may lack transcripts (`git clone --filter`): a session that
has no other is reported, and so is one whose later checkpoint is not there.

A session is named by a path below the repository (`REPO/entire/checkpoints/v1/SESSION`); no such file exists. It is
converted by the importer of its agent and belongs to that agent: where it is imported from there too, it is one
session, and the agent's own file counts. Its repository is the one that keeps it, wherever a teammate had it.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.errors import BadInput, NotASession
from commonplace.importers import codex_rollout, sources
from commonplace.importers.converter import Converted, SessionHead
from commonplace.importers.json_lines import MAX_DOCUMENT_BYTES, TOO_LONG, UNKNOWN_TYPE, is_whole
from commonplace.importers.json_values import time_of, word_of
from commonplace.patterns import regex
from commonplace.protocol import ids
from commonplace.protocol.rollout import Skipped

SOURCE: Final = "entire"
_BRANCH: Final = "entire/checkpoints/v1"
_TRANSCRIPT: Final = "full.jsonl"
_MAX_BYTES: Final = 4 * MAX_DOCUMENT_BYTES
"""Longest transcript that is taken out of a repository."""
_DATED: Final = regex(r"^\d{4}-\d\d-\d\d-")
"""What early versions put in front of an agent's id: the day of the checkpoint."""
_NOT_HERE: Final = "later_checkpoint_not_here"
"""Why the end of a session is missing: this copy of the repository has only an earlier checkpoint."""
_ABSENT: Final = "REDACTED"
"""What Entire writes in place of an id that it takes for a secret."""


class _Metadata(msgspec.Struct, gc=False):
    session_id: msgspec.Raw = msgspec.Raw()
    created_at: msgspec.Raw = msgspec.Raw()
    branch: msgspec.Raw = msgspec.Raw()


class _Checkpoint(msgspec.Struct, frozen=True):
    """The longest checkpoint of a session; without blobs if this copy of the repository has none of them."""

    blobs: tuple[str, ...]
    size: int
    created: str
    branch: str
    is_cut: bool = False
    """Whether this copy lacks a later checkpoint."""


def find(path: Path) -> Iterator[Path]:
    """Yield the sessions of a repository, bare or not.

    Raises:
        BadInput: it is no repository, or has no such branch.
    """
    if _BRANCH in str(path):
        yield path
        return
    repository = _opened(path)
    tips = _tips(repository)
    if not tips:
        raise BadInput(f"{path} has no branch {_BRANCH}.", hint="Fetch it: git fetch origin " + _BRANCH)
    for key in _checkpoints(str(repository.path), tips):
        yield path / _BRANCH / key


def stamp(path: Path) -> tuple[int, int]:
    """Return the size of a session and when its checkpoint was made, in ns (raises OSError)."""
    checkpoint = _checkpoint(path)[1]
    moment = ids.parse_time(checkpoint.created)
    return checkpoint.size, int(moment.timestamp() * 1000) * 1_000_000 if moment is not None else 0


def convert(path: Path) -> Converted:
    """Yield the threads of a session, as its agent's importer does; see `converter`."""
    repository, checkpoint = _checkpoint(path)
    if not checkpoint.blobs:
        raise NotASession(
            f"{_root(path)} names the session {path.name}, and this copy of it lacks its transcript.",
            hint="Fetch the whole branch: git fetch --refetch --no-filter origin " + _BRANCH,
            path=str(path),
        )
    if checkpoint.is_cut:
        yield Skipped(0, 0, _NOT_HERE)
    if checkpoint.size > _MAX_BYTES:
        yield Skipped(0, checkpoint.size, TOO_LONG)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, _TRANSCRIPT)
        with file.open("wb") as target:
            for blob in checkpoint.blobs:
                target.write(repository[blob].data)
        agent = sources.detect(file)
        if agent is None:
            yield Skipped(0, checkpoint.size, UNKNOWN_TYPE)
            return
        if agent == "gemini" and not _has_lines(file):
            file = file.rename(file.with_name("session-full.json"))  # the old form: one document
        remote = _remote(repository)
        convert_file = codex_rollout.convert if agent == sources.CODEX else sources.converter(agent)
        for piece in convert_file(file):
            yield _kept(piece, path, checkpoint, remote) if isinstance(piece, SessionHead) else piece


def _has_lines(file: Path) -> bool:
    """Say whether the first line of a file is a record by itself."""
    with file.open("rb") as lines:
        return is_whole(lines.readline(MAX_DOCUMENT_BYTES))


def _kept(head: SessionHead, path: Path, checkpoint: _Checkpoint, remote: str) -> SessionHead:
    """Return the head of a session that a repository keeps."""
    return msgspec.structs.replace(
        head,
        path=str(path),
        via=SOURCE,
        branch=head.branch or checkpoint.branch or None,
        repository=remote or head.repository,
        made_from=head.made_from or str(_root(path)),
    )


def _root(path: Path) -> Path:
    """Return the repository that a session's path stands below."""
    return path.parents[len(Path(_BRANCH).parts)]


def _opened(path: Path) -> Any:
    import pygit2  # heavy: most commands open no repository

    try:
        return pygit2.Repository(str(path))
    except (pygit2.GitError, KeyError):
        raise BadInput(
            f"{path} is no git repository.", hint="Name a repository that Entire keeps sessions in."
        ) from None


def _tips(repository: Any) -> tuple[str, ...]:
    """Return the commits of the branch, here and in remotes."""
    names = [name for name in repository.references if name.startswith("refs/") and name.endswith("/" + _BRANCH)]
    return tuple(str(repository.references[name].peel().id) for name in sorted(names))


def _remote(repository: Any) -> str:
    return next((str(each.url) for each in repository.remotes if each.name == "origin" and each.url), "")


def _checkpoint(path: Path) -> tuple[Any, _Checkpoint]:
    try:
        repository = _opened(_root(path))
    except BadInput as error:
        raise NotASession(error.sentence(), hint="Check the path.", path=str(path)) from error
    known = _checkpoints(str(repository.path), _tips(repository)).get(path.name)
    if known is None:
        raise NotASession(f"{_root(path)} keeps no session {path.name}.", hint="Check the id.", path=str(path))
    return repository, known


@functools.lru_cache(maxsize=4)
def _checkpoints(git: str, tips: tuple[str, ...]) -> dict[str, _Checkpoint]:
    """Return the longest checkpoint of each session; commits never change, so that the answer is kept."""
    repository = _opened(Path(git))
    longest: dict[str, _Checkpoint] = {}
    for tip in tips:
        for folder, key in _folders(repository, repository[tip].tree, ""):
            checkpoint = _read(repository, folder)
            name = _name(repository, folder) or key
            known = longest.get(name)
            longest[name] = checkpoint if known is None else _longer(known, checkpoint)
    return dict(sorted(longest.items(), key=lambda pair: (pair[1].created, pair[0])))


def _longer(one: _Checkpoint, two: _Checkpoint) -> _Checkpoint:
    """Return the longer of two checkpoints of a session."""
    less, more = sorted((one, two), key=lambda each: (each.size, each.created))
    is_later_lacking = (not less.blobs or less.is_cut) and less.created > more.created
    return msgspec.structs.replace(more, is_cut=bool(more.blobs) and (more.is_cut or is_later_lacking))


def _folders(repository: Any, tree: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yield the folders that hold a transcript, and a name for each."""
    if _TRANSCRIPT in tree:
        yield tree, path
    for entry in tree:
        if entry.type_str == "tree":
            yield from _folders(repository, entry, f"{path}-{entry.name}" if path else entry.name)


def _read(repository: Any, folder: Any) -> _Checkpoint:
    """Return a checkpoint; without blobs if this copy of the repository lacks its transcript."""
    names = sorted(entry.name for entry in folder if entry.name == _TRANSCRIPT or _is_piece(entry.name))
    blobs = [str(folder[name].id) for name in names]
    if not all(blob in repository for blob in blobs):
        blobs = []
    size = sum(repository.odb.read_header(blob)[1] for blob in blobs)
    noted = _metadata(repository, folder)
    return _Checkpoint(tuple(blobs), size, time_of(noted.created_at), word_of(noted.branch))


def _is_piece(name: str) -> bool:
    return name.startswith(_TRANSCRIPT + ".") and name.removeprefix(_TRANSCRIPT + ".").isdecimal()


def _metadata(repository: Any, folder: Any) -> _Metadata:
    try:
        return msgspec.json.decode(repository[folder["metadata.json"].id].data, type=_Metadata)
    except (KeyError, msgspec.DecodeError, RecursionError):
        return _Metadata()


def _name(repository: Any, folder: Any) -> str:
    """Return the id of a checkpoint's session, where that is known and can be part of a path."""
    name = _DATED.sub("", word_of(_metadata(repository, folder).session_id))
    return "" if name == _ABSENT or "/" in name or name in (".", "..") else name
