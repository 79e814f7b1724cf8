"""Lab 8: planted mistakes are named."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from labs import Mistake, Planted, assert_caught, load, mistakes, reference

from lsmkv.course.labs.asked_tables import AskedTable, StoredTable
from lsmkv.course.labs.reading import LAB
from lsmkv.course.labs.reading_store import BITS, fill, opened
from lsmkv.course.running import PASSED, judge

Level = Sequence[AskedTable]


RIGHT = load(reference(LAB))


def find(level: Level, key: bytes) -> AskedTable | None:
    found: AskedTable | None = RIGHT.find_table(level, key)
    return found


def to_ask(levels: Sequence[Level], key: bytes) -> list[AskedTable]:
    found: list[AskedTable] = RIGHT.tables_to_ask(levels, key)
    return found


def without_the_end(level: Level, key: bytes) -> AskedTable | None:
    found = find(level, key)
    return None if found is not None and found.largest == key else found


def in_a_gap(level: Level, key: bytes) -> AskedTable | None:
    return next((table for table in level if key <= table.largest), None)


def one_by_one(level: Level, key: bytes) -> AskedTable | None:
    return next((table for table in level if table.smallest <= key <= table.largest), None)


def in_the_first_thousand(level: Level, key: bytes) -> AskedTable | None:
    at = bisect_left(level, key, hi=min(len(level), 1000), key=lambda table: table.largest)
    return level[at] if at < len(level) and level[at].smallest <= key else None


def by_doubling(level: Level, key: bytes) -> AskedTable | None:
    """Right: steps of 1, 2, 4 and so on, and a binary search in the last one."""
    high = 1
    while high < len(level) and level[high].largest < key:
        high *= 2
    at = bisect_left(
        level, key, high // 2, min(high + 1, len(level)), key=lambda table: table.largest
    )
    return level[at] if at < len(level) and level[at].smallest <= key else None


def by_a_list_of_ends(level: Level, key: bytes) -> AskedTable | None:
    ends = [table.largest for table in level]
    return find(level, key) if ends else None


def oldest_first(levels: Sequence[Level], key: bytes) -> list[AskedTable]:
    found = to_ask(levels, key)
    first = [table for table in found if table in levels[0]]
    return first[::-1] + found[len(first) :]


def level_0_last(levels: Sequence[Level], key: bytes) -> list[AskedTable]:
    found = to_ask(levels, key)
    first = [table for table in found if table in levels[0]]
    return found[len(first) :] + first


def one_of_level_0(levels: Sequence[Level], key: bytes) -> list[AskedTable]:
    found = to_ask(levels, key)
    first = [table for table in found if table in levels[0]]
    return found[:1] + found[len(first) :] if first else found


def sorted_in_place(levels: Sequence[list[AskedTable]], key: bytes) -> list[AskedTable]:
    levels[0].sort(key=lambda table: -table.number)
    return to_ask(levels, key)


def behind_an_equal_key(index_keys: Sequence[bytes], key: bytes) -> int | None:
    at = sum(one <= key for one in index_keys)
    return at if at < len(index_keys) else None


def behind_them_all(index_keys: Sequence[bytes], key: bytes) -> int:
    return sum(one < key for one in index_keys)


def among_few(index_keys: Sequence[bytes], key: bytes) -> int | None:
    found: int | None = RIGHT.block_for(index_keys, key)
    return found if found is None else min(found, 4)


def getting(step: Callable[[AskedTable, int, bytes], tuple[bool, bytes | None]]) -> Any:
    """A Get that leaves each table to a function: whether it ends there, and the value."""

    def get(levels: Sequence[Level], key: bytes) -> bytes | None:
        for table in to_ask(levels, key):
            ends, value = step(table, RIGHT.block_for(table.index_keys, key), key)
            if ends:
                return value
        return None

    return get


def newest_of(table: AskedTable, block: int) -> dict[bytes, bytes | None]:
    """The keys of a block with their newest values."""
    return dict(reversed(table.read_block(block)))


def with_the_oldest_version(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    if not table.key_may_match(block, key):
        return False, None
    found = dict(table.read_block(block))
    return key in found, found.get(key)


def with_the_oldest_of_a_store(
    table: AskedTable, block: int, key: bytes
) -> tuple[bool, bytes | None]:
    if isinstance(table, StoredTable):
        return with_the_oldest_version(table, block, key)
    if not table.key_may_match(block, key):
        return False, None
    found = newest_of(table, block)
    return key in found, found.get(key)


def find_in_a_gap(levels: Sequence[Level], key: bytes) -> list[AskedTable]:
    """The tables to ask by a find_table that looks at the ends alone."""
    first = [table for table in to_ask(levels, key) if table in levels[0]]
    deeper = (in_a_gap(level, key) for level in levels[1:])
    return first + [table for table in deeper if table is not None]


def through_deletions(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    if not table.key_may_match(block, key):
        return False, None
    value = newest_of(table, block).get(key)
    return value is not None, value


def through_empty_values(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    if not table.key_may_match(block, key):
        return False, None
    found = newest_of(table, block)
    return key in found and found[key] != b"", found.get(key)


def believing_maybe(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    if not table.key_may_match(block, key):
        return False, None
    return True, newest_of(table, block).get(key)


def with_any_value(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    if not table.key_may_match(block, key):
        return False, None
    return True, table.read_block(block)[0][1]


def asking_with_a_tag(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    if not table.key_may_match(block, key + bytes(8)):
        return False, None
    return believing_maybe(table, block, key)


def reading_first(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    found = newest_of(table, block)
    return table.key_may_match(block, key) and key in found, found.get(key)


def reading_twice(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    if not table.key_may_match(block, key) or key not in newest_of(table, block):
        return False, None
    return True, newest_of(table, block)[key]


def with_the_filter_of_block_0(
    table: AskedTable, block: int, key: bytes
) -> tuple[bool, bytes | None]:
    if not table.key_may_match(0, key) and block == 0:
        return False, None
    found = newest_of(table, block)
    return key in found, found.get(key)


def with_no_filter(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    found = newest_of(table, block)
    return key in found, found.get(key)


def with_the_next_block(table: AskedTable, block: int, key: bytes) -> tuple[bool, bytes | None]:
    if not table.key_may_match(block, key):
        return False, None
    found = newest_of(table, block)
    if key not in found and block + 1 < len(table.index_keys):
        table.read_block(block + 1)
    return key in found, found.get(key)


def from_all_tables(levels: Sequence[Level], key: bytes) -> bytes | None:
    found: list[bytes | None] = []
    for table in to_ask(levels, key):
        ends, value = believing_maybe(table, RIGHT.block_for(table.index_keys, key), key)
        found += [value] if ends and holds_it(table, key) else []
    return found[0] if found else None


def holds_it(table: AskedTable, key: bytes) -> bool:
    return key in getattr(table, "_content", ())


MISTAKES: Planted = {
    ("find_table", "the table of a level"): [
        ("the end left out", without_the_end, "Both ends of a range belong to it"),
        ("a key in a gap", in_a_gap, "The key may fall between two tables"),
    ],
    ("find_table", "found by bisection"): [
        ("one by one", one_by_one, "tables of 5,000 to find one"),
        (
            "the first thousand",
            in_the_first_thousand,
            "in a level of 5,000 tables must find table 1205 for b'11950c', but your code returned",
        ),
        ("a gap of a large level", in_a_gap, "It is before the first table, between two tables"),
        ("a list of ends", by_a_list_of_ends, "Making a list of all their ends"),
    ],
    ("tables_to_ask", "the tables to ask"): [
        ("the oldest first", oldest_first, "These are the right tables in the wrong order"),
        ("level 0 last", level_0_last, "level 0 comes first"),
        ("one table of level 0", one_of_level_0, "On level 0, all tables that cover the key"),
        ("level 0 sorted in place", sorted_in_place, "sort a copy"),
    ],
    ("block_for", "the block of a table"): [
        ("behind an equal index key", behind_an_equal_key, "block_for([b'c'], b'c') must be 0"),
        ("behind the last index key", behind_them_all, "Above the last one, the result is None"),
    ],
    ("get", "the answer of a Get"): [
        (
            "the oldest version",
            getting(with_the_oldest_version),
            "Table 24 has its newest version, and an older one in the same block: the first",
        ),
        ("a deletion skipped", getting(through_deletions), "a deletion, so the key is absent"),
        (
            "an empty value skipped",
            getting(through_empty_values),
            "an empty value, which is not the same as None",
        ),
        (
            "a maybe believed",
            getting(believing_maybe),
            "The filter of table 24 erred: ask the next table",
        ),
        (
            "any value",
            getting(with_any_value),
            "get of b'aa' must be b'aa5', but your code returned b'a24'",
        ),
        (
            "the filter asked for an internal key",
            getting(asking_with_a_tag),
            "Is each filter asked with the key as it is",
        ),
    ],
    ("get", "in the real engine"): [
        (
            "the oldest version in a store",
            getting(with_the_oldest_of_a_store),
            "has two versions of the key in a block: the first one is the newest",
        ),
        (
            "the oldest version, shown as text",
            getting(with_the_oldest_of_a_store),
            "....', and DB.get b'value 23 of 2500, again....",
        ),
        ("the next block, too", getting(with_the_next_block), "db.stats() counts"),
    ],
    ("tables_to_ask", "filters first"): [
        (
            "a table that does not cover the key",
            find_in_a_gap,
            "You asked table 15, whose range does not cover the key: b'a' to b'd'.",
        ),
        (
            "level 0 asked oldest first",
            oldest_first,
            "Table 24 is newer than table 21: ask it first.",
        ),
        (
            "level 0 asked last",
            level_0_last,
            "Table 24 on level 0 is newer than table 15 on level 1: ask it first.",
        ),
    ],
    ("get", "filters first"): [
        ("the block before the filter", getting(reading_first), "its filter had not said maybe"),
        ("no filter", getting(with_no_filter), "Ask the filter before you read a data block"),
        (
            "another block's filter",
            getting(with_the_filter_of_block_0),
            "its filter had not said maybe",
        ),
        ("a block read twice", getting(reading_twice), "One step was taken twice: read block 0"),
        ("all tables asked", from_all_tables, "continues after the answer"),
    ],
    ("expected_reads", "the expected reads"): [
        (
            "the block of the key left out",
            lambda misses, rate, is_present: misses * rate,
            "costs one block: its filter never says no",
        ),
        (
            "a rate for the block of the key",
            lambda misses, rate, is_present: (misses + is_present) * rate,
            "expected_reads(0, 0.01, True) must be 1",
        ),
    ],
    ("get", "the reads counted"): [
        ("no filter, counted", getting(with_no_filter), "One block is read for each maybe"),
    ],
    ("block_for", "in the real engine"): [
        ("the first blocks alone", among_few, "In a store with filters, your get of"),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_a_search_by_doubling_is_a_binary_search_too() -> None:
    code = load(reference(LAB))
    code.__dict__["find_table"] = by_doubling
    outcomes = {judge(LAB, code, check).outcome for check in LAB.checks}
    assert outcomes == {PASSED}


def test_each_table_of_the_store_has_two_versions_of_keys(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    fill(store, BITS)
    with opened(store, [], None) as levels:
        tables = [table for level in levels for table in level]
        assert [len(level) for level in levels[:3]] == [3, 2, 4]
        for table in tables:
            blocks = map(table.read_block, range(len(table.index_keys)))
            keys = [[key for key, _ in block] for block in blocks]
            assert any(len(set(block)) < len(block) for block in keys)


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}
