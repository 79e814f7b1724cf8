"""Stores that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lsmkv

TINY: dict[str, Any] = {
    "write_buffer_size": 2048,
    "max_file_size": 2048,
    "block_size": 256,
    "compression": None,
}
KEYS = [b"%03d" % number for number in range(300)]


def fill(db: lsmkv.DB, keys: list[bytes], text: bytes) -> None:
    for key in keys:
        db.put(key, text * 10)


def scattered(path: Path, text: bytes = b"value") -> None:
    """A store of many tables with disjoint ranges, one or two levels below level 0."""
    with lsmkv.DB(path, create_if_missing=True, **TINY) as db:
        fill(db, KEYS, text)
        db.compact_range()
