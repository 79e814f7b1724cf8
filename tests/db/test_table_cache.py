"""lsmkv.db.table_cache: tables opened once, and cursors over them from any place."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest
from stores import ENTRIES, files, fill

import lsmkv
from lsmkv import DB
from lsmkv.counters import NUM_LEVELS, Counters, ReadCounters
from lsmkv.db.table_cache import TableCache
from lsmkv.db.table_output import TableOutput
from lsmkv.db.version import Version
from lsmkv.env.base import Directory
from lsmkv.env.faulty import FaultyEnv
from lsmkv.errors import CorruptionError
from lsmkv.format.filenames import FileType, old_table_name, table_name
from lsmkv.format.key_order import KeyOrder, Position
from lsmkv.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    Entry,
    InternalKeyComparator,
    pack,
    pack_entry,
    rank_of,
)
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options
from lsmkv.table.builder import TableBuilder
from lsmkv.util.block_cache import BlockCache
from lsmkv.util.comparator import BYTEWISE, REVERSE_BYTEWISE, Comparator
from lsmkv.util.compression import NO_COMPRESSION


class Bench:
    """A directory with tables in it."""

    def __init__(self, comparator: Comparator = BYTEWISE, max_open_files: int = 1000) -> None:
        self.order = KeyOrder(comparator)
        self.comparator = InternalKeyComparator(comparator)
        self.options = Options(
            comparator=self.comparator,
            block_size=100,
            compression=NO_COMPRESSION,
            block_cache=BlockCache(10_000),
            max_open_files=max_open_files,
        )
        self.env = FaultyEnv()
        self.directory: Directory = self.env.open_directory("db", create=True)
        self.counters = Counters()
        self.reads = ReadCounters()
        self.cache = TableCache(self.directory, self.options, self.counters)

    def table(self, number: int, entries: Sequence[Entry]) -> FileMetaData:
        output = TableOutput(self.directory, number, self.options)
        for entry in entries:
            output.add(*entry)
        return output.finish()

    def opened(self) -> int:
        """How often a table's file was opened."""
        return self.env.history.count("open")

    def scan(self, file: FileMetaData, start: Position | None = None) -> list[Entry]:
        return flat(self.cache.scan(file, start, self.reads, True))


def flat(chunks: object) -> list[Entry]:
    return [entry for chunk in chunks for entry in chunk]  # type: ignore[attr-defined]


def flat_back(chunks: object) -> list[Entry]:
    """A backward scan's entries in rising order; each chunk rises already."""
    return [entry for chunk in reversed(list(chunks)) for entry in chunk]  # type: ignore[call-overload]


def entries_of(names: Sequence[bytes], versions: int = 3) -> list[Entry]:
    """A few versions of each key, newest first."""
    return [
        (name, rank_of(10 * sequence, KIND_VALUE if sequence % 2 else KIND_DELETION), name * 3)
        for name in names
        for sequence in range(versions, 0, -1)
    ]


# Opening


def test_a_table_is_opened_once() -> None:
    bench = Bench()
    entries = entries_of([b"a", b"b"])
    file = bench.table(7, entries)
    table = bench.cache.find(file)
    assert bench.cache.find(file) is table
    assert bench.scan(file) == entries
    assert bench.opened() == 1
    assert bench.counters.tables_opened == 1
    assert bench.counters.metadata_reads == table.metadata_reads > 0
    assert bench.counters.metadata_bytes_read == table.metadata_bytes > 0


@pytest.mark.parametrize("how", ["evicted", "cleared"])
def test_a_table_that_was_let_go_is_opened_again(how: str) -> None:
    bench = Bench()
    file = bench.table(7, entries_of([b"a"]))
    table = bench.cache.find(file)
    if how == "evicted":
        bench.cache.evict(7)
    else:
        bench.cache.clear()
    assert bench.cache.find(file) is not table
    assert bench.opened() == 2


def test_the_blocks_of_a_removed_table_make_room() -> None:
    bench = Bench()
    blocks = bench.options.block_cache
    assert blocks is not None
    entries = entries_of([b"%03d" % number for number in range(50)])
    files = [bench.table(number, entries) for number in (1, 2)]
    usages = []
    for file in files:
        assert flat(bench.cache.scan(file, None, bench.reads, True)) == entries
        usages.append(blocks.usage)
    bench.cache.evict(1)
    assert 0 < blocks.usage == usages[1] - usages[0]
    bench.cache.evict(1)
    bench.cache.evict(2)
    assert blocks.usage == 0
    blocks.check()


def test_tables_used_least_are_let_go() -> None:
    bench = Bench(max_open_files=12)  # two, and ten descriptors for other files
    files = [bench.table(number, entries_of([b"a"])) for number in (1, 2, 3)]
    first = bench.cache.find(files[0])
    bench.cache.find(files[1])
    assert bench.cache.find(files[0]) is first
    bench.cache.find(files[2])  # the second one goes
    assert bench.cache.find(files[0]) is first
    assert bench.opened() == 3
    bench.cache.find(files[1])
    assert bench.opened() == 4


def test_a_scan_outlives_the_tables_eviction() -> None:
    bench = Bench()
    entries = entries_of([b"%03d" % number for number in range(50)])
    file = bench.table(7, entries)
    scan = bench.cache.scan(file, None, bench.reads, True)
    back = bench.cache.scan_back(file, None, bench.reads, True)
    seen = next(scan)
    behind = next(back)
    bench.cache.evict(7)
    bench.cache.clear()
    bench.directory.remove(table_name(7))
    assert seen + flat(scan) == entries
    assert flat_back(back) + behind == entries
    with pytest.raises(CorruptionError):
        bench.cache.find(file)


def test_evict_and_clear() -> None:
    bench = Bench()
    files = [bench.table(number, entries_of([b"a"])) for number in (1, 2)]
    tables = [bench.cache.find(file) for file in files]
    bench.cache.evict(1)
    bench.cache.evict(99)
    assert bench.cache.find(files[0]) is not tables[0]
    assert bench.cache.find(files[1]) is tables[1]
    bench.cache.clear()
    assert bench.cache.find(files[1]) is not tables[1]


def test_tables_of_old_databases_are_found() -> None:
    bench = Bench()
    entries = entries_of([b"a"])
    file = bench.table(7, entries)
    bench.directory.rename(table_name(7), old_table_name(7))
    assert bench.scan(file) == entries


def test_a_missing_table() -> None:
    bench = Bench()
    file = bench.table(7, entries_of([b"a"]))
    bench.directory.remove(table_name(7))
    with pytest.raises(CorruptionError, match="missing") as caught:
        bench.cache.find(file)
    assert caught.value.path == "db/000007.ldb"


@pytest.mark.parametrize("size", [-1, 1])
def test_a_table_of_another_size_than_the_manifest_states(size: int) -> None:
    bench = Bench()
    file = bench.table(7, entries_of([b"a"]))
    stated = FileMetaData(7, file.size + size, file.smallest, file.largest)
    with pytest.raises(CorruptionError, match="the MANIFEST says") as caught:
        bench.cache.find(stated)
    assert caught.value.path == "db/000007.ldb"
    assert caught.value.offset == min(file.size, file.size + size)
    assert bench.counters.tables_opened == 0
    bench.cache.find(file)


def test_tables_that_have_changed_places() -> None:
    """Of one size, so that only what is in them tells."""
    bench = Bench()
    low = bench.table(7, entries_of([b"a1", b"a2"]))
    high = bench.table(8, entries_of([b"b1", b"b2"]))
    assert low.size == high.size
    for old, new in ((7, 9), (8, 7), (9, 8)):
        bench.directory.rename(table_name(old), table_name(new))
    for file in (low, high):
        with pytest.raises(CorruptionError, match="another key") as caught:
            bench.cache.find(file)
        assert caught.value.path == f"{bench.directory.path}/{table_name(file.number)}"


def test_damage_in_the_first_block_leaves_the_others_readable() -> None:
    bench = Bench()
    entries = entries_of([b"%03d" % number for number in range(50)])
    file = bench.table(7, entries)
    with bench.directory.open(table_name(7)) as whole:
        data = bytearray(whole.read(0, whole.size))
    data[3] ^= 1
    bench.directory.remove(table_name(7))
    with bench.directory.create(table_name(7)) as out:
        out.append(bytes(data))
    rest = flat(bench.cache.scan(file, Position(b"030", False), bench.reads, True))
    assert rest[-60:] == entries[-60:]
    with pytest.raises(CorruptionError, match="checksum"):
        flat(bench.cache.scan(file, None, bench.reads, True))


def test_an_error_of_the_disk_is_no_damage() -> None:
    n = 0
    failed = True
    while failed:
        n += 1
        bench = Bench()
        entries = entries_of([b"%03d" % number for number in range(20)])
        file = bench.table(7, entries)
        bench.env.fail_at(n)
        try:
            assert bench.scan(file) == entries
        except CorruptionError:
            raise
        except OSError:
            pass
        failed = bench.env.failures > 0
        bench.env.heal()
        assert bench.scan(file) == entries  # nothing half open was kept
    assert n > 5


def test_damage_is_reported_with_its_file() -> None:
    bench = Bench()
    file = bench.table(7, entries_of([b"%03d" % number for number in range(20)]))
    data = bench.directory.read_file(table_name(7), 1 << 20)
    blocks_end = bench.cache.find(file).approximate_offset(pack(b"z", 1, KIND_VALUE))
    for at in range(0, blocks_end, 7):
        bench.cache.evict(7)
        bench.directory.remove(table_name(7))
        with bench.directory.create(table_name(7)) as out:
            out.append(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        for scan in (bench.cache.scan, bench.cache.scan_back):
            with pytest.raises(CorruptionError) as caught:
                list(scan(file, None, bench.reads, False))
            assert caught.value.path == "db/000007.ldb"
            assert caught.value.offset is not None
            assert caught.value.offset <= at
        with pytest.raises(CorruptionError) as caught:
            list(bench.cache.rows(file, bench.reads, 1000, 100))
        assert caught.value.path == "db/000007.ldb"
        assert caught.value.offset is not None
        assert caught.value.offset <= at


@pytest.mark.parametrize("bad", [b"short", b"key\x02" + bytes(7)])
def test_keys_that_are_no_internal_keys(bad: bytes) -> None:
    bench = Bench()
    with bench.directory.create(table_name(7)) as out:
        builder = TableBuilder(Options(compression=NO_COMPRESSION), out)
        builder.add(bad, b"")
        builder.finish()
    file = FileMetaData(7, bench.directory.size(table_name(7)), bad, pack(b"z", 1, 1))
    for scan in (
        bench.cache.scan(file, None, bench.reads, True),
        bench.cache.scan_back(file, None, bench.reads, True),
    ):
        with pytest.raises(CorruptionError, match="internal key") as caught:
            list(scan)
        assert caught.value.path == "db/000007.ldb"
    with pytest.raises(CorruptionError, match=r"internal key|shorter than its tag") as caught:
        list(bench.cache.rows(file, bench.reads, 1000, 100))
    assert caught.value.path == "db/000007.ldb"


# Cursors over one table


def below(entries: Sequence[Entry], position: Position, comparator: Comparator) -> list[Entry]:
    """The entries before a position."""
    return [
        entry
        for entry in entries
        if (order := comparator.compare(entry[0], position.user_key)) < 0
        or (order == 0 and position.after)
    ]


@pytest.mark.parametrize("comparator", [BYTEWISE, REVERSE_BYTEWISE], ids=lambda each: each.name)
@pytest.mark.parametrize("versions", [1, 3, 40])
def test_scans_begin_at_a_position(comparator: Comparator, versions: int) -> None:
    bench = Bench(comparator)
    names = [b"%02d" % number for number in range(0, 40, 2)]
    names.sort(reverse=comparator is REVERSE_BYTEWISE)
    entries = entries_of(names, versions)
    file = bench.table(7, entries)
    assert bench.scan(file) == entries
    assert flat_back(bench.cache.scan_back(file, None, bench.reads, True)) == entries
    for number in range(-1, 41):
        probe = b"" if number < 0 else b"%02d" % number
        for after in (False, True):
            position = Position(probe, after)
            before = below(entries, position, comparator)
            assert bench.scan(file, position) == entries[len(before) :]
            ahead = bench.cache.scan(file, position, bench.reads, False, readahead=1000)
            assert flat(ahead) == entries[len(before) :]
            back = bench.cache.scan_back(file, position, bench.reads, True)
            assert flat_back(back) == before


@pytest.mark.parametrize("versions", [1, 3])
def test_rows_are_the_entries_undecoded(versions: int) -> None:
    bench = Bench()
    entries = entries_of([b"%03d" % number for number in range(300)], versions)
    file = bench.table(7, entries)
    blocks = bench.cache.find(file).num_blocks
    for readahead in (1, 1000, 1 << 20):
        chunks = list(bench.cache.rows(file, bench.reads, readahead, 1000))
        assert [row for chunk in chunks for row in chunk] == [
            (key, pack_entry(b"", rank) + value) for key, rank, value in entries
        ]
        assert 1 < len(chunks) < blocks
    assert len(list(bench.cache.rows(file, bench.reads, 1000, 1 << 20))) == 1
    assert len(list(bench.cache.rows(file, bench.reads, 1000, 1))) == blocks
    assert (bench.reads.blocks_read, bench.reads.block_cache_hits) == (5 * blocks, 0)


def test_scans_are_counted_and_leave_the_cache_alone_when_asked() -> None:
    bench = Bench()
    file = bench.table(7, entries_of([b"%03d" % number for number in range(50)]))
    blocks = bench.cache.find(file).num_blocks
    list(bench.cache.scan(file, None, bench.reads, False))
    list(bench.cache.scan_back(file, None, bench.reads, False))
    assert (bench.reads.blocks_read, bench.reads.block_cache_hits) == (2 * blocks, 0)
    bench.scan(file)
    bench.scan(file)
    assert (bench.reads.blocks_read, bench.reads.block_cache_hits) == (3 * blocks, blocks)


# Cursors over a level


def test_scans_of_a_level() -> None:
    """Files of any length, one user key in two of them, gaps between others."""
    bench = Bench()
    rng = random.Random(7)
    entries = entries_of([b"%02d" % number for number in range(0, 60, 2)], 4)
    for _ in range(20):
        cuts = sorted(rng.sample(range(1, len(entries)), 6))
        runs = [
            entries[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(entries)], strict=True)
        ]
        base = bench.env.calls
        files = [bench.table(base + at, run) for at, run in enumerate(runs)]
        levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
        levels[2] = files
        version = Version(bench.comparator, levels)
        version.check()
        cache = bench.cache
        assert flat(cache.scan_level(version, 2, None, bench.reads, True)) == entries
        assert flat_back(cache.scan_level_back(version, 2, None, bench.reads, True)) == entries
        for number in range(-1, 61):
            probe = b"" if number < 0 else b"%02d" % number
            for after in (False, True):
                position = Position(probe, after)
                before = below(entries, position, BYTEWISE)
                ahead = cache.scan_level(version, 2, position, bench.reads, True)
                assert flat(ahead) == entries[len(before) :]
                back = cache.scan_level_back(version, 2, position, bench.reads, True)
                assert flat_back(back) == before


def test_a_scan_of_a_level_opens_only_what_it_reads() -> None:
    bench = Bench()
    files = [bench.table(number, entries_of([b"%02d" % number])) for number in range(1, 20)]
    levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
    levels[1] = files
    version = Version(bench.comparator, levels)
    next(bench.cache.scan_level(version, 1, Position(b"10", False), bench.reads, True))
    assert bench.opened() == 1
    next(bench.cache.scan_level_back(version, 1, Position(b"10", False), bench.reads, True))
    assert bench.opened() <= 3
    assert list(bench.cache.scan_level(version, 4, None, bench.reads, True)) == []
    assert list(bench.cache.scan_level_back(version, 4, None, bench.reads, True)) == []
    assert list(bench.cache.scan_level(version, 1, Position(b"20", False), bench.reads, True)) == []


def test_the_largest_sequence() -> None:
    bench = Bench()
    entries = [(b"k", rank_of(MAX_SEQUENCE, KIND_VALUE), b"v"), (b"k", rank_of(1, KIND_VALUE), b"")]
    file = bench.table(7, entries)
    assert bench.scan(file, Position(b"k", after=False)) == entries
    assert bench.scan(file, Position(b"k", after=True)) == []


def test_get_names_the_missing_table(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        fill(db)
        db.flush()
    (name,) = files(path, FileType.TABLE)
    os.rename(os.path.join(path, name), os.path.join(path, "aside"))
    with DB(path) as db:
        with pytest.raises(lsmkv.CorruptionError, match="missing") as caught:
            db.get(b"key0001")
        assert str(caught.value.path).endswith(name)
    os.rename(os.path.join(path, "aside"), os.path.join(path, name))
    with DB(path) as db:
        assert dict(db) == ENTRIES
