"""The block cache: data blocks, bounded in bytes, with S3-FIFO's admission policy.

Tables insert their blocks (:meth:`BlockCache.add`) and keep the entries that they get, so a hit
needs neither a key nor a lock.  One cache serves one store or several.

Tables add blocks decompressed, which saves work at each hit, until the cache is full
(:meth:`BlockCache.is_full`).  From then on they add them as they are stored, so that about twice as
many fit, and put the decompressed form of one that is used often in its place
(:meth:`BlockCache.replace`).

*Admission* decides whether a new block stays.  It begins in the *probation queue*, which has a
tenth of the capacity once the *main queue* fills the rest.  A block that is used on probation moves
to the main queue; any other is evicted.  So blocks that are read once do not push out those that
are read often.  A block that comes back soon after its eviction was evicted too early, and goes to
the main queue at once.  The main queue is evicted by *second chance*: its oldest block is evicted,
unless it was used since it arrived there or was last spared.

Source: S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, *FIFO queues are all you need for cache
eviction*, SOSP 2023).  Its ghost queue of the keys of evicted blocks is left out: here the tables
keep the entries themselves, and an entry records when it was evicted.

Fast path: refilling an entry is cheaper than making a new one: the old entry was just read, and
freeing it would touch other memory.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Hashable
from typing import Any, Final, Generic, Never, TypeVar

from librt.threading import Lock

from lsmkv.engine.util.cache_entry import CacheEntry
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.search import IS_COMPILED

_MAX_STALE: Final = 64
"""A queue may be longer than twice the number of values by this many entries."""
_PROBATION_SHARE: Final = 10
"""The probation queue has the capacity divided by this."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BlockCache(Generic[K, V]):
    """Keeps values that are used often or were used recently; their charges sum to at most
    ``capacity``.

    A new value is on probation in a tenth of a full cache, and stays if it is used there (S3-FIFO).
    Safe for many threads: a hit takes no lock, an insertion does.  No call waits for the lock,
    since a finalizer may have interrupted the thread that holds it.  If the lock is taken, the
    value is not kept.  Nor is None, or a value larger than the whole capacity; so a capacity of 0
    turns caching off.
    Every method costs O(1) amortized, except ``clear``, ``check`` and ``forget``.  ``ValueError``
    for a negative capacity.

    Stores may share one:

    >>> import lsmkv
    >>> blocks = BlockCache(16 << 20)
    >>> with (
    ...     lsmkv.DB(":memory:", block_cache=blocks) as one,
    ...     lsmkv.DB(":memory:", block_cache=blocks) as two,
    ... ):
    ...     one.options.block_cache is two.options.block_cache
    True

    Tables add their blocks, and keep the entries:

    >>> cache = BlockCache[None, bytes](capacity=2)
    >>> first, second, third = [cache.add(block, charge=1) for block in (b"a", b"b", b"c")]
    >>> first.take() is None, third.take(), len(cache), cache.usage
    (True, b'c', 2, 2)
    >>> cache.check()
    >>> cache.clear()
    >>> third.take() is None, cache.usage
    (True, 0)

    ``put``, ``get``, ``entry`` and ``discard``, which keep values under keys, are deprecated: lsmkv
    does not use them.

    >>> import warnings
    >>> cache = BlockCache[str, int](capacity=1)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     entry = cache.put("a", 97, charge=1)
    ...     cache.get("a"), cache.entry("a") is entry
    ...     cache.discard("a"), cache.get("a")
    (97, True)
    (None, None)
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ValueError(f"a cache cannot hold {capacity} bytes")
        self.capacity = capacity
        self.usage = 0
        """The sum of the charges of all values."""
        # Both queues have their oldest entry first.  An entry that has no value, or has moved to
        # the other queue, is stale: it does not count, and is skipped.
        self._main: deque[CacheEntry] = deque()
        self._probation: deque[CacheEntry] = deque()
        self._probation_usage = 0
        self._probation_capacity = capacity // _PROBATION_SHARE
        self._evictions = 0  # from the probation queue
        self._count = 0  # of the values in both queues
        self._lock = Lock()
        self._miscounted = False  # values were removed while another call held the lock
        self._keyed: dict[K, CacheEntry] = {}  # entries of put; some may have lost their values

    def __len__(self) -> int:
        """Number of values."""
        return self._count

    def add(self, value: V, charge: int) -> CacheEntry | None:
        """Insert a value on probation, and return its entry, the only way to reach the value.

        Returns None if the value is None or too large to be kept.

        >>> cache = BlockCache[str, int](capacity=1)
        >>> entry = cache.add(97, charge=1)
        >>> entry.take(), len(cache)
        (97, 1)
        >>> cache.add(98, charge=1).value, entry.value, len(cache)
        (98, None, 1)
        """
        if self._lock.locked():
            return None
        with self._lock:
            try:
                return self._insert(CacheEntry(charge), value, True)
            except BaseException:  # Ctrl-C, between any two steps
                self._recount()
                raise

    def refill(self, entry: CacheEntry, value: V, charge: int) -> None:
        """Put a value into an entry that :meth:`add` returned, unless it still has one.

        The value is on probation, unless the entry was evicted from probation recently: the
        evictions since then are fewer than the values in the cache.

        >>> cache = BlockCache[str, int](capacity=1)
        >>> entry = cache.add(97, charge=1)
        >>> cache.clear()
        >>> cache.refill(entry, 98, charge=1)
        >>> entry.take(), len(cache)
        (98, 1)
        """
        if self._lock.locked():
            return
        with self._lock:
            if entry.value is not None:
                return
            try:
                entry.charge = charge
                entry.uses = 0
                self._insert(entry, value, not self._was_evicted_lately(entry))
            except BaseException:
                self._recount()
                raise

    def replace(self, entry: CacheEntry, value: V, charge: int) -> None:
        """Put another form of its value into an entry, which keeps its place in the queue.

        Nothing changes if the entry has lost its value, or the new form is too large to be kept.

        >>> cache = BlockCache[str, str](capacity=2)
        >>> entry = cache.add("packed", charge=1)
        >>> cache.replace(entry, "unpacked", charge=2)
        >>> entry.take(), cache.usage
        ('unpacked', 2)
        """
        if self._lock.locked():
            return
        with self._lock:
            if entry.value is None or charge > self.capacity:
                return
            try:
                more = charge - entry.charge
                entry.value = value
                entry.charge = charge
                self.usage += more
                if entry.on_probation:
                    self._probation_usage += more
                while self.usage > self.capacity:
                    self._evict_one()
            except BaseException:
                self._recount()
                raise

    def is_full(self, charge: int) -> bool:
        """Whether a value of this charge would push out others.

        >>> cache = BlockCache[str, str](capacity=2)
        >>> entry = cache.add("a", charge=1)
        >>> cache.is_full(1), cache.is_full(2)
        (False, True)
        """
        return self.usage + charge > self.capacity

    def forget(self, entries: list[CacheEntry]) -> None:
        """Remove the values of these entries, which will not be used again.  O(entries).

        >>> cache = BlockCache[str, int](capacity=1)
        >>> entry = cache.add(97, charge=1)
        >>> cache.forget([entry])
        >>> entry.take() is None, len(cache), cache.usage
        (True, 0, 0)
        """
        if self._lock.locked():
            self._empty(entries)
            return
        with self._lock:
            try:
                for entry in entries:
                    if entry.value is not None:
                        self._remove(entry)
                self._limit_stale()
            except BaseException:
                self._recount()
                raise

    def clear(self) -> None:
        """Remove every value.  O(values)."""
        if self._lock.locked():
            self._empty([*self._main, *self._probation])
            return
        with self._lock:
            try:
                for queue in (self._main, self._probation):
                    for entry in queue:
                        entry.empty()
                self._recount()
            except BaseException:
                self._recount()
                raise

    def check(self) -> None:
        """Assert the invariants: usage is the sum of the charges, within the capacity."""
        with self._lock:
            if self._miscounted:
                self._recount()
            probation = _live(self._probation, True)
            charged = sum(entry.charge for entry in probation)
            assert charged == self._probation_usage, (
                f"probation usage {self._probation_usage}, charges {charged}"
            )
            live = probation + _live(self._main, False)
            charged = sum(entry.charge for entry in live)
            assert charged == self.usage, f"usage {self.usage}, charges {charged}"
            assert self.usage <= self.capacity, f"usage {self.usage} > {self.capacity}"
            assert len(live) == self._count, f"{self._count} values, {len(live)} in the queues"
            longest = max(len(self._main), len(self._probation))
            assert longest <= 2 * self._count + _MAX_STALE + 1, f"{longest} entries are kept"

    def _empty(self, entries: list[CacheEntry]) -> None:
        """Remove the values of these entries while another call holds the lock, which may be the
        call that this one has interrupted.  The next call that takes the lock counts again."""
        for entry in entries:
            entry.empty()
        self._miscounted = True

    def __reduce__(self) -> Never:
        refuse_copy(
            "a block cache", "it belongs to one process: make one of the same capacity there"
        )

    # Deprecated: values under keys

    def put(self, key: K, value: V, charge: int) -> CacheEntry | None:
        """Deprecated: use :meth:`add`.  Insert or replace the value under ``key``.

        Returns its entry, or None if the value is None or too large to be kept.
        """
        _warn_of_keys("put")
        self._forget_key(key)
        entry = self.add(value, charge)
        if entry is not None:
            self._keyed[key] = entry
        if len(self._keyed) > 2 * self._count + _MAX_STALE:
            self._keyed = {
                name: one for name, one in list(self._keyed.items()) if one.value is not None
            }
        return entry

    def get(self, key: K) -> V | None:
        """Deprecated: use :meth:`CacheEntry.take`.  The value under ``key``, which is then spared
        once; None on a miss."""
        _warn_of_keys("get")
        entry = self._keyed.get(key)
        value: V | None = None if entry is None else entry.take()
        return value

    def entry(self, key: K) -> CacheEntry | None:
        """Deprecated: keep what :meth:`add` returns.  The entry of the value under ``key``; None on
        a miss."""
        _warn_of_keys("entry")
        entry = self._keyed.get(key)
        return None if entry is None or entry.value is None else entry

    def discard(self, key: K) -> None:
        """Deprecated: use :meth:`forget`.  Remove the value under ``key``, if there is one."""
        _warn_of_keys("discard")
        self._forget_key(key)

    def _forget_key(self, key: K) -> None:
        entry = self._keyed.pop(key, None)
        if entry is not None:
            self.forget([entry])

    # The caller of the following methods holds the lock

    def _recount(self) -> None:
        """Drop stale entries, and recompute all counts from the queues."""
        self._miscounted = False
        main = _live(self._main, False)
        probation = _live(self._probation, True)
        self._main = deque(main)
        self._probation = deque(probation)
        self._probation_usage = sum(entry.charge for entry in probation)
        self._count = len(main) + len(probation)
        self.usage = sum(entry.charge for entry in main) + self._probation_usage

    def _insert(self, entry: CacheEntry, value: Any, on_probation: bool) -> CacheEntry | None:
        if entry.charge > self.capacity or value is None:
            return None
        entry.on_probation = on_probation
        if on_probation:
            self._probation.append(entry)
            self._probation_usage += entry.charge
        else:
            entry.evicted_at = 0  # its next stay begins on probation
            self._main.append(entry)
        entry.value = value  # only once it is in a queue: else it would never be evicted
        self._count += 1
        self.usage += entry.charge
        while self.usage > self.capacity:
            self._evict_one()
        self._limit_stale()
        return entry

    def _limit_stale(self) -> None:
        """Drop stale entries if there are many more of them than entries with a value."""
        limit = 2 * self._count + _MAX_STALE
        longest = max(len(self._main), len(self._probation))
        if self._miscounted or longest > limit:
            self._recount()

    def _remove(self, entry: CacheEntry) -> None:
        """Remove the value from an entry, which stays in its queue as a stale one."""
        entry.empty()
        self._count -= 1
        self.usage -= entry.charge
        if entry.on_probation:
            self._probation_usage -= entry.charge

    def _was_evicted_lately(self, entry: CacheEntry) -> bool:
        """Whether the entry was evicted from probation, with fewer evictions since than the cache
        has values."""
        return entry.evicted_at > 0 and self._evictions - entry.evicted_at < self._count

    def _evict_one(self) -> None:
        """Judge the oldest entry of the queue whose turn it is: evict it, spare it, or admit it."""
        if self._probation_usage > self._probation_capacity and len(self._probation) > 1:
            self._end_probation()
            return
        if not self._main:  # an interrupted recount
            self._recount()
            return
        entry = self._main[0]
        if entry.value is not None and not entry.on_probation:
            if entry.uses:
                entry.uses = 0
                self._main.rotate(-1)
                return
            self._remove(entry)
        self._main.popleft()

    def _end_probation(self) -> None:
        """Admit the oldest entry on probation to the main queue if it was used, else evict it."""
        entry = self._probation[0]
        if entry.value is not None and entry.on_probation:
            if entry.uses:
                entry.uses = 0
                self._main.append(entry)
                entry.on_probation = False  # until here it counts as on probation
                self._probation_usage -= entry.charge
            else:
                self._remove(entry)
                self._evictions += 1
                entry.evicted_at = self._evictions
        self._probation.popleft()


def _warn_of_keys(method: str) -> None:
    warnings.warn(
        f"BlockCache.{method} is deprecated: keep the entries that BlockCache.add returns",
        DeprecationWarning,
        stacklevel=1 if IS_COMPILED else 3,  # compiled calls have no frame
    )


def _live(queue: deque[CacheEntry], on_probation: bool) -> list[CacheEntry]:
    """The entries of a queue that are not stale; a refilled one may be in it twice."""
    return list(
        dict.fromkeys(
            [one for one in queue if one.value is not None and one.on_probation == on_probation]
        )
    )
