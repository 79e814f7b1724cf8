"""Objects in S3, Google's and Azure's stores, and on web servers, through obstore.

obstore makes each request once: ``RetryingObjects`` repeats those that failed.  A range takes one
request.  Its reply states the object's length, which distinguishes a truncated body from the
object's end.

Not supported: multipart uploads.  An object is written by one request, so it has at most 5 GiB, and
an interrupted upload leaves nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import obstore
from obstore import exceptions, store

from lsmkv.shards.remote.objects.base import (
    ObjectInfo,
    ObjectStore,
    check_object_name,
    check_prefix,
    check_range,
)
from lsmkv.shards.remote.objects.interruptible import interruptible
from lsmkv.shards.remote.objects.obstore_stores import ObstoreStores, Timeouts
from lsmkv.shards.remote.objects.store_errors import errno_of, means_no_bucket, read_reply

CLIENT_OPTIONS = frozenset(
    (
        *("allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type"),
        *("default_headers", "http1_only", "http2_keep_alive_interval", "http2_keep_alive_timeout"),
        *("http2_keep_alive_while_idle", "http2_only", "pool_idle_timeout"),
        *("pool_max_idle_per_host", "proxy_url", "proxy_ca_certificate", "proxy_excludes"),
        *("root_certificate", "randomize_addresses", "read_timeout", "timeout", "user_agent"),
    )
)
"""The options of :func:`open_obstore` that belong to the HTTP client."""

_PAGE = 1000
_EXISTS = (exceptions.AlreadyExistsError, exceptions.PreconditionError)
_UNSUPPORTED = (exceptions.NotSupportedError, NotImplementedError)
_REFUSED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)

_Result = TypeVar("_Result")


class ObstoreObjects(ObjectStore):
    """Objects in one of obstore's stores.

    Raises ``ENOTSUP`` for what the store cannot do: a plain web server cannot list, for example.

    It does not work after a fork: obstore's threads do not survive it, and requests would wait
    forever.  In a process forked after a request, methods raise ``ENOTSUP``.
    """

    def __init__(self, stores: ObstoreStores, url: str) -> None:
        """``url`` names the objects in messages."""
        self.url = url
        self._stores = stores

    def get(self, name: str) -> bytes:
        check_object_name(name)
        return self._request(name, lambda: self._get(name))

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        check_object_name(name)
        check_range(offset, length)
        if length == 0:
            return b""
        return self._request(name, lambda: self._get_range(name, offset, length))

    def put(self, name: str, data: bytes) -> None:
        check_object_name(name)
        self._request(name, lambda: self._put(name, data, "overwrite"))

    def put_if_absent(self, name: str, data: bytes) -> None:
        check_object_name(name)
        self._request(name, lambda: self._put(name, data, "create"), exclusive=True)

    def list(self, prefix: str) -> list[ObjectInfo]:
        check_prefix(prefix)
        return self._request(prefix, lambda: _listing(self._stores.unsized(), prefix))

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects, up to 1,000 per request if the store supports that."""
        checked = tuple(check_object_name(name) for name in names)
        if checked:
            self._request(checked[0], lambda: self._delete(checked))

    def close(self) -> None:
        """Does nothing: connections close when the store is deleted, or after being idle."""

    # Requests, as obstore makes them

    def _get(self, name: str) -> bytes:
        reply = obstore.get(self._stores.unsized(), name)
        return _whole(reply.bytes().to_bytes(), reply.meta["size"])

    def _get_range(self, name: str, offset: int, length: int) -> bytes:
        end = offset + length
        inner = self._stores.sized(length)
        try:
            reply = obstore.get(inner, name, options={"range": (offset, end)})
            data = reply.bytes().to_bytes()
        except exceptions.GenericError as error:
            text = str(error)
            if read_reply(text).status == 416 or "Invalid range: Wanted" in text:
                return b""  # it begins at the object's end, or after it
            raise
        return _whole(data, min(end, reply.meta["size"]) - offset)

    def _put(self, name: str, data: bytes, mode: Any) -> None:
        inner = self._stores.sized(len(data))
        obstore.put(inner, name, data, mode=mode, use_multipart=False)

    def _delete(self, names: Sequence[str]) -> None:
        try:
            obstore.delete(self._stores.sized(0), list(names))
        except FileNotFoundError as error:
            if means_no_bucket(read_reply(str(error))):
                raise
            self._delete_each(names)

    def _delete_each(self, names: Iterable[str]) -> None:
        """For stores that stop at an object that does not exist."""
        for name in names:
            try:
                obstore.delete(self._stores.sized(0), name)
            except FileNotFoundError:
                pass

    def _request(
        self, name: str, request: Callable[[], _Result], exclusive: bool = False
    ) -> _Result:
        """The result of a request; its errors follow the contract."""
        _require_no_fork(self.url_of(name))
        try:
            return interruptible(request)
        except (exceptions.BaseError, OSError, NotImplementedError) as error:
            raise self._typed(error, name, exclusive) from error

    def _typed(self, error: Exception, name: str, exclusive: bool) -> OSError:
        text = str(error)
        reply = read_reply(text)
        number, why = errno_of(reply, text)
        if isinstance(error, _EXISTS) or reply.status in (409, 412):
            number = errno.EEXIST if exclusive else errno.EBUSY
        elif isinstance(error, _UNSUPPORTED):
            number = errno.ENOTSUP
        elif isinstance(error, _REFUSED):
            number = errno.EACCES
        elif isinstance(error, FileNotFoundError):
            number = errno.ENOENT
        elif isinstance(error, OSError) and error.errno is not None:  # a truncated body
            number, why = error.errno, error.strerror or text
        return OSError(number, why, self.url_of(name))


def open_obstore(
    url: str, options: Mapping[str, object], timeout: float, connections: int
) -> ObstoreObjects:
    """The objects below a URL that obstore supports.

    ``options`` are those of obstore's store (``region``, ``endpoint``, ...), of its HTTP client
    (``allow_http``, ...) and ``credential_provider``.  ``timeout`` is for one request of
    few bytes, in seconds: see :class:`ObstoreStores`, unless the options have a ``timeout``.
    ``ValueError`` for an option that obstore does not know, and for a URL that it cannot read.
    """
    client: dict[str, Any] = {
        "connect_timeout": timedelta(seconds=min(timeout, 5.0)),
        "pool_max_idle_per_host": str(connections),
    }
    if url.startswith("http://"):
        client["allow_http"] = True  # nothing else could be meant
    config: dict[str, Any] = {}
    further: dict[str, Any] = {}
    for key, value in options.items():
        if key == "credential_provider":
            further[key] = value
        elif key in CLIENT_OPTIONS:
            client[key] = value
        else:
            config[key] = value
    if config:
        further["config"] = config
    open_store: Any = store.from_url  # overloaded by the kind of store

    def make(timeouts: Timeouts) -> Any:
        limits = {"timeout": timedelta(seconds=timeouts.whole)}
        if timeouts.stalled is not None:
            limits["read_timeout"] = timedelta(seconds=timeouts.stalled)
        once = {"max_retries": 0, "retry_timeout": limits["timeout"]}
        return open_store(url, client_options=limits | client, retry_config=once, **further)

    stores = ObstoreStores(make, timeout)
    try:
        stores.sized(0)
    except (exceptions.BaseError, TypeError) as error:
        raise ValueError(f"obstore cannot open {url}: {_first_line(error)}") from error
    return ObstoreObjects(stores, url)


_used_by: int | None = None  # the process that made a request, or a process that it was forked to


def _require_no_fork(url: str) -> None:
    """Raise ``OSError`` in a process forked after a request: see :class:`ObstoreObjects`."""
    global _used_by  # noqa: PLW0603 - obstore's threads belong to the process
    if _used_by is None:
        _used_by = os.getpid()
    elif _used_by != os.getpid():
        why = (
            "obstore was used before this process was forked: use the start method spawn or "
            "forkserver"
        )
        raise OSError(errno.ENOTSUP, why, url)


def _listing(inner: Any, prefix: str) -> list[ObjectInfo]:
    found = obstore.list(inner, prefix or None, chunk_size=_PAGE).collect()
    objects = [
        ObjectInfo(one["path"], one["size"], one["last_modified"].timestamp()) for one in found
    ]
    # Tools that show folders store an empty object for each, named as the prefix.
    return sorted(one for one in objects if one.name and one.name.startswith(prefix))


def _whole(data: bytes, expected: int) -> bytes:
    """Return ``data``; ``OSError`` if it is not as long as the reply announced."""
    if len(data) != expected:
        raise OSError(errno.EIO, f"the reply has {len(data)} bytes, but announced {expected}")
    return data


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
