"""Lab 8, by the engine's own modules."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsmkv.course.labs.asked_tables import candidates
from lsmkv.engine.util.search import SortedKeys

if TYPE_CHECKING:
    from lsmkv.course.starters.lab8_reading import Table


def find_table(level: Sequence[Table], key: bytes) -> Table | None:
    at = bisect_left(level, key, key=lambda table: table.largest)
    return level[at] if at < len(level) and level[at].smallest <= key else None


def tables_to_ask(levels: Sequence[Sequence[Table]], key: bytes) -> list[Table]:
    return candidates([list(level) for level in levels], key)


def block_for(index_keys: Sequence[bytes], key: bytes) -> int | None:
    at = SortedKeys(list(index_keys)).first_at_or_after(key)
    return at if at < len(index_keys) else None


def get(levels: Sequence[Sequence[Table]], key: bytes) -> bytes | None:
    for table in tables_to_ask(levels, key):
        block = block_for(table.index_keys, key)
        if block is None or not table.key_may_match(block, key):
            continue
        for found, value in table.read_block(block):
            if found == key:
                return value
    return None


def expected_reads(misses: int, rate: float, is_present: bool) -> float:
    return misses * rate + is_present
