"""Scans of a memtable: a part of :mod:`lsmkv.engine.db.tree.memtable`.

A scan reads a chunk of keys at a time.  For each key it takes the version that its reader sees: the
newest one, or one of the older versions, if the newest came after the reader.  The memtable calls
this under the store's lock.

Fast path: where there is a list of all keys (:class:`~lsmkv.engine.db.tree.key_list.KeyList`), the
newest versions are taken from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsmkv.engine.db.tree.older_versions import OlderVersions
from lsmkv.engine.db.tree.sorted_dict import SortedDict
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.format.keys import KIND_VALUE, TAG_SIZE, sequence_in
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
        back: bool,
        deletions: bool,
        found: list[Any],
    ) -> bytes | None:
        """Append the visible versions of the next ``count`` keys beyond ``edge``, in the form that
        :meth:`MemTable.visible` states; returns the key where the next call continues.

        Versions after ``bound`` are hidden; none are, if it is -1.
        """
        every = self._sorted.listed(count)
        tags: list[bytes] = []
        if every is None:
            keys = self._sorted.beyond(edge, count, back)
        else:
            first, stop = every.span_beyond(edge, count, back)
            keys = every.keys[first:stop]
            tags = every.tagged[first:stop]
        newest = self._newest
        in_a_row: i64 = 0  # deletions since the last value
        run: DeletionRun | None = None  # the last of these
        at: i64 = 0
        for key in keys:
            tagged = newest[key] if every is None else tags[at]
            at += 1
            if bound >= 0 and sequence_in(tagged) > bound:
                older = self._older.entry(key, bound)
                if older is None:
                    continue
                key, tagged = older
            if tagged[0] == KIND_VALUE:
                found.append((key, tagged[TAG_SIZE:]))
                in_a_row = 0
            elif deletions:
                in_a_row += 1
                run = add_deletion(found, run, in_a_row, key, -1, False)
        return None if not keys else keys[0 if back else len(keys) - 1]
