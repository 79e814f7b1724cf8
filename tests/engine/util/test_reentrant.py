"""lsmkv.engine.util.reentrant: whatever a signal handler raises, and whenever, a lock is not
left held.
"""

from __future__ import annotations

import random
import signal
import threading
from types import FrameType
from typing import Any

import pytest

from lsmkv.engine.util.reentrant import released_when_interrupted
from lsmkv.engine.util.threads import new_reentrant_lock


class Interrupted(BaseException):
    pass


def test_a_lock_that_a_handler_interrupts_as_it_is_taken_is_released() -> None:
    """The handler runs at the end of ``acquire``, and raises."""
    raising = [True]

    class Interrupting(type(new_reentrant_lock())):  # type: ignore[misc]
        def acquire(self, *arguments: Any) -> bool:
            super().acquire(*arguments)
            if raising[0]:
                raise Interrupted
            return True

    lock = released_when_interrupted(Interrupting)()
    with pytest.raises(Interrupted), lock:
        pass
    assert not lock._is_owned()
    raising[0] = False
    with lock:
        raising[0] = True
        with pytest.raises(Interrupted), lock:
            pass
        assert lock._is_owned()  # it was before
    lock.release()  # the inner one, which no block has begun
    assert not lock._is_owned()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timer")
def test_no_signal_at_any_moment_leaves_a_lock_held() -> None:
    assert threading.current_thread() is threading.main_thread()

    waiting = [False]

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if waiting[0]:
            waiting[0] = False
            raise Interrupted

    rng = random.Random(1)
    before = signal.signal(signal.SIGALRM, interrupt)
    held = interrupted = 0
    try:
        for _ in range(300):
            lock = new_reentrant_lock()
            try:
                waiting[0] = True
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-5, 1e-4))
                for _ in range(100_000):  # it ends, even if a finalizer has swallowed the exception
                    with lock:
                        pass
                waiting[0] = False
            except Interrupted:
                interrupted += 1
            held += lock._is_owned()
    finally:
        waiting[0] = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert held == 0
    assert interrupted > 250
