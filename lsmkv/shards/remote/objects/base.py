"""The interface between lsmkv and an object store.

An :class:`ObjectStore` holds objects under names with slashes, below one URL.  An object is written
whole, is never changed, and is read whole or in ranges.  That is what S3, Google's and Azure's
stores, a web server (for reading) and a directory have in common.

Contract, for every implementation:

* A name is one or more plain path components, joined by ``/``: :func:`check_object_name`.
* Failures raise ``OSError`` with ``errno`` set, and with the object's URL as its ``filename``:

  - ``FileNotFoundError`` for an object that is not there;
  - ``FileExistsError`` from :meth:`ObjectStore.put_if_absent` alone;
  - ``PermissionError`` where credentials are missing, wrong or expired, which its text says;
  - ``OSError`` with ``EINVAL`` or ``ENOTSUP`` for what cannot be done at all;
  - any other ``OSError`` is *transient*: the same request may succeed later.

* A reply whose body is shorter than it says is transient; a shorter object is no error, and less
  is returned.
* All methods may be called from any thread.
* An object that was put is there for every later request, of any client.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple, Self

PERMANENT_ERRNOS = frozenset(
    (errno.ENOENT, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP)
)
"""The ``errno`` of failures that another attempt would meet again."""


class ObjectInfo(NamedTuple):
    """What a listing says of an object."""

    name: str
    size: int
    """Bytes."""
    modified: float
    """When it was put, in seconds since 1970, by the store's clock."""


class ObjectStore(ABC):
    """Objects below one URL."""

    url: str
    """Without a slash at its end."""

    @abstractmethod
    def get(self, name: str) -> bytes:
        """A whole object.  One request."""

    @abstractmethod
    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only where the object ends.  One request.

        An empty range takes no request, so it says nothing about the object.  ``ValueError`` if
        either number is negative.
        """

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Write an object, replacing one of that name.  All of it is there or nothing."""

    @abstractmethod
    def put_if_absent(self, name: str, data: bytes) -> None:
        """Write an object; ``FileExistsError`` if the name is taken, or may be.

        Of several callers at once one succeeds at most.  After a lost reply the name may be taken
        by the caller's own object: the caller reads it back, and compares.
        """

    @abstractmethod
    def list(self, prefix: str) -> list[ObjectInfo]:
        """The objects whose names begin with ``prefix``, which ends in ``/`` or is empty, by name.

        One request for each 1,000 objects or so.
        """

    @abstractmethod
    def delete(self, names: Iterable[str]) -> None:
        """Remove objects.  One that is not there is no error."""

    def sweep(self, before: float) -> None:  # noqa: B027 - for most stores this is all
        """Remove what killed writers left before that time, in seconds since 1970, and no listing
        shows.  Most stores keep nothing of the kind."""

    @abstractmethod
    def close(self) -> None:
        """Close connections.  A second close has no effect."""

    def url_of(self, name: str) -> str:
        """An object's URL, for messages."""
        return f"{self.url}/{name}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def check_object_name(name: str) -> str:
    """``name`` itself if it is plain path components joined by slashes; else ``ValueError``."""
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"not the name of an object: {name!r}")
    return name


def check_range(offset: int, length: int) -> None:
    """``ValueError`` if these are not a place in an object and a number of bytes."""
    if offset < 0 or length < 0:
        raise ValueError(f"not a range of an object: {length} bytes from {offset}")


def check_prefix(prefix: str) -> str:
    """``prefix`` itself if it is empty, or an object's name and a slash; else ``ValueError``."""
    if prefix:
        if not prefix.endswith("/"):
            raise ValueError(f"a prefix ends in a slash, or is empty: {prefix!r}")
        check_object_name(prefix[:-1])
    return prefix
