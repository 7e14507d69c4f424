"""The page in a real browser: every page light and dark, wide and narrow, without scripts, and by keys alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import browsers
import pytest
import web_homes as homes
from browsers import Look
from playwright.sync_api import Browser, Page
from serving_web import Visitor, serving

pytestmark = pytest.mark.skipif(browsers.chromium() is None, reason="no Chromium on this machine")
PAGES = {
    "today": "/",
    "memory": "/memory",
    "candidates": "/memory?filter=candidates",
    "review": "/review",
    "sessions": "/sessions",
    "found": "/sessions?q=checkout",
    "long": "/sessions?q=compiles",
    "session": f"/sessions/{homes.HOSTILE}",
    "family": f"/sessions/{homes.HOSTILE}/family",
    "prompt": "/prompt",
    "pipeline": "/pipeline",
    "problem": "/nowhere-to-be-found",
}
LOOKS: list[tuple[Look, int]] = [("light", 1200), ("dark", 1200), ("light", 360), ("dark", 360)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    folder = tmp_path_factory.mktemp("browsed")
    with serving(homes.write(folder / "home"), folder) as found:
        yield found.enter()


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """A second home, for tests that change it."""
    folder = tmp_path_factory.mktemp("changed")
    with serving(homes.write(folder / "home"), folder) as found:
        yield found.enter()


@pytest.fixture(scope="module")
def running(served: Visitor, changed: Visitor) -> Iterator[Browser]:
    """One browser for the module; playwright keeps a loop in this thread, so the homes are written before."""
    del served, changed
    with browsers.browser() as found:
        yield found


def check(tab: browsers.Tab, paths: list[str], *, deep: bool = True) -> None:
    """Open pages; nothing may be wrong on any, and no planted script may have run."""
    wrong: list[str] = []
    for path in paths:
        tab.open(path)
        if path == PAGES["problem"]:
            tab.wrong.clear()  # the console tells of the status of a page that is not there
        tab.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        wrong += [f"{path}: {each}" for each in (tab.problems() if deep else tab.too_wide())]
        assert tab.page.evaluate("window.ran") is None
    assert wrong == []


def entries(served: Visitor) -> list[str]:
    return list(dict.fromkeys(re.findall(r'href="(/entry/m\w{9})"', served.get("/memory").text)))


def test_every_page_fits_a_phone_and_runs_nothing_that_was_stored(running: Browser, served: Visitor) -> None:
    with browsers.tab(running, served, scheme="dark", width=360) as tab:
        check(tab, [*PAGES.values(), *entries(served)[:2]], deep=False)


@pytest.mark.parametrize(
    ("scheme", "width", "pages"), [("light", 1200, ("session", "review")), ("dark", 360, ("today",))]
)
def test_axe_finds_nothing_serious(
    running: Browser, served: Visitor, scheme: Look, width: int, pages: tuple[str, ...]
) -> None:
    if browsers.axe() is None:
        pytest.skip("axe-core is not in the cache; run `make anchors`")
    with browsers.tab(running, served, scheme=scheme, width=width) as tab:
        check(tab, [PAGES[name] for name in pages] + entries(served)[:1])


@pytest.mark.soak
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_every_page_is_sound_in_every_look(running: Browser, served: Visitor, scheme: Look, width: int) -> None:
    if browsers.axe() is None:
        pytest.skip("axe-core is not in the cache; run `make anchors`")
    with browsers.tab(running, served, scheme=scheme, width=width) as tab:
        check(tab, [*PAGES.values(), *entries(served)])


def test_everything_can_be_read_without_scripts(running: Browser, served: Visitor) -> None:
    with browsers.tab(running, served, scripts=False) as tab:
        page = tab.open("/memory")
        page.fill("#q", "pnpm")
        with page.expect_navigation():
            page.press("#q", "Enter")
        for link in ("ol.entries .text", "ol.sources a"):
            with page.expect_navigation():
                page.click(link)
        assert page.locator(".meant").count() == 1
        assert "pnpm" in page.locator(".meant mark").first.inner_text()
        with page.expect_navigation():
            page.click("nav[aria-label=Pages] >> text=Review")
        assert page.locator(".card").count() > 0
        assert page.locator("button:visible >> text=Set").count() == 1  # what scripts do by themselves has a button


CHANGES = {
    "reword": ("summary >> text=Edit the words", "#text", "Always use bun here"),
    "rescope": ("summary >> text=Let it hold elsewhere", "#scope", "global"),
    "join": ("summary >> text=Merge it into another", "#into", None),
    "pin": ("", "", None),
    "drop": ("", "", None),
    "forget": ("", "", None),
}
"""Each change of an entry: what opens its form, the field, and what goes into it."""


def shown(page: Page) -> list[str]:
    """Return the words, the project and the marks of every entry that Memory lists."""
    page.goto(page.url.partition("/entry")[0].partition("/memory")[0] + "/memory")
    rows = page.locator("ol.entries li")
    return sorted(re.sub(r"m\w{9}|\d+ \w+ ago|just now", "", row) for row in rows.all_inner_texts())


def test_every_change_is_made_and_undone_without_scripts(running: Browser, changed: Visitor) -> None:
    with browsers.tab(running, changed, scripts=False) as tab:
        page = tab.open("/memory")
        before = shown(page)
        for kind, (summary, field, value) in CHANGES.items():
            tab.open("/memory")
            with page.expect_navigation():
                page.locator("ol.entries .text", has_text="instead of npm").first.click()
            if summary:
                page.click(summary)
                page.fill(field, value or "") if field == "#text" else page.select_option(
                    field, value=value, index=None if value else 0
                )
            with page.expect_navigation():
                page.click(f"form:has(input[name=kind][value={kind}]) button:visible")
            assert page.locator("ol.differences li").count() > 0, kind
            with page.expect_navigation():
                page.click("form.decide button")
            assert page.locator(".toast button").count() == 1, kind
            undo = page.url
            assert shown(page) != before, kind
            page.goto(undo)
            with page.expect_navigation():
                page.click(".toast button")
            assert "taken back" in page.locator(".toast").inner_text() or kind == "forget"
            after = shown(page)
            assert (after == before) or (kind == "forget" and len(after) == len(before)), kind


def test_decisions_ranks_looks_and_learning_need_no_scripts(running: Browser, changed: Visitor) -> None:
    with browsers.tab(running, changed, scripts=False) as tab:
        page = tab.open("/review")
        texts = page.locator(".card > p.said").all_inner_texts()
        for verdict in ("Keep", "Drop"):
            with page.expect_navigation():
                page.locator(".card").first.get_by_role("button", name=verdict).click()
            assert page.locator(".card > p.said").all_inner_texts() == texts[1:]
            with page.expect_navigation():
                page.click(".toast button")
            tab.open("/review")
            assert page.locator(".card > p.said").all_inner_texts() == texts
        tab.open("/prompt?project=github.com/acme/shop")
        lines = page.locator("tr[data-drag]").all_inner_texts()
        with page.expect_navigation():
            page.locator("a[aria-label='Try it lower']").first.click()
        with page.expect_navigation():
            page.click("#trial button")
        assert page.locator("tr[data-drag]").count() == len(lines)
        assert page.locator(".toast button").count() == 1
        with page.expect_navigation():
            page.select_option("#theme", "dark")
            page.click("text=Set")
        assert page.locator("html[data-theme=dark]").count() == 1
        tab.open("/pipeline")
        for name, then in (("Pause the background", "Go on by itself"), ("Go on by itself", "Pause the background")):
            with page.expect_navigation():
                page.get_by_role("button", name=name).click()
            assert page.get_by_role("button", name=then).count() == 1


def test_an_entry_is_found_as_one_types_and_changed_by_keys_alone(running: Browser, served: Visitor) -> None:
    with browsers.tab(running, served) as tab:
        page = tab.open("/memory")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("/")
        with page.expect_response(re.compile("part=1")):
            page.keyboard.type("pnpm instead")
        page.locator(".count", has_text="pnpm instead").wait_for()
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert "pnpm" in page.locator("h1").inner_text()
        page.keyboard.press("e")
        page.keyboard.press("Control+A")
        page.keyboard.type("Always use bun here, pnpm is history")
        page.keyboard.press("Tab")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.locator("ins >> text=bun").count() == 1
        assert tab.problems() == []
        with page.expect_navigation():
            page.keyboard.press("y")
        assert "bun" in page.locator("h1").inner_text()
        assert page.locator(".toast").inner_text().startswith("The entry has new words.")
        with page.expect_navigation():
            page.keyboard.press("u")
        assert "taken back" in page.locator(".toast").inner_text()
        assert page.locator("text=instead of npm").count() == 1


def test_a_review_is_done_by_single_keys(running: Browser, served: Visitor) -> None:
    with browsers.tab(running, served) as tab:
        page = tab.open("/review")
        texts = page.locator(".card > p.said").all_inner_texts()
        assert len(texts) > 1
        with page.expect_navigation():
            page.keyboard.press("d")
        assert page.locator(".card > p.said").all_inner_texts() == texts[1:]
        with page.expect_navigation():
            page.keyboard.press("u")
        page = tab.open("/review")
        assert page.locator(".card > p.said").all_inner_texts() == texts
        page.keyboard.press("n")
        assert page.locator(".card.on > p.said").inner_text() == texts[1]
        with page.expect_navigation():
            page.keyboard.press("e")
        assert page.locator("h1").inner_text() == texts[1]


def test_a_line_of_the_prompt_is_dragged_and_the_difference_is_shown(running: Browser, served: Visitor) -> None:
    with browsers.tab(running, served) as tab:
        page = tab.open("/prompt?project=github.com/acme/shop")
        rows = page.locator("tr[data-drag]")
        last = rows.count() - 1
        with page.expect_navigation():
            rows.nth(last).drag_to(rows.nth(0))
        assert page.locator("#trial").count() == 1
        assert page.locator("tr[data-drag]").count() == last + 1


def test_the_look_is_chosen_and_stays(running: Browser, served: Visitor) -> None:
    with browsers.tab(running, served) as tab:
        page = tab.open("/memory")
        light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        with page.expect_navigation():
            page.select_option("#theme", "dark")
        assert page.url.endswith("/memory")
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light
        assert tab.problems() == []
        with page.expect_navigation():
            page.select_option("#theme", "")
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == light


def test_an_image_of_a_session_is_shown_and_one_that_could_hold_a_program_is_not(
    running: Browser, served: Visitor
) -> None:
    with browsers.tab(running, served) as tab:
        page = tab.open(f"/sessions/{homes.HOSTILE}")
        shots = page.locator("img.shot")
        assert shots.count() == 1
        shots.first.scroll_into_view_if_needed()
        shots.first.evaluate("shot => shot.complete || new Promise(done => shot.onload = shot.onerror = done)")
        assert shots.first.evaluate("shot => shot.naturalWidth") == 1
