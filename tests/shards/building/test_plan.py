"""Ranges of shards: even in bytes, and rising."""

from __future__ import annotations

import random
from bisect import bisect_right

import pytest

from lsmkv.shards.building.plan import SHARD_BYTES, shard_bounds
from lsmkv.shards.building.runs import Run, Sample, encode_run


def runs_of(parts: list[list[bytes]]) -> list[Run]:
    return [encode_run("r", sorted(keys), [b"x" * 100] * len(keys))[0] for keys in parts if keys]


@pytest.mark.parametrize("shards", [1, 2, 7, 64])
def test_shards_are_even(shards: int) -> None:
    rng = random.Random(shards)
    parts = [[b"%016x" % rng.getrandbits(64) for _ in range(20_000)] for _ in range(4)]
    bounds = shard_bounds(runs_of(parts), shards)
    assert len(bounds) == shards
    assert bounds[0] == b""
    assert bounds == sorted(set(bounds))
    counts = [0] * shards
    for part in parts:
        for key in part:
            counts[bisect_right(bounds, key) - 1] += 1
    mean = 80_000 / shards
    assert max(counts) < mean + 4 * 20_000 / 128 + 1
    assert min(counts) > 0


def test_few_keys_make_few_shards() -> None:
    assert shard_bounds([], 5) == [b""]
    assert shard_bounds(runs_of([[b"k"]]), 5) == [b""]
    assert shard_bounds(runs_of([[b"k"], [b"k"], [b"k"]]), 5) == [b"", b"k"]
    assert shard_bounds(runs_of([[b"a", b"b", b"c"]]), 64) == [b"", b"b", b"c"]


def test_the_order_of_runs_does_not_matter() -> None:
    rng = random.Random(3)
    runs = runs_of([[rng.randbytes(6) for _ in range(300)] for _ in range(5)])
    bounds = shard_bounds(runs, 9)
    rng.shuffle(runs)
    assert shard_bounds(runs, 9) == bounds


def test_by_default_a_shard_has_half_a_gibibyte() -> None:
    samples = tuple(Sample(b"%03d" % n, SHARD_BYTES // 10) for n in range(100))
    run = Run("r", 10 * SHARD_BYTES, b"000", b"099", 1000, samples)
    assert len(shard_bounds([run], None)) == 10
