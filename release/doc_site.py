"""The documentation as a site: `python -m release.doc_site FOLDER`, or `make site`.

The pages are those of `docs/`, the README, the changelog and the measurements, as they stand in the repository. They
are laid out in one folder, with their links turned to where each page is there; a link to a file that is no page
becomes its text. The site loads nothing from elsewhere.
"""

from __future__ import annotations

import logging
import posixpath
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
CONFIG: Final = Path(__file__).with_name("mkdocs.yml")

_PLACES: Final = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages outside `docs/`, and where they are in the site."""
_FOLDERS: Final = {"docs/": "", "bench/results/": "measured/"}
_LINK: Final = re.compile(r"(!?)\[([^\[\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
_COPIED: Final = (".md", ".svg", ".png", ".json")


def place(name: str) -> str | None:
    """Return where a file of the repository is in the site; None if it is no part of it."""
    if name in _PLACES:
        return _PLACES[name]
    for folder, there in _FOLDERS.items():
        if name.startswith(folder) and name.endswith(_COPIED):
            return there + name.removeprefix(folder)
    return None


def turned(text: str, name: str) -> str:
    """Return the text of a page of the repository with the links that it has in the site."""
    here = place(name) or name

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), found[3]))
        there = place(f"{target}/README.md") if (ROOT / target).is_dir() else place(target)
        if there is None:
            return found[2]
        return f"{found[1]}[{found[2]}]({posixpath.relpath(there, posixpath.dirname(here) or '.')}{found[4] or ''})"

    return _LINK.sub(link, text)


def lay_out(folder: Path) -> None:
    """Write the pages of the site into a folder."""
    for path in sorted(ROOT.rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        there = place(name) if path.is_file() else None
        if there is None:
            continue
        target = folder / there
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(turned(path.read_text("utf-8"), name), "utf-8")
        else:
            shutil.copyfile(path, target)


def _navigation(config: Any, folder: Path) -> None:
    """Add the pages that come and go: decisions and measurements."""
    project = next(part["Project"] for part in config["nav"] if "Project" in part)
    for title, name in (("Decisions", "decisions"), ("Measurements", "measured")):
        project.append({title: [f"{name}/{page.name}" for page in sorted((folder / name).glob("*.md"))]})


def build(target: Path) -> None:
    """Build the site; a link that leads nowhere and a page that is not in the navigation are errors."""
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config  # pyright: ignore[reportUnknownVariableType]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lay_out(folder)
        config = load_config(str(CONFIG), docs_dir=name, site_dir=str(target.resolve()), strict=True)
        _navigation(config, folder)
        config.plugins.on_startup(command="build", dirty=False)
        try:
            build_site(config)
        finally:
            config.plugins.on_shutdown()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    build(Path(sys.argv[1]))
