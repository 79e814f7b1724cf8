"""What a merge leaves, and that it changes no reader's results."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from orders import FOLDING
from states import Case, Drawing, states
from tables import deletion, value
from trees import (
    entries_of,
    is_level,
    is_value,
    level_of,
    newest_first,
    numbers,
    on_each_level,
    order_of,
    seen_at,
    table_text,
)

from lsmkv.engine.counters import NUM_LEVELS, Counters, ReadCounters
from lsmkv.engine.db.compact.compaction import CompactionJob
from lsmkv.engine.db.compact.picking import Compaction, compaction_of_range, pick_compaction
from lsmkv.engine.db.tree.table_cache import TableCache
from lsmkv.engine.db.tree.table_output import write_entries
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.env.base import Directory
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.format.filenames import table_name
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import (
    TAG_SIZE,
    Entry,
    InternalKeyComparator,
    sequence_in,
)
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options
from lsmkv.engine.table.inspection import check
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, Comparator
from lsmkv.engine.util.compression import NO_COMPRESSION
from lsmkv.testing.faulty import FaultyEnv

MIB = 1 << 20
NO_POINTERS: list[bytes | None] = [None] * NUM_LEVELS
ALL_ARE_OLDER = 1 << 50
"""As the oldest pinned sequence: all writes are older."""


class Bench:
    """Real tables in memory."""

    def __init__(
        self,
        comparator: Comparator = BYTEWISE,
        max_file_size: int = 2 * MIB,
        block_size: int = 4096,
    ) -> None:
        self.env = FaultyEnv()
        self.directory: Directory = self.env.open_directory("db", create=True)
        self.comparator = InternalKeyComparator(comparator)
        self.order = KeyOrder(comparator)
        self.options = Options(
            comparator=comparator,
            filter_policy=BloomFilterPolicy(10),
            max_file_size=max_file_size,
            block_size=block_size,
            compression=NO_COMPRESSION,
        )
        self.tables = TableCache(self.directory, self.options, Counters())
        self.levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
        self.next_number = 100

    def new_number(self) -> int:
        self.next_number += 1
        return self.next_number

    def add(self, level: int, *entries: Entry) -> FileMetaData:
        """A table of these entries, which come in any order."""
        ordered = newest_first(entries, self.order)
        columns = [key for key, _ in ordered], [tagged for _, tagged in ordered]
        made = write_entries([columns], self.directory, self.new_number(), self.options)
        self.levels[level].append(made)
        return made

    def version(self) -> Version:
        made = Version(self.comparator, [list(files) for files in self.levels])
        made.check()
        return made

    def job(self, compaction: Compaction, oldest_pinned: int) -> CompactionJob:
        return CompactionJob(
            compaction, self.directory, self.tables, self.options, self.new_number, oldest_pinned
        )

    def compact(self, level: int, oldest_pinned: int) -> list[list[Entry]]:
        """Merge a level into the next; the entries of the output tables."""
        of = self.version()
        found = compaction_of_range(of, level, None, None, self.options)
        assert found is not None
        outputs = self.job(found[0], oldest_pinned).run(lambda: None)
        after = of.apply(found[0].edit(outputs))
        after.check()
        self.levels = after.levels
        return [self.entries(each) for each in outputs]

    def entries(self, of: FileMetaData) -> list[Entry]:
        check(self.tables.find(of))
        chunks = self.tables.entries(of, ReadCounters(), 1000, 1000)
        found = [entry for chunk in chunks for entry in chunk]
        assert of.smallest == found[0][0] + found[0][1][:TAG_SIZE]
        assert of.largest == found[-1][0] + found[-1][1][:TAG_SIZE]
        return found

    def tables_left(self) -> set[str]:
        return set(self.directory.names())


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the tables whose entries are drawn by level."""
    match words:
        case ["on", *_]:
            return on_each_level(drawing, words, answer)
        case ["compact", level, *rest]:
            limit = dict(drawing).get("max_file_size")
            bench = Bench(order_of(drawing), *([int(limit), 1] if limit else []))
            for label, text in drawing:
                for entries in entries_of(text) if is_level(label) else []:
                    bench.add(level_of(label), *entries)
            pinned = int(rest[1]) if rest[:1] == ["pinned"] else ALL_ARE_OLDER
            outputs = [bench.compact(level_of(level), pinned)]
            first = level_of(level) + 1
            if rest[-2:] == ["and", "draw"]:
                first, outputs = 0, [[bench.entries(one) for one in some] for some in bench.levels]
            lines = [
                f"L{at}: {' '.join(map(table_text, tables))}"
                for at, tables in enumerate(outputs, first)
                if tables
            ]
            return "\n".join(lines) or "none"
    raise NotImplementedError


@states("compaction.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="L[0-6*]|order|max_file_size")


# Running: durability and failures


def prepared() -> tuple[Bench, Compaction]:
    """A compaction of a few blocks into a few tables."""
    bench = Bench(max_file_size=3000, block_size=300)
    rows = [value(b"%04d" % number, 5, bytes(50)) for number in range(200)]
    bench.add(0, *rows[::2])
    bench.add(1, *rows[1::2])
    found = compaction_of_range(bench.version(), 0, None, None, bench.options)
    assert found is not None
    return bench, found[0]


def test_outputs_are_durable_when_run_returns() -> None:
    bench, compaction = prepared()
    outputs = bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
    assert len(outputs) > 3
    assert bench.env.history[-1] == "dir_sync"
    with bench.env.power_cut().open_directory("db") as survived:
        for each in outputs:
            assert survived.size(table_name(each.number)) == each.size


def test_file_numbers_are_taken_when_an_output_begins() -> None:
    bench, compaction = prepared()
    before = bench.next_number
    outputs = bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
    assert numbers(outputs) == list(range(before + 1, bench.next_number + 1))


def test_reads_are_counted_and_go_past_the_block_cache() -> None:
    bench, compaction = prepared()
    job = bench.job(compaction, ALL_ARE_OLDER)
    job.run(lambda: None)
    blocks = sum(
        bench.tables.find(each).num_blocks for each in compaction.inputs + compaction.next_inputs
    )
    assert job.reads.blocks_read == blocks
    assert job.reads.block_cache_hits == 0


def test_between_is_called_often_and_may_end_the_job() -> None:
    bench = Bench(max_file_size=60_000)
    rows = [value(b"%04d" % number, 5, bytes(150)) for number in range(3000)]
    bench.add(0, *rows[::2])
    bench.add(1, *rows[1::2])
    found = compaction_of_range(bench.version(), 0, None, None, bench.options)
    assert found is not None
    compaction = found[0]
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    before = bench.tables_left()
    for each in bench.job(compaction, ALL_ARE_OLDER).run(count):
        bench.directory.remove(table_name(each.number))
    assert calls > 10
    for stop_at in range(1, calls + 1):
        calls = 0

        def stop(stop_at: int = stop_at) -> None:
            nonlocal calls
            calls += 1
            if calls == stop_at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            bench.job(compaction, ALL_ARE_OLDER).run(stop)
        assert bench.tables_left() == before
    assert len(bench.job(compaction, ALL_ARE_OLDER).run(count)) > 3


@pytest.mark.parametrize("short", [False, True])
def test_a_failed_job_leaves_no_output(short: bool) -> None:
    n = 0
    failed = True
    while failed:
        n += 1
        bench, compaction = prepared()
        before = bench.tables_left()
        bench.env.fail_at(n, OSError(errno.ENOSPC, "no room"), short=short)
        try:
            outputs = bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
        except OSError as error:
            code = error.errno
            assert code == errno.ENOSPC
            assert bench.tables_left() == before
            outputs = bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
        failed = bench.env.failures > 0
        bench.env.heal()
        assert sum(len(bench.entries(each)) for each in outputs) == 200
    assert n > 20


def test_a_damaged_input_ends_the_job() -> None:
    bench, compaction = prepared()
    name = table_name(compaction.inputs[0].number)
    data = bytearray(bench.directory.read_file(name, MIB))
    data[len(data) // 3] ^= 1
    bench.directory.remove(name)
    with bench.directory.create(name) as out:
        out.append(bytes(data))
    before = bench.tables_left()
    with pytest.raises(Exception, match="checksum") as caught:
        bench.job(compaction, ALL_ARE_OLDER).run(lambda: None)
    assert name in str(caught.value)
    assert bench.tables_left() == before


# Running: nobody sees a difference


def all_entries(bench: Bench) -> list[Entry]:
    found = [entry for files in bench.levels for each in files for entry in bench.entries(each)]
    return newest_first(found, bench.order)


def found_first(bench: Bench, of: Version, key: bytes, sequence: int) -> bytes | None:
    """The result of a lookup, which stops at the first file with a version at or before."""
    compare = bench.order.compare
    order = bench.order.of(key)
    place = of.next_candidate(0, order, sequence)
    while place > 0:
        for entry in bench.entries(of.file_in(place)):
            if compare(entry[0], key) == 0 and sequence_in(entry[1]) <= sequence:
                return entry[1][TAG_SIZE:] if is_value(entry) else None
        place = of.next_candidate(place, order, sequence)
    return None


def spread(data: st.DataObject, bench: Bench, history: Sequence[Entry]) -> None:
    """Put a history into levels: the older, the deeper; files cut anywhere."""
    levels = sorted(data.draw(st.sets(st.integers(1, 4), min_size=1, max_size=3)), reverse=True)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(history)), min_size=5, max_size=5)))
    parts = [history[begin:end] for begin, end in zip([0, *cuts], [*cuts, None], strict=True)]
    for level in levels:
        ordered = newest_first(parts.pop(0), bench.order)
        at = 0
        while at < len(ordered):
            step = data.draw(st.integers(1, 5))
            bench.add(level, *ordered[at : at + step])
            at += step
    for part in parts:
        if part:
            bench.add(0, *part)


@pytest.mark.parametrize("comparator", [BYTEWISE, REVERSE_BYTEWISE, FOLDING], ids=lambda c: c.name)
@given(data=st.data())
def test_a_compaction_changes_nothing_that_a_reader_sees(
    comparator: Comparator, data: st.DataObject
) -> None:
    keys = st.text(alphabet="aAbBc", min_size=1, max_size=2).map(str.encode)
    written = data.draw(st.lists(st.tuples(keys, st.booleans()), min_size=1, max_size=25))
    history = [
        value(key, at + 1, b"%d" % at) if is_put else deletion(key, at + 1)
        for at, (key, is_put) in enumerate(written)
    ]
    max_file_size = data.draw(st.sampled_from([1, 300, MIB]))
    bench = Bench(comparator, max_file_size, block_size=64)
    spread(data, bench, history)
    oldest = data.draw(st.integers(0, len(history)))
    for _ in range(data.draw(st.integers(1, 3))):
        of = bench.version()
        level = data.draw(st.sampled_from([at for at in range(6) if of.levels[at]] or [0]))
        assume(of.levels[level])
        compaction: Compaction | None
        if data.draw(st.booleans()):
            begin, end = data.draw(st.none() | keys), data.draw(st.none() | keys)
            found = compaction_of_range(of, level, begin, end, bench.options)
            if found is None:
                continue
            compaction = found[0]
        else:
            of.file_to_compact = (level, data.draw(st.sampled_from(of.levels[level])))
            compaction = pick_compaction(of, NO_POINTERS, bench.options)
            assert compaction is not None
        outputs = bench.job(compaction, oldest).run(lambda: None)
        after = of.apply(compaction.edit(outputs))
        after.check()
        for each, follower in pairwise(outputs):
            assert bench.order.compare(each.largest[:-8], follower.smallest[:-8]) < 0
        bench.levels = after.levels
        kept = all_entries(bench)
        expected = newest_first(history, bench.order)
        for sequence in range(oldest, len(history) + 1):
            pairs = seen_at(expected, sequence, bench.order)
            assert seen_at(kept, sequence, bench.order) == pairs
            for key in {key for key, _ in history}:
                seen = [data for name, data in pairs if bench.order.is_same(name, key)]
                assert found_first(bench, after, key, sequence) == (seen[0] if seen else None)
