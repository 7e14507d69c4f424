"""Stores to keep ledgers in: a folder, and a server that speaks S3 on loopback, for the same bodies of tests."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import subprocess
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.fixtures import SubRequest

from anchors import fetch
from commonplace.rollout.store.home_store import HomeStore
from commonplace.rollout.store.object_store import ObjectStore

SECRET = "AKIASECRETSECRET1234"


@dataclass
class Place:
    """A store: its address, and the variables that lead to it."""

    address: str
    variables: dict[str, str]
    folder: Path | None

    def home(self, path: Path) -> HomeStore:
        """Return the store as a home uses it, as a process would that starts now."""
        return HomeStore(path, self.address, self.variables)

    def objects(self) -> dict[str, int]:
        """Return the size of every object."""
        return {each.key: each.size for each in self.raw().list("")}

    def raw(self) -> ObjectStore:
        return ObjectStore(self.address, self.variables)

    @contextlib.contextmanager
    def away(self) -> Generator[None]:
        """Let nobody who opens the store reach it."""
        if self.folder is not None:
            hidden = self.folder.with_name("away")
            self.folder.rename(hidden)
            self.folder.write_bytes(b"no folder")
            yield
            self.folder.unlink()
            hidden.rename(self.folder)
            return
        endpoint = self.variables["AWS_ENDPOINT_URL"]
        with socket.socket() as unused:  # it is bound and does not listen: connections are refused
            unused.bind(("127.0.0.1", 0))
            self.variables["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{unused.getsockname()[1]}"
            yield
        self.variables["AWS_ENDPOINT_URL"] = endpoint


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of a server that speaks S3."""
    if not fetch.has_s3_server():
        pytest.skip("no S3 server in the cache: make anchors")
    words = [str(fetch.s3_server()), "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = None
    for line in process.stderr:
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            break
    assert found is not None
    with subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL):  # nobody else reads what it says
        process.stderr.close()
        yield found[0]
        process.kill()
        process.wait()


@pytest.fixture
def s3_place(s3_server: str, tmp_path: Path) -> Place:
    """An empty bucket."""
    bucket = re.sub(r"[^a-z0-9]+", "-", f"b{tmp_path.name}".lower())[:60].strip("-")
    connection = http.client.HTTPConnection(s3_server.removeprefix("http://"))
    connection.request("PUT", f"/{bucket}", body=b"", headers={"Content-Length": "0"})
    assert connection.getresponse().status == 200
    connection.close()
    keys = {"AWS_ACCESS_KEY_ID": SECRET, "AWS_SECRET_ACCESS_KEY": f"{SECRET}abc", "AWS_REGION": "us-east-1"}
    return Place(f"s3://{bucket}/team/ledgers", {**keys, "AWS_ENDPOINT_URL": s3_server}, None)


@pytest.fixture(params=["file", "s3"])
def place(request: SubRequest, tmp_path: Path) -> Place:
    """An empty store of each kind."""
    if request.param == "s3":
        return request.getfixturevalue("s3_place")
    folder = tmp_path / "store"
    folder.mkdir()
    return Place(folder.as_uri(), {}, folder)
