"""The level reader: the files and blocks of a level, as the two level iterators read them.

A scan makes one for each level, or for each file of level 0, and gives it to its level iterator.
One thread at a time uses it, and no lock is held.

Fast paths: the further a scan has come, the more blocks it reads with one read; no block beyond the
bound is read; a table whose prefix filter lacks the prefix that all keys of the range share is
skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.tree.store import ReadView, Store
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.format.keys import MAX_SEQUENCE, TAG_SIZE
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.table.block_iterator import ALL, WITH_SEQUENCES, BlockIterator
from lsmkv.engine.table.deletion_run import NOTHING
from lsmkv.engine.table.reader import ANY_SIZE, FROM_FILE, Readahead, Table

if TYPE_CHECKING:
    from mypy_extensions import i64

_FEW: Final = 8
"""Pairs that are read at once on the way to a position: half a restart interval, and not more than
``SHORTEST_RUN``, so that none of them is a run."""


@mypyc_attr(free_list_len=1)
class CacheShare:
    """The bytes of blocks that the levels of one scan may still put into the block cache."""

    __slots__ = ("left",)

    def __init__(self, size: i64) -> None:
        self.left: i64 = size

    def take(self, size: i64) -> None:
        """Charge a block of this size, if it fits."""
        if size <= self.left:
            self.left -= size


class LevelReader:
    """Reads the blocks of a level, or of one file, for one scan."""

    def __init__(
        self,
        store: Store,
        read: ReadView,
        level: i64,
        files: list[FileMetaData],
        form: i64,
        first_chunk: i64,
        share: CacheShare | None,
        prefix_hash: i64 = -1,
    ) -> None:
        """``files`` are those of a level, or one of any level.  ``form`` is one of
        :mod:`lsmkv.engine.table.block_iterator`; ``first_chunk`` is the number of pairs that a seek
        reads first; ``share`` limits the blocks that go into the block cache, and None keeps all
        out; ``prefix_hash`` is the hash of the prefix of all keys in the range, or -1.
        """
        self.order = store.order
        self.files = files
        self.level: i64 = level
        self.first_chunk: i64 = first_chunk
        self.form: i64 = form
        self._version = read.view.version
        self._tables = store.tables
        self._held = read.held
        self._sequence: i64 = read.table_sequence
        self._counters = store.counters.levels[level]
        self._share = share
        self._prefix_hash: i64 = prefix_hash
        self.unneeded = NOTHING
        """Entries that chunks may omit, as ``InternalIterator.may_skip`` defines them."""
        self._ahead: Readahead | None = None  # the blocks of the last read
        self._blocks: i64 = 0  # how many were read

    def file_from(self, start: Position) -> i64:
        """Index of the file where a scan from a position begins; one past the last if none does."""
        if len(self.files) == 1:
            return 1 if self.ends_before(0, start) else 0
        sequence: i64 = -1 if start.after else MAX_SEQUENCE
        return self._version.file_from(self.level, self.order.of(start.user_key), sequence)

    def begins_behind(self, at: i64, bound: Position) -> bool:
        """Return True if all keys of a file lie after a position."""
        return self.order.is_at_or_after(self.files[at].smallest[:-TAG_SIZE], bound)

    def ends_before(self, at: i64, bound: Position) -> bool:
        """Return True if all keys of a file lie before a position."""
        return not self.order.is_at_or_after(self.files[at].largest[:-TAG_SIZE], bound)

    def block_from(self, table: Table, start: Position) -> i64:
        """Number of the block where a scan from a position begins; one past the last if none
        does."""
        sequence: i64 = -1 if start.after else MAX_SEQUENCE
        return table.index.block_for(self.order.of(start.user_key), sequence)

    def table(self, at: i64) -> Table:
        """The table of a file."""
        file = self.files[at]
        held = self._held.get(file.number)
        if held is not None:
            return held
        return self._tables.find(file, self._share is not None)

    def rules_out(self, table: Table) -> bool:
        """Return True if the prefix filter of a table rules out all keys of the range."""
        prefixes = table.prefix_filter
        if self._prefix_hash < 0 or prefixes is None:
            return False
        self._counters.filters_asked += 1
        if prefixes.may_match(self._prefix_hash):
            return False
        self._counters.filter_negatives += 1
        return True

    def block_iterator(
        self,
        table: Table,
        number: i64,
        bound: Position | None,
        back: bool,
        start: bytes | None = None,
        before: bytes = b"",
        settled: bool = False,
    ) -> BlockIterator:
        """A :class:`~lsmkv.engine.table.block_iterator.BlockIterator` over a block; ``back`` is the
        direction of the scan.

        The same read may fetch the next blocks, up to half the number that the scan has read so
        far: a scan reads at most half as much again as it needs, and nothing beyond ``bound``.
        """
        ahead = self._ahead
        if ahead is None or not ahead.has(table, number):
            most = self._blocks >> 1
            if most > 1 and bound is not None:
                last = self.block_from(table, bound)
                most = min(most, (number - last if back else last - number) + 1)
            ahead = table.read_ahead(number, most, back, self._counters)
            self._ahead = ahead
        share = self._share
        room: i64 = 0 if share is None else share.left
        if self._blocks == 0 and share is not None:
            room = ANY_SIZE  # the block of a seek may be read again, as a Get's
        outcome, block = table.find_ahead(number, self._counters, ahead, room)
        if outcome == FROM_FILE and share is not None and self._blocks > 0:
            share.take(len(block))
        self._blocks += 1
        try:
            return BlockIterator(block, self.order, self._sequence, start, before, settled)
        except CorruptionError as error:
            raise table.damaged(error, number) from None

    def seek_to_restart(
        self, table: Table, number: i64, block: BlockIterator, stop: Position | None
    ) -> bytes:
        """Move a block iterator to the last restart interval before a position, or to the last of
        all: see :meth:`~lsmkv.engine.table.block_iterator.BlockIterator.seek_to_restart`."""
        try:
            return block.seek_to_restart(None if stop is None else stop.user_key)
        except CorruptionError as error:
            raise table.damaged(error, number) from None

    def pairs_before(
        self, table: Table, number: i64, block: BlockIterator, stop: Position | None
    ) -> list[Any]:
        """A block's pairs before a position, or all that are left; few others are read."""
        if stop is None:
            return self.next_pairs(table, number, block, ALL)
        order = self.order
        pairs: list[Any] = []
        while not block.done:
            pairs += self.next_pairs(table, number, block, _FEW)
            if order.is_at_or_after(block.user_key, stop):
                break
        if pairs and order.is_at_or_after(pairs[-1][0], stop):
            pairs = pairs[: order.count_before(pairs, stop)]
        return pairs

    def next_pairs(self, table: Table, number: i64, block: BlockIterator, count: i64) -> list[Any]:
        """A block's next pairs, without those that are not needed."""
        unneeded = self.unneeded
        run = unneeded.hidden_by
        try:
            if unneeded.deletions:
                block.skip_deletions(unneeded.before)
            if run is not None:
                block.skip_hidden(run, self.form == WITH_SEQUENCES)
            return block.next_entries(count, self.form)
        except CorruptionError as error:
            raise table.damaged(error, number) from None
