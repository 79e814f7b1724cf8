"""``max-disk``: what happens when the store takes more than its limit on disk.

The size of a store says little about its keys: what was deleted or overwritten stays in the tables
until it is compacted.  So a store beyond its limit is compacted first.  If its keys alone then take
more than four fifths of the limit, keys are evicted until they do not, by ``maxmemory-policy``;
the next compaction frees their space.  With ``noeviction``, and if nothing can be evicted, commands
that make the store grow are refused while its keys take more than the limit.  They are refused in
any case while the store takes a quarter more than the limit, until it is compacted.

Keys are not drawn at random, since the order of keys has gaps.  A walk over all keys, or over those
that expire, takes a window of them, of which it evicts at most one of ``maxmemory-samples``: those
with the lowest scores.  First these are keys whose use is not known.  Only when a whole walk has
found none, keys are evicted that were used: the quarter with the lowest scores, and so on.
"""

from __future__ import annotations

import random
from typing import Final

from lsmkv.server.encoding import EXPIRY, KEY, STRING, U32, Entry, element_ranges, successor
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.settings import Settings
from lsmkv.server.usage import Usage

KEPT: Final = 0.8
"""The part of the limit that keys take after eviction."""
BURST: Final = 1.25
"""The part of the limit from which on commands are refused while the store is compacted."""
_VICTIMS: Final = 16
"""Keys that are evicted from one window."""
_WINDOWS: Final = 10
"""Windows that one step looks at if it finds nothing to evict."""
_MOST_BARREN: Final = 8
"""Walks in a row after which there is nothing to evict."""
_ELEMENT: Final = 20
"""Bytes of an element of a key that is not in a table yet, at least."""


class Eviction:
    """Chooses and removes keys.

    Call order: ``(owe step*)*``, until ``step`` returns False.
    """

    def __init__(self, space: Keyspace, settings: Settings) -> None:
        self._space = space
        self._settings = settings
        self._at = b""
        """The name of the record at which the walk continues."""
        self._policy = "noeviction"
        self.owed = 0
        """Bytes of keys that are still to be evicted."""
        self._barren = 0
        """The number of consecutive walks that found no key to evict."""
        self._highest = 0
        """Keys with a higher score are not evicted."""
        self._found = False
        """True if this walk has evicted a key."""
        self.apply_settings()

    @property
    def evicts(self) -> bool:
        """True if the policy evicts keys."""
        return self._policy != "noeviction" and self._space.evictable

    def apply_settings(self) -> None:
        """Follow a policy that was changed; uses of keys are noted only where it needs them."""
        if self._settings.eviction != self._policy:
            self._policy, self._at = self._settings.eviction, b""
            kind = self._policy.rpartition("-")[2]
            self._space.usage = Usage(kind == "lfu") if kind in ("lru", "lfu") else None

    def owe(self, size: int) -> None:
        """Request the eviction of keys that take this many bytes."""
        self.owed = size
        self._barren = self._highest = 0
        if self._policy == "volatile-ttl":
            self._at = b""  # the soonest first

    def step(self) -> bool:
        """Evict some keys.  Returns whether more are to be evicted, and there are any."""
        before = self._space.evicted
        for _ in range(_WINDOWS):
            if self._space.evicted == before and self.owed > 0:
                self._evict_from_window()
        return self.owed > 0

    def _evict_from_window(self) -> None:
        usage, kind = self._space.usage, self._policy.rpartition("-")[2]
        samples = 1 if kind == "ttl" else self._settings.samples
        window = self._window(_VICTIMS * samples)
        if not window:
            self.owed = 0
        most = max(1, len(window) // samples)
        if usage is not None:
            window = [name for name in window if usage.score(name) <= self._highest]
            window.sort(key=usage.score)
        elif kind == "random":
            random.shuffle(window)
        for name in window[:most]:
            if self.owed <= 0:
                break
            evicted = self._evict(name)
            self.owed -= evicted
            self._found = self._found or evicted > 0
        if not self._at:
            self._end_walk()

    def _end_walk(self) -> None:
        """End the walk at the last key; the next one may evict more of the keys."""
        self._barren = 0 if self._found else self._barren + 1
        self._found = False
        if self._barren > _MOST_BARREN:
            self.owed = 0
        if self._barren and self._space.usage is not None:
            self._highest = self._space.usage.quantile(self._barren / 4)

    def _window(self, size: int) -> list[bytes]:
        """The names of the next keys, after the last ones the first again; soonest to expire first
        for ``volatile-*``."""
        found = self._names(self._at, size)
        if not found and self._at:
            self._end_walk()
            found = self._names(b"", size)
        self._at = found[-1][0] + b"\0" if len(found) == size else b""
        return [name for _, name in found]

    def _names(self, at: bytes, size: int) -> list[tuple[bytes, bytes]]:
        """Records of the walk from a place on, and the names of the keys that they are about."""
        prefix = EXPIRY if self._policy.startswith("volatile-") else KEY
        live = {U32.pack(database.id) for database in self._space.databases}
        found: list[tuple[bytes, bytes]] = []
        for record, _ in self._space.records.scan(at or prefix, successor(prefix)):
            name = KEY + record[9:] if prefix == EXPIRY else record
            if name[1:5] in live:
                found.append((record, name))
                if len(found) == size:
                    break
        return found

    def _evict(self, name: bytes) -> int:
        """Remove a key.  Returns about how many bytes it takes."""
        space = self._space
        record = space.records.get(name)
        if record is None:
            return 0
        entry = Entry.decode(record)
        size = len(name) + len(record)
        stored = sum(
            space.db.approximate_size(prefix, prefix + b"\xff" * 8)
            for prefix in element_ranges(entry)
        )
        (id_,) = U32.unpack_from(name, 1)
        database = next(one for one in space.databases if one.id == id_)
        key = name[5:]
        space.remove(database, key, entry)
        if space.usage is not None:
            space.usage.forget(name)
        space.evicted += 1
        space.announce("e", "evicted", database, key)
        return size + max(stored, entry.size * (1 if entry.kind == STRING else _ELEMENT))
