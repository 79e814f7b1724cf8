"""The level iterator: the part of a scan that reads a level, file after file, block by block.

It reads the files of a level >= 1, or one file of level 0.  The two directions differ in
:class:`LevelIterator` and :class:`ReverseLevelIterator`, and share a
:class:`~lsmkv.engine.db.read.level_reader.LevelReader`.  A scan makes them; one thread at a time
uses them, and no lock is held.

Fast paths: a seek reads a few entries first, and twice as many each time; no file beyond the bound
is read.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

from lsmkv.engine.db.read.internal_iterator import InternalIterator
from lsmkv.engine.db.read.level_reader import LevelReader
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.format.keys import TAG_SIZE
from lsmkv.engine.table.block_iterator import ALL, PAIRS, BlockIterator
from lsmkv.engine.table.deletion_run import Unneeded, entries_before, entries_from
from lsmkv.engine.table.reader import Table

if TYPE_CHECKING:
    from mypy_extensions import i64

FIRST_CHUNK: Final = 4
"""A seek reads this many pairs first, and twice as many each time, since the caller often wants
only a few.  A level that is merged with others reads its share of them."""


class BaseLevelIterator(InternalIterator):
    """A level iterator of either direction."""

    _reader: LevelReader

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Return True if no file reaches into the range.  Valid before the first chunk."""

    def read_pairs(self) -> None:
        """Return pairs without deletions.  Call it before the first chunk."""
        self._reader.form = PAIRS

    def may_skip(self, unneeded: Unneeded) -> None:
        """As in the base class; they are skipped at the beginning of a block, or of a chunk."""
        self._reader.unneeded = unneeded


class LevelIterator(BaseLevelIterator):
    """The pairs of a level after a position, a block or so at a time."""

    def __init__(self, reader: LevelReader, start: Position | None, upper: Position | None) -> None:
        """The pairs of ``reader`` below ``upper``, if there is such a bound."""
        self._reader = reader
        self._upper = upper
        self._file: i64 = 0  # the next one to open
        self._table: Table | None = None
        self._number: i64 = 0  # the number of the next block
        self._block: BlockIterator | None = None
        self._start: bytes | None = None
        self._before_key = b""  # the last key, whose older versions may follow in the next block
        self._settled = False
        self._count: i64 = ALL
        self._begin = start  # None once its block is found
        if start is not None:
            self._file = reader.file_from(start)
            self._start = start.user_key
            self._before_key = start.user_key
            self._settled = start.after
            self._count = reader.first_chunk
        self._skip_beyond_bound()

    @property
    def is_empty(self) -> bool:
        """Return True if no file reaches into the range."""
        return self._file == len(self._reader.files)

    def read_pairs(self) -> None:
        """As in the base class; the first chunk is then as large as that of a whole scan."""
        super().read_pairs()
        self._count = max(self._count, FIRST_CHUNK)
        self._reader.unneeded = Unneeded(None, self._reader.order.is_bytewise)

    def next_chunk(self) -> list[Any]:
        """The next pairs."""
        reader = self._reader
        while True:
            block = self._block
            table = self._table
            if block is None:
                if table is None or self._number == table.num_blocks:
                    if table is not None:
                        self._skip_beyond_bound()
                    if self._file == len(reader.files):
                        return []
                    table = reader.table(self._file)
                    if reader.rules_out(table):
                        self._file += 1
                        self._table = None
                        self._skip_beyond_bound()
                        continue
                    begin = self._begin
                    self._number = 0 if begin is None else reader.block_from(table, begin)
                    self._begin = None
                    self._table = table
                    self._file += 1
                    continue
                block = reader.block_iterator(
                    table,
                    self._number,
                    self._upper,
                    False,
                    self._start,
                    self._before_key,
                    self._settled,
                )
                self._number += 1
                self._start = None
            assert table is not None
            pairs = reader.next_pairs(table, self._number - 1, block, self._count)
            if self._count < ALL:
                self._count *= 2
            if block.done:
                self._before_key = block.user_key
                self._settled = block.settled
                self._block = None
            else:
                self._block = block
            upper = self._upper
            # The last key of the chunk decides, even if none of its versions is visible.
            if upper is not None and reader.order.is_at_or_after(block.user_key, upper):
                self._file = len(reader.files)
                self._table = None
                self._block = None
                pairs = entries_before(pairs, upper, reader.order)
            if pairs:
                return pairs
            self.note_empty_read()

    def _skip_beyond_bound(self) -> None:
        """Skip the next file, and all after it, if it begins after the bound."""
        upper = self._upper
        files = self._reader.files
        if (
            upper is not None
            and self._file < len(files)
            and self._reader.begins_behind(self._file, upper)
        ):
            self._file = len(files)


class ReverseLevelIterator(BaseLevelIterator):
    """The pairs of a level before a position: the last chunk first, each in ascending order."""

    def __init__(
        self, reader: LevelReader, before: Position | None, lower: Position | None
    ) -> None:
        """The pairs of ``reader`` at ``lower`` or above, if there is such a bound."""
        self._reader = reader
        self._before = before
        self._lower = lower
        self._file: i64 = len(reader.files)  # the one that was opened last
        self._table: Table | None = None
        self._number: i64 = -1  # the number of the next block
        self._block: BlockIterator | None = None  # the block that was read last
        self._begun = False  # whether a block was read
        self._split: Position | None = None  # the pairs of the first block before it are next
        self._held: list[Any] | None = None  # pairs that were read too early
        self._begin: Position | None = None  # None once its block is found, as in LevelIterator
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
        """Return True if no file reaches into the range."""
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
                self.note_empty_read()
                edge = self._end_before()
                if (
                    edge is not None
                    and self._lower is not None
                    and not reader.order.is_at_or_after(edge, self._lower)
                ):
                    self._end()
                continue
            first = pairs[0][0]
            edge = self._end_before()
            if edge is not None and reader.order.is_same(edge, first):
                # The block before may hold newer versions of the first key.
                held = self._read()
                block = self._block
                self._held = held
                if (
                    block is not None
                    and reader.order.is_same(block.user_key, first)
                    and block.settled
                ):
                    pairs = pairs[1:]
                    if not pairs:
                        continue
            lower = self._lower
            if lower is not None and not reader.order.is_at_or_after(pairs[0][0], lower):
                self._end()
                pairs = entries_from(pairs, lower, reader.order)
            return pairs

    def _read(self) -> list[Any] | None:
        """The pairs of the next block, or the rest of the first one; None past the first file."""
        if self._split is not None:
            return self._read_before_split()
        reader = self._reader
        table = self._table
        while table is None or self._number < 0:
            if table is not None:
                self._skip_beyond_bound()
            if self._file == 0:
                self._block = None
                return None
            table = reader.table(self._file - 1)
            if reader.rules_out(table):
                self._file -= 1
                self._table = None
                self._skip_beyond_bound()
                table = None
                continue
            begin = self._begin
            last = table.num_blocks - 1
            self._number = last if begin is None else min(reader.block_from(table, begin), last)
            self._begin = None
            self._table = table
            self._file -= 1
        number = self._number
        block = reader.block_iterator(table, number, self._lower, True)
        self._number = number - 1
        self._block = block
        if self._begun:
            return reader.next_pairs(table, number, block, ALL)
        self._begun = True
        return self._read_first(table, number, block)

    def _read_first(self, table: Table, number: i64, block: BlockIterator) -> list[Any]:
        """The pairs of the first block from the last restart point that has any before the
        position.

        The rest of the block is read later, since the caller often wants only a few pairs.
        """
        reader = self._reader
        stop = self._before
        while True:
            split = reader.seek_to_restart(table, number, block, stop)
            pairs = reader.pairs_before(table, number, block, stop)
            if not split:
                return pairs
            stop = Position(split, after=True)
            if pairs:
                self._split = stop
                return pairs
            block = block.from_start()

    def _read_before_split(self) -> list[Any]:
        """The pairs of the first block before the split."""
        table = self._table
        block = self._block
        assert table is not None
        assert block is not None
        pairs = self._reader.pairs_before(table, self._number + 1, block.from_start(), self._split)
        self._split = None
        return pairs

    def _end(self) -> None:
        """Read no more: all other pairs lie before the bound."""
        self._file = 0
        self._table = None
        self._split = None
        self._held = None

    def _end_before(self) -> bytes | None:
        """A user key between the last one of the next block and the first one of the block read
        last, both included; None if no block is next."""
        if self._table is not None and self._number >= 0:
            return self._table.index.keys[self._number][:-TAG_SIZE]
        if self._file == 0:
            return None
        return self._reader.files[self._file - 1].largest[:-TAG_SIZE]

    def _skip_beyond_bound(self) -> None:
        """Skip the next file, and all before it, if it ends before the bound."""
        lower = self._lower
        if lower is not None and self._file > 0 and self._reader.ends_before(self._file - 1, lower):
            self._file = 0
