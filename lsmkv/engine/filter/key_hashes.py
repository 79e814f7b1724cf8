"""The hashes of one key, for all filters that a lookup asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from lsmkv.engine.filter.bloom import leveldb_hash
from lsmkv.engine.filter.hash64 import xxh3_hash

if TYPE_CHECKING:
    from mypy_extensions import i64

    from lsmkv.engine.filter.policy import HashedFilterPolicy


# The next lookup's hashes reuse the memory of the last one's.  Only an object of bytes and numbers
# may be reused (tests/test_architecture.py says why).
@mypyc_attr(acyclic=True, free_list_len=1)
class KeyHashes:
    """A key, and those of its hashes that filters have asked for: each is computed at most once.

    A lookup makes one and passes it to the tables that it asks.  It belongs to one thread.

    >>> hashes = KeyHashes(b"hello")
    >>> hex(hashes.leveldb()), hex(hashes.xxh3())
    ('0xf795964e', '0x1555e8555c62dcfd')
    """

    __slots__ = ("_hasher", "_leveldb", "_other", "_xxh3", "key")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._leveldb: i64 = -1
        self._xxh3: i64 = -1
        self._other: i64 = -1
        self._hasher: i64 = 0  # the identity of the policy whose hash the other one is

    def leveldb(self) -> i64:
        """LevelDB's hash, 32 bits."""
        if self._leveldb < 0:
            self._leveldb = leveldb_hash(self.key)
        return self._leveldb

    def xxh3(self) -> i64:
        """XXH3, 62 bits."""
        if self._xxh3 < 0:
            self._xxh3 = xxh3_hash(self.key)
        return self._xxh3

    def other(self, policy: HashedFilterPolicy) -> i64:
        """The policy's own hash.  The policy must outlive this object, as those of a
        store outlive its lookups."""
        if self._hasher != id(policy):
            self._other = policy.key_hash(self.key)
            self._hasher = id(policy)
        return self._other
