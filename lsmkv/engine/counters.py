"""Counters: what the engine does, as plain numbers.

**A counter is declared here, in one place**: an attribute of :class:`StoreCounts`, or of
:class:`LevelCounts` if it is kept by level, with its meaning below it.  The code that counts adds
to it.  :class:`~lsmkv.Stats` and :class:`~lsmkv.LevelStats` derive from these two, so all of these
have it automatically: ``db.stats()``, its differences and ``to_dict``, ``lsmkv stats --json``,
``STATS.json``, and the metrics of ``db.metrics_text()``, whose help is the first sentence of the
meaning.  ``tests/engine/test_counters.py`` follows every counter through all of them, and demands
its row in ``docs/reference/api.md``.

They only ever grow while a store is open.  They are exact when one thread uses the store; under
several, an increment may on rare occasions be lost, never invented.
"""

from __future__ import annotations

from types import GetSetDescriptorType, TracebackType
from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from mypy_extensions import i64

NUM_LEVELS: Final = 7
"""Levels 0 to 6, as LevelDB has them."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ReadCounters:
    """Counters of lookups and scans in one group of tables, as a rule those of one level."""

    def __init__(self) -> None:
        self.tables_asked = 0
        """Tables whose key range covered a key that was looked up."""
        self.filters_asked = 0
        """Filters that were asked for a key."""
        self.filter_negatives = 0
        """Filters that said no: each saved a data block."""
        self.filter_false_positives = 0
        """Filters that said maybe for a key that the block did not hold."""
        self.blocks_read = 0
        """Data blocks read from files by lookups and iterators.  A scan may read several with one
        system call."""
        self.bytes_read = 0
        """Bytes of the data blocks read, as stored, trailers included."""
        self.block_cache_hits = 0
        """Data blocks found in lsmkv's own block cache."""


@mypyc_attr(allow_interpreted_subclasses=True)  # LevelStats derives from it
class LevelCounts(ReadCounters):
    """Counters that are kept for each level."""

    def __init__(self) -> None:
        super().__init__()
        self.flushes = 0
        """Memtables made into tables of this level."""
        self.flush_seconds = 0.0
        """Time that flushes to this level took."""
        self.flush_bytes = 0
        """Bytes of the tables that flushes to this level wrote."""
        self.compactions = 0
        """Compactions into this level; neither flushes nor trivial moves are among them."""
        self.compaction_seconds = 0.0
        """Time that compactions into this level took."""
        self.compaction_bytes_read = 0
        """Bytes of the tables that compactions into this level read."""
        self.compaction_bytes_written = 0
        """Bytes of the tables that compactions into this level wrote."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LookupCounts:
    """Counters of lookups and scans that are kept once for a store."""

    def __init__(self) -> None:
        self.gets = 0
        """Gets, those of ``multi_get`` and of snapshots included."""
        self.gets_found = 0
        """Gets that found a value."""
        self.gets_from_memory = 0
        """Gets that a memtable answered, with a value or with a deletion."""
        self.gets_from_rows = 0
        """Gets that the row cache answered: their keys are requested often."""
        self.iterators = 0
        """Iterators opened."""
        self.tables_opened = 0
        """Tables opened, those that are opened again included."""
        self.metadata_reads = 0
        """Reads of footers, indexes and filters: they happen when a table is opened."""
        self.metadata_bytes_read = 0
        """Bytes of the footers, indexes and filters that were read."""
        self.identity_check_reads = 0
        """Reads of the first data block of a table when it is opened: its first key must be the one
        that the MANIFEST states, or the file is another table's.  ``blocks_read`` has none of them;
        the block goes into the block cache, so that a lookup finds it there."""
        self.identity_check_bytes_read = 0
        """Bytes of those data blocks, as stored, trailers included."""


@mypyc_attr(allow_interpreted_subclasses=True)  # Stats derives from it
class StoreCounts(LookupCounts):
    """Counters that are kept once for a store."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        """Batches written; a put or a delete is a batch of one."""
        self.operations = 0
        """Puts and deletions in the batches written."""
        self.user_bytes = 0
        """Bytes of the keys and values that were written."""
        self.log_bytes = 0
        """Bytes written to the log."""
        self.log_writes = 0
        """Writes to the log: fewer than batches when several threads write."""
        self.log_syncs = 0
        """Syncs of the log."""
        self.slowdowns = 0
        """Writes that slept, a millisecond at most, so that a flush or compactions gain on them."""
        self.stalls = 0
        """Writes that waited for a flush or a compaction."""
        self.stall_seconds = 0.0
        """Time that stalled writes waited."""
        self.flushes = 0
        """Memtables made into tables."""
        self.flush_bytes = 0
        """Bytes of the tables that flushes wrote."""
        self.compactions = 0
        """Merges of tables into the next level.  Flushes and trivial moves are not among them."""
        self.trivial_moves = 0
        """Files that moved down a level unchanged, in place of a compaction."""
        self.seek_compactions = 0
        """Compactions and moves that lookups triggered."""
        self.compaction_bytes_read = 0
        """Bytes of the tables that compactions read."""
        self.compaction_bytes_written = 0
        """Bytes of the tables that compactions wrote."""


class Counters(StoreCounts):
    """All counters of one open store, as the engine keeps them."""

    def __init__(self) -> None:
        super().__init__()
        self.levels = [LevelCounts() for _ in range(NUM_LEVELS)]

    def make_room(self, levels: int) -> None:
        """Count for at least so many levels: a store of goleveldb may have more than seven."""
        while len(self.levels) < levels:
            self.levels.append(LevelCounts())

    def count_flush(self, level: int, seconds: float, written: int) -> None:
        """Count one more flush, to a table of ``level``."""
        into = self.levels[level]
        self.flushes += 1
        into.flushes += 1
        self.flush_bytes += written
        into.flush_bytes += written
        into.flush_seconds += seconds

    def count_compaction(self, level: int, seconds: float, read: int, written: int) -> None:
        """Count one more compaction, into ``level``."""
        into = self.levels[level]
        self.compactions += 1
        into.compactions += 1
        self.compaction_bytes_read += read
        into.compaction_bytes_read += read
        self.compaction_bytes_written += written
        into.compaction_bytes_written += written
        into.compaction_seconds += seconds


def names_of(counts: LookupCounts | ReadCounters) -> list[str]:
    """The counters by name, as they are declared; the same compiled and interpreted."""
    kind: Any = type(counts)
    names: list[str] = [
        *getattr(counts, "__dict__", ()),  # interpreted, they are in the object
        *(
            name
            for cls in reversed(kind.__mro__)  # compiled, they are descriptors of its classes
            for name, member in vars(cls).items()
            if isinstance(member, GetSetDescriptorType) and not name.startswith("_")
        ),
    ]
    return [name for name in names if type(getattr(counts, name)) in (int, float)]


LEVEL_COUNTERS: Final = names_of(LevelCounts())
STORE_COUNTERS: Final = names_of(StoreCounts())
LOOKUP_COUNTERS: Final = names_of(LookupCounts())
READ_COUNTERS: Final = names_of(ReadCounters())


def reads_of(counters: Counters) -> list[int]:
    """Return the counters of lookups and scans: :data:`LOOKUP_COUNTERS`, then :data:`READ_COUNTERS`
    of each of the levels 0 to 6."""
    found: list[int] = [getattr(counters, name) for name in LOOKUP_COUNTERS]
    for name in READ_COUNTERS:
        for level in range(NUM_LEVELS):
            found.append(getattr(counters.levels[level], name))
    return found


class BlockReads:
    """The reads of data blocks that are under way in this process: a hint, which no lock guards.

    A thread that reads and decompresses a block lets other threads run.  One that writes
    looks here, and gives way (``lsmkv/engine/db/write/writer.py``).
    """

    def __init__(self) -> None:
        self.under_way: i64 = 0
        """Number of block reads in progress."""
        self.ended: i64 = 0
        """Number of block reads that have ended."""

    def __enter__(self) -> None:
        self.under_way += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.under_way -= 1
        self.ended += 1


BLOCK_READS: Final = BlockReads()
