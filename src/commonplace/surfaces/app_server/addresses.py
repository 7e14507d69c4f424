"""Where a server listens and where a client finds it: a socket file in the home, or a port of this machine.

The folder `app-server` of a home holds the socket, its lock and the token of the ports. Only their owner can open them.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from commonplace.errors import BadInput
from commonplace.rollout.private_folders import make_private
from commonplace.surfaces import loopback

FOLDER: Final = "app-server"
TOKEN_VARIABLE: Final = "COMMONPLACE_APP_SERVER_TOKEN"  # noqa: S105  # the variable's name, not a token
_LONGEST: Final = 107
"""Bytes of a socket's path, by the kernel."""
_HOW: Final = "Use stdio://, unix://, unix://PATH or ws://127.0.0.1:PORT."


class SocketFile(msgspec.Struct, frozen=True):
    """A Unix socket."""

    path: Path


class LoopbackPort(msgspec.Struct, frozen=True):
    """A port of this machine; 0 is any free one."""

    port: int


Address = SocketFile | LoopbackPort


def parse(text: str, home: Path) -> Address | None:
    """Return what an address means; None is stdin and stdout (raises BadInput)."""
    if text == "stdio://":
        return None
    if text.startswith("unix://"):
        return socket_file(text.removeprefix("unix://"), home)
    if text.startswith("ws://"):
        return LoopbackPort(_port(text))
    raise BadInput(f"The server cannot listen on {text!r}.", hint=_HOW)


def socket_file(path: str, home: Path) -> SocketFile:
    """Return the socket at a path, the home's own if that is empty (raises BadInput: the path is too long)."""
    chosen = Path(path).expanduser().absolute() if path else home / FOLDER / "app-server.sock"
    if len(os.fsencode(chosen)) > _LONGEST:
        hint = f"A socket's path has at most {_LONGEST} bytes; use unix://PATH with a shorter one."
        raise BadInput(f"{chosen} is too long for a socket.", hint=hint)
    return SocketFile(chosen)


def _port(text: str) -> int:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise BadInput(f"{text!r} is no address.", hint=_HOW) from None
    if port is None or parts.path not in ("", "/") or parts.query or parts.username is not None:
        raise BadInput(f"{text!r} is no address.", hint=_HOW)
    if host != "localhost" and not _is_loopback(host):
        raise BadInput(f"The server listens on this machine only, not on {host!r}.", hint="Use ws://127.0.0.1:PORT.")
    return port


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host) == ipaddress.IPv4Address("127.0.0.1")
    except ValueError:
        return False


@contextmanager
def bound(address: Address) -> Generator[socket.socket]:
    """Listen on an address as long as the block lasts (raises BadInput: it cannot be used)."""
    if isinstance(address, LoopbackPort):
        with loopback.listen(address.port) as listening:
            yield listening
        return
    with _alone(address.path):
        listening = _listen(address.path)
        try:
            yield listening
        finally:
            listening.close()
            with suppress(OSError):
                address.path.unlink()


def _listen(path: Path) -> socket.socket:
    """Return a socket that only its owner can connect to; one that a dead server left behind is replaced."""
    if path.is_socket():
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise BadInput(f"{path} cannot be used: {error.strerror}.", hint="Choose another with unix://PATH.") from None
    finally:
        os.umask(before)
    return listening


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Keep other servers from a socket's path (raises BadInput: one has it, or there is no way to it)."""
    try:
        make_private(path.parent)
        descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(f"{path} cannot be used: {error.strerror}.", hint="Choose another with unix://PATH.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        hint = "Connect to it, end it, or choose another with unix://PATH."
        raise BadInput(f"A server listens on {path} already.", hint=hint) from None
    try:
        yield
    finally:
        os.close(descriptor)


def token_file(home: Path) -> Path:
    """Return the file that holds the token of a home's ports."""
    return home / FOLDER / "token"


def token(home: Path, environment: Mapping[str, str]) -> str:
    """Return the token that clients of a port must show: the environment's, else the home's, which is made once.

    Raises:
        BadInput: the environment's is no good.
    """
    made, is_new = loopback.token(environment, TOKEN_VARIABLE)
    if not is_new:
        return made
    path = token_file(home)
    make_private(path.parent)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return path.read_text("ascii").strip()
    with os.fdopen(descriptor, "w") as file:
        file.write(made + "\n")
    return made
