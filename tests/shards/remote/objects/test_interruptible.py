"""Ctrl-C during a call that does not look for it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lsmkv.shards.remote.objects.interruptible import interruptible


def test_results_and_errors_pass_through() -> None:
    assert interruptible(lambda: 5) == 5
    assert interruptible(lambda: None) is None
    error = OSError(5, "its own")

    def fail() -> None:
        raise error

    with pytest.raises(OSError, match="its own") as caught:
        interruptible(fail)
    assert caught.value is error


def test_other_threads_call_at_once() -> None:
    with ThreadPoolExecutor(1) as pool:
        inside = pool.submit(lambda: interruptible(threading.get_ident)).result()
        assert inside == pool.submit(threading.get_ident).result()


@pytest.fixture
def _sigint_raises(signals_are_heard: None) -> Iterator[None]:
    """Also where a shell has made this process ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_sigint_raises")
def test_ctrl_c_does_not_wait_for_the_call() -> None:
    began, finish, ended = threading.Event(), threading.Event(), threading.Event()

    def block() -> None:
        began.set()
        finish.wait()
        ended.set()

    def interrupt() -> None:
        began.wait()
        time.sleep(0.05)  # the main thread waits by now
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # another thread gets it

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(block)
    assert not ended.is_set()
    finish.set()
    assert ended.wait(30)


def test_a_process_that_can_start_no_thread_calls_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert interruptible(threading.current_thread) is threading.main_thread()
