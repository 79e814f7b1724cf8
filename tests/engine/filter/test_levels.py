"""lsmkv.engine.filter.levels: the spread is the best one for its memory."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsmkv.engine.filter.levels import FEWEST_BITS, MOST_BITS, LevelBits, spread

RUNS = st.lists(st.integers(0, 10**9), min_size=1, max_size=9)


def false_positives(bits: list[float], runs: list[int]) -> float:
    """How many filters are wrong about an absent key; without a filter, every run is."""
    rate = math.log(2) ** 2
    return sum(
        math.exp(-one * rate) if one >= FEWEST_BITS else 1.0
        for one, size in zip(bits, runs, strict=True)
        if size
    )


@given(st.floats(1, 20), RUNS)
@example(1.0, [7329])  # its bits are summed up to 0.9999999999999964
def test_the_memory_is_what_was_given(average: float, runs: list[int]) -> None:
    bits = spread(average, runs)
    used = sum(one * size for one, size in zip(bits, runs, strict=True))
    assert used <= average * sum(runs) * (1 + 1e-9)
    if all(one < MOST_BITS for one in bits):
        assert used == pytest.approx(average * sum(runs))
    assert all(
        one == 0 or FEWEST_BITS <= one <= MOST_BITS or not size
        for one, size in zip(bits, runs, strict=True)
    )


@given(st.floats(4, 20), RUNS, st.data())
def test_no_other_spread_is_better(average: float, runs: list[int], data: st.DataObject) -> None:
    """A little memory moved from one run to another makes things worse."""
    bits = spread(average, runs)
    chosen = [at for at, one in enumerate(bits) if FEWEST_BITS + 0.2 < one < MOST_BITS and runs[at]]
    if len(chosen) < 2:
        return
    one = data.draw(st.sampled_from(chosen))
    other = data.draw(st.sampled_from(chosen))
    if one == other:
        return
    step = 0.1 * min(runs[one], runs[other])
    changed = list(bits)
    changed[one] += step / runs[one]
    changed[other] -= step / runs[other]
    assert false_positives(changed, runs) >= false_positives(bits, runs) * (1 - 1e-12)


def test_monkey_beats_uniform_bits() -> None:
    runs = [1, 10, 100]
    uniform = false_positives([10.0] * 3, runs)
    assert uniform / false_positives(spread(10, runs), runs) > 2


def test_a_run_of_nearly_all_keys_may_go_without() -> None:
    bits = spread(1, [10**8, 10**9])
    assert bits == [pytest.approx(11), 0]


def test_a_run_without_keys_gets_the_most() -> None:
    assert spread(10, [0, 5, 50])[0] == spread(10, [0, 5, 50])[1]
    assert spread(10, [0]) == [10]


def test_bits_of_levels() -> None:
    bits = LevelBits.parse([16, 12.5, 0])
    assert [bits.bits_for(level, [1], 0) for level in range(7)] == [16, 12.5, 0, 0, 0, 0, 0]
    automatic = LevelBits.parse("auto:8.5")
    assert automatic.bits_for(3, [1, 10, 100], 2) == spread(8.5, [1, 10, 100])[2]


@pytest.mark.parametrize(
    "wrong", ["auto", "auto:", "auto:x", "auto:0", "monkey:10", "auto:nan", ""]
)
def test_other_texts_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="bloom_filter_bits is"):
        LevelBits.parse(wrong)


@pytest.mark.parametrize("wrong", [[], [0], [0, 0], [-1], [0.5]])
def test_other_lists_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="bits"):
        LevelBits.parse(wrong)
