"""lsmkv.tools.bench.engines.rocksdb: what the workloads ask of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_engines import check_keys, check_order

from lsmkv.tools.bench.engines.rocksdb import RocksDBEngine

pytest.importorskip("rocksdict")


def test_keys_are_put_read_and_deleted(tmp_path: Path) -> None:
    check_keys(RocksDBEngine(), tmp_path)


def test_entries_are_in_the_order_of_their_keys(tmp_path: Path) -> None:
    check_order(RocksDBEngine(), tmp_path)
