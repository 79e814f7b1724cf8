"""The shards of one version that a reader has open, each a read-only database."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable
from threading import Lock

from lsmkv.engine.db.db import DB
from lsmkv.shards.version import ShardEntry, VersionDocument


class OpenShard:
    """An open shard.  Its files are closed when the last reader releases it."""

    def __init__(self, entry: ShardEntry, db: DB) -> None:
        self.entry = entry
        self.db = db
        self._close = weakref.finalize(self, db.close)

    def close(self) -> None:
        """Close it now, even if it is being read."""
        self._close()


Opener = Callable[[ShardEntry], OpenShard]


class OpenShards:
    """A version and its shards.  Each shard is opened at its first use.

    Any thread may call any method.
    """

    def __init__(
        self, document: VersionDocument, opener: Opener, carried: dict[str, OpenShard]
    ) -> None:
        """``carried`` are the shards that an earlier version has open, by their paths."""
        self.document = document
        self.firsts = [entry.first for entry in document.shards]
        self._opener = opener
        self._locks = [Lock() for _ in self.firsts]
        self._open = [carried.get(entry.path) for entry in document.shards]

    def __len__(self) -> int:
        return len(self.firsts)

    def index_for(self, key: bytes) -> int:
        """The index of the shard whose range contains ``key``; -1 if there are no shards."""
        return bisect_right(self.firsts, key) - 1

    def shard(self, index: int) -> OpenShard:
        """A shard, opened if necessary.  If opening fails, the next call tries again."""
        found = self._open[index]
        if found is None:
            with self._locks[index]:
                found = self._open[index]
                if found is None:
                    found = self._opener(self.document.shards[index])
                    self._open[index] = found
        return found

    def closed(self, indexes: Iterable[int]) -> list[int]:
        """Those of these shards that are not open, in ascending order, without indexes below 0."""
        return sorted({at for at in indexes if at >= 0 and self._open[at] is None})

    def opened(self) -> dict[str, OpenShard]:
        """The open shards, by their paths."""
        return {shard.entry.path: shard for shard in self._open if shard is not None}
