"""Transactions of a member: they read its own view, and the owner checks and commits them.

The owner keeps a sequence pinned from before the transaction's first read until it is over.  So no
compaction drops a deletion that came later, and the check sees it (``db/read/changes.py``).
"""

from __future__ import annotations

import os

from mypy_extensions import mypyc_attr

from lsmkv.db.handles.snapshot import Snapshot
from lsmkv.db.read.scan import Bounds
from lsmkv.errors import ConflictError, ForkedError
from lsmkv.format.batch import WriteBatch
from lsmkv.shared.connection import Joined, OwnerGone
from lsmkv.shared.frames import END, NUMBER
from lsmkv.shared.writing import Membership, MemberWriter


@mypyc_attr(native_class=False)
class Registered:
    """A transaction that the owner knows, until it is over."""

    def __init__(self, joined: Joined, number: int) -> None:
        self.joined = joined
        self._number = number
        self._pid = os.getpid()

    @property
    def forked(self) -> bool:
        """Whether this is a copy in a forked child: the transaction is the parent's."""
        return self._pid != os.getpid()

    def take(self) -> int:
        """The number, once: the caller ends the transaction.  0 after that."""
        number, self._number = self._number, 0
        return number

    def end(self) -> None:
        """Let the owner know that the transaction is over."""
        number = self.take()
        if number > 0 and not self.forked:
            try:
                self.joined.tell(END, NUMBER.pack(number))
            except OwnerGone:
                pass  # it ended with the connection

    def __del__(self) -> None:
        # A finalizer may run anywhere: the owner learns of it with the next transaction.
        number = self.take()
        if number > 0:
            self.joined.over.append(number)


@mypyc_attr(native_class=False)
class MemberSnapshot(Snapshot):
    """The snapshot of a member's transaction."""

    registered: Registered | None = None

    def close(self) -> None:
        super().close()
        registered, self.registered = self.registered, None
        if registered is not None:
            registered.end()


@mypyc_attr(native_class=False)
class MemberCommit:
    """Commits a member's transaction, at the owner that it began under."""

    def __init__(self, membership: Membership, registered: Registered) -> None:
        self._membership = membership
        self._registered = registered

    def __call__(
        self,
        batch: WriteBatch,
        sequence: int,
        tables: frozenset[int],
        keys: set[bytes],
        ranges: list[Bounds],
        sync: bool,
    ) -> None:
        if self._registered.forked:
            raise ForkedError("the transaction was begun before a fork")
        writer = MemberWriter(self._registered.joined, self._membership)
        number = self._registered.take()
        operations = list(batch.operations)
        if not writer.commit(number, operations, sequence, keys, ranges, sync):
            raise ConflictError("the owner of the store has gone since the transaction began")
