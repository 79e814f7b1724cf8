"""The counters of a reader of shards: :class:`ShardsStats`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from lsmkv.engine.stats import Stats
from lsmkv.engine.util.text import count, size
from lsmkv.shards.remote.disk_cache import DiskCache
from lsmkv.shards.remote.objects.counters import RequestCounts
from lsmkv.shards.version import VersionDocument


class CacheCounts(NamedTuple):
    """The use of the cache on disk by this reader."""

    hits: int
    """Pages found in it; each saved a request or a part of one."""
    misses: int
    puts: int
    """Pages that were written to it."""
    evictions: int
    """Pages that were removed to make room."""


@dataclass(frozen=True)
class ShardsStats:
    """The reads of a reader of shards since it was opened, and the requests it saved.

    ``str()`` is a short table, ``to_dict()`` is plain data.  ``Shards.stats`` makes one, and states
    errors and cost.  The engine's counters do not include shards that a refresh has closed.

    >>> import lsmkv.bulk, lsmkv.shards, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"ant", b"six"), (b"cow", b"four")], here)
    ...     with lsmkv.shards.open(here) as s:
    ...         _ = s.multi_get([b"ant", b"bee"])
    ...         stats = s.stats()
    >>> stats.pairs, stats.shards_open, stats.filter_negatives, stats.to_dict()["cache"]
    (2, 1, 1, None)
    """

    version: int
    shards: int
    shards_open: int
    pairs: int
    """The number of pairs of the version."""
    bytes: int
    """The bytes of the version's files."""
    gets: int
    gets_found: int
    filters_asked: int
    filter_negatives: int
    """Gets that a filter answered without a request, per table."""
    filter_false_positives: int
    blocks_read: int
    """Data blocks that were read from a file, by a request or from the cache on disk."""
    block_cache_hits: int
    metadata_bytes: int
    """Bytes of indexes and filters that were read to open tables."""
    requests: RequestCounts
    """The requests by kind, with bytes and retries."""
    cache: CacheCounts | None
    """The counts of the cache on disk; None without one."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        plain = asdict(self)
        kinds = self.requests._asdict().items()
        plain["requests"] = {kind: counts._asdict() for kind, counts in kinds}
        plain["cache"] = None if self.cache is None else self.cache._asdict()
        return plain

    def __str__(self) -> str:
        """The figures, a line for each subject."""
        total = self.requests.total
        lines = [
            f"version        {self.version}: {count(self.pairs, 'pair')}, {size(self.bytes)}",
            f"shards         {self.shards:,}: {self.shards_open:,} open,"
            f" {size(self.metadata_bytes)} of indexes and filters",
            f"gets           {self.gets:,}: {self.gets_found:,} found",
            f"filters        {self.filters_asked:,} asked: {self.filter_negatives:,} said no,"
            f" {self.filter_false_positives:,} false positives",
            f"requests       {total.requests:,}: {count(self.requests.list.requests, 'listing')},"
            f" {count(total.retries, 'retry')}, {size(total.bytes_read)} read",
        ]
        if self.cache is not None:
            lines.append(
                f"cache on disk  {count(self.cache.hits, 'page')} found,"
                f" {self.cache.misses:,} not; {self.cache.puts:,} written"
            )
        return "\n".join(lines)


def stats_of(
    document: VersionDocument,
    opened: Sequence[Stats],
    requests: RequestCounts,
    cache: DiskCache | None,
) -> ShardsStats:
    """The sums of these shards' counters, with the rest."""
    return ShardsStats(
        version=document.number,
        shards=len(document.shards),
        shards_open=len(opened),
        pairs=document.pairs,
        bytes=document.bytes,
        gets=sum(stats.gets for stats in opened),
        gets_found=sum(stats.gets_found for stats in opened),
        filters_asked=sum(stats.filters_asked for stats in opened),
        filter_negatives=sum(stats.filter_negatives for stats in opened),
        filter_false_positives=sum(stats.filter_false_positives for stats in opened),
        blocks_read=sum(stats.blocks_read for stats in opened),
        block_cache_hits=sum(stats.block_cache_hits for stats in opened),
        metadata_bytes=sum(stats.metadata_bytes_read for stats in opened),
        requests=requests,
        cache=None
        if cache is None
        else CacheCounts(cache.hits, cache.misses, cache.puts, cache.evictions),
    )
