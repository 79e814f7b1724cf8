"""Repeats, limits and counts requests to an object store, in this one place.

A request fails for good if another attempt would fail the same way (``PERMANENT_ERRNOS``).  After
any other failure it is repeated.  The wait before that is drawn evenly between zero and a bound
that doubles with each attempt.  So clients that fail together do not retry together.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, NoReturn, TypeVar

from lsmkv.engine.errors import ClosedError
from lsmkv.shards.remote.objects.base import PERMANENT_ERRNOS, ObjectInfo, ObjectStore
from lsmkv.shards.remote.objects.counters import Kind, RequestCounters

PAGE = 1000
"""The most objects that one request lists or deletes, in S3 and similar stores."""

_Result = TypeVar("_Result")


class Limits(NamedTuple):
    """Timeouts, attempts and connections.

    >>> Limits(attempts=3, timeout=2.5).connections
    32
    """

    attempts: int = 5
    """The most requests for one call, retries included."""
    timeout: float = 10.0
    """Seconds that a small request may take, if the store's client can limit that.  A larger one
    has another second for each MiB."""
    deadline: float = 60.0
    """Seconds after the start of a call after which no attempt begins."""
    connections: int = 32
    """The most concurrent requests; further calls wait."""
    backoff: float = 0.1
    """Seconds: the bound of the wait before the second attempt.  It doubles with each attempt."""
    longest_backoff: float = 5.0
    """Seconds: the largest value of that bound."""


DEFAULT_LIMITS = Limits()


class RetryingObjects(ObjectStore):
    """Wraps an object store, and repeats requests after transient failures.

    When the attempts or the time are exhausted, the last failure is raised, and its text states the
    number of attempts.  A failed :meth:`put_if_absent` may have written the object.  Then the next
    attempt finds the name taken: see :class:`ObjectStore`.

    After :meth:`close` every request raises ``ClosedError``.
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
            return self.inner.get_range(name, offset, length)  # makes no request
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
        """The objects below ``prefix``.  After a failure the listing starts again.

        It counts as a request per 1,000 objects.
        """
        found = self._request("list", prefix, lambda: self.inner.list(prefix))
        self.counters.add("list", requests=max(0, len(found) - 1) // PAGE)  # the first is counted
        return found

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects, 1,000 per request.  If one fails, those before it are removed."""
        left = iter(names)
        while page := list(itertools.islice(left, PAGE)):
            self._request("delete", page[0], partial(self.inner.delete, page))

    def sweep(self, before: float) -> None:
        self.inner.sweep(before)

    def close(self) -> None:
        self._closed = True
        self.inner.close()

    def _request(self, kind: Kind, name: str, attempt: Callable[[], _Result]) -> _Result:
        """The result of the first ``attempt`` that succeeds."""
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
        """Wait before the next attempt; False if there is none."""
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
