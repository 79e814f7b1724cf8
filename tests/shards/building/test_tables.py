"""The settings of a build's tables: defaults, what is refused, and the way to another process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import lsmkv
from lsmkv.engine.options import KIB, Options
from lsmkv.shards.building.tables import TABLE_BYTES, table_settings


def sent(**arguments: Any) -> Options:
    """As a worker has them."""
    settings = table_settings(TABLE_BYTES, arguments)  # type: ignore[arg-type]
    return pickle.loads(pickle.dumps(settings)).options()  # type: ignore[no-any-return]


def test_the_defaults_suit_a_network() -> None:
    options = sent()
    assert isinstance(options.filter_policy, lsmkv.BinaryFusePolicy)
    assert (options.filter_layout, options.block_size) == ("table", 32 * KIB)
    assert options.block_cache is None


@pytest.mark.parametrize(
    ("arguments", "policy", "layout"),
    [
        ({"bloom_filter_bits": 12}, "BloomFilterPolicy(12)", "table"),
        ({"bloom_filter_bits": 12, "filter_layout": "both"}, "BloomFilterPolicy(12)", "both"),
        ({"bloom_filter_bits": 0}, "None", "block"),
        ({"filter_policy": lsmkv.Bloom64Policy(14)}, "Bloom64Policy(14)", "table"),
        ({"filter_policy": lsmkv.BloomFilterPolicy(9)}, "BloomFilterPolicy(9)", "block"),
    ],
)
def test_filters_travel(arguments: dict[str, Any], policy: str, layout: str) -> None:
    options = sent(**arguments)
    assert (repr(options.filter_policy), options.filter_layout) == (policy, layout)


class OwnPolicy:
    name = "test.Own"

    def create_filter(self, keys: list[bytes]) -> bytes:
        return b""

    def key_may_match(self, key: bytes, data: bytes) -> bool:
        return True


def test_other_settings_travel() -> None:
    options = sent(block_size=5000, compression=None, prefix_extractor=4, filter_policy=OwnPolicy())
    assert (options.block_size, options.compression) == (5000, 0)
    assert options.prefix_extractor is not None
    assert isinstance(options.filter_policy, OwnPolicy)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"comparator": lsmkv.ReverseBytewiseComparator()}, "bytewise order"),
        ({"comparator_name": "x"}, "bytewise order"),
        ({"env": lsmkv.MemoryEnv()}, "takes a URL"),
        ({"filter_policy": lsmkv.Bloom64Policy(9), "bloom_filter_bits": 9}, "not both"),
        ({"block_size": -1}, "block_size"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table_settings(TABLE_BYTES, arguments)


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match=r"lsmkv.bulk.build has no option 'blok_size'"):
        table_settings(TABLE_BYTES, {"blok_size": 1})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(ValueError, match="table_bytes"):
        table_settings(5, {})
