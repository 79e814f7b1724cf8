"""Merges sorted sources of entries, and decides which entries a flush or a compaction keeps.

Flushes, compactions, ingests and repairs call this, in their own thread and without a lock: they
read everything in their sources once, in order.  (Scans, which may end after a few entries, use
:mod:`lsmkv.engine.db.read`.)  A source is an iterator over lists of entries in ascending order.  In
it, all versions of a user key are adjacent, the newest first.  A source is asked for its next list
only when the last one is exhausted.

Left out: a heap, as in a merge of entries one by one.  Each entry would cost several calls.

Fast paths: all entries below the lowest of the sources' last keys are put into one list and sorted
together.  Timsort, in C, finds the sorted lists in it, so that this sort is a merge.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import TAG_SIZE, Entry, sequence_in

if TYPE_CHECKING:
    from mypy_extensions import i64


class _Buffered:
    """A source, and what was taken from it but not used yet."""

    def __init__(self, lists: Iterator[list[Entry]]) -> None:
        self._lists = lists
        self.buffer: list[Entry] = []
        self.exhausted = False

    def fetch(self) -> list[Entry]:
        """The next list that is not empty; [] once the source is exhausted."""
        for entries in self._lists:
            if entries:
                return entries
        self.exhausted = True
        return []


def merge(lists: list[Iterator[list[Entry]]], order: KeyOrder) -> Iterator[list[Entry]]:
    """The entries of many sources: ascending lists, each with *all* versions of the user keys in
    it.

    The versions of a key come in the order of the sources.

    Each source has one list in memory.  With ``a c e`` and ``b d``, the lowest last key is ``d``:
    later lists cannot have a key below it.  So ``a b c`` is returned now, and ``d`` and ``e`` wait
    for the next list of the source that ended in ``d``.
    """
    sources = [_Buffered(source) for source in lists]
    for source in sources:
        source.buffer = source.fetch()
    while True:
        sources = [source for source in sources if source.buffer]
        open_ended = [source for source in sources if not source.exhausted]
        if not open_ended:
            remaining = _gather([source.buffer for source in sources], order)
            if remaining:
                yield remaining
            return
        # Lists that are still to come have no key below the lowest of the last keys.
        horizon = min(order.of(source.buffer[-1][0]) for source in open_ended)
        ready: list[list[Entry]] = []
        for source in sources:
            cut = bisect_left(source.buffer, horizon, key=order.of_entry)
            if cut > 0:
                ready.append(source.buffer[:cut])
                source.buffer = source.buffer[cut:]
        if ready:
            yield _gather(ready, order)
        for source in open_ended:
            if order.of(source.buffer[-1][0]) == horizon:
                source.buffer += source.fetch()


def _gather(lists: list[list[Entry]], order: KeyOrder) -> list[Entry]:
    """The entries of all lists in one sorted list, which may be one of the lists."""
    if len(lists) == 1:
        return lists[0]
    # list[Any]: in compiled code, a list[Entry] would take each tuple apart and build it again.
    entries: list[Any] = []
    for some in lists:
        entries += some
    entries.sort(key=order.of_entry)
    return entries


def live_entries(
    entries: list[Entry],
    oldest_pinned: i64,
    order: KeyOrder,
    drop_deletion: Callable[[bytes], bool] | None,
) -> tuple[list[bytes], list[bytes]]:
    """The user keys and the tagged values that a flush or a compaction keeps of these entries,
    which are sorted by user key.

    A version is dropped when a newer one of its key is visible to every reader, that is, at
    ``oldest_pinned`` or before.  A deletion is also dropped when it is that old and
    ``drop_deletion(user_key)`` says that no deeper level has an older version; without such a
    function every deletion is kept, as in a flush, since tables may hold what it hides.  The
    versions of a key may come in any order; newest first is fastest.
    """
    user_keys: list[bytes] = []
    kept: list[bytes] = []
    last: bytes | None = None
    newer = b""
    shadowed = False
    bytewise = order.is_bytewise
    for key, tagged in entries:
        if last is not None and (key == last if bytewise else order.compare(key, last) == 0):
            if _is_older(newer, tagged):
                return live_entries(
                    _newest_first(entries, order), oldest_pinned, order, drop_deletion
                )
            shadowed = shadowed or sequence_in(newer) <= oldest_pinned
            newer = tagged
            if shadowed:
                continue
        else:
            last = key
            newer = tagged
            shadowed = False
        if (
            drop_deletion is not None
            and not tagged[0] & 1
            and sequence_in(tagged) <= oldest_pinned
            and drop_deletion(key)
        ):
            continue
        user_keys.append(key)
        kept.append(tagged)
    return user_keys, kept


def _newest_first(entries: list[Entry], order: KeyOrder) -> list[Entry]:
    """Entries sorted by user key, and those of one key by their tags."""
    return sorted(
        entries,
        key=lambda entry: (order.of(entry[0]), -int.from_bytes(entry[1][:TAG_SIZE], "little")),
    )


def _is_older(tagged: bytes, other: bytes) -> bool:
    """Return True if one version of a key is older than another, by their tagged values."""
    first: i64 = sequence_in(tagged)
    second: i64 = sequence_in(other)
    return first < second or (first == second and tagged[0] < other[0])
