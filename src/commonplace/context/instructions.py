"""AGENTS.md: the standing instructions of a person and of a project are found, ordered, bounded and reported.

First the global file of the home, then one file for each folder from the project's root down to the working directory,
so that what stands nearer comes later. Within a folder `AGENTS.override.md` comes before `AGENTS.md`, and that before
the names a person added. Project files share one budget of bytes; the global file is the person's own and only guarded
against absurd sizes. An untrusted project has no say.

Invariants: project files together never give more than the budget; every file that was used, cut or passed over is in
the receipt; reading follows the path as it was given (links in it are kept) and never blocks; a link that leads out of
the project is not followed; what the files say cannot end the block that they stand in; the same files give the same
bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from commonplace.context import regular_files
from commonplace.context.injected_messages import InjectedText, inert
from commonplace.context.notices import notice

NAMES: Final = ("AGENTS.override.md", "AGENTS.md")
ROOT_MARKERS: Final = (".git",)
PROJECT_BYTES: Final = 32 * 1024
"""The budget of all project files together, unless a setting changes it; the same as in Codex."""
GLOBAL_BYTES: Final = 2**20
"""Codex reads a global file of any size; this much is surely no accident."""
PROJECT_MARK: Final = "--- project-doc ---"
_BETWEEN: Final = "\n\n"

Trust = Literal["trusted", "untrusted"]


class InstructionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a person can set, by Codex's names."""

    project_doc_max_bytes: int = PROJECT_BYTES
    """Budget of all project files together; 0 turns them off."""
    project_doc_fallback_filenames: tuple[str, ...] = ()
    project_root_markers: tuple[str, ...] = ROOT_MARKERS
    """What makes a folder a project's root; none means that only the working directory is looked at."""
    child_agents_md: bool = False
    """Explain how far AGENTS.md files reach."""


class WorkEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment in which commands run. Without a verdict, its project is not treated as untrusted."""

    cwd: str
    id: str = "local"
    trust: Trust | None = None


class InstructionFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is part of the instructions."""

    path: str
    sha256: str
    """Of the bytes that were used."""
    bytes: int
    cut: int = 0
    """How many bytes at its end were left out."""
    place: str | None = None
    """The environment it belongs to; None for the global file."""
    target: str | None = None
    """Where a link led."""


class SkippedFile(msgspec.Struct, frozen=True):
    """A file that is not part of them: `blank`, `not_a_file`, `unreadable`, `missing`, `over_budget`, `untrusted`,
    `broken_link`, `outside` (a link out of the project) or `bad_name`."""

    path: str
    reason: str
    detail: str = ""


class InstructionReceipt(msgspec.Struct, frozen=True):
    """The files that the instructions came from, and those that were left out."""

    sources: tuple[InstructionFile, ...] = ()
    passed: tuple[SkippedFile, ...] = ()
    budget: int = PROJECT_BYTES
    used: int = 0
    """Bytes of project files, of the budget."""


class GlobalInstructions(msgspec.Struct, frozen=True):
    """A person's own instructions; they are read once, when a thread begins."""

    text: str = ""
    sources: tuple[InstructionFile, ...] = ()
    passed: tuple[SkippedFile, ...] = ()


class Instructions(msgspec.Struct, frozen=True):
    """What the model is told, and the receipt."""

    text: str = ""
    directory: str | None = None
    """The working directory, where exactly one environment contributes project files."""
    receipt: InstructionReceipt = InstructionReceipt()

    def snapshot(self) -> dict[str, Any]:
        """Return what is remembered of it: a text and a directory, each only if there is one."""
        found = {"directory": self.directory, "text": self.text or None}
        return {key: value for key, value in found.items() if value is not None}


def read_global(home: Path | str | None) -> GlobalInstructions:
    """Return the global instructions: the first file of the home that has something in it."""
    passed: list[SkippedFile] = []
    for path in [Path(home) / name for name in NAMES] if home is not None else []:
        found = regular_files.read(path, GLOBAL_BYTES)
        if isinstance(found, regular_files.ReadRefused):
            if found.reason != "missing":
                passed.append(SkippedFile(_shown(path), found.reason, found.detail))
            continue
        text = found.data.decode("utf-8", "replace").strip()
        if text:
            return GlobalInstructions(text, (_source(path, found, None),), tuple(passed))
        passed.append(SkippedFile(_shown(path), "blank"))
    return GlobalInstructions("", (), tuple(passed))


def discover(
    own: GlobalInstructions, places: Sequence[WorkEnvironment], settings: InstructionSettings | None = None
) -> Instructions:
    """Return the instructions that hold in these environments, the global ones first."""
    settings = settings or InstructionSettings()
    budget = max(0, settings.project_doc_max_bytes)
    search = _InstructionSearch(settings, budget)
    groups = [(place, texts) for place in places if (texts := search.texts(place))]
    speaks = settings.child_agents_md and budget > 0 and any(place.trust != "untrusted" for place in places)
    text = _joined(own.text, groups)
    if speaks:
        text = _BETWEEN.join(part for part in (text, notice("agents_scope")) if part)
    receipt = InstructionReceipt(
        (*own.sources, *search.sources), (*own.passed, *search.passed), budget, sum(s.bytes for s in search.sources)
    )
    return Instructions(text, _shown(_absolute(groups[0][0].cwd)) if len(groups) == 1 else None, receipt)


def _joined(own: str, groups: Sequence[tuple[WorkEnvironment, list[str]]]) -> str:
    """Put the texts together: a mark before one project's files, a label before each of several."""
    parts = [own] if own else []
    if len(groups) == 1:
        parts += [PROJECT_MARK] if own else []
        parts += groups[0][1]
    else:
        for place, texts in groups:
            parts += [f"for `{place.id}` with root {_shown(_absolute(place.cwd))}", *texts]
    return _BETWEEN.join(parts)


class _InstructionSearch:
    """One walk over all environments, which share a budget."""

    def __init__(self, settings: InstructionSettings, budget: int) -> None:
        self.sources: list[InstructionFile] = []
        self.passed: list[SkippedFile] = []
        self._left = budget
        self._on = budget > 0
        self._markers = settings.project_root_markers
        self._names = self._usable(settings.project_doc_fallback_filenames)

    def texts(self, place: WorkEnvironment) -> list[str]:
        """Return what the files of an environment say, root first."""
        if not self._on:
            return []
        cwd = _absolute(place.cwd)
        if place.trust == "untrusted":
            self._pass(cwd, "untrusted")
            return []
        project = folders(cwd, self._markers)
        found = (self._text(folder, place.id, project[0]) for folder in project)
        return [text for text in found if text is not None]

    def _text(self, folder: Path, place: str, root: Path) -> str | None:
        candidates = (folder / name for name in self._names)
        path = next((path for path in candidates if self._is_usable(path, root)), None)
        if path is None:
            return None
        found = regular_files.read(path, self._left)
        if isinstance(found, regular_files.ReadRefused):
            self._pass(path, found.reason, found.detail)
            return None
        if self._left == 0 and found.size:
            self._pass(path, "over_budget", f"{found.size} bytes")
            return None
        text = found.data.decode("utf-8", "replace")
        if not text.strip():
            self._pass(path, "blank")
            return None
        self._left -= len(found.data)
        self.sources.append(_source(path, found, place))
        return text

    def _pass(self, path: Path, reason: str, detail: str = "") -> None:
        self.passed.append(SkippedFile(_shown(path), reason, detail))

    def _is_usable(self, path: Path, root: Path) -> bool:
        if regular_files.is_regular(path):
            if not regular_files.leaves(path, root):
                return True
            self._pass(path, "outside", _shown(Path(os.path.realpath(path))))
            return False
        if regular_files.exists(path):
            self._pass(path, "not_a_file")
        elif regular_files.link_target(path) is not None:
            self._pass(path, "broken_link")
        return False

    def _usable(self, more: Sequence[str]) -> tuple[str, ...]:
        """Return the names to look for; one that leads out of its folder is passed over."""
        names: list[str] = list(NAMES)
        for name in more:
            if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
                self._pass(Path(name), "bad_name")
            elif name and name not in names:
                names.append(name)
        return tuple(names)


def folders(cwd: Path | str, markers: Sequence[str]) -> list[Path]:
    """Return the folders from the project's root down to the working directory; that one alone if there is no root."""
    here = _absolute(cwd)
    above = [here, *here.parents]
    for index, folder in enumerate(above):
        if any(marker and regular_files.exists(folder / marker, held=False) for marker in markers):
            return above[index::-1]
    return [here]


def _absolute(path: Path | str) -> Path:
    """Make a path absolute by its words alone, so that links in it stay."""
    return Path(os.path.normpath(Path(path).absolute()))


def _shown(path: Path) -> str:
    """Return a path as text; bytes that are no UTF-8 are replaced, since they could not be sent or written down."""
    return os.fsencode(path).decode("utf-8", "replace")


def _source(path: Path, prefix: regular_files.FilePrefix, place: str | None) -> InstructionFile:
    target = regular_files.link_target(path)
    return InstructionFile(
        path=_shown(path),
        sha256=hashlib.sha256(prefix.data).hexdigest(),
        bytes=len(prefix.data),
        cut=prefix.size - len(prefix.data),
        place=place,
        target=None if target is None else _shown(target),
    )


def block(text: str, directory: str | None) -> InjectedText:
    """Return instructions in the form that every reader of the format recognises."""
    where = f" for {directory}" if directory else ""
    text = inert(text)
    return InjectedText(
        "user", f"# AGENTS.md instructions{where}\n\n<INSTRUCTIONS>\n{text}\n</INSTRUCTIONS>", "agents_md.instructions"
    )


def replacement_block(text: str, directory: str | None) -> InjectedText:
    """Return instructions that stand in for all earlier ones."""
    return block(f"{notice('agents_replaced')}{_BETWEEN}{text}", directory)


def removal_notice() -> InjectedText:
    """Return the word that earlier instructions no longer hold."""
    return block(notice("agents_removed"), None)
