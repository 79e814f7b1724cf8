"""lsmkv.db.scan.level_iterator: a level read both ways, wherever a key is, against a model."""

from __future__ import annotations

import itertools
import random

import pytest
from librt.threading import Lock

from lsmkv.counters import NUM_LEVELS, Counters, ReadCounters
from lsmkv.db.memtable import MemTable
from lsmkv.db.merge import InternalIterator, KeyOrder, Pair, Position, Seen
from lsmkv.db.scan.level_iterator import (
    FIRST_CHUNK,
    CacheShare,
    LevelIterator,
    LevelReader,
    MemTableIterator,
    ReverseLevelIterator,
)
from lsmkv.db.table_cache import TableCache
from lsmkv.db.table_output import TableOutput
from lsmkv.db.version import Version
from lsmkv.env.faulty import FaultyEnv
from lsmkv.errors import CorruptionError
from lsmkv.format.batch import Operation
from lsmkv.format.keys import InternalKeyComparator, rank_of
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options
from lsmkv.table.block_iterator import NO_LIMIT, PAIRS, SEEN
from lsmkv.util.block_cache import BlockCache
from lsmkv.util.comparator import BYTEWISE
from lsmkv.util.compression import NO_COMPRESSION

Versions = dict[tuple[bytes, int], int]
"""Kinds by user key and sequence."""


class Bench:
    """A level whose tables have blocks of a few entries."""

    def __init__(
        self, versions: Versions, cuts: list[int], level: int = 1, block_size: int = 60
    ) -> None:
        """Entries in order, a new table at each of the ``cuts``."""
        comparator = InternalKeyComparator(BYTEWISE)
        options = Options(
            comparator=comparator,
            block_size=block_size,
            block_restart_interval=3,
            compression=NO_COMPRESSION,
            block_cache=BlockCache(10_000),
        )
        self.options = options
        self.env = FaultyEnv()  # which counts calls
        self.directory = self.env.open_directory("db", create=True)
        self.reads = ReadCounters()
        self.tables = TableCache(self.directory, options, Counters())
        ordered = sorted(versions, key=lambda version: (version[0], -version[1]))
        files: list[FileMetaData] = []
        bounds = [0, *sorted(set(cuts) - {0, len(ordered)}), len(ordered)]
        for number, (begin, end) in enumerate(itertools.pairwise(bounds), 1):
            output = TableOutput(self.directory, number, options)
            for key, sequence in ordered[begin:end]:
                output.add(key, rank_of(sequence, versions[key, sequence]), b"%d" % sequence)
            files.append(output.finish())
        levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
        levels[level] = files
        self.version = Version(comparator, levels)
        self.level = level

    def reader(
        self, newest: int = NO_LIMIT, form: int = PAIRS, chunk: int = FIRST_CHUNK
    ) -> LevelReader:
        order = KeyOrder(BYTEWISE)
        files = self.version.levels[self.level]
        tables, version, level = self.tables, self.version, self.level
        share = CacheShare(1 << 40)
        return LevelReader(
            tables, version, level, files, newest, form, chunk, order, self.reads, share
        )

    def forward(
        self, start: Position | None, upper: Position | None, newest: int = NO_LIMIT
    ) -> list[Pair]:
        run = LevelIterator(self.reader(newest), start, upper)
        chunks = list(iter(run.next_chunk, []))
        assert run.next_chunk() == []
        return [pair for chunk in chunks for pair in chunk]

    def backward(
        self, before: Position | None, lower: Position | None, newest: int = NO_LIMIT
    ) -> list[Pair]:
        run = ReverseLevelIterator(self.reader(newest), before, lower)
        chunks = list(iter(run.next_chunk, []))
        assert run.next_chunk() == []
        return [pair for chunk in reversed(chunks) for pair in chunk]


def pairs_of(run: InternalIterator) -> list[Pair]:
    """All of them, in the order in which they come."""
    return [pair for chunk in iter(run.next_chunk, []) for pair in chunk]


def seen(versions: Versions, newest: int) -> list[Pair]:
    """The model."""
    found: dict[bytes, int] = {}
    for key, sequence in versions:
        if sequence <= newest:
            found[key] = max(sequence, found.get(key, 0))
    return [(key, b"%d" % last) for key, last in sorted(found.items()) if versions[key, last]]


def lies_before(key: bytes, position: Position) -> bool:
    return key < position.user_key or (key == position.user_key and position.after)


def random_versions(rng: random.Random, keys: int, most: int) -> Versions:
    return {
        (b"%03d" % rng.randrange(keys), rng.randrange(1, 30)): int(rng.random() < 0.7)
        for _ in range(rng.randrange(most))
    }


@pytest.mark.parametrize("seed", range(60))
def test_both_ways_from_anywhere(seed: int) -> None:
    rng = random.Random(seed)
    # With few keys, the versions of one are spread over several blocks and tables.
    versions = random_versions(rng, keys=rng.choice([2, 8, 40]), most=150)
    cuts = [rng.randrange(len(versions) + 1) for _ in range(rng.randrange(5))]
    bench = Bench(versions, cuts, block_size=rng.choice([60, 300, 5000]))
    for newest in (NO_LIMIT, rng.randrange(31)):
        pairs = seen(versions, newest)
        assert bench.forward(None, None, newest) == pairs
        assert bench.backward(None, None, newest) == pairs
        for _ in range(20):
            low = Position(b"%03d" % rng.randrange(-1, 41), rng.random() < 0.5)
            high = Position(b"%03d" % rng.randrange(-1, 41), rng.random() < 0.5)
            above = [pair for pair in pairs if not lies_before(pair[0], low)]
            between = [pair for pair in above if lies_before(pair[0], high)]
            below = [pair for pair in pairs if lies_before(pair[0], high)]
            assert bench.forward(low, None, newest) == above
            assert bench.forward(None, high, newest) == below
            assert bench.forward(low, high, newest) == between
            assert bench.backward(None, low, newest) == above
            assert bench.backward(high, None, newest) == below
            assert bench.backward(high, low, newest) == between


def test_one_table_of_level_0() -> None:
    versions = {(b"%03d" % number, number): 1 for number in range(1, 50)}
    bench = Bench(versions, [], level=0)
    pairs = seen(versions, NO_LIMIT)
    assert bench.forward(Position(b"010", after=False), None) == pairs[9:]
    assert bench.backward(Position(b"010", after=False), None) == pairs[:9]
    assert bench.forward(Position(b"9", after=False), None) == []
    assert bench.backward(Position(b"9", after=False), None) == pairs


def test_a_seek_reads_one_block_and_a_few_pairs() -> None:
    versions = {(b"%03d" % number, number): 1 for number in range(1, 200)}
    bench = Bench(versions, [100])
    for begin in (1, 57, 150):
        before = bench.reads.blocks_read
        run = LevelIterator(bench.reader(), Position(b"%03d" % begin, after=False), None)
        found = run.next_chunk()
        assert found[0] == (b"%03d" % begin, b"%d" % begin)
        assert len(found) <= 4
        assert bench.reads.blocks_read == before + 1


@pytest.mark.parametrize("chunk", [1, 3, FIRST_CHUNK])
def test_the_next_block_is_not_read_whole_before_much_is_asked_for(chunk: int) -> None:
    versions = {(b"%03d" % number, number): 1 for number in range(200)}
    bench = Bench(versions, [120], block_size=1000)
    pairs = seen(versions, NO_LIMIT)
    for number in range(200):
        run = LevelIterator(
            bench.reader(chunk=chunk), Position(b"%03d" % number, after=False), None
        )
        chunks = list(iter(run.next_chunk, []))
        assert all(len(some) <= chunk << at for at, some in enumerate(chunks))
        assert [pair for some in chunks for pair in some] == pairs[number:]


@pytest.mark.parametrize("begin", [None, 1, 2, 3, 4, 22, 199])
def test_a_seek_back_reads_the_end_of_one_block(begin: int | None) -> None:
    """A restart interval, which is of three entries here, with the first entry of the next one at
    most; and then what is before it."""
    versions = {(b"%03d" % number, 1): 1 for number in range(200)}
    bench = Bench(versions, [], block_size=100_000)
    pairs = seen(versions, NO_LIMIT)
    before = None if begin is None else Position(b"%03d" % begin, after=False)
    run = ReverseLevelIterator(bench.reader(), before, None)
    first = run.next_chunk()
    assert 1 <= len(first) <= 4
    assert run.next_chunk() + first == pairs[:begin]
    assert run.next_chunk() == []
    assert bench.reads.blocks_read == 1


def test_only_the_first_block_on_the_way_back_is_read_in_parts() -> None:
    versions = {(b"%03d" % number, 1): 1 for number in range(200)}
    bench = Bench(versions, [100], block_size=300)
    blocks = sum(bench.reader().table(at).num_blocks for at in range(2))
    run = ReverseLevelIterator(bench.reader(), None, None)
    assert len(list(iter(run.next_chunk, []))) == blocks + 1


def test_little_more_is_read_than_what_lies_before_a_position() -> None:
    versions = {(b"%03d" % number, 1): 1 for number in range(200)}
    reader = Bench(versions, [], block_size=100_000).reader()
    table = reader.table(0)
    pairs = seen(versions, NO_LIMIT)
    for end in range(200):
        walk = reader.walk(table, 0, None, True, b"", b"", False)
        stop = Position(b"%03d" % end, after=True)
        assert reader.take_before(table, 0, walk, stop) == pairs[: end + 1]
        assert walk.head <= b"%03d" % (end + 8)


def test_a_seek_back_ends_at_a_bound_between_the_end_of_a_block_and_the_rest() -> None:
    versions = {(b"%03d" % number, 1): 1 for number in range(200)}
    bench = Bench(versions, [], block_size=100_000)
    pairs = seen(versions, NO_LIMIT)
    for begin, end in itertools.combinations_with_replacement(range(90, 100), 2):
        low, high = (Position(b"%03d" % edge, after=False) for edge in (begin, end))
        assert bench.backward(high, low) == pairs[begin:end]


def test_nothing_beyond_a_bound_is_read() -> None:
    versions = {(b"%03d" % number, number): 1 for number in range(1, 200)}
    bench = Bench(versions, [100])
    edge = Position(b"004", after=False)
    run = LevelIterator(bench.reader(), None, edge)
    assert len(pairs_of(run)) == 3
    assert run.next_chunk() == []
    back = ReverseLevelIterator(
        bench.reader(), Position(b"199", after=True), Position(b"197", after=False)
    )
    assert len(pairs_of(back)) == 3
    assert back.next_chunk() == []
    assert bench.reads.blocks_read <= 5


@pytest.mark.parametrize("back", [False, True])
def test_a_scan_reads_more_and_more_blocks_at_once(back: bool) -> None:
    versions = {(b"%03d" % number, number): 1 for number in range(1, 500)}
    pairs = seen(versions, NO_LIMIT)
    bench = Bench(versions, [])
    (file,) = bench.version.levels[1]
    table = bench.tables.find(file)
    for low, high in [(1, 499), (1, 120), (200, 499), (77, 333), (250, 251)]:
        bench.options.block_cache.clear()
        before = bench.reads.blocks_read
        calls = bench.env.calls
        lower, upper = Position(b"%03d" % low, False), Position(b"%03d" % high, True)
        found = bench.backward(upper, lower) if back else bench.forward(lower, upper)
        assert found == pairs[low - 1 : high]
        read = bench.reads.blocks_read - before
        first, last = (table.block_of(edge.user_key) for edge in (lower, upper))
        assert last - first + 1 <= read <= last - first + 2  # nothing that the bounds rule out
        if read > 40:
            assert bench.env.calls - calls < read / 3


@pytest.mark.parametrize("back", [False, True])
def test_a_scan_that_ends_early_has_read_half_as_much_again_at_most(back: bool) -> None:
    versions = {(b"%03d" % number, number): 1 for number in range(1, 500)}
    bench = Bench(versions, [])
    table = bench.tables.find(bench.version.levels[1][0])
    middle = Position(b"250", after=False)
    run = (
        ReverseLevelIterator(bench.reader(), middle, None)
        if back
        else LevelIterator(bench.reader(), middle, None)
    )
    begun = table.block_of(b"250")
    while pairs := run.next_chunk():
        met = abs(table.block_of(pairs[0 if back else -1][0]) - begun) + 1
        assert met <= bench.reads.blocks_read <= max(met + 1, met * 3 // 2 + 1)


def test_damage_is_reported_with_file_and_offset() -> None:
    """A key of a kind that there is not, in the second block."""
    versions = {(b"%03d" % number, number): 1 for number in range(1, 20)}
    versions[b"010", 10] = 3
    bench = Bench(versions, [])
    for read in (bench.forward, bench.backward):
        with pytest.raises(CorruptionError, match="kind 3") as caught:
            read(None, None)
        assert caught.value.path == f"{bench.directory.path}/000001.ldb"
        assert caught.value.offset is not None
        assert caught.value.offset > 0


@pytest.mark.parametrize("level", [0, 1])
def test_a_file_beyond_the_bounds_is_not_opened(level: int) -> None:
    versions = {(b"%03d" % number, number): 1 for number in (*range(100, 150), *range(300, 350))}
    bench = Bench(versions, [50] if level == 1 else [], level)
    files = [(100, 149), (300, 349)] if level == 1 else [(100, 349)]
    pairs = seen(versions, NO_LIMIT)
    edges = [0, 99, 100, 149, 150, 299, 300, 349, 350]
    for low, high in itertools.combinations_with_replacement(edges, 2):
        for after in itertools.product((False, True), repeat=2):
            lower, upper = (
                Position(b"%03d" % edge, late)
                for edge, late in zip((low, high), after, strict=True)
            )
            if (low, after[0]) > (high, after[1]):
                continue
            begin, end = (KeyOrder(BYTEWISE).count_before(pairs, edge) for edge in (lower, upper))
            expected = pairs[begin:end]
            run = LevelIterator(bench.reader(), lower, upper)
            back = ReverseLevelIterator(bench.reader(), upper, lower)
            needed = sum(
                lies_before(b"%03d" % first, upper) and not lies_before(b"%03d" % last, lower)
                for first, last in files
            )
            assert run.is_empty == back.is_empty == (needed == 0)
            for one in (run, back):
                bench.tables.clear()
                before = len(bench.env.history)
                assert sorted(pairs_of(one)) == expected
                assert bench.env.history[before:].count("open") == needed


def test_a_level_iterator_alone_hides_deletions_and_begins_with_a_few_pairs() -> None:
    """The form of those that lie over others is ``SEEN``."""
    versions = {(b"%03d" % number, number): number % 2 for number in range(100)}
    bench = Bench(versions, [50], block_size=1000)
    pairs = seen(versions, NO_LIMIT)
    run = LevelIterator(bench.reader(form=SEEN, chunk=1), Position(b"", after=False), None)
    run.be_alone()
    assert run.next_chunk() == pairs[:FIRST_CHUNK]
    assert pairs_of(run) == pairs[FIRST_CHUNK:]
    back = ReverseLevelIterator(bench.reader(form=SEEN, chunk=1), None, None)
    back.be_alone()
    assert sorted(pairs_of(back)) == pairs


@pytest.mark.parametrize("seed", range(40))
def test_a_memtable_both_ways_from_anywhere(seed: int) -> None:
    rng = random.Random(seed)
    order = KeyOrder(BYTEWISE)
    table = MemTable(BYTEWISE, Lock())
    keys = rng.choice([5, 40, 3000])
    history: dict[bytes, list[tuple[int, bytes | None]]] = {}
    readers: list[int] = []
    sequence = 0

    def write(count: int) -> None:
        nonlocal sequence
        operations: list[Operation] = []
        for number in range(sequence + 1, sequence + count + 1):
            key = b"%04d" % rng.randrange(keys)
            value = b"%d" % number if rng.random() < 0.7 else None
            operations.append((key, value))
            history.setdefault(key, []).insert(0, (number, value))
        table.add(sequence + 1, operations, max(readers, default=-1))
        sequence += count

    for _ in range(rng.randrange(1, 6)):
        write(rng.choice([1, 20, keys]))
        if rng.random() < 0.7:
            readers.append(sequence)
    readers.append(sequence)
    as_list = 0
    for _ in range(60):
        reader = rng.choice(readers)
        low, high = (
            Position(b"%04d" % rng.randrange(-1, keys + 1), rng.random() < 0.5) for _ in range(2)
        )
        lower, upper = rng.choice([None, low]), rng.choice([None, high])
        expected = [
            (key, next(value for number, value in history[key] if number <= reader))
            for key in sorted(history)
            if history[key][-1][0] <= reader
            and (lower is None or not lies_before(key, lower))
            and (upper is None or lies_before(key, upper))
        ]
        chunk = rng.choice([1, FIRST_CHUNK])
        run = MemTableIterator(table, order, reader, lower, upper, False, chunk)
        assert pairs_of(run) == expected
        assert run.next_chunk() == []
        back = MemTableIterator(table, order, reader, upper, lower, True, chunk)
        chunks = list(iter(back.next_chunk, []))
        assert [pair for some in reversed(chunks) for pair in some] == expected
        assert back.next_chunk() == []
        as_list += table._list is not None
        if rng.random() < 0.3:
            write(1)  # which the readers do not see
    assert as_list > 0


def test_a_memtable_is_read_by_more_and_more() -> None:
    table = MemTable(BYTEWISE, Lock())
    operations: list[Operation] = [(b"%04d" % number, b"") for number in range(5000)]
    table.add(1, operations, -1)
    for back in (False, True):
        run = MemTableIterator(table, KeyOrder(BYTEWISE), 5000, None, None, back, 1)
        sizes = [len(chunk) for chunk in iter(run.next_chunk, [])]
        assert sizes == [1 << n for n in range(11)] + [1024, 1024, 905]


def test_keys_are_listed_once_that_pays_and_until_one_is_merged() -> None:
    table = MemTable(BYTEWISE, Lock())
    operations: list[Operation] = [(b"%04d" % number, b"") for number in range(3200)]
    table.add(1, operations, -1)
    for asked in range(1, 101):
        assert table._list is None
        found: list[Seen] = []
        assert table.visible(Position(b"2000", after=True), 1, 3200, False, found) == b"2001"
        assert found == [(b"2001", b"")], asked
    assert table._list is not None
    table.add(3201, [(b"20005", b"")], 3200)
    found = []
    assert table.visible(Position(b"2000", after=True), 1, 3201, False, found) == b"20005"
    assert table._list is None


def test_signals_are_handled_in_a_long_stretch_of_invisible_entries() -> None:
    """Compiled, signals and other threads are heeded where interpreted code runs: in the
    ``SortedDict``, which is asked again and again though the keys are listed."""
    table = MemTable(BYTEWISE, Lock())
    operations: list[Operation] = [(b"%06d" % number, b"") for number in range(20_000)]
    table.add(1, operations, -1)
    found: list[Seen] = []
    while table._list is None:
        table.visible(None, 1, 20_000, False, found)
    asked = 0
    irange = table._sorted.irange

    def counted(*arguments: object, **keywords: object) -> object:
        nonlocal asked
        asked += 1
        return irange(*arguments, **keywords)

    table._sorted.irange = counted
    for back in (False, True):
        assert (
            MemTableIterator(table, KeyOrder(BYTEWISE), 0, None, None, back, 1).next_chunk() == []
        )
    assert asked >= 2 * 18
