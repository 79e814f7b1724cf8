"""A lookup in the tables, and what it teaches: which file was read in vain."""

from __future__ import annotations

from lsmkv.db.keys import KIND_VALUE, MAX_SEQUENCE, before_versions, pack
from lsmkv.db.store import Store
from lsmkv.db.version import Version
from lsmkv.db.version_edit import FileMetaData
from lsmkv.errors import CorruptionError
from lsmkv.table.reader import FROM_CACHE, FROM_FILE, RULED_OUT, SharedBlocks


class TableLookup:
    """Looks one key up in a version's tables.

    LevelDB charges a seek to every first file, even where its filter said no; enough lookups of
    absent keys then rewrite a database that nobody wrote to.  Here a file is charged only when a
    block of it was really read, in vain, and a block of a second file had to be read too.
    """

    def __init__(
        self,
        store: Store,
        version: Version,
        fill_cache: bool,
        shared: SharedBlocks | None = None,
    ) -> None:
        """``shared``: blocks at hand, for looking up many keys in order."""
        self._store = store
        self._version = version
        self._fill_cache = fill_cache
        self._shared = shared
        self.found: bytes | None = None
        """The internal key of the version that answered."""
        self.at_hand = False
        """Whether the block that answered was in the cache."""
        self.compaction_due = False
        """Whether this lookup was one too many for some file."""

    def find(self, user_key: bytes, sequence: int) -> tuple[bool, bytes | None]:
        """``(found, value)`` of the newest version at or before ``sequence``.

        ``(True, None)`` is a deletion.  Files are asked newest first, each one's filter before any
        block of it is read.
        """
        store = self._store
        newest = sequence == MAX_SEQUENCE
        key = before_versions(user_key) if newest else pack(user_key, sequence, KIND_VALUE)
        order = user_key if store.order.is_bytewise else store.order.of(user_key)
        hasher = store.hasher
        key_hash = -1 if hasher is None else hasher.key_hash(user_key)
        in_vain: tuple[int, FileMetaData] | None = None
        blocks_read = 0
        for level, file in self._version.candidates(key, order):
            counters = store.counters.reads[level]
            counters.tables_asked += 1
            table = store.tables.find(file)
            outcome, found, value = table.get(
                key, key_hash, counters, self._fill_cache, self._shared, order, newest
            )
            if outcome == RULED_OUT:
                continue
            if outcome == FROM_FILE:
                blocks_read += 1
                if blocks_read == 2 and in_vain is not None:
                    self.compaction_due = self._version.charge_seek(*in_vain)
            if found is not None:
                if len(found) < 8 or found[-8] > KIND_VALUE:
                    raise CorruptionError(f"not an internal key: {found!r}", table.path)
                if found[:-8] == user_key or store.order.compare(found[:-8], user_key) == 0:
                    self.found = found
                    self.at_hand = outcome == FROM_CACHE
                    return True, value if found[-8] == KIND_VALUE else None
            if table.has_filter:
                counters.filter_false_positives += 1
            if outcome == FROM_FILE and in_vain is None:
                in_vain = (level, file)
        return False, None

    def may_contain(self, user_key: bytes) -> bool:
        """False only if no table holds the key.  No data block is read."""
        store = self._store
        key = pack(user_key, MAX_SEQUENCE, KIND_VALUE)
        key_hash = -1 if store.hasher is None else store.hasher.key_hash(user_key)
        for level, file in self._version.candidates(key):
            counters = store.counters.reads[level]
            counters.tables_asked += 1
            if store.tables.find(file).may_contain(key, key_hash, counters):
                return True
        return False
