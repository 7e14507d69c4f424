"""Addresses of repositories in the texts that programs print, as identities (`host/owner/name`)."""

from __future__ import annotations

import re
from typing import Final

from commonplace.patterns import regex
from commonplace.projects import tables
from commonplace.protocol.remotes import remote_identity

_URL: Final = regex(r"\b(?:https?|ssh|git)://[^\s\"'<>()\[\]{}|\\^`,;]+|\bgit@[\w.-]+:[\w./~-]+")
_REMOTE: Final = regex(r"^(\S+)\t(\S+) \((?:fetch|push)\)", re.MULTILINE)
_TRANSFER: Final = regex(r"^(?:To|From) (\S+)", re.MULTILINE)
_API: Final = regex(r"\brepos/([\w.-]+)/([\w.-]+)")
_PAGE: Final = regex(r"https?://[\w.-]+/[\w./~-]+?/(?:pull|pulls|issues|merge_requests|actions|releases)/")
_OWNER_AND_NAME: Final = 2


def remotes(text: str) -> dict[str, str]:
    """Return the identity of each remote that `git remote -v` printed, by the remote's name."""
    found = {name: remote_identity(url) for name, url in _REMOTE.findall(text)}
    return {name: identity for name, identity in found.items() if identity}


def transfers(text: str) -> set[str]:
    """Return the repositories that a push, a fetch or a pull printed to have reached."""
    return {identity for url in _TRANSFER.findall(text) if (identity := remote_identity(url))}


def mentioned(text: str) -> set[str]:
    """Return the repositories whose addresses stand in a text, also as part of the address of a page."""
    if "://" not in text and "git@" not in text:
        return set()
    return {identity for url in _URL.findall(text) if (identity := _repository(url))}


def of_pages(text: str) -> set[str]:
    """Return the repositories of which a text names pull requests, issues, runs or releases."""
    return {identity for url in _PAGE.findall(text) if (identity := _repository(url))}


def of_api_call(command: str) -> set[str]:
    """Return the repositories of GitHub that `gh api repos/OWNER/NAME/…` asks about."""
    return {f"github.com/{owner}/{name}".lower() for owner, name in _API.findall(command)}


def _repository(url: str) -> str | None:
    """Return the repository that the address of a page belongs to; None where the host is not one of repositories."""
    identity = remote_identity(url.partition("?")[0].partition("#")[0].rstrip(".:!*_"))
    if identity is None:
        return None
    host, *path = identity.replace("api.github.com/repos/", "github.com/", 1).split("/")
    if tables.HOST.fullmatch(host) is None or len(path) < _OWNER_AND_NAME or path[0] in tables.HOST_PAGES:
        return None
    if "-" in path[1:]:  # GitLab has groups in groups; its pages begin with `-`
        path = path[: path.index("-")]
    elif not host.startswith("gitlab"):
        path = path[:_OWNER_AND_NAME]
    return f"{host}/{'/'.join(path)}".removesuffix(".git")
