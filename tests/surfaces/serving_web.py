"""`commonplace web` as a process of its own, and a visitor that speaks HTTP to it as a browser would."""

from __future__ import annotations

import http.client
import re
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import processes

CSRF = re.compile(r'name="csrf" value="([^"]+)"')


@dataclass(frozen=True)
class Seen:
    """What the server said to one request."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def plain(self) -> str:
        """The text of the page, without tags, its entities resolved."""
        return " ".join(unescape(re.sub(r"<[^>]*>", "", self.text)).split())


@dataclass
class Visitor:
    """One browser: it keeps its cookie, and sends what browsers send."""

    port: int
    token: str
    cookies: dict[str, str] = field(default_factory=dict[str, str])
    csrf: str = ""

    def ask(
        self, path: str, form: Mapping[str, str] | None = None, method: str | None = None, **headers: str | None
    ) -> Seen:
        """Send one request; a header of None is left out."""
        sent: dict[str, str | None] = {"sec-fetch-site": "same-origin"}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if form is not None:
            sent |= {"content-type": "application/x-www-form-urlencoded", "origin": f"http://127.0.0.1:{self.port}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = urlencode(form) if form is not None else None
        kept = {name: value for name, value in sent.items() if value is not None}
        connection.request(method or ("GET" if form is None else "POST"), path, body, kept)
        try:
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            if cookie := told.get("set-cookie"):
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value
            text = answer.read().decode("utf-8", "replace")
        finally:
            connection.close()
        if found := CSRF.search(text):
            self.csrf = found[1]
        return Seen(answer.status, told, text)

    def enter(self) -> Visitor:
        """Show the token, once."""
        assert self.ask(f"/enter?token={self.token}", sec_fetch_site="none").status == 200
        assert self.ask("/").status == 200
        return self

    def get(self, path: str) -> Seen:
        """Open a page; it must be there."""
        found = self.ask(path)
        assert found.status == 200, (path, found.status, found.plain[:400])
        return found

    def post(self, path: str, **form: str) -> Seen:
        """Send a form as a page of the server would, and follow where it leads."""
        found = self.ask(path, {"csrf": self.csrf, **form})
        while found.status == 303:
            found = self.ask(found.headers["location"])
        return found


@contextmanager
def serving(environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> Generator[Visitor]:
    """Start the page, yield somebody who knows its token, and end it in order."""
    process = processes.Process(["web"], text=True, env=environment, cwd=cwd)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/enter\?token=(\S+)", line)
        assert found, line + process.stderr.read()
        process.stdout.readline()
        yield Visitor(int(found[1]), found[2])
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(100)
        process.stdout.close()
        process.stderr.close()
