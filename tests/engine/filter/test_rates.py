"""Expected false-positive rates against those that filters of this library's own have."""

from __future__ import annotations

import random

import pytest

from lsmkv.engine.filter.bloom import MIN_BITS, BloomFilterPolicy, fill_rate, predicted_rate
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.known import rate_of
from lsmkv.engine.filter.rates import expected_fill, expected_rate, expected_rate64, keys_from_fill

SIZES = [1, 3, 8, 20, 50, 200]
FILTERS, ASKED = 400, 150


def measured(policy: BloomFilterPolicy | Bloom64Policy, keys: int) -> tuple[float, float, int]:
    """The share of absent keys that pass and of ones, over many filters; and their bits."""
    rng = random.Random(keys)
    passed = 0
    fill = 0.0
    data = b""
    for _ in range(FILTERS):
        data = policy.create_filter([rng.randbytes(9) for _ in range(keys)])
        fill += fill_rate(data)
        passed += sum(policy.key_may_match(rng.randbytes(10), data) for _ in range(ASKED))
    return passed / (FILTERS * ASKED), fill / FILTERS, 8 * (len(data) - 1)


def near(rate: float, share: float) -> bool:
    """Whether a measured rate is the expected one, but for a quarter and for chance."""
    chance = 4 * (max(rate, 1e-5) / (FILTERS * ASKED)) ** 0.5
    return abs(share - rate) <= 0.25 * rate + chance


@pytest.mark.parametrize("bits_per_key", [10, 20])
@pytest.mark.parametrize("keys", SIZES)
def test_a_small_filter_of_leveldb_has_the_rate_that_is_expected(
    keys: int, bits_per_key: int
) -> None:
    policy = BloomFilterPolicy(bits_per_key)
    share, fill, bits = measured(policy, keys)
    assert bits >= MIN_BITS
    assert near(expected_rate(keys, bits, policy.probes), share)
    assert fill == pytest.approx(expected_fill(keys, bits, policy.probes), rel=0.02)


@pytest.mark.parametrize("keys", SIZES)
def test_a_small_filter_of_64_bit_hashes_has_the_rate_that_is_expected(keys: int) -> None:
    policy = Bloom64Policy(10)
    share, _, bits = measured(policy, keys)
    assert near(expected_rate64(keys, bits, policy.probes), share)


def test_the_textbook_is_far_from_a_small_filter() -> None:
    """8 keys in 320 bits: the textbook says 0.0007%, and 25 times as many pass."""
    rng = random.Random(1)
    policy = BloomFilterPolicy(40)
    everything = policy.with_bits(10)
    assert predicted_rate(40, everything.probes) < 0.00001
    passed = 0
    for _ in range(2000):
        data = bytearray(41)
        data[40] = 6
        for _ in range(8):
            h = rng.randrange(1 << 32)
            for position in _positions(h, 6, 320):
                data[position >> 3] |= 1 << (position & 7)
        hashes = (rng.randrange(1 << 32) for _ in range(100))
        passed += sum(everything.hash_may_match(h, bytes(data)) for h in hashes)
    share = passed / 200_000
    assert 0.0001 < share < 0.0005
    assert expected_rate(8, 320, 6) == pytest.approx(share, rel=0.4)


def _positions(h: int, probes: int, bits: int) -> list[int]:
    d = (h >> 17 | h << 15) & 0xFFFFFFFF
    return [(h + n * d & 0xFFFFFFFF) % bits for n in range(probes)]


@pytest.mark.parametrize("bits_per_key", [1, 4, 8, 10, 16, 20])
def test_a_large_filter_has_the_rate_of_the_textbook(bits_per_key: int) -> None:
    probes = BloomFilterPolicy(bits_per_key).probes
    keys = 10_000_000
    textbook = predicted_rate(bits_per_key, probes)
    assert expected_rate(keys, keys * bits_per_key, probes) == pytest.approx(textbook, rel=0.01)
    assert expected_rate64(keys, keys * bits_per_key, probes) == pytest.approx(textbook, rel=0.01)


def test_a_filter_tells_its_rate_by_its_bits() -> None:
    """The mean over filters is what is expected of so many keys, for each kind of filter."""
    rng = random.Random(2)
    for policy, expected in (
        (BloomFilterPolicy(10), expected_rate(33, 336, 6)),
        (Bloom64Policy(10), expected_rate64(33, 336, 7)),
    ):
        rates = []
        for _ in range(200):
            rate = rate_of(policy.name, policy.create_filter([rng.randbytes(9) for _ in range(33)]))
            assert rate is not None
            rates.append(rate)
        assert sum(rates) / len(rates) == pytest.approx(expected, rel=0.05)


def test_keys_are_estimated_from_the_fill() -> None:
    for keys in (1, 10, 1000):
        assert keys_from_fill(expected_fill(keys, 2048, 6), 2048, 6) == pytest.approx(keys)
    assert keys_from_fill(1.0, 64, 6) == float("inf")
    assert keys_from_fill(0.0, 64, 6) == 0.0


def test_more_keys_are_wrong_more_often() -> None:
    for bits, probes in ((64, 6), (72, 5), (320, 6), (1000, 13)):
        rates = [expected_rate(keys, bits, probes) for keys in range(0, 400, 7)]
        assert rates == sorted(rates)
        assert rates[0] == 0.0
        assert rates[-1] <= 1.0


def test_impossible_filters_are_refused() -> None:
    for keys, bits, probes in ((-1, 64, 6), (1, 0, 6), (1, 64, 0)):
        for function in (expected_rate, expected_rate64, expected_fill):
            with pytest.raises(ValueError, match="no filter has"):
                function(keys, bits, probes)


@pytest.mark.parametrize("probes", [1, 7, 21, 30])
@pytest.mark.parametrize("bits", [8, 24, 64, 80])
def test_a_rate_is_a_probability_however_full_the_filter_is(bits: int, probes: int) -> None:
    for keys in (0, 1, 100, 1e6):
        for rate in (expected_rate, expected_rate64):
            assert 0.0 <= rate(keys, bits, probes) <= 1.0
