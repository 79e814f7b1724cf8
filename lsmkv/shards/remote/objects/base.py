"""The interface between lsmkv and an object store.

An :class:`ObjectStore` holds objects below one URL; their names may contain slashes.  An object is
written whole and never changed.  It is read whole or in ranges.  S3, Google's and Azure's stores, a
web server (for reading) and a directory all can do that.

Contract, for every implementation:

* A name is one or more plain path components, joined by ``/``: :func:`check_object_name`.
* Failures raise ``OSError`` with ``errno`` set, and with the object's URL as its ``filename``:

  - ``FileNotFoundError`` for an object that is not there;
  - ``FileExistsError`` from :meth:`ObjectStore.put_if_absent` alone;
  - ``PermissionError`` where credentials are missing, wrong or expired, which its text says;
  - ``OSError`` with ``EINVAL`` or ``ENOTSUP`` for an impossible request;
  - any other ``OSError`` is *transient*: the same request may succeed later.

* A reply whose body is shorter than announced is transient; a shorter object is no error, and less
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
"""The ``errno`` of failures that would be repeated by another attempt."""


class ObjectInfo(NamedTuple):
    """A listing's information about an object."""

    name: str
    size: int
    """Bytes."""
    modified: float
    """The time at which it was stored, in seconds since 1970, by the store's clock."""


class ObjectStore(ABC):
    """Objects below one URL."""

    url: str
    """Has no slash at its end."""

    @abstractmethod
    def get(self, name: str) -> bytes:
        """A whole object.  One request."""

    @abstractmethod
    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only at the object's end.  One request.

        An empty range makes no request, so it does not check the object.  Raises ``ValueError``
        if either number is negative.
        """

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Write an object, replacing one of that name, all or nothing."""

    @abstractmethod
    def put_if_absent(self, name: str, data: bytes) -> None:
        """Write an object; ``FileExistsError`` if the name is taken, or may be.

        Of several concurrent callers at most one succeeds.  After a lost reply the name may be
        taken by the caller's own object: the caller reads it back, and compares.
        """

    @abstractmethod
    def list(self, prefix: str) -> list[ObjectInfo]:
        """The objects whose names begin with ``prefix``, sorted by name.  ``prefix`` ends in ``/``
        or is empty.

        About one request for each 1,000 objects.
        """

    @abstractmethod
    def delete(self, names: Iterable[str]) -> None:
        """Remove objects.  A missing object is not an error."""

    def sweep(self, before: float) -> None:  # noqa: B027 - for most stores this is all
        """Remove what killed writers left before that time (seconds since 1970) and no listing
        shows.  Most stores have nothing to remove."""

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
    """Return ``name`` if it is plain path components joined by slashes; otherwise raise
    ``ValueError``."""
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"not the name of an object: {name!r}")
    return name


def check_range(offset: int, length: int) -> None:
    """Raise ``ValueError`` unless these are a valid offset and length."""
    if offset < 0 or length < 0:
        raise ValueError(f"not a range of an object: {length} bytes from {offset}")


def check_prefix(prefix: str) -> str:
    """Return ``prefix`` if it is empty, or a name and a slash; otherwise raise ``ValueError``."""
    if prefix:
        if not prefix.endswith("/"):
            raise ValueError(f"a prefix must be empty or end in a slash: {prefix!r}")
        check_object_name(prefix[:-1])
    return prefix
