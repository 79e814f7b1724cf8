"""Attempts, waits, deadlines and counts, over a store that fails on request."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.errors import ClosedError
from lsmkv.shards.remote.objects import retrying
from lsmkv.shards.remote.objects.base import PERMANENT_ERRNOS, ObjectInfo
from lsmkv.shards.remote.objects.counters import Requests
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.remote.objects.retrying import Limits, RetryingObjects

QUICK = Limits(backoff=0.0)


class Failing(LocalObjects):
    """Objects in memory; the next calls raise what ``failures`` holds, one each."""

    def __init__(self) -> None:
        super().__init__(MemoryEnv(), "place", create=True)
        self.failures: list[BaseException] = []
        self.calls: list[str] = []
        self.before: Callable[[], None] = lambda: None

    def _meet(self, call: str) -> None:
        self.calls.append(call)
        self.before()
        if self.failures:
            raise self.failures.pop(0)

    def get(self, name: str) -> bytes:
        self._meet("get")
        return super().get(name)

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        self._meet("get_range")
        return super().get_range(name, offset, length)

    def put(self, name: str, data: bytes) -> None:
        self._meet("put")
        super().put(name, data)

    def put_if_absent(self, name: str, data: bytes) -> None:
        self._meet("put_if_absent")
        super().put_if_absent(name, data)

    def list(self, prefix: str) -> list[ObjectInfo]:
        self._meet("list")
        return super().list(prefix)

    def delete(self, names: Iterable[str]) -> None:
        self._meet("delete")
        super().delete(names)


@pytest.fixture
def inner() -> Iterator[Failing]:
    with Failing() as store:
        yield store


def transient(count: int, code: int = errno.EIO) -> list[BaseException]:
    return [OSError(code, os.strerror(code), "its file") for _ in range(count)]


ALL_CALLS: dict[str, Callable[[RetryingObjects], object]] = {
    "get": lambda store: store.get("a/x"),
    "get_range": lambda store: store.get_range("a/x", 1, 3),
    "put": lambda store: store.put("y", b"1"),
    "put_if_absent": lambda store: store.put_if_absent("z", b"1"),
    "list": lambda store: store.list("a/"),
    "delete": lambda store: store.delete(["a/x"]),
}
every_call = pytest.mark.parametrize("call", ALL_CALLS)


@every_call
def test_transient_failures_are_met_by_trying_again(inner: Failing, call: str) -> None:
    inner.put("a/x", b"content")
    inner.calls.clear()
    store = RetryingObjects(inner, QUICK)
    inner.failures = transient(4, errno.ECONNRESET)
    result = ALL_CALLS[call](store)
    assert inner.calls == [call] * 5
    if call == "get":
        assert result == b"content"
    if call == "get_range":
        assert result == b"ont"
    total = store.counters.snapshot().total
    assert (total.requests, total.retries) == (5, 4)


@every_call
def test_the_last_failure_says_how_often_it_was_tried(inner: Failing, call: str) -> None:
    store = RetryingObjects(inner, QUICK._replace(attempts=3))
    inner.failures = transient(3, errno.ETIMEDOUT)
    with pytest.raises(
        TimeoutError, match=r"timed out \(after 3 attempts in 0\.[0-9] s\)"
    ) as error:
        ALL_CALLS[call](store)
    assert error.value.errno == errno.ETIMEDOUT
    assert error.value.filename.startswith("place/")
    assert inner.calls == [call] * 3


@every_call
@pytest.mark.parametrize("code", sorted(PERMANENT_ERRNOS))
def test_what_would_fail_again_is_tried_once(inner: Failing, call: str, code: int) -> None:
    store = RetryingObjects(inner, QUICK)
    failure = OSError(code, "for good", "place/it")
    inner.failures = [failure]
    with pytest.raises(OSError, match="for good") as caught:
        ALL_CALLS[call](store)
    assert caught.value is failure
    assert inner.calls == [call]


@pytest.mark.parametrize("failure", [ValueError("x"), KeyboardInterrupt(), MemoryError()])
def test_what_is_no_failure_of_the_store_is_not_repeated(
    inner: Failing, failure: BaseException
) -> None:
    store = RetryingObjects(inner, QUICK)
    inner.failures = [failure]
    with pytest.raises(type(failure)) as caught:
        store.get("x")
    assert caught.value is failure
    assert inner.calls == ["get"]


def test_a_name_put_by_an_attempt_that_seemed_to_fail_is_found_taken(inner: Failing) -> None:
    store = RetryingObjects(inner, QUICK)
    lose_reply = iter([True])

    def put_then_fail(name: str, data: bytes) -> None:
        LocalObjects.put_if_absent(inner, name, data)
        if next(lose_reply, False):
            raise ConnectionResetError(errno.ECONNRESET, "reset", name)

    inner.put_if_absent = put_then_fail  # type: ignore[method-assign]
    with pytest.raises(FileExistsError):
        store.put_if_absent("x", b"mine")
    assert store.get("x") == b"mine"  # as the contract has it


def test_waits_are_drawn_below_a_bound_that_doubles(
    inner: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[float] = []
    waits: list[float] = []

    def draw(low: float, high: float) -> float:
        assert low == 0
        bounds.append(high)
        return high / 2

    monkeypatch.setattr(retrying.random, "uniform", draw)
    monkeypatch.setattr(retrying.time, "sleep", waits.append)
    limits = Limits(attempts=7, backoff=0.1, longest_backoff=1.0, deadline=60)
    inner.failures = transient(7)
    with pytest.raises(OSError, match="after 7 attempts"):
        RetryingObjects(inner, limits).get("x")
    assert waits == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.5, 0.5])
    assert bounds[:6] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_no_attempt_begins_after_the_deadline(
    inner: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(retrying.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(retrying.time, "sleep", lambda seconds: None)

    def take_four_seconds() -> None:
        now[0] += 4

    inner.before = take_four_seconds
    inner.failures = transient(10)
    with pytest.raises(OSError, match=r"after 3 attempts in 12\.0 s"):
        RetryingObjects(inner, QUICK._replace(attempts=10, deadline=10)).get("x")


def test_no_more_requests_are_under_way_than_connections(inner: Failing) -> None:
    store = RetryingObjects(inner, QUICK._replace(connections=3))
    store.put("x", b"1")
    mutex, under_way, most = threading.Lock(), 0, 0
    together = threading.Barrier(3)

    def watch() -> None:
        nonlocal under_way, most
        with mutex:
            under_way += 1
            most = max(most, under_way)
        together.wait(30)  # three at once do come about
        with mutex:
            under_way -= 1

    inner.before = watch
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(lambda _: store.get("x"), range(12))) == [b"1"] * 12
    assert most == 3


def test_a_failed_request_gives_its_connection_back(inner: Failing) -> None:
    store = RetryingObjects(inner, QUICK._replace(connections=1, attempts=2))
    for failures in (transient(2), [FileNotFoundError(errno.ENOENT, "no")], [KeyboardInterrupt()]):
        inner.failures = list(failures)
        with pytest.raises((OSError, KeyboardInterrupt)):
            store.get("x")
    store.put("x", b"1")


@pytest.mark.usefixtures("signals_are_heard")
def test_ctrl_c_ends_a_wait(inner: Failing) -> None:
    store = RetryingObjects(inner, Limits(backoff=1e6, longest_backoff=1e6, deadline=1e9))
    inner.failures = transient(100)
    main = threading.get_ident()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sender = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            store.get("x")
    finally:
        sender.join()
        signal.signal(signal.SIGINT, before)
    assert len(inner.calls) < 3


def test_requests_and_bytes_are_counted_by_kind(inner: Failing) -> None:
    store = RetryingObjects(inner, QUICK)
    store.put("a", b"12345")
    inner.failures = transient(1)
    store.put_if_absent("b", b"123")
    store.get("a")
    store.get_range("a", 3, 100)
    store.get_range("a", 3, 0)
    with pytest.raises(FileNotFoundError):
        store.get("nix")
    store.list("")
    store.delete(["a", "b"])
    store.delete([])
    counts = store.counters.snapshot()
    assert counts.put == Requests(requests=3, retries=1, bytes_written=8)
    assert counts.get == Requests(requests=3, bytes_read=7)
    assert counts.list == counts.delete == Requests(requests=1)


def test_long_listings_and_deletions_are_several_requests(inner: Failing) -> None:
    store = RetryingObjects(inner, QUICK)
    names = [f"{at:04}" for at in range(2001)]
    for name in names:
        inner.put(name, b"")
    assert [found.name for found in store.list("")] == names
    assert store.counters.snapshot().list.requests == 3
    inner.failures = transient(1)
    store.delete(iter(names))
    assert store.counters.snapshot().delete == Requests(requests=4, retries=1)
    assert inner.list("") == []


@every_call
def test_a_closed_store_makes_no_requests(inner: Failing, call: str) -> None:
    store = RetryingObjects(inner, QUICK)
    store.close()
    store.close()
    with pytest.raises(ClosedError, match="place was closed"):
        ALL_CALLS[call](store)
    assert inner.calls == []


@pytest.mark.parametrize("bad", [{"attempts": 0}, {"connections": 0}])
def test_limits_that_allow_nothing_are_refused(inner: Failing, bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        RetryingObjects(inner, Limits(**bad))  # type: ignore[arg-type]
