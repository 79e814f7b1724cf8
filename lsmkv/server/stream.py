"""A stream: entries by their ids, and what is remembered about those that are gone.

An entry is added after all others, so its id is the key of its record.  The stream's own record has
the id of the first entry: no scan begins at entries that were trimmed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice

from lsmkv.server.encoding import U32, Entry, element_prefix
from lsmkv.server.records import Records
from lsmkv.server.stream_ids import LAST_ID, NO_ID, id_text

_HEAD = struct.Struct(">16s16s16sQ")
UNKNOWN = -1
"""The number of entries that a group has read, if it cannot be known."""

Found = tuple[bytes, bytes]
"""The id of an entry, and its record."""


class Stream:
    """A view of a stream and its entry, which it changes in memory: see :meth:`store`.

    ====================  =====================================================================
    last (16)             the highest id that was ever added
    first (16)            the id of the first entry; 0-0 if there is none
    deleted (16)          the highest id that XDEL removed; 0-0 if there is none
    added (8)             how many entries were ever added
    ====================  =====================================================================
    """

    def __init__(self, records: Records, entry: Entry) -> None:
        self.records = records
        self.entry = entry
        self._entries = element_prefix(entry)
        self.last = self.first = self.deleted = NO_ID
        self.added = 0
        if entry.rest:
            self.last, self.first, self.deleted, self.added = _HEAD.unpack(entry.rest)

    def store(self) -> Entry:
        """The entry with all changes, to be saved."""
        self.entry.rest = _HEAD.pack(self.last, self.first, self.deleted, self.added)
        return self.entry

    # Entries

    def add(self, id_: bytes, words: list[bytes]) -> None:
        """Add an entry: fields and values in turn.  Its id must be above ``last``.  O(1)."""
        self.records.put(self._entries + id_, encode_words(words))
        entry = self.entry
        if entry.size == 0:
            self.first = id_
        entry.size += 1
        self.last = id_
        self.added += 1

    def get(self, id_: bytes) -> bytes | None:
        """The record of an entry, or None.  A Get."""
        return self.records.get(self._entries + id_)

    def slice(
        self, start: bytes, end: bytes = LAST_ID, count: int = 0, reverse: bool = False
    ) -> list[Found]:
        """The entries from one id to another, both included; up to ``count`` unless that is 0.
        O(their number)."""
        return list(islice(self.walk(start, end, reverse), count or None))

    def shown(
        self, start: bytes, end: bytes = LAST_ID, count: int = 0, reverse: bool = False
    ) -> list[list[object]]:
        """The entries of :meth:`slice` as clients see them."""
        walk = islice(self.walk(start, end, reverse), count or None)
        return [shown(id_, record) for id_, record in walk]

    def walk(self, start: bytes, end: bytes = LAST_ID, reverse: bool = False) -> Iterator[Found]:
        """The entries from one id to another, both included, one by one."""
        start, end = max(start, self.first), min(end, self.last)
        if self.entry.size == 0 or start > end:
            return
        prefix = self._entries
        skip = len(prefix)
        for name, record in self.records.scan(prefix + start, prefix + end + b"\0", reverse):
            yield name[skip:], record

    def top(self) -> bytes:
        """The id of the last entry; 0-0 if there is none."""
        last = self.slice(NO_ID, count=1, reverse=True)
        return last[0][0] if last else NO_ID

    def delete(self, ids: list[bytes]) -> int:
        """Remove entries.  Returns how many existed."""
        entry, removed, without_first = self.entry, 0, False
        for id_ in ids:
            name = self._entries + id_
            if self.records.get(name) is None:
                continue
            self.records.delete(name)
            entry.size -= 1
            removed += 1
            without_first = without_first or id_ == self.first
            self.deleted = max(self.deleted, id_)
        if without_first:
            self._find_first()
        return removed

    def _find_first(self) -> None:
        """Find the first entry after a removal.  Deletions are passed over once."""
        if self.entry.size == 0:
            self.first = NO_ID
            return
        following = self.slice(self.first, count=1)
        self.first = following[0][0] if following else NO_ID

    def trim_to_size(self, most: int, node: int = 1, limit: int = 0) -> int:
        """Remove the oldest entries of more than ``most``.  Returns how many.  O(their number).

        They are removed by whole nodes: runs of ``node`` entries as they were added.  Not more than
        ``limit`` are removed unless that is 0.
        """
        return self._remove_first(self._whole_nodes(self.entry.size - most, node, limit))

    def trim_before(self, id_: bytes, node: int = 1, limit: int = 0) -> int:
        """Remove the entries before an id: see :meth:`trim_to_size`."""
        surplus = 0
        for found, _ in self.walk(self.first):
            if found >= id_ or (limit and surplus > limit):
                break
            surplus += 1
        return self._remove_first(self._whole_nodes(surplus, node, limit))

    def _whole_nodes(self, surplus: int, node: int, limit: int) -> int:
        """Return how many of the first ``surplus`` entries fill whole nodes."""
        if limit and surplus > limit:
            surplus = limit
        if surplus <= 0 or surplus == self.entry.size:
            return max(0, surplus)
        gone = self.added - self.entry.size
        return max(0, (gone + surplus) // node * node - gone)

    def _remove_first(self, count: int) -> int:
        if count == 0:
            return 0
        first, left = NO_ID, count
        for id_, _ in self.walk(self.first):
            if left == 0:
                first = id_
                break
            self.records.delete(self._entries + id_)
            left -= 1
        self.entry.size -= count - left
        self.first = first
        return count - left

    # How far a group is

    def has_deletions_after(self, id_: bytes) -> bool:
        """True if XDEL may have removed entries at or after an id."""
        if self.entry.size == 0 or self.deleted == NO_ID or self.first > self.deleted:
            return False
        return id_ <= self.deleted

    def entries_up_to(self, id_: bytes) -> int:
        """The number of entries ever added up to an id; ``UNKNOWN`` in the middle of a stream."""
        size = self.entry.size
        if self.added == 0:
            return 0
        if id_ == self.last or (size == 0 and id_ < self.last):
            return self.added
        if id_ > self.last:
            return UNKNOWN
        if self.deleted == NO_ID or self.deleted < self.first:
            if id_ < self.first:
                return self.added - size
            if id_ == self.first:
                return self.added - size + 1
        return UNKNOWN


def encode_words(words: list[bytes]) -> bytes:
    """The record of an entry: the number of words (4 bytes), the length of each (4), the words."""
    count = len(words)
    return struct.pack(f">{count + 1}I", count, *map(len, words)) + b"".join(words)


def decode_words(record: bytes) -> list[bytes]:
    """The fields and values of an entry, in turn.

    >>> decode_words(encode_words([b"field", b"value"]))
    [b'field', b'value']
    """
    (count,) = U32.unpack_from(record)
    at = 4 * count + 4
    words: list[bytes] = []
    for length in struct.unpack_from(f">{count}I", record, 4):
        words.append(record[at : at + length])
        at += length
    return words


def is_entry(record: bytes) -> bool:
    """True if bytes are the record of an entry."""
    if len(record) < 4:
        return False
    (count,) = U32.unpack_from(record)
    start: int = 4 * count + 4
    if count == 0 or count % 2 or start > len(record):
        return False
    lengths: tuple[int, ...] = struct.unpack_from(f">{count}I", record, 4)
    return start + sum(lengths) == len(record)


def shown(id_: bytes, record: bytes) -> list[object]:
    """An entry as clients see it."""
    return [id_text(id_), decode_words(record)]
