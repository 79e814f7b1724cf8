"""The one place where requests to an object store are repeated, limited and counted.

A request fails for good where another attempt would meet the same failure
(``PERMANENT_ERRNOS``).  After any other failure it is made again, after
a wait that is drawn evenly between zero and a bound that doubles with each attempt: many clients
that failed together do not come back together.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, NoReturn, TypeVar

from lsmkv.errors import ClosedError
from lsmkv.shards.remote.objects.base import PERMANENT_ERRNOS, ObjectInfo, ObjectStore
from lsmkv.shards.remote.objects.counters import Kind, RequestCounters

PAGE = 1000
"""Objects that one request lists or deletes, at most, in S3 and its like."""

_Result = TypeVar("_Result")


class Limits(NamedTuple):
    """How long, how often and how many at once.

    >>> Limits(attempts=3, timeout=2.5).connections
    32
    """

    attempts: int = 5
    """The most requests that are made for one call, retries included."""
    timeout: float = 10.0
    """Seconds that one request of few bytes may take, where the store's client can limit that.
    One that moves many has another second for each MiB."""
    deadline: float = 60.0
    """Seconds after the call's beginning from which on no attempt begins."""
    connections: int = 32
    """Requests under way at once, at most; further calls wait."""
    backoff: float = 0.1
    """Seconds: the bound of the wait before the second attempt.  It doubles with each one."""
    longest_backoff: float = 5.0
    """Seconds: where that bound stops growing."""


DEFAULT_LIMITS = Limits()


class RetryingObjects(ObjectStore):
    """Another object store, whose transient failures are met by trying again.

    Where the attempts or the time are used up, the last failure is raised, and its text says how
    many attempts were made.  A failed :meth:`put_if_absent` may have put the object all the same,
    and the next attempt then finds the name taken: see :class:`ObjectStore`.

    ``ClosedError`` from every request after :meth:`close`.
    """

    def __init__(self, inner: ObjectStore, limits: Limits = DEFAULT_LIMITS) -> None:
        if limits.attempts < 1 or limits.connections < 1:
            raise ValueError(f"at least one attempt and one connection are needed: {limits}")
        self.inner = inner
        self.limits = limits
        self.url = inner.url
        self.counters = RequestCounters()
        self._slots = threading.BoundedSemaphore(limits.connections)
        self._closed = False

    def get(self, name: str) -> bytes:
        data = self._request("get", name, lambda: self.inner.get(name))
        self.counters.add("get", bytes_read=len(data))
        return data

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        if length == 0:
            return self.inner.get_range(name, offset, length)  # no request
        data = self._request("get", name, lambda: self.inner.get_range(name, offset, length))
        self.counters.add("get", bytes_read=len(data))
        return data

    def put(self, name: str, data: bytes) -> None:
        self._request("put", name, lambda: self.inner.put(name, data))
        self.counters.add("put", bytes_written=len(data))

    def put_if_absent(self, name: str, data: bytes) -> None:
        self._request("put", name, lambda: self.inner.put_if_absent(name, data))
        self.counters.add("put", bytes_written=len(data))

    def list(self, prefix: str) -> list[ObjectInfo]:
        """The objects below ``prefix``.  A failure begins the listing anew.

        It counts as a request for each 1,000 objects.
        """
        found = self._request("list", prefix, lambda: self.inner.list(prefix))
        self.counters.add("list", requests=max(0, len(found) - 1) // PAGE)  # the first is counted
        return found

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects, 1,000 by a request.  Where one fails, those before it are removed."""
        left = iter(names)
        while page := list(itertools.islice(left, PAGE)):
            self._request("delete", page[0], partial(self.inner.delete, page))

    def sweep(self, before: float) -> None:
        self.inner.sweep(before)

    def close(self) -> None:
        self._closed = True
        self.inner.close()

    def _request(self, kind: Kind, name: str, attempt: Callable[[], _Result]) -> _Result:
        """What ``attempt`` returns, at the first attempt that succeeds."""
        began = time.monotonic()
        for number in itertools.count(1):
            try:
                return self._one_attempt(kind, number, attempt)
            except OSError as error:
                if error.errno in PERMANENT_ERRNOS:
                    raise
                if not self._waited(number, began):
                    self._give_up(error, name, number, time.monotonic() - began)
        raise AssertionError

    def _one_attempt(self, kind: Kind, number: int, attempt: Callable[[], _Result]) -> _Result:
        with self._slots:
            if self._closed:
                raise ClosedError(f"{self.url} was closed before this request")
            self.counters.add(kind, requests=1, retries=int(number > 1))
            return attempt()

    def _waited(self, number: int, began: float) -> bool:
        """Wait for the time of the next attempt; False where there is to be none."""
        bound = min(self.limits.backoff * 2 ** (number - 1), self.limits.longest_backoff)
        wait = random.uniform(0, bound)
        if number >= self.limits.attempts:
            return False
        if time.monotonic() + wait - began >= self.limits.deadline:
            return False
        time.sleep(wait)
        return True

    def _give_up(self, error: OSError, name: str, attempts: int, seconds: float) -> NoReturn:
        why = error.strerror or str(error)
        many = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        text = f"{why} (after {many} in {seconds:.1f} s)"
        raise OSError(error.errno, text, self.url_of(name)) from error
