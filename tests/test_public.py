"""What is public is exported, importing does nothing, and starting is cheap."""

from __future__ import annotations

import ast
import importlib
import inspect
import pydoc
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import commonplace
from commonplace import errors
from ledgers import Script, user

HEAVY = {"anyio", "asyncio", "click", "msgspec", "sqlite3", "rich", "zstandard"}
FRONT = (
    commonplace.Book,
    commonplace.Thread,
    commonplace.Sessions,
    commonplace.Memory,
    commonplace.Projects,
    commonplace.Finder,
)
"""The objects that the library consists of."""
INTERNAL = {
    commonplace.Book: {"state", "memory_store", "importer", "changes", "background", "tasks"},
    commonplace.Thread: {"session", "profile", "tree", "join", "close_alone"},
}
"""Attributes for the program's own surfaces, as the docstrings say."""


def public_values() -> dict[str, Any]:
    """Every public value by its name: what the package exports, and what its public modules hold."""
    found = {name: getattr(commonplace, name) for name in commonplace.__all__}
    modules = {name: value for name, value in found.items() if isinstance(value, ModuleType)}
    inner = {f"{name}.{key}": value for name, module in modules.items() for key, value in vars(module).items()}
    return found | {name: value for name, value in inner.items() if not name.rpartition(".")[2].startswith("_")}


def names_for_checkers(module: ModuleType) -> dict[str, Any]:
    """The names of a module, with those that it imports for type checkers only."""
    names = dict(vars(module))
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and each.module:
                    source = importlib.import_module(each.module)
                    names |= {alias.asname or alias.name: getattr(source, alias.name) for alias in each.names}
    return names


def hints(value: Any) -> dict[str, Any]:
    return typing.get_type_hints(value, names_for_checkers(sys.modules[value.__module__]))


def classes(annotation: Any) -> Iterator[type]:
    """Yield the classes of ours that an annotation is made of."""
    for part in typing.get_args(annotation):
        for each in typing.cast("list[Any]", part) if isinstance(part, list) else [part]:
            yield from classes(each)
    kind = typing.get_origin(annotation) or annotation
    if isinstance(kind, type) and kind.__module__.startswith("commonplace."):
        yield kind


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, as functions."""
    for name, value in vars(kind).items():
        function = value.fget if isinstance(value, property) else value
        is_public = not name.startswith("_") or name == "__call__"
        if is_public and name not in INTERNAL.get(kind, ()) and inspect.isfunction(function):
            yield name, function


def reachable() -> dict[type, str]:
    """Every class of ours that the library takes or returns, with the way to it."""
    found: dict[type, str] = {}

    def visit(kind: type[Any], way: str) -> None:
        if kind in found:
            return
        found[kind] = way
        is_record = issubclass(kind, msgspec.Struct) or typing.is_typeddict(kind)
        parts = [(kind.__name__, hints(kind))] if is_record else []
        for name, found_hints in (*parts, *((name, hints(function)) for name, function in methods(kind))):
            for annotation in found_hints.values():
                for each in classes(annotation):
                    visit(each, f"{way}.{name}")

    for kind in FRONT:
        visit(kind, kind.__name__)
    return found


def modules_after(code: str) -> set[str]:
    program = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_exported_name_is_there() -> None:
    assert [name for name in commonplace.__all__ if not hasattr(commonplace, name)] == []


def test_every_exported_name_is_listed_and_described_without_having_been_used() -> None:
    program = "import commonplace; print(*dir(commonplace))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    described = pydoc.plain(pydoc.render_doc(commonplace))

    assert set(commonplace.__all__) <= set(done.stdout.split())
    assert [name for name in commonplace.__all__ if name not in described and name != "__version__"] == []
    assert f"VERSION\n    {commonplace.__version__}" in described


def test_every_type_that_the_library_takes_or_returns_is_exported() -> None:
    known = {id(value) for value in public_values().values()}

    assert {kind: way for kind, way in reachable().items() if id(kind) not in known} == {}


def test_every_exported_class_has_a_name_of_its_own() -> None:
    exported = {name: value for name, value in public_values().items() if isinstance(value, type) and "." not in name}

    assert [name for name, value in exported.items() if value.__name__ != name] == []


def test_every_error_is_exported() -> None:
    known = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)}

    assert sorted(kind.__name__ for kind in known if getattr(commonplace, kind.__name__, None) is not kind) == []


def test_every_error_that_a_method_says_it_raises_is_exported() -> None:
    said: dict[str, str] = {}
    for kind in FRONT:
        for name, function in methods(kind):
            text = inspect.getdoc(function) or ""
            listed = "\n".join(re.findall(r"^    ([\w, ]+):", text.partition("Raises:")[2], re.MULTILINE))
            beside = " ".join(re.findall(r"\(raises ([\w, ]+)", text))
            said |= dict.fromkeys(re.findall(r"[A-Z]\w+", f"{listed} {beside}"), f"{kind.__name__}.{name}")

    assert {"BadInput", "UnknownThread", "WindowTooSmall", "UndoError"} <= said.keys()
    assert {error: way for error, way in said.items() if error not in commonplace.__all__} == {}


def test_no_public_function_takes_just_anything() -> None:
    functions = {f"{kind.__name__}.{name}": function for kind in reachable() for name, function in methods(kind)}
    functions |= {kind.__name__: kind.__init__ for kind in vars(errors).values() if inspect.isclass(kind)}
    functions |= {"open": commonplace.open.__wrapped__}  # pyright: ignore[reportFunctionMemberAccess]
    loose = [
        name
        for name, function in functions.items()
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) and each.annotation in ("Any", each.empty)
    ]

    assert loose == []


def test_options_of_a_thread_and_their_keywords_are_the_same() -> None:
    fields = {field.name for field in msgspec.structs.fields(commonplace.ThreadOptions)}

    assert fields == commonplace.OptionChanges.__annotations__.keys()


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        getattr(commonplace, "nonsense")  # noqa: B009 (a checker knows that it is not there)


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert modules_after("import commonplace") & HEAVY == set()


def test_asking_for_the_version_loads_nothing_heavy() -> None:
    code = "sys.argv = ['commonplace', '--version']; from commonplace.surfaces.cli import main; main()"

    assert modules_after(code) & HEAVY == set()


def test_printing_a_context_needs_no_database() -> None:
    path = next((Path(__file__).parent / "data" / "codex_fixtures" / "a_simple").glob("rollout-*"))
    code = f"from commonplace.surfaces.cli.root import run; run(['sessions', 'context', {str(path)!r}])"

    assert modules_after(code) & {"sqlite3", "rich", "zstandard"} == set()


async def test_the_library_lists_and_resumes(home: Path) -> None:
    Script().turn(user("hello", "msg_1")).write_home(home)

    async with commonplace.open() as book:
        page = await book.sessions.list()
        context = await book.sessions.context(page.threads[0].thread_id)

    assert [thread.title for thread in page.threads] == ["hello"]
    assert context.receipt.last_id == "msg_1"


def test_the_program_runs_as_a_module_and_says_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "--version"], capture_output=True, text=True, check=True
    )

    assert done.stdout == f"commonplace {commonplace.__version__}\n"


def test_output_cut_by_a_pipe_ends_quietly(home: Path) -> None:
    script = Script()
    for number in range(5000):
        script.item(user(f"line {number} " + "x" * 200))
    path = script.write_home(home)
    program = f"{sys.executable} -m commonplace sessions context {path} --json | head -c 10"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.stdout == '{"thread_i'
