"""lsmkv.tools.demo.reading: what the demo says of its figures."""

from __future__ import annotations

import pytest
from demos import measurement

from lsmkv.tools.demo.reading import reading


def test_the_reading_follows_the_figures() -> None:
    off = measurement("off", blocks=2500, levels={0: 2, 1: 3})
    block = measurement("block", blocks=25, asked=2500, positives=25, predicted=0.01)
    told = " ".join(reading([off, block], [], 100_000))
    assert "cost 2.500 block reads without filters: up to 3 tables" in told
    assert "0.025 with a filter per 2 KiB (100 times fewer)" in told
    assert "25 of 2,500 checks of absent keys wrongly said maybe, 1.00%" in told
    assert "Their bits predict 1.00%" in told
    assert "agree within chance" in told
    assert "Compacted" not in told


@pytest.mark.parametrize(
    ("positives", "words"),
    [(25, "agree within chance"), (60, "does not explain so many"), (1, "explain so few")],
)
def test_chance(positives: int, words: str) -> None:
    one = measurement("table", blocks=positives, asked=2500, positives=positives, predicted=0.01)
    assert words in " ".join(reading([one], [], 1000))


def test_the_reading_of_a_perfect_filter_and_of_none() -> None:
    off = measurement("off", blocks=1000)
    perfect = measurement("block", asked=1000, predicted=0.01)
    assert "(no block at all)" in " ".join(reading([off, perfect], [perfect], 1000))
    alone = " ".join(reading([off], [], 1000))
    assert "the one block where it would have been." in alone
    assert "predict" not in alone
