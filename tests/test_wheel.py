"""The wheel as people install it: it holds what it needs, its examples run, and two type checkers accept them.

The wheel is built and installed without a network, into an environment that borrows the dependencies of this one.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

import sources
from sources import ROOT

HOME = str(Path("~").expanduser())  # before tests get one of their own: checkers keep caches there
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
WRONG = """
import commonplace


async def wrong(book: commonplace.Book) -> None:
    commonplace.nonsense
    page = await book.sessions.list(limit="ten")
    page.threads[0].nonsense
    await book.start(colour="red")
"""
"""Four mistakes that a checker finds if it sees the types."""
MISTAKES = 4
NOT_INSTALLED = {"_typeshed"}
"""What is imported for type checkers only."""


def run(*command: object, cwd: Path, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    environment = {"PATH": os.environ["PATH"], "HOME": HOME, **(more or {})}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `venv`, where the wheel is installed, and `examples`."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv")
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(str(Path(pytest.__file__).parent.parent), "utf-8")
    pip = (sys.executable, "-m", "pip", "--python", folder / "venv" / "bin" / "python", "install")
    done = run(*pip, "--quiet", "--no-deps", "--no-index", "--no-compile", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "wrong.py").write_text(WRONG, "utf-8")
    return folder


@pytest.mark.package
def test_the_program_and_the_examples_run_from_an_installed_wheel(installed: Path, tmp_path: Path) -> None:
    program = installed / "venv" / "bin"
    version = run(program / "commonplace", "--version", cwd=tmp_path)
    where = run(program / "python", "-c", "import commonplace; print(commonplace.__file__)", cwd=tmp_path)

    assert version.stdout == f"commonplace {metadata.version('commonplace')}\n"
    assert Path(where.stdout.strip()).is_relative_to(installed)
    for path in EXAMPLES:
        done = run(program / "python", installed / "examples" / path.name, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), path


@pytest.mark.package
def test_make_install_puts_the_command_into_the_users_folder_and_takes_it_out_again(
    installed: Path, tmp_path: Path
) -> None:
    (wheel,) = installed.glob("*.whl")
    person = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}  # without uv and pipx
    variables = (f"PYTHON={sys.executable}", f"INSTALL={wheel}", "INSTALL_OPTIONS=--no-deps --no-index")
    done = run("make", "install", *variables, cwd=ROOT, more=person)
    command = tmp_path / ".local" / "bin" / "commonplace"

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"installed: {command}\n")
    assert run(command, "--version", cwd=tmp_path).stdout == f"commonplace {metadata.version('commonplace')}\n"
    gone = run("make", "uninstall", cwd=ROOT, more=person)
    assert gone.returncode == 0, gone.stderr
    assert not command.exists()
    assert not (tmp_path / ".local" / "share" / "commonplace").exists()


@pytest.mark.parametrize("tool", ["uv", "pipx"])
def test_make_install_leaves_it_to_the_tool_that_the_person_has(tool: str, tmp_path: Path) -> None:
    script = tmp_path / tool
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\necho /some/bin\n', "utf-8")
    script.chmod(0o755)
    done = run("make", "install", cwd=ROOT, more={"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"})

    first = (tmp_path / "calls").read_text("utf-8").splitlines()[0]
    assert "installed: /some/bin/commonplace" in done.stdout
    assert first.startswith({"uv": "tool install", "pipx": "install"}[tool])
    assert first.endswith(" .")


@pytest.mark.package
def test_pyright_accepts_the_examples_and_finds_mistakes(installed: Path) -> None:
    config = '{"typeCheckingMode": "strict", "include": ["examples", "wrong.py"]}'
    (installed / "pyrightconfig.json").write_text(config, "utf-8")
    done = run(sys.executable, "-m", "pyright", "--pythonpath", installed / "venv" / "bin" / "python", cwd=installed)
    found = re.findall(r"(\w+\.py):\d+:\d+ - error", done.stdout)

    assert set(found) == {"wrong.py"}, done.stdout + done.stderr
    assert len(found) >= MISTAKES


@pytest.mark.package
def test_mypy_accepts_the_examples_and_finds_mistakes(installed: Path) -> None:
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", installed / "venv" / "bin" / "python")
    done = run(*mypy, "--cache-dir", installed / "mypy", "examples", "wrong.py", cwd=installed)
    found = re.findall(r"^(\S+?\.py):\d+: error", done.stdout, re.MULTILINE)

    assert set(found) == {"wrong.py"}, done.stdout + done.stderr
    assert len(found) >= MISTAKES


def top_level_imports(folder: Path) -> set[str]:
    """The packages that the files of a folder import anywhere, those of Python itself left out."""
    found: set[str] = set()
    own = folder == sources.SOURCE
    trees = map(sources.tree, sources.MODULES) if own else sources.parsed(folder.rglob("*.py")).values()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"commonplace"} - NOT_INSTALLED


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=~!; ]", name)[0]).lower()


def declared(*extras: str) -> set[str]:
    """The distributions that pyproject.toml names, with those of some extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = [*project["dependencies"], *(name for extra in extras for name in project["optional-dependencies"][extra])]
    return {normal(name) for name in names}


KNOWN = cache(metadata.packages_distributions)
"""Which distributions have a package, by its name."""


def distributions(packages: set[str]) -> dict[str, set[str]]:
    """The distributions that packages come from."""
    known = KNOWN()
    return {name: {normal(each) for each in known.get(name, [name])} for name in packages}


EXTRAS = {"psycopg": "postgres", "obstore": "s3"}
"""Packages that only some need, and the extra that brings each."""


def test_whatever_the_program_imports_is_declared() -> None:
    used = distributions(top_level_imports(ROOT / "src"))
    of_program = {name: found for name, found in used.items() if name not in EXTRAS}

    assert [name for name, found in sorted(of_program.items()) if not found & declared()] == []
    for name, extra in EXTRAS.items():
        assert used[name] <= declared(extra)
        assert not used[name] & declared()
    assert sorted(declared() - set[str]().union(*of_program.values())) == []


OF_ANCHORS = {"openai_codex"}
"""What programs import that run in an environment of their own, which `make anchors` makes."""


def test_whatever_tests_and_benches_import_is_declared() -> None:
    own = {path.stem for path in (ROOT / "tests").rglob("*.py")} | {path.name for path in (ROOT / "tests").rglob("*")}
    used = set[str]().union(*(top_level_imports(ROOT / name) for name in ("tests", "bench", "examples")))
    packages = distributions(used - own - {"bench", "release", "tests"} - OF_ANCHORS)

    assert [name for name, found in sorted(packages.items()) if not found & declared("dev", "postgres")] == []


def test_without_the_driver_of_postgresql_a_command_says_what_to_install(home: Path, tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text('raise ModuleNotFoundError("No module named psycopg")', "utf-8")
    environment = {
        "COMMONPLACE_HOME": str(home),
        "COMMONPLACE_DATABASE": "postgresql://nobody@127.0.0.1:1/x",
        "PYTHONPATH": str(tmp_path),
    }
    listed = run(sys.executable, "-m", "commonplace", "sessions", "list", cwd=tmp_path, more=environment)
    doctor = run(sys.executable, "-m", "commonplace", "doctor", cwd=tmp_path, more=environment)

    assert listed.returncode == 0
    assert "run pip install 'commonplace[postgres]'" in listed.stderr
    assert doctor.returncode == 1
    assert "run pip install 'commonplace[postgres]'" in doctor.stdout


def stand_ins(folder: Path) -> Path:
    """Write wheels that stand in for what the program depends on, without an index; they borrow this environment's."""
    borrowed = str(Path(pytest.__file__).parent.parent)
    for name in declared():
        version = metadata.version(name)
        told = f"{name.replace('-', '_')}-{version}"
        files = {
            f"{told}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{told}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{name}.pth": f"{borrowed}\n",
        }
        record = "".join(f"{path},,\n" for path in (*files, f"{told}.dist-info/RECORD"))
        with zipfile.ZipFile(folder / f"{told}-py3-none-any.whl", "w") as wheel:
            for path, text in {**files, f"{told}.dist-info/RECORD": record}.items():
                wheel.writestr(path, text)
    return folder


@pytest.mark.package
@pytest.mark.parametrize("tool", ["uv", "pipx"])
def test_uv_and_pipx_install_the_command_and_remove_it(tool: str, installed: Path, tmp_path: Path) -> None:
    beside = Path(sys.executable).with_name(tool)
    program = str(beside) if beside.is_file() else shutil.which(tool)
    if program is None:
        pytest.skip(f"{tool} is not here; `make setup` installs it")
    (wheel,) = installed.glob("*.whl")
    wheels = stand_ins(tmp_path)
    variables = {
        "HOME": str(tmp_path / "user"),
        "PATH": "/usr/bin:/bin",
        "UV_NO_CONFIG": "1",
        "UV_NO_INDEX": "1",
        "UV_OFFLINE": "1",
        "UV_FIND_LINKS": str(wheels),
        "UV_PYTHON": sys.executable,
        "PIPX_DEFAULT_PYTHON": sys.executable,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
    }
    prefix = [program, "tool"] if tool == "uv" else [program]
    command = tmp_path / "user" / ".local" / "bin" / "commonplace"

    done = run(*prefix, "install", wheel, cwd=tmp_path, more=variables)
    assert done.returncode == 0, done.stderr
    shown = run(command, "--version", cwd=tmp_path, more=variables)
    assert shown.stdout == f"commonplace {metadata.version('commonplace')}\n", shown.stderr
    demo = run(command, "demo", cwd=tmp_path, more={**variables, "PATH": f"{command.parent}:/usr/bin:/bin"})
    assert demo.stdout.endswith(" →  In your own agents:  commonplace setup\n"), demo.stderr
    gone = run(*prefix, "uninstall", "commonplace", cwd=tmp_path, more=variables)
    assert gone.returncode == 0, gone.stderr
    assert not command.exists()
    assert [] == list((tmp_path / "user").rglob("site-packages/commonplace"))
