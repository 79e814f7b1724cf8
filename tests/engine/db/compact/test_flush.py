"""lsmkv.engine.db.compact.flush: the table of a memtable, durable or not there at all."""

from __future__ import annotations

import pytest
from orders import InterruptedOrder
from tables import Bench, deletion, value

from lsmkv.engine.db.compact.flush import write_tables
from lsmkv.engine.format.filenames import table_name
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, CallableComparator, Comparator


@pytest.fixture
def bench() -> Bench:
    return Bench()


# A memtable


def test_nothing_to_write(bench: Bench) -> None:
    assert bench.flush() is None
    assert bench.directory.names() == []


def test_values_and_deletions(bench: Bench) -> None:
    bench.memtable.add(1, [(b"b", b"2"), (b"a", b"1"), (b"c", None), (b"", b"")], -1)
    file = bench.flush()
    assert bench.entries(file) == [
        value(b"", 4, b""),
        value(b"a", 2, b"1"),
        value(b"b", 1, b"2"),
        deletion(b"c", 3),  # an older value may lie in a table
    ]


def test_deletions_alone_make_a_table(bench: Bench) -> None:
    bench.memtable.add(1, [(b"a", None)], -1)
    assert bench.entries(bench.flush()) == [deletion(b"a", 1)]


@pytest.mark.parametrize(
    ("oldest_pinned", "kept"),
    [(9, [8]), (8, [8]), (7, [8, 6]), (6, [8, 6]), (5, [8, 6, 4]), (0, [8, 6, 4])],
)
def test_versions_that_nobody_sees_are_left_out(
    bench: Bench, oldest_pinned: int, kept: list[int]
) -> None:
    for sequence in (4, 6, 8):
        bench.memtable.add(sequence, [(b"k", b"%d" % sequence)], sequence - 1)
    expected = [value(b"k", sequence, b"%d" % sequence) for sequence in kept]
    assert bench.entries(bench.flush(oldest_pinned)) == expected


def test_a_deletion_that_everyone_sees_hides_what_is_older(bench: Bench) -> None:
    bench.memtable.add(1, [(b"k", b"old")], -1)
    bench.memtable.add(2, [(b"k", None)], 1)
    bench.memtable.add(3, [(b"k", b"new")], 2)
    assert bench.entries(bench.flush(2)) == [value(b"k", 3, b"new"), deletion(b"k", 2)]


@pytest.mark.parametrize(
    "comparator",
    [
        BYTEWISE,
        REVERSE_BYTEWISE,
        CallableComparator(
            lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()), "test.Folding"
        ),
    ],
    ids=lambda each: each.name,
)
def test_any_order_and_many_chunks(comparator: Comparator) -> None:
    bench = Bench(comparator)
    names = [b"%05d" % (number * 7919 % 5000) for number in range(5000)]
    bench.memtable.add(1, [(name, name * 2) for name in names], -1)
    entries = bench.entries(bench.flush())
    assert [entry[0] for entry in entries] == sorted(names, reverse=comparator is REVERSE_BYTEWISE)
    assert all(entry[1][8:] == entry[0] * 2 for entry in entries)


def test_the_table_is_durable_before_its_name_counts(bench: Bench) -> None:
    bench.memtable.add(1, [(b"%04d" % number, b"v" * 100) for number in range(100)], -1)
    before = bench.env.calls
    file = bench.flush()
    assert file is not None
    history = bench.env.history[before:]
    assert history[0] == "create"
    assert history[-2:] == ["sync", "dir_sync"]
    assert set(history[1:-2]) == {"append"}
    with bench.env.power_cut().open_directory("db") as survived:
        assert survived.names() == [table_name(7)]
        assert survived.size(table_name(7)) == file.size


@pytest.mark.parametrize("short", [False, True])
def test_whatever_fails_no_file_is_left(short: bool) -> None:
    n = 0
    failed = True
    while failed:
        n += 1
        bench = Bench()
        bench.memtable.add(1, [(b"%04d" % number, bytes(100)) for number in range(100)], -1)
        bench.env.fail_at(n, short=short)
        try:
            file = bench.flush()
        except OSError as error:
            path = error.filename
            assert bench.directory.names() == []
            assert path in ("db", "db/000007.ldb")
            file = bench.flush(number=8)  # the memtable is as it was
        failed = bench.env.failures > 0
        bench.env.heal()
        assert len(bench.entries(file)) == 100
    assert n == 5


def test_ctrl_c_leaves_no_file() -> None:
    """It may come while a user's comparator runs."""
    order = InterruptedOrder()
    bench = Bench(order.comparator)
    bench.memtable.add(1, [(b"%04d" % number, bytes(100)) for number in range(50)], -1)
    assert len(bench.memtable) == 50
    for at in (1, 10, 40):
        order.left = at
        with pytest.raises(KeyboardInterrupt):
            bench.flush()
        order.left = -1
        assert bench.directory.names() == []
    assert len(bench.entries(bench.flush())) == 50


def test_tables_before_one_that_fails_are_removed(bench: Bench) -> None:
    chunks = [([b"a", b"v"], [value(b"", 1)[1], value(b"", 2)[1]])]
    options = bench.options._replace(flush_prefix="v")
    numbers = iter([7])
    with pytest.raises(StopIteration):
        write_tables(chunks, bench.directory, lambda: next(numbers), options)
    assert bench.directory.names() == []
