"""Lab 7: planted mistakes are named."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import pytest
from labs import Mistake, assert_caught, reference

from lsmkv.course.labs.merging import LAB, Entry, Pair
from lsmkv.course.running import load
from lsmkv.format.keys import pack, unpack

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


def sorted_again(memtable: list[Entry], internal_key: bytes, value: bytes) -> None:
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


def without_the_last(entries: Iterable[Entry], sequence: int) -> list[Pair]:
    return list(RIGHT.visible_backwards(entries, sequence))[:-1]


def oldest_first(entries: Iterable[Entry], sequence: int) -> Iterator[Pair]:
    return newest_of_all(entries, sequence)


def through_deletions_backwards(entries: Iterable[Entry], sequence: int) -> list[Pair]:
    values = ((key, value) for key, value in entries if unpack(key)[2])
    return list(RIGHT.visible_backwards(values, sequence))


MISTAKES = (
    Mistake(
        "bytes of internal keys",
        "sort_key",
        lambda key: (key, 0),
        "the order of entries",
        "A tag is little-endian",
    ),
    Mistake(
        "whole keys of internal keys",
        "sort_key",
        lambda key: (key, -int.from_bytes(key[-8:], "little")),
        "the order of entries",
        "a larger tag must have a smaller sort key",
    ),
    Mistake(
        "user keys by length",
        "sort_key",
        lambda key: (bytes([len(key)]) + key[:-8], -int.from_bytes(key[-8:], "little")),
        "the order of entries",
        "User keys ascend byte by byte",
    ),
    Mistake(
        "the oldest first",
        "sort_key",
        lambda key: (key[:-8], int.from_bytes(key[-8:], "little")),
        "the order of entries",
        "newest version comes first",
    ),
    Mistake(
        "a big-endian tag",
        "sort_key",
        lambda key: (key[:-8], -int.from_bytes(key[-8:], "big")),
        "the order of entries",
        "its bytes sort in another order",
    ),
    Mistake(
        "at the end", "insert", at_the_end, "a sorted memtable", "It goes where sort_key puts it"
    ),
    Mistake(
        "in place of the older version",
        "insert",
        in_place_of_the_older,
        "a sorted memtable",
        "a newer one does not replace it",
    ),
    Mistake(
        "behind older versions",
        "insert",
        behind_its_key,
        "a sorted memtable",
        "before the older versions",
    ),
    Mistake("sorted again", "insert", sorted_again, "a sorted memtable", "Sorting it again"),
    Mistake(
        "below the sequence",
        "look_up",
        lambda memtable, key, sequence: found(memtable, key, max(0, sequence - 1)),
        "as of a sequence",
        "itself included",
    ),
    Mistake(
        "the newest of all",
        "look_up",
        lambda memtable, key, sequence: found(memtable, key, 1 << 50),
        "as of a sequence",
        "All versions of the key are newer",
    ),
    Mistake("the next key", "look_up", whatever_follows, "as of a sequence", "has another key"),
    Mistake(
        "a deletion is none",
        "look_up",
        without_a_deletion,
        "as of a sequence",
        "A deletion is an answer",
    ),
    Mistake("one by one", "look_up", one_by_one, "as of a sequence", "Bisect for the internal key"),
    Mistake(
        "one run after the other",
        "merge",
        one_after_the_other,
        "merging runs",
        "the least sort_key among the heads",
    ),
    Mistake(
        "the newest alone",
        "merge",
        newest_alone,
        "merging runs",
        "Each entry of each run comes out",
    ),
    Mistake("always forwards", "merge", always_forwards, "merging runs", "the greatest sort_key"),
    Mistake("all at once", "merge", all_at_once, "merging as it goes", "has taken 1000 from them"),
    Mistake(
        "two heads", "merge", two_heads, "merging as it goes", "Keep only the head of each run"
    ),
    Mistake(
        "the newest of all alone",
        "visible",
        newest_of_all,
        "what a reader sees",
        "is too new for this reader: continue with older ones",
    ),
    Mistake(
        "below the reader's sequence",
        "visible",
        below_the_sequence,
        "what a reader sees",
        "has a version at or below",
    ),
    Mistake(
        "deletions shown", "visible", with_deletions, "what a reader sees", "the deletion hides"
    ),
    Mistake(
        "deletions skipped",
        "visible",
        through_deletions,
        "what a reader sees",
        "hides the older versions of its key",
    ),
    Mistake("all versions", "visible", all_versions, "what a reader sees", "A key occurs twice"),
    Mistake(
        "internal keys",
        "visible",
        with_internal_keys,
        "what a reader sees",
        "Did you cut off its tag?",
    ),
    Mistake(
        "the last key forgotten",
        "visible_backwards",
        without_the_last,
        "what a reader sees backwards",
        "the pair that you kept must still be yielded",
    ),
    Mistake(
        "the oldest version",
        "visible_backwards",
        oldest_first,
        "what a reader sees backwards",
        "a reader sees the newest version",
    ),
    Mistake(
        "deletions skipped backwards",
        "visible_backwards",
        through_deletions_backwards,
        "what a reader sees backwards",
        "hides the older versions of its key",
    ),
    Mistake(
        "a table left out",
        "merge",
        up_to_five,
        "in the real engine",
        "The versions of that key are",
    ),
    Mistake(
        "a memtable out of order",
        "insert",
        not_of_users,
        "in the real engine",
        "The engine cannot flush this memtable: keys out of order",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {mistake.check for mistake in MISTAKES} == {check.name for check in LAB.checks}
