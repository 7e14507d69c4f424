"""A memory folder of one's own, and a way to ask its tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commonplace.memory.recall.tools import MemoryFolder, call
from commonplace.memory.recall.visibility import Visibility

Ask = Callable[..., Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "home" / "memories"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def folder(root: Path) -> MemoryFolder:
    return MemoryFolder(root)


@pytest.fixture
def ask(folder: MemoryFolder) -> Ask:
    """Call a tool that sees everything; return what its JSON says."""

    def asked(name: str, **arguments: Any) -> Any:
        return msgspec.json.decode(msgspec.json.encode(call(folder, name, arguments, Visibility())))

    return asked
