"""Who may use the page: the token, the cookie, the names in Host and Origin, the secret of forms, and the headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import taught_homes as taught
import web_homes as homes
from command import Command
from serving_web import Visitor, serving

from ledgers import Script, user

PAGES = (
    "/", "/memory", "/memory?filter=candidates", "/memory?filter=duplicates", "/memory?filter=stale",
    "/memory?filter=unused", "/memory?filter=recent", "/memory?filter=pinned", "/memory?filter=doubtful",
    "/memory?q=script", "/review", "/sessions", "/sessions?q=script", "/sessions?archived=1",
    f"/sessions/{homes.HOSTILE}", f"/sessions/{homes.HOSTILE}/family", f"/sessions/{homes.HOSTILE}?at=0",
    "/prompt", "/pipeline",
)  # fmt: skip
EXPORTS = (f"/sessions/{homes.HOSTILE}/export", f"/sessions/{homes.HOSTILE}/export?at=0")
CHANGES = ("/undo", "/theme", "/entry/m000000000/preview", "/entry/m000000000/change", "/review/decide",
           "/review/finish", "/prompt/rank", "/pipeline/act")  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    folder = tmp_path_factory.mktemp("web")
    homes.hostile().write(folder, "there.jsonl")  # a session file in the folder that the server runs in
    with serving(homes.write(folder / "home"), folder) as found:
        yield found.enter()


def stranger(served: Visitor) -> Visitor:
    return Visitor(served.port, served.token)


@pytest.mark.parametrize("path", [*PAGES, *CHANGES, "/static/web.css", "/static/web.js", "/favicon.ico", "/nowhere"])
def test_nothing_is_shown_without_the_cookie(served: Visitor, path: str) -> None:
    found = stranger(served).ask(path)

    assert found.status == 401
    assert "commonplace web" in found.text
    assert len(found.text) < 200


def test_the_token_works_once(served: Visitor) -> None:
    again = stranger(served).ask(f"/enter?token={served.token}")

    assert (again.status, again.headers.get("set-cookie")) == (403, None)


@pytest.mark.parametrize("token", ["", "x", "é", "%00", "a" * 10_000])
def test_a_wrong_token_opens_nothing(served: Visitor, token: str) -> None:
    found = stranger(served).ask(f"/enter?token={token.encode().hex() if token == 'é' else token}")

    assert (found.status, found.headers.get("set-cookie")) == (403, None)


def test_the_cookie_is_for_this_server_alone_and_for_no_script(tmp_path: Path) -> None:
    with serving(homes.environment(tmp_path / "home"), tmp_path) as fresh:
        peek = fresh.ask(f"/enter?token={fresh.token}", method="HEAD")
        assert peek.status == 403  # a program that looks at addresses does not use the token up
        found = fresh.ask(f"/enter?token={fresh.token}")

        name, _, rest = found.headers["set-cookie"].partition("=")
        assert name == f"commonplace_{fresh.port}"
        assert rest.partition("; ")[2] == "Path=/; HttpOnly; SameSite=Strict"
        assert fresh.get("/").status == 200
        assert "Nothing yet" in fresh.get("/").plain


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1.evil.example:80"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "https://127.0.0.1"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/static/web.css", "/memory?q=x&part=1"])
def test_requests_of_other_pages_are_refused(served: Visitor, headers: dict[str, str], path: str) -> None:
    assert served.ask(path, None, None, **headers).status == 403


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize("kind", ["no secret", "wrong secret", "other origin", "no origin", "json", "get"])
def test_a_change_without_the_secret_of_a_form_is_refused(served: Visitor, path: str, kind: str) -> None:
    form = {"csrf": served.csrf, "kind": "forget", "action": "pause", "theme": "dark"}
    match kind:
        case "no secret":
            found = served.ask(path, {**form, "csrf": ""})
        case "wrong secret":
            found = served.ask(path, {**form, "csrf": served.csrf[::-1]})
        case "other origin":
            found = served.ask(path, form, origin="http://localhost:1")
        case "no origin":
            found = served.ask(path, form, origin=None)
        case "json":
            found = served.ask(path, form, content_type="text/plain")
        case _:
            found = served.ask(path)

    assert found.status == {"json": 413, "get": 405}.get(kind, 403)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(served: Visitor, method: str) -> None:
    assert served.ask("/memory", method=method).status == 405


def test_a_form_that_is_too_large_is_refused(served: Visitor) -> None:
    assert served.ask("/undo", {"csrf": served.csrf, "id": "x" * 300_000}).status == 413


@pytest.mark.parametrize("path", [*PAGES, "/nowhere", "/static/web.js"])
def test_every_answer_forbids_what_is_not_ours(served: Visitor, path: str) -> None:
    found = served.ask(path)

    policy = found.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["referrer-policy"] == "same-origin"
    assert found.headers["cache-control"] == "no-store"
    assert "server" not in found.headers


@pytest.mark.parametrize("path", [*PAGES, *EXPORTS])
def test_characters_that_deceive_are_shown_by_their_numbers(served: Visitor, path: str) -> None:
    found = served.get(path).text

    assert re.findall("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", found) == []
    assert homes.SECRET not in re.sub(r' (?:value|href)="[^"]*"', "", found)  # which name a project by its folder
    assert r"\u202egpj.exe\u202c" in found or homes.HOSTILE not in path or "family" in path


@pytest.mark.parametrize("number", ["9" * 13, "9" * 15, "9" * 30, "9" * 5000, "-1", "1e9", "%D9%A3", "%00", "x"])
@pytest.mark.parametrize(
    "path", ["?at=N", "?before=N", "?after=N", "/line/N", "/image/N/0", "/image/0/N", "/export?at=N"]
)
def test_numbers_that_no_file_has_break_nothing(served: Visitor, path: str, number: str) -> None:
    found = served.ask(f"/sessions/{homes.HOSTILE}{path}".replace("N", number))

    assert found.status in (200, 404)


@pytest.mark.parametrize(
    "query", ["folder=/%00", "folder=~nobody-is-called-this", "budget=" + "9" * 5000, "folder=/" + "a" * 9000]
)
def test_a_folder_or_a_number_that_cannot_be_is_said_in_a_sentence(served: Visitor, query: str) -> None:
    found = served.ask(f"/prompt?{query}")

    assert found.status in (200, 400, 503)
    assert "Broken" not in found.plain


def test_a_session_that_came_meanwhile_is_found_and_one_that_went_is_said_in_a_sentence(tmp_path: Path) -> None:
    with serving(homes.write(tmp_path / "home"), tmp_path) as fresh:
        fresh.enter().get("/sessions?q=script")
        Script("0198c0de-0000-7000-8000-0000000000e9").turn(user("where do zebrafish sleep?")).write_home(
            tmp_path / "home"
        )
        assert "1 passage for" in fresh.get("/sessions?q=zebrafish").plain
        next((tmp_path / "home").rglob(f"rollout-*{homes.HOSTILE}*")).unlink()
        for path in ("", "/export", "/family", "/line/0", "/image/0/0"):
            found = fresh.ask(f"/sessions/{homes.HOSTILE}{path}")
            assert (found.status in (404, 503), "Broken" in found.plain) == (True, False), (path, found.plain)


def test_a_sub_agent_of_a_later_month_is_shown_and_a_source_whose_session_is_gone_leads_nowhere(tmp_path: Path) -> None:
    variables = homes.write(tmp_path / "home")
    late = Script("019bc0de-0000-7000-8000-0000000000d1", parent_thread_id=taught.SHOP, source={"subagent": "review"})
    late.turn(user("look for flaky tests")).write(tmp_path / "home/sessions/2026/01/15")
    next((tmp_path / "home").rglob(f"rollout-*{taught.BLOG}*")).unlink()

    with serving(variables, tmp_path) as fresh:
        fresh.enter().get("/sessions?q=flaky")
        assert "look for flaky tests" in fresh.get(f"/sessions/{taught.SHOP}/family").plain
        (entry,) = set(
            re.findall(r'href="(/entry/m\w{9})"[^>]*>[^<]*deploy from the release', fresh.get("/memory").text)
        )
        shown = fresh.get(entry)
        assert "a session that is no longer here" in shown.plain
        assert f'href="/sessions/{taught.BLOG}' not in shown.text


@pytest.mark.parametrize("path", PAGES)
def test_no_stored_text_becomes_markup(served: Visitor, path: str) -> None:
    found = served.get(path).text

    assert set(re.findall(r"<script\b[^>]*>", found)) <= {'<script src="/static/web.js" defer>'}
    assert "<img src=x" not in found
    assert "<svg onload" not in found
    assert not re.search(r"\son\w+\s*=", re.sub(r'"[^"]*"', "", re.sub(r">[^<]*<", "><", found)))
    assert not re.search(r"\sstyle=", re.sub(r">[^<]*<", "><", found))
    assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', found)


@pytest.mark.parametrize(
    "path",
    [
        "/static/..%2f..%2faccess.py", "/static/../access.py", "/static/%2e%2e/web.css", "/static/web.css%00",
        "/sessions/..%2f..%2fconfig.toml", "/sessions/%2Fetc%2Fpasswd", "/sessions/....jsonl",
        "/sessions/there.jsonl", "/sessions/there.jsonl/export", "/sessions/0198c0de",
        "/sessions/x/export", "/entry/..%2f..", "/entry/%3Cscript%3E",
    ],
)  # fmt: skip
def test_addresses_name_no_files(served: Visitor, path: str) -> None:
    found = served.ask(path)

    assert found.status in (400, 404)
    assert "root:" not in found.text
    assert "<script>" not in found.text


def test_the_prompt_page_asks_for_a_whole_path(served: Visitor) -> None:
    assert served.ask("/prompt?folder=../../etc").status == 400
    assert "root:" not in served.get("/prompt?folder=/etc/passwd").text


def test_the_theme_leads_back_into_the_page_only(served: Visitor) -> None:
    for back in ("//evil.example", "https://evil.example", "/\\evil.example"):
        found = served.ask("/theme", {"csrf": served.csrf, "theme": "dark", "back": back})
        assert found.headers["location"].startswith("/")
        assert not found.headers["location"].startswith(("//", "/\\"))
    assert 'data-theme="dark"' in served.get("/memory").text
    served.post("/theme", theme="", back="/memory")
    assert "data-theme" not in served.get("/memory").text


def test_a_port_that_is_taken_is_said_in_one_sentence(served: Visitor, commonplace: Command) -> None:
    ran = commonplace("web", "--port", served.port)

    assert ran.code == 1
    assert ran.err.startswith(f"commonplace: Port {served.port} cannot be used")
