"""The timed code: loops with as little around each operation as Python allows.

A loop is prepared in the thread that will run it (:data:`Ready`), before the clock starts; with
``--histogram`` it also records the nanoseconds of each operation.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Loop = Callable[[], int]
"""Runs, and returns the number of hits or entries."""
Ready = Callable[[], Loop]
Record = Callable[[int], object]
T = TypeVar("T")


def run(readies: Sequence[Ready]) -> tuple[float, int]:
    """Seconds that the loops take together, each in its own thread, and the sum of their counts."""
    try:
        return _run_one(readies[0]) if len(readies) == 1 else _run_many(readies)
    finally:
        gc.unfreeze()


def _run_one(ready: Ready) -> tuple[float, int]:
    loop = ready()
    _quieten()
    started = time.perf_counter()
    found = loop()
    return time.perf_counter() - started, found


def _run_many(readies: Sequence[Ready]) -> tuple[float, int]:
    made = threading.Barrier(len(readies) + 1)
    gate = threading.Barrier(len(readies) + 1)

    def in_thread(ready: Ready) -> int:
        try:
            loop = ready()
            made.wait()
        except BaseException:
            made.abort()
            gate.abort()
            raise
        gate.wait()
        return loop()

    with ThreadPoolExecutor(len(readies)) as pool:
        futures = [pool.submit(in_thread, ready) for ready in readies]
        try:
            made.wait()
            _quieten()
            gate.wait()
        except threading.BrokenBarrierError:
            errors = [future.exception() for future in futures]
            raise next(
                error
                for error in errors
                if error is not None and not isinstance(error, threading.BrokenBarrierError)
            ) from None
        started = time.perf_counter()
        found = sum([future.result() for future in futures])
        return time.perf_counter() - started, found


def _quieten() -> None:
    """Keep the garbage collector away from the present objects while the clock runs."""
    gc.collect()
    gc.freeze()


def _recorded(call: Callable[..., T], record: Record | None) -> Callable[..., T]:
    """``call``, the nanoseconds of which are recorded; as it is if nothing records them."""
    if record is None:
        return call
    clock = time.perf_counter_ns

    def recording(*arguments: bytes) -> T:
        started = clock()
        found = call(*arguments)
        record(clock() - started)
        return found

    return recording


def puts(
    put: Callable[[bytes, bytes], object],
    keys: Sequence[bytes],
    values: Sequence[bytes],
    record: Record | None,
) -> Loop:
    """Put after put."""
    put = _recorded(put, record)

    def loop() -> int:
        for key, value in zip(keys, values, strict=True):
            put(key, value)
        return len(keys)

    return loop


def lookups(
    get: Callable[[bytes], bytes | None], keys: Sequence[bytes], record: Record | None
) -> Loop:
    """Get after get, or seek after seek; counts what was found."""
    get = _recorded(get, record)

    def loop() -> int:
        misses = 0
        for key in keys:
            if get(key) is None:
                misses += 1
        return len(keys) - misses

    return loop


def calls(call: Callable[[bytes], object], keys: Sequence[bytes], record: Record | None) -> Loop:
    """Delete after delete; counts the calls."""
    call = _recorded(call, record)

    def loop() -> int:
        for key in keys:
            call(key)
        return len(keys)

    return loop


def ranges(read: Callable[[bytes], int], keys: Sequence[bytes], record: Record | None) -> Loop:
    """Range after range; counts the entries."""
    read = _recorded(read, record)

    def loop() -> int:
        found = 0
        for key in keys:
            found += read(key)
        return found

    return loop


def scan(pairs: Iterable[tuple[bytes, bytes]]) -> Loop:
    """All entries.  They are counted in another pass, outside the clock."""

    def loop() -> int:
        for key, value in pairs:  # noqa: B007 - a program would use them
            pass
        return 0

    return loop


def takes(
    scan: Callable[[bool], Iterable[tuple[bytes, bytes]]],
    delete: Callable[[bytes], object],
    steps: int,
) -> Loop:
    """The first entry of a new scan, and its deletion, again and again."""

    def loop() -> int:
        for _ in range(steps):
            delete(next(iter(scan(False)))[0])
        return steps

    return loop
