"""Loads stores, and counts what Gets read in them.  ``timing.py`` times them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lsmkv import DB, BinaryFusePolicy, Bloom64Policy, BloomFilterPolicy, FilterPolicy, Stats
from lsmkv.engine.db.tree.version import max_bytes_for_level
from lsmkv.engine.filter.bloom import predicted_rate
from lsmkv.engine.options import L0_COMPACTION_TRIGGER
from lsmkv.files import BITS_OF_FUSE, Filter
from lsmkv.tools.demo.timing import NOT_TIMED, Times
from lsmkv.tools.filter_figures import FilterFigures

BITS_PER_KEY = 10
FUSE_RATE = 2.0**-BITS_OF_FUSE
"""The false-positive rate of a fuse filter, whose fingerprints have 8 bits."""

_BLOOM = BloomFilterPolicy(BITS_PER_KEY)
_BLOOM64 = Bloom64Policy(BITS_PER_KEY)

LAYOUTS: dict[str, dict[str, Any]] = {
    "off": {"bloom_filter_bits": 0},
    "block": {"filter_policy": _BLOOM, "filter_layout": "block"},
    "table": {"filter_policy": _BLOOM, "filter_layout": "table"},
    "both": {"filter_policy": _BLOOM, "filter_layout": "both"},
    "block64": {"filter_policy": _BLOOM64, "filter_layout": "block"},
    "table64": {"filter_policy": _BLOOM64, "filter_layout": "table"},
    "fuse": {"filter_policy": BinaryFusePolicy(BITS_PER_KEY), "filter_layout": "table"},
}
"""The options in which the stores differ, by the name of their filters."""


def textbook_rate(layout: str) -> float | None:
    """The rate that the formulas give: (1 - e^(-kn/m))^k for Bloom filters; None for no filters."""
    policy = LAYOUTS[layout].get("filter_policy")
    if isinstance(policy, BinaryFusePolicy):
        return FUSE_RATE
    return None if policy is None else predicted_rate(BITS_PER_KEY, policy.probes)


TEXTBOOK_RATE = predicted_rate(BITS_PER_KEY, _BLOOM.probes)
"""The rate of LevelDB's filters."""

READING: dict[str, Any] = {"lru_cache_size": 0, "seek_compaction": False}
"""The options for Gets: no block cache, and no compaction that changes what is measured."""

_BATCH = 1000
_STEP = 100  # Gets between two reports of progress

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Loading:
    """A store that was loaded."""

    layout: str
    seconds: float
    tables_per_level: dict[int, int]
    disk_bytes: int
    """The size of the tables."""


@dataclass(frozen=True)
class Lookups:
    """Measurements of a number of Gets, either all of existing keys or all of absent ones."""

    gets: int
    wrong: int
    """Answers that differ from what was loaded."""
    blocks_read: int
    bytes_read: int
    filters_asked: int
    filter_positives: int
    """Filters that said maybe; for an absent key, each of them is a false positive."""
    times: Times

    @property
    def blocks_per_get(self) -> float:
        """Data blocks read from disk."""
        return self.blocks_read / self.gets

    @property
    def bytes_per_get(self) -> float:
        """Bytes of those blocks."""
        return self.bytes_read / self.gets

    @property
    def checks_per_get(self) -> float:
        """Filters asked."""
        return self.filters_asked / self.gets

    @property
    def positive_rate(self) -> float | None:
        """The share of the filters asked that said maybe; None if none was asked."""
        return self.filter_positives / self.filters_asked if self.filters_asked else None


@dataclass(frozen=True)
class Measurement:
    """A store, and what Gets in it cost."""

    layout: str
    compacted: bool
    tables_per_level: dict[int, int]
    disk_bytes: int
    metadata_reads: int
    """Reads of footers, indexes and filters, once for each table as it was opened."""
    metadata_bytes: int
    identity_check_reads: int
    """Reads of a data block that identify a table, once for each as it was opened."""
    identity_check_bytes: int
    filter_bytes: int
    """The size of all filters, which open tables hold in memory."""
    present: Lookups
    absent: Lookups
    predicted_rate: float | None
    """The mean :attr:`~lsmkv.files.Filter.expected_rate` of the filters asked about absent keys;
    None without filters."""
    filters_answered: int | None
    """Gets of absent keys in which filters were asked and all said no, so that no data block was
    read; None without filters."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON: what was counted, and per Get."""
        plain = asdict(self)
        for name, lookups in (("present", self.present), ("absent", self.absent)):
            plain[name] |= {
                "blocks_per_get": lookups.blocks_per_get,
                "bytes_per_get": lookups.bytes_per_get,
                "checks_per_get": lookups.checks_per_get,
                "microseconds_per_get": lookups.times.per_get,
            }
        plain["measured_rate"] = self.absent.positive_rate
        plain["textbook_rate"] = self.textbook_rate
        return plain

    def bits(self, keys: int) -> float:
        """The size of its filters in bits, for each of its ``keys``."""
        return 8 * self.filter_bytes / keys

    @property
    def textbook_rate(self) -> float | None:
        """:func:`textbook_rate` of its filters."""
        return textbook_rate(self.layout)

    @property
    def overlapping(self) -> int:
        """The largest number of tables that a Get of one key may search."""
        return sum(n if level == 0 else 1 for level, n in self.tables_per_level.items())


class RecordingPolicy:
    """A filter policy that also records the answers and the quality of another one's filters."""

    def __init__(self, policy: FilterPolicy) -> None:
        self._policy = policy
        self.name = policy.name
        self._rate = functools.lru_cache(maxsize=None)(self._rate_of)
        self.asked = 0
        self.positives = 0
        self.rates = 0.0
        """The sum of the predicted false-positive rates of the filters asked."""

    def _rate_of(self, filter_data: bytes) -> float | None:
        return Filter(0, 0, 0, None, None, self.name.encode(), filter_data).expected_rate

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        """The policy's filter for ``keys``."""
        return self._policy.create_filter(keys)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        """The policy's answer."""
        self.asked += 1
        self.rates += self._rate(filter_data) or 0.0
        answer = self._policy.key_may_match(key, filter_data)
        self.positives += answer
        return answer


def load(
    path: str, layout: str, records: Sequence[tuple[bytes, bytes]], advance: Advance
) -> Loading:
    """Make a store of ``records``, flush it to tables and close it.  It must not exist yet."""
    started = time.perf_counter()
    with DB(path, create_if_missing=True, error_if_exists=True, **LAYOUTS[layout]) as db:
        for at in range(0, len(records), _BATCH):
            chunk = records[at : at + _BATCH]
            with db.write_batch() as batch:
                for key, value in chunk:
                    batch.put(key, value)
            advance(len(chunk))
        db.flush()
        seconds = time.perf_counter() - started
        _wait_for_compactions(db)
        stats = db.stats()
    return Loading(layout, seconds, _tables(stats), _size(stats))


def compact(path: str, layout: str) -> None:
    """Merge all of a store's tables into one sorted run."""
    with DB(path, **LAYOUTS[layout]) as db:
        db.compact_range()
        _wait_for_compactions(db)


def measure(
    path: str,
    layout: str,
    present: Sequence[tuple[bytes, bytes]],
    absent: Sequence[bytes],
    advance: Advance,
    *,
    compacted: bool,
    times: tuple[Times, Times] = (NOT_TIMED, NOT_TIMED),
) -> Measurement:
    """Open the store again, and look up records that exist and keys that do not.

    ``times`` are those of Gets of existing keys and of absent ones.
    """
    with DB(path, **READING, **LAYOUTS[layout]) as db:
        hits = _look_up(db, present, times[0], advance)
        misses = _look_up(db, [(key, None) for key in absent], times[1], advance)
        stats = db.stats()
        filters = FilterFigures(path).look(db.tables()).values()
    policy = LAYOUTS[layout].get("filter_policy")
    rate, answered = (None, None) if policy is None else _ask_filters(path, policy, absent)
    return Measurement(
        layout,
        compacted,
        _tables(stats),
        _size(stats),
        stats.metadata_reads,
        stats.metadata_bytes_read,
        stats.identity_check_reads,
        stats.identity_check_bytes_read,
        sum(one.size for one in filters),
        hits,
        misses,
        rate,
        answered,
    )


def _look_up(
    db: DB, wanted: Sequence[tuple[bytes, bytes | None]], times: Times, advance: Advance
) -> Lookups:
    """Get each key, and compare the answer with the right one."""
    before = db.stats()
    wrong = 0
    for at in range(0, len(wanted), _STEP):
        chunk = wanted[at : at + _STEP]
        wrong += sum(db.get(key) != right for key, right in chunk)
        advance(len(chunk))
    after = db.stats()
    asked = after.filters_asked - before.filters_asked
    return Lookups(
        len(wanted),
        wrong,
        after.blocks_read - before.blocks_read,
        after.bytes_read - before.bytes_read,
        asked,
        asked - (after.filter_negatives - before.filter_negatives),
        times,
    )


def _ask_filters(
    path: str, asked_policy: FilterPolicy, absent: Sequence[bytes]
) -> tuple[float | None, int]:
    """Get the absent keys once more, untimed, and look at the filters that are asked.

    Gives the mean rate that their bits predict, and the number of keys that they answered alone.
    """
    policy = RecordingPolicy(asked_policy)
    answered = 0
    with DB(path, **READING, filter_policy=policy) as db:
        for key in absent:
            asked, positives = policy.asked, policy.positives
            db.get(key)
            answered += policy.asked > asked and policy.positives == positives
    return policy.rates / policy.asked if policy.asked else None, answered


def _wait_for_compactions(db: DB) -> None:
    """Wait until no level is over its limit, so that nothing moves while Gets are counted."""
    while any(
        level.files >= L0_COMPACTION_TRIGGER
        if level.level == 0
        else level.bytes >= max_bytes_for_level(level.level)
        for level in db.stats().levels[:-1]
    ):
        time.sleep(0.02)
        db.sync()  # raises the error of a compaction that failed


def _tables(stats: Stats) -> dict[int, int]:
    return {level.level: level.files for level in stats.levels if level.files}


def _size(stats: Stats) -> int:
    return sum(level.bytes for level in stats.levels)
