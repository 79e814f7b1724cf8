"""lsmkv.db.snapshot: snapshots read at their sequence, and let go of it once."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from lsmkv.db.snapshot import Snapshot
from lsmkv.errors import ClosedError


class Source:
    """Stands in for a store's handle."""

    def __init__(self) -> None:
        self.released: list[int] = []
        self.asked: list[tuple[Any, ...]] = []

    def get_at(
        self, sequence: int, key: bytes, default: bytes | None, fill_cache: bool, /
    ) -> bytes | None:
        self.asked.append((sequence, key, default, fill_cache))
        return default

    def iterator_at(self, sequence: int, /, **arguments: Any) -> Any:
        self.asked.append((sequence, arguments))
        return iter([b"entry"])

    def release_at(self, sequence: int, /) -> None:
        self.released.append(sequence)


def test_a_snapshot_asks_at_its_sequence() -> None:
    source = Source()
    snapshot = Snapshot(source, 42)
    assert snapshot.get(b"k") is None
    assert snapshot.get(b"k", b"d", verify_checksums=False, fill_cache=False) == b"d"
    assert list(snapshot.iterator(prefix=b"p", reverse=True)) == [b"entry"]
    assert list(snapshot) == [b"entry"]
    assert source.asked == [
        (42, b"k", None, True),
        (42, b"k", b"d", False),
        (42, {"prefix": b"p", "reverse": True}),
        (42, {}),
    ]
    assert source.released == []


def test_closing_releases_once() -> None:
    source = Source()
    snapshot = Snapshot(source, 42)
    assert not snapshot.closed
    snapshot.close()
    snapshot.close()
    assert snapshot.closed
    assert source.released == [42]
    with pytest.raises(ClosedError):
        snapshot.get(b"k")
    with pytest.raises(ClosedError):
        snapshot.iterator()
    with pytest.raises(ClosedError):
        iter(snapshot)
    del snapshot
    gc.collect()
    assert source.released == [42]
    assert source.asked == []


def test_a_block_closes() -> None:
    source = Source()
    with Snapshot(source, 7) as snapshot:
        assert snapshot.get(b"k", b"d") == b"d"
        assert source.released == []
    assert source.released == [7]


def test_forgetting_closes() -> None:
    source = Source()
    Snapshot(source, 7)
    gc.collect()
    assert source.released == [7]
