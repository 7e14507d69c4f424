"""A failure that nothing explains is cured by one command more or by another form of it, if no file was changed."""

from __future__ import annotations

import pytest
from command_views import used, view

from commonplace.learning.commands.calls import calls_of
from commonplace.learning.commands.plain_cures import PlainCure, plain_cure
from commonplace.learning.reading.session_view import ToolUse

RED = used("make up", 1, "boom")
FAILED = used("make up", 2, "boom again")


def cure(*uses: ToolUse | str, edits: tuple[int, ...] = ()) -> PlainCure | None:
    """Return what cured the first of some calls; each stands 100 bytes behind the one before."""
    calls = calls_of(view(*(used(use) if isinstance(use, str) else use for use in uses)))
    return plain_cure(0, calls, edits)


@pytest.mark.parametrize(
    ("uses", "text", "is_other_form"),
    [
        ([RED, "make seed", "make up"], "make seed", False),
        ([RED, "make seed && make up"], "make seed", False),
        ([RED, "sudo systemctl start nats", "make up"], "sudo systemctl start nats", False),
        ([RED, "make seed", "make graph", "make up"], "make graph", False),  # the last one counts
        ([RED, "ls", "cat Makefile", "make seed", "make up"], "make seed", False),  # looking is no step
        ([RED, "make seed", FAILED, "make graph", "make up"], "make graph", False),  # the first did not help
        ([RED, "TZ=UTC make up"], "TZ=UTC make up", True),
        ([RED, "make up --jobs 1"], "make up --jobs 1", True),
        ([used("kubectl get pods", 1), "kubectl --context stg get pods"], "kubectl --context stg get pods", True),
        ([RED, "sudo make up"], "sudo make up", True),
        ([RED, "mise exec -- make up"], "mise exec -- make up", True),
        ([used("pip install x", 1), "uv pip install x"], "uv pip install x", True),
        ([used("A=1 make up", 1), "A=1 B=2 make up"], "B=2 make up", True),
    ],
)
def test_a_failure_is_cured(uses: list[ToolUse | str], text: str, is_other_form: bool) -> None:
    found = cure(*uses)

    assert found is not None
    assert (text, is_other_form) == (found.text, found.is_other_form)


@pytest.mark.parametrize(
    "uses",
    [
        [RED],
        [RED, "make up"],  # a retry
        [RED, "make seed"],  # it was not run again
        [RED, "make seed", FAILED],
        [RED, FAILED, "make seed", FAILED, "make up"],  # nothing ran between the last failure and the success
        [RED, "ls", "which make", "make --version", "make up"],  # only looking
        [RED, "git pull", "make up"],  # git cures nothing
        [RED, "rm -rf build", "make up"],
        [RED, "npm test"],  # another command
        [RED, "make down"],
        [used("make up | tail -3", 1), "npm ci", "npm test"],
        [used("make a && make b", 1), "make seed", "make a && make b"],  # nobody knows which part failed
        [used("cat notes", 1), "make seed", "cat notes"],  # a look that failed
        [RED, *["make graph"] * 5, "make seed", "make up"],  # too late
        [RED, "node /tmp/mend.js", "make up"],  # for one time only
        [RED, "docker start 3f2a9c1b7d", "make up"],
        [used("make up", 0), "make seed", "make up"],
    ],
)
def test_other_runs_cure_nothing(uses: list[ToolUse | str]) -> None:
    assert cure(*uses) is None


@pytest.mark.parametrize(("edit", "is_cured"), [(50, False), (150, False), (250, True)])
def test_a_file_that_was_changed_before_the_success_explains_it(edit: int, is_cured: bool) -> None:
    assert is_cured == (cure(RED, "make seed", "make up", edits=(edit,)) is not None)


def test_a_cure_names_where_it_stands() -> None:
    found = cure(RED, "ls", "TZ=UTC make up")

    assert found is not None
    assert (1, 200, 250, "make up") == (found.place.turn, found.place.start, found.place.end, found.place.quote)
    assert "make up" == found.failed.text
