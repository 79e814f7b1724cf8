"""Space comes back once entries are removed."""

from __future__ import annotations

import os
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
        cache._space.wait()
        assert cache._db.stats().compactions == 0


def test_a_cache_that_is_cleared_gives_its_space_back(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, shared=False, size_limit=4 * MIB, compression=None) as cache:
        for number in range(600):
            cache[number] = os.urandom(4096)
        before = on_disk(tmp_path)
        cache.clear()
        cache._space.wait()
        assert on_disk(tmp_path) < before / 4
