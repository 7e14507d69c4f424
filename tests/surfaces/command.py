"""Running the command line inside the test: exit code, stdout, stderr and the JSON document."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from commonplace.surfaces.cli.root import run


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


class Command:
    """Calls the program as `main` does."""

    def __init__(self, capture: pytest.CaptureFixture[bytes]) -> None:
        self._capture = capture

    def __call__(self, *arguments: object) -> Ran:
        self._capture.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = self._capture.readouterr()
        return Ran(code, out.decode(), err.decode())

    def ok(self, *arguments: object) -> Any:
        """Run with `--json`; it must succeed; return the document."""
        ran = self(*arguments, "--json")
        assert ran.code == 0, ran.err
        assert ran.err == ""
        return ran.json

    def refused(self, code: str, *arguments: object) -> str:
        """Run with `--json`; it must fail with this error and one sentence; return that."""
        ran = self(*arguments, "--json")
        assert ran.code == 1
        error = ran.json["error"]
        assert error["code"] == code
        assert set(error) == {"code", "message", "hint"}
        assert ran.err == f"commonplace: {error['message']} {error['hint']}\n"
        assert "Traceback" not in ran.err
        return str(error["message"])
