"""Lock, RLock and BoundedSemaphore over threads and processes, and deaths of their holders."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cache_users import CacheUser
from threads import background_of, run_threads

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


def test_kinds_of_locks_are_locks_of_their_own(shared_cache: Cache) -> None:
    with Lock(shared_cache, "n"), RLock(shared_cache, "n"), BoundedSemaphore(shared_cache, "n"):
        pass
