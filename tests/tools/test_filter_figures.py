"""What the filters of tables on disk take, and what their bits predict."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.filter_lab import replay
from lsmkv.tools.filter_figures import (
    NONE,
    FilterFigures,
    LevelFilters,
    TableFilters,
    blocks_of_an_absent_key,
    by_level_and_kind,
)
from lsmkv.tools.lab.experiment import open_store

KEYS = 3000


def key(n: int) -> bytes:
    """A key without a pattern: LevelDB's hash is weaker for sequential keys."""
    return hashlib.sha256(b"%d" % n).digest()


def filled(path: Path, **options: Any) -> list[lsmkv.TableInfo]:
    with lsmkv.DB(path, create_if_missing=True, compression=None, **options) as db:
        for n in range(KEYS):
            db.put(key(n), bytes(20))
        db.flush()
        return db.tables()


def figures_of(path: Path, **options: Any) -> TableFilters:
    tables = filled(path, **options)
    (figures,) = FilterFigures(str(path)).look(tables).values()
    return figures


@pytest.mark.parametrize("layout", ["block", "table", "both"])
def test_the_rate_that_the_bits_predict_is_the_one_measured(tmp_path: Path, layout: Any) -> None:
    options: dict[str, Any] = {"filter_layout": layout, "bloom_filter_bits": 4}
    figures = figures_of(tmp_path / "db", **options)
    with lsmkv.DB(tmp_path / "db", lru_cache_size=0, seek_compaction=False, **options) as db:
        for n in range(KEYS, 2 * KEYS):
            assert db.get(key(n)) is None
        stats = db.stats()
    # Of a key, both layouts take the same hash, so they err together a little more often.
    rel = 0.5 if layout == "both" else 0.2
    assert figures.rate == pytest.approx(stats.blocks_read / KEYS, rel=rel)
    blocks = figures.number - (layout == "both")
    assert blocks == 1 if layout == "table" else blocks > 20
    bits = KEYS * 4 / 8 * (2 if layout == "both" else 1)
    offsets = 0 if layout == "table" else 4 * blocks + 5
    assert figures.size == pytest.approx(bits + offsets, rel=0.15)
    assert figures.kind == {"both": "table+block"}.get(layout, layout)
    assert figures.known


@pytest.mark.parametrize(
    "options",
    [
        {"filter_layout": "block"},
        {"filter_layout": "table"},
        {"filter_layout": "both"},
        {"filter_policy": lsmkv.BinaryFusePolicy(), "prefix_extractor": 3},
        {"filter_policy": lsmkv.Bloom64Policy(8)},
        {"bloom_filter_bits": 0},
    ],
)
def test_the_size_is_that_of_the_filter_lab(tmp_path: Path, options: dict[str, Any]) -> None:
    """One figure for the filters of a store, whichever tool says it."""
    path = tmp_path / "db"
    figures = figures_of(path, **options)
    with open_store(str(path)) as db:
        stored = replay(db, [key(1)], []).stored
        assert db.get(key(1)) is not None  # which opens the table
        (level,) = (level for level in db.stats().levels if level.files)
        assert figures.rate == pytest.approx(level.expected_rate or 1.0, rel=0.2)
    assert figures.size == stored.filter_bytes


def test_the_rows_of_filters_are_by_level_and_kind() -> None:
    def table(level: int, number: int, size: int) -> lsmkv.TableInfo:
        return lsmkv.TableInfo(level, number, f"{number}.ldb", size, b"a", b"z")

    def filters(kind: str, rate: float, known: bool = True) -> TableFilters:
        return TableFilters(3, 10, rate, "", "none", kind, known)

    figures = {
        table(1, 1, 100): filters("block", 0.01),
        table(1, 2, 300): filters("block", 0.05),
        table(1, 3, 100): filters("fuse", 0.004),
        table(1, 4, 100): NONE,
        table(2, 5, 100): filters("mine.Own", 1.0, known=False),
    }
    first, second, third = by_level_and_kind(figures, figures)
    assert first == LevelFilters(1, "block", 6, 20, pytest.approx(0.04))
    assert second == LevelFilters(1, "fuse", 3, 10, 0.004)
    assert third == LevelFilters(2, "mine.Own", 3, 10, None)


def test_without_filters_each_absent_key_costs_a_block(tmp_path: Path) -> None:
    figures = figures_of(tmp_path / "db", bloom_filter_bits=0)
    assert figures == dataclasses.replace(NONE, codec="none")  # its blocks are not compressed


class Custom:
    """A filter policy of the user, whose bits mean nothing here."""

    name = "test.Custom"

    def create_filter(self, keys: Any) -> bytes:
        return b"\x01\x01"

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return True


def test_filters_of_another_policy_are_not_judged(tmp_path: Path) -> None:
    figures = figures_of(tmp_path / "db", filter_policy=Custom())
    assert figures.number > 20
    offsets = figures.size - 2 * figures.number - 5
    assert offsets % 4 == 0  # filters without keys have an offset, too
    assert offsets // 4 >= figures.number
    assert figures.rate == 1.0
    assert not figures.known
    assert figures.kind == "test.Custom"


def test_a_table_that_is_gone_counts_as_one_without_filters(tmp_path: Path) -> None:
    (table,) = filled(tmp_path / "db")
    figures = FilterFigures(str(tmp_path / "db"))
    known = figures.look([table])
    (tmp_path / "db" / table.name).unlink()
    assert figures.look([table]) == known  # a table never changes, so it is read once
    assert figures.look([]) == {}
    assert figures.look([table]) == {table: NONE}


def test_a_damaged_footer_is_named(tmp_path: Path) -> None:
    (table,) = filled(tmp_path / "db")
    with open(tmp_path / "db" / table.name, "r+b") as file:
        file.seek(-1, 2)
        file.write(b"?")
    with pytest.raises(lsmkv.CorruptionError, match="footer") as raised:
        FilterFigures(str(tmp_path / "db")).look([table])
    assert raised.value.path == str(tmp_path / "db" / table.name)


def test_what_a_get_of_an_absent_key_is_expected_to_search() -> None:
    def table(level: int, number: int, size: int) -> lsmkv.TableInfo:
        return lsmkv.TableInfo(level, number, f"{number}.ldb", size, b"a", b"z")

    def rate(figure: float) -> TableFilters:
        return TableFilters(1, 10, figure)

    figures = {
        table(0, 1, 100): rate(0.1),
        table(0, 2, 100): rate(0.2),
        table(1, 3, 300): rate(0.0),
        table(1, 4, 100): NONE,
    }
    without, searched = blocks_of_an_absent_key(figures, figures)
    assert without == 3  # both tables of level 0, and one of level 1
    assert searched == pytest.approx(0.1 + 0.2 + 0.25)
    assert blocks_of_an_absent_key([], {}) == (0, 0)


def test_filters_of_other_policies_are_counted_too(tmp_path: Path) -> None:
    """A fuse filter errs once in 256; a filter of prefixes says nothing of keys."""
    fuse = figures_of(tmp_path / "fuse", filter_policy=lsmkv.BinaryFusePolicy(), prefix_extractor=1)
    assert (fuse.number, fuse.rate, fuse.policy) == (1, 1 / 256, "lsmkv.BinaryFuse8")
    assert fuse.size == pytest.approx(KEYS * 10.3 / 8, rel=0.03)
    bloom64 = figures_of(tmp_path / "bloom64", filter_policy=lsmkv.Bloom64Policy(5))
    assert bloom64.policy == "lsmkv.Bloom64"
    assert bloom64.rate == pytest.approx(0.1, rel=0.2)
