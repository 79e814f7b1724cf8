"""What a filter would save where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from inspected import one_table, opened

from lsmkv.tools.inspect.filters import probe, table_filter
from lsmkv.tools.inspect.plain import NotThereError
from lsmkv.tools.inspect.saving import passing_rate, words_for_get


def test_a_table_without_a_filter_says_what_one_would_save(tmp_path: Path) -> None:
    keys = [b"%08d" % number for number in range(5000)]
    with opened(one_table(tmp_path / "none", keys, bloom_filter_bits=0)) as (api, name):
        answer = table_filter(api.source, name)
        levels = api.answer("levels", {})["facts"]
        with pytest.raises(NotThereError, match="has no filter"):
            probe(api.source, name, b"ant")
    assert answer["filters"] == 0
    assert answer["entries"] == pytest.approx(5000, rel=0.01)
    assert answer["filter_bytes"] == answer["entries"] * 10 // 8
    assert f"{name} has no filter" in answer["words"]
    assert "a filter would save 99.2 of 100 such reads, for about 6.1 KiB" in answer["words"]
    assert levels["filters"] == []
    assert "would save 1 of this 1 block read, for about 6.1 KiB" in levels["saving"]


def test_a_get_whose_blocks_all_hold_the_key_saves_nothing() -> None:
    words = words_for_get(searched=1, wasted=0, tables=1, entries=100)
    assert "None would help here: every block that was read has the key." in words


def test_the_saving_of_a_get_is_that_of_its_wasted_reads() -> None:
    words = words_for_get(searched=3, wasted=2, tables=4, entries=8192)
    assert words.startswith("4 tables asked have no filter.")
    assert "would save 2 of these 3 block reads, for about 10.0 KiB (8,192 entries)" in words
    assert f"{100 * passing_rate():.2g}% of absent keys still pass" in words
