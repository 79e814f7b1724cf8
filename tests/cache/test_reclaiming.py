"""Space comes back once entries are removed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import lsmkv

MIB = 1 << 20


def on_disk(path: Path) -> int:
    """The bytes of all files of the store; a compaction may remove some meanwhile."""
    total = 0
    for file in path.iterdir():
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def test_little_garbage_is_left_alone(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, shared=False) as cache:
        for number in range(100):
            cache[number] = bytes(1000)
        cache.clear()
        cache._reclaiming.wait()
        assert cache._db.stats().compactions == 0


def test_a_cache_that_is_cleared_gives_its_space_back(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, shared=False, size_limit=4 * MIB, compression=None) as cache:
        for number in range(600):
            cache[number] = os.urandom(4096)
        before = on_disk(tmp_path)
        cache.clear()
        cache._reclaiming.wait()
        while on_disk(tmp_path) >= before / 4:  # files are removed a moment later
            time.sleep(0.01)


def test_a_cache_at_its_limit_takes_little_more_on_disk(tmp_path: Path) -> None:
    """Ten times as much is stored.  How much exactly is for make bench-cache on a quiet machine."""
    limit = 4 * MIB
    with lsmkv.Cache(tmp_path, size_limit=limit, compression=None) as cache:
        garbage = []
        for number in range(10_000):
            cache[number] = os.urandom(4096)
            if number > 2000 and number % 100 == 0:
                stats = cache._db.stats()
                garbage.append(sum(level.bytes for level in stats.levels) - limit)
        assert max(garbage) < 0.5 * limit
        assert sum(garbage) / len(garbage) < 0.25 * limit


def test_writes_are_delayed_by_what_is_too_much(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, shared=False, compression=None) as cache:
        space = cache._reclaiming
        space._running = True  # as if a thread compacted already
        for number in range(1000):
            cache[number] = os.urandom(4096)
        cache._db.flush()
        space.look(MIB, 4 * MIB)
        assert space.delay > 0
        space.look(4 * MIB, 1 << 30)
        assert space.delay == 0
        space._running = False
        space.look(0, MIB)
        space.wait()
        assert space.delay == 0
        assert len(cache[0]) == len(cache[999]) == 4096
