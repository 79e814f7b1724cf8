"""README.md, "What can go wrong": a directory that grows though keys are deleted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import lsmkv

_PAIRS = 5_000


def _table_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.ldb"))


@pytest.mark.parametrize("held", ["iterator", "snapshot", "nothing"])
def test_what_keeps_deleted_keys_on_disk(tmp_path: Path, held: str) -> None:
    """An iterator and a snapshot do, until they are closed; so does a compaction that is due."""
    values = random.Random(1)
    with lsmkv.DB(tmp_path, create_if_missing=True) as db:
        for number in range(_PAIRS):
            db.put(b"%05d" % number, values.randbytes(100))
        db.compact_range()
        full = _table_bytes(tmp_path)
        assert full > _PAIRS * 100
        holders = {"iterator": db.iterator, "snapshot": db.snapshot, "nothing": None}
        make = holders[held]
        holder = make() if make else None
        for number in range(_PAIRS):
            db.delete(b"%05d" % number)
        if holder is not None:
            db.compact_range()
        assert _table_bytes(tmp_path) >= full
        if holder is not None:
            holder.close()
        db.compact_range()
        if holder is not None:  # a compaction that it saw has put all into the deepest level
            db.rewrite_tables()
        assert _table_bytes(tmp_path) < full / 10
