"""Sorted runs as a reader sees them: a memtable; the files of one level, one after the other."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

from lsmkv.db.memtable import LARGEST_CHUNK, MemTable
from lsmkv.db.merge import InternalIterator, KeyOrder, Position
from lsmkv.db.table_cache import TableCache, edge_of
from lsmkv.db.version import Version
from lsmkv.errors import CorruptionError
from lsmkv.format.keys import TAG_SIZE
from lsmkv.format.version_edit import FileMetaData
from lsmkv.stats import ReadCounters
from lsmkv.table.block_iterator import ALL, PAIRS, BlockIterator
from lsmkv.table.reader import FROM_FILE, Readahead, Table

if TYPE_CHECKING:
    from mypy_extensions import i64

FIRST_CHUNK: Final = 4
"""Pairs that a seek reads first, and twice as many each time, from block to block: often a few are
all it is about.  Of a run beside others, no more than its share."""


_FEW: Final = 8
"""Pairs that are read at once on the way to a position: half of a restart interval."""


class MemTableIterator(InternalIterator):
    """What is seen of a memtable from an edge to a bound, either way; keys in the bytewise order.

    Writes in between may be missed or seen, whole either way: what was written before the reader's
    sequence is there.
    """

    def __init__(
        self,
        memtable: MemTable,
        order: KeyOrder,
        sequence: int,
        edge: Position | None,
        bound: Position | None,
        back: bool,
        first_chunk: i64,
    ) -> None:
        """At first so many keys are read, and twice as many each time."""
        self._memtable = memtable
        self._order = order
        self._sequence = sequence
        self._edge = edge
        self._bound = bound
        self._back = back
        self._count: i64 = first_chunk
        self._ended = False

    def next_chunk(self) -> list[Any]:
        """The next pairs, removals among them."""
        found: list[Any] = []
        back = self._back
        bound = self._bound
        while not found and not self._ended:
            last = self._memtable.visible(self._edge, self._count, self._sequence, back, found)
            if last is None:
                self._ended = True
                break
            self._edge = Position(last, not back)
            self._count = min(2 * self._count, LARGEST_CHUNK)
            if bound is not None and self._order.is_at_or_after(last, bound) != back:
                self._ended = True
                cut = self._order.count_before(found, bound)
                found = found[cut:] if back else found[:cut]
        return found


class CacheShare:
    """How many bytes of blocks the runs of one scan may still put into the block cache."""

    __slots__ = ("_left",)

    def __init__(self, size: i64) -> None:
        self._left: i64 = size

    def takes(self, size: i64) -> bool:
        """Whether a block of this size goes in, which it does then."""
        if size > self._left:
            return False
        self._left -= size
        return True


class LevelReader:
    """Blocks of a run, for the one who goes through it; keys in the bytewise order."""

    def __init__(
        self,
        tables: TableCache,
        version: Version,
        level: i64,
        files: list[FileMetaData],
        newest: i64,
        form: i64,
        first_chunk: i64,
        order: KeyOrder,
        counters: ReadCounters,
        share: CacheShare | None,
    ) -> None:
        """``files`` are those of a level, or one of level 0; versions after ``newest`` are hidden
        (:data:`~lsmkv.table.block_iterator.NO_LIMIT`: none).  ``form`` is one of
        :mod:`lsmkv.table.block_iterator`'s; ``first_chunk`` says how many pairs a seek reads first,
        ``share`` which blocks go into the cache; without one none does.
        """
        self.order = order
        """The store's, which is the bytewise one."""
        self.files = files
        self.version = version
        self.level: i64 = level
        self.first_chunk: i64 = first_chunk
        self.form: i64 = form
        self._tables = tables
        self._newest: i64 = newest
        self._counters = counters
        self._share = share
        self._span: Readahead | None = None  # what was read last
        self._met: i64 = 0  # how many blocks

    def file_from(self, start: Position) -> i64:
        """Index of the file where a scan from a position begins; of none, one past the last."""
        if self.level == 0:
            return 1 if self.ends_before(0, start) else 0
        if start.after:
            return self.version.file_at(self.level, edge_of(start))
        return self.version.file_from(self.level, start.user_key)

    def begins_behind(self, at: i64, bound: Position) -> bool:
        """Whether all keys of a file lie behind a position."""
        return self.order.is_at_or_after(self.files[at].smallest[:-TAG_SIZE], bound)

    def ends_before(self, at: i64, bound: Position) -> bool:
        """Whether all keys of a file lie before a position."""
        return not self.order.is_at_or_after(self.files[at].largest[:-TAG_SIZE], bound)

    def block_from(self, table: Table, start: Position) -> i64:
        """Number of the block where a scan from a position begins; of none, one past the last."""
        return table.find_block(edge_of(start)) if start.after else table.block_of(start.user_key)

    def table(self, at: i64) -> Table:
        """The table of a file of the run."""
        return self._tables.find(self.files[at])

    def walk(
        self,
        table: Table,
        number: i64,
        bound: Position | None,
        back: bool,
        start: bytes,
        head: bytes,
        settled: bool,
    ) -> BlockIterator:
        """The :class:`~lsmkv.table.block_iterator.BlockIterator` of a block, on the way ``back`` or
        forward.

        With a block come some that are next, half as many in all as were met before: a scan reads
        at most half as much again as it needs, and nothing that the ``bound`` of its way rules out.
        """
        span = self._span
        if span is None or not span.has(table, number):
            most = self._met >> 1
            if most > 1 and bound is not None:
                last = self.block_from(table, bound)
                most = min(most, (number - last if back else last - number) + 1)
            span = table.span(number, most, back, self._counters)
            self._span = span
        outcome, block = table.block(number, self._counters, span)
        share = self._share
        is_seek = self._met == 0  # whose block may be asked for again, as a Get's
        if outcome == FROM_FILE and share is not None and (is_seek or share.takes(len(block))):
            table.keep(number, block)
        self._met += 1
        try:
            return BlockIterator(block, self._newest, start, head, settled)
        except CorruptionError as error:
            raise table.damaged(error, number) from None

    def seek_to_restart(
        self, table: Table, number: i64, walk: BlockIterator, stop: Position | None
    ) -> bytes:
        """Have the walk begin in the last restart interval before a position, or in the last of
        all: see :meth:`~lsmkv.table.block_iterator.BlockIterator.seek_to_restart`."""
        try:
            return walk.seek_to_restart(None if stop is None else stop.user_key)
        except CorruptionError as error:
            raise table.damaged(error, number) from None

    def take_before(
        self, table: Table, number: i64, walk: BlockIterator, stop: Position | None
    ) -> list[Any]:
        """The walk's pairs before a position, or all; little more than these is read."""
        if stop is None:
            return self.take(table, number, walk, ALL)
        order = self.order
        pairs: list[Any] = []
        while not walk.done and not order.is_at_or_after(walk.head, stop):
            pairs += self.take(table, number, walk, _FEW)
        if pairs and order.is_at_or_after(pairs[-1][0], stop):
            pairs = pairs[: order.count_before(pairs, stop)]
        return pairs

    def take(self, table: Table, number: i64, walk: BlockIterator, count: i64) -> list[Any]:
        """The walk's next pairs."""
        try:
            return walk.take(count, self.form)
        except CorruptionError as error:
            raise table.damaged(error, number) from None


class BaseLevelIterator(InternalIterator):
    """What a scan meets of the files of a run, either way."""

    _reader: LevelReader

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Before anything was read: whether no file can hold any of it."""

    def be_alone(self) -> None:
        """Before anything was read: there is no other run, and removals hide nothing."""
        self._reader.form = PAIRS


class LevelIterator(BaseLevelIterator):
    """The pairs of a run after a position, a block or so at a time."""

    def __init__(self, reader: LevelReader, start: Position | None, upper: Position | None) -> None:
        """The pairs of ``reader`` below ``upper``, if there is such a bound."""
        self._reader = reader
        self._upper = upper
        self._file: i64 = 0  # the next one to open
        self._table: Table | None = None
        self._number: i64 = 0  # of the block after the walk's
        self._walk: BlockIterator | None = None
        self._start = b""
        self._head = b""  # the last key, whose older versions may follow in the next block
        self._settled = False
        self._count: i64 = ALL
        self._begin = start  # until its block is found
        if start is not None:
            self._file = reader.file_from(start)
            self._start = start.user_key
            self._head = start.user_key
            self._settled = start.after
            self._count = reader.first_chunk
        self._skip_beyond_bound()

    @property
    def is_empty(self) -> bool:
        """Whether no file reaches into the range."""
        return self._file == len(self._reader.files)

    def be_alone(self) -> None:
        """Reads as many pairs at first as one that is not beside others."""
        super().be_alone()
        self._count = max(self._count, FIRST_CHUNK)

    def next_chunk(self) -> list[Any]:
        """The next pairs."""
        reader = self._reader
        while True:
            walk = self._walk
            table = self._table
            if walk is None:
                if table is None or self._number == table.num_blocks:
                    if table is not None:
                        self._skip_beyond_bound()
                    if self._file == len(reader.files):
                        return []
                    table = reader.table(self._file)
                    begin = self._begin
                    self._number = 0 if begin is None else reader.block_from(table, begin)
                    self._begin = None
                    self._table = table
                    self._file += 1
                    continue
                walk = reader.walk(
                    table,
                    self._number,
                    self._upper,
                    False,
                    self._start,
                    self._head,
                    self._settled,
                )
                self._number += 1
                self._start = b""
            assert table is not None
            pairs = reader.take(table, self._number - 1, walk, self._count)
            if self._count < ALL:
                self._count *= 2
            if walk.done:
                self._head = walk.head
                self._settled = walk.settled
                self._walk = None
            else:
                self._walk = walk
            upper = self._upper
            # The last key that was met tells, whether anything was seen of it or not.
            if upper is not None and reader.order.is_at_or_after(walk.head, upper):
                self._file = len(reader.files)
                self._table = None
                self._walk = None
                pairs = pairs[: reader.order.count_before(pairs, upper)]
            if pairs:
                return pairs

    def _skip_beyond_bound(self) -> None:
        """Leave the next file alone, and all behind it, if it begins behind the bound."""
        upper = self._upper
        files = self._reader.files
        if (
            upper is not None
            and self._file < len(files)
            and self._reader.begins_behind(self._file, upper)
        ):
            self._file = len(files)


class ReverseLevelIterator(BaseLevelIterator):
    """The mirror image: the pairs before a position, the last chunk first, each rising."""

    def __init__(
        self, reader: LevelReader, before: Position | None, lower: Position | None
    ) -> None:
        """The pairs of ``reader`` at ``lower`` or above, if there is such a bound."""
        self._reader = reader
        self._before = before
        self._lower = lower
        self._file: i64 = len(reader.files)  # the one that was opened last
        self._table: Table | None = None
        self._number: i64 = -1  # of the next block
        self._walk: BlockIterator | None = None  # of the block that was read last
        self._begun = False  # whether a block was read
        self._split: Position | None = None  # what the first block has before it is next
        self._held: list[Any] | None = None  # pairs that were read too early
        self._begin: Position | None = None  # until its block is found, as in LevelIterator
        if before is not None:
            at = reader.file_from(before)
            if at < len(reader.files):
                self._file = at
                if not reader.begins_behind(at, before):
                    self._file += 1
                    self._begin = before
        self._skip_beyond_bound()

    @property
    def is_empty(self) -> bool:
        """Whether no file reaches into the range."""
        return self._file == 0

    def next_chunk(self) -> list[Any]:
        """The next pairs."""
        reader = self._reader
        while True:
            pairs = self._held
            self._held = None
            if pairs is None:
                pairs = self._read()
                if pairs is None:
                    return []
            if not pairs:
                edge = self._end_before()
                if (
                    edge is not None
                    and self._lower is not None
                    and not reader.order.is_at_or_after(edge, self._lower)
                ):
                    self._end()
                continue
            first = pairs[0][0]
            if self._end_before() == first:
                # The block before may hold newer versions of the first key.
                held = self._read()
                walk = self._walk
                self._held = held
                if walk is not None and walk.head == first and walk.settled:
                    pairs = pairs[1:]
                    if not pairs:
                        continue
            lower = self._lower
            if lower is not None and not reader.order.is_at_or_after(pairs[0][0], lower):
                self._end()
                pairs = pairs[reader.order.count_before(pairs, lower) :]
            return pairs

    def _read(self) -> list[Any] | None:
        """The pairs of the next block, or what is left of the first; None after the run's first."""
        if self._split is not None:
            return self._read_rest()
        reader = self._reader
        table = self._table
        while table is None or self._number < 0:
            if table is not None:
                self._skip_beyond_bound()
            if self._file == 0:
                self._walk = None
                return None
            table = reader.table(self._file - 1)
            begin = self._begin
            last = table.num_blocks - 1
            self._number = last if begin is None else min(reader.block_from(table, begin), last)
            self._begin = None
            self._table = table
            self._file -= 1
        number = self._number
        walk = reader.walk(table, number, self._lower, True, b"", b"", False)
        self._number = number - 1
        self._walk = walk
        if self._begun:
            return reader.take(table, number, walk, ALL)
        self._begun = True
        return self._read_end(table, number, walk)

    def _read_end(self, table: Table, number: i64, walk: BlockIterator) -> list[Any]:
        """Of the first block, what lies behind a restart point: the last one that has any pairs
        between itself and the position.  Often a few are all that is wanted."""
        reader = self._reader
        stop = self._before
        while True:
            split = reader.seek_to_restart(table, number, walk, stop)
            pairs = reader.take_before(table, number, walk, stop)
            if not split:
                return pairs
            stop = Position(split, after=True)
            if pairs:
                self._split = stop
                return pairs
            walk = walk.anew()

    def _read_rest(self) -> list[Any]:
        """Of the first block, what lies before the split."""
        table = self._table
        walk = self._walk
        assert table is not None
        assert walk is not None
        pairs = self._reader.take_before(table, self._number + 1, walk.anew(), self._split)
        self._split = None
        return pairs

    def _end(self) -> None:
        """Read no more: what comes next lies before the bound."""
        self._file = 0
        self._table = None
        self._split = None
        self._held = None

    def _end_before(self) -> bytes | None:
        """A user key at or after the last one of the next block, and before or at the first one of
        the block read last; None if no block is next."""
        if self._table is not None and self._number >= 0:
            return self._table.index_key(self._number)[:-TAG_SIZE]
        if self._file == 0:
            return None
        return self._reader.files[self._file - 1].largest[:-TAG_SIZE]

    def _skip_beyond_bound(self) -> None:
        """Leave the next file alone, and all before it, if it ends before the bound."""
        lower = self._lower
        if lower is not None and self._file > 0 and self._reader.ends_before(self._file - 1, lower):
            self._file = 0
