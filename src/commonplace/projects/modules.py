"""Names of modules and packages, as manifests and test runs show them, and how much a shared one tells.

A name has its kind in front (`go:`, `npm:`, `python:`, `rust:`), so that names of different kinds never meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from commonplace.patterns import regex
from commonplace.projects import tables

_GO_TEST: Final = regex(r"^(?:ok|FAIL|\?|---)[ \t]+([\w-]+(?:\.[\w-]+)+/[\w./~-]+)", re.MULTILINE)
_GO_RESULTS: Final = ("ok", "FAIL", "?", "---")
"""How the lines of a run of `go test` begin."""
_GO_MODULE: Final = regex(r"^[ \t]*(?:[0-9]+[\t→:|][ \t]*)?module[ \t]+([\w-]+(?:\.[\w-]+)+/[\w./~-]+)", re.MULTILINE)
_JSON_NAME: Final = regex(r'"name"[ \t]*:[ \t]*"([^"\s]{1,200})"')
_TOML_NAME: Final = regex(r"^[ \t]*(?:[0-9]+[\t→:|][ \t]*)?name[ \t]*=[ \t]*[\"']([\w.-]{1,200})[\"']", re.MULTILINE)
_MANIFESTS: Final = {
    "go.mod": ("go", _GO_MODULE),
    "package.json": ("npm", _JSON_NAME),
    "pyproject.toml": ("python", _TOML_NAME),
    "Cargo.toml": ("rust", _TOML_NAME),
}
_OWNED_HOSTS: Final = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "gitea.com"})
"""Hosts on which a module has an owner and a name."""
_LONG: Final = 8

GO: Final = 0.8
TELLING: Final = 0.5
ONE_WORD: Final = 0.2


def may_name_manifest(texts: Iterable[str]) -> bool:
    """Say whether one of some words may be the path of a manifest: a quick look, mostly false."""
    joined = " ".join(texts)
    return any(name in joined for name in _MANIFESTS)


def of_manifests(names: Iterable[str], text: str) -> set[str]:
    """Return the module that a text shows, if it is that of a manifest of one of these names."""
    found: set[str] = set()
    for name in names:
        kind, pattern = _MANIFESTS.get(name, ("", _GO_MODULE))
        shown = pattern.search(text) if kind else None
        if shown:
            found.add(f"{kind}:{_go_module(shown[1]) if kind == 'go' else shown[1].lower()}")
    return found


def of_go_tests(text: str) -> set[str]:
    """Return the modules whose packages a run of `go test` lists."""
    if not text.startswith(_GO_RESULTS) and not any(f"\n{result}" in text for result in _GO_RESULTS):
        return set()
    return {f"go:{_go_module(name)}" for name in _GO_TEST.findall(text)}


def weight(module: str) -> float:
    """Return how much it tells that two folders have the same module."""
    kind, _, name = module.partition(":")
    if kind == "go":
        return GO
    if name in tables.GENERIC_NAMES:
        return 0.0
    letters = sum(letter.isalpha() for letter in name)
    is_telling = name.startswith("@") or any(sign in name.strip("-_.") for sign in "-_.") or letters >= _LONG
    return TELLING if is_telling else ONE_WORD


def _go_module(path: str) -> str:
    """Return the module of a package: host, owner and name; host and name on hosts without owners."""
    parts = path.rstrip("/.").split("/")
    return "/".join(parts[: 3 if parts[0] in _OWNED_HOSTS else 2]).lower()
