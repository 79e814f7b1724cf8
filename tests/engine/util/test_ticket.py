"""Waiting ends with the release, or with a signal."""

from __future__ import annotations

import signal
import threading

import pytest

from lsmkv.engine.util.ticket import Ticket


def test_a_release_ends_the_wait() -> None:
    done: list[int] = []
    ticket = Ticket()

    def wait() -> None:
        ticket.acquire()
        done.append(1)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(0.25)  # longer than it goes without listening
    assert done == []
    ticket.lock.release()
    thread.join()
    assert done == [1]


def test_released_before() -> None:
    ticket = Ticket()
    ticket.lock.release()
    ticket.acquire()
    assert ticket.lock.locked()


def test_a_signal_ends_the_wait() -> None:
    ticket = Ticket()
    main = threading.get_ident()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sender = threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGINT))
    try:
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            ticket.acquire()
        sender.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ticket.lock.locked()
