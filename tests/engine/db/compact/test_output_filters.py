"""lsmkv.engine.db.compact.output_filters: which filters the tables of each level get."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lsmkv import DB, Bloom64Policy, BloomFilterPolicy
from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.compact.output_filters import options_for_compaction, options_for_flush
from lsmkv.engine.db.compact.picking import compaction_of_range
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.filter.known import policy_text
from lsmkv.engine.filter.levels import spread
from lsmkv.engine.format.keys import InternalKeyComparator, pack
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import BackgroundWork, Options, make_options
from lsmkv.engine.table.filter_block import FilterBlockReader
from lsmkv.engine.util.comparator import BYTEWISE


def version(*sizes: list[int]) -> Version:
    """A version whose levels have files of these sizes: those of level 0 all overlap."""
    levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
    number = 1
    for level, files in enumerate(sizes):
        for at, size in enumerate(files):
            first, last = (b"00", b"99") if level == 0 else (b"%02d" % at, b"%02d~" % at)
            key = pack(first, 9, 1), pack(last, 8, 1)
            levels[level].append(FileMetaData(number, size, *key))
            number += 1
    return Version(InternalKeyComparator(BYTEWISE), levels)


def outputs(options: Options, of: Version, level: int) -> str:
    """The text of the policy that the outputs of a compaction of a whole level get."""
    made = compaction_of_range(of, level, None, None, options)
    assert made is not None
    return policy_text(options_for_compaction(options, made[0]).filter_policy)


def test_one_number_is_for_all() -> None:
    options = make_options(bloom_filter_bits=12)
    assert options_for_flush(options, version([10], [100]), 10) is options
    assert outputs(options, version([10], [100]), 0) == "bloom:12"


def test_numbers_by_level() -> None:
    options = make_options(bloom_filter_bits=[16, 12.5, 0])
    of = version([10], [100], [1000], [10_000])
    assert policy_text(options_for_flush(options, of, 10).filter_policy) == "bloom:16.0"
    assert [outputs(options, of, level) for level in range(3)] == ["bloom:12.5", "none", "none"]


def test_automatic_bits_count_what_will_be_there() -> None:
    """A flush adds a run; a compaction moves its inputs into the level of its outputs."""
    options = make_options(bloom_filter_bits="auto:10")
    of = version([10, 10], [100], [1000])
    flushed = options_for_flush(options, of, 10).filter_policy
    assert isinstance(flushed, BloomFilterPolicy)
    assert flushed.bits_per_key == spread(10, [10, 10, 10, 100, 1000])[0]
    assert outputs(options, of, 0) == f"bloom:{spread(10, [120, 1000])[0]!r}"
    assert outputs(options, of, 1) == f"bloom:{spread(10, [10, 10, 0, 1100])[3]!r}"


def test_automatic_bits_for_the_64_bit_hash() -> None:
    options = make_options(filter_policy=Bloom64Policy(), bloom_filter_bits="auto:10")
    of = version([10], [100], [1000])
    assert outputs(options, of, 1) == f"bloom64:{spread(10, [10, 0, 1100])[2]!r}"


def test_no_filters_on_the_last_level() -> None:
    options = make_options(filter_last_level=False, prefix_extractor=2)
    of = version([10], [100], [1000])
    assert outputs(options, of, 0) == "bloom:10"
    assert outputs(options, of, 1) == "none"
    assert policy_text(options_for_flush(options, of, 10).filter_policy) == "bloom:10"


@pytest.mark.parametrize("background", ["thread", "process"])
def test_a_store_spreads_its_bits(tmp_path: Path, background: BackgroundWork) -> None:
    """The bits of its filters differ by level, for every kind of writer, and nothing is lost."""
    source = random.Random(4)
    keys = [source.randbytes(8) for _ in range(5_000)]
    with DB(
        tmp_path,
        create_if_missing=True,
        background=background,
        bloom_filter_bits="auto:10",
    ) as db:
        for key in keys[200:]:
            db.put(key, b"v" * 20)
        db.compact_range()
        for key in keys[:200]:
            db.put(key, b"v" * 20)
        db.flush()
        db.check()
        assert all(db.get(key) is not None for key in keys)
        store = db._opened.store  # the tables, level by level
        probes = {
            reader.contents[reader.place_for(0)[1] - 1]
            for files in store.versions.current.levels
            for file in files
            for reader in store.tables.find(file).filters.readers
            if isinstance(reader, FilterBlockReader)
        }
        assert probes == {BloomFilterPolicy(10).probes, BloomFilterPolicy(16).probes}


@pytest.mark.parametrize("background", ["thread", "process"])
def test_a_compaction_into_the_last_level_writes_no_filters(
    tmp_path: Path, background: BackgroundWork
) -> None:
    with DB(tmp_path, create_if_missing=True, background=background, filter_last_level=False) as db:
        for value in (b"old", b"new"):  # two tables, of which the newer one is higher up
            for n in range(1000):
                db.put(b"%04d" % n, value)
            db.flush()
        assert db.explain(b"0500").tables[0].filters
        db.compact_range()
        assert not db.explain(b"0500").tables[0].filters
