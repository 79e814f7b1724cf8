"""lsmkv.db.flush: tables made of entries and of memtables, durable or not there at all."""

from __future__ import annotations

import os

import pytest
from librt.threading import Lock

from lsmkv.counters import Counters, ReadCounters
from lsmkv.db.flush import write_memtable
from lsmkv.db.memtable import MemTable
from lsmkv.db.table_cache import TableCache
from lsmkv.db.table_output import TableOutput, remove_table, write_entries
from lsmkv.env.base import Directory, WritableFile
from lsmkv.env.faulty import FaultyEnv
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.format.filenames import table_name
from lsmkv.format.key_order import KeyOrder
from lsmkv.format.keys import KIND_DELETION, KIND_VALUE, Entry, pack
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options
from lsmkv.table.inspection import check
from lsmkv.util.comparator import BYTEWISE, REVERSE_BYTEWISE, CallableComparator, Comparator

EVERYONE_LOOKS_AT = 1 << 50


class Bench:
    def __init__(self, comparator: Comparator = BYTEWISE) -> None:
        self.env = FaultyEnv()
        self.directory: Directory = self.env.open_directory("db", create=True)
        self.order = KeyOrder(comparator)
        self.options = Options(
            comparator=comparator,
            filter_policy=BloomFilterPolicy(10),
            block_size=200,
        )
        self.memtable = MemTable(comparator, Lock())

    def flush(self, oldest_seen: int = EVERYONE_LOOKS_AT, number: int = 7) -> FileMetaData | None:
        return write_memtable(
            self.memtable, self.directory, number, self.options, self.order, oldest_seen
        )

    def entries(self, file: FileMetaData | None) -> list[Entry]:
        assert file is not None
        cache = TableCache(self.directory, self.options, Counters())
        check(cache.find(file))
        return [e for chunk in cache.entries(file, ReadCounters(), 1000, 1000) for e in chunk]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def value(key: bytes, sequence: int, data: bytes) -> Entry:
    return key, pack(b"", sequence, KIND_VALUE) + data


def deletion(key: bytes, sequence: int) -> Entry:
    return key, pack(b"", sequence, KIND_DELETION)


def add(output: TableOutput, entry: Entry) -> None:
    """Append one entry."""
    assert output.add_entries([entry[0]], [entry[1]], 0, 1, 1 << 40) == 1


# One table


def test_a_table_and_what_is_known_of_it(bench: Bench) -> None:
    output = TableOutput(bench.directory, 7, bench.options)
    assert output.number == 7
    assert output.size == 0
    entries = [value(b"k%03d" % number, 5, b"v" * 50) for number in range(100)]
    sizes = []
    for entry in entries:
        add(output, entry)
        sizes.append(output.size)
    assert sizes == sorted(sizes)
    assert sizes[-1] > 1000
    file = output.finish()
    assert file.number == 7
    assert file.size == bench.directory.size("000007.ldb") == output.size
    assert file.smallest == pack(b"k000", 5, KIND_VALUE)
    assert file.largest == pack(b"k099", 5, KIND_VALUE)
    assert bench.entries(file) == entries


def test_finish_makes_the_content_durable(bench: Bench) -> None:
    output = TableOutput(bench.directory, 7, bench.options)
    add(output, value(b"k", 1, b"v"))
    bench.directory.sync()
    output.finish()
    assert bench.env.history[-2:] == ["append", "sync"]
    with bench.env.power_cut().open_directory("db") as survived:
        assert survived.size("000007.ldb") == bench.directory.size("000007.ldb")


def test_the_disk_begins_with_a_table_every_half_mebibyte(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(WritableFile, "begin_sync", lambda file: sizes.append(file.size()))
    for number in range(1300):
        bench.memtable.add(number + 1, [(b"%06d" % number, os.urandom(1000))], -1)
    file = bench.flush()
    assert file is not None
    assert file.size > 1_300_000
    # After each chunk of entries as it is due, and less what the builder has in hand.
    assert len(sizes) == 2
    assert sizes[0] > 400_000
    assert 500_000 < sizes[1] - sizes[0] < 700_000
    begun = sizes.copy()
    sizes.clear()
    keys: list[bytes] = []
    tagged: list[bytes] = []
    for some_keys, some_tagged in bench.memtable.columns():
        keys += some_keys
        tagged += some_tagged
    assert write_entries([(keys, tagged)], bench.directory, 8, bench.options).size == file.size
    assert sizes == begun


def test_abandon_removes_the_file(bench: Bench) -> None:
    output = TableOutput(bench.directory, 7, bench.options)
    add(output, value(b"k", 1, b"v"))
    output.abandon()
    assert bench.directory.names() == []
    remove_table(bench.directory, 7)  # no error: it is gone


def test_a_table_that_cannot_be_removed_is_left_for_the_next_open(bench: Bench) -> None:
    output = TableOutput(bench.directory, 7, bench.options)
    bench.env.fail_at(1, calls=["remove"])
    output.abandon()
    assert bench.directory.names() == ["000007.ldb"]


def test_a_number_that_is_taken_is_refused(bench: Bench) -> None:
    TableOutput(bench.directory, 7, bench.options)
    with pytest.raises(FileExistsError):
        TableOutput(bench.directory, 7, bench.options)


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
    ("oldest_seen", "kept"),
    [(9, [8]), (8, [8]), (7, [8, 6]), (6, [8, 6]), (5, [8, 6, 4]), (0, [8, 6, 4])],
)
def test_versions_that_nobody_sees_are_left_out(
    bench: Bench, oldest_seen: int, kept: list[int]
) -> None:
    for sequence in (4, 6, 8):
        bench.memtable.add(sequence, [(b"k", b"%d" % sequence)], sequence - 1)
    expected = [value(b"k", sequence, b"%d" % sequence) for sequence in kept]
    assert bench.entries(bench.flush(oldest_seen)) == expected


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
    countdown = -1

    def compare(a: bytes, b: bytes) -> int:
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            raise KeyboardInterrupt
        return (a > b) - (a < b)

    bench = Bench(CallableComparator(compare, "test.Interruptible"))
    bench.memtable.add(1, [(b"%04d" % number, bytes(100)) for number in range(50)], -1)
    assert len(bench.memtable) == 50
    for at in (1, 10, 40):
        countdown = at
        with pytest.raises(KeyboardInterrupt):
            bench.flush()
        countdown = -1
        assert bench.directory.names() == []
    assert len(bench.entries(bench.flush())) == 50
