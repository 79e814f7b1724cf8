"""Explanations of a key among a few keys in one table."""

from __future__ import annotations

from typing import Any

from lsmkv import DB, Explanation


def in_table(*keys: bytes, **options: Any) -> DB:
    """A store that holds these keys in one table."""
    db = DB(":memory:", seek_compaction=False, **options)
    for key in keys:
        db.put(key, b"value")
    db.flush()
    return db


def explained(key: bytes, *keys: bytes, **options: Any) -> Explanation:
    with in_table(*keys, **options) as db:
        return db.explain(key)


HOSTILE = [
    b"x" * (1 << 20),
    b"\xff\xfe" * 1000,
    bytes(100),
    "日本語".encode() * 100,
    b"\x1b]0;" * 50,
]
