"""Transactions of a member: they read its own view, and the owner checks and commits them.

The classes of the member's half come first; :class:`OwnerTransactions` is the owner's.  The owner
keeps a sequence pinned from before the transaction's first read until it is over.  So no
compaction drops a deletion that came later, and the check sees it (``engine/db/read/changes.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.handles.snapshot import Snapshot
from lsmkv.engine.db.handles.transaction import Commit, ConflictCheck
from lsmkv.engine.db.read.scan import Bounds
from lsmkv.engine.db.tree.store import ReadView, Store
from lsmkv.engine.db.write.unchanged import UnchangedKeys
from lsmkv.engine.errors import ConflictError, CorruptionError, Error, ForkedError
from lsmkv.engine.format.batch import WriteBatch
from lsmkv.shared.connection import OwnerGone
from lsmkv.shared.frames import DONE, END, NUMBER, CommitRequest, frame
from lsmkv.shared.group_commit import GroupCommit, MemberConnection, MemberWrite
from lsmkv.shared.joined import Joined
from lsmkv.shared.writing import Membership, MemberWriter

# The member's half


@mypyc_attr(native_class=False)
class Registered:
    """A transaction that the owner knows, until it is over."""

    def __init__(self, joined: Joined, number: int) -> None:
        self.joined = joined
        self._number = number
        self._pid = os.getpid()

    @property
    def forked(self) -> bool:
        """True if this is a copy in a forked child: the transaction is the parent's."""
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


# The owner's half


@mypyc_attr(native_class=False)
class OwnCommit:
    """Commits a transaction of the owner itself: one that a forked child inherits is its
    parent's."""

    def __init__(self, commit: Commit, store: Store, current: Callable[[], Store]) -> None:
        """``store`` is that in which it reads, and ``current`` returns the one of its handle."""
        self._commit = commit
        self._store = store
        self._current = current
        self._pid = os.getpid()

    def __call__(
        self,
        batch: WriteBatch,
        sequence: int,
        tables: frozenset[int],
        keys: set[bytes],
        ranges: list[Bounds],
        sync: bool,
    ) -> None:
        if self._pid != os.getpid():
            raise ForkedError("the transaction was begun before a fork")
        if self._current() is not self._store:
            raise ConflictError("the owner of the store has gone since the transaction began")
        self._commit(batch, sequence, tables, keys, ranges, sync)


class OwnerTransactions:
    """The sequences that members' transactions keep pinned.  The listener's thread calls it."""

    def __init__(
        self,
        store: Store,
        group: GroupCommit,
        send: Callable[[MemberConnection, bytes], None],
        refuse: Callable[[MemberConnection, int, BaseException], None],
    ) -> None:
        """``send`` sends an answer, and ``refuse`` says why a request was not carried out."""
        self._store = store
        self._group = group
        self._send = send
        self._refuse = refuse
        self._next = 1
        self._begun: dict[int, tuple[MemberConnection, ReadView]] = {}
        """By their numbers; each ends with the connection that it began on."""

    def begin(self, member: MemberConnection, request: int) -> None:
        """Pin the last sequence for a new transaction, and answer its number."""
        number = self._next
        self._next += 1
        try:
            self._begun[number] = member, self._store.read_view()
        except Error as error:
            self._refuse(member, request, error)
            return
        self._send(member, frame(DONE, request, NUMBER.pack(number)))

    def end(self, number: int) -> None:
        """End a transaction, if it has not ended already."""
        begun = self._begun.pop(number, None)
        if begun is not None:
            begun[1].release()

    def end_all(self, member: MemberConnection) -> None:
        """End all transactions of a closed connection."""
        begun = [number for number, (by, _) in self._begun.items() if by is member]
        for number in begun:
            self.end(number)

    def commit(self, member: MemberConnection, request: int, commit: CommitRequest) -> None:
        """Commit, unless what it has read was changed.  :class:`CorruptionError` for a batch that
        no member sends."""
        read: ReadView | None = None
        condition: Callable[[], None]
        try:
            write = MemberWrite(member, request, commit.sync, commit.batch, 0, len(commit.batch))
            if commit.transaction == 0:
                keys = UnchangedKeys(self._store, commit.sequence, list(commit.keys))
                condition = keys.require
            else:
                begun = self._begun.pop(commit.transaction, None)
                if begun is None:
                    raise ConflictError("the transaction began under another owner of the store")
                read = begun[1]
                tables = read.view.version.numbers
                check = ConflictCheck(
                    self._store, commit.sequence, tables, commit.keys, commit.ranges
                )
                if commit.ranges:
                    check.look_ahead()
                condition = check.raise_if_changed
            failure = self._group.write([write], write.sync, condition)
        except CorruptionError:
            raise
        except Exception as error:
            failure = error
        finally:
            if read is not None:
                read.release()
        if failure is not None:
            self._refuse(member, request, failure)
