"""lsmkv.shards.remote.flights: one request for several readers."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable

import pytest
from waiters import Waiters

from lsmkv.errors import CorruptionError
from lsmkv.shards.remote.flights import Flights


class Request:
    """Waits until it is let go, then returns or raises.  Only the first call is held."""

    def __init__(self, outcome: bytes | BaseException) -> None:
        self.outcome = outcome
        self.calls = 0
        self.began = threading.Semaphore(0)
        self.go = threading.Semaphore(0)

    def __call__(self) -> bytes:
        self.calls += 1
        self.began.release()
        assert self.go.acquire(timeout=60)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def share_in_threads(
    flights: Flights, call: Callable[[], bytes], count: int, first: Request, waiters: Waiters
) -> list[object]:
    """What threads get that share a request; all but one begin while the first is being made."""
    results: list[object] = []

    def work() -> None:
        try:
            results.append(flights.share("key", call))
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    assert first.began.acquire(timeout=60)
    waiters.expect(count - 1)
    first.go.release()
    for thread in threads:
        thread.join()
    return results


@pytest.fixture
def waiters(monkeypatch: pytest.MonkeyPatch) -> Waiters:
    return Waiters(monkeypatch)


def test_readers_at_one_time_share_a_request(waiters: Waiters) -> None:
    request = Request(b"data")
    results = share_in_threads(Flights(), request, 5, request, waiters)
    assert request.calls == 1
    assert sorted(results) == [(b"data", False)] * 4 + [(b"data", True)]  # type: ignore[type-var]


def test_readers_of_other_bytes_do_not_wait() -> None:
    flights = Flights()

    def request() -> bytes:
        assert flights.share("other", lambda: b"other") == (b"other", True)
        return b"data"

    assert flights.share("key", request) == (b"data", True)


def test_a_result_is_not_kept() -> None:
    flights = Flights()
    results = iter([b"one", b"two"])
    assert flights.share("key", lambda: next(results)) == (b"one", True)
    assert flights.share("key", lambda: next(results)) == (b"two", True)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ETIMEDOUT, "no reply", "memory://object"),
        PermissionError(errno.EACCES, "expired", "memory://object"),
        OSError("no number"),
        CorruptionError("short", "memory://object", 7),
    ],
)
def test_an_error_is_raised_to_all(error: OSError | CorruptionError, waiters: Waiters) -> None:
    flights = Flights()
    request = Request(error)
    results = share_in_threads(flights, request, 4, request, waiters)
    assert request.calls == 1
    assert [type(result) for result in results] == [type(error)] * 4
    assert {str(result) for result in results} == {str(error)}
    assert len({id(result) for result in results}) == 4
    assert flights.share("key", lambda: b"later") == (b"later", True)


def test_an_interrupted_request_is_made_again(waiters: Waiters) -> None:
    interrupted = Request(KeyboardInterrupt())
    first = [interrupted]
    lock = threading.Lock()

    def call() -> bytes:
        with lock:
            request = first.pop() if first else None
        return b"data" if request is None else request()

    results = share_in_threads(Flights(), call, 3, interrupted, waiters)
    assert len(results) == 3
    kept = [result for result in results if not isinstance(result, KeyboardInterrupt)]
    assert len(kept) == 2
    assert all(isinstance(result, tuple) and result[0] == b"data" for result in kept)
