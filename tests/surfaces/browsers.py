"""The system's Chromium, driven by playwright, and axe-core from the cache of pinned programs; None where missing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, Request, sync_playwright
from serving_web import Visitor

from anchors.fetch import cache as anchors

Look = Literal["light", "dark"]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


def chromium() -> str | None:
    """Return the system's Chromium."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@cache
def axe() -> str | None:
    """Return the script that looks for what keeps people out."""
    place = anchors() / "axe-core" / "node_modules" / "axe-core" / "axe.min.js"
    return place.read_text("utf-8") if place.is_file() else None


@contextmanager
def browser() -> Generator[Browser]:
    """Start one Chromium, and end it."""
    path = chromium()
    assert path is not None
    variables: dict[str, str | float | bool] = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent"}
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=FLAGS, env=variables)
        try:
            yield found
        finally:
            found.close()


@dataclass
class Tab:
    """A page of the browser, and everything that went wrong in it."""

    page: Page
    base: str
    wrong: list[str] = field(default_factory=list[str])

    def open(self, path: str) -> Page:
        """Open a page of the server."""
        self.page.goto(self.base + path)
        return self.page

    def problems(self) -> list[str]:
        """Return what axe finds that is serious, and whatever is wider than the window."""
        script = axe()
        found: list[str] = []
        if script is not None:
            self.page.evaluate(script)
            result: Any = self.page.evaluate("tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})", TAGS)
            found = [
                f"{each['id']}: {each['help']} {json.dumps([node['target'] for node in each['nodes'][:3]])}"
                for each in result["violations"]
                if each["impact"] in ("serious", "critical")
            ]
        return found + self.too_wide()

    def too_wide(self) -> list[str]:
        """Return the page if it is wider than the window."""
        size: Any = self.page.viewport_size
        width = self.page.evaluate("document.documentElement.scrollWidth")
        return [f"{self.page.url} is {width} pixels wide"] if width > size["width"] else []


def is_icon(lost: Request) -> bool:
    """Say whether a request was for the icon: a browser ends it when it goes to another page before the icon came."""
    return lost.url.endswith("/static/icon.svg")


def failure(lost: Request) -> str:
    """Return the address and the reason of a request that failed."""
    return f"{lost.url} {lost.failure}"


@contextmanager
def tab(
    running: Browser,
    visitor: Visitor,
    *,
    scheme: Look = "light",
    width: int = 1200,
    scripts: bool = True,
) -> Generator[Tab]:
    """Open a tab that has the visitor's cookie; nothing may go to the console."""
    context: BrowserContext = running.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=scripts, bypass_csp=False
    )
    try:
        context.add_cookies(
            [
                {"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}
                for name, value in visitor.cookies.items()
            ]
        )
        context.route("**/*", lambda route: route.continue_() if "127.0.0.1" in route.request.url else route.abort())
        made = Tab(context.new_page(), f"http://127.0.0.1:{visitor.port}")
        made.page.on("console", lambda said: made.wrong.append(f"{said.type}: {said.text}"))
        made.page.on("pageerror", lambda error: made.wrong.append(str(error)))
        made.page.on("requestfailed", lambda lost: None if is_icon(lost) else made.wrong.append(failure(lost)))
        yield made
        assert made.wrong == [], made.wrong
    finally:
        context.close()
