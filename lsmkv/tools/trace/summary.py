"""A trace in sum: operations by kind with their latencies, hit rates, and the most frequent keys.

``lsmkv trace --summary`` adds every operation and prints the result.  Memory is bounded, however
many keys the trace has: see :class:`FrequentKeys`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import lsmkv
from lsmkv.engine.util.json_fields import json_field
from lsmkv.shared.owner import OPERATIONS, Histogram
from lsmkv.tools.text import clipped, count, duration

PERCENTILES = (50, 90, 99, 99.9, 100)

_LOOKING = ("get", "seek")
"""Operations that find something or not."""


class OperationKind:
    """Totals of all operations of one kind."""

    def __init__(self) -> None:
        self.records = 0
        self.operations = 0
        """Equal to ``records``, except for batches."""
        self.found = 0
        self.bytes = 0
        """The bytes of the values that were found or written."""
        self.latencies = Histogram()

    def add(self, record: lsmkv.TraceRecord) -> None:
        """Count an operation."""
        self.records += 1
        self.operations += record.operations
        self.found += record.found
        self.bytes += record.size or 0
        self.latencies.add(record.duration)


class FrequentKeys:
    """Counts keys in bounded memory (source: Misra and Gries, *Finding Repeated Elements*, 1982).

    Counts are exact as long as there is room for every key.  Beyond that, each count is lowered by
    one and keys without any are dropped, so that counts are at most :attr:`missed` too low.
    """

    def __init__(self, limit: int = 200_000, limit_bytes: int = 64 << 20) -> None:
        """Room for ``limit`` keys of ``limit_bytes`` in all."""
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._counts: Counter[bytes] = Counter()
        self._bytes = 0
        self.missed = 0

    def add(self, key: bytes) -> None:
        """Count a key.  O(1) amortized."""
        counts = self._counts
        if key not in counts:
            self._bytes += len(key)
        counts[key] += 1
        if len(counts) > self._limit or self._bytes > self._limit_bytes:
            self.missed += 1
            self._counts = Counter({k: times - 1 for k, times in counts.items() if times > 1})
            self._bytes = sum(map(len, self._counts))

    def most_common(self, number: int) -> list[tuple[bytes, int]]:
        """The most frequent keys, and how often each was seen; equally frequent ones by key."""
        ranked = sorted(self._counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return ranked[:number]


class Summary:
    """A trace in sum.  Call order: ``add* (lines | to_dict)*``."""

    def __init__(self, started: float, sample: int) -> None:
        """``started`` and ``sample`` are the trace's."""
        self._started = started
        self._sample = sample
        self._kinds = {operation: OperationKind() for operation in OPERATIONS}
        self._keys = FrequentKeys()
        self._last = 0

    def add(self, record: lsmkv.TraceRecord) -> None:
        """Add an operation."""
        self._kinds[record.operation].add(record)
        if record.key or record.operation != "seek":  # else it begins at an end of the store
            self._keys.add(record.key)
        self._last = max(self._last, record.start + record.duration // 1000)

    @property
    def records(self) -> int:
        """Operations in the trace, batches counted as one."""
        return sum(kind.records for kind in self._kinds.values())

    def lines(self, keys: int, is_hex: bool, width: int) -> Iterator[str]:
        """The summary as text for ``width`` columns, with this many frequent keys."""
        seconds = self._last / 1_000_000
        yield f"{count(self.records, 'operation')} in {seconds:,.1f} s{self._pace(seconds)}"
        if self._sample > 1:
            yield f"sampled: one in {self._sample:,} of each kind is in the trace"
        if self.records == 0:
            return
        yield ""
        titles = [f"p{percent:g}" for percent in PERCENTILES[:-1]]
        yield _row("operation", "times", "share", "found", *titles, "max")
        for operation, kind in self._kinds.items():
            if kind.records > 0:
                yield self._kind_row(operation, kind)
        writes = self._kinds["write"]
        if writes.records > 0:
            yield f"the writes are batches of {writes.operations / writes.records:,.1f} operations"
        yield from self._key_lines(keys, is_hex, width)

    def _pace(self, seconds: float) -> str:
        if seconds < 0.01:
            return ""
        return f", {self.records * self._sample / seconds:,.0f} a second"

    def _kind_row(self, operation: str, kind: OperationKind) -> str:
        found = f"{kind.found / kind.records:.1%}" if operation in _LOOKING else ""
        times = [duration(kind.latencies.percentile(percent)) for percent in PERCENTILES]
        share = f"{kind.records / self.records:.1%}"
        return _row(operation, f"{kind.records:,}", share, found, *times)

    def _key_lines(self, keys: int, is_hex: bool, width: int) -> Iterator[str]:
        frequent = [pair for pair in self._keys.most_common(keys) if pair[1] > 1]
        if not frequent:
            return
        yield ""
        missed = self._keys.missed
        about = f" (each up to {missed:,} times more)" if missed else ""
        yield f"{'times':>12}{'share':>8}  most frequent keys{about}"
        for key, times in frequent:
            share = f"{times / self.records:.1%}"
            yield f"{times:>12,}{share:>8}  {clipped(key, max(20, width - 22), is_hex)}"

    def to_dict(self, keys: int, is_hex: bool) -> dict[str, Any]:
        """Plain data, for JSON; durations are in nanoseconds."""
        return {
            "started": self._started,
            "sample": self._sample,
            "seconds": self._last / 1_000_000,
            "records": self.records,
            "operations": {
                operation: _plain(operation, kind)
                for operation, kind in self._kinds.items()
                if kind.records > 0
            },
            "keys": [
                json_field("key", key, is_hex) | {"times": times}
                for key, times in self._keys.most_common(keys)
            ],
            "keys_missed": self._keys.missed,
        }


class _Column(NamedTuple):
    width: int
    left: bool = False


_COLUMNS = (_Column(9, left=True), _Column(12), _Column(8), _Column(8), *[_Column(8)] * 5)


def _row(*cells: str) -> str:
    shown = [
        f"{cell:<{column.width}}" if column.left else f"{cell:>{column.width}}"
        for cell, column in zip(cells, _COLUMNS, strict=True)
    ]
    return "".join(shown).rstrip()


def _plain(operation: str, kind: OperationKind) -> dict[str, Any]:
    latencies = kind.latencies
    plain: dict[str, Any] = {
        "records": kind.records,
        "operations": kind.operations,
        "bytes": kind.bytes,
        "mean": round(latencies.mean),
    }
    plain |= {f"p{percent:g}": latencies.percentile(percent) for percent in PERCENTILES[:-1]}
    plain["max"] = latencies.percentile(100)
    if operation in _LOOKING:
        plain["found"] = kind.found
    return plain
