"""lsmkv.tools.bench.data: keys and values, the same for a seed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benches import NUM, SETTINGS

from lsmkv.engine.util.compression import SNAPPY, compress
from lsmkv.tools.bench.data import Data, compressible_values, random_values


def test_data_is_the_same_for_a_seed() -> None:
    first, same = Data(SETTINGS), Data(SETTINGS)
    other = Data(replace(SETTINGS, seed=2))
    assert first.shuffled("a") == same.shuffled("a") != other.shuffled("a")
    assert first.shuffled("a") != first.shuffled("b")
    assert sorted(first.shuffled("a")) == list(range(NUM))
    assert first.values == same.values != other.values
    assert first.keys([0, 12]) == [b"0000000000000000", b"0000000000000012"]
    assert first.keys([5]) == [first.key(5)]
    for generation in (0, 1):
        some = [first.value(index, generation) for index in range(NUM)]
        assert first.values_of(range(NUM), generation) == some
    assert first.value(5) != first.value(5, 1)
    assert set(first.drawn("hot", 1000, 7)) == set(range(7))


@pytest.mark.parametrize("size", [0, 1, 99, 100, 1000, 5000])
def test_values_compress_to_half(size: int) -> None:
    values = compressible_values(size, Data(SETTINGS)._random("x"))
    assert {len(value) for value in values} == {size}
    if size >= 100:
        whole = b"".join(values[:50])
        stored = compress(whole, SNAPPY)
        assert 0.4 * len(whole) < len(stored) < 0.65 * len(whole)


def test_random_values_do_not_compress() -> None:
    values = random_values(100, Data(SETTINGS)._random("x"))
    assert len(set(values)) == len(values) > 1000
    whole = b"".join(values[:1000])
    assert len(compress(whole, SNAPPY)) >= len(whole)
    assert random_values(0, Data(SETTINGS)._random("x")) == [b""]


def test_the_settings_say_whether_values_compress() -> None:
    whole = b"".join(Data(replace(SETTINGS, compressible=False)).values[:500])
    assert len(compress(whole, SNAPPY)) >= len(whole)
