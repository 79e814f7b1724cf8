"""Where the shards of a bulk build begin and end: ranges of keys with about the same bytes each."""

from __future__ import annotations

from collections.abc import Iterable

from lsmkv.bulk.runs import Run, Sample

SHARD_BYTES = 512 * 1024 * 1024
"""Bytes of keys and values in a shard, about, where the number of shards is left open."""


def shard_bounds(runs: Iterable[Run], shards: int | None) -> list[bytes]:
    """The first key of each shard; the first shard begins with the empty key.

    At most ``shards`` (None: one for each 512 MiB): fewer where there are too few different keys.
    Each shard's bytes are those of the others, up to 1/128 of every run.  O(n log n) for n samples.

    >>> run = Run("r", 40, b"a", b"d", 4, tuple(Sample(key, 10) for key in (b"a", b"b", b"c")))
    >>> shard_bounds([run], 3), shard_bounds([], 3)
    ([b'', b'b', b'c'], [b''])
    """
    samples: list[Sample] = sorted(sample for run in runs for sample in run.samples)
    total = sum(sample.weight for sample in samples)
    if shards is None:
        shards = max(1, -(-total // SHARD_BYTES))
    bounds = [b""]
    passed = 0
    for sample in samples:
        # A sample is the last key of its piece, so that the key belongs to what has been passed;
        # it begins the next shard all the same, which moves one key.
        if passed * shards >= total * len(bounds) and sample.key > bounds[-1]:
            bounds.append(sample.key)
            if len(bounds) == shards:
                break
        passed += sample.weight
    return bounds
