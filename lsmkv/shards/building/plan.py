"""Chooses the ranges of keys of a bulk build's shards, about equal in bytes."""

from __future__ import annotations

from collections.abc import Iterable

from lsmkv.shards.building.runs import Run, Sample

SHARD_BYTES = 512 * 1024 * 1024
"""About how many bytes of keys and values a shard has, if the number of shards is not given."""


def shard_bounds(runs: Iterable[Run], shards: int | None) -> list[bytes]:
    """The first key of each shard; the first shard begins at the empty key.

    At most ``shards`` (None: one per 512 MiB), fewer if there are too few distinct keys.  The
    shards' bytes are equal, up to 1/128 of every run.  O(n log n) for n samples.

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
        # A sample is the last key of its piece.  It begins the next shard although its piece is
        # counted for this one: that moves one key.
        if passed * shards >= total * len(bounds) and sample.key > bounds[-1]:
            bounds.append(sample.key)
            if len(bounds) == shards:
                break
        passed += sample.weight
    return bounds
