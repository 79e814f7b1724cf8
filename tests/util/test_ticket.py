"""Waiting ends with the release, or with a signal."""

from __future__ import annotations

import signal
import threading

import pytest

from lsmkv.util.ticket import Ticket


@pytest.fixture
def lock() -> threading.Lock:
    held = threading.Lock()
    held.acquire()
    return held


def test_a_release_ends_the_wait(lock: threading.Lock) -> None:
    done: list[int] = []

    def wait() -> None:
        Ticket(lock).acquire()
        done.append(1)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(0.25)  # longer than it goes without listening
    assert done == []
    lock.release()
    thread.join()
    assert done == [1]


def test_released_before(lock: threading.Lock) -> None:
    lock.release()
    Ticket(lock).acquire()
    assert lock.locked()


def test_a_signal_ends_the_wait(lock: threading.Lock) -> None:
    main = threading.get_ident()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sender = threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGINT))
    try:
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            Ticket(lock).acquire()
        sender.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert lock.locked()
