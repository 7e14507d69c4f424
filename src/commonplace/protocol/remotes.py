"""A repository's identity from its remote URL: `host/owner/name`, lower case, without scheme, user, port, `.git`."""

from __future__ import annotations

import re

_SCP = re.compile(r"(?:[^@/]+@)?(?P<host>[^:/]+):(?P<path>[^/].*|/.+)")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^@/]*@)?(?P<host>\[[^\]]+\]|[^:/]+)(?::\d+)?/(?P<path>.+)", re.IGNORECASE)


def remote_identity(url: str) -> str | None:
    """Return the identity of a remote, or None when the text names no host (a local path, say)."""
    text = url.strip()
    if re.match(r"file://", text, re.IGNORECASE) or re.match(r"[A-Za-z]:[\\/]", text):
        return None
    found = _URL.fullmatch(text) or (None if "://" in text else _SCP.fullmatch(text))
    if found is None:
        return None
    path = re.sub(r"/+", "/", found["path"]).strip("/")
    path = path[:-4] if path.lower().endswith(".git") else path
    return f"{found['host']}/{path}".lower() if path else None
