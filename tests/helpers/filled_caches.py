"""Block caches whose entries have names."""

from __future__ import annotations

from lsmkv.util.block_cache import BlockCache
from lsmkv.util.cache_entry import CacheEntry


class NamedEntries:
    """A block cache, and the entries of its values by name, as a table keeps those of its blocks by
    number."""

    def __init__(self, capacity: int, names: str = "") -> None:
        """A value of charge 1 for each letter of ``names``: its capital."""
        self.cache = BlockCache[None, str](capacity)
        self.entries: dict[str, CacheEntry] = {}
        for name in names:
            self.add(name, name.upper(), 1)

    def add(self, name: str, value: str, charge: int) -> CacheEntry | None:
        """Add a value, in place of the one that has this name."""
        self.forget(name)
        entry = self.cache.add(value, charge)
        if entry is not None:
            self.entries[name] = entry
        return entry

    def take(self, name: str) -> str | None:
        """The value, which is used."""
        entry = self.entries.get(name)
        return None if entry is None else entry.take()

    def forget(self, name: str) -> None:
        entry = self.entries.pop(name, None)
        if entry is not None:
            self.cache.forget([entry])

    @property
    def kept(self) -> str:
        """The names of the values that are in the cache."""
        return "".join(name for name, entry in self.entries.items() if entry.value is not None)
