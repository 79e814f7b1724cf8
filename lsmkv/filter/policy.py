"""What a filter must be able to do (source: LevelDB, ``include/leveldb/filter_policy.h``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class FilterPolicy(Protocol):
    """A way to summarise a set of keys in a few bytes that never say *no* to a member.

    Any object with these members will do.  The *name* is stored beside the filters: a table whose
    filters bear another name is read without them.  A policy that also offers ``key_hash`` and
    ``hash_may_match`` (see :class:`HashedFilterPolicy`) lets one Get hash its key once for all
    the tables that it asks.
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
    """A filter policy whose answer depends on the key's hash alone."""

    def key_hash(self, key: bytes, /) -> int:
        """The hash, 32 bits."""
        ...

    def hash_may_match(self, key_hash: int, filter_data: bytes, /) -> bool:
        """As ``key_may_match``, for a key whose hash is known."""
        ...


def key_hasher(policy: FilterPolicy) -> HashedFilterPolicy | None:
    """The policy itself if it can be asked by hash, else None."""
    if hasattr(policy, "key_hash") and hasattr(policy, "hash_may_match"):
        return policy  # type: ignore[return-value]
    return None
