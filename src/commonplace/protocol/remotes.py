"""A repository's identity from its remote URL: `host/owner/name`, lower case, without scheme, user, port, `.git`.

However a remote is spelt, one repository has one identity; and whatever was put into a URL to log in, none of it
becomes part of an identity.
"""

from __future__ import annotations

import re
from typing import Final

from commonplace.patterns import regex

_USER = r"(?:[^/]*@)?"
_HOST = r"(?P<host>\[[^\[\]/@]+\]|[^:/@\[\]]+)"
_SCP = regex(_USER + _HOST + r":(?P<path>[^/].*|/.+)", re.DOTALL)
_URL = regex(r"[a-z][a-z0-9+.-]*://" + _USER + _HOST + r"(?::\d*)?/(?P<path>.+)", re.IGNORECASE)

_HELPER = regex(r"[A-Za-z0-9_-]+::")
"""Addresses for a remote helper (`ext::…`, `codecommit::…`): what they mean only the helper knows."""

_SAME_HOST: Final = {
    "www.github.com": "github.com",
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
"""Other names of hosts, mostly for SSH on the port of HTTPS."""
_AZURE_SSH = regex(r"(?:ssh\.dev\.azure\.com|vs-ssh\.visualstudio\.com)/v3/([^/]+)/([^/]+)/([^/]+)")
_AZURE_OLD = regex(r"([^./]+)\.visualstudio\.com/(?:defaultcollection/)?(.+)")


_COMMIT = regex(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_commit(identity: str) -> bool:
    """Say whether an identity is that of a repository's first commit, not of a remote."""
    return _COMMIT.fullmatch(identity) is not None


def remote_identity(url: str) -> str | None:
    """Return the identity of a remote, or None when the text names no host (a local path, say)."""
    text = url.strip()
    if "\n" in text or re.match(r"file:", text, re.IGNORECASE) or re.match(r"[A-Za-z]:[\\/]", text):
        return None
    found = _URL.fullmatch(text)
    if found is None and "://" not in text and not _HELPER.match(text):
        found = _SCP.fullmatch(text)
    if found is None:
        return None
    path = re.sub(r"/+", "/", found["path"]).strip("/")
    path = path[:-4] if path.lower().endswith(".git") else path
    host = found["host"].lower().rstrip(".")
    return _canonical(f"{_SAME_HOST.get(host, host)}/{path}".lower()) if path and host else None


def _canonical(identity: str) -> str:
    """Give the repositories of Azure DevOps, which has a different path for each way in, the one of HTTPS."""
    if found := _AZURE_SSH.fullmatch(identity):
        return f"dev.azure.com/{found[1]}/{found[2]}/_git/{found[3]}"
    if found := _AZURE_OLD.fullmatch(identity):
        return f"dev.azure.com/{found[1]}/{found[2]}"
    return identity
