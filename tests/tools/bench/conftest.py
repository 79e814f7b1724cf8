"""The engines' rests between two steps are short in tests."""

from __future__ import annotations

import pytest

from lsmkv.tools.bench.engines import leveldb, rocksdb


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leveldb, "_CALM", 0.02)
    monkeypatch.setattr(rocksdb, "_CALM", 0.02)
