"""Values kept in memory: how many, which, and what threads and signals cannot spoil."""

from __future__ import annotations

import random
import threading

import pytest

from lsmkv.db import row_cache as module
from lsmkv.db.row_cache import RowCache

OVERHEAD = 150


def test_the_values_cached_longest_are_evicted() -> None:
    rows = RowCache()
    for number in range(10):
        rows.keep(b"%d" % number, b"v", 3 * (OVERHEAD + 2))
        rows.check()
    assert list(rows.values) == [b"7", b"8", b"9"]
    rows.keep(b"x", bytes(OVERHEAD), 3 * (OVERHEAD + 2))
    rows.check()
    assert list(rows.values) == [b"9", b"x"]
    rows.keep(b"x", b"another", 3 * (OVERHEAD + 2))  # as when two threads have found it
    rows.check()
    rows.keep(b"y", bytes(3 * OVERHEAD), 3 * (OVERHEAD + 2))
    assert b"y" not in rows.values
    rows.clear()
    rows.check()
    assert rows.usage == 0


@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.usefixtures("quick_switches")
def test_threads_keep_the_row_cache_within_its_bound(threads: int) -> None:
    rows = RowCache()
    limit = 50 * (OVERHEAD + 100)

    def keep(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(3000):
            rows.keep(b"%d" % rng.randrange(200), bytes(rng.randrange(200)), limit)

    workers = [threading.Thread(target=keep, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    rows.check()
    assert limit - OVERHEAD - 200 < rows.usage <= limit


def test_the_row_cache_never_waits_for_its_lock() -> None:
    rows = RowCache()
    rows.keep(b"k", b"v", 1000)
    with rows._lock:
        rows.keep(b"l", b"v", 1000)
        rows.clear()
        assert rows.values == {b"k": b"v"}
    rows.keep(b"l", b"v", 1000)
    assert list(rows.values) == [b"k", b"l"]
    rows.check()


@pytest.mark.parametrize("call", range(1, 6))
def test_an_interrupt_leaves_the_row_cache_consistent(
    call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not module.__file__.endswith(".py"):
        pytest.skip("compiled code calls what it was compiled with")
    rows = RowCache()
    for number in range(4):
        rows.keep(b"%d" % number, b"v", 4 * (OVERHEAD + 2))
    calls = 0
    charge = module._charge

    def interrupted(key: bytes, value: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return charge(key, value)

    monkeypatch.setattr(module, "_charge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rows.keep(b"large", bytes(3 * OVERHEAD), 4 * (OVERHEAD + 2))
    monkeypatch.undo()
    rows.check()
    rows.keep(b"after", b"v", 4 * (OVERHEAD + 2))
    assert b"after" in rows.values
    rows.check()
