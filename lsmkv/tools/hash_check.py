"""A test of a store's keys for the weakness of LevelDB's hash, by asking filters for similar keys.

Sequential keys, timestamps and other keys that differ in a few digits have similar 32-bit hashes,
and far more absent ones pass a filter than its bits promise.  ``lsmkv stats`` says so.  The absent
keys are numbers between two neighbors of the store: other keys do not have the weakness.
"""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

import lsmkv
from lsmkv import BloomFilterPolicy
from lsmkv.tools.filter_figures import TableFilters, mean_by_size

MOST_KEYS = 2000
"""Keys that are looked up."""

_TABLES = 32
_LONGEST_NUMBER = 6  # digits in which neighbors differ
_LONGEST_BINARY = 3  # bytes
_FEWEST_ERRORS = 30
_TIMES = 3


class HashCheck(NamedTuple):
    """Answers of LevelDB's filters for absent keys."""

    asked: int
    """Filters asked."""
    false_positives: int
    """Filters that took such a key for one of theirs."""
    expected: float
    """The false-positive rate that the filters' bits promise."""
    by_level: dict[int, float]
    """The rate that was measured on each level whose filters were asked."""

    @property
    def rate(self) -> float:
        """The false-positive rate that was measured; 0.0 if no filter was asked."""
        return self.false_positives / self.asked if self.asked else 0.0

    @property
    def suffers(self) -> bool:
        """True if the rate is more than three times the expected one, and not by chance."""
        return self.false_positives >= _FEWEST_ERRORS and self.rate > _TIMES * self.expected


def check_hash(
    db: lsmkv.DB, filters: dict[lsmkv.TableInfo, TableFilters], seed: int = 1
) -> HashCheck | None:
    """Ask the filters of a store for numbers that its keys leave out.

    None where no table has LevelDB's filters, or where keys are not sequential.  Cost: a few blocks
    of at most 32 tables, and at most 2,000 Gets, which change the counters of ``db``.
    """
    bloom = BloomFilterPolicy().name
    tables = [table for table in filters if filters[table].policy == bloom]
    rng = random.Random(seed)
    absent: list[bytes] = []
    chosen = tables[:: len(tables) // _TABLES + 1]
    for table in chosen:
        with db.iterator(start=table.smallest, include_value=False, fill_cache=False) as keys:
            some = list(itertools.islice(keys, MOST_KEYS // len(chosen) + 1))
        absent += filter(None, (number_between(*pair, rng) for pair in itertools.pairwise(some)))
    if not absent:
        return None
    before = db.stats()
    for key in absent:
        db.get(key, fill_cache=False)
    counted = db.stats() - before
    expected = mean_by_size([(table.size, filters[table].rate) for table in tables])
    by_level = {
        level.level: level.measured_rate
        for level in counted.levels
        if level.measured_rate is not None
    }
    return HashCheck(counted.filters_asked, counted.filter_false_positives, expected, by_level)


def number_between(low: bytes, high: bytes, rng: random.Random) -> bytes | None:
    """A key between two neighbors that differ in a number alone; None if there is none.

    >>> number_between(b"user:0098", b"user:0100", random.Random(1))
    b'user:0099'
    >>> number_between(b"\\x00\\x04", b"\\x00\\x06", random.Random(1))
    b'\\x00\\x05'
    >>> number_between(b"ant", b"antelope", random.Random(1)) is None
    True
    """
    if len(low) != len(high):
        return None
    at = next(at for at in range(len(low)) if low[at] != high[at])
    first, last = low[at:], high[at:]
    if first.isdigit() and last.isdigit() and len(first) <= _LONGEST_NUMBER:
        if int(last) - int(first) < 2:
            return None
        number = rng.randrange(int(first) + 1, int(last))
        return low[:at] + b"%0*d" % (len(first), number)
    if len(first) > _LONGEST_BINARY:
        return None
    below, above = int.from_bytes(first, "big"), int.from_bytes(last, "big")
    if above - below < 2:
        return None
    return low[:at] + rng.randrange(below + 1, above).to_bytes(len(first), "big")
