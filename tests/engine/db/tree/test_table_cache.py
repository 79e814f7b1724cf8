"""lsmkv.engine.db.tree.table_cache: tables are opened once, kept open and evicted; their
entries.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable, Sequence

import pytest

from lsmkv.engine.counters import Counters, ReadCounters
from lsmkv.engine.db.tree.table_cache import TableCache
from lsmkv.engine.db.tree.table_output import write_entries
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.filenames import old_table_name, table_name
from lsmkv.engine.format.keys import KIND_DELETION, KIND_VALUE, MAX_SEQUENCE, Entry, pack
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.table.format import BLOCK_TRAILER_SIZE, BlockHandle, Footer, seal_block
from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, Comparator
from lsmkv.engine.util.compression import NO_COMPRESSION
from lsmkv.errors import CorruptionError
from lsmkv.testing.faulty import FaultyEnv


class Bench:
    """A directory with tables in it."""

    def __init__(
        self,
        comparator: Comparator = BYTEWISE,
        max_open_files: int = 1000,
        table_cache_bytes: int | None = None,
    ) -> None:
        self.options = Options(
            comparator=comparator,
            block_size=100,
            compression=NO_COMPRESSION,
            block_cache=BlockCache(10_000),
            max_open_files=max_open_files,
            table_cache_bytes=table_cache_bytes,
        )
        self.env = FaultyEnv()
        self.directory: Directory = self.env.open_directory("db", create=True)
        self.counters = Counters()
        self.reads = ReadCounters()
        self.cache = TableCache(self.directory, self.options, self.counters)

    def table(self, number: int, entries: Sequence[Entry]) -> FileMetaData:
        columns = [key for key, _ in entries], [tagged for _, tagged in entries]
        return write_entries([columns], self.directory, number, self.options)

    def opened(self) -> int:
        """How often a table's file was opened."""
        return self.env.history.count("open")

    def entries(self, file: FileMetaData) -> list[Entry]:
        return flat(self.cache.entries(file, self.reads, 1000, 300))


def flat(chunks: Iterable[list[Entry]]) -> list[Entry]:
    return [entry for chunk in chunks for entry in chunk]


def entries_of(names: Sequence[bytes], versions: int = 3) -> list[Entry]:
    """A few versions of each key, newest first."""
    return [
        (name, pack(b"", 10 * sequence, KIND_VALUE if sequence % 2 else KIND_DELETION) + name * 3)
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
    assert bench.entries(file) == entries
    assert bench.opened() == 1
    assert bench.counters.tables_opened == 1
    assert bench.counters.metadata_reads == table.metadata_reads > 0
    assert bench.counters.metadata_bytes_read == table.metadata_bytes > 0


@pytest.mark.parametrize("how", ["evicted", "cleared"])
def test_a_dropped_table_is_opened_again(how: str) -> None:
    bench = Bench()
    file = bench.table(7, entries_of([b"a"]))
    table = bench.cache.find(file)
    if how == "evicted":
        bench.cache.evict(7)
    else:
        bench.cache.clear()
    assert bench.cache.find(file) is not table
    assert bench.opened() == 2


def test_evicting_a_table_frees_its_blocks_in_the_block_cache() -> None:
    bench = Bench()
    blocks = bench.options.block_cache
    assert blocks is not None
    entries = entries_of([b"%03d" % number for number in range(50)])
    files = [bench.table(number, entries) for number in (1, 2)]
    usages = []
    for file in files:
        table = bench.cache.find(file)
        for number in range(table.num_blocks):
            table.load_block(number, bench.reads, True)
        usages.append(blocks.usage)
    bench.cache.evict(1)
    assert 0 < blocks.usage == usages[1] - usages[0]
    bench.cache.evict(1)
    bench.cache.evict(2)
    assert blocks.usage == 0
    blocks.check()


def test_the_least_used_tables_are_dropped() -> None:
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


def test_a_reader_outlives_the_tables_eviction() -> None:
    bench = Bench()
    entries = entries_of([b"%03d" % number for number in range(50)])
    file = bench.table(7, entries)
    chunks = bench.cache.entries(file, bench.reads, 100, 100)
    first = next(chunks)
    assert len(first) < len(entries)
    bench.cache.evict(7)
    bench.cache.clear()
    bench.directory.remove(table_name(7))
    assert first + flat(chunks) == entries
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
    assert bench.entries(file) == entries


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


def test_swapped_table_files_are_detected() -> None:
    """Both have one size, so that only their content differs."""
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
    table = bench.cache.find(file)
    rest = flat(table.read(at, bench.reads).tagged_entries() for at in range(1, table.num_blocks))
    assert rest[-60:] == entries[-60:]
    with pytest.raises(CorruptionError, match="checksum"):
        bench.entries(file)


def test_a_disk_error_is_not_reported_as_corruption() -> None:
    n = 0
    failed = True
    while failed:
        n += 1
        bench = Bench()
        entries = entries_of([b"%03d" % number for number in range(20)])
        file = bench.table(7, entries)
        bench.env.fail_at(n)
        try:
            assert bench.entries(file) == entries
        except CorruptionError:
            raise
        except OSError:
            pass
        failed = bench.env.failures > 0
        bench.env.heal()
        assert bench.entries(file) == entries  # nothing half open was kept
    assert n > 5


def test_corruption_errors_name_the_file() -> None:
    bench = Bench()
    file = bench.table(7, entries_of([b"%03d" % number for number in range(20)]))
    data = bench.directory.read_file(table_name(7), 1 << 20)
    blocks_end = bench.cache.find(file).approximate_offset(b"z")
    for at in range(0, blocks_end, 7):
        bench.cache.evict(7)
        bench.directory.remove(table_name(7))
        with bench.directory.create(table_name(7)) as out:
            out.append(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(CorruptionError) as caught:
            list(bench.cache.entries(file, bench.reads, 1000, 100))
        assert caught.value.path == "db/000007.ldb"
        assert caught.value.offset is not None
        assert caught.value.offset <= at


def table_of_block(bench: Bench, keys: list[bytes]) -> FileMetaData:
    """A table of one block with these keys, whatever they are."""
    block = BlockBuilder(1)
    for key in keys:
        block.add(key, b"")
    index = BlockBuilder(1)
    data = seal_block(block.finish(), NO_COMPRESSION)
    index.add(pack(b"z", 1, KIND_VALUE), BlockHandle(0, len(data) - BLOCK_TRAILER_SIZE).encode())
    handles: list[BlockHandle] = []
    for content in (BlockBuilder(1).finish(), index.finish()):
        sealed = seal_block(content, NO_COMPRESSION)
        handles.append(BlockHandle(len(data), len(sealed) - BLOCK_TRAILER_SIZE))
        data += sealed
    data += Footer(*handles).encode()
    with bench.directory.create(table_name(7)) as out:
        out.append(data)
    return FileMetaData(7, len(data), keys[0], pack(b"z", 1, KIND_VALUE))


@pytest.mark.parametrize("bad", [b"short", b"key\x02" + bytes(7)])
def test_keys_that_are_no_internal_keys(bad: bytes) -> None:
    bench = Bench()
    file = table_of_block(bench, [bad])
    with pytest.raises(CorruptionError, match=r"internal key|shorter than its tag") as caught:
        list(bench.cache.entries(file, bench.reads, 1000, 100))
    assert caught.value.path == "db/000007.ldb"
    good = pack(b"key", 1, KIND_VALUE)
    bench.directory.remove(table_name(7))
    bench.cache.clear()
    assert bench.entries(table_of_block(bench, [good])) == [(b"key", good[3:])]


# All entries of a table


@pytest.mark.parametrize("comparator", [BYTEWISE, REVERSE_BYTEWISE], ids=lambda each: each.name)
@pytest.mark.parametrize("versions", [1, 3, 40])
def test_entries_come_in_lists_of_whole_blocks(comparator: Comparator, versions: int) -> None:
    bench = Bench(comparator)
    names = [b"%03d" % number for number in range(300)]
    names.sort(reverse=comparator is REVERSE_BYTEWISE)
    entries = entries_of(names, versions)
    file = bench.table(7, entries)
    blocks = bench.cache.find(file).num_blocks
    for readahead in (1, 1000, 1 << 20):
        chunks = list(bench.cache.entries(file, bench.reads, readahead, 1000))
        assert flat(chunks) == entries
        assert 1 < len(chunks) < blocks
    assert len(list(bench.cache.entries(file, bench.reads, 1000, 1 << 30))) == 1
    assert len(list(bench.cache.entries(file, bench.reads, 1000, 1))) == blocks
    assert (bench.reads.blocks_read, bench.reads.block_cache_hits) == (5 * blocks, 0)


def test_entries_do_not_use_the_block_cache() -> None:
    """Cached blocks are read from the file too, and none is added."""
    bench = Bench()
    file = bench.table(7, entries_of([b"%03d" % number for number in range(50)]))
    cache = bench.options.block_cache
    assert cache is not None
    bench.entries(file)
    assert cache.usage == 0
    table = bench.cache.find(file)
    table.load_block(0, bench.reads, True)
    before = cache.usage
    assert before > 0
    bench.entries(file)
    assert cache.usage == before
    assert bench.reads.blocks_read == 2 * table.num_blocks + 1
    assert bench.reads.block_cache_hits == 0


def test_the_largest_sequence() -> None:
    bench = Bench()
    entries = [
        (b"k", pack(b"", MAX_SEQUENCE, KIND_VALUE) + b"v"),
        (b"k", pack(b"", 1, KIND_VALUE)),
    ]
    file = bench.table(7, entries)
    assert bench.entries(file) == entries


# Memory


def test_tables_beyond_the_bytes_are_closed_and_opened_again() -> None:
    entries = entries_of([b"%04d" % number for number in range(100)])
    one = Bench()
    memory = one.cache.find(one.table(1, entries)).memory
    bench = Bench(table_cache_bytes=3 * memory)
    files = [bench.table(number, entries) for number in range(1, 11)]
    for file in files:
        bench.cache.find(file)
        assert bench.cache.memory() <= 3 * memory
    open_ones = [file.number for file in files if bench.cache.opened(file.number) is not None]
    assert open_ones == [8, 9, 10]  # none was used again
    assert bench.entries(files[0]) == entries
    assert bench.opened() == 11
    assert bench.cache.memory() == 3 * memory


def test_one_table_stays_open_however_few_bytes_there_are() -> None:
    bench = Bench(table_cache_bytes=0)
    first, second = (bench.table(number, entries_of([b"a"])) for number in (1, 2))
    assert bench.cache.find(first) is bench.cache.find(first)
    bench.cache.find(second)
    assert bench.cache.opened(1) is None
    assert bench.cache.opened(2) is not None


def test_a_reader_holds_only_a_share_of_the_bytes() -> None:
    entries = entries_of([b"%04d" % number for number in range(100)])
    one = Bench()
    memory = one.cache.find(one.table(1, entries)).memory
    bench = Bench(table_cache_bytes=8 * memory)
    files = [bench.table(number, entries) for number in range(1, 5)]
    assert list(bench.cache.hold(files[:2], False)) == [1, 2]
    assert bench.cache.hold(files, False) == {}


def test_the_bytes_of_a_table_are_about_what_it_takes() -> None:
    """Its index and its filters: measured, with the objects that hold them."""
    bench = Bench()
    entries = entries_of([b"key %012d" % number for number in range(3000)])
    files = [bench.table(number, entries) for number in range(1, 21)]
    bench.cache.find(files[0])
    gc.collect()
    tracemalloc.start()
    try:
        tables = [bench.cache.find(file) for file in files[1:]]
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    said = sum(table.memory for table in tables)
    assert 0.7 < taken / said < 1.4
