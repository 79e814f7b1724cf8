"""What a replay counts."""

from __future__ import annotations

from pathlib import Path

from lab_stores import READING, key

import lsmkv
from lsmkv.tools.filter_lab.reads import FIGURES, SettingReads, TableReads
from lsmkv.tools.filter_lab.replaying import replay
from lsmkv.tools.filter_lab.settings import parse_setting


def test_a_wasted_read_is_a_block_without_the_key(base: Path) -> None:
    with lsmkv.DB(base, **READING) as db:
        absent = replay(db, [key(17) + b"!"] * 3, [parse_setting("none")]).results[1]
        present = replay(db, [key(2)], [parse_setting("none")]).results[1]
    assert absent.wasted_reads == absent.blocks_read > 0
    assert absent.false_positive_rate is None
    assert present.blocks_read == present.wasted_reads + 1


def test_figures_are_summed_over_tables_and_divided_by_gets() -> None:
    one = TableReads(0, 7, filters_asked=5, filter_negatives=3, blocks_read=2, false_positives=1)
    two = TableReads(1, 8, filters_asked=4, filter_negatives=4, filter_bytes=100, wasted_reads=1)
    reads = SettingReads("block:10", [one, two])
    assert reads.total("filters_asked") == 9
    assert (reads.blocks_read, reads.wasted_reads, reads.filter_bytes) == (2, 1, 100)
    assert reads.false_positive_rate == 1 / 8  # of the filters asked about absent keys
    plain = reads.to_dict(4)
    assert plain.keys() == {"setting", *FIGURES, "blocks_per_get", "false_positive_rate"}
    assert (plain["setting"], plain["blocks_per_get"]) == ("block:10", 0.5)


def test_no_gets_and_no_filters_have_no_rate() -> None:
    plain = SettingReads("none", [TableReads(0, 7)]).to_dict(0)
    assert (plain["blocks_per_get"], plain["false_positive_rate"]) == (0, None)
