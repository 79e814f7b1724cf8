"""A cache without operations on entries: :class:`OpenCache`, of which ``Cache`` is a subclass.

It opens and closes the store, has the settings and the counters, and sees after each write to
entries that have expired, to the limit, and to the space on disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Final, Literal, Self, Unpack

from lsmkv.cache.atomic_steps import Step, Steps
from lsmkv.cache.checking import check, remove_unowned_values
from lsmkv.cache.codecs import Codec, DefaultCodec
from lsmkv.cache.culling import CULL_STEP, first_expiry, remove_between
from lsmkv.cache.entries import move, restore
from lsmkv.cache.entry_head import CHUNK_SIZE
from lsmkv.cache.front import Front
from lsmkv.cache.keys import (
    CHUNK,
    EVICTION,
    EXPIRY,
    NUMBER_SIZE,
    ORDER,
    PENDING,
    POSITION_SIZE,
    VALUE,
    count_position,
    moment,
)
from lsmkv.cache.recency import Recency
from lsmkv.cache.reclaiming import Reclaiming
from lsmkv.cache.settings import Settings, known
from lsmkv.cache.values import MOST_BEFORE, MOST_INLINE, sweep
from lsmkv.engine.db.db import DB
from lsmkv.engine.env.place import absolute, make_directories, temporary_directory
from lsmkv.engine.errors import CorruptionError, Error, raise_typed
from lsmkv.engine.options import OptionArguments
from lsmkv.shared.shared_db import SharedDB

Eviction = Literal["least-recently-used", "least-recently-stored", "least-frequently-used", "none"]
"""The entries that a full cache removes first."""
OnError = Literal["raise", "skip"]

_UNSET: Final = object()
_LOOK_EVERY: Final = 64
"""Writes after which a handle looks at what other processes have changed, and at the space."""
_LOOK_SHARE: Final = 0.01
"""The share of the limit of which the same holds for the bytes of values."""
_MANY: Final = 1 << 20
"""Entries above which their number is compared with the bytes on disk."""
_EXCESS: Final = 1.05
"""Times the limit, above which a write removes more than ``cull_limit`` entries."""
_EXACT_EXCESS: Final = 1.25
"""The same where the order is exact."""
_LEAST_BUFFER: Final = 1 << 16
_MOST_BUFFER: Final = 2 << 20
_LEAST_FILE, _MOST_FILE = 1 << 17, 2 << 20
_TABLE_CACHE: Final = 6 << 20
"""Bytes of the indexes and filters that a handle keeps of open tables."""
_BLOCK_CACHE: Final = 4 << 20


def wall_clock() -> float:
    """Seconds since 1970, by the system's clock."""
    return time.time()


class _SharedStore(SharedDB):
    """The store of a cache that processes share.

    A step of the cache holds a lock of its thread: no other greenlet may run in the middle.
    """

    _switches = False


class OpenCache:
    """The part of :class:`lsmkv.Cache` that is about the cache as a whole.

    >>> import lsmkv
    >>> cache = lsmkv.Cache(shared=False)
    >>> cache.size_limit, cache.eviction_policy, cache.cull_limit, cache.statistics, cache.recency
    (1073741824, 'least-recently-used', 10, 0, 60.0)
    >>> cache.codec, cache.volume(), cache.check(), cache.directory.count("lsmkv-cache-")
    (DefaultCodec(), 0, [], 1)
    >>> cache.close()
    >>> cache.closed
    True
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        size_limit: int | None = None,
        eviction: Eviction | None = None,
        codec: Codec | None = None,
        shared: bool = True,
        recency: float = 60.0,
        cull_limit: int | None = None,
        statistics: bool | None = None,
        on_error: OnError = "raise",
        clock: Callable[[], float] | None = None,
        **options: Unpack[OptionArguments],
    ) -> None:
        """Open the cache in ``directory``, which is made if there is none.

        Without a directory it is a new one among the system's temporary files, which stays.
        ``size_limit`` is in bytes, 1 GiB by default.  ``eviction`` selects what is removed first
        beyond that: by default the entries that were read longest ago, to ``recency`` seconds.
        ``cull_limit`` (10) bounds how many entries one write removes.  These and ``statistics`` are
        stored, and a cache that is opened without them keeps them.  ``codec`` is
        :class:`~lsmkv.cache.codecs.DefaultCodec` by default.  ``clock`` returns seconds since 1970.
        Other keywords are options of :class:`lsmkv.DB`.

        Raises what opening a store raises, and :class:`~lsmkv.Error` for a store that is not one of
        a cache.
        """
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error is 'raise' or 'skip', not {on_error!r}")
        if not recency >= 0:
            raise ValueError(f"recency is at least 0, not {recency!r}")
        given = {
            "size_limit": size_limit,
            "eviction_policy": eviction,
            "cull_limit": cull_limit,
            "statistics": None if statistics is None else int(statistics),
        }
        self._arguments: dict[str, Any] = {
            "codec": codec,
            "shared": shared,
            "recency": recency,
            "on_error": on_error,
            "clock": clock,
            **options,
        }
        self._codec: Codec = DefaultCodec() if codec is None else codec
        self._decode = self._codec.decode
        self._clock = wall_clock if clock is None else clock
        self._skips = on_error == "skip"
        self._settings = Settings()
        self._writes = self._unseen = 0
        self._closed = False
        self._db = self._open(directory, shared, size_limit, options)
        try:
            self._settings.read(self._db)
            for name, value in given.items():
                if value is not None and value != getattr(self._settings, name):
                    self._settings.write(self._db, name, value)
            self._steps = Steps(self._db, shared)
            self._begin(shared)
            self._get = self._db.get
            self._front = Front(self._steps, self._clock)
            self._reclaiming = Reclaiming(self._db, self._front)
            self._recency = Recency(self._steps, recency, self._clock, self._front.stay)
            self._tracks: Callable[[bytes, float], None] | None = None
            self._statistics = False
            self._by_count = False
            self._next_expiry = first_expiry(self._steps)
            self._apply_settings()
        except BaseException:
            self._db.close()
            raise

    def _open(
        self,
        directory: str | os.PathLike[str] | None,
        shared: bool,
        size_limit: int | None,
        options: OptionArguments,
    ) -> DB:
        where = os.fsdecode(temporary_directory("lsmkv-cache-") if directory is None else directory)
        if "env" not in options and where != ":memory:":
            try:
                where = make_directories(where)
            except OSError as error:
                raise_typed(error)
        self._directory = where
        # A small cache has a small memtable and small tables, to stay near its limit on disk:
        # what a compaction reads is there until its output is whole.
        limit = self._settings.size_limit if size_limit is None else size_limit
        used: OptionArguments = {
            "create_if_missing": True,
            "write_buffer_size": min(max(limit // 16, _LEAST_BUFFER), _MOST_BUFFER),
            "max_file_size": min(max(limit // 256, _LEAST_FILE), _MOST_FILE),
            "table_cache_bytes": _TABLE_CACHE,
            "lru_cache_size": _BLOCK_CACHE,
            "flush_prefix": VALUE.decode(),
        }
        if "filter_policy" not in options:
            used["bloom_filter_bits"] = 10
        if shared:
            return _SharedStore._with_defaults(where, used, options)
        return DB(where, **(used | options))

    def _begin(self, shared: bool) -> None:
        """Take over the state that other handles have left."""
        steps = self._steps
        for kind in (ORDER, CHUNK, PENDING, VALUE):
            for key in self._db.iterator(prefix=kind, include_value=False, reverse=True, limit=1):
                steps.begin_after(key[1 : 1 + NUMBER_SIZE])
        self._see_newest()
        sweep(self._db, self._clock(), alone=not shared)
        if shared:
            steps.merge_if_many()
            steps.refresh()

    def _see_newest(self) -> None:
        """Store after the entries of other handles, although the clock may have been set back
        since."""
        if self._settings.eviction_policy != _BY_COUNT:
            newest = self._db.iterator(prefix=EVICTION, include_value=False, reverse=True, limit=1)
            for key in newest:
                self._steps.see_position(key[1 : 1 + POSITION_SIZE])

    # Settings

    @property
    def directory(self) -> str:
        """The directory of the cache."""
        return self._directory

    @property
    def codec(self) -> Codec:
        """The codec that converts values to bytes."""
        return self._codec

    @property
    def size_limit(self) -> int:
        """Bytes that the entries may take before some are evicted."""
        return self._settings.size_limit

    @property
    def eviction_policy(self) -> str:
        """The policy that selects the entries to evict first."""
        return self._settings.eviction_policy

    @property
    def cull_limit(self) -> int:
        """The most entries that one write removes; with 0 only :meth:`cull` and others remove."""
        return self._settings.cull_limit

    @property
    def statistics(self) -> int:
        """1 if hits and misses are counted."""
        return self._settings.statistics

    @property
    def recency(self) -> float:
        """Seconds to which the order of eviction is exact."""
        return self._recency.recency

    def reset(self, name: str, value: Any = _UNSET) -> Any:
        """Change a setting, and return it; without a ``value``, read what is stored.

        Settings are ``size_limit``, ``eviction_policy``, ``cull_limit`` and ``statistics``.
        ``count``, ``size``, ``hits`` and ``misses`` can be read.  Other handles see a change when
        they read it in this way, or a few writes later.  ``ValueError`` for any other name.  Cost:
        a few Gets; a change from or to ``"least-frequently-used"`` writes each entry's index again.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     cache.reset("cull_limit", 5), cache.reset("cull_limit"), cache.reset("count")
        (5, 5, 0)
        """
        if name in ("count", "size", "hits", "misses"):
            if value is not _UNSET:
                raise ValueError(f"{name} is counted, and cannot be set")
            return getattr(self._steps.totals(), "entries" if name == "count" else name)
        name = known(name)
        if value is _UNSET:
            self._settings.read(self._db)
        else:
            before = self._settings.eviction_policy
            self._recency.write()
            self._settings.write(self._db, name, value)
        self._apply_settings()
        if value is not _UNSET and name == "eviction_policy":
            self._reorder(before == _BY_COUNT, value == _BY_COUNT)
        return getattr(self._settings, name)

    def _apply_settings(self) -> None:
        """Choose the notes of reads, and the place of values."""
        policy = self._settings.eviction_policy
        self._statistics = bool(self._settings.statistics)
        self._by_count = policy == _BY_COUNT
        kept = self._steps.keeps_values
        with self._steps.lock:
            self._steps.keeps_values = policy in _IN_TIME
        if kept and not self._steps.keeps_values:
            self._reclaiming.wait()  # its thread's copies leave values
            remove_unowned_values(self._steps)
        if policy in _IN_TIME and self._recency.recency > 0:
            self._settings.allow_values_beside(self._db)
            self._most_inline, self._most_small = MOST_BEFORE, CHUNK_SIZE
        else:
            self._most_inline = self._most_small = MOST_INLINE
        self._tracks = None
        if policy == _BY_USE:
            self._tracks = self._recency.note_use
        elif policy == _BY_COUNT:
            self._tracks = self._recency.note_count

    def _reorder(self, from_count: bool, to_count: bool) -> None:
        """Give each entry a position that the new policy understands."""
        if from_count == to_count:
            return
        now = self._clock()
        change = partial(_move_some, count_position(0)) if to_count else partial(_restore_some, now)
        numbers = [key[1:] for key in self._db.iterator(prefix=ORDER, include_value=False)]
        for begin in range(0, len(numbers), 100):
            self._steps.run(partial(change, numbers[begin : begin + 100]))

    # Counters

    def __len__(self) -> int:
        """The number of entries; those that have expired and are not removed yet are counted."""
        entries = max(self._steps.totals().entries, 0)
        # list(cache) allocates for them.
        if entries > _MANY and entries > self._reclaiming.on_disk():
            raise CorruptionError(f"{entries:,} entries were counted, more than there are bytes")
        return entries

    def __bool__(self) -> bool:
        """True: a cache without entries is a cache."""
        return True

    def volume(self) -> int:
        """The bytes that the entries take, about: their keys, values and indexes."""
        return self._steps.totals().size

    def stats(self, enable: bool = True, reset: bool = False) -> tuple[int, int]:
        """The numbers of reads that found an entry, and of those that did not.

        They are counted from the first call on, unless it has ``enable=False``.  ``reset`` sets
        them to 0.  What other processes have counted since their last write is not in them.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False, statistics=True) as cache:
        ...     cache.get("ant"), cache.stats()
        (None, (0, 1))
        """
        totals = self._steps.totals()
        if reset:
            self._steps.clear_reads()
        if int(enable) != self._settings.statistics:
            self._settings.write(self._db, "statistics", int(enable))
            self._apply_settings()
        return totals.hits, totals.misses

    def check(self, fix: bool = False, retry: bool = False) -> list[str]:
        """Return the faults of the entries, indexes and counters, one sentence each.

        With ``fix``, they are repaired: damaged entries are removed, and indexes are written again.
        No process may write to the cache during this.  Cost: a read of everything.
        """
        self._reclaiming.wait()
        found = check(self._steps, fix)
        self._next_expiry = first_expiry(self._steps)
        return found

    # What follows a read or a write

    def _expires(self, expiry: float) -> None:
        self._next_expiry = min(self._next_expiry, expiry)

    def _written(self, now: float, expiry: float | None, size: int) -> None:
        """Remove what has expired or exceeds the limit, after a write of a value of that size."""
        if expiry is not None and expiry < self._next_expiry:
            self._next_expiry = expiry
        steps = self._steps
        settings = self._settings
        space = self._reclaiming
        self._writes += 1
        self._unseen += size
        if self._writes % _LOOK_EVERY == 0 or self._unseen > settings.size_limit * _LOOK_SHARE:
            self._unseen = 0
            if steps.shared:
                self._look()
            space.look(steps.size, settings.size_limit)
        if space.delay > 0:
            space.slow_down()
        if settings.cull_limit == 0:
            return
        if now <= self._next_expiry and steps.size < settings.size_limit:
            return
        try:
            self._cull_some(now, settings.cull_limit)
        except OSError:
            pass  # the write has happened, and the next one tries again

    def _look(self) -> None:
        self._steps.refresh()
        self._settings.read(self._db)
        self._apply_settings()
        self._see_newest()
        self._next_expiry = first_expiry(self._steps)

    def _cull_some(self, now: float, limit: int) -> None:
        steps = self._steps
        if now > self._next_expiry:
            limit -= steps.run(partial(_expire_some, now, limit))
            self._next_expiry = first_expiry(steps)
        if limit > 0 and self._settings.eviction_policy != "none":
            size_limit = self._settings.size_limit
            if steps.size >= size_limit and steps.shared:
                steps.refresh()
            if steps.size >= size_limit:
                self._recency.write()
                least = size_limit // 2  # few entries fill a small cache: not all of them go
                _, changed = self._evict_some(limit, least)
                excess = _EXCESS if self._recency.recency > 0 else _EXACT_EXCESS
                while changed and steps.size > size_limit * excess:
                    _, changed = self._evict_some(limit, least)

    def _evict_some(self, limit: int, size: int) -> tuple[int, bool]:
        """Evict at most this many entries, and none once the cache has at most that size; return
        their number, and True if anything was changed."""
        steps = self._steps
        again = False

        def excess() -> int:
            nonlocal again
            if again:  # another process has evicted at the same time
                steps.refresh()
            again = True
            return steps.size - size

        evicted = self._front.evict(limit, excess)
        return evicted.removed, evicted.looked > 0

    def _evict_to_limit(self) -> int:
        """Evict until the cache is within its limit; how many entries."""
        self._recency.write()
        count, changed = 0, True
        while changed and self.volume() > self._settings.size_limit:
            evicted, changed = self._evict_some(CULL_STEP, self._settings.size_limit)
            count += evicted
        self._removed()
        return count

    def _removed(self) -> None:
        """Look at the space on disk, after the removal of many entries."""
        self._reclaiming.look(self._steps.size, self._settings.size_limit)

    def _forgive(self, error: Exception) -> None:
        """Raise an error, unless ``on_error`` is ``"skip"``."""
        if not self._skips:
            raise error

    # Closing, copying and pickling

    @property
    def closed(self) -> bool:
        """True once :meth:`close` was called."""
        return self._closed

    def close(self) -> None:
        """Close the cache.  Closing twice is harmless; any other call raises ``ClosedError``."""
        if self._closed:
            return
        self._closed = True
        try:
            self._recency.write()
            self._steps.settle()
        except (Error, OSError):
            pass  # notes and counters of reads that a failing store does not take
        self._reclaiming.close()
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " (closed)" if self._closed else ""
        return f"<lsmkv.Cache {self._directory!r}{state}>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the cache as its directory and the arguments that opened it; unpickling reopens
        it."""
        return _reopen, (type(self), absolute(self._directory), self._arguments)


_BY_USE: Final = "least-recently-used"
_BY_COUNT: Final = "least-frequently-used"
_IN_TIME: Final = (_BY_USE, "least-recently-stored")
"""Policies under which entries go in the order of time."""


def _reopen(kind: Callable[..., Any], directory: str, arguments: dict[str, Any]) -> Any:
    return kind(directory, **arguments)


def _expire_some(now: float, limit: int, step: Step) -> int:
    return remove_between(step, EXPIRY, EXPIRY + moment(now), limit).removed


def _move_some(position: bytes, numbers: list[bytes], step: Step) -> None:
    for number in numbers:
        move(step, number, position)


def _restore_some(now: float, numbers: list[bytes], step: Step) -> None:
    for number in numbers:
        restore(step, number, now)
