"""A PostgreSQL of our own, which can be stopped, started, frozen and reached over a wire that can be cut."""

from __future__ import annotations

import importlib
import os
import selectors
import signal
import socket
import threading
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import psycopg


class OwnServer:
    """A server that nobody else uses.

    Args:
        server: What the wheel `pgserver` started.
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self._folder = server.get_postmaster_info().socket_dir
        self._stopped: list[int] = []

    @property
    def address(self) -> str:
        """Where it is, while it runs."""
        return str(self._server.get_uri())

    @property
    def socket(self) -> Path:
        """The file that it listens on."""
        info = self._server.get_postmaster_info()
        return Path(info.socket_dir) / f".s.PGSQL.{info.port or 5432}"

    def stop(self) -> None:
        """Stop it as a loss of power would: nobody is told, nothing is ended in order."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        """Start it again, where it was; the wheel alone would not wait longer than ten seconds."""
        self._control("-t", "600", "-o", '-h ""', "-o", f"-k {self._folder}", "-l", str(self._server.log), "start")
        self._server.ensure_postgres_running()

    def _control(self, *words: str) -> None:
        commands: Any = importlib.import_module("pgserver._commands")
        commands.pg_ctl(["-w", *words], pgdata=self._server.pgdata, user=self._server.system_user)

    def freeze(self) -> None:
        """Let all of its processes stand still; connections stay, nobody answers."""
        main = self._server.get_pid()
        children = Path(f"/proc/{main}/task/{main}/children").read_text("utf-8").split()
        self._stopped = [main, *map(int, children)]
        for pid in self._stopped:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        for pid in reversed(self._stopped):
            os.kill(pid, signal.SIGCONT)
        self._stopped = []

    def set(self, name: str, value: str) -> None:
        """Change a setting of the server."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")


class Wire:
    """A port that leads to the server, and can be cut: nothing passes then, and nobody is told."""

    def __init__(self, server: OwnServer, host: str = "127.0.0.1") -> None:
        self._target = server.socket
        self._listening = socket.create_server((host, 0))
        self.host, self.port = self._listening.getsockname()[:2]
        self._passes = threading.Event()
        self._passes.set()
        self._selector = selectors.DefaultSelector()
        self._ended, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def address(self, **options: str) -> str:
        """The database's address by way of this wire."""
        return f"postgresql://postgres@{self.host}:{self.port}/postgres?{urlencode(options)}"

    def __enter__(self) -> Self:
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._ended, selectors.EVENT_READ)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._passes.set()
        self._end.close()
        self._thread.join(60)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self._selector.close()

    def cut(self) -> None:
        """Let nothing pass from now on."""
        self._passes.clear()

    def mend(self) -> None:
        """Let everything pass again, what was sent meanwhile too."""
        self._passes.set()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                self._passes.wait()
                source: Any = key.fileobj
                if source is self._ended:
                    return
                if source is self._listening:
                    self._accept()
                elif source.fileno() >= 0:  # the other end may have closed it just now
                    self._pass(source, key.data)

    def _accept(self) -> None:
        client, _ = self._listening.accept()
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self._target))
        except OSError:
            client.close()
            server.close()
            return
        for one, other in ((client, server), (server, client)):
            self._selector.register(one, selectors.EVENT_READ, other)

    def _pass(self, source: Any, target: Any) -> None:
        try:
            data = source.recv(65536)
            if data:
                target.sendall(data)
                return
        except OSError:
            pass
        for each in (source, target):
            self._selector.unregister(each)
            each.close()
