"""Removing entries: those that have expired, those with a tag, and the first ones in the order of
eviction.  Each step removes a bounded number, and reads only what it removes.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from lsmkv.cache.atomic_steps import Step, Steps
from lsmkv.cache.entries import entry_of, remove, renew
from lsmkv.cache.entry_head import entry_size, parse
from lsmkv.cache.keys import (
    EVICTION_END,
    EXPIRY,
    NUMBER_SIZE,
    POSITION_SIZE,
    order_key,
)
from lsmkv.engine.errors import CorruptionError

STEP: Final = 100
"""Entries that one step of ``expire``, ``evict`` and ``clear`` removes."""
MOST_COPIED: Final = 1 << 20
"""Bytes of values after which a step copies no more."""
CULL_STEP: Final = 10
"""Entries that one step of ``cull`` removes."""


def remove_numbers(step: Step, numbers: list[bytes], indexed: list[bytes]) -> int:
    """Remove the entries with these numbers, and return how many there were.

    ``indexed`` are the keys of an index by which they were found: one that leads to no entry is
    removed alone.
    """
    removed = 0
    for number, key in zip(numbers, indexed, strict=True):
        found = entry_of(step, number)
        if found is None:  # only after a repair
            step.delete(key)
            step.changed = True
            continue
        name, data = found
        try:
            head = parse(data)
        except CorruptionError:
            head = None
            step.delete(name)
            step.count -= 1
            step.size -= entry_size(name, data, None)  # it is unknown in which count it was
            removed += 1
        if head is None or head.number != number:
            step.delete(key)
            step.delete(order_key(number))
            step.changed = True
            continue
        remove(step, name, data, head)
        removed += 1
    return removed


class Removed(NamedTuple):
    """The work of a step at the beginning of an index."""

    removed: int
    looked: int
    """Keys of the index at which it has looked."""
    end: bytes
    """The last one of them."""


def remove_between(step: Step, start: bytes, stop: bytes | None, limit: int) -> Removed:
    """Remove the entries of the first ``limit`` keys of an index from ``start`` up to ``stop``."""
    keys = list(step.scan(start=start, stop=stop, include_value=False, limit=limit))
    numbers = [key[-NUMBER_SIZE:] for key in keys]
    return Removed(remove_numbers(step, numbers, keys), len(keys), keys[-1] if keys else start)


def remove_all(steps: Steps, start: bytes, stop: bytes | None) -> int:
    """The same for all of them, in steps of :data:`STEP`; return the number of entries.

    Each step begins where the last one has ended, and not at deletions, over which a scan is slow.
    """
    count, looked = 0, STEP
    while looked == STEP:
        removed, looked, start = steps.run(partial(_remove_some, start, stop))
        count += removed
    return count


def _remove_some(start: bytes, stop: bytes | None, step: Step) -> Removed:
    return remove_between(step, start, stop, STEP)


def evict_first(
    step: Step, start: bytes, limit: int, excess: int, now: float, keeps: bool = False
) -> Removed:
    """Remove the first entries in the order of eviction, until this many bytes are gone.

    An entry that was read since it was stored is put last instead, once for all its reads (the
    clock of F. J. Corbato, A Paging Experiment with the Multics System, 1968); every one is if it
    ``keeps`` them.  The step looks at ``limit`` entries, and at fewer if their values are large.
    ``start`` is a key before the first entry: between them are deletions, over which a scan is
    slow.
    """
    removed = looked = copied = 0
    for key, mark in list(step.scan(start=start, stop=EVICTION_END, limit=limit)):
        if -step.size >= excess or copied > MOST_COPIED:
            break
        looked += 1
        start = key
        number = key[-NUMBER_SIZE:]
        size = renew(step, number, now) if mark or keeps else None
        if size is None:
            removed += remove_numbers(step, [number], [key])
        else:
            copied += size
    return Removed(removed, looked, start)


def first_expiry(steps: Steps) -> float:
    """The earliest expiration time, in seconds; infinity if no entry expires."""
    for key in steps.db.iterator(prefix=EXPIRY, include_value=False, limit=1):
        micro = int.from_bytes(key[1 : 1 + POSITION_SIZE], "big")
        return micro / 1e6
    return float("inf")
