"""Sections in which signals wait."""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from lsmkv.engine.util import signals
from lsmkv.engine.util.signals import DeferredSignals, deferred
from lsmkv.engine.util.threads import new_lock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGUSR1 there")


class Handled(Exception):
    """What the handlers of these tests raise."""


def raising(_number: int, _frame: object) -> None:
    raise Handled


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Handlers of two signals, which raise."""
    numbers = signal.SIGUSR1, signal.SIGUSR2
    before = [signal.signal(number, raising) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_a_handler_runs_at_the_end_of_the_outermost_section() -> None:
    steps = []
    with pytest.raises(Handled):  # noqa: PT012 - where it raises
        with deferred:
            with deferred:
                signal.raise_signal(signal.SIGUSR1)
                steps.append("inner")
            steps.append("outer")
        steps.append("after")
    assert steps == ["inner", "outer"]
    assert signal.getsignal(signal.SIGUSR1) is raising


def test_deliver_raises_within_the_section_which_goes_on() -> None:
    with deferred:
        deferred.deliver()
        for _ in range(2):
            signal.raise_signal(signal.SIGUSR1)
            with pytest.raises(Handled):
                deferred.deliver()


def test_nothing_is_delivered_while_cleaning_up() -> None:
    cleaned = False
    with pytest.raises(Handled), deferred, deferred.undisturbed():  # noqa: PT012 - where it raises
        signal.raise_signal(signal.SIGUSR1)
        deferred.deliver()
        cleaned = True
    assert cleaned


def test_a_section_of_the_handlers_own_ends_no_other() -> None:
    def handler(_number: int, _frame: object) -> None:
        with deferred:
            pass

    signal.signal(signal.SIGUSR1, handler)
    reached = False
    with pytest.raises(Handled), deferred:  # noqa: PT012 - where it raises
        signal.raise_signal(signal.SIGUSR1)
        deferred.deliver()
        signal.raise_signal(signal.SIGUSR2)
        reached = True
    assert reached


def test_each_pending_signal_is_handled_once_whatever_the_others_raise() -> None:
    handled = []

    def handler(number: int, _frame: object) -> None:
        handled.append(number)
        raise Handled

    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, handler)
    with pytest.raises(Handled), deferred:  # noqa: PT012 - where it raises
        for _ in range(2000):  # a profiler's timer, say
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR2)
    assert sorted(handled) == [signal.SIGUSR1, signal.SIGUSR2]


def test_a_handler_that_the_section_sets_stays() -> None:
    def another(_number: int, _frame: object) -> None:
        pass

    with deferred:
        signal.signal(signal.SIGUSR1, another)
    assert signal.getsignal(signal.SIGUSR1) is another


def test_no_handler_is_kept_after_a_section() -> None:
    class Owner:
        def handle(self, _number: int, _frame: object) -> None: ...

    owner = Owner()
    signal.signal(signal.SIGUSR1, owner.handle)
    with deferred:
        pass
    signal.signal(signal.SIGUSR1, raising)
    kept = weakref.ref(owner)
    del owner
    assert kept() is None


def test_an_interrupted_wait_ends_within_the_section() -> None:
    held = new_lock()
    held.acquire()
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    with pytest.raises(Handled):
        deferred.wait_for(held)
    timer.join()
    held.release()
    deferred.wait_for(held)
    assert not held.locked()


def test_other_threads_have_no_sections() -> None:
    """They neither exchange handlers nor end a section of the main thread."""
    signals = DeferredSignals()
    seen: list[Any] = []

    def enter() -> None:
        with signals:
            seen.append(signal.getsignal(signal.SIGUSR1))

    for _ in range(2):  # before the main thread is known, and after that
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        with signals:
            thread = threading.Thread(target=enter)
            thread.start()
            thread.join()
            assert signal.getsignal(signal.SIGUSR1) is not raising
            assert signal.getsignal(signal.SIGUSR1) == seen.pop()
        assert seen.pop() is raising


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork there")
def test_a_child_of_another_thread_has_the_programs_handlers() -> None:
    codes = []

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            with deferred:
                inside = signal.getsignal(signal.SIGUSR1) is not raising
            os._exit(0 if inside and signal.getsignal(signal.SIGUSR1) is raising else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    with deferred:
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert codes == [0]


def test_a_handler_may_have_a_section_while_handlers_are_changed_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = signals._set_handler

    def change_and_handle(number: int, handler: Any) -> Any:
        before = change(number, handler)
        if number == signal.SIGUSR1 and handler is raising:
            monkeypatch.undo()
            with deferred:
                pass
        return before

    with deferred:
        monkeypatch.setattr(signals, "_set_handler", change_and_handle)
    assert signal.getsignal(signal.SIGUSR1) is raising
    assert signal.getsignal(signal.SIGUSR2) is raising


def test_a_signal_that_comes_again_much_later_ends_the_section(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deferred.__enter__()  # an exception has ended the block without its end
    signal.raise_signal(signal.SIGUSR1)
    signal.raise_signal(signal.SIGUSR1)
    monkeypatch.setattr(signals, "LONGEST", 0.0)
    with pytest.raises(Handled):
        signal.raise_signal(signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) == raising
    with pytest.raises(Handled):
        signal.raise_signal(signal.SIGUSR1)


def test_a_handler_runs_at_once_in_a_wait_of_a_section() -> None:
    waits = []

    def wait() -> None:
        waits.append(signal.getsignal(signal.SIGUSR1))
        signal.raise_signal(signal.SIGUSR1)
        waits.append("not interrupted")

    with pytest.raises(Handled), deferred:  # noqa: PT012 - where it raises
        with pytest.raises(Handled):
            deferred.interruptible(wait)
        assert waits == [raising]
        signal.raise_signal(signal.SIGUSR1)
        waits.append("the section continues")
    assert waits == [raising, "the section continues"]
    assert deferred.interruptible(lambda: 7) == 7


def test_an_interrupt_at_any_line_leaves_the_programs_handlers() -> None:
    """After a further section, if the interrupt came in the middle of the exchange."""

    def trace(frame: Any, event: str, _argument: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != sys.modules[DeferredSignals.__module__].__file__:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                signal.raise_signal(signal.SIGUSR2)
        return trace

    line = interrupts = 0
    left = 0
    while left <= 0:
        line += 1
        left = line
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with deferred:
                pass
        except Handled:
            interrupts += 1
        finally:
            sys.settrace(before)
        with deferred:
            pass
        assert signal.getsignal(signal.SIGUSR1) is raising
        assert signal.getsignal(signal.SIGUSR2) is raising
        reached = False
        with pytest.raises(Handled), deferred:  # noqa: PT012 - where it raises
            signal.raise_signal(signal.SIGUSR1)
            reached = True
        assert reached
    assert interrupts > 10
