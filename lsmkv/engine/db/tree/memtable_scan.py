"""How scans read a memtable: a part of :mod:`lsmkv.engine.db.tree.memtable`.

A scan reads a chunk of keys at a time.  For each key it takes the version that its reader sees: the
newest one, or one of the older versions, if the newest came after the reader.  The memtable calls
this under the store's lock.

Fast path: where there is a list of all keys (:class:`~lsmkv.engine.db.tree.key_list.KeyList`), a
scan marks the keys of which nothing but a deletion is left, and later scans do not look at these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsmkv.engine.db.tree.key_list import KeyList
from lsmkv.engine.db.tree.older_versions import OlderVersions
from lsmkv.engine.db.tree.sorted_dict import SortedDict
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.format.keys import KIND_DELETION, KIND_VALUE, TAG_SIZE, sequence_in
from lsmkv.engine.table.deletion_run import DeletionRun, add_deletion

if TYPE_CHECKING:
    from mypy_extensions import i64


class MemTableScan:
    """Reads the keys of a memtable in order."""

    def __init__(self, newest: SortedDict, older: OlderVersions) -> None:
        """The memtable's versions, which it goes on changing."""
        self._sorted = newest
        self._newest: dict[bytes, bytes] = newest.content
        self._older = older

    def read(
        self,
        edge: Position | None,
        count: i64,
        bound: i64,
        oldest: i64,
        back: bool,
        deletions: bool,
        found: list[Any],
    ) -> bytes | None:
        """Append the visible versions of the next ``count`` keys beyond ``edge``, in the form that
        :meth:`MemTable.visible` states; returns the key where the next call continues.

        Versions after ``bound`` are hidden; none are, if it is -1.  No reader reads at a sequence
        before ``oldest``, or nothing is known of it if it is -1.
        """
        every = self._sorted.listed(count)
        first: i64 = 0
        marks = b""
        if every is None:
            keys = self._sorted.beyond(edge, count, back)
        else:
            first, stop = every.span_beyond(edge, count, back, deletions)
            keys = every.keys[first:stop]
            if bound < 0 or not deletions:
                marks = every.marks(first, stop)
        marked: i64 = len(marks)
        newest = self._newest
        in_a_row: i64 = 0  # deletions since the last value
        run: DeletionRun | None = None  # the last of these
        at: i64 = -1
        for key in keys:
            at += 1
            if at >= marked or marks[at] == 0:  # else the key is known to be deleted
                tagged = newest[key]
                if bound >= 0 and sequence_in(tagged) > bound:
                    older = self._older.entry(key, bound)
                    if older is None:
                        continue
                    key, tagged = older
                elif every is not None and tagged[0] == KIND_DELETION:
                    self._mark_deleted(every, first + at, key, tagged, oldest)
                if tagged[0] == KIND_VALUE:
                    found.append((key, tagged[TAG_SIZE:]))
                    in_a_row = 0
                    continue
            if deletions:
                in_a_row += 1
                run = add_deletion(found, run, in_a_row, key, -1, False)
        return None if not keys else keys[0 if back else len(keys) - 1]

    def _mark_deleted(
        self, every: KeyList, at: i64, key: bytes, tagged: bytes, oldest: i64
    ) -> None:
        """Mark a key whose newest version is a deletion, unless a reader may see an older one.

        Older versions that no reader sees any more are dropped.
        """
        older = self._older.by_key
        if oldest >= 0 and sequence_in(tagged) <= oldest:
            older.pop(key, None)
        if key not in older:
            every.mark(at)

    def check(self) -> None:
        """Assert that the keys are in order, and that marked ones have nothing but a deletion."""
        every = self._sorted.check()
        if every is not None:
            for key, marked in zip(every.keys, every.marks(0, len(every.keys)), strict=True):
                assert not marked or (
                    self._newest[key][0] == KIND_DELETION and key not in self._older.by_key
                ), "a marked key has a value that a reader may see"
