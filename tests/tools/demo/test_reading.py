"""The sentences of the demo's report."""

from __future__ import annotations

from dataclasses import replace

import pytest
from demos import measurement

from lsmkv.tools.demo.reading import findings, reading


def test_the_reading_follows_the_figures() -> None:
    off = measurement("off", blocks=2500, levels={0: 2, 1: 3})
    block = measurement("block", blocks=25, asked=2500, positives=25, predicted=0.01)
    text = " ".join(reading([off, block]))
    assert "25 of 2,500 checks of absent keys wrongly said maybe, 1.00%" in text
    assert "Their bits predict 1.00%" in text
    assert "agree within chance" in text
    assert "LevelDB" not in text


def test_the_reading_says_which_filters_leveldb_asks() -> None:
    off = measurement("off", blocks=2500)
    fuse = measurement("fuse", blocks=10, asked=2500, positives=10, predicted=0.004)
    text = " ".join(reading([off, fuse]))
    assert "Their bits predict 0.40%, the textbook 0.39%; measured and predicted agree" in text
    assert "LevelDB reads all these stores, and asks filters in none of them." in text
    both = measurement("both", blocks=25, asked=2500, positives=25, predicted=0.01)
    text = " ".join(reading([off, fuse, both]))
    assert "asks filters only in the store with both kinds." in text


@pytest.mark.parametrize(
    ("positives", "words"),
    [(25, "agree within chance"), (60, "more than chance"), (1, "fewer than chance")],
)
def test_the_reading_compares_false_positives_with_chance(positives: int, words: str) -> None:
    one = measurement("table", blocks=positives, asked=2500, positives=positives, predicted=0.01)
    assert words in " ".join(reading([one]))


def test_the_reading_of_no_filter() -> None:
    alone = " ".join(reading([measurement("off", blocks=1000)]))
    assert alone.startswith("Not counted in these figures are the reads of footers")
    assert "predict" not in alone


def test_the_findings_follow_the_figures() -> None:
    off = measurement("off", blocks=2500)
    block = measurement("block", blocks=25, asked=2500, positives=25, answered=976, disk=100_125)
    assert findings([off, block], 100, 0, 4000) == [
        "The filters answered 97.6% of the Gets of absent keys without reading a block:"
        " 0.025 blocks a Get instead of 2.500.",
        "A Get of an existing key read 1.000 blocks with and without them:"
        " one of them is the block that holds it.",
        "The filters cost 10.0 bits a key: 125 B beside tables of 97.7 KiB.",
    ]
    searching = replace(off, present=replace(off.present, blocks_read=2431))
    assert findings([searching, block], 100, 0, 4000)[1].startswith(
        "A Get of an existing key read 1.000 blocks instead of 2.431: "
    )
    absent, existing = findings([block], 100, 0, 2000)  # nothing to compare with
    assert absent.endswith(": 0.025 blocks a Get.")
    assert existing.startswith("A Get of an existing key read 1.000 blocks: ")
    assert findings([off], 100, 0, 2000) == [
        "Without filters, a Get of an absent key read 2.500 data blocks."
    ]
    assert findings([off, block], 100, 1, 4000) == ["1 of 4,000 answers were WRONG."]
