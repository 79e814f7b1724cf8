"""lsmkv.engine.options.filters: custom policies, and filter options that do not go together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from policies import LastByte
from stores import ENTRIES, fill

import lsmkv
from lsmkv import DB
from lsmkv.engine.options import make_options


def test_a_custom_filter_policy(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True, filter_policy=LastByte(), lru_cache_size=0) as db:
        fill(db)
        db.flush()
        assert db.get(b"key0001x") is None
        assert db.stats().blocks_read == 0
        assert db.get(b"key00019") is None
        assert db.get(b"key0019") == ENTRIES[b"key0019"]
        stats = db.stats()
        assert (stats.filters_asked, stats.filter_negatives) == (3, 1)
        assert stats.filter_false_positives == 1
    with DB(path) as db:  # another policy finds no filter of its own name
        assert db.get(b"key0019") == ENTRIES[b"key0019"]
        assert db.stats().filters_asked == 0


@pytest.mark.parametrize(
    ("options", "error", "hint"),
    [
        ({"bloom_filter_bits": -1}, ValueError, "bloom_filter_bits cannot be negative: -1"),
        ({"bloom_filter_bits": True}, TypeError, "bloom_filter_bits must be a number, not bool"),
        (
            {"bloom_filter_bits": [12, 4], "filter_policy": LastByte()},
            ValueError,
            "only bits by level can be combined with a BloomFilterPolicy",
        ),
        (
            {"filter_policy": lsmkv.BinaryFusePolicy(), "filter_layout": "block"},
            ValueError,
            "BinaryFusePolicy makes filters for whole tables",
        ),
        ({"prefix_extractor": "ab"}, TypeError, "prefix_extractor must be .*, not str"),
        ({"prefix_extractor": bytes.upper}, ValueError, "needs a prefix_extractor_name"),
        ({"prefix_extractor_name": "upper"}, ValueError, "without a prefix_extractor"),
        (
            {"prefix_extractor": b":", "prefix_extractor_name": "other"},
            ValueError,
            "'other', the extractor says 'lsmkv.DelimitedPrefix.3a'",
        ),
        (
            {"prefix_extractor": 3, "comparator": lsmkv.ReverseBytewiseComparator()},
            ValueError,
            "requires the bytewise order.*'leveldb.ReverseBytewiseComparator'",
        ),
    ],
)
def test_filter_options_that_do_not_fit_are_refused(
    options: dict[str, Any], error: type[Exception], hint: str
) -> None:
    with pytest.raises(error, match=hint):
        make_options(**options)


def test_more_bits_than_a_filter_can_use_are_as_many_as_it_can() -> None:
    policy = make_options(bloom_filter_bits=10_000).filter_policy
    assert isinstance(policy, lsmkv.BloomFilterPolicy)
    assert policy.bits_per_key == 256


def test_bits_by_level_set_the_average_of_the_policy() -> None:
    options = make_options(bloom_filter_bits=[12, 4], filter_policy=lsmkv.Bloom64Policy(10))
    assert isinstance(options.filter_policy, lsmkv.Bloom64Policy)
    assert options.filter_bits is not None
    assert options.filter_policy.bits_per_key == options.filter_bits.average
