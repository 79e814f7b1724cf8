"""Lock, RLock and BoundedSemaphore over threads and processes, and deaths of their holders."""

from __future__ import annotations

import copy
import signal
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from operator import methodcaller
from typing import Any

import pytest
from cache_users import CacheUser
from interrupts import Interrupt, interrupt, interrupted_at_each_step
from threads import background_of, run_threads
from waiting import wait_until

from lsmkv import DeadlockError, LeasedName, SharedDB
from lsmkv.cache.cache import Cache
from lsmkv.cache.recipes import BoundedSemaphore, Lock, RLock

User = Callable[[], CacheUser]


def test_a_lock_over_processes(shared_cache: Cache, user: User) -> None:
    lock = Lock(shared_cache, "n")
    shared_cache["n"] = 0
    others = [user(), user()]
    for one in others:
        one.ask("for _ in range(30):\n with Lock(cache, 'n'): cache['n'] = cache['n'] + 1")

    def count() -> None:
        for _ in range(30):
            with lock:
                shared_cache["n"] = shared_cache["n"] + 1

    assert run_threads(count, count) == []
    assert [one.answer() for one in others] == [None, None]
    assert shared_cache["n"] == 120
    assert not lock.locked()


@pytest.mark.parametrize("kind", ["Lock(cache, 'n')", "RLock(cache, 'n')"])
def test_a_lock_is_released_when_its_holder_dies(
    shared_cache: Cache, user: User, kind: str
) -> None:
    one = user()
    one(f"{kind}.acquire()")
    lock = (Lock if kind.startswith("Lock") else RLock)(shared_cache, "n")
    thread, errors = background_of(lock.acquire)
    one.kill()
    thread.join()
    assert errors == []


def test_a_semaphore_is_released_when_its_holders_die(shared_cache: Cache, user: User) -> None:
    one = user()
    one("s = BoundedSemaphore(cache, 'n', value=2); s.acquire(); s.acquire()")
    semaphore = BoundedSemaphore(shared_cache, "n", value=2)
    with pytest.raises(AssertionError, match="cannot release un-acquired semaphore"):
        semaphore.release()
    one.kill()
    with semaphore, semaphore:
        pass


def test_a_lock_that_another_process_holds_is_locked(shared_cache: Cache, user: User) -> None:
    one = user()
    one("lock = Lock(cache, 'n'); lock.acquire()")
    lock = Lock(shared_cache, "n")
    assert lock.locked()
    lock.release()  # it is not this process's
    assert lock.locked()
    one("lock.release()")
    assert not lock.locked()


def test_a_lock_is_released_by_another_thread_and_another_object(shared_cache: Cache) -> None:
    Lock(shared_cache, ("a", 1)).acquire()
    assert run_threads(Lock(shared_cache, ("a", 1)).release) == []
    assert not Lock(shared_cache, ("a", 1)).locked()
    assert not Lock(shared_cache, ["a", 1]).locked()


def test_a_lock_expires(shared_cache: Cache) -> None:
    lock = Lock(shared_cache, "n", expire=0.01)
    lock.acquire()
    lock.acquire()
    lock.release()
    assert not Lock(shared_cache, "n").locked()


def test_an_rlock_belongs_to_its_thread(shared_cache: Cache) -> None:
    lock = RLock(shared_cache, "n")
    with lock, lock:
        (error,) = run_threads(lock.release)
        assert str(error) == "cannot release un-acquired lock"
        thread, errors = background_of(lambda: (lock.acquire(), lock.release()))
    thread.join()
    assert errors == []
    with pytest.raises(AssertionError):
        lock.release()


def test_a_lock_releases_no_other_whose_key_equals_its_own_to_python(shared_cache: Cache) -> None:
    one, true = Lock(shared_cache, (1,)), Lock(shared_cache, (True,))
    one.acquire()
    true.acquire()
    one.release()
    assert (one.locked(), true.locked()) == (False, True)
    Lock(shared_cache, {"a", "b", "c", "d"}).acquire()
    Lock(shared_cache, {"d", "c", "b", "a"}).release()
    assert not Lock(shared_cache, {"a", "b", "c", "d"}).locked()


def test_kinds_of_locks_are_locks_of_their_own(shared_cache: Cache) -> None:
    with Lock(shared_cache, "n"), RLock(shared_cache, "n"), BoundedSemaphore(shared_cache, "n"):
        pass


KINDS = pytest.mark.parametrize("kind", [Lock, RLock, BoundedSemaphore])
MEMBER = pytest.mark.parametrize("member", [False, True])


def caches_of(cache: Cache, member: bool) -> Cache:
    """The cache, or a second handle of it: a member, of which the first is the owner."""
    assert cache.get("n") is None
    return copy.copy(cache) if member else cache


def numbered(kind: Callable[..., Any], cache: Cache) -> Callable[[], Any]:
    """Makes a lock with a new key at each call."""
    keys = count()
    return lambda: kind(cache, next(keys))


def is_free(lock: Any) -> bool:
    """Whether another thread can take the lock."""

    def take() -> None:
        lock.acquire()
        lock.release()

    thread, errors = background_of(take)
    thread.join(10)
    return not thread.is_alive() and errors == []


@MEMBER
@KINDS
def test_an_interrupted_acquire_leaves_nothing_held(
    shared_cache: Cache, kind: Callable[..., Any], member: bool
) -> None:
    interrupts = 0
    with caches_of(shared_cache, member) as cache:
        begin = numbered(kind, cache)
        for lock, interrupted in interrupted_at_each_step(begin, methodcaller("acquire")):
            interrupts += interrupted
            if not interrupted:
                lock.release()
            assert is_free(lock), f"held after an interrupt at step {interrupts}"
    assert interrupts > 10


@MEMBER
@KINDS
def test_an_interrupted_release_has_happened_or_can_be_repeated(
    shared_cache: Cache, kind: Callable[..., Any], member: bool
) -> None:
    interrupts = 0
    with caches_of(shared_cache, member) as cache:
        begin = numbered(kind, cache)

        def acquired() -> Any:
            lock = begin()
            lock.acquire()
            return lock

        for lock, interrupted in interrupted_at_each_step(acquired, methodcaller("release")):
            interrupts += interrupted
            with suppress(AssertionError):  # it is not held
                lock.release()
            assert is_free(lock), f"held after an interrupt at step {interrupts}"
    assert interrupts > 10


@KINDS
def test_what_an_interrupted_block_leaves_held_a_release_ends(
    shared_cache: Cache, kind: Callable[..., Any]
) -> None:
    """An interrupt may come before the first step of ``__exit__``, which has not happened then."""

    def block(lock: Any) -> None:
        with lock:
            pass

    interrupts = 0
    for lock, interrupted in interrupted_at_each_step(numbered(kind, shared_cache), block):
        interrupts += interrupted
        with suppress(AssertionError):  # it is not held
            lock.release()
        assert is_free(lock), f"held after an interrupt at step {interrupts}"
    assert interrupts > 20


@KINDS
def test_a_wait_for_a_lock_is_interrupted(cache: Cache, kind: Callable[..., Any]) -> None:
    lock = kind(cache, "n")
    thread, errors = background_of(lock.acquire)
    thread.join()
    handler = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Interrupt):
            lock.acquire()
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert errors == []


# Waits with an end


@KINDS
def test_who_waits_for_long_enough_gets_false(
    shared_cache: Cache, user: User, kind: Callable[..., Any]
) -> None:
    one = user()
    one(f"lock = {kind.__name__}(cache, 'n'); result = lock.acquire()")
    lock = kind(shared_cache, "n")
    assert lock.acquire(timeout=0.01) is False
    assert lock.acquire(timeout=0) is False
    one("lock.release()")
    assert lock.acquire(timeout=60) is True
    lock.release()
    assert is_free(lock)


@KINDS
def test_blocks_of_two_processes_that_wait_for_each_other(
    shared_cache: Cache, user: User, kind: Callable[..., Any]
) -> None:
    one = user()
    one(f"a, b = {kind.__name__}(cache, 'a'), {kind.__name__}(cache, 'b'); a.__enter__()")
    with kind(shared_cache, "b"):
        one.ask("b.__enter__()")
        wait_until(lambda: any(name.waiters for name in names_of(shared_cache)))
        with (
            pytest.raises(DeadlockError, match=f"{kind.__name__} 'a', which process"),
            kind(shared_cache, "a"),
        ):
            pass
    assert one.answer() is None


def names_of(cache: Cache) -> tuple[LeasedName, ...]:
    db = cache._db
    assert isinstance(db, SharedDB)
    return db.leases().names


@pytest.mark.parametrize("kind", [Lock, BoundedSemaphore])
def test_what_any_thread_may_release_is_no_deadlock(
    shared_cache: Cache, kind: Callable[..., Any]
) -> None:
    lock = kind(shared_cache, "n")
    lock.acquire()
    assert lock.acquire(timeout=0.01) is False
    with pytest.raises(DeadlockError), kind(shared_cache, "m"), kind(shared_cache, "m"):
        pass
    with Lock(shared_cache, "k", expire=0.01), Lock(shared_cache, "k", expire=0.01):
        pass
