"""The queue of writers: which writer leads, and whose batches are committed as one group.

The first writer in the queue is the leader: it commits the batches that have queued up after its
own with one write (and one sync) of the log.  The followers wait until their batch is done or they
are first.  ``Writer`` and ``Commit`` are the callers.  (Source: LevelDB,
``DBImpl::Write`` and ``BuildBatchGroup``; the commit delay is PostgreSQL's.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from lsmkv.engine.format.batch import Operation, encoded_size
from lsmkv.engine.util.threads import ThreadLock
from lsmkv.engine.util.ticket import Ticket

_LARGEST_GROUP: Final = 1024 * 1024
_SMALL_BATCH: Final = 128 * 1024


class PendingWrite:
    """A batch that is to be committed, and its outcome; or a group of batches, committed as one."""

    __slots__ = ("_turn", "condition", "done", "error", "members", "nested", "operations", "sync")

    def __init__(
        self,
        operations: list[Operation],
        sync: bool,
        condition: Callable[[], None] | None,
    ) -> None:
        self.condition = condition
        self.operations = operations
        self.sync = sync
        self.done = False
        self.error: BaseException | None = None
        self.members: list[PendingWrite] | None = None
        """The batches of a group, in their order; None for a single batch."""
        self.nested = False
        """True if no writer waits for it: a nested call has left it."""
        self._turn: Any = None  # a lock, once its writer waits

    def finish(self, error: BaseException | None = None) -> None:
        """Note that the batch, or every member of the group, is written or has failed."""
        self.error = error
        self.done = True
        if self.members is not None:
            for member in self.members:
                member.finish(error)

    def ticket(self) -> Ticket:
        """A ticket that :meth:`wake` releases from now on.  Look at ``done`` before waiting."""
        ticket = Ticket()
        self._turn = ticket.lock
        return ticket

    def wake(self) -> None:
        """Wake the batch's writer, if it waits: the batch is done, or the first of the queue."""
        turn = self._turn
        if turn is not None:
            _release(turn)


class WriteQueue:
    """The queue before the writers' lock.  Any thread may call any method, except where a method
    asks for the lock.

    A writer that finds the queue empty and the lock free need not queue.
    """

    def __init__(self, lock: ThreadLock) -> None:
        """``lock`` is the writers' lock, which the leader holds."""
        self._lock = lock
        self.waiting: deque[PendingWrite] = deque()
        """The queued batches.  Callers may look at them."""
        # How many writers were in the queue at the last sync, the leader included.
        self._writers = 0
        self._gate: Any = None  # a lock, released when as many are queued again

    def wait(self, pending: PendingWrite) -> None:
        """Queue up, and return when the batch is done or its writer is to lead.

        A call of :meth:`PendingWrite.wake` is a hint: if a signal has prevented it, the writer
        looks for itself after a tenth of a second.  If the first of the queue does not lead, since
        a signal has taken its writer away, any waiting writer leads after the same time.
        """
        self.waiting.append(pending)
        gate = self._gate
        if gate is not None and len(self.waiting) >= self._writers:
            _release(gate)
        if self._is_first(pending):
            return
        ticket = pending.ticket()
        while not pending.done and not self._is_first(pending):
            if not ticket.acquire_soon() and not self._lock.taken():
                break
        if pending.done:
            self.remove(pending)  # unless its leader has, or was interrupted before it could

    def wake_first(self) -> None:
        """Wake the writer of the first batch in the queue, if there is one."""
        try:
            self.waiting[0].wake()
        except IndexError:
            pass  # the queue is empty

    def first_nested(self) -> PendingWrite | None:
        """The first batch that a nested call has left, if there is one."""
        for pending in list(self.waiting):
            if pending.nested:
                return pending
        return None

    def remove(self, pending: PendingWrite) -> None:
        """Remove a batch from the queue, if it is in it."""
        try:
            self.waiting.remove(pending)
        except ValueError:
            pass

    def delay_commit(self, own: PendingWrite, seconds: float) -> None:
        """Wait for the writers of the last sync to queue again, so that all share the next sync.

        Most of them come back immediately.  Without the delay the first one would be synced alone,
        and all others would wait for that sync.  A single writer is not delayed.  Caller holds the
        writers' lock.
        """
        if self._count(own) >= self._writers:
            return
        if own not in self.waiting:
            self.waiting.appendleft(own)  # else a follower is first, and waits for the lock
        gate = Ticket()
        self._gate = gate.lock
        try:
            if len(self.waiting) < self._writers:
                gate.acquire_soon(seconds)
        finally:
            self._gate = None

    def count_writers(self, own: PendingWrite) -> None:
        """Remember how many writers there are, at the end of a sync.

        Caller holds the writers' lock, and the batches of the group are still in the queue.
        """
        self._writers = self._count(own)

    def build_group(self, own: PendingWrite) -> PendingWrite:
        """The batches to commit together.  Caller holds the writers' lock.

        ``own`` is the leader's batch, which comes first if it did not queue.  A group is limited in
        bytes, and a batch that asks for a sync does not join one that is not synced.  A small
        leader takes at most 128 KiB of other batches, so that it is not delayed much.  A batch with
        a condition is committed alone, so that the condition sees every write before it.  All
        batches stay in the queue until they are done, so that an interrupt of their leader loses
        none.
        """
        queued = list(self.waiting)
        if own not in queued:
            queued.insert(0, own)
        members: list[PendingWrite] = []
        size = 0
        limit = _LARGEST_GROUP
        sync = False
        for pending in queued:
            if pending.done:
                self.remove(pending)  # its writer was interrupted before it could
                continue
            added = encoded_size(pending.operations)
            if not members:
                sync = pending.sync
                if added <= _SMALL_BATCH:
                    limit = added + _SMALL_BATCH
            elif (
                (pending.sync and not sync)
                or size + added > limit
                or pending.condition is not None
                or members[0].condition is not None
            ):
                break
            size += added
            members.append(pending)
        if len(members) == 1:
            return members[0]
        operations = [operation for member in members for operation in member.operations]
        group = PendingWrite(operations, sync, None)
        group.members = members
        return group

    def release_followers(self, batch: PendingWrite) -> None:
        """Remove a batch, or all members of a group, from the queue, and wake their writers."""
        for member in [batch] if batch.members is None else batch.members:
            self.remove(member)
            member.wake()

    def _count(self, own: PendingWrite) -> int:
        """The number of writers in the queue, with the leader."""
        return len(self.waiting) if own in self.waiting else len(self.waiting) + 1

    def _is_first(self, pending: PendingWrite) -> bool:
        try:
            return self.waiting[0] is pending
        except IndexError:
            return False  # the queue is empty: the batch is done


def _release(lock: Any) -> None:
    """Release a lock that another thread may have released already."""
    try:
        lock.release()
    except RuntimeError:
        pass
