"""lsmkv.tools.bench.engines.lmdb: what the workloads ask of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_engines import check_keys, check_order

from lsmkv.tools.bench.engines.lmdb import LMDBEngine
from lsmkv.tools.bench.settings import Settings

pytest.importorskip("lmdb")


def test_keys_are_put_read_and_deleted(tmp_path: Path) -> None:
    check_keys(LMDBEngine(), tmp_path)


def test_entries_are_in_the_order_of_their_keys(tmp_path: Path) -> None:
    check_order(LMDBEngine(), tmp_path)


def test_a_scan_ends_its_transaction(tmp_path: Path) -> None:
    """LMDB has places for 1,024 readers here, and ``queue`` makes thousands of scans."""
    store = LMDBEngine().open(str(tmp_path), Settings(num=10))
    store.putter()(b"k", b"v")
    for _ in range(1100):
        assert next(iter(store.scan(False))) == (b"k", b"v")
    store.close()
