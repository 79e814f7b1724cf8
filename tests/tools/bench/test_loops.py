"""lsmkv.tools.bench.loops: the loops that are timed, in a thread each."""

from __future__ import annotations

import threading

import pytest

from lsmkv.tools.bench import loops


def test_an_error_in_a_thread_is_raised() -> None:
    def broken() -> loops.Loop:
        raise OSError("no store")

    def fine() -> loops.Loop:
        return lambda: 1

    with pytest.raises(OSError, match="no store"):
        loops.run([fine, broken, fine])
    with pytest.raises(OSError, match="no store"):
        loops.run([broken])
    seconds, found = loops.run([fine, fine, fine])
    assert found == 3
    assert seconds > 0


def test_each_loop_has_its_thread() -> None:
    threads = set()

    def ready() -> loops.Loop:
        own = threading.get_ident()

        def loop() -> int:
            assert threading.get_ident() == own
            threads.add(own)
            return 1

        return loop

    loops.run([ready] * 4)
    assert len(threads) == 4
