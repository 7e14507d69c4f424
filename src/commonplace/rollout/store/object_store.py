"""An object store by its address: `s3://bucket/prefix`, or `file:///folder` for a disk that several hosts share.

Objects are made and removed, never changed: `create` refuses a key that is taken. `obstore` does the work for both
kinds and is imported when a store is first used. Credentials and an endpoint of one's own (`AWS_ENDPOINT_URL`) come
from the environment. Nothing that a store answers is shown: an answer may repeat an address or a key.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import msgspec

from commonplace.errors import BadSetting, StoreUnavailable

if TYPE_CHECKING:
    from obstore.store import LocalStore, S3Store

_VARIABLES: Final = {
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_SESSION_TOKEN": "session_token",
    "AWS_DEFAULT_REGION": "region",
    "AWS_REGION": "region",
    "AWS_ENDPOINT_URL": "endpoint",
    "AWS_ENDPOINT_URL_S3": "endpoint",
    "AWS_CONDITIONAL_PUT": "conditional_put",
}
"""Variables of a caller's own environment; those of the process are read by the library, and more of them."""
_RETRIES: Final = 2
_RETRY_SECONDS: Final = 15
_REQUEST_SECONDS: Final = 60
_CONNECT_SECONDS: Final = 5


class StoredObject(msgspec.Struct, frozen=True):
    """What a listing tells of an object."""

    key: str
    size: int
    tag: str
    """Another tag, another content."""


class ObjectGone(Exception):
    """An object that was listed is not there any more."""


def check(address: str) -> None:
    """Refuse an address that cannot be a store's, without repeating it (raises BadSetting)."""
    parts = urlsplit(address)
    if parts.username or parts.password or parts.query:
        raise BadSetting(
            "ledger names a key in its address.",
            hint="Put credentials into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        )
    if parts.scheme == "s3" and not parts.hostname:
        raise BadSetting("ledger names no bucket.", hint="Use s3://bucket/prefix.")
    if parts.scheme == "file" and (parts.netloc or not parts.path.strip("/")):
        raise BadSetting("ledger names no folder.", hint="Use file:///folder, with three slashes.")
    if find_spec("obstore") is None:
        raise BadSetting(
            "Ledgers in a store need a library that is not installed.", hint="Run pip install 'commonplace[s3]'."
        )


class ObjectStore:
    """The verbs that ledgers need of a store; it counts what it asks for."""

    def __init__(self, address: str, environment: Mapping[str, str]) -> None:
        check(address)
        self._address = address
        self._environment = environment
        self._opened: LocalStore | S3Store | None = None
        self.requests = 0
        self.bytes_requested = 0
        """How many bytes were asked for; listings are not counted."""

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield every object under a folder (raises StoreUnavailable)."""
        import obstore

        with _translated():
            pages = obstore.list(  # pyright: ignore[reportUnknownMemberType] (it names a library that is not here)
                self._store(), prefix, chunk_size=1000
            )
            self.requests += 1
            for number, page in enumerate(pages):
                self.requests += number > 0
                for each in page:
                    yield StoredObject(each["path"], each["size"], each["e_tag"] or str(each["last_modified"]))

    def folders(self) -> list[str]:
        """Return the names of the folders at the top (raises StoreUnavailable)."""
        import obstore

        self.requests += 1
        with _translated():
            found = obstore.list_with_delimiter(self._store())  # pyright: ignore[reportUnknownMemberType] (as above)
            return [*found["common_prefixes"]]

    def read(self, key: str, start: int, end: int) -> bytes:
        """Return a range of an object, which must not be empty (raises StoreUnavailable, ObjectGone)."""
        import obstore

        self.requests += 1
        self.bytes_requested += end - start
        with _translated():
            return bytes(obstore.get_range(self._store(), key, start=start, end=end))

    def get(self, key: str) -> bytes:
        """Return a whole object (raises StoreUnavailable, ObjectGone)."""
        import obstore

        self.requests += 1
        with _translated():
            data = bytes(obstore.get(self._store(), key).bytes())
        self.bytes_requested += len(data)
        return data

    def create(self, key: str, data: bytes) -> bool:
        """Make an object; False if there is one with this key already (raises StoreUnavailable)."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        self.requests += 1
        with _translated():
            try:
                obstore.put(self._store(), key, data, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
            except NotImplementedError:  # AWS_CONDITIONAL_PUT=disabled, for servers that know no conditions
                try:
                    obstore.head(self._store(), key)
                except FileNotFoundError:
                    obstore.put(self._store(), key, data, use_multipart=False)
                else:
                    return False
        return True

    def copy(self, key: str, target: str) -> None:
        """Copy an object inside the store (raises StoreUnavailable, ObjectGone)."""
        import obstore

        self.requests += 1
        with _translated():
            obstore.copy(self._store(), key, target)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are gone already are no matter (raises StoreUnavailable)."""
        import obstore

        for key in keys:
            self.requests += 1
            try:
                with _translated():
                    obstore.delete(self._store(), key)
            except ObjectGone:
                continue

    def _store(self) -> LocalStore | S3Store:
        if self._opened is None:
            with _translated():
                self._opened = _open(self._address, self._environment)
        return self._opened


def _open(address: str, environment: Mapping[str, str]) -> LocalStore | S3Store:
    from obstore.store import LocalStore, S3Store

    parts = urlsplit(address)
    if parts.scheme == "file":
        return LocalStore(Path(unquote(parts.path)), mkdir=True)
    named = {_VARIABLES[name]: environment[name] for name in _VARIABLES if environment.get(name)}
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        client_options={
            "allow_http": named.get("endpoint", "").startswith("http://"),
            "timeout": timedelta(seconds=_REQUEST_SECONDS),
            "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)},
        **named,  # pyright: ignore[reportArgumentType]
    )


@contextmanager
def _translated() -> Generator[None]:
    """Make errors of ours from those of the library; their texts may hold addresses and keys, so none is passed on."""
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

    try:
        yield
    except FileNotFoundError:
        raise ObjectGone from None
    except (PermissionDeniedError, UnauthenticatedError):
        raise StoreUnavailable(
            "The store of ledgers refuses the credentials.", hint="Check AWS_ACCESS_KEY_ID and the rights of its owner."
        ) from None
    except (BaseError, OSError, ValueError, NotImplementedError):
        raise StoreUnavailable(
            "The store of ledgers cannot be used now.", hint="Sessions go on and are uploaded later; check the network."
        ) from None
