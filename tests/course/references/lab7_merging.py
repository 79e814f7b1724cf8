"""Lab 7, by the engine's own modules."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from lsmkv.engine.db.tree.merge import live_entries
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import KIND_VALUE, InternalKeyComparator, pack, sequence_in
from lsmkv.engine.util.comparator import BytewiseComparator

Entry = tuple[bytes, bytes]
Pair = tuple[bytes, bytes]

ORDER = KeyOrder(BytewiseComparator())
sort_key = InternalKeyComparator(BytewiseComparator()).sort_key


def of_entry(entry: Entry) -> tuple[bytes, int]:
    return sort_key(entry[0])


def insert(memtable: list[Entry], internal_key: bytes, value: bytes) -> None:
    insort(memtable, (internal_key, value), key=of_entry)


def look_up(memtable: Sequence[Entry], user_key: bytes, sequence: int) -> Entry | None:
    at = bisect_left(memtable, sort_key(pack(user_key, sequence, KIND_VALUE)), key=of_entry)
    found = memtable[at] if at < len(memtable) else None
    return found if found is not None and found[0][:-8] == user_key else None


def merge(runs: Sequence[Iterable[Entry]], backwards: bool) -> Iterator[Entry]:
    return heapq.merge(*runs, key=of_entry, reverse=backwards)


def visible(entries: Iterable[Entry], sequence: int) -> Iterator[Pair]:
    for _, versions in groupby(entries, key=lambda entry: entry[0][:-8]):
        yield from of_one_key(versions, sequence)


def visible_backwards(entries: Iterable[Entry], sequence: int) -> Iterator[Pair]:
    for _, versions in groupby(entries, key=lambda entry: entry[0][:-8]):
        yield from of_one_key(reversed(list(versions)), sequence)


def of_one_key(versions: Iterable[Entry], sequence: int) -> list[Pair]:
    """What a reader sees of the versions of a key, the newest first."""
    within = [(key[:-8], key[-8:] + value) for key, value in versions]
    within = [(key, tagged) for key, tagged in within if sequence_in(tagged) <= sequence]
    keys, tagged = live_entries(within, sequence, ORDER, lambda key: True)
    return [(key, one[8:]) for key, one in zip(keys, tagged, strict=True)]
