"""Space comes back: the disk under a cache that is held at its limit."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import lsmkv

MIB = 1 << 20


def on_disk(path: Path) -> int:
    """The bytes of all files of the store."""
    return sum(file.stat().st_size for file in path.iterdir() if file.is_file())


@pytest.mark.parametrize("size", [4096, 200_000])
def test_a_full_cache_stays_within_its_limit_on_disk(tmp_path: Path, size: int) -> None:
    limit = 8 * MIB
    rng = random.Random(1)
    most = 0
    options = {"compression": None, "mapped_log": False}
    with lsmkv.Cache(tmp_path, shared=False, size_limit=limit, **options) as cache:  # type: ignore[arg-type]
        written = 0
        while written < 10 * limit:
            cache[rng.randrange(10**9)] = os.urandom(size)
            written += size
            if written > limit:
                cache._space.wait()
                most = max(most, on_disk(tmp_path))
        assert cache.volume() <= limit * 1.05
    assert most < 1.3 * limit


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
