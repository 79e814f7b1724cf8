"""A store with tables on three levels, a deletion and a memtable, under any filter settings."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from policies import LastByte

import lsmkv
from lsmkv.filter_lab import FilterSetting, parse_setting

SHAPE: dict[str, Any] = {
    "block_size": 512,
    "seek_compaction": False,
    "background": "thread",
    "max_file_size": 32 * 1024,
}
READING: dict[str, Any] = {"read_only": True, "lru_cache_size": 0}


def key(number: int) -> bytes:
    return b"user %08x" % (number * 2654435761 & 0xFFFFFFFF)


def options(setting: FilterSetting, level: int) -> dict[str, Any]:
    """The keywords of ``DB`` that build a level's filters as a setting says."""
    policy = setting.policy(level)
    if policy is None:
        return {"bloom_filter_bits": 0}
    return {"filter_policy": policy, "filter_layout": setting.layout}


def build(path: Path, text: str | FilterSetting, comparator: Any = None) -> Path:
    """The store under one setting: the same tables whatever the setting, but for their filters.

    Levels are made deepest first, each with its own options; nothing is merged in between.
    """
    setting = parse_setting(text) if isinstance(text, str) else text
    shape = SHAPE | ({} if comparator is None else {"comparator": comparator})
    for first in (0, 1):
        put_into(path, range(first, 3000, 2), shape | options(setting, 2))
    with lsmkv.DB(path, **shape, **options(setting, 2)) as db:
        db.compact_range()
    put_into(path, range(2000, 3600, 3), shape | options(setting, 1))
    put_into(path, range(1, 2000, 7), shape | options(setting, 0))
    put_into(path, range(0, 4000, 9), shape | options(setting, 0), deleted=range(0, 50))
    with lsmkv.DB(path, **shape, **options(setting, 0)) as db:
        db.put(key(17), b"in the memtable")
        db.delete(key(18))
    return path


def put_into(
    path: Path, numbers: range, settings: dict[str, Any], deleted: range = range(0)
) -> None:
    rng = random.Random(numbers.start)
    with lsmkv.DB(path, create_if_missing=True, **settings) as db:
        for number in numbers:
            db.put(key(number), rng.randbytes(30))
        for number in deleted:
            db.delete(key(number))
        db.flush()


class LastByteOfBits(LastByte):
    """A filter policy that is not LevelDB's, without a hash, made as for a number of bits."""

    def __init__(self, _bits: float) -> None:
        pass


SETTINGS = [
    "none",
    "block:10",
    "block:3",
    "table:6",
    "block:12,6,2",
    "table:0,4,9",
    "block:8,0",
    "block:7.5",
    "block64:4.5",
    "table64:3",
    "table64:0,2.5,6",
    "fuse",
]
"""Settings of each layout, with bits for all levels or for each."""
