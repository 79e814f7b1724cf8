"""lsmkv.tools.bench.engines.base: what an engine without levels and background work does."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_engines import filled

from lsmkv.tools.bench.engines.base import FOREIGN_FILES, NO_LEVELS
from lsmkv.tools.bench.engines.sqlite import SQLiteEngine


def test_an_engine_without_levels_counts_nothing_and_compacts_nothing(tmp_path: Path) -> None:
    store = filled(SQLiteEngine(), tmp_path)
    store.flush()
    store.settle()
    assert (store.levels(), store.counters(), store.table_bytes_written()) == ([], {}, None)
    with pytest.raises(ValueError, match="no levels"):
        store.compact()
    store.close()


def test_what_engines_cannot_do_are_names_of_workloads_and_studies() -> None:
    from lsmkv.tools.bench.runner import NAMES

    assert {*NO_LEVELS, *FOREIGN_FILES} <= set(NAMES)
