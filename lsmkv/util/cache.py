"""A cache bounded in bytes (or in whatever unit its charges are counted)."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any, Final, Generic, TypeVar

from librt.threading import Lock

_STALE: Final = 64
"""So many removed entries may wait in the queue, beside as many as there are entries."""
_NO_KEY: Final = object()
_PROBATION_SHARE: Final = 10
"""Those on trial take one part in so many, once others fill the rest."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class CacheEntry:
    """What a cache keeps, under a key or without: a way to it that takes no look into a dict."""

    __slots__ = ("charge", "dropped", "key", "on_probation", "used", "value")

    def __init__(self, key: Any, charge: int) -> None:
        self.key = key
        self.value: Any = None
        """None before it is put in, and once it was removed."""
        self.charge = charge
        self.used = False
        """Whether it is to stay, when its turn to go comes."""
        self.on_probation = False
        """In which of the cache's two queues its turn comes, if it has a value."""
        self.dropped = 0
        """How many the cache had dropped from trial when it dropped this one; 0: it did not."""

    def take(self) -> Any:
        """The value, which stays when its turn to go comes; None once it was removed."""
        value = self.value
        if value is not None:
            self.used = True
        return value


class LRUCache(Generic[K, V]):
    """Keeps values that were used lately while their charges sum to at most ``capacity``.

    What goes is the oldest entry that was not used since it was put in, or since it was spared
    last: *second chance*, which does nearly as well as LRU and lets a hit cost one dict lookup.
    What comes without a key is *on trial* first, in a tenth of the room once others fill the rest.
    What was used there joins them, and the rest is dropped: so blocks that are read once do not
    push out those that are read often.  One that comes back soon was dropped too early, and joins
    them at once (source: S3-FIFO, of Yang, Zhang, Qiu, Yue and Rashmi, *FIFO queues are all you
    need for cache eviction*, SOSP 2023).

    Safe for many threads: a hit takes no lock (it is one dict operation), an insertion does.
    What is larger than the whole capacity is not kept, so a capacity of 0 turns caching off; nor is
    None.  ``get``, ``put``, ``add`` and ``discard`` cost O(1) amortised.  ``ValueError`` for a
    negative capacity.

    >>> cache = LRUCache[str, int](capacity=2)
    >>> for name in "abc":
    ...     _ = cache.put(name, ord(name), charge=1)
    >>> cache.get("a") is None, cache.get("c")
    (True, 99)
    >>> cache.discard("c")
    >>> len(cache), cache.usage
    (1, 1)
    >>> cache.check()
    >>> cache.clear()
    >>> cache.usage
    0

    Stores may share one:

    >>> import lsmkv
    >>> blocks = LRUCache(16 << 20)
    >>> with (
    ...     lsmkv.DB(":memory:", block_cache=blocks) as one,
    ...     lsmkv.DB(":memory:", block_cache=blocks) as two,
    ... ):
    ...     one.options.block_cache is two.options.block_cache
    True
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ValueError(f"a cache cannot hold {capacity} bytes")
        self.capacity = capacity
        self.usage = 0
        self._queue: deque[CacheEntry] = deque()
        """Entries, oldest first; those that were removed meanwhile are passed over, and those that
        came back on trial."""
        self._probation: deque[CacheEntry] = deque()
        """Those on trial, oldest first; the same goes for those that are not, any more."""
        self._probation_usage = 0
        self._probation_capacity = capacity // _PROBATION_SHARE
        self._dropped = 0
        """Entries that left trial unused."""
        self._count = 0  # of both queues, less what was removed
        self._entries: dict[Any, CacheEntry] = {}
        """Those that have a key, by that."""
        self._lock = Lock()

    def __len__(self) -> int:
        """Number of entries."""
        return self._count

    def get(self, key: K) -> V | None:
        """The value under ``key``, which is spared once more; None on a miss."""
        entry = self._entries.get(key)
        value: V | None = None if entry is None else entry.take()
        return value

    def entry(self, key: K) -> CacheEntry | None:
        """What holds the value under ``key``, for who asks for it again and again; None on a miss.

        >>> cache = LRUCache[str, int](capacity=1)
        >>> cache.put("a", 97, charge=1) is cache.entry("a")
        True
        >>> entry = cache.entry("a")
        >>> entry.take()
        97
        >>> cache.clear()
        >>> entry.take() is None, cache.entry("a") is None
        (True, True)
        """
        return self._entries.get(key)

    def put(self, key: K, value: V, charge: int) -> CacheEntry | None:
        """Insert or replace, then evict what is not used until the capacity is kept.

        Returns its entry, or None if the value is None or too large to be kept.
        """
        with self._lock:
            try:
                self._remove(key)
                return self._insert(CacheEntry(key, charge), value)
            except BaseException:  # Ctrl-C, between any two steps
                self._recount()
                raise

    def add(self, value: V, charge: int) -> CacheEntry | None:
        """Insert a value without a key: its entry, which this returns, is the only way to it.

        It is on trial.  Returns None if the value is None or too large to be kept.

        For whoever has the entry at hand: three looks into a dict less, which are the most that an
        insertion costs.

        >>> cache = LRUCache[str, int](capacity=1)
        >>> entry = cache.add(97, charge=1)
        >>> entry.take(), len(cache)
        (97, 1)
        >>> cache.add(98, charge=1).value, entry.value, len(cache)
        (98, None, 1)
        """
        with self._lock:
            try:
                return self._insert(CacheEntry(_NO_KEY, charge), value)
            except BaseException:
                self._recount()
                raise

    def refill(self, entry: CacheEntry, value: V, charge: int) -> None:
        """Put a value into an entry that :meth:`add` returned, unless it still has one.

        It is on trial again, unless it was dropped from trial since it came, and fewer were dropped
        since then than the cache holds.  ``ValueError`` for an entry that has a key: that one may
        have another by now.
        Costs less than a new entry: the old one was looked at just now, while what lies beside it
        in memory, and would be touched in letting go of it, was not.

        >>> cache = LRUCache[str, int](capacity=1)
        >>> entry = cache.add(97, charge=1)
        >>> cache.clear()
        >>> cache.refill(entry, 98, charge=1)
        >>> entry.take(), len(cache)
        (98, 1)
        """
        if entry.key is not _NO_KEY:
            raise ValueError("an entry that has a key is not filled again")
        with self._lock:
            if entry.value is not None:
                return
            try:
                entry.charge = charge
                entry.used = False
                self._insert(entry, value)
            except BaseException:
                self._recount()
                raise

    def discard(self, key: K) -> None:
        """Forget ``key``, if it is here."""
        with self._lock:
            try:
                self._remove(key)
            except BaseException:
                self._recount()
                raise

    def forget(self, entries: list[CacheEntry]) -> None:
        """Remove what is in these entries, which :meth:`add` returned.

        One that is filled again keeps its turn: this is for what nobody will ask for.

        >>> cache = LRUCache[str, int](capacity=1)
        >>> entry = cache.add(97, charge=1)
        >>> cache.forget([entry])
        >>> entry.take() is None, len(cache), cache.usage
        (True, 0, 0)
        """
        with self._lock:
            try:
                for entry in entries:
                    if entry.value is not None:
                        self._drop(entry)
            except BaseException:
                self._recount()
                raise

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            try:
                for entries in (self._queue, self._probation):
                    for entry in entries:
                        _empty(entry)
                self._recount()
            except BaseException:
                self._recount()
                raise

    def check(self) -> None:
        """Assert the invariants: usage is the sum of the charges, within the capacity."""
        with self._lock:
            tried = _standing(self._probation, True)
            charged = sum(entry.charge for entry in tried)
            assert charged == self._probation_usage, (
                f"on trial {self._probation_usage}, charges {charged}"
            )
            kept = tried + _standing(self._queue, False)
            charged = sum(entry.charge for entry in kept)
            assert charged == self.usage, f"usage {self.usage}, charges {charged}"
            assert self.usage <= self.capacity, f"usage {self.usage} > {self.capacity}"
            assert len(kept) == self._count, f"{self._count} entries, {len(kept)} in the queues"
            queued = max(len(self._queue), len(self._probation))
            assert queued <= 2 * self._count + _STALE + 1, f"{queued} wait in a queue"
            keyed = {entry.key: entry for entry in kept if entry.key is not _NO_KEY}
            assert keyed == self._entries, "a key that leads elsewhere"

    # The lock is held in what follows

    def _recount(self) -> None:
        """Let all else be what the queues say."""
        kept = _standing(self._queue, False)
        tried = _standing(self._probation, True)
        self._queue = deque(kept)
        self._probation = deque(tried)
        self._probation_usage = sum(entry.charge for entry in tried)
        self._entries = {entry.key: entry for entry in kept if entry.key is not _NO_KEY}
        self._count = len(kept) + len(tried)
        self.usage = sum(entry.charge for entry in kept) + self._probation_usage

    def _insert(self, entry: CacheEntry, value: Any) -> CacheEntry | None:
        if entry.charge > self.capacity or value is None:
            return None
        if entry.key is _NO_KEY and not self._is_known(entry):
            entry.on_probation = True
            self._probation.append(entry)
            self._probation_usage += entry.charge
        else:
            entry.on_probation = False
            entry.dropped = 0  # else it would be known as long as no other one is dropped
            self._queue.append(entry)
        entry.value = value  # not before: what is in no queue would never be evicted
        if entry.key is not _NO_KEY:
            self._entries[entry.key] = entry
        self._count += 1
        self.usage += entry.charge
        while self.usage > self.capacity:
            self._evict_one()
        limit = 2 * self._count + _STALE
        if len(self._queue) > limit or len(self._probation) > limit:
            self._recount()
        return entry

    def _remove(self, key: K) -> None:
        entry = self._entries.get(key)
        if entry is not None:
            self._drop(entry)

    def _drop(self, entry: CacheEntry) -> None:
        _empty(entry)  # others may keep the entry, but not a file open with it
        if entry.key is not _NO_KEY:
            del self._entries[entry.key]
        self._count -= 1
        self.usage -= entry.charge
        if entry.on_probation:
            self._probation_usage -= entry.charge

    def _is_known(self, entry: CacheEntry) -> bool:
        """Whether fewer were dropped since it was than the cache holds."""
        return entry.dropped > 0 and self._dropped - entry.dropped < self._count

    def _evict_one(self) -> None:
        """Remove the oldest entry that was not used, or pass one over."""
        if self._probation_usage > self._probation_capacity and len(self._probation) > 1:
            self._end_probation()
            return
        if not self._queue:  # an interrupted recount
            self._recount()
            return
        entry = self._queue[0]
        if entry.value is not None and not entry.on_probation:
            if entry.used:
                entry.used = False
                self._queue.rotate(-1)
                return
            self._drop(entry)
        self._queue.popleft()

    def _end_probation(self) -> None:
        """Let the oldest entry on trial stand with the others, if it was used, or drop it."""
        entry = self._probation[0]
        if entry.value is not None and entry.on_probation:
            if entry.used:
                entry.used = False
                self._queue.append(entry)
                entry.on_probation = False  # until here it counts as being where it was
                self._probation_usage -= entry.charge
            else:
                self._drop(entry)
                self._dropped += 1
                entry.dropped = self._dropped
        self._probation.popleft()


def _standing(queue: deque[CacheEntry], on_probation: bool) -> list[CacheEntry]:
    """Whose turn comes in this queue, each once."""
    return list(
        dict.fromkeys(
            [one for one in queue if one.value is not None and one.on_probation == on_probation]
        )
    )


def _empty(entry: CacheEntry) -> Any:
    """Take the value out.  It is returned so that it lives until it is out: letting go of it may
    close a file, and meanwhile a thread without the lock must not find what is half gone."""
    value = entry.value
    entry.value = None
    return value
