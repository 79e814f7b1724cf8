"""lsmkv.engine.db.read.level_iterator: a level read both ways, wherever a key is, against a
model.
"""

from __future__ import annotations

import itertools
import random
from functools import cmp_to_key
from typing import Any

import pytest
from orders import FOLDING, lies_before
from runs import pairs_of, single_entries

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.read.internal_iterator import Seen
from lsmkv.engine.db.read.level_iterator import FIRST_CHUNK, LevelIterator, ReverseLevelIterator
from lsmkv.engine.db.read.level_reader import CacheShare, LevelReader
from lsmkv.engine.db.tree.info_log import InfoLog
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.db.tree.table_output import write_entries
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.db.tree.version_set import VersionSet
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.format.keys import MAX_SEQUENCE, InternalKeyComparator, pack
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options
from lsmkv.engine.table.block_iterator import PAIRS, WITH_DELETIONS, WITH_SEQUENCES
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, CallableComparator, Comparator
from lsmkv.engine.util.compression import NO_COMPRESSION
from lsmkv.errors import CorruptionError
from lsmkv.testing.faulty import FaultyEnv


def longest_first(a: bytes, b: bytes) -> int:
    """The empty key comes last."""
    left, right = (-len(a), a), (-len(b), b)
    return (left > right) - (left < right)


LONGEST_FIRST = CallableComparator(longest_first, "test.LongestFirst")
every_comparator = pytest.mark.parametrize(
    "comparator",
    [BYTEWISE, REVERSE_BYTEWISE, FOLDING, LONGEST_FIRST],
    ids=lambda each: each.name,
)

Versions = dict[tuple[bytes, int], int]
"""Kinds by user key and sequence."""
NEWEST_WRITE = 1000
"""The store's last sequence, beyond those of all versions: a read at it has no bound."""


class Bench:
    """A store with one level, whose tables have blocks of a few entries."""

    def __init__(
        self,
        versions: Versions,
        cuts: list[int],
        level: int = 1,
        block_size: int = 60,
        comparator: Comparator = BYTEWISE,
    ) -> None:
        """Entries in order, a new table at each of the ``cuts``."""
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
        self.level = level
        by_key = cmp_to_key(comparator.compare)
        ordered = sorted(versions, key=lambda version: (by_key(version[0]), -version[1]))
        files: list[FileMetaData] = []
        bounds = [0, *sorted(set(cuts) - {0, len(ordered)}), len(ordered)]
        for number, (begin, end) in enumerate(itertools.pairwise(bounds), 1):
            some = ordered[begin:end]
            user_keys = [key for key, _ in some]
            tagged = [
                pack(b"", sequence, versions[key, sequence]) + b"%d" % sequence
                for key, sequence in some
            ]
            files.append(write_entries([(user_keys, tagged)], self.directory, number, options))
        levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
        levels[level] = files
        self.files = files
        internal = InternalKeyComparator(comparator)
        versions_of_store = VersionSet(self.directory, options, internal)
        versions_of_store.current = Version(internal, levels)
        versions_of_store.last_sequence = NEWEST_WRITE
        lock = StoreLock()
        self.store = Store(
            self.directory,
            options,
            internal,
            versions_of_store,
            MemTable(comparator, lock),
            InfoLog(self.directory, to_file=False),
            lock,
        )
        self.order = self.store.order
        self.tables = self.store.tables
        self.reads = self.store.counters.levels[level]
        for file in files:
            self.tables.find(file, fill_cache=False)  # opened, and no block is in the cache

    def table(self, at: int = 0) -> Table:
        return self.tables.find(self.files[at])

    def reader(
        self,
        sequence: int = MAX_SEQUENCE,
        form: int = PAIRS,
        chunk: int = FIRST_CHUNK,
        share: CacheShare | None = None,
    ) -> LevelReader:
        return LevelReader(
            self.store,
            self.store.read_view(sequence),
            self.level,
            self.files,
            form,
            chunk,
            share or CacheShare(1 << 40),
        )

    def forward(
        self,
        start: Position | None,
        upper: Position | None,
        sequence: int = MAX_SEQUENCE,
        form: int = PAIRS,
    ) -> list[Any]:
        run = LevelIterator(self.reader(sequence, form), start, upper)
        found = pairs_of(run)
        assert run.next_chunk() == []
        return found

    def backward(
        self,
        before: Position | None,
        lower: Position | None,
        sequence: int = MAX_SEQUENCE,
        form: int = PAIRS,
    ) -> list[Any]:
        run = ReverseLevelIterator(self.reader(sequence, form), before, lower)
        chunks = list(iter(run.next_chunk, []))
        assert run.next_chunk() == []
        return [pair for chunk in reversed(chunks) for pair in single_entries(chunk)]


def numbered(
    versions: Versions, sequence: int, comparator: Comparator = BYTEWISE
) -> list[tuple[bytes, bytes | None, int]]:
    """The model: for each key the newest version that is old enough, deletions included."""
    found: list[tuple[bytes, int]] = []
    by_key = cmp_to_key(comparator.compare)
    for key, number in sorted(versions, key=lambda version: (by_key(version[0]), -version[1])):
        is_known = bool(found) and comparator.compare(found[-1][0], key) == 0
        if number <= sequence and not is_known:
            found.append((key, number))
    return [
        (key, b"%d" % number if versions[key, number] else None, number) for key, number in found
    ]


def seen(
    versions: Versions, sequence: int = MAX_SEQUENCE, comparator: Comparator = BYTEWISE
) -> list[Seen]:
    """The model without deletions."""
    return [
        (key, value)
        for key, value, _ in numbered(versions, sequence, comparator)
        if value is not None
    ]


def block_of(table: Table, user_key: bytes) -> int:
    """Number of the block that may hold a key of the bytewise order."""
    return table.index.block_for(user_key, MAX_SEQUENCE)


def random_key(rng: random.Random, keys: int, comparator: Comparator) -> bytes:
    key = b"k%03d" % rng.randrange(-1, keys)
    return key.upper() if comparator is FOLDING and rng.random() < 0.5 else key


def random_versions(
    rng: random.Random, keys: int, most: int, comparator: Comparator = BYTEWISE
) -> Versions:
    """No two of keys that compare equal have one sequence."""
    versions: dict[tuple[bytes, int], tuple[bytes, int]] = {}
    for _ in range(rng.randrange(most)):
        key, sequence = random_key(rng, keys, comparator), rng.randrange(1, 30)
        name = key.lower() if comparator is FOLDING else key
        versions[name, sequence] = (key, int(rng.random() < 0.7))
    return {(key, sequence): kind for (_, sequence), (key, kind) in versions.items()}


@every_comparator
@pytest.mark.parametrize("seed", range(60))
def test_both_ways_from_anywhere(comparator: Comparator, seed: int) -> None:
    rng = random.Random(seed)
    # With few keys, the versions of one are spread over several blocks and tables.
    versions = random_versions(rng, rng.choice([2, 8, 40]), 150, comparator)
    cuts = [rng.randrange(len(versions) + 1) for _ in range(rng.randrange(5))]
    block_size = rng.choice([60, 300, 5000])
    bench = Bench(versions, cuts, block_size=block_size, comparator=comparator)
    for sequence in (MAX_SEQUENCE, rng.randrange(31)):
        pairs = seen(versions, sequence, comparator)
        assert bench.forward(None, None, sequence) == pairs
        assert bench.backward(None, None, sequence) == pairs
        for _ in range(20):
            low, high = (
                Position(random_key(rng, 41, comparator), rng.random() < 0.5) for _ in range(2)
            )
            above = [pair for pair in pairs if not lies_before(pair[0], low, comparator)]
            between = [pair for pair in above if lies_before(pair[0], high, comparator)]
            below = [pair for pair in pairs if lies_before(pair[0], high, comparator)]
            assert bench.forward(low, None, sequence) == above
            assert bench.forward(None, high, sequence) == below
            assert bench.forward(low, high, sequence) == between
            assert bench.backward(None, low, sequence) == above
            assert bench.backward(high, None, sequence) == below
            assert bench.backward(high, low, sequence) == between


@every_comparator
@pytest.mark.parametrize("seed", range(10))
def test_deletions_and_sequences_where_they_are_asked_for(
    comparator: Comparator, seed: int
) -> None:
    rng = random.Random(seed)
    versions = random_versions(rng, rng.choice([2, 8, 40]), 150, comparator)
    cuts = [rng.randrange(len(versions) + 1) for _ in range(rng.randrange(5))]
    bench = Bench(versions, cuts, block_size=rng.choice([60, 300]), comparator=comparator)
    for sequence in (MAX_SEQUENCE, rng.randrange(31)):
        everything = numbered(versions, sequence, comparator)
        for read in (bench.forward, bench.backward):
            assert read(None, None, sequence, WITH_SEQUENCES) == everything
            assert read(None, None, sequence, WITH_DELETIONS) == [each[:2] for each in everything]
        for _ in range(20):
            edge = Position(random_key(rng, 41, comparator), rng.random() < 0.5)
            above = [each for each in everything if not lies_before(each[0], edge, comparator)]
            below = [each for each in everything if lies_before(each[0], edge, comparator)]
            for form, size in ((WITH_SEQUENCES, 3), (WITH_DELETIONS, 2)):
                assert bench.forward(edge, None, sequence, form) == [e[:size] for e in above]
                assert bench.forward(None, edge, sequence, form) == [e[:size] for e in below]
                assert bench.backward(None, edge, sequence, form) == [e[:size] for e in above]
                assert bench.backward(edge, None, sequence, form) == [e[:size] for e in below]


@every_comparator
@pytest.mark.parametrize("sequence", [MAX_SEQUENCE, 150, 100, 50, 1, 0])
@pytest.mark.parametrize("deleted", [False, True])
def test_one_key_over_many_blocks_and_files(
    comparator: Comparator, sequence: int, deleted: bool
) -> None:
    """Some blocks and files hold nothing that is seen, and others nothing but what is hidden."""
    key, other = b"kkk", b"KKK" if comparator is FOLDING else b"kkk"
    low, high = b"kkj", b"kkl"
    versions = {(key if number % 3 else other, number): 1 for number in range(2, 200)}
    if deleted:
        versions |= {(key if number % 3 else other, number): 0 for number in (199, 150, 100, 50)}
    versions |= {(low, 1): 1, (high, 1): 1}
    bench = Bench(versions, [20, 60, 61, 150], comparator=comparator)
    assert bench.table(3).num_blocks > 10
    pairs = seen(versions, sequence, comparator)
    assert len(pairs) == (0 if sequence == 0 else 2 if sequence == 1 or deleted else 3)
    edges = [Position(edge, after) for edge in (low, key, other, high) for after in (False, True)]
    assert bench.forward(None, None, sequence) == bench.backward(None, None, sequence) == pairs
    for edge in edges:
        above = [pair for pair in pairs if not lies_before(pair[0], edge, comparator)]
        below = [pair for pair in pairs if lies_before(pair[0], edge, comparator)]
        assert bench.forward(edge, None, sequence) == above
        assert bench.forward(None, edge, sequence) == below
        assert bench.backward(None, edge, sequence) == above
        assert bench.backward(edge, None, sequence) == below


@every_comparator
@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("block_size", [60, 5000])
def test_the_empty_key_is_a_place_as_any_other(
    comparator: Comparator, level: int, block_size: int
) -> None:
    """In some orders it comes after other keys."""
    keys = [b"", *(b"%02d" % number for number in range(50))]
    versions = {(key, 1 + at): 1 for at, key in enumerate(keys)}
    for held in (versions, {version: kind for version, kind in versions.items() if version[0]}):
        bench = Bench(held, [], level, block_size, comparator)
        pairs = seen(held, MAX_SEQUENCE, comparator)
        for after in (False, True):
            edge = Position(b"", after)
            above = [pair for pair in pairs if not lies_before(pair[0], edge, comparator)]
            below = [pair for pair in pairs if lies_before(pair[0], edge, comparator)]
            assert bench.backward(None, edge) == above
            assert bench.backward(edge, None) == below
            assert bench.forward(None, edge) == below
            assert bench.forward(edge, None) == above


def test_one_table_of_level_0() -> None:
    versions = {(b"%03d" % number, number): 1 for number in range(1, 50)}
    bench = Bench(versions, [], level=0)
    pairs = seen(versions)
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
    pairs = seen(versions)
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
    pairs = seen(versions)
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
    blocks = sum(bench.table(at).num_blocks for at in range(2))
    run = ReverseLevelIterator(bench.reader(), None, None)
    assert len(list(iter(run.next_chunk, []))) == blocks + 1


def test_little_more_is_read_than_what_lies_before_a_position() -> None:
    versions = {(b"%03d" % number, 1): 1 for number in range(200)}
    reader = Bench(versions, [], block_size=100_000).reader()
    table = reader.table(0)
    pairs = seen(versions)
    for end in range(200):
        block = reader.block_iterator(table, 0, None, back=True)
        stop = Position(b"%03d" % end, after=True)
        assert reader.pairs_before(table, 0, block, stop) == pairs[: end + 1]
        assert block.user_key <= b"%03d" % (end + 8)


def test_a_seek_back_ends_at_a_bound_between_the_end_of_a_block_and_the_rest() -> None:
    versions = {(b"%03d" % number, 1): 1 for number in range(200)}
    bench = Bench(versions, [], block_size=100_000)
    pairs = seen(versions)
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
    pairs = seen(versions)
    bench = Bench(versions, [])
    table = bench.table()
    for low, high in [(1, 499), (1, 120), (200, 499), (77, 333), (250, 251)]:
        bench.options.block_cache.clear()
        before = bench.reads.blocks_read
        calls = bench.env.calls
        lower, upper = Position(b"%03d" % low, False), Position(b"%03d" % high, True)
        found = bench.backward(upper, lower) if back else bench.forward(lower, upper)
        assert found == pairs[low - 1 : high]
        read = bench.reads.blocks_read - before
        first, last = (block_of(table, edge.user_key) for edge in (lower, upper))
        assert last - first + 1 <= read <= last - first + 2  # nothing that the bounds rule out
        if read > 40:
            assert bench.env.calls - calls < read / 3


@pytest.mark.parametrize("back", [False, True])
def test_a_scan_that_ends_early_has_read_half_as_much_again_at_most(back: bool) -> None:
    versions = {(b"%03d" % number, number): 1 for number in range(1, 500)}
    bench = Bench(versions, [])
    table = bench.table()
    middle = Position(b"250", after=False)
    run = (
        ReverseLevelIterator(bench.reader(), middle, None)
        if back
        else LevelIterator(bench.reader(), middle, None)
    )
    begun = block_of(table, b"250")
    while pairs := run.next_chunk():
        met = abs(block_of(table, pairs[0 if back else -1][0]) - begun) + 1
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
    pairs = seen(versions)
    edges = [0, 99, 100, 149, 150, 299, 300, 349, 350]
    for low, high in itertools.combinations_with_replacement(edges, 2):
        for after in itertools.product((False, True), repeat=2):
            lower, upper = (
                Position(b"%03d" % edge, late)
                for edge, late in zip((low, high), after, strict=True)
            )
            if (low, after[0]) > (high, after[1]):
                continue
            begin, end = (bench.order.count_before(pairs, edge) for edge in (lower, upper))
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


def test_a_level_alone_returns_no_deletions_and_begins_with_a_few_pairs() -> None:
    """Merged with other sources, it returns them."""
    versions = {(b"%03d" % number, number): number % 2 for number in range(100)}
    bench = Bench(versions, [50], block_size=1000)
    pairs = seen(versions)
    level = LevelIterator(
        bench.reader(form=WITH_DELETIONS, chunk=1), Position(b"", after=False), None
    )
    level.read_pairs()
    assert level.next_chunk() == pairs[:FIRST_CHUNK]
    assert pairs_of(level) == pairs[FIRST_CHUNK:]
    back = ReverseLevelIterator(bench.reader(form=WITH_DELETIONS, chunk=1), None, None)
    back.read_pairs()
    assert sorted(pairs_of(back)) == pairs
