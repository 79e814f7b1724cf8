"""lsmkv.tools.bench.leveldb: what the workloads ask of lsmkv."""

from __future__ import annotations

from pathlib import Path

from benches import SETTINGS, check_keys, check_order, check_tables

import lsmkv
from lsmkv.tools.bench.leveldb import LevelDBEngine

ENGINE = LevelDBEngine("lsmkv")


def test_keys_are_put_read_and_deleted(tmp_path: Path) -> None:
    check_keys(ENGINE, tmp_path)


def test_entries_are_in_the_order_of_their_keys(tmp_path: Path) -> None:
    check_order(ENGINE, tmp_path)


def test_a_flush_makes_one_table_and_a_compaction_moves_it(tmp_path: Path) -> None:
    check_tables(ENGINE, tmp_path)


def test_settings_reach_the_store(tmp_path: Path) -> None:
    store = ENGINE.open(str(tmp_path), SETTINGS, sync=True)
    store.putter()(b"k", b"v")
    assert store.counters()["log_syncs"] == 1
    store.close()
    assert ENGINE.version == lsmkv.__version__
