"""docs/guides/tuning.md: its table is what the script measured, and agrees with its arithmetic."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import page_parts
import pytest
import sizing

import lsmkv

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "tuning.md"
EMPTY = f"# Page\n\n{page_parts.BEGIN}\n{page_parts.END}\n\nThe end.\n"


def row(cache: int, blocks_read: int) -> dict[str, Any]:
    return {
        "cache": cache << 20,
        "gets": 1000,
        "blocks_read": blocks_read,
        "memory": 3 << 20,
        "descriptors": 30,
        "at_rest": 4,
        "tables": 26,
        "size": 50 << 20,
        "metadata": 1 << 19,
    }


def test_the_table() -> None:
    lines = sizing.table([row(8, 900), row(16, 0)], {20: 2.71, 1000: 1.2}, 20_000)
    assert lines[2:6] == [
        "| `lru_cache_size` | Gets without a read | memory of the store | descriptors |",
        "|--:|--:|--:|--:|",
        "| 8 MiB | 10% | 3 MiB | 30 |",
        "| 16 MiB | 100% | 3 MiB | 30 |",
    ]
    for words in ("20,000 entries of 16 and 1,000 bytes", "26 tables of 50 MiB", "2,000 active"):
        assert words in lines[0]
    assert "2.7 with values of 20 bytes, 1.2 with values of 1,000 bytes." in lines[-1]


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    once = sizing.with_table(EMPTY, ["| a |"])
    assert once.startswith("# Page\n\n<!-- measured -->\n\n| a |\n")
    assert once.endswith("<!-- end measured -->\n\nThe end.\n")
    assert sizing.with_table(once, ["| a |"]) == once
    for wrong in ("# Page\n", EMPTY + EMPTY):
        with pytest.raises(ValueError, match="one place"):
            sizing.with_table(wrong, [])


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_measurement_of_a_small_store() -> None:
    rows, memtables = sizing.measure(2000, [0, 4 << 20], 1 << 20)
    cold, warm = rows
    assert cold["gets"] == warm["gets"] == 600
    assert cold["blocks_read"] == 600
    assert warm["blocks_read"] == 0
    assert warm["descriptors"] == warm["at_rest"] + warm["tables"]
    assert all(ratio > 0.5 for ratio in memtables.values())


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_an_idle_store_has_as_many_descriptors_as_the_page_says(tmp_path: Path) -> None:
    assert "A store has about four, one more for each open table" in PAGE.read_text("utf-8")
    before = sizing._descriptors()
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
        assert 3 <= sizing._descriptors() - before <= 6


def test_the_page_of_this_project_has_its_table_and_sizes_that_agree_with_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition(page_parts.BEGIN)[2].partition(page_parts.END)[0]
    assert f"{sizing.ENTRIES:,} entries" in table
    rows = re.findall(r"(?m)^\| (\d+) MiB \| (\d+)% \| (\d+) MiB \| (\d+) \|$", table)
    assert [int(cache) for cache, *_ in rows] == list(sizing.CACHES)
    for cache, _, memory, _ in rows:
        assert int(memory) < 1.5 * int(cache) + 4 * 4 + 8
    rates = [int(rate) for _, rate, *_ in rows]
    assert rates == sorted(rates)
    found = re.search(r"Indexes and filters of all tables take ([\d.]+) MiB", table)
    assert found is not None
    # 11 bits a key and 25 bytes a block, as the page's program has it.
    expected = sizing.ENTRIES * (11 / 8 + (sizing.VALUE + 16) / 4096 * 25) / (1 << 20)
    assert float(found[1]) == pytest.approx(expected, rel=0.15)
