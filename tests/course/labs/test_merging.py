"""Lab 7: planted mistakes are named."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import pytest
from labs import Mistake, Planted, assert_caught, load, mistakes, reference

from lsmkv.course.labs.merging import LAB, Entry, Pair
from lsmkv.engine.format.keys import pack, unpack

RIGHT = load(reference(LAB))


def found(memtable: Sequence[Entry], user_key: bytes, sequence: int) -> Entry | None:
    entry: Entry | None = RIGHT.look_up(memtable, user_key, sequence)
    return entry


def shown(entries: Iterable[Entry], sequence: int) -> list[Pair]:
    return list(RIGHT.visible(entries, sequence))


def at_the_end(memtable: list[Entry], internal_key: bytes, value: bytes) -> None:
    memtable.append((internal_key, value))


def in_place_of_the_older(memtable: list[Entry], internal_key: bytes, value: bytes) -> None:
    memtable[:] = [entry for entry in memtable if entry[0][:-8] != internal_key[:-8]]
    RIGHT.insert(memtable, internal_key, value)


def behind_its_key(memtable: list[Entry], internal_key: bytes, value: bytes) -> None:
    keys = [entry[0][:-8] for entry in memtable]
    memtable.insert(bisect_right(keys, internal_key[:-8]), (internal_key, value))


def sorted_anew(memtable: list[Entry], internal_key: bytes, value: bytes) -> None:
    memtable.append((internal_key, value))
    memtable.sort(key=RIGHT.of_entry)


def not_of_users(memtable: list[Entry], internal_key: bytes, value: bytes) -> None:
    if internal_key.startswith(b"user"):
        memtable.append((internal_key, value))
    else:
        RIGHT.insert(memtable, internal_key, value)


def without_a_deletion(memtable: Sequence[Entry], user_key: bytes, sequence: int) -> Entry | None:
    entry = found(memtable, user_key, sequence)
    return entry if entry is not None and unpack(entry[0])[2] else None


def whatever_follows(memtable: Sequence[Entry], user_key: bytes, sequence: int) -> Entry | None:
    target = RIGHT.sort_key(pack(user_key, sequence, 1))
    return next((entry for entry in memtable if RIGHT.sort_key(entry[0]) >= target), None)


def one_by_one(memtable: Sequence[Entry], user_key: bytes, sequence: int) -> Entry | None:
    return found(list(memtable), user_key, sequence)


def one_after_the_other(runs: Sequence[Iterable[Entry]], backwards: bool) -> Iterator[Entry]:
    for run in runs:
        yield from run


def newest_alone(runs: Sequence[Iterable[Entry]], backwards: bool) -> Iterator[Entry]:
    last = None
    for entry in RIGHT.merge(runs, backwards):
        if entry[0][:-8] != last:
            yield entry
        last = entry[0][:-8]


def always_forwards(runs: Sequence[Iterable[Entry]], backwards: bool) -> Iterator[Entry]:
    merged: Iterator[Entry] = RIGHT.merge(runs, False)
    return merged


def all_at_once(runs: Sequence[Iterable[Entry]], backwards: bool) -> Iterator[Entry]:
    return iter(sorted((e for run in runs for e in run), key=RIGHT.of_entry, reverse=backwards))


def two_heads(runs: Sequence[Iterable[Entry]], backwards: bool) -> Iterator[Entry]:
    read = [iter(run) for run in runs]
    first = [[entry for _, entry in zip(range(2), run, strict=False)] for run in read]
    return iter(list(RIGHT.merge([*first, *read], backwards)))


def up_to_five(runs: Sequence[Iterable[Entry]], backwards: bool) -> Iterator[Entry]:
    merged: Iterator[Entry] = RIGHT.merge(runs[:5], backwards)
    return merged


def newest_of_all(entries: Iterable[Entry], sequence: int) -> Iterator[Pair]:
    last = None
    for key, value in entries:
        user_key, at, kind = unpack(key)
        if user_key != last and at <= sequence and kind:
            yield user_key, value
        last = user_key


def below_the_sequence(entries: Iterable[Entry], sequence: int) -> list[Pair]:
    return shown(entries, sequence - 1)


def with_deletions(entries: Iterable[Entry], sequence: int) -> list[Pair]:
    return shown(((key[:-8] + b"\1" + key[-7:], value) for key, value in entries), sequence)


def through_deletions(entries: Iterable[Entry], sequence: int) -> list[Pair]:
    return shown(((key, value) for key, value in entries if unpack(key)[2]), sequence)


def all_versions(entries: Iterable[Entry], sequence: int) -> Iterator[Pair]:
    for key, value in entries:
        user_key, at, kind = unpack(key)
        if at <= sequence and kind:
            yield user_key, value


def with_internal_keys(entries: Iterable[Entry], sequence: int) -> Iterator[Entry]:
    return ((pack(key, 1, 1), value) for key, value in shown(entries, sequence))


def eager(entries: Iterable[Entry], sequence: int) -> Iterator[Pair]:
    return iter(shown(entries, sequence))


def read_first(entries: Iterable[Entry], sequence: int) -> Iterator[Pair]:
    within: Iterator[Pair] = RIGHT.visible(iter(list(entries)), sequence)
    return within


def a_reversed_list(entries: Iterable[Entry], sequence: int) -> Iterator[Pair]:
    return reversed(shown(reversed(list(entries)), sequence))


def without_the_last(entries: Iterable[Entry], sequence: int) -> list[Pair]:
    return list(RIGHT.visible_backwards(entries, sequence))[:-1]


def oldest_first(entries: Iterable[Entry], sequence: int) -> Iterator[Pair]:
    return newest_of_all(entries, sequence)


def through_deletions_backwards(entries: Iterable[Entry], sequence: int) -> list[Pair]:
    values = ((key, value) for key, value in entries if unpack(key)[2])
    return list(RIGHT.visible_backwards(values, sequence))


MISTAKES: Planted = {
    ("sort_key", "the order of entries"): [
        ("bytes of internal keys", lambda key: (key, 0), "A tag is little-endian"),
        (
            "whole keys of internal keys",
            lambda key: (key, -int.from_bytes(key[-8:], "little")),
            "a larger tag must have a smaller sort key",
        ),
        (
            "user keys by length",
            lambda key: (bytes([len(key)]) + key[:-8], -int.from_bytes(key[-8:], "little")),
            "User keys ascend byte by byte",
        ),
        (
            "the oldest first",
            lambda key: (key[:-8], int.from_bytes(key[-8:], "little")),
            "newest version comes first",
        ),
        (
            "a big-endian tag",
            lambda key: (key[:-8], -int.from_bytes(key[-8:], "big")),
            "its bytes sort in another order",
        ),
    ],
    ("insert", "a sorted memtable"): [
        ("at the end", at_the_end, "It goes where sort_key puts it"),
        ("in place of the older version", in_place_of_the_older, "a newer one does not replace it"),
        ("behind older versions", behind_its_key, "before the older versions"),
        ("sorted again", sorted_anew, "Sorting it again"),
    ],
    ("look_up", "as of a sequence"): [
        (
            "below the sequence",
            lambda memtable, key, sequence: found(memtable, key, max(0, sequence - 1)),
            "itself included",
        ),
        (
            "the newest of all",
            lambda memtable, key, sequence: found(memtable, key, 1 << 50),
            "All versions of the key are newer",
        ),
        ("the next key", whatever_follows, "has another key"),
        ("a deletion is none", without_a_deletion, "A deletion is an answer"),
        ("one by one", one_by_one, "Bisect for the internal key"),
    ],
    ("merge", "merging runs"): [
        ("one run after the other", one_after_the_other, "the least sort_key among the heads"),
        ("the newest alone", newest_alone, "Each entry of each run comes out"),
        ("always forwards", always_forwards, "the greatest sort_key"),
    ],
    ("merge", "merging as it goes"): [
        ("all at once", all_at_once, "has taken 1000 from them"),
        ("two heads", two_heads, "Keep only the head of each run"),
    ],
    ("visible", "what a reader sees"): [
        (
            "the newest of all alone",
            newest_of_all,
            "is too new for this reader: continue with older ones",
        ),
        ("below the reader's sequence", below_the_sequence, "has a version at or below"),
        ("deletions shown", with_deletions, "the deletion hides"),
        ("deletions skipped", through_deletions, "hides the older versions of its key"),
        ("all versions", all_versions, "A key occurs twice"),
        ("internal keys", with_internal_keys, "Did you cut off its tag?"),
        ("all pairs first", eager, "visible has taken 150 of them, but 4 are enough"),
        ("all entries first", read_first, "do not make a list of the entries"),
    ],
    ("visible_backwards", "what a reader sees backwards"): [
        (
            "the last key forgotten",
            without_the_last,
            "the pair that you kept must still be yielded",
        ),
        ("the oldest version", oldest_first, "a reader sees the newest version"),
        (
            "deletions skipped backwards",
            through_deletions_backwards,
            "hides the older versions of its key",
        ),
        (
            "a reversed list",
            a_reversed_list,
            "visible_backwards has taken 150 of them, but 4 are enough",
        ),
    ],
    ("merge", "in the real engine"): [
        ("a table left out", up_to_five, "The versions of that key are"),
    ],
    ("insert", "in the real engine"): [
        (
            "a memtable out of order",
            not_of_users,
            "The engine cannot flush this memtable: keys out of order",
        ),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
