"""The window of a model that the catalogue does not know: asked for, or assumed to be small."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from commonplace.models.catalog import model_info
from commonplace.models.providers import Choice, Provider
from commonplace.models.window import with_window

pytestmark = pytest.mark.anyio
SMALL = 32_768


@contextmanager
def served(documents: Mapping[str, Any]) -> Generator[str]:
    """A server that answers some addresses with JSON, or with the text that stands for it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = documents.get(self.path)
            self.send_response(200 if found is not None else 404)
            self.end_headers()
            self.wfile.write(found.encode() if isinstance(found, str) else json.dumps(found).encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def named(url: str, models: Mapping[str, Any] | None = None) -> Choice:
    return Choice("here", Provider(api="chat", base_url=url), "tiny", model_info("tiny", models))


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ({"/v1/models": {"data": [{"id": "tiny", "max_model_len": 8192}]}}, 8192),
        ({"/v1/models": {"data": [{"id": "big", "max_model_len": 9}, {"id": "tiny", "context_length": 4096}]}}, 4096),
        ({"/v1/models": {"data": [{"id": "x.gguf", "meta": {"n_ctx_train": 131072, "n_ctx": 2048}}]}}, 2048),
        ({"/props": {"default_generation_settings": {"n_ctx": 1024}}}, 1024),
        ({"/v1/models": {"data": [{"id": "big"}, {"id": "other", "max_model_len": 8192}]}}, SMALL),
        ({"/v1/models": {"data": "none"}}, SMALL),
        ({"/v1/models": "<html>"}, SMALL),
        ({"/v1/models": {"data": [{"id": "tiny", "max_model_len": -5}]}}, SMALL),
        ({}, SMALL),
    ],
    ids=["vLLM", "by name", "llama.cpp", "props", "others only", "odd", "a page", "nonsense", "nothing"],
)
async def test_the_server_is_asked_and_what_it_does_not_say_is_small(documents: dict[str, Any], expected: int) -> None:
    with served(documents) as url:
        found = await with_window(named(url), {})

    assert (expected, expected != SMALL) == (found.info.window, found.info.known)


async def test_a_server_that_is_not_there_leaves_the_cautious_value() -> None:
    assert SMALL == (await with_window(named("http://127.0.0.1:9/v1"), {})).info.window


async def test_what_the_catalogue_or_the_settings_know_is_not_asked_for() -> None:
    known = named("http://127.0.0.1:9/v1", {"tiny": {"window": 5_000}})

    assert known is await with_window(known, {})
