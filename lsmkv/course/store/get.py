"""Lab 8 in the engine: the path of a Get through the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from lsmkv.course.store.seams import Using, engine

_MOST = (1 << 56) - 1
"""The sequence of a read that sees every version."""


def gets(using: Using) -> None:
    """Use the student's choice of a Get's tables, their order, and the blocks to read."""
    scratch = engine("counters.ReadCounters")
    hashes_of = engine("filter.key_hashes.KeyHashes")

    def make(own: Any) -> Callable[..., tuple[int, int, bytes | None]]:
        def look_up(
            store: Any, version: Any, user_key: bytes, sequence: int, fill_cache: bool
        ) -> tuple[int, int, bytes | None]:
            if sequence != _MOST or not using.in_use():
                return own(store, version, user_key, sequence, fill_cache)  # type: ignore[no-any-return]
            with using.guard.inside():
                unseen = _Uncounted(store, [scratch() for _ in version.levels])
                _, tag, right = own(unseen, version, user_key, sequence, False)
            hashes = hashes_of(user_key)
            levels = [
                [_Asked(using, store, level, file, hashes, fill_cache) for file in files]
                for level, files in enumerate(version.levels)
            ]
            return 0, tag, using.agreed(using.mine.get, (levels, user_key), right)

        return look_up

    using.function("db.read.reader.look_up", make)


class _Uncounted:
    """A store for the engine's own Get beside the student's, which is not to be counted."""

    def __init__(self, store: Any, levels: list[Any]) -> None:
        self.order = store.order
        self.tables = store.tables
        self.counters = self
        self.levels = levels


class _Asked:
    """An open table, as lab 8's Get sees it."""

    def __init__(
        self, using: Using, store: Any, level: int, file: Any, hashes: Any, fill_cache: bool
    ) -> None:
        self.number = file.number
        self.smallest: bytes = file.smallest[:-8]
        self.largest: bytes = file.largest[:-8]
        self._using = using
        self._store = store
        self._file = file
        self._counters = store.counters.levels[level]
        self._hashes = hashes
        self._fill_cache = fill_cache
        self._is_asked = False

    def __repr__(self) -> str:
        return f"table {self.number}"

    @cached_property
    def _table(self) -> Any:
        return self._store.tables.find(self._file)

    @cached_property
    def index_keys(self) -> list[bytes]:
        """One user key for each data block."""
        return [key[:-8] for key in self._table.index.keys]

    def key_may_match(self, block: int, key: bytes) -> bool:
        """Ask the filter of a block."""
        with self._using.guard.inside(False):
            self._count()
            return bool(self._table.filters.may_match(block, self._hashes, self._counters))

    def read_block(self, block: int) -> Sequence[tuple[bytes, bytes | None]]:
        """The entries of a block, from the cache or from the file."""
        with self._using.guard.inside(False):
            self._count()
            _, found = self._table.load_block(block, self._counters, self._fill_cache)
            keys, values = found.entries()
        entries = [
            (key[:-8], value if key[-8] else None) for key, value in zip(keys, values, strict=True)
        ]
        if self._table.has_filter and all(key != self._hashes.key for key, _ in entries):
            self._counters.filter_false_positives += 1
        return entries

    def _count(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._counters.tables_asked += 1
