"""``lsmkv diff``, checked against two dicts, and how much it reads."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from differing import KEYS, TINY, fill, scattered
from orders import fold

import lsmkv
from lsmkv.engine.util.pair_diff import Difference
from lsmkv.tools.compare import _Files
from lsmkv.tools.diff import Plan, State, differences, make_plan


def plan_of(a: State, b: State) -> Plan:
    return make_plan(a, b, _Files(a.path, b.path, lambda _: None).same)


def expected_differences(a: dict[bytes, bytes], b: dict[bytes, bytes]) -> list[Difference]:
    return [
        Difference(key, a.get(key), b.get(key))
        for key in sorted(a.keys() | b.keys())
        if a.get(key) != b.get(key)
    ]


def compare(a: Path, b: Path) -> tuple[list[Difference], Plan, int]:
    """The differences, checked against two dicts, the plan, and the data blocks read."""
    with lsmkv.DB(a, read_only=True) as ours, lsmkv.DB(b, read_only=True) as theirs:
        counted: list[int] = []
        with State(ours) as state, State(theirs) as other:
            plan = plan_of(state, other)
            found = list(differences(state, other, plan, counted.append))
        blocks = ours.stats().blocks_read + theirs.stats().blocks_read
        assert found == expected_differences(dict(ours), dict(theirs))
        assert sum(counted) >= len(found)
    return found, plan, blocks


# Against dicts


def some_operations(db: lsmkv.DB, choose: random.Random) -> None:
    """Random writes, flushes and compactions."""
    first = choose.randrange(len(KEYS))
    near = KEYS[first : first + choose.choice([1, 20, 300])]
    for _ in range(choose.choice([0, 1, 3, 60])):
        key = choose.choice(near)
        if choose.random() < 0.3:
            db.delete(key)
        else:
            db.put(key, b"%d" % choose.randrange(4) * choose.randrange(60))
    what = choose.randrange(6)
    if what == 0:
        db.flush()
    elif what == 1:
        db.compact_range(*sorted(choose.sample(KEYS, 2)))
    elif what == 2:
        db.compact_range()


@pytest.mark.parametrize("seed", range(40))
def test_differences_of_random_stores(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    with lsmkv.DB(a, create_if_missing=True, **TINY) as db:
        fill(db, KEYS, b"base")
        for _ in range(4):
            some_operations(db, choose)
        if choose.random() < 0.5:
            db.compact_range()
        db.checkpoint(b)
    if choose.random() < 0.5:
        shutil.copytree(b, c)  # the same bytes in other files
        b = c
    for path in (a, b):
        for _ in range(choose.randrange(3)):
            with lsmkv.DB(path, **TINY) as db:
                for _ in range(choose.randrange(4)):
                    some_operations(db, choose)
    compare(a, b)
    compare(b, a)


def test_the_random_stores_cover_every_part_of_a_plan(tmp_path: Path) -> None:
    """The seeds above have ranges, single keys, and skipped tables in one plan."""
    scattered(tmp_path / "a")
    with lsmkv.DB(tmp_path / "a") as db:
        db.checkpoint(tmp_path / "b")
    with lsmkv.DB(tmp_path / "b", **TINY) as db:
        fill(db, KEYS[100:110], b"other")  # dense: as large as the table below it
        db.flush()
        db.put(KEYS[2], b"sparse")  # one small table over all others
        db.put(KEYS[-2], b"sparse")
        db.flush()
        db.delete(KEYS[50])
    found, plan, blocks = compare(tmp_path / "a", tmp_path / "b")
    assert [difference.key for difference in found] == [
        KEYS[2],
        KEYS[50],
        *KEYS[100:110],
        KEYS[-2],
    ]
    assert [(keys.first, keys.last) for keys in plan.ranges] == [(KEYS[100], KEYS[109])]
    assert plan.keys == [KEYS[2], KEYS[50], KEYS[-2]]
    assert 0 < plan.extent.bytes_skipped < 2 * plan.extent.bytes_identical
    assert blocks < 30
    turned, plan, _ = compare(tmp_path / "b", tmp_path / "a")
    assert turned == [Difference(key, b, a) for key, a, b in found]
    assert plan.keys == [KEYS[2], KEYS[50], KEYS[-2]]


# What is not read


def test_tables_of_a_checkpoint_are_not_read(tmp_path: Path) -> None:
    scattered(tmp_path / "a")
    with lsmkv.DB(tmp_path / "a", **TINY) as db:
        db.put(b"in the log", b"of both")
        db.checkpoint(tmp_path / "b")
    # Not reopened for writing: that would bring the log into a table.
    with lsmkv.DB(tmp_path / "b", read_only=True) as db:
        assert db.written_keys() == [b"in the log"]
        tables = len(db.tables())
    assert tables > 5
    found, plan, blocks = compare(tmp_path / "b", tmp_path / "b")
    assert (found, blocks) == ([], 0)
    found, plan, blocks = compare(tmp_path / "a", tmp_path / "b")
    assert (found, blocks) == ([], 0)
    assert plan.extent.tables == 2 * tables
    assert plan.extent.tables_identical == tables
    assert plan.extent.bytes_skipped == plan.extent.bytes == 2 * plan.extent.bytes_identical > 0


def test_a_shared_table_alone_does_not_settle_its_range(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with lsmkv.DB(a, create_if_missing=True) as db:
        db.put(b"k", b"old")
        db.put(b"m", b"same")
        db.flush()
        db.checkpoint(b)
    with lsmkv.DB(b) as db:
        db.put(b"k", b"new")
    assert compare(a, b)[0] == [Difference(b"k", b"old", b"new")]  # in a log
    with lsmkv.DB(b) as db:
        db.flush()
    assert compare(a, b)[0] == [Difference(b"k", b"old", b"new")]  # in a table above
    with lsmkv.DB(b) as db:
        db.delete(b"k")
        db.flush()
    assert compare(b, a)[0] == [Difference(b"k", None, b"old")]


def test_an_older_version_below_a_shared_table(tmp_path: Path) -> None:
    """The older version that only B still has stays hidden by the newer one."""
    a, b = tmp_path / "a", tmp_path / "b"
    with lsmkv.DB(a, create_if_missing=True) as db:
        db.put(b"k", b"1")
        db.compact_range()
        db.put(b"k", b"2")
        db.flush()
        db.checkpoint(b)
        db.compact_range()  # rewrites what is below, and what was shared
    assert compare(a, b)[0] == []


def test_equal_content_in_different_tables_has_no_differences(tmp_path: Path) -> None:
    scattered(tmp_path / "a")
    with lsmkv.DB(tmp_path / "b", create_if_missing=True) as db:
        fill(db, KEYS, b"value")
    found, plan, _ = compare(tmp_path / "a", tmp_path / "b")
    assert found == []
    assert plan.extent.bytes_skipped == 0


def test_tables_of_equal_size_and_range_are_compared_by_content(tmp_path: Path) -> None:
    """Tables of equal size and range that differ in a value."""
    for name, value in (("a", b"1"), ("b", b"2")):
        with lsmkv.DB(tmp_path / name, create_if_missing=True) as db:
            for key, content in ((b"a", b"x"), (b"b", value), (b"c", b"x")):
                db.put(key, content)
            db.flush()
    tables = []
    for name in "ab":
        with lsmkv.DB(tmp_path / name, read_only=True) as db:
            (table,) = db.tables()
            tables.append((table.size, table.smallest, table.largest))
    assert tables[0] == tables[1]
    assert compare(tmp_path / "a", tmp_path / "b")[0] == [Difference(b"b", b"1", b"2")]


def test_diff_beside_a_writer_that_removes_tables(tmp_path: Path) -> None:
    scattered(tmp_path / "a")
    with lsmkv.DB(tmp_path / "a", **TINY) as writer:
        writer.checkpoint(tmp_path / "b")
        with (
            lsmkv.DB(tmp_path / "a", read_only=True) as a,
            lsmkv.DB(tmp_path / "b", read_only=True) as b,
            State(a) as ours,
            State(b) as theirs,
        ):
            fill(writer, KEYS, b"new")
            writer.compact_range()
            plan = plan_of(ours, theirs)  # the files of A are gone; its state holds them
            assert plan.extent.tables_identical == 0
            a.get(KEYS[0])
            a.refresh()
            assert list(differences(ours, theirs, plan, lambda _: None)) == []


def test_a_plan_is_not_made_of_two_states(tmp_path: Path) -> None:
    """Sparse tables are read by the store's handle, which may have moved on."""
    scattered(tmp_path / "a")
    with lsmkv.DB(tmp_path / "a", **TINY) as writer:
        writer.checkpoint(tmp_path / "b")
        writer.put(KEYS[0], b"sparse")
        writer.put(KEYS[-1], b"sparse")
        writer.flush()
        with (
            lsmkv.DB(tmp_path / "a", read_only=True) as a,
            lsmkv.DB(tmp_path / "b", read_only=True) as b,
            State(b) as theirs,
        ):
            with State(a) as ours:
                fill(writer, KEYS, b"new")
                writer.compact_range()
                a.refresh()
                with pytest.raises(lsmkv.StaleViewError):
                    ours.written_keys(ours.tables)
                with pytest.raises(lsmkv.StaleViewError):
                    ours.written_keys([])
            with State(a) as ours:
                plan = plan_of(ours, theirs)
                assert len(list(differences(ours, theirs, plan, lambda _: None))) == len(KEYS)


def test_empty_stores(tmp_path: Path) -> None:
    for name in "ab":
        lsmkv.DB(tmp_path / name, create_if_missing=True).close()
    assert compare(tmp_path / "a", tmp_path / "b")[0] == []
    with lsmkv.DB(tmp_path / "b") as db:
        db.put(b"", b"")
    assert compare(tmp_path / "a", tmp_path / "b")[0] == [Difference(b"", None, b"")]


# Orders


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (  # what is spelled otherwise is another key
            {"comparator": lsmkv.ReverseBytewiseComparator()},
            [b"key299", b"kEY001", b"Key013", b"Key012", b"Key011", b"Key010", b"KEY001"],
        ),
        (  # it is not
            {"comparator": fold, "comparator_name": "folded"},
            [b"key001", b"key010", b"key011", b"key012", b"key013", b"key299"],
        ),
    ],
)
def test_diff_with_other_comparators(
    tmp_path: Path, order: dict[str, Any], expected: list[bytes]
) -> None:
    with lsmkv.DB(tmp_path / "a", create_if_missing=True, **TINY, **order) as db:
        fill(db, [b"Key" + key for key in KEYS], b"value")
        db.compact_range()
        db.checkpoint(tmp_path / "b")
        db.put(b"kEY001", b"first")
    with lsmkv.DB(tmp_path / "b", **TINY, **order) as db:
        fill(db, [b"Key" + key for key in KEYS[10:14]], b"more")
        db.flush()
        db.put(b"key299", b"last")
        db.put(b"KEY001", b"second")
    with (
        lsmkv.DB(tmp_path / "a", read_only=True, **order) as a,
        lsmkv.DB(tmp_path / "b", read_only=True, **order) as b,
        State(a) as ours,
        State(b) as theirs,
    ):
        plan = plan_of(ours, theirs)
        found = [one.key for one in differences(ours, theirs, plan, lambda _: None)]
    if order.get("comparator_name") == "folded":
        found = [key.lower() for key in found]  # A's spelling is shown or B's
    assert found == expected
    assert plan.extent.bytes_skipped > 0


def test_a_store_open_for_writing_is_refused(tmp_path: Path) -> None:
    with (
        lsmkv.DB(tmp_path / "a", create_if_missing=True) as a,
        pytest.raises(ValueError, match="must be opened with read_only=True"),
    ):
        State(a)
