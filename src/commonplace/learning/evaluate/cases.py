"""Reading the gold set: cases with their labels, and the secrets in them made up when they are read."""

from __future__ import annotations

import gzip
import random
import re
import string
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace import package_files
from commonplace.errors import BadInput
from commonplace.patterns import regex

BUNDLED: Final = "near"
"""The set that is installed with the program; the others stand in `bench/gold/` of the repository."""
_SECRET: Final = regex(r"\{\{secret:(\w+)\}\}")
_ALNUM: Final = string.ascii_letters + string.digits


class WantedLesson(msgspec.Struct):
    """Something to be learned, or that may be."""

    kind: str
    all: list[str]
    any: list[str] = []
    task: int | None = None
    session: int | None = None
    scope: str | None = None
    superseded: bool = False
    support: int = 1
    """How many sessions teach it, in words of their own."""


class ExpectedLessons(msgspec.Struct):
    """What a reader must make of a case."""

    learn: list[WantedLesson] = []
    allow: list[WantedLesson] = []
    never: list[str] = []
    outcomes: list[str] = []
    processed: bool = True
    skills: list[list[str]] = []
    """For each skill, the texts that it must hold."""


class CaseSession(msgspec.Struct):
    """One session, event by event."""

    agent: str
    cwd: str
    events: list[dict[str, Any]]
    source: str = "cli"
    remote: str | None = None
    days_ago: float = 1


class Case(msgspec.Struct):
    """Sessions of one person, and what they teach."""

    id: str
    about: str
    sessions: list[CaseSession]
    expect: ExpectedLessons
    language: str = "en"


def bundled() -> list[Case]:
    """Return the cases of the set that is installed with the program."""
    return _cases((package_files.ROOT / f"learning/evaluate/{BUNDLED}.jsonl.gz").read_bytes())


def named(name: str) -> list[Case]:
    """Return the cases of the bundled set, or of a file (raises BadInput)."""
    return bundled() if name == BUNDLED else read(Path(name))


def read(path: Path) -> list[Case]:
    """Return the cases of a file, one JSON object a line, compressed or not; a case's secrets are always the same.

    Raises:
        BadInput: there is no such file, or it is no set of cases.
    """
    try:
        return _cases(path.read_bytes())
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", hint="Name `near`, or a file of cases.") from None
    except (ValueError, KeyError, TypeError, EOFError) as error:
        raise BadInput(f"{path} is no set of cases: {error}.", hint="bench/gold/README.md tells the format.") from None


def _cases(data: bytes) -> list[Case]:
    text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode("utf-8")
    return [_case(line) for line in text.split("\n") if line.strip()]


def sample(name: str, text: str) -> tuple[str, Case]:
    """Return the sessions of a sample file as a case without labels, and whose they are."""
    source = random.Random(name)  # noqa: S311 (made-up secrets, not real ones)
    made: dict[str, str] = {}
    filled = _SECRET.sub(lambda found: made.setdefault(found[0], _secret(found[1], source)), text)
    told = msgspec.json.decode(filled, type=_Sample)
    return told.person, Case(name, told.person, told.sessions, ExpectedLessons())


class _Sample(msgspec.Struct):
    person: str
    sessions: list[CaseSession]


def _case(line: str) -> Case:
    name = msgspec.json.decode(line, type=dict[str, Any])["id"]
    source = random.Random(name)  # noqa: S311 (made-up secrets, not real ones)
    made: dict[str, str] = {}

    def make(found: re.Match[str]) -> str:
        return made.setdefault(found[0], _secret(found[1], source))

    case = msgspec.json.decode(_SECRET.sub(make, line), type=Case)
    case.expect.never = [*case.expect.never, *made.values()]
    return case


def _secret(kind: str, source: random.Random) -> str:
    def some(alphabet: str, count: int) -> str:
        return "".join(source.choice(alphabet) for _ in range(count))

    match kind:
        case "github":
            return "ghp_" + some(_ALNUM, 36)
        case "openai":
            return "sk-proj-" + some(_ALNUM, 48)
        case "aws":
            return "AKIA" + some(string.ascii_uppercase + "234567", 16)
        case "jwt":
            return ".".join("eyJ" + some(_ALNUM, count) for count in (30, 60)) + "." + some(_ALNUM, 43)
        case _:
            return some(_ALNUM, 9) + source.choice("!$%&") + some(_ALNUM, 5)
