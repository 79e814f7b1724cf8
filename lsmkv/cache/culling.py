"""Removing entries: those that have expired, those with a tag, and the first ones in the order of
eviction.  Each step removes a bounded number, and reads only what it removes.
"""

from __future__ import annotations

from typing import Any, Final

from lsmkv.cache.atomic_steps import Step, Steps
from lsmkv.cache.entries import remove
from lsmkv.cache.entry_head import entry_size, parse
from lsmkv.cache.keys import (
    EVICTION,
    EXPIRY,
    HEAD,
    NUMBER_SIZE,
    ORDER,
    POSITION_SIZE,
    moment,
    order_key,
    tag_prefix,
)
from lsmkv.engine.errors import CorruptionError

STEP: Final = 100
"""Entries that one step of ``expire``, ``evict`` and ``clear`` removes."""
CULL_STEP: Final = 10
"""Entries that one step of ``cull`` removes."""


def remove_numbers(step: Step, numbers: list[bytes], indexed: list[bytes]) -> int:
    """Remove the entries with these numbers, and how many there were.

    ``indexed`` are the keys of an index by which they were found: one that leads to no entry is
    removed alone.
    """
    removed = 0
    for number, key in zip(numbers, indexed, strict=True):
        entry = step.get(order_key(number))
        name = b"" if entry is None else HEAD + entry[POSITION_SIZE:]
        data = None if entry is None else step.get(name)
        if data is None:  # only after a repair
            step.delete(key)
            step.changed = True
            continue
        try:
            head = parse(data)
        except CorruptionError:
            head = None
            step.delete(name)
            step.count -= 1
            step.size -= entry_size(name, data, None)  # what it was counted for is not known
            removed += 1
        if head is None or head.number != number:
            step.delete(key)
            step.delete(order_key(number))
            step.changed = True
            continue
        remove(step, name, data, head)
        removed += 1
    return removed


def remove_expired(step: Step, now: float, limit: int) -> int:
    """Remove entries that expired before ``now``, the first ones first."""
    found = step.scan(start=EXPIRY, stop=EXPIRY + moment(now), include_value=False, limit=limit)
    keys = list(found)
    numbers = [key[-NUMBER_SIZE:] for key in keys]
    return remove_numbers(step, numbers, keys)


def evict_first(step: Step, limit: int, excess: int) -> int:
    """Remove the first entries in the order of eviction, until so many bytes are gone."""
    removed = 0
    for key in list(step.scan(prefix=EVICTION, include_value=False, limit=limit)):
        if -step.size >= excess:
            break
        removed += remove_numbers(step, [key[-NUMBER_SIZE:]], [key])
    return removed


def remove_first(step: Step, limit: int) -> int:
    """Remove the first entries in the order of storing."""
    keys = list(step.scan(prefix=ORDER, include_value=False, limit=limit))
    numbers = [key[-NUMBER_SIZE:] for key in keys]
    return remove_numbers(step, numbers, keys)


def remove_tagged(step: Step, tag: bytes, limit: int) -> int:
    """Remove entries with a tag, which is encoded."""
    keys = list(step.scan(prefix=tag_prefix(tag), include_value=False, limit=limit))
    numbers = [key[-NUMBER_SIZE:] for key in keys]
    return remove_numbers(step, numbers, keys)


def remove_all(steps: Steps, some: Any) -> int:
    """Run a step that removes at most :data:`STEP` entries until it changes nothing."""

    def one(step: Step) -> tuple[int, bool]:
        return some(step), step.changed

    count, changed = 0, True
    while changed:
        removed, changed = steps.run(one)
        count += removed
    return count


def first_expiry(steps: Steps) -> float:
    """When the first entry expires, in seconds; infinity if none does."""
    for key in steps.db.iterator(prefix=EXPIRY, include_value=False, limit=1):
        micro = int.from_bytes(key[1 : 1 + POSITION_SIZE], "big")
        return micro / 1e6
    return float("inf")
