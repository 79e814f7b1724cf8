"""lsmkv.tools.bench.engines.leveldb: lsmkv and plyvel by one adapter."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_engines import SMALL, check_keys, check_order, filled

import lsmkv
from lsmkv.tools.bench.engines.leveldb import LevelDBEngine

MODULES = ["lsmkv", "plyvel"]


@pytest.fixture(params=MODULES)
def engine(request: pytest.FixtureRequest) -> LevelDBEngine:
    pytest.importorskip(request.param)
    return LevelDBEngine(request.param)


def test_keys_are_put_read_and_deleted(engine: LevelDBEngine, tmp_path: Path) -> None:
    check_keys(engine, tmp_path)


def test_entries_are_in_the_order_of_their_keys(engine: LevelDBEngine, tmp_path: Path) -> None:
    check_order(engine, tmp_path)


def test_a_flush_makes_one_table_and_a_compaction_moves_it(
    engine: LevelDBEngine, tmp_path: Path
) -> None:
    store = filled(engine, tmp_path)
    assert sum(store.levels()) == 0
    store.flush()
    assert sum(store.levels()) == 1
    store.compact()
    store.settle()
    assert sum(store.levels()) == 1
    assert store.table_bytes_written() is not None
    store.close()


def test_settings_reach_the_store(tmp_path: Path) -> None:
    store = LevelDBEngine("lsmkv").open(str(tmp_path), SMALL, sync=True)
    store.putter()(b"k", b"v")
    assert store.counters()["log_syncs"] == 1
    store.close()
    assert LevelDBEngine("lsmkv").version == lsmkv.__version__
