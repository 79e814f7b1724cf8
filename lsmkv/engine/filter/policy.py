"""The interface of a filter policy (source: LevelDB, ``include/leveldb/filter_policy.h``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

NO_HASH: Final = 0
"""A policy that uses the key itself."""
LEVELDB_HASH: Final = 1
"""A policy that uses LevelDB's hash, 32 bits."""
XXH3_HASH: Final = 2
"""A policy that uses XXH3, 62 bits."""
OTHER_HASH: Final = 3
"""A policy that has its own hash."""


class FilterPolicy(Protocol):
    """A way to summarize a set of keys in a few bytes that never answer *no* for a member.

    Any object with these members is accepted.  The *name* is stored with the filters: a table whose
    filters have another name is read without them.  A policy that also offers ``key_hash`` and
    ``hash_may_match`` (see :class:`HashedFilterPolicy`) lets one Get hash its key once for all
    the tables that it asks.

    Cost: ``create_filter`` is called once per 2 KiB of a table (or once a table) when it is
    written, ``key_may_match`` once for each filter that a Get asks; a *no* saves a block.  If it
    raises, the read raises an :class:`~lsmkv.Error`; if that happens in a flush or compaction,
    every later write does.

    >>> class FirstByte:
    ...     name = "example.FirstByte"
    ...     def create_filter(self, keys):
    ...         return bytes(sorted({key[0] for key in keys if key}))
    ...     def key_may_match(self, key, filter_data):
    ...         return key == b"" or key[0] in filter_data
    >>> import lsmkv
    >>> with lsmkv.DB(":memory:", filter_policy=FirstByte()) as db:
    ...     for key in (b"ant", b"cow"):
    ...         db.put(key, b"")
    ...     db.flush()
    ...     db.may_contain(b"ape"), db.may_contain(b"bee")
    (True, False)
    """

    @property
    def name(self) -> str:
        """Stored on disk.  Change it whenever the encoding changes."""
        ...

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        """The filter for ``keys``, which may repeat and are in the table's order."""
        ...

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        """False only if ``key`` was not among the keys that ``filter_data`` was made from."""
        ...


class HashedFilterPolicy(FilterPolicy, Protocol):
    """A filter policy whose answer depends on the key's hash alone.

    A policy whose ``hash_name`` is ``"leveldb"`` or ``"xxh3"`` uses the hash of LevelDB's Bloom
    filter, or that of :class:`~lsmkv.Bloom64Policy`: a Get computes each at most once, and only if
    a table on its way asks for it.  Without a ``hash_name``, ``key_hash`` is called.

    Errors and costs are those of :class:`FilterPolicy`, except that the key is hashed only once.

    >>> import lsmkv
    >>> policy: HashedFilterPolicy = lsmkv.BloomFilterPolicy(10)
    >>> known = policy.key_hash(b"ant")
    >>> [policy.hash_may_match(known, policy.create_filter([key])) for key in (b"ant", b"bee")]
    [True, False]
    """

    def key_hash(self, key: bytes, /) -> int:
        """The hash, 0 to 2^62 - 1."""
        ...

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        """As ``key_may_match``, for a key whose hash is known."""
        ...


def key_hasher(policy: FilterPolicy) -> HashedFilterPolicy | None:
    """The policy itself if it answers by hash, else None."""
    if hasattr(policy, "key_hash") and hasattr(policy, "hash_may_match"):
        return policy  # type: ignore[return-value]
    return None


def hash_kind(policy: FilterPolicy) -> int:
    """Return the hash that a policy takes: one of the constants above."""
    if key_hasher(policy) is None:
        return NO_HASH
    for owner in type(policy).__mro__:
        if "hash_name" in vars(owner):
            break
        if "key_hash" in vars(owner):
            return OTHER_HASH  # a subclass may have its own hash, and inherits the name
    name: str = getattr(policy, "hash_name", "")
    return {"leveldb": LEVELDB_HASH, "xxh3": XXH3_HASH}.get(name, OTHER_HASH)
