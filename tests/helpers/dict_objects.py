"""An object store in a dict, which loses replies, fails and dies where a test wants it to."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, TypeVar

from lsmkv.shards.remote.objects.base import ObjectInfo, ObjectStore, check_object_name

_T = TypeVar("_T")


class Killed(BaseException):
    """The process that used the store is gone: nothing it does afterwards takes effect."""


class Call(NamedTuple):
    """A request, or one object's part in a request to delete several."""

    kind: str
    name: str


def _nothing(_: Call) -> None:
    pass


class DictObjects(ObjectStore):
    """Objects in a dict.  One request is served at a time.

    ``before`` is called with each request before it is served, and ``after`` once it has taken
    effect: what ``after`` raises is a lost reply.  Neither is called under the lock.
    """

    def __init__(self, url: str = "dict://set") -> None:
        self.url = url
        self.objects: dict[str, tuple[bytes, float]] = {}
        """Content and the time it was put, by name."""
        self.now = 1_000_000.0
        """The store's clock, which a test moves."""
        self.ignores_conditions = False
        self.before: Callable[[Call], None] = _nothing
        self.after: Callable[[Call], None] = _nothing
        self.calls: list[Call] = []
        self._lock = threading.Lock()

    def copy(self) -> DictObjects:
        """The same objects in a store of its own, without the hooks."""
        twin = DictObjects(self.url)
        twin.now = self.now
        twin.objects = dict(self.objects)
        return twin

    def kill_at(self, number: int, *, replied: bool) -> None:
        """Die at the request of this number, from 0: before it takes effect, or after."""
        served = 0

        def count(_: Call) -> None:
            nonlocal served
            served += 1
            if served > number + replied:
                raise Killed

        def die(_: Call) -> None:
            if served > number:
                raise Killed

        self.before = count
        if replied:
            self.after = die

    def get(self, name: str) -> bytes:
        return self._serve("get", name, lambda: self._content(name))

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        return self._serve("get_range", name, lambda: self._content(name)[offset : offset + length])

    def put(self, name: str, data: bytes) -> None:
        self._serve("put", name, lambda: self._store(name, data))

    def put_if_absent(self, name: str, data: bytes) -> None:
        def store() -> None:
            if name in self.objects and not self.ignores_conditions:
                raise self._error(errno.EEXIST, name)
            self._store(name, data)

        self._serve("put_if_absent", name, store)

    def list(self, prefix: str) -> list[ObjectInfo]:
        assert prefix == "" or prefix.endswith("/")
        return self._serve(
            "list",
            prefix,
            lambda: [
                ObjectInfo(name, len(data), modified)
                for name, (data, modified) in sorted(self.objects.items())
                if name.startswith(prefix)
            ],
        )

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._serve("delete", name, partial(self.objects.pop, name, None))

    def close(self) -> None:
        pass

    def _serve(self, kind: str, name: str, work: Callable[[], _T]) -> _T:
        call = Call(kind, name)
        self.before(call)
        with self._lock:
            self.calls.append(call)
            result = work()
        self.after(call)
        return result

    def _content(self, name: str) -> bytes:
        if name not in self.objects:
            raise self._error(errno.ENOENT, name)
        return self.objects[name][0]

    def _store(self, name: str, data: bytes) -> None:
        self.objects[check_object_name(name)] = (data, self.now)

    def _error(self, number: int, name: str) -> OSError:
        return OSError(number, os.strerror(number), self.url_of(name))
