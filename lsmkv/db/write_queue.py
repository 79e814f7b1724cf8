"""Writers in line: who is next, and whose batches go together.

The first in line leads, and commits what has queued up behind it with one write (and one sync) of
the log.  The others wait to be told that they are done, or first.  (Source: LevelDB,
``DBImpl::Write`` and ``BuildBatchGroup``.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock as WaitingLock
from typing import Final

from librt.threading import Lock
from mypy_extensions import mypyc_attr

from lsmkv.env.ticket import Ticket
from lsmkv.format.batch import Operation, encoded_size

_LARGEST_GROUP: Final = 1024 * 1024
_SMALL_BATCH: Final = 128 * 1024


@mypyc_attr(free_list_len=1)  # the next one takes the place of the last
class Pending:
    """A batch on its way, and what became of it; or a group of them, which goes as one."""

    __slots__ = (
        "_turn",
        "condition",
        "done",
        "error",
        "first_sequence",
        "log_end",
        "members",
        "operations",
        "sync",
    )

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
        self.members: list[Pending] | None = None
        """Of a group: the batches, in their order."""
        self.first_sequence = 0
        """Once it is being committed; and then"""
        self.log_end = 0
        """where the log ended before."""
        self._turn: WaitingLock | None = None

    def end(self, error: BaseException | None = None) -> None:
        """It, or each of the group, is written, or has failed."""
        self.error = error
        self.done = True
        if self.members is not None:
            for member in self.members:
                member.end(error)

    def ticket(self) -> Ticket:
        """What :meth:`call` releases from now on; whoever waits looks at ``done`` first."""
        turn = WaitingLock()
        turn.acquire()
        self._turn = turn
        return Ticket(turn)

    def call(self) -> None:
        """Tell the writer, if it waits, that it is done or the first of the queue."""
        turn = self._turn
        if turn is not None:
            _release(turn)


class WriteQueue:
    """The line before the writers' lock.  Any thread may call any method, but for :meth:`gather`.

    A writer that finds no line and no leader need not queue.
    """

    def __init__(self, lock: Lock) -> None:
        """``lock`` is the writers': whoever leads holds it."""
        self._lock = lock
        self.waiting: deque[Pending] = deque()
        """The batches in line; for others to look at."""
        self._writers = 0  # that the last sync left: its own, and who had come meanwhile
        self._gate: WaitingLock | None = None  # which opens when so many are in line again

    def wait(self, pending: Pending) -> None:
        """Queue up, until the batch is done, or it is its writer's turn to lead.

        A call is a hint: one that a signal has kept from being made costs a tenth of a second.  So
        does a first of the queue whose writer a signal has taken away: anyone leads for it then.
        """
        self.waiting.append(pending)
        gate = self._gate
        if gate is not None and len(self.waiting) >= self._writers:
            _release(gate)
        if self._is_first(pending):
            return
        ticket = pending.ticket()
        while not pending.done and not self._is_first(pending):
            if not ticket.acquire_soon() and not self._lock.locked():
                break
        if pending.done:
            self.withdraw(pending)  # unless its leader, or one that was interrupted, has

    def call_first(self) -> None:
        """Tell the first in line, if there is one, that it is."""
        try:
            self.waiting[0].call()
        except IndexError:
            pass  # nobody is waiting

    def withdraw(self, pending: Pending) -> None:
        """Take a batch out of the queue, unless it is out already."""
        try:
            self.waiting.remove(pending)
        except ValueError:
            pass

    def delay_commit(self, own: Pending, seconds: float) -> None:
        """Give the writers of the last sync so long to come back, for all in line share the next.

        Most come back at once.  If they were not waited for, whoever is first would be synced
        alone, and all others wait for that.  Where nobody else writes, nothing is waited for.
        """
        if self._count(own) >= self._writers:
            return
        if own not in self.waiting:
            self.waiting.appendleft(own)  # so that nobody is first, and waits for the lock
        gate = WaitingLock()
        gate.acquire()
        self._gate = gate
        try:
            if len(self.waiting) < self._writers:
                gate.acquire(timeout=seconds)
        finally:
            self._gate = None

    def count_writers(self, own: Pending) -> None:
        """Remember how many write, at the end of a sync: who took part is in line still."""
        self._writers = self._count(own)

    def gather(self, own: Pending) -> Pending:
        """The batches to commit together: not too many bytes, and none that would not be synced.

        ``own`` is the leader's, which comes first if it did not queue.  All stay in the queue until
        they are done, whatever interrupts their leader.  A small batch is not made to wait for much
        more than itself, and one with a condition goes alone, so that the condition sees all that
        was written before it.
        """
        heads = list(self.waiting)
        if own not in heads:
            heads.insert(0, own)
        members: list[Pending] = []
        size = 0
        limit = _LARGEST_GROUP
        sync = False
        for head in heads:
            if head.done:
                self.withdraw(head)  # its writer was interrupted before it could
                continue
            added = encoded_size(head.operations)
            if not members:
                sync = head.sync
                if added <= _SMALL_BATCH:
                    limit = added + _SMALL_BATCH
            elif (
                (head.sync and not sync)
                or size + added > limit
                or head.condition is not None
                or members[0].condition is not None
            ):
                break
            size += added
            members.append(head)
        if len(members) == 1:
            return members[0]
        group = Pending([operation for one in members for operation in one.operations], sync, None)
        group.members = members
        return group

    def release_followers(self, batch: Pending) -> None:
        """Take what is done out of the queue, and tell its writers."""
        for member in [batch] if batch.members is None else batch.members:
            self.withdraw(member)
            member.call()

    def _count(self, own: Pending) -> int:
        """Those in line, and the leader."""
        return len(self.waiting) if own in self.waiting else len(self.waiting) + 1

    def _is_first(self, pending: Pending) -> bool:
        try:
            return self.waiting[0] is pending
        except IndexError:
            return False  # it is done


def _release(lock: WaitingLock) -> None:
    """Release a lock that another thread may have released already."""
    try:
        lock.release()
    except RuntimeError:
        pass
