"""Documentation is true: commands run, help is what the program prints, settings and links exist.

To renew `docs/cli.md`: UPDATE_DOCS=1 .venv/bin/pytest tests/test_docs.py
"""

from __future__ import annotations

import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from bench import report
from release import doc_site, flows, reference

from commonplace.config import SETTINGS
from commonplace.surfaces.cli.root import COMMANDS, root, run
from recorded_chat import recorded

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SAMPLES = ROOT / "tests" / "data" / "codex_samples"
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def console_commands(page: Path) -> list[str]:
    blocks = CONSOLE.findall(page.read_text("utf-8"))
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]


SHOWN = [page for page in PAGES if console_commands(page)]


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_shown_in_a_page_run_as_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    samples = tmp_path / "codex"
    monkeypatch.setenv("CODEX_HOME", str(samples))
    monkeypatch.setenv("COMMONPLACE_NOW", "2026-11-15T12:00:00Z")
    for sample in SAMPLES.glob("*.jsonl"):
        folder = samples / "sessions" / sample.name.removeprefix("rollout-")[:10].replace("-", "/")
        folder.mkdir(parents=True)
        shutil.copy2(sample, folder)
    for command in console_commands(page):
        words = shlex.split(command.replace("$CODEX_HOME", str(samples)))
        assert words[0] == "commonplace", command
        code = run(words[1:])
        assert code == 0, f"{command}\n{capfd.readouterr().err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]

    assert broken == []


def help_texts() -> str:
    """Return the reference of all commands, as the program prints it."""
    parts = ["# Commands\n\nWritten by `UPDATE_DOCS=1 .venv/bin/pytest tests/test_docs.py`; a test keeps it true.\n"]

    def describe(command: click.Command, path: str) -> None:
        names = ["-h", "--help"]  # as every command inherits them from the root
        context = click.Context(command, info_name=path, terminal_width=100, help_option_names=names)
        parts.append(f"\n## {path}\n\n```\n{command.get_help(context)}\n```\n")
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                describe(child, f"{path} {name}")

    describe(root, "commonplace")
    return "".join(parts)


def test_the_command_reference_is_what_the_program_prints() -> None:
    page = ROOT / "docs" / "cli.md"
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(help_texts(), "utf-8")

    assert page.read_text("utf-8") == help_texts()


def shown_demo() -> str:
    """Return what the demo prints, with the one thing in it that differs from run to run made the same."""
    environment = {**os.environ, "COMMONPLACE_NOW": "2026-11-15T12:00:00Z", "COLUMNS": "100", "NO_COLOR": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"  # as after an installation
    program = [sys.executable, "-m", "commonplace", "demo"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    lines = (line.rstrip() for line in re.sub(r"in \d+\.\d s,", "in 0.6 s,", done.stdout).split("\n"))
    return "\n".join(lines).strip("\n")


def readme_with(name: str, shown: str) -> str:
    """Return the README with this block under that name, after writing it if that is wanted."""
    readme = ROOT / "README.md"
    before, mark, rest = readme.read_text("utf-8").partition(f"<!-- {name} -->\n```\n")
    assert mark, f"the README has no place for {name}"
    after = rest.partition("\n```\n")[2]
    whole = f"{before}{mark}{shown}\n```\n{after}"
    if os.environ.get("UPDATE_DOCS"):
        readme.write_text(whole, "utf-8")
    return whole


def test_the_readme_shows_what_the_demo_prints() -> None:
    assert readme_with("the demo", shown_demo()) == (ROOT / "README.md").read_text("utf-8")


def test_the_readme_shows_a_conversation_as_the_terminal_does(tmp_path: Path) -> None:
    shown = recorded(tmp_path)

    assert len(shown.splitlines()) <= 25
    assert readme_with("a conversation", shown) == (ROOT / "README.md").read_text("utf-8")


def test_the_list_of_commands_says_what_the_commands_say() -> None:
    context = click.Context(root)
    for name, (_, text) in COMMANDS.items():
        command = root.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(100) == text


def test_the_table_of_settings_is_what_the_program_reads() -> None:
    page = ROOT / "docs" / "settings.md"
    text = page.read_text("utf-8")
    before, mark, rest = text.partition("| setting |")
    assert mark, "docs/settings.md has no table"
    whole = before + settings_table() + rest[rest.index("\n\n") + 1 :]
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(whole, "utf-8")

    assert whole == page.read_text("utf-8")


def settings_table() -> str:
    rows = ["| setting | default | range | what for |\n|---|---|---|---|\n"]
    for setting in SETTINGS:
        limits = ", ".join(setting.choices) or f"{setting.low if setting.low is not None else ''}–{setting.high or ''}"
        limits = "" if limits == "–" else limits
        default = "none" if setting.default in (None, ()) else str(setting.default).lower().replace("'", "")
        rows.append(f"| `{setting.key}` | {default} | {limits} | {setting.doc} |\n")
    return "".join(rows)


def test_what_is_made_from_the_code_and_the_pages_is_as_they_are() -> None:
    made = {**flows.pictures(), **report.made()}
    made[ROOT / "docs" / "reference.md"] = reference.library()
    made[ROOT / "release" / "commonplace.1"] = reference.manual()
    if os.environ.get("UPDATE_DOCS"):
        for path, text in made.items():
            path.write_text(text, "utf-8")

    assert len(made) == 11
    assert [] == [path.name for path, text in made.items() if path.read_text("utf-8") != text]


def test_the_steps_in_the_pictures_exist() -> None:
    shown = [step for steps in flows.flows(flows.PAGE.read_text("utf-8")).values() for step in steps]

    assert len(shown) > 15
    for step in shown:
        assert callable(pkgutil.resolve_name(_with_colon(f"commonplace.{step.place}"))), step.place


def _with_colon(dotted: str) -> str:
    """Return a dotted name with a colon behind its module: packages and functions may have one name."""
    parts = dotted.split(".")
    modules = [place for place in range(len(parts), 0, -1) if _is_module(".".join(parts[:place]))]
    return f"{'.'.join(parts[: modules[0]])}:{'.'.join(parts[modules[0] :])}"


def _is_module(dotted: str) -> bool:
    folder = ROOT / "src" / dotted.replace(".", "/")
    return folder.is_dir() or folder.with_suffix(".py").is_file()


@pytest.mark.package
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    doc_site.build(tmp_path)

    pages = sorted(tmp_path.rglob("index.html"))
    assert len(pages) > 40
    loaded = re.compile(r'<(?:script|img|link rel="(?:stylesheet|preload)")[^>]*(?:src|href)="(https?:[^"]+)"')
    assert [] == [found for page in pages for found in loaded.findall(page.read_text("utf-8"))]


def test_no_tracked_file_names_a_registry() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    words = [f"{name}.{ending}" for name, ending in (("pypi", "org"), ("npmjs", "org"), ("npmjs", "com"))]
    named = [
        name
        for name in tracked.stdout.splitlines()
        if (ROOT / name).is_file() and any(word.encode() in (ROOT / name).read_bytes() for word in words)
    ]

    assert named == []


def test_tests_that_a_page_names_as_proof_exist() -> None:
    files = [path for path in (ROOT / "tests").rglob("*.py") if "data" not in path.parts]
    known = {path.stem for path in files}
    for path in files:
        known.update(re.findall(r"\bdef (test_\w+)\(", path.read_text("utf-8")))
    named = {
        (str(page.relative_to(ROOT)), name)
        for page in PAGES
        for name in re.findall(r"`(?:[\w/]+\.py::)?(test_\w+)(?:\.py)?`", page.read_text("utf-8"))
    }

    assert [] == sorted((page, name) for page, name in named if name not in known)
