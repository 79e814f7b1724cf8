"""``db.explain`` reports what the Get does, and changes nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import DenyingAll, FirstByte

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.table.format import BLOCK_TRAILER_SIZE
from lsmkv.testing.faulty import FaultyEnv

TINY: dict[str, Any] = {
    "write_buffer_size": 1024,
    "max_file_size": 1024,
    "block_size": 256,
    "seek_compaction": False,
}


def fill(db: DB, first: int = 0, last: int = 200) -> None:
    for n in range(first, last):
        db.put(b"key%04d" % n, b"value %d " % n * 4)


def assert_explained_right(db: DB, key: bytes) -> lsmkv.Explanation:
    """The explanation, checked against the counters of the next Get."""
    start = db.stats()
    explanation = db.explain(key)
    before = db.stats()
    assert before == start, "explaining left a trace"
    value = db.get(key)
    did = db.stats() - before
    asked = [table for table in explanation.tables if table.asked]
    filters = [step for table in asked for step in table.filters]
    assert explanation.found is (value is not None)
    if value is not None:
        assert explanation.chosen is not None
        assert explanation.chosen.value_size == len(value)
    assert did.blocks_read == explanation.blocks_read
    assert did.bytes_read == explanation.bytes_read
    assert did.blocks_read + did.block_cache_hits == explanation.blocks_searched
    assert did.filters_asked == len(filters)
    assert did.filter_negatives == sum(not step.may_match for step in filters)
    false_positives = [table for table in asked if "false positive" in table.verdict]
    assert did.filter_false_positives == len(false_positives)
    wasted = [table for table in explanation.tables if table.wasted]
    assert [table for table in wasted if table.filters] == false_positives
    assert explanation.blocks_wasted == len(wasted)
    spared = [table.spared for table in asked if table.spared is not None]
    assert len(spared) == did.filter_negatives
    searched = [table.block for table in asked if table.block is not None]
    assert len(searched) == explanation.blocks_searched
    stored = sum(block.size + BLOCK_TRAILER_SIZE for block in spared + searched)
    assert stored == explanation.bytes_without_filters
    for step in filters:
        assert len(step.values) == len(step.positions)
        assert all(step.values[:-1])  # it stops at the first bit that is not set
        assert not step.values or step.values[-1] is step.may_match
    assert sum(level.tables_asked for level in did.levels) == len(asked)
    assert did.gets_from_memory == (
        explanation.chosen is not None and "mem" in explanation.chosen.where
    )
    assert explanation.blocks_without_filters >= explanation.blocks_searched
    assert explanation.blocks_without_filters - explanation.blocks_searched == did.filter_negatives
    assert json.loads(json.dumps(explanation.to_dict()))["found"] is explanation.found
    assert str(explanation).startswith("get '")
    return explanation


def test_a_hit_in_the_memtable() -> None:
    with DB(":memory:") as db:
        db.put(b"k", b"value")
        explanation = assert_explained_right(db, b"k")
        assert explanation.memtables == ("memtable",)
        assert explanation.tables == ()
        assert explanation.chosen is not None
        assert (explanation.chosen.where, explanation.chosen.sequence) == ("memtable", 1)
        assert "found, 5 bytes in memtable" in str(explanation)


@pytest.mark.parametrize("layout", ["block", "table", "both"])
@pytest.mark.parametrize("compression", ["snappy", None])
def test_a_hit_in_a_table(layout: Any, compression: Any) -> None:
    with DB(":memory:", filter_layout=layout, compression=compression, block_size=256) as db:
        fill(db)
        db.compact_range()
        explanation = assert_explained_right(db, b"key0077")
        (table,) = explanation.tables
        assert table.asked
        assert table.verdict == "found"
        assert table.smallest == b"key0000"
        assert table.largest == b"key0199"
        assert table.index_key is not None
        assert table.index_key >= b"key0077"
        assert [step.layout for step in table.filters] == {
            "block": ["block"],
            "table": ["table"],
            "both": ["table", "block"],
        }[layout]
        for step in table.filters:
            assert step.may_match
            assert len(step.positions) == 6
            assert all(0 <= position < 8 * (step.size - 1) for position in step.positions)
        assert table.block is not None
        assert not table.block.cached
        assert table.block.compression == ("none" if compression is None else "snappy")
        assert table.block.bytes_read == table.block.size + 5 == explanation.bytes_read
        if compression is None:
            assert table.block.plain_size == table.block.size
        again = assert_explained_right(db, b"key0077").tables[0].block
        assert again is not None
        assert again.cached
        assert again.bytes_read == 0


def test_filters_spare_a_miss_its_block_reads() -> None:
    """Filters rule out most absent keys; with 4 bits per key there are false positives."""
    with DB(":memory:", bloom_filter_bits=4, **TINY) as db:
        fill(db)
        db.compact_range()
        explanations = [assert_explained_right(db, b"key%04d?" % n) for n in range(190)]
    explanations = [one for one in explanations if one.tables]  # some keys lie between two tables
    saved = [one for one in explanations if one.blocks_searched == 0]
    misled = [one for one in explanations if one.blocks_searched > 0]
    assert len(saved) > len(misled) > 0
    for one in explanations:
        assert not one.found
        assert one.chosen is None
    for one in saved:
        assert one.blocks_without_filters > 0
        assert "a filter says no" in str(one)
        assert one.tables[0].block is None
        assert one.tables[0].spared is not None
        assert not one.tables[0].filters[-1].may_match
    for one in misled:
        assert "false positive" in str(one)
        assert one.tables[0].block is not None
        assert one.tables[0].wasted
        assert one.tables[0].spared is None


def test_a_deletion_answers_and_hides_older_versions() -> None:
    with DB(":memory:", seek_compaction=False) as db:
        db.put(b"a", b"")
        db.put(b"k", b"one")
        db.put(b"z", b"")
        db.flush()
        with db.snapshot():
            db.put(b"k", b"two!")
            with db.snapshot():
                db.delete(b"k")
                explanation = assert_explained_right(db, b"k")
                assert explanation.chosen is not None
                assert explanation.chosen.deleted
                assert [(old.where[:3], old.value_size) for old in explanation.shadowed] == [
                    ("mem", 4),
                    ("000", 3),
                ]
                assert not explanation.tables[0].asked
                assert explanation.blocks_searched == explanation.blocks_without_filters == 0
                assert "deleted, a deletion in memtable" in str(explanation)
                assert "hidden: 3 bytes in " in str(explanation)
                db.flush()
                explanation = assert_explained_right(db, b"k")
                assert explanation.memtables == ("memtable",)
                sequences = [old.sequence for old in explanation.shadowed]
                assert explanation.chosen is not None
                assert sequences == sorted(sequences, reverse=True)
                assert explanation.chosen.sequence > sequences[0]
                assert [table.asked for table in explanation.tables] == [True, False]


def test_without_filters() -> None:
    with DB(":memory:", bloom_filter_bits=0, **TINY) as db:
        fill(db)
        db.compact_range()
        explanation = assert_explained_right(db, b"key0077?")
        assert explanation.tables[0].filters == ()
        assert explanation.blocks_searched == explanation.blocks_without_filters == 1
        assert "false positive" not in str(explanation)


def test_a_filter_policy_of_the_user() -> None:
    with DB(":memory:", filter_policy=FirstByte(), seek_compaction=False) as db:
        for key in (b"a", b"c", b"e"):
            db.put(key, b"v")
        db.flush()
        (table,) = assert_explained_right(db, b"b").tables
        assert table.filters[0].policy == "test.FirstByte"
        assert table.filters[0].positions == ()
        assert table.filters[0].size == 3
        assert assert_explained_right(db, b"c").found
        assert "false positive" in assert_explained_right(db, b"cc").tables[0].verdict


class Denying(FirstByte):
    """A policy that is at fault: it denies all keys that begin with ``l``."""

    name = "test.Denying"

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return key[0] in filter and key[0] != ord("l")


@pytest.mark.parametrize("layout", ["block", "table"])
def test_a_wrong_filter_is_distinguished_from_a_right_one(layout: Any) -> None:
    with DB(":memory:", filter_policy=Denying(), filter_layout=layout, seek_compaction=False) as db:
        for key in (b"a", b"lost", b"z"):
            db.put(key, b"value")
        db.flush()
        explanation = assert_explained_right(db, b"lost")
        assert db.get(b"lost") is None
        assert (explanation.found, explanation.chosen, explanation.shadowed) == (False, None, ())
        assert explanation.blocks_searched == 0
        assert [(version.sequence, version.value_size) for version in explanation.missed] == [
            (2, 5)
        ]
        (table,) = explanation.tables
        assert table.block is None
        assert table.wrong
        assert [line.tone for line in explanation.outline() if "wrong" in line.text] == [
            "wasted"
        ] * 2
        assert table.verdict == (
            "a filter says no: no block is searched;"
            " the block holds the key all the same: this filter is wrong"
            f" (filter per {layout}, test.Denying)"
        )
        text = str(explanation)
        assert text.startswith("get 'lost': not there\n")
        assert f"missed, since a filter is wrong: 5 bytes in {table.name}, write 2" in text
        right = assert_explained_right(db, b"let")
        assert right.missed == ()
        assert not right.tables[0].wrong
        assert right.tables[0].verdict == "a filter says no: no block is searched"
        db.put(b"lost", b"found")  # a memtable has no filter
        explanation = assert_explained_right(db, b"lost")
        assert explanation.found
        assert explanation.missed == ()
        assert [version.where for version in explanation.shadowed] == [table.name]


def test_numbers_have_one_format() -> None:
    with DB(":memory:", compression=None, block_size=1 << 20, lru_cache_size=0) as db:
        fill(db, 0, 1500)
        db.flush()
        text = str(assert_explained_right(db, b"key1234"))
        assert "  searched: 1 data block; 1 from the file, " in text
        assert "  without filters: 1 data block, " in text
        assert "1,235" in text.splitlines()[0]  # the write
        for line in text.splitlines():
            assert not re.search(r"(?<!at )(?<!bits )(?<![\w,. '])\d{4,}", line), line
        db.put(b"one", b"x")
        assert "found, 1 byte in memtable" in str(db.explain(b"one"))


def test_a_miss_outside_of_all_tables_says_so() -> None:
    with DB(":memory:") as db:
        reason = "  no table's range covers the key\n"
        assert reason in str(db.explain(b"a"))
        fill(db)
        db.flush()
        assert reason in str(db.explain(b"a"))
        assert reason not in str(db.explain(b"key0100?"))
        db.put(b"a", b"found")
        assert reason not in str(db.explain(b"a"))


def test_explain_leaves_no_table_open() -> None:
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env, **TINY) as db:
        fill(db)
    with DB("/db", env=env, **TINY) as db:
        before = db.stats()
        explanation = db.explain(b"key0003")
        assert explanation.found
        assert db.stats() == before
        assert db.get(b"key0003") is not None
        assert (db.stats() - before).tables_opened > 0


def test_explain_charges_no_seek() -> None:
    with DB(":memory:", bloom_filter_bits=0, lru_cache_size=0) as db:
        for _ in range(2):
            db.put(b"a", b"1")
            db.put(b"z", b"1")
            db.flush()
        assert db._store is not None
        version = db._store.open_view().version
        files = [file for level in version.levels for file in level]
        before = [file.allowed_seeks for file in files]
        for _ in range(150):
            assert db.explain(b"k").blocks_read == 2
        assert [file.allowed_seeks for file in files] == before
        assert version.file_to_compact is None
        db.get(b"k")
        assert sum(before) - sum(file.allowed_seeks for file in files) == 1


def test_keys_are_escaped() -> None:
    with DB(":memory:") as db:
        db.put(b"\x1b[2J\xff", b"")
        db.flush()
        explanation = db.explain(b"\x1b[2J\xff")
        assert explanation.key == b"\x1b[2J\xff"
        assert "\x1b" not in str(explanation)
        assert "\\x1b[2J\\xff" in str(explanation)
        assert explanation.to_dict()["key"] == "\\x1b[2J\\xff"
        assert "\x1b" not in json.dumps(explanation.to_dict())


def test_errors() -> None:
    env = FaultyEnv()
    db = DB("/db", create_if_missing=True, env=env, lru_cache_size=0)
    db.put(b"k", b"v")
    db.flush()
    env.fail_at(1, calls={"read", "open"})
    with pytest.raises(lsmkv.IOError):
        db.explain(b"k")
    assert db.explain(b"k").found
    with pytest.raises(TypeError):
        db.explain("k")  # type: ignore[arg-type]
    db.close()
    with pytest.raises(lsmkv.ClosedError):
        db.explain(b"k")


KEYS = [b"", b"a", b"ab", b"b", b"c", b"\xff"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "flush", "compact", "snapshot"]),
        st.sampled_from(KEYS),
        st.binary(max_size=40),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, bits=st.sampled_from([0, 1, 10]), cache=st.sampled_from([0, 1 << 20]))
def test_any_store(steps: list[tuple[str, bytes, bytes]], bits: int, cache: int) -> None:
    with DB(":memory:", bloom_filter_bits=bits, lru_cache_size=cache, **TINY) as db:
        snapshots = []
        for kind, key, value in steps:
            if kind == "put":
                db.put(key, value)
            elif kind == "delete":
                db.delete(key)
            elif kind == "flush":
                db.flush()
            elif kind == "compact":
                db.compact_range()
            else:
                snapshots.append(db.snapshot())
        db.flush()
        for key in [*KEYS, b"aa", b"zz"]:
            assert_explained_right(db, key)


# Filters of lsmkv's own

OWN: list[dict[str, Any]] = [
    {"filter_policy": lsmkv.Bloom64Policy()},
    {"filter_policy": lsmkv.Bloom64Policy(), "filter_layout": "block"},
    {"filter_policy": lsmkv.Bloom64Policy(), "filter_layout": "both"},
    {"filter_policy": lsmkv.BinaryFusePolicy()},
    {"filter_policy": lsmkv.BinaryFusePolicy(), "prefix_extractor": 3},
]


@pytest.mark.parametrize("options", OWN, ids=str)
def test_other_filters_are_explained(options: dict[str, Any]) -> None:
    with DB(":memory:", seek_compaction=False, **options) as db:
        fill(db, 0, 3000)
        db.flush()
        fill(db, 3000, 3100)
        db.flush()
        for n in range(0, 3200, 37):
            assert_explained_right(db, b"key%04d" % n)
            assert_explained_right(db, b"key%04dx" % n)


def test_a_fuse_filter_shows_its_slots() -> None:
    with DB(":memory:", filter_policy=lsmkv.BinaryFusePolicy()) as db:
        fill(db, 0, 3000)
        db.flush()
        for key, present in ((b"key0007", True), (b"key0007x", False)):
            explanation = db.explain(key)
            (step,) = explanation.tables[0].filters
            assert len(step.slots) == len(step.slot_values) == 4
            value = 0
            for one in step.slot_values:
                value ^= one
            assert (value == step.fingerprint) is step.may_match is present
            assert not step.positions
            text = str(explanation)
            assert f"xored {value:02x}, fingerprint {step.fingerprint:02x}" in text
            plain = json.loads(json.dumps(explanation.to_dict()))
            assert plain["tables"][0]["filters"][0]["slots"] == list(step.slots)


def test_few_keys_of_a_fuse_filter_show_bits() -> None:
    with DB(":memory:", filter_policy=lsmkv.BinaryFusePolicy()) as db:
        fill(db, 0, 30)
        db.flush()
        (step,) = db.explain(b"key0007").tables[0].filters
        assert len(step.positions) == 7
        assert all(step.values)
        assert step.fingerprint is None


@pytest.mark.parametrize("layout", ["block", "table"])
@pytest.mark.parametrize(
    "policy",
    [lsmkv.BloomFilterPolicy(), lsmkv.Bloom64Policy(), lsmkv.BinaryFusePolicy()],
    ids=lambda policy: policy.name,
)
def test_a_filter_that_lies_is_named(policy: Any, layout: Any) -> None:
    env = MemoryEnv()
    liar = DenyingAll(policy.name)
    with DB("db", create_if_missing=True, env=env, filter_policy=liar, filter_layout=layout) as db:
        fill(db)
        db.flush()
    with DB("db", env=env, filter_policy=policy) as db:
        assert db.get(b"key0007") is None
        explanation = db.explain(b"key0007")
        assert f"this filter is wrong (filter per {layout}, {policy.name})" in str(explanation)
        with pytest.raises(lsmkv.CorruptionError, match=f"per {layout}, {policy.name}"):
            db.check()
