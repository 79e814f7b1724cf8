"""What the demo counts in a store."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from demos import LINES

import lsmkv
from lsmkv.engine.filter.bloom import BloomFilterPolicy, rate_from_fill
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.known import rate_of
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.tools.demo.measure import LAYOUTS, RecordingPolicy, compact, load, measure
from lsmkv.tools.sample_keys import lines_as_keys


def ignore(_: int) -> None:
    pass


def test_the_recording_policy_counts_every_filter_asked(tmp_path: Path) -> None:
    data = lines_as_keys(LINES, "file")
    load(str(tmp_path / "db"), "block", data.records, ignore)
    policy = RecordingPolicy(BloomFilterPolicy(10))
    with lsmkv.DB(tmp_path / "db", filter_policy=policy) as db:
        assert all(db.get(key) is not None for key in data.expected)
        assert policy.asked == db.stats().filters_asked == len(data.expected)


@pytest.mark.parametrize("plain", [BloomFilterPolicy(10), Bloom64Policy(10), BinaryFusePolicy()])
def test_the_recording_policy_answers_as_the_policy_does(plain: FilterPolicy) -> None:
    keys = [b"%d" % n for n in range(1500)]
    policy = RecordingPolicy(plain)
    assert policy.name == plain.name
    summary = policy.create_filter(keys)
    assert summary == plain.create_filter(keys)
    for key in (b"7", b"absent", b"other"):
        assert policy.key_may_match(key, summary) == plain.key_may_match(key, summary)
    assert policy.rates == pytest.approx(3 * expected_rate_of(plain, summary))


def test_the_rate_of_a_filter() -> None:
    bloom = BloomFilterPolicy(10).create_filter([b"a", b"b"])
    assert expected_rate_of(BloomFilterPolicy(10), bloom) == rate_from_fill(bloom) > 0
    keys = [b"%d" % n for n in range(1500)]
    fuse = BinaryFusePolicy()
    assert expected_rate_of(fuse, fuse.create_filter(keys)) == 1 / 256
    small = fuse.create_filter(keys[:900])
    assert expected_rate_of(fuse, small) == pytest.approx(0.0082, rel=0.2)


def expected_rate_of(policy: FilterPolicy, data: bytes) -> float:
    rate = rate_of(policy.name, data)
    assert rate is not None
    return rate


def test_the_filters_of_a_store_are_counted_as_they_are_stored(tmp_path: Path) -> None:
    data = lines_as_keys(LINES, "file")
    sizes = {}
    for layout in LAYOUTS:
        path = str(tmp_path / layout)
        load(path, layout, data.records, ignore)
        found = measure(path, layout, data.records[:1], [b"no"], ignore, compacted=False)
        sizes[layout] = found.filter_bytes
    keys = list(data.expected)
    assert sizes["off"] == 0
    assert sizes["table"] == len(BloomFilterPolicy(10).create_filter(keys))
    assert sizes["table64"] == len(Bloom64Policy(10).create_filter(keys))
    assert sizes["fuse"] == len(BinaryFusePolicy().create_filter(keys))
    assert sizes["both"] == sizes["table"] + sizes["block"]
    assert sizes["block64"] == pytest.approx(sizes["block"], rel=0.05)


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_leveldb_reads_each_store(tmp_path: Path, layout: str) -> None:
    plyvel = pytest.importorskip("plyvel")
    data = lines_as_keys(LINES, "file")
    load(str(tmp_path / "db"), layout, data.records, ignore)
    with contextlib.closing(plyvel.DB(str(tmp_path / "db"), bloom_filter_bits=10)) as db:
        assert dict(db) == data.expected
        assert all(db.get(key) == value for key, value in data.expected.items())
        assert db.get(b"absent") is None


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_wrong_answers_are_found(tmp_path: Path, layout: str) -> None:
    load(str(tmp_path / "db"), layout, [(b"a", b"1"), (b"b", b"2")], ignore)
    asked = [(b"a", b"1"), (b"b", b"other"), (b"c", b"3")]
    found = measure(str(tmp_path / "db"), layout, asked, [b"b", b"d"], ignore, compacted=False)
    assert (found.present.gets, found.present.wrong) == (3, 2)
    assert (found.absent.gets, found.absent.wrong) == (2, 1)


def test_compact_leaves_one_table_that_covers_a_key(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    load(path, "off", [(b"a", b"1"), (b"c", b"2")], ignore)
    with lsmkv.DB(path) as db:
        db.put(b"b", b"3")
        db.flush()
    asked = [(b"a", b"1"), (b"b", b"3")]
    before = measure(path, "off", asked, [b"bb"], ignore, compacted=False)
    assert before.overlapping == 2
    compact(path, "off")
    after = measure(path, "off", asked, [b"bb"], ignore, compacted=True)
    assert after.overlapping == 1
    assert (after.present.wrong, after.absent.wrong) == (0, 0)
    assert after.absent.blocks_read == 1
