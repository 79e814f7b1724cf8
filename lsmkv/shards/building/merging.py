"""Merges runs into one sorted stream, without a comparison in Python per pair.

A chunk of each run is in memory.  The smallest last key of these chunks bounds what is complete:
all pairs up to it are taken from every run and sorted together, in C.  (Source: the block-wise
merge of external sorting, Knuth, The Art of Computer Programming, vol. 3, 5.4.1, with a sort in
place of the tree of losers.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

from lsmkv.engine.util.arguments import as_bytes

Chunk = tuple[list[bytes], list[bytes]]
"""Sorted keys, and their values: two lists of the same length."""
Merge = Callable[[bytes, list[bytes]], bytes]
"""``merge(key, values)`` returns the value to keep; the values are in the order of the input."""


class _Stream:
    """The pairs of one run that are read but not taken yet."""

    __slots__ = ("_chunks", "keys", "values")

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunks = chunks
        self.keys: list[bytes] = []
        self.values: list[bytes] = []

    def fill(self) -> bool:
        """Read a chunk if none is left; False at the end."""
        if not self.keys:
            self.keys, self.values = next(self._chunks, ([], []))
        return bool(self.keys)

    def take(self, bound: bytes) -> Chunk:
        """Take the pairs of the chunk up to ``bound``."""
        count = bisect_right(self.keys, bound)
        taken = self.keys[:count], self.values[:count]
        self.keys = self.keys[count:]
        self.values = self.values[count:]
        return taken


def merged(runs: list[Iterator[Chunk]], merge: Merge | None) -> Iterator[Chunk]:
    """The pairs of all runs in key order, each key once.

    ``runs`` are in the order of the input: if several pairs have the same key, the last one wins,
    or ``merge`` is called.  All pairs of one key are in one chunk of each run, because frames hold
    them so. Cost: O(n log k) comparisons in C.
    """
    streams = [_Stream(chunks) for chunks in runs]
    while True:
        streams = [stream for stream in streams if stream.fill()]
        if not streams:
            return
        bound = min(stream.keys[-1] for stream in streams)
        taken = [stream.take(bound) for stream in streams if stream.keys[0] <= bound]
        if merge is not None:
            yield _merge_values(taken, merge)
        elif len(taken) == 1:
            yield taken[0]
        else:
            yield _last_of_each(taken)


def _last_of_each(taken: list[Chunk]) -> Chunk:
    latest: dict[bytes, bytes] = {}
    for keys, values in taken:
        latest.update(zip(keys, values, strict=True))
    keys = sorted(latest)
    return keys, list(map(latest.__getitem__, keys))


def _merge_values(taken: list[Chunk], merge: Merge) -> Chunk:
    every: dict[bytes, list[bytes]] = {}
    for keys, values in taken:
        for key, value in zip(keys, values, strict=True):
            every.setdefault(key, []).append(value)
    keys = sorted(every)
    return keys, [_merge_one(key, every[key], merge) for key in keys]


def _merge_one(key: bytes, values: list[bytes], merge: Merge) -> bytes:
    if len(values) == 1:
        return values[0]
    return as_bytes(merge(key, values), "merged value")
