"""What a policy says on the wire, to the model and to whoever asks a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commonplace.agent.sandbox import (
    SandboxPolicy,
    SandboxSupport,
    confine,
    detect,
    detection,
    filesystem_profile,
    permissions,
    session_policy,
    unmet,
    wire,
)
from commonplace.agent.tools.processes import Launch
from commonplace.context import filesystem
from commonplace.errors import ToolError

CWD = Path("/repo/demo")
NONE = SandboxSupport(mechanism="none", detail="there is nothing.")
GOOD = SandboxSupport(mechanism="bubblewrap", network_off=True, spaces=True)
LEAKY = SandboxSupport(mechanism="bubblewrap", spaces=True, detail="sockets can be reached.")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (SandboxPolicy(mode="danger-full-access", cwd=CWD), {"type": "danger-full-access"}),
        (SandboxPolicy(mode="read-only", cwd=CWD), {"type": "read-only"}),
        (SandboxPolicy(mode="read-only", cwd=CWD, network=True), {"type": "read-only", "network_access": True}),
        (
            SandboxPolicy(mode="workspace-write", cwd=CWD),
            {
                "type": "workspace-write",
                "network_access": False,
                "exclude_tmpdir_env_var": False,
                "exclude_slash_tmp": False,
            },
        ),
        (
            SandboxPolicy(
                mode="workspace-write", cwd=CWD, roots=(Path("/more"),), network=True, exclude_slash_tmp=True
            ),
            {
                "type": "workspace-write",
                "writable_roots": ["/more"],
                "network_access": True,
                "exclude_tmpdir_env_var": False,
                "exclude_slash_tmp": True,
            },
        ),
    ],
)
def test_a_policy_on_the_wire(policy: SandboxPolicy, expected: dict[str, Any]) -> None:
    assert expected == wire(policy)


def test_the_environment_tells_what_can_be_read_and_written() -> None:
    policy = session_policy(
        "workspace-write", CWD, home=Path("/home/me/c"), environment={"TMPDIR": "/t"}, roots=(Path("/m"),)
    )

    told = filesystem.element([str(CWD)], filesystem_profile(policy))

    assert '<permission_profile type="managed"><file_system type="restricted">' in told
    for access, what in [
        ("read", "<special>:root</special>"),
        ("write", "<special>:workspace_roots</special>"),
        ("write", "<path>/m</path>"),
        ("write", "<special>:slash_tmp</special>"),
        ("write", "<special>:tmpdir</special>"),
        ("read", "<special>:workspace_roots/.git</special>"),
        ("read", "<path>/home/me/c</path>"),
    ]:
        assert f'<entry access="{access}">{what}</entry>' in told


def test_full_access_is_told_as_no_guard_at_all() -> None:
    assert filesystem.FilesystemProfile("disabled") == filesystem_profile(
        SandboxPolicy(mode="danger-full-access", cwd=CWD)
    )


@pytest.mark.parametrize(("name", "expected"), [("", None), ("relative", None), ("/t", Path("/t"))])
def test_a_temporary_folder_is_taken_from_the_environment(name: str, expected: Path | None) -> None:
    policy = session_policy("workspace-write", CWD, home=Path("/h"), environment={"TMPDIR": name} if name else {})

    assert expected == policy.tmpdir


@pytest.mark.parametrize(
    ("mode", "network", "level", "why"),
    [
        ("danger-full-access", False, NONE, None),
        ("read-only", False, NONE, "there is nothing."),
        ("workspace-write", True, NONE, "there is nothing."),
        ("workspace-write", False, GOOD, None),
        ("workspace-write", False, LEAKY, "sockets can be reached."),
        ("workspace-write", True, LEAKY, None),
    ],
)
def test_what_cannot_be_confined_has_to_be_asked_for_and_is_never_wrapped(
    mode: Any, network: bool, level: SandboxSupport, why: str | None
) -> None:
    policy = SandboxPolicy(mode=mode, cwd=CWD, network=network)

    told = unmet(policy, level)

    assert why is None if told is None else why is not None and told.endswith(why)
    if told is not None:
        with pytest.raises(ToolError) as caught:
            confine(Launch(("true",), CWD, {}), policy, level)
        assert "only run with approval" in caught.value.sentence()


@pytest.mark.parametrize("mode", ["read-only", "workspace-write", "danger-full-access"])
@pytest.mark.parametrize("network", [True, False])
@pytest.mark.parametrize("level", [GOOD, NONE, SandboxSupport(mechanism="landlock", network_off=True, landlock=6)])
def test_the_model_is_told_the_mode_the_folders_and_the_network(
    mode: Any, network: bool, level: SandboxSupport
) -> None:
    told = permissions(SandboxPolicy(mode=mode, cwd=CWD, network=network), level)

    assert f"`{mode}`" in told
    assert (mode == "workspace-write") == ("- /repo/demo\n- /tmp" in told)
    assert (mode != "danger-full-access" and not network) == ("There is no network" in told)
    assert (mode != "danger-full-access" and level is NONE) == ("asked before each command" in told)
    assert (mode == "workspace-write" and level.mechanism == "landlock") == ("cannot be made" in told)
    assert "{" not in told


@pytest.fixture
def fresh() -> Any:
    """Nothing is known of this machine, before and after."""
    detection.best_support.cache_clear()
    yield
    detection.best_support.cache_clear()


@pytest.mark.usefixtures("fresh")
class TestWhatWorksHere:
    def test_the_first_way_that_works_is_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(detection, "_bwrap", lambda: "/usr/bin/bwrap")
        monkeypatch.setattr(detection, "landlock_version", lambda: 7)
        monkeypatch.setattr(detection, "problem_with", lambda _: None)  # pyright: ignore

        found = detect()

        assert ("bubblewrap", True) == (found.mechanism, found.network_off)

    @pytest.mark.parametrize(("version", "expected"), [(7, "landlock"), (6, "landlock"), (5, "none"), (0, "none")])
    def test_landlock_alone_must_guard_signals(
        self, monkeypatch: pytest.MonkeyPatch, version: int, expected: str
    ) -> None:
        monkeypatch.setattr(detection, "_bwrap", lambda: None)
        monkeypatch.setattr(detection, "landlock_version", lambda: version)
        monkeypatch.setattr(detection, "problem_with", lambda found: "no namespaces" if found.spaces else None)  # pyright: ignore

        assert expected == detect().mechanism

    def test_without_a_filter_the_network_cannot_be_turned_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(detection, "_bwrap", lambda: "/usr/bin/bwrap")
        monkeypatch.setattr(detection, "problem_with", lambda found: "filter" if found.filtered else None)  # pyright: ignore

        found = detect()

        assert ("bubblewrap", False) == (found.mechanism, found.network_off)
        assert "cannot be kept from sockets" in found.detail

    def test_where_nothing_works_the_reasons_are_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(detection, "_bwrap", lambda: None)
        monkeypatch.setattr(detection, "landlock_version", lambda: 0)

        found = detect()

        assert "none" == found.mechanism
        assert "bubblewrap is not installed; the kernel has no Landlock" in found.detail

    def test_other_systems_have_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.platform", "darwin")

        assert "none" == detect().mechanism

    def test_a_way_that_lets_a_command_write_does_not_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(detection, "confine", lambda launch, *_: launch)  # pyright: ignore

        assert "a command could write all the same" == detection.problem_with(GOOD)

    def test_a_program_that_fails_is_told_in_its_own_words(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        program = tmp_path / "bwrap"
        program.write_text("#!/bin/sh\necho 'bwrap: no permission' >&2\nexit 1\n")
        program.chmod(0o755)
        monkeypatch.setattr(detection, "_bwrap", lambda: str(program))
        monkeypatch.setattr(detection, "landlock_version", lambda: 0)

        assert "bubblewrap: bwrap: no permission" in detect().detail
