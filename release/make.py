"""Everything for a release but the upload: `make release`, or `python -m release.make [--only-build]`.

In this order: the tree is clean and on a version that the changelog tells of; `make check`, `make test` and
`make package` are green; the site is built; wheel and sdist are built, the wheel again from the sdist, and both wheels
hold the same files; sums are written. What is left for a person: to look at `dist/`, to tag, to upload.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from commonplace.version import __version__
from release import doc_site

ROOT: Final = Path(__file__).parent.parent
DIST: Final = ROOT / "dist"
_HEADING: Final = re.compile(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", re.MULTILINE)


class NotReady(Exception):
    """Something has to be done before a release."""


def check_ready(version: str, changelog: str, changed_files: str) -> None:
    """Raise NotReady unless the tree is clean and the changelog begins with the version and its day."""
    if changed_files.strip():
        raise NotReady(f"Commit these files first:\n{changed_files.rstrip()}")
    newest = next(iter(re.findall(r"^## (.*)$", changelog, re.MULTILINE)), "")
    found = _HEADING.match(f"## {newest}")
    if found is None or found[1] != version:
        raise NotReady(f"CHANGELOG.md begins with '{newest}'; a release of {version} needs '{version} (YYYY-MM-DD)'.")


def build(folder: Path) -> list[Path]:
    """Build the wheel and the sdist into a folder, and show that the sdist makes the same wheel."""
    _run(sys.executable, "-m", "hatchling", "build", "-d", str(folder))
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(sdist) as archive:
            archive.extractall(name, filter="data")
        (tree,) = Path(name).iterdir()
        _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", name, cwd=tree)
        (again,) = Path(name).glob("*.whl")
        if contents(again) != contents(wheel):
            raise NotReady("The wheel that is made from the sdist differs from the one that is made from the tree.")
    return [wheel, sdist]


def contents(wheel: Path) -> dict[str, str]:
    """Return the files of a wheel, each with the hash of what it holds."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def write_sums(files: list[Path]) -> Path:
    """Write the hashes of files beside them, as `sha256sum --check` reads them."""
    sums = files[0].with_name("SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    sums.write_text("".join(lines), "utf-8")
    return sums


def _run(*command: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, check=False)  # noqa: S603
    if done.returncode:
        raise NotReady(f"This failed: {' '.join(command)}")


def main(arguments: list[str]) -> int:
    """Make a release; return the exit code."""
    try:
        if "--only-build" not in arguments:
            command = ["git", "status", "--porcelain"]
            changed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
            check_ready(__version__, (ROOT / "CHANGELOG.md").read_text("utf-8"), changed.stdout)
            for target in ("check", "test", "package"):
                _run("make", target)
            doc_site.build(DIST / "site")
        for old in (*DIST.glob("commonplace-*"), *DIST.glob("SHA256SUMS")):
            old.unlink()
        files = build(DIST)
        write_sums(files)
    except NotReady as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 1
    print(f"Ready in dist/: {', '.join(path.name for path in files)}. Left for you: look at them, tag, upload.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
