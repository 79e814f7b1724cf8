"""Counters: what the engine does, as plain numbers.

They only ever grow while a store is open.  They are exact when one thread uses the store; under
several, an increment may on rare occasions be lost, never invented.
"""

from __future__ import annotations

from typing import Final

NUM_LEVELS: Final = 7
"""Levels 0 to 6, as LevelDB has them."""


class ReadCounters:
    """What lookups and scans did to the tables of one level."""

    __slots__ = (
        "block_cache_hits",
        "blocks_read",
        "bytes_read",
        "filter_false_positives",
        "filter_negatives",
        "filters_asked",
        "tables_asked",
    )

    def __init__(self) -> None:
        self.tables_asked = 0
        """Tables whose key range covered a key that was looked up."""
        self.filters_asked = 0
        self.filter_negatives = 0
        """Filters that said no: each saved a data block."""
        self.filter_false_positives = 0
        """Filters that said maybe for a key that the block did not hold."""
        self.blocks_read = 0
        """Data blocks read from the file.  A scan or a compaction may read several with one system
        call."""
        self.bytes_read = 0
        """Bytes of those blocks as stored, trailers included."""
        self.block_cache_hits = 0
        """Data blocks found in lsmkv's own block cache."""

    @property
    def filter_positives(self) -> int:
        """Filters that said maybe."""
        return self.filters_asked - self.filter_negatives


class CompactionCounters:
    """What compactions into one level did, or flushes that landed on it."""

    __slots__ = ("bytes_read", "bytes_written", "runs", "seconds")

    def __init__(self) -> None:
        self.runs = 0
        self.seconds = 0.0
        self.bytes_read = 0
        self.bytes_written = 0

    def add(self, seconds: float, bytes_read: int, bytes_written: int) -> None:
        """One more run."""
        self.runs += 1
        self.seconds += seconds
        self.bytes_read += bytes_read
        self.bytes_written += bytes_written


class Counters:
    """All counters of one open store, as the engine keeps them."""

    def __init__(self) -> None:
        self.reads = [ReadCounters() for _ in range(NUM_LEVELS)]
        self.flushes_into = [CompactionCounters() for _ in range(NUM_LEVELS)]
        self.compactions_into = [CompactionCounters() for _ in range(NUM_LEVELS)]
        self.gets = 0
        self.gets_found = 0
        self.gets_from_memory = 0
        self.gets_from_rows = 0
        self.iterators = 0
        self.tables_opened = 0
        self.metadata_reads = 0
        self.metadata_bytes_read = 0
        self.writes = 0
        self.operations = 0
        self.user_bytes = 0
        self.log_bytes = 0
        self.log_writes = 0
        self.log_syncs = 0
        self.slowdowns = 0
        self.stalls = 0
        self.stall_seconds = 0.0
        self.flushes = 0
        self.flush_bytes = 0
        self.compactions = 0
        self.trivial_moves = 0
        self.seek_compactions = 0
        self.compaction_bytes_read = 0
        self.compaction_bytes_written = 0

    def make_room(self, levels: int) -> None:
        """Count for at least so many levels: a store of goleveldb's may have more than seven."""
        while len(self.reads) < levels:
            self.reads.append(ReadCounters())
            self.flushes_into.append(CompactionCounters())
            self.compactions_into.append(CompactionCounters())
