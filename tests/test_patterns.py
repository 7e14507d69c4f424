"""Every regular expression of the program takes linear time, proved on its automaton (`ambiguity`), without a clock.

The expressions are found in the source: the first argument of every call of `re` or `regex` is evaluated in its module,
and every expression that a module holds is taken as well. An expression that is put together from something else is
listed in `MADE`, with what it is made of in the test, or with the reason why it needs none.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

import pytest

import ambiguity
import sources
from ambiguity import Ambiguity
from commonplace.agent.undo import gitignore
from commonplace.clients import toml_text
from commonplace.learning.commands import calls as command_calls
from commonplace.learning.commands import tables as command_tables
from commonplace.learning.lasting import acts
from commonplace.learning.reading import cues
from commonplace.memory import similarity, stale_names
from commonplace.memory.sameness import lexicon
from commonplace.patterns import LazyPattern
from commonplace.redact import catalogue, glued
from commonplace.redact.catalogue import unmistakable
from commonplace.redact.catalogue.formats import shape_of
from sources import SOURCE

MODULES = [path for path in sources.MODULES if path.name != "__main__.py"]
PACKAGES = sorted({path.relative_to(SOURCE / "commonplace").parts[0] for path in MODULES})
FLAGS_AT = {"compile": 1, "sub": 4, "subn": 4, "split": 3}
"""Which argument of a function has the flags; of all others the third."""
USES = frozenset({"match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split"})
CALLS = frozenset({"regex", "re.compile", *(f"re.{name}" for name in USES)})
Texts = Callable[[], Iterable[re.Pattern[Any]]]


class Expression(NamedTuple):
    """An expression with its flags, where it was found, and how it is used (empty: unknown)."""

    pattern: str | bytes
    flags: int
    place: str
    uses: frozenset[str]


def shapes() -> Iterator[re.Pattern[bytes]]:
    rows = [*catalogue.formats(), *unmistakable.ANYWHERE, *unmistakable.APART]
    for row in rows:
        yield shape_of(row.shape)
        yield glued._judged(row.shape)


def wildcards() -> Iterator[re.Pattern[bytes]]:
    for line in (b"*a*a*b", b"**/a/**/a*b/**/c", b"a*?[x-z]*b/**", b"/x/**/y*z*/w", b"!*.[ch]*"):
        yield re.compile(b"".join(filter(None, [gitignore._translate(line, of_path=True)])), re.DOTALL)


def languages() -> Iterator[re.Pattern[str]]:
    for language in cues.LANGUAGES:
        yield from (cues.pattern(language, cue) for cue in cues.table(language))


def failures() -> Iterator[re.Pattern[str]]:
    yield from map(command_calls.failure, command_tables.table("calls")["failures"])


def tables() -> Iterator[re.Pattern[str]]:
    yield from similarity._concepts().values()
    for name, lines in similarity._table().items():
        if isinstance(lines, list) and all(isinstance(line, str) for line in cast("list[object]", lines)):
            yield similarity.pattern(name)


def act_tables() -> Iterator[re.Pattern[str]]:
    yield from (pattern for _, pattern in (*acts._modes(), *acts._objects()))
    yield from (acts._fillers(), acts._adverbs())


def sentence_tables() -> Iterator[re.Pattern[str]]:
    for code in lexicon.LANGUAGES:
        known = lexicon.language(code)
        yield from (known.released, known.change, known.condition)
        if letters := lexicon.letters(code):
            yield letters


def targets() -> Iterator[re.Pattern[str]]:
    yield from (stale_names.rule_of(program, "a.b-c") for program in ("make", "just"))


def headers() -> Iterator[re.Pattern[str]]:
    yield from (toml_text.header_of(("a", "b"), below=below) for below in (False, True))


MADE: dict[str, tuple[str, Texts] | str] = {
    "re.compile(self._expression, self._flags)": "modules hold what `regex` makes",
    "regex(expression)": "a module holds what it makes",
    "re.compile(each.regex)": "a person writes it beside the labels of their own sessions",
    "re.search(wanted.regex, entry.text, re.IGNORECASE)": "a person writes it beside the labels of their own sessions",
    "re.compile(hook.matcher)": "a person writes it for their own hooks",
    "re.fullmatch(self.matcher, subject)": "a person writes it for their own hooks",
    "re.compile(b'|'.join((b'(' + rule.regex + b')' for _, rule in rules)), flags)": ("fullmatch", wildcards),
    "re.compile('|'.join(map(re.escape, longest_first)))": "plain words",
    "re.compile(f'^(?:{before})?{named}(?:[ \\\\t][^:=\\\\n]*)?::?(?!=)', re.MULTILINE)": ("search", targets),
    "re.compile(f'^@?{named}\\\\b[^:\\\\n]*:(?!=)|^alias {named}\\\\b', re.MULTILINE)": ("search", targets),
    "regex('|'.join(_table()[name]))": ("search", tables),
    "regex('|'.join(lines))": ("search", tables),
    "regex('|'.join([value] if isinstance(value, str) else value), flags)": "modules hold what it makes",
    "regex(f\"(?<![^:/_.-])(?:{row['pattern']})(?![^:/_.-])\")": "a module holds what it makes",
    "regex(row['signs'], re.MULTILINE)": "a module holds what it makes",
    "regex(row['cure'])": "a module holds what it makes",
    "regex(row['has_it'])": "a module holds what it makes",
    "regex(_joined(table(language)[cue]), re.IGNORECASE if cue == 'polite' else re.NOFLAG)": ("search", languages),
    "regex(expression, re.MULTILINE)": ("search", failures),
    "regex(text, re.IGNORECASE)": ("match", act_tables),
    "regex(text)": "with those above",
    "regex(f\"(?>(?:(?:{_tables()['leads']['fillers']})\\\\b{_MARKS}|{_OPENING})+)\", re.IGNORECASE)": "as above",
    "regex(f\"(?>(?:(?:{_tables()['leads']['adverbs']})\\\\s++)+)\", re.IGNORECASE)": "with those above",
    "regex(tables['released'][code])": ("search", sentence_tables),
    "regex(tables['change'][code])": "with those above",
    "regex(tables['condition'][code])": "with those above",
    "regex(found)": "with those above",
    "re.sub(f'\\\\b{re.escape(phrase)}\\\\b', word, plain, flags=re.IGNORECASE)": "plain words",
    "regex(f'{before}(?:{inner}){after}' if before or after else inner, flags)": "modules hold what it makes",
    "regex(_RANGE.sub('\\\\1+', text).encode())": ("match", shapes),
    "re.compile(b'|'.join(map(re.escape, dict.fromkeys(encoded))), re.IGNORECASE if ignore_case else 0)": "plain words",
    "re.compile(re.escape(text), re.IGNORECASE)": "a plain word",
    "re.compile(f'[ \\\\t]*\\\\[[ \\\\t]*{names}[ \\\\t]*{rest}\\\\][ \\\\t]*(?:#.*)?')": ("fullmatch", headers),
}
"""Calls of `re` with an expression that is not in the source: what they can be given, or why that needs no proof."""
KEPT = "regex("
"""A call in a function of `redact` whose result the module keeps in a table is found there."""
EXCEPTIONS: dict[str, str] = {}
"""Expressions that are ambiguous, by where they stand, and why that does no harm."""


@cache
def module_of(path: Path) -> ModuleType:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))


def calls_of(path: Path) -> Iterator[ast.Call]:
    """Yield the calls of functions of `re` that take an expression."""
    for node in sources.nodes(path):
        if isinstance(node, ast.Call) and node.args and (called := ast.unparse(node.func)) and called in CALLS:
            yield node


def value_of(node: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(node), module.__name__, "eval"), dict(vars(module)))


def written(path: Path) -> Iterator[Expression | ast.Call]:
    """Yield the expressions that are written in a module; a call as it is where one cannot be evaluated."""
    module = module_of(path)
    for call in calls_of(path):
        name = ast.unparse(call.func).removeprefix("re.")
        place = FLAGS_AT.get(name, 2)
        given = call.args[place : place + 1] + [word.value for word in call.keywords if word.arg == "flags"]
        try:
            pattern = value_of(call.args[0], module)
            flags = int(value_of(given[0], module)) if given else 0
        except NameError:
            yield call
            continue
        if name in USES:
            yield Expression(pattern, flags, f"{module.__name__}:{call.lineno}", frozenset({name}))


def patterns_in(value: object, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    """Yield the compiled expressions within a value."""
    if id(value) in seen:
        return
    seen.add(id(value))
    inner: Iterable[object] = ()
    if isinstance(value, re.Pattern | LazyPattern):
        yield cast("re.Pattern[Any]", value)
    elif not isinstance(value, type) and isinstance(
        expression := getattr(value, "expression", None), re.Pattern | LazyPattern
    ):
        yield cast("re.Pattern[Any]", expression)
    elif isinstance(value, dict):
        inner = cast("dict[object, object]", value).values()
    elif isinstance(value, list | tuple | set | frozenset):
        inner = cast("Iterable[object]", value)
    elif not isinstance(value, type):
        inner = [getattr(value, field, None) for field in getattr(value, "__struct_fields__", ())]
    for one in inner:
        yield from patterns_in(one, seen)


@cache
def uses() -> dict[tuple[str, str], frozenset[str]]:
    """Return how names are used: by module and name, and by name alone where it is used as an attribute."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for path in MODULES:
        name = module_of(path).__name__
        for node in sources.nodes(path):
            if not (isinstance(node, ast.Attribute) and node.attr in USES):
                continue
            used = node.value
            key = (name, used.id) if isinstance(used, ast.Name) else ("", getattr(used, "attr", ""))
            found[key] = found.get(key, frozenset()) | {node.attr}
    return found


def held(path: Path) -> Iterator[Expression]:
    """Yield the expressions that a module holds."""
    module = module_of(path)
    seen: set[int] = set()
    for name, value in list(vars(module).items()):
        if name.startswith("__"):
            continue
        for pattern in patterns_in(value, seen):
            known = uses().get((module.__name__, name), frozenset()) | uses().get(("", name), frozenset())
            known = known if isinstance(value, re.Pattern | LazyPattern) else frozenset[str]()
            yield Expression(pattern.pattern, pattern.flags, f"{module.__name__}.{name}", known)


def made() -> Iterator[Expression]:
    """Yield the expressions that are made from something else."""
    for name, how in MADE.items():
        if not isinstance(how, str):
            for pattern in how[1]():
                yield Expression(pattern.pattern, pattern.flags, name, frozenset({how[0]}))


def flags_of(expression: Expression) -> int:
    """Return the flags that an expression is parsed with."""
    flags = expression.flags & ~re.UNICODE if isinstance(expression.pattern, str) else expression.flags
    return flags & ~re.DEBUG


def expressions_of(package: str) -> list[Expression]:
    """Return the expressions that a package writes down or holds, each once."""
    paths = [path for path in MODULES if path.relative_to(SOURCE / "commonplace").parts[0] == package]
    found = [one for path in paths for one in (*written(path), *held(path)) if isinstance(one, Expression)]
    return list(dict.fromkeys(found))


def proved(expression: Expression) -> list[Ambiguity]:
    """Return what is ambiguous about an expression, as it is used."""
    return ambiguity.findings(
        expression.pattern,
        flags_of(expression),
        searched=not expression.uses or bool(expression.uses - {"match", "fullmatch"}),
        whole="fullmatch" in expression.uses,
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_every_expression_of_a_package_takes_linear_time(package: str) -> None:
    slow = {
        f"{one.place} {one.pattern!r}": found
        for one in expressions_of(package)
        if one.place not in EXCEPTIONS and (found := proved(one))
    }

    assert {} == slow


def test_every_expression_that_is_made_from_something_else_takes_linear_time() -> None:
    slow = {f"{one.place} {one.pattern!r}": found for one in made() if (found := proved(one))}

    assert {} == slow


@pytest.mark.parametrize("package", PACKAGES)
def test_no_expression_repeats_a_group_and_gives_nothing_back(package: str) -> None:
    """`(?:…)*+` matches wrongly in Python before 3.11.5, which Debian 12 has; `(?>(?:…)*)` says the same."""
    found = expressions_of(package)

    assert set() == {one.place for one in found if ambiguity.has_possessive_groups(one.pattern, flags_of(one))}


def test_no_expression_that_is_made_from_something_else_does_so() -> None:
    assert set() == {one.place for one in made() if ambiguity.has_possessive_groups(one.pattern, flags_of(one))}


@pytest.mark.parametrize(
    ("pattern", "is_wrong"),
    [(r"(?:ab)*+", True), (r"x(?:(?:a|b?){1,3}+c)*", True), (r"(?>(?:ab)*)", False), (r"[ab]++\d{1,3}+x?+", False)],
)
def test_repeated_groups_that_give_nothing_back_are_seen(pattern: str, *, is_wrong: bool) -> None:
    assert ambiguity.has_possessive_groups(pattern) is is_wrong


def test_every_expression_is_found() -> None:
    """What cannot be evaluated is listed, or its module keeps what it makes."""
    unknown = [
        f"{path.relative_to(SOURCE)}:{call.lineno} {ast.unparse(call)}"
        for path in MODULES
        for call in written(path)
        if isinstance(call, ast.Call) and ast.unparse(call) not in MADE
    ]

    assert [] == [one for one in unknown if "redact/" not in one]
    assert all(KEPT in one for one in unknown)


def test_what_is_listed_is_still_there() -> None:
    calls = {ast.unparse(call) for path in MODULES for call in calls_of(path)}
    places = {one.place for path in MODULES for one in held(path)}

    assert set(MADE) - calls == set()
    assert set(EXCEPTIONS) - places == set()


def test_no_expression_is_compiled_before_it_is_used() -> None:
    """Outside of functions, `regex` stands for `re.compile`."""
    early = {
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in MODULES
        for outer in ast.parse(path.read_text("utf-8")).body
        if not isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(outer)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
    }

    assert set() == early


def test_nothing_else_compiles_expressions() -> None:
    """`from re import …` and another module of expressions would hide from the search above."""
    hidden = [
        str(path.relative_to(SOURCE))
        for path in MODULES
        for node in sources.nodes(path)
        if (isinstance(node, ast.ImportFrom) and node.module == "re")
        or (isinstance(node, ast.Import) and any(one.name in ("re2", "regex", "fnmatch") for one in node.names))
    ]

    assert [] == hidden


SLOW = [
    (r"(a+)+b", "exponential"),
    (r"(a|a)*b", "exponential"),
    (r"(a*)*b", "exponential"),
    (r"(?:\w+\s?)*$", "exponential"),
    (r"a*a*b", "polynomial"),
    (r".*\d.*x", "polynomial"),
    (r"\w{3,30}\w{2,90}x", "polynomial"),
    (r"[a-z]{2,16}(?:[._]?[a-z]{1,16}){0,5}\d\Z", "exponential"),
    (r"\s+$", "quadratic search"),
    (r"(?m)^\s*x", "quadratic search"),
    (r"foo.*bar", "quadratic search"),
    (r"a(?:\w+x)?", "quadratic search"),
]
FAST = [
    r"(a|b)*",
    r"(?:\w+\s?)*",
    r"(?<!\s)\s+x",
    r"(?m)^[ \t]*x",
    r"(?s)```.*?(?:```|\Z)",
    r'"[^"]{3,}"',
    r"\w+\b",
    r"[A-Z]+(?![a-z])|[a-z]+",
    r"(?<![a-z])[a-z]{2,96}+(?:[._][a-z]{1,96}+){0,5}+\d\Z",
    r"(?m)^.*?(?<![\d,])[\d,]+ bytes",
]


@pytest.mark.parametrize(("pattern", "degree"), SLOW)
def test_what_is_slow_is_called_so(pattern: str, degree: str) -> None:
    assert degree in {one.degree for one in ambiguity.findings(pattern)}


@pytest.mark.parametrize("pattern", FAST)
def test_what_is_fast_is_not_called_slow(pattern: str) -> None:
    assert [] == ambiguity.findings(pattern)


def test_the_modules_are_those_that_are_run() -> None:
    assert all(Path(str(sys.modules[module_of(path).__name__].__file__)) == path for path in MODULES)
