"""Transactions of a cache, and results that one caller computes for all."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from cache_users import CacheUser
from interrupts import interrupted_at_each_step
from threads import background_of, run_threads
from waiting import wait_until

import lsmkv
from lsmkv.cache.cache import Cache
from lsmkv.cache.leased import Flights, lease_name
from lsmkv.cache.memoizing import MISSING

User = Callable[[], CacheUser]


def waiting(cache: Cache, name: bytes) -> int:
    """How many wait for a lease at the owner, this process."""
    return cache._db._part.listener.leases.queue.waiting(name)  # type: ignore[attr-defined, no-any-return]


TRANSACT = b"cache:transact:\x01"


def test_transactions_of_threads_and_processes_lose_nothing(
    shared_cache: Cache, user: User
) -> None:
    code = """
for _ in range(40):
    with cache.transact():
        cache["n"] = cache.get("n", 0) + 1
"""
    others = [user(), user()]
    for one in others:
        one.ask(code)

    def count() -> None:
        for _ in range(40):
            with shared_cache.transact():
                shared_cache["n"] = shared_cache.get("n", 0) + 1

    assert run_threads(count, count) == []
    assert [one.answer() for one in others] == [None, None]
    assert shared_cache["n"] == 160


def test_a_transaction_within_another_of_its_thread(shared_cache: Cache) -> None:
    with shared_cache.transact(), shared_cache.transact(retry=True):
        shared_cache["n"] = 1
    with shared_cache.transact():
        pass


def test_writes_of_a_block_that_raises_stay(shared_cache: Cache) -> None:
    with pytest.raises(KeyError), shared_cache.transact():
        _set_and_raise(shared_cache)
    assert shared_cache["n"] == 1
    with shared_cache.transact():
        pass


def _set_and_raise(cache: Cache) -> None:
    cache["n"] = 1
    raise KeyError("stop")


def test_a_process_that_dies_leaves_its_transaction(shared_cache: Cache, user: User) -> None:
    one = user()
    one.ask("with cache.transact(limit=None): cache['in'] = 1; time.sleep(600)")
    wait_until(lambda: "in" in shared_cache)
    thread, errors = background_of(lambda: _transact(shared_cache))
    wait_until(lambda: waiting(shared_cache, TRANSACT) == 1)
    one.kill()
    thread.join()
    assert errors == []


def _transact(cache: Cache) -> None:
    with cache.transact():
        pass


def test_a_transaction_that_passes_its_limit_says_so(shared_cache: Cache) -> None:
    with (
        pytest.raises(lsmkv.ConflictError, match=r"limit of 0\.001 seconds"),
        shared_cache.transact(limit=0.001),
    ):
        assert run_threads(lambda: _transact(shared_cache)) == []  # it gets in meanwhile


def test_a_transaction_of_a_cache_that_is_closed_in_it() -> None:
    with Cache(shared=False) as cache:
        with cache.transact():
            cache.close()
        with pytest.raises(lsmkv.ClosedError), cache.transact():
            pass


def test_long_keys_have_short_names() -> None:
    assert lease_name(b"kind", b"key") == b"cache:kind:key"
    assert len(lease_name(b"kind", bytes(1 << 20))) < 60
    assert lease_name(b"kind", bytes(1000)) != lease_name(b"kind", bytes(1001))


# memoize(lock=True)


def test_one_thread_computes_for_all() -> None:
    with Cache(shared=False) as cache:
        calls: list[int] = []
        go = threading.Event()

        @cache.memoize("slow", lock=True)
        def slow(number: int) -> int:
            calls.append(number)
            go.wait()
            return number + 1

        results: list[int] = []
        name = lease_name(b"memoize", cache_key(cache, slow.__cache_key__(1)))
        threads = [background_of(lambda: results.append(slow(1))) for _ in range(4)]
        wait_until(lambda: calls and cache._db._leases.waiting(name) == 3)
        go.set()
        for thread, errors in threads:
            thread.join()
            assert errors == []
        assert (results, calls) == ([2] * 4, [1])
        assert slow(2) == 3


def cache_key(cache: Cache, key: object) -> bytes:
    from lsmkv.cache.keys import encode_key

    return encode_key(key, cache.codec)


def test_after_a_failure_the_next_one_computes() -> None:
    with Cache(shared=False) as cache:
        outcomes = [ValueError("no"), None]

        @cache.memoize("flaky", lock=True)
        def flaky() -> str:
            outcome = outcomes.pop(0)
            if outcome is not None:
                raise outcome
            return "done"

        with pytest.raises(ValueError, match="no"):
            flaky()
        assert flaky() == flaky() == "done"
        assert outcomes == []


def test_a_recursive_function(shared_cache: Cache) -> None:
    @shared_cache.memoize("fibonacci", lock=True)
    def fibonacci(number: int) -> int:
        return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)

    assert fibonacci(20) == 6765


COMPUTES = """
calls = 0
@cache.memoize("slow", lock=True)
def slow():
    global calls
    calls += 1
    cache.incr("begun")
    while "go" not in cache: time.sleep(0.001)
    return "done"
"""


def test_one_process_computes_for_all(shared_cache: Cache, user: User) -> None:
    others = [user() for _ in range(3)]
    for one in others:
        one(COMPUTES)
        one.ask("result = slow(), calls")
    name = lease_name(b"memoize", cache_key(shared_cache, ("slow", (), ())))
    wait_until(lambda: waiting(shared_cache, name) == 2)
    shared_cache["go"] = True
    answers = sorted(one.answer() for one in others)
    assert answers == [("done", 0), ("done", 0), ("done", 1)]
    assert shared_cache["begun"] == 1


def test_another_process_computes_once_the_first_is_killed(shared_cache: Cache, user: User) -> None:
    first, second = user(), user()
    first(COMPUTES)
    second(COMPUTES)
    first.ask("result = slow()")
    wait_until(lambda: shared_cache.get("begun") == 1)
    second.ask("result = slow(), calls")
    name = lease_name(b"memoize", cache_key(shared_cache, ("slow", (), ())))
    wait_until(lambda: waiting(shared_cache, name) == 1)
    first.kill()
    wait_until(lambda: shared_cache.get("begun") == 2)
    shared_cache["go"] = True
    assert second.answer() == ("done", 1)


def test_one_task_computes_for_all(shared_cache: Cache, user: User) -> None:
    calls: list[int] = []

    async def main() -> list[str]:
        go = asyncio.Event()

        @shared_cache.memoize("work", lock=True)
        async def work() -> str:
            calls.append(1)
            await go.wait()
            return "done"

        tasks = [asyncio.create_task(work()) for _ in range(5)]
        while not calls:
            await asyncio.sleep(0)
        go.set()
        return [await task for task in tasks]

    assert asyncio.run(main()) == ["done"] * 5
    assert calls == [1]


def test_a_task_waits_for_another_process_and_can_be_cancelled(
    shared_cache: Cache, user: User
) -> None:
    one = user()
    one(COMPUTES)
    one.ask("result = slow()")
    wait_until(lambda: shared_cache.get("begun") == 1)
    name = lease_name(b"memoize", cache_key(shared_cache, ("slow", (), ())))

    async def main() -> str:
        @shared_cache.memoize("slow", lock=True)
        async def slow() -> str:
            return "computed here"

        task = asyncio.create_task(slow())
        cancelled = asyncio.create_task(slow())
        while waiting(shared_cache, name) == 0:
            await asyncio.sleep(0.001)
        cancelled.cancel()
        task.cancel()
        for each in (task, cancelled):
            with pytest.raises(asyncio.CancelledError):
                await each
        last = asyncio.create_task(slow())
        while waiting(shared_cache, name) < 2:
            await asyncio.sleep(0.001)
        shared_cache["go"] = True
        return await last

    assert asyncio.run(main()) == "done"
    assert one.answer() == "done"
    with_lease = shared_cache._lease(b"memoize", ("slow", (), ()), timeout=60)
    assert with_lease is not None
    assert isinstance(Flights(lambda: shared_cache)._locks, dict)


def enter(cache: Cache) -> None:
    with cache.transact():
        pass


def compute(cache: Cache) -> None:
    Flights(lambda: cache).call("k", lambda: MISSING, lambda: None)


@pytest.mark.parametrize("member", [False, True])
@pytest.mark.parametrize("block", [enter, compute])
def test_an_interrupted_block_keeps_nobody_out(
    shared_cache: Cache, block: Callable[[Cache], None], member: bool
) -> None:
    interrupts = 0
    with copy.copy(shared_cache) if member else nullcontext(shared_cache) as cache:
        for _, interrupted in interrupted_at_each_step(lambda: cache, block):
            interrupts += interrupted
            thread, errors = background_of(lambda: block(cache))
            thread.join(10)
            assert not thread.is_alive(), f"kept out after an interrupt at step {interrupts}"
            assert errors == []
    assert interrupts > 20
