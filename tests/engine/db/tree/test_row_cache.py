"""lsmkv.engine.db.tree.row_cache: its bound, its order of eviction, threads and interrupts."""

from __future__ import annotations

import random
import threading

import pytest

from lsmkv.engine.db.tree import row_cache as module
from lsmkv.engine.db.tree.row_cache import RowCache

OVERHEAD = 150


def test_the_values_cached_longest_are_evicted() -> None:
    cache = RowCache()
    for number in range(10):
        cache.keep(b"%d" % number, b"v", 3 * (OVERHEAD + 2))
        cache.check()
    assert list(cache.values) == [b"7", b"8", b"9"]
    cache.keep(b"x", bytes(OVERHEAD), 3 * (OVERHEAD + 2))
    cache.check()
    assert list(cache.values) == [b"9", b"x"]
    cache.keep(b"x", b"another", 3 * (OVERHEAD + 2))  # two threads may find one value
    cache.check()
    cache.keep(b"y", bytes(3 * OVERHEAD), 3 * (OVERHEAD + 2))
    assert b"y" not in cache.values
    cache.clear()
    cache.check()
    assert cache.usage == 0


@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.usefixtures("quick_switches")
def test_threads_keep_the_row_cache_within_its_bound(threads: int) -> None:
    cache = RowCache()
    limit = 50 * (OVERHEAD + 100)

    def keep(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(3000):
            cache.keep(b"%d" % rng.randrange(200), bytes(rng.randrange(200)), limit)

    workers = [threading.Thread(target=keep, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    cache.check()
    assert limit - OVERHEAD - 200 < cache.usage <= limit


def test_the_row_cache_never_waits_for_its_lock() -> None:
    cache = RowCache()
    cache.keep(b"k", b"v", 1000)
    with cache._lock:
        cache.keep(b"l", b"v", 1000)
        cache.clear()
        assert cache.values == {b"k": b"v"}
    cache.keep(b"l", b"v", 1000)
    assert list(cache.values) == [b"k", b"l"]
    cache.check()


@pytest.mark.parametrize("call", range(1, 6))
def test_an_interrupt_leaves_the_row_cache_consistent(
    call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not module.__file__.endswith(".py"):
        pytest.skip("compiled code calls what it was compiled with")
    cache = RowCache()
    for number in range(4):
        cache.keep(b"%d" % number, b"v", 4 * (OVERHEAD + 2))
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
        cache.keep(b"large", bytes(3 * OVERHEAD), 4 * (OVERHEAD + 2))
    monkeypatch.undo()
    cache.check()
    cache.keep(b"after", b"v", 4 * (OVERHEAD + 2))
    assert b"after" in cache.values
    cache.check()
