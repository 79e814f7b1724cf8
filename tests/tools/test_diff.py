"""``lsmkv diff``, checked against two dicts, and how much it reads."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from orders import fold
from typer.testing import CliRunner

import lsmkv
from lsmkv.tools import compare as compare_module
from lsmkv.tools.app import app
from lsmkv.tools.compare import _Files
from lsmkv.tools.diff import Plan, State, differences, make_plan
from lsmkv.util.pair_diff import Difference

TINY: dict[str, Any] = {
    "write_buffer_size": 2048,
    "max_file_size": 2048,
    "block_size": 256,
    "compression": None,
}
KEYS = [b"%03d" % number for number in range(300)]


def lsm(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def fill(db: lsmkv.DB, keys: list[bytes], text: bytes) -> None:
    for key in keys:
        db.put(key, text * 10)


def scattered(path: Path, text: bytes = b"value") -> None:
    """A store of many tables with disjoint ranges, one or two levels below level 0."""
    with lsmkv.DB(path, create_if_missing=True, **TINY) as db:
        fill(db, KEYS, text)
        db.compact_range()


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


def test_the_command_begins_anew_where_a_writer_removes_tables_that_are_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scattered(tmp_path / "a")
    with lsmkv.DB(tmp_path / "a", **TINY) as writer:
        writer.checkpoint(tmp_path / "b")
        fill(writer, KEYS, b"old")
        writer.compact_range()
        rounds: list[bytes] = [b"one", b"two"]

        def open_few(path: str) -> lsmkv.DB:
            return lsmkv.DB(path, read_only=True, max_open_files=14)  # nothing is held

        def plan_and_write(a: State, b: State, same: Any) -> Plan:
            plan = make_plan(a, b, same)
            if rounds:
                fill(writer, KEYS, rounds.pop(0))
                writer.compact_range()
            return plan

        monkeypatch.setattr(compare_module, "open_to_read", open_few)
        monkeypatch.setattr(compare_module, "make_plan", plan_and_write)
        status, out, err = lsm("diff", tmp_path / "a", tmp_path / "b")
        assert (status, err, rounds) == (1, "", [])
        lines = out.splitlines()
        assert [line.split("\t")[0] for line in lines] == [f"! {key.decode()}" for key in KEYS]
        assert {line.split("\t")[1] for line in lines} == {"two" * 10}

        monkeypatch.setattr(compare_module, "_ATTEMPTS", 3)
        rounds += [b"%d" % number for number in range(3)]  # a writer that is always faster
        status, out, err = lsm("diff", tmp_path / "a", tmp_path / "b")
        assert (status, out) == (2, "")
        assert "was removed by the store's writer" in err


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


def test_different_comparators_are_refused(tmp_path: Path) -> None:
    lsmkv.DB(tmp_path / "a", create_if_missing=True).close()
    lsmkv.DB(
        tmp_path / "b", create_if_missing=True, comparator=lsmkv.ReverseBytewiseComparator()
    ).close()
    status, out, err = lsm("diff", tmp_path / "a", tmp_path / "b")
    assert (status, out) == (2, "")
    assert "leveldb.BytewiseComparator" in err
    assert "leveldb.ReverseBytewiseComparator" in err


def test_a_store_open_for_writing_is_refused(tmp_path: Path) -> None:
    with (
        lsmkv.DB(tmp_path / "a", create_if_missing=True) as a,
        pytest.raises(ValueError, match="must be opened with read_only=True"),
    ):
        State(a)


# The command


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    contents: list[dict[bytes, bytes]] = [
        {b"gone\n": b"1", b"kept": b"same", b"turned": b"\xff"},
        {b"kept": b"same", b"new": "café".encode(), b"turned": b"2"},
    ]
    for name, content in zip("ab", contents, strict=True):
        with lsmkv.DB(tmp_path / name, create_if_missing=True) as db:
            for key, value in content.items():
                db.put(key, value)
    return tmp_path / "a", tmp_path / "b"


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ([], ["- gone\\n\t1", "+ new\tcafé", "! turned\t\\xff\t2"]),
        (["--keys-only"], ["- gone\\n", "+ new", "! turned"]),
        (["--limit", "2"], ["- gone\\n\t1", "+ new\tcafé"]),
        (["--hex", "--keys-only"], ["- 676f6e650a", "+ 6e6577", "! 7475726e6564"]),
        (["-q"], []),
        (["--quiet", "--json"], []),
    ],
)
def test_each_option_prints_its_lines(
    two: tuple[Path, Path], options: list[str], lines: list[str]
) -> None:
    assert lsm("diff", *two, *options) == (1, "".join(f"{line}\n" for line in lines), "")


def test_equal_content_is_status_0(two: tuple[Path, Path]) -> None:
    a, _ = two
    for options in ([], ["-q"], ["--limit", "1"]):
        assert lsm("diff", a, a, *options) == (0, "", "")


def test_json(two: tuple[Path, Path]) -> None:
    status, out, err = lsm("diff", *two, "--json")
    *records, last = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (1, "")
    assert records == [
        {"change": "only_a", "key": "gone\n", "a": "1"},
        {"change": "only_b", "key": "new", "b": "café"},
        {"change": "changed", "key": "turned", "a_base64": "/w==", "b": "2"},
    ]
    summary = last["summary"]
    assert (summary["a"], summary["b"]) == tuple(map(str, two))
    assert (summary["only_a"], summary["only_b"], summary["changed"]) == (1, 1, 1)
    assert summary["complete"] is True
    assert out.isascii()
    _, out, _ = lsm("diff", *two, "--json", "--limit", "1")
    assert json.loads(out.splitlines()[-1])["summary"]["complete"] is False


def test_stats_of_a_checkpoint(tmp_path: Path) -> None:
    scattered(tmp_path / "a")
    with lsmkv.DB(tmp_path / "a") as db:
        db.checkpoint(tmp_path / "b")
    status, out, err = lsm("diff", tmp_path / "a", tmp_path / "b", "--stats", "--json")
    assert status == 0
    summary = json.loads(out)["summary"]
    assert summary["blocks_read"] == summary["bytes_read"] == summary["bytes_compared"] == 0
    assert summary["bytes_skipped"] == summary["bytes"] > 0
    assert "only in A 0, only in B 0, changed 0" in err
    assert ", 0 data blocks read (0 B)" in err
    # Copies have to be looked at, but need not be decoded.
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    _, out, _ = lsm("diff", tmp_path / "a", tmp_path / "c", "--json")
    summary = json.loads(out)["summary"]
    assert summary["blocks_read"] == 0
    assert summary["bytes_compared"] == summary["bytes_identical"] == summary["bytes"] // 2


def test_neither_store_is_written_to(two: tuple[Path, Path]) -> None:
    before = [(name, os.stat(path / name).st_mtime_ns) for path in two for name in os.listdir(path)]
    lsm("diff", *two)
    after = [(name, os.stat(path / name).st_mtime_ns) for path in two for name in os.listdir(path)]
    assert before == after


def test_a_missing_store_is_an_error(two: tuple[Path, Path], tmp_path: Path) -> None:
    for arguments in ((two[0], tmp_path / "none"), (tmp_path / "none", two[0])):
        status, out, err = lsm("diff", *arguments)
        assert (status, out) == (2, "")
        assert "none: no database here" in err
    assert not (tmp_path / "none").exists()
