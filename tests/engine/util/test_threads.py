"""lsmkv.engine.util.threads: locks that know their holder, and what no library has changed."""

from __future__ import annotations

import threading
import time

from lsmkv.engine.util.threads import (
    ThreadLock,
    get_ident,
    new_reentrant_lock,
    pause,
    start_new_thread,
)


def test_a_lock_is_its_holders_alone() -> None:
    lock = ThreadLock()
    assert (lock.mine(), lock.taken()) == (False, False)
    seen: list[tuple[bool, bool]] = []
    with lock.guard:
        assert (lock.mine(), lock.taken()) == (True, True)
        other = threading.Thread(target=lambda: seen.append((lock.mine(), lock.taken())))
        other.start()
        other.join()
    assert seen == [(False, True)]
    assert (lock.mine(), lock.taken()) == (False, False)


def test_who_held_it_last_does_not_take_anothers_lock_for_its_own() -> None:
    """Without the interpreter's lock that is asked before the other has noted itself."""
    lock = ThreadLock()
    with lock.guard:
        pass
    taken, asked = threading.Event(), threading.Event()

    def take() -> None:
        with lock.guard:
            taken.set()
            asked.wait(60)

    other = threading.Thread(target=take)
    other.start()
    assert taken.wait(60)
    mine = lock.mine()
    asked.set()
    other.join()
    assert not mine


def test_a_guard_that_is_taken_step_by_step_forgets_its_holder() -> None:
    lock = ThreadLock()
    assert lock.guard.acquire(False)
    assert lock.mine()
    lock.guard.release()
    assert (lock.mine(), lock.taken()) == (False, False)


def test_threads_and_pauses_are_the_systems() -> None:
    ended = threading.Event()
    threads: list[int] = []

    def run() -> None:
        pause(0.001)
        threads.append(get_ident())
        ended.set()

    start_new_thread(run, ())
    assert ended.wait(60)
    assert threads[0] != get_ident() == threading.get_ident()
    assert pause is not time.sleep  # which gevent may replace
    with (lock := new_reentrant_lock()), lock:
        assert lock._is_owned()
