"""The state that the owner of a store publishes: the content of ``STATS.json``.

The file is one JSON object with the fields of :class:`Published`.  The owner rewrites it once a
second (``publisher.py``).  It writes another name first and renames, so a reader never sees half
of an update.  LevelDB ignores the file.

A killed owner leaves its file.  So a reader asks who holds the store's lock, without taking
it: :func:`read_owner` says whether that is the process that wrote the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final, NamedTuple, TypeVar

from lsmkv.engine.counters import LEVEL_COUNTERS, NUM_LEVELS, STORE_COUNTERS
from lsmkv.engine.db.observe.histogram import Histogram
from lsmkv.engine.db.observe.processes import (
    COUNTED,
    ProcessFigures,
    as_plain,
    histogram_as_plain,
)
from lsmkv.engine.db.observe.trace import OPERATIONS
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import CorruptionError, raise_typed
from lsmkv.engine.format.filenames import LOCK, STATS
from lsmkv.engine.leased_name import LeasedName
from lsmkv.engine.stats import LevelStats, Stats

FORMAT: Final = 1
"""The version of the file's content; readers refuse any other."""

MOST_NAMES: Final = 100
"""Leases with names that are published."""
_LARGEST: Final = 1 << 20  # bytes; a file has about ten thousand


class CompactionUnderWay(NamedTuple):
    """A compaction that is being carried out.

    >>> now = CompactionUnderWay(1, 2, 8, bytes=20_000_000, bytes_read=5_000_000, seconds=0.4)
    >>> now.bytes_read / now.bytes
    0.25
    """

    level: int
    """Its inputs are tables of this level and of the next one."""
    files: int
    """Inputs of this level."""
    next_files: int
    """Inputs of the next one."""
    bytes: int
    """The bytes of all inputs."""
    bytes_read: int
    seconds: float
    """Since it began."""


class Published(NamedTuple):
    """A live store at one moment: what its owner publishes.

    >>> Published._fields[:5]
    ('pid', 'time', 'opened', 'stats', 'latencies')
    """

    pid: int
    """The owner's process."""
    time: float
    """The time of publication: seconds since 1970."""
    opened: float
    """The time at which the store was opened."""
    stats: Stats
    latencies: Mapping[str, Histogram]
    """By operation (:data:`OPERATIONS`), since the store was opened."""
    compaction: CompactionUnderWay | None
    flushing: bool
    """True if an immutable memtable waits for its flush, or is being flushed."""
    stalled_seconds: float
    """For how long writers have been waiting for a flush or a compaction; 0.0 if none waits."""
    row_cache_bytes: int
    block_cache_capacity: int
    """Bytes."""
    write_buffer_size: int
    """Bytes at which a memtable is flushed."""
    trace: str | None
    """Path of the trace that the owner writes."""
    epoch: int = 0
    """The epoch of a shared store, counted from 1: the time of one owner; 0 if the store is not
    shared."""
    processes: tuple[ProcessFigures, ...] = ()
    """Counters of each process of a shared store in this epoch; the owner comes first, and
    ``stats`` has the reads of all of them."""
    leased_names: tuple[LeasedName, ...] = ()
    """Leases with names of a shared store, at most 100; those that are waited for come first."""


class Owner(NamedTuple):
    """The process that has a store open, as far as it can be known without opening the store.

    >>> Owner(pid=17, published=None).publishes
    False
    """

    pid: int | None
    """The process that holds the lock; 0 if it is not known which one, None if the lock is free."""
    published: Published | None
    """The last published state, of this owner or of an earlier one that was killed."""

    @property
    def publishes(self) -> bool:
        """True if the file was written by this owner."""
        published = self.published
        if published is None or self.pid is None:
            return False
        return self.pid in (0, published.pid)


def read_owner(directory: Directory) -> Owner:
    """Return the process that has the store in this directory open, and the state that it
    publishes.  Takes no lock.

    Raises :class:`CorruptionError` if the file holds anything else than what is published, and
    :class:`IOError` if it cannot be read.
    """
    try:
        try:
            content = directory.read_file(STATS, _LARGEST)
        except FileNotFoundError:
            content = b""
        except ValueError as error:
            raise _damaged(directory, str(error)) from None
        # Asked after the file was read: a writer that holds the lock now held it when it wrote.
        pid = directory.lock_holder(LOCK)
    except OSError as error:
        raise_typed(error)
    if not content:
        return Owner(pid, None)
    try:
        return Owner(pid, decode(content))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _damaged(directory, f"{type(error).__name__}: {error}") from None


def encode(published: Published) -> bytes:
    """The content of the file."""
    plain = published._asdict()
    plain["format"] = FORMAT
    plain["stats"] = asdict(published.stats)
    plain["latencies"] = {
        operation: histogram_as_plain(latencies)
        for operation, latencies in published.latencies.items()
    }
    plain["processes"] = [as_plain(one) for one in published.processes]
    if published.compaction is not None:
        plain["compaction"] = published.compaction._asdict()
    return json.dumps(plain, separators=(",", ":")).encode() + b"\n"


def decode(content: bytes) -> Published:
    """Decode the output of :func:`encode`.

    ``ValueError``, ``TypeError``, ``KeyError`` or ``RecursionError`` for any other content.
    """
    plain = json.loads(content)
    if plain["format"] != FORMAT:
        raise ValueError(f"format {plain['format']!r} is not {FORMAT}")
    found = plain["latencies"]
    latencies = {name: _histogram(found[name]) for name in OPERATIONS if name in found}
    compaction = plain["compaction"]
    trace = plain["trace"]
    return Published(
        pid=_number(plain["pid"]),
        time=_seconds(plain["time"]),
        opened=_seconds(plain["opened"]),
        stats=_stats(plain["stats"]),
        latencies=latencies,
        compaction=None if compaction is None else _compaction(compaction),
        flushing=bool(plain["flushing"]),
        stalled_seconds=_seconds(plain["stalled_seconds"]),
        row_cache_bytes=_number(plain["row_cache_bytes"]),
        block_cache_capacity=_number(plain["block_cache_capacity"]),
        write_buffer_size=_number(plain["write_buffer_size"]),
        trace=None if trace is None else str(trace),
        epoch=_number(plain.get("epoch", 0)),  # 0.2.0 does not publish these
        processes=_processes(plain.get("processes", [])),
        leased_names=_leased_names(plain.get("leased_names", [])),
    )


def _stats(plain: Any) -> Stats:
    levels = tuple(_level(level) for level in plain["levels"])
    if [level.level for level in levels] != list(range(NUM_LEVELS)):
        raise ValueError("not the levels of a store")
    mapped_log = plain["mapped_log"]
    if type(mapped_log) is not bool:
        raise ValueError(f"not true or false: {mapped_log!r}")
    compression = plain.get("compression", "")  # 0.2.0 does not publish it
    if type(compression) is not str:
        raise ValueError(f"not a codec: {compression!r}")
    known = {"levels": levels, "mapped_log": mapped_log, "compression": compression}
    return _record(Stats, plain, known)


def _level(plain: Any) -> LevelStats:
    rate = plain.get("expected_rate")  # 0.2.0 does not publish it
    if rate is not None and not _seconds(rate) <= 1:
        raise ValueError(f"not a rate: {rate!r}")
    return _record(LevelStats, plain, {"expected_rate": rate})


_Record = TypeVar("_Record", LevelStats, Stats)


def _record(kind: type[_Record], plain: Any, known: dict[str, Any]) -> _Record:
    """A record of numbers, except for the fields that are known already.

    An older owner does not publish a counter that is new: it is 0.
    """
    values = dict(known)
    for field in fields(kind):
        if field.name not in known:
            is_counter = field.name in (LEVEL_COUNTERS if kind is LevelStats else STORE_COUNTERS)
            value = plain.get(field.name, 0) if is_counter else plain[field.name]
            values[field.name] = _seconds(value) if field.type == "float" else _number(value)
    made: _Record = kind(**values)
    return made


def _processes(plain: Any) -> tuple[ProcessFigures, ...]:
    if type(plain) is not list:
        raise ValueError("not a list of processes")
    return tuple([_process(one) for one in plain])


def _process(plain: Any) -> ProcessFigures:
    counters = plain["counters"]
    if type(counters) is not dict:
        raise ValueError("not the counters of a process")
    return ProcessFigures(
        _number(plain["pid"]),
        str(plain["role"]),
        {name: _number(counters.get(name, 0)) for name in COUNTED},
        _histogram(plain["writes"]),
        _histogram(plain["without_owner"]),
    )


def _leased_names(plain: Any) -> tuple[LeasedName, ...]:
    if type(plain) is not list:
        raise ValueError("not a list of leases with names")
    return tuple([_leased_name(*one) for one in plain])


def _leased_name(name: Any, holders: Any, waiters: Any) -> LeasedName:
    held = [None if pid is None else _number(pid) for pid in holders]
    return LeasedName(str(name), tuple(held), tuple([_number(pid) for pid in waiters]))


def _histogram(plain: Any) -> Histogram:
    buckets = [(_number(bucket), _number(count)) for bucket, count in plain["buckets"]]
    return Histogram.from_buckets(buckets, _number(plain["total"]))


def _compaction(plain: Any) -> CompactionUnderWay:
    return CompactionUnderWay(
        _number(plain["level"]),
        _number(plain["files"]),
        _number(plain["next_files"]),
        _number(plain["bytes"]),
        _number(plain["bytes_read"]),
        _seconds(plain["seconds"]),
    )


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"not a number: {value!r}")
    return value


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < float("inf"):
        raise ValueError(f"not a number of seconds: {value!r}")
    return float(value)


def _damaged(directory: Directory, reason: str) -> CorruptionError:
    return CorruptionError(f"not what lsmkv publishes: {reason}", f"{directory.path}/{STATS}", 0)
