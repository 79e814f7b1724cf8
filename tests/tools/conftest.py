"""What tests of several commands share."""

from __future__ import annotations

from pathlib import Path

import pytest
from shard_pairs import PAIRS

import lsmkv
import lsmkv.bulk
from lsmkv.engine.options import KIB


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with three records, two of them hard to print."""
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True) as db:
        db.put(b"a", "café".encode())
        db.put(b"b\n", b"\x1b[31m")
        db.put(b"\xff", b"\\")
        db.flush()
    return path


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two stores: a key in each of them alone, one of both, and one that was changed."""
    contents: list[dict[bytes, bytes]] = [
        {b"gone\n": b"1", b"kept": b"same", b"turned": b"\xff"},
        {b"kept": b"same", b"new": "café".encode(), b"turned": b"2"},
    ]
    for name, content in zip("ab", contents, strict=True):
        with lsmkv.DB(tmp_path / name, create_if_missing=True) as db:
            for key, value in content.items():
                db.put(key, value)
    return tmp_path / "a", tmp_path / "b"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shard set of 1,000 pairs in three shards, to be read."""
    path = tmp_path_factory.mktemp("sets") / "set"
    lsmkv.bulk.build(PAIRS, path, shards=3, block_size=1 * KIB)
    return path
