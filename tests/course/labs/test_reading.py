"""Lab 8: planted mistakes are named."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from labs import Mistake, assert_caught, reference

from lsmkv.course.labs.asked_tables import AskedTable, StoredTable
from lsmkv.course.labs.reading import LAB
from lsmkv.course.labs.reading_store import BITS, fill, opened
from lsmkv.course.running import PASSED, judge, load

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


MISTAKES = (
    Mistake(
        "the end left out",
        "find_table",
        without_the_end,
        "the table of a level",
        "Both ends of a range belong to it",
    ),
    Mistake(
        "a key in a gap",
        "find_table",
        in_a_gap,
        "the table of a level",
        "The key may fall between two tables",
    ),
    Mistake(
        "one by one",
        "find_table",
        one_by_one,
        "found by bisection",
        "tables of 5,000 to find one",
    ),
    Mistake(
        "the first thousand",
        "find_table",
        in_the_first_thousand,
        "found by bisection",
        "in a level of 5,000 tables must find table 1205 for b'11950c', but your code returned",
    ),
    Mistake(
        "a gap of a large level",
        "find_table",
        in_a_gap,
        "found by bisection",
        "It lies before the first table, between two tables",
    ),
    Mistake(
        "a list of ends",
        "find_table",
        by_a_list_of_ends,
        "found by bisection",
        "Making a list of all their ends",
    ),
    Mistake(
        "the oldest first",
        "tables_to_ask",
        oldest_first,
        "the tables to ask",
        "These are the right tables in the wrong order",
    ),
    Mistake(
        "level 0 last", "tables_to_ask", level_0_last, "the tables to ask", "level 0 comes first"
    ),
    Mistake(
        "one table of level 0",
        "tables_to_ask",
        one_of_level_0,
        "the tables to ask",
        "On level 0, all tables that cover the key",
    ),
    Mistake(
        "level 0 sorted in place",
        "tables_to_ask",
        sorted_in_place,
        "the tables to ask",
        "sort a copy",
    ),
    Mistake(
        "behind an equal index key",
        "block_for",
        behind_an_equal_key,
        "the block of a table",
        "block_for([b'c'], b'c') must be 0",
    ),
    Mistake(
        "behind the last index key",
        "block_for",
        behind_them_all,
        "the block of a table",
        "Above the last one, the result is None",
    ),
    Mistake(
        "the oldest version",
        "get",
        getting(with_the_oldest_version),
        "the answer of a Get",
        "Table 24 has its newest version, and an older one in the same block: the first",
    ),
    Mistake(
        "the oldest version in a store",
        "get",
        getting(with_the_oldest_of_a_store),
        "in the real engine",
        "has two versions of the key in a block: the first one is the newest",
    ),
    Mistake(
        "the oldest version, shown as text",
        "get",
        getting(with_the_oldest_of_a_store),
        "in the real engine",
        "....', and DB.get b'value 23 of 2500, again....",
    ),
    Mistake(
        "a deletion skipped",
        "get",
        getting(through_deletions),
        "the answer of a Get",
        "a deletion, so the key is absent",
    ),
    Mistake(
        "an empty value skipped",
        "get",
        getting(through_empty_values),
        "the answer of a Get",
        "an empty value, which is not the same as None",
    ),
    Mistake(
        "a maybe believed",
        "get",
        getting(believing_maybe),
        "the answer of a Get",
        "The filter of table 24 erred: ask the next table",
    ),
    Mistake(
        "any value",
        "get",
        getting(with_any_value),
        "the answer of a Get",
        "get of b'aa' must be b'aa5', but your code returned b'a24'",
    ),
    Mistake(
        "the filter asked for an internal key",
        "get",
        getting(asking_with_a_tag),
        "the answer of a Get",
        "Is each filter asked for the key as it is",
    ),
    Mistake(
        "a table that does not cover the key",
        "tables_to_ask",
        find_in_a_gap,
        "filters first",
        "You asked table 15, whose range does not cover the key: b'a' to b'd'.",
    ),
    Mistake(
        "level 0 asked oldest first",
        "tables_to_ask",
        oldest_first,
        "filters first",
        "Table 24 is newer than table 21: ask it first.",
    ),
    Mistake(
        "level 0 asked last",
        "tables_to_ask",
        level_0_last,
        "filters first",
        "Table 24 on level 0 is newer than table 15 on level 1: ask it first.",
    ),
    Mistake(
        "the block before the filter",
        "get",
        getting(reading_first),
        "filters first",
        "its filter had not said maybe",
    ),
    Mistake(
        "no filter",
        "get",
        getting(with_no_filter),
        "filters first",
        "Ask the filter before you read a data block",
    ),
    Mistake(
        "another block's filter",
        "get",
        getting(with_the_filter_of_block_0),
        "filters first",
        "its filter had not said maybe",
    ),
    Mistake(
        "a block read twice",
        "get",
        getting(reading_twice),
        "filters first",
        "One step was taken twice: read block 0",
    ),
    Mistake(
        "all tables asked", "get", from_all_tables, "filters first", "continues after the answer"
    ),
    Mistake(
        "the block of the key left out",
        "expected_reads",
        lambda misses, rate, is_present: misses * rate,
        "the expected reads",
        "costs one block: its filter never says no",
    ),
    Mistake(
        "a rate for the block of the key",
        "expected_reads",
        lambda misses, rate, is_present: (misses + is_present) * rate,
        "the expected reads",
        "expected_reads(0, 0.01, True) must be 1",
    ),
    Mistake(
        "no filter, counted",
        "get",
        getting(with_no_filter),
        "the reads counted",
        "One block is read for each maybe",
    ),
    Mistake(
        "the first blocks alone",
        "block_for",
        among_few,
        "in the real engine",
        "In a store with filters, your get of",
    ),
    Mistake(
        "the next block, too",
        "get",
        getting(with_the_next_block),
        "in the real engine",
        "db.stats() counts",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_a_search_by_doubling_is_a_binary_search_too() -> None:
    code = load(reference(LAB))
    code.__dict__["find_table"] = by_doubling
    outcomes = {judge(LAB, code, reference(LAB), check).outcome for check in LAB.checks}
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
    assert {mistake.check for mistake in MISTAKES} == {check.name for check in LAB.checks}
