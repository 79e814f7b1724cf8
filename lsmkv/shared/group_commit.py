"""The owner commits what members send: :class:`GroupCommit`, which the listener's thread uses.

What has come in meanwhile from all members is committed as one batch, with one write of the log and
at most one sync.  The members are answered as soon as it has happened, which is before the owner's
memtable has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from lsmkv.engine.counters import Counters
from lsmkv.engine.db.tree.info_log import InfoLog
from lsmkv.engine.db.write.writer import Writer
from lsmkv.engine.errors import Error
from lsmkv.engine.format.batch import HEADER_SIZE, BatchReader, Operation, decode_batch
from lsmkv.shared.frames import DONE, NUMBER, frame
from lsmkv.shared.publishing import Publishing
from lsmkv.shared.system.sockets import NO_SIGNAL

_LARGEST_GROUP = 1 << 20
_UNKNOWN: Operation = (b"", None)
"""Stands for an operation that is still to be decoded."""


class MemberConnection:
    """A connection, from the owner's side."""

    def __init__(self, socket: Any, slot: int, pid: int) -> None:
        self.socket = socket
        self.slot = slot
        self.pid = pid
        self.received: list[bytes] = []
        """The beginning of a frame."""
        self.passed = -1
        """A descriptor that has come with what was received."""
        self.missing = 0
        """Bytes of the frame that are still to come, once its header has been received."""
        self.welcome = False
        """True if its HELLO agrees with the owner."""
        self.visits = False
        """True if it reads nothing, and is not a member (``visiting.py``)."""
        self.greeted = False
        """True if it also holds the page, and may ask for anything."""
        self.asked = False
        """True if its last request has not been answered."""
        self.call = 0
        """The number of the last request that was a call."""
        self.busy = False
        """True if a thread carries out a call for it; until it ends, only that thread sends."""


class MemberWrite:
    """A batch of a member that is to be committed."""

    def __init__(
        self, member: MemberConnection, request: int, sync: bool, data: bytes, begin: int, end: int
    ) -> None:
        """Its record is ``data[begin:end]``; :class:`CorruptionError` if that is malformed."""
        self.member = member
        self.request = request
        self.sync = sync
        reader = BatchReader(data, begin, end)
        while reader.step():
            pass
        self.count: int = reader.count
        """Number of operations."""
        self.encoded = memoryview(data)[begin + HEADER_SIZE : end]
        """The record without its header."""
        self.answered = False
        """True if the member knows that the write has happened."""
        self._data = data
        self._begin = begin
        self._end = end

    def operations(self) -> list[Operation]:
        """Return the operations.  O(bytes)."""
        return decode_batch(self._data, self._begin, self._end)[1]


class GroupCommit:
    """Collects the writes of members, and commits them.  One thread calls it."""

    def __init__(
        self,
        writer: Writer,
        publishing: Publishing,
        info_log: InfoLog,
        counters: Counters,
        refuse: Callable[[MemberConnection, int, BaseException], None],
        end: Callable[[Any], None],
    ) -> None:
        """``refuse`` answers a request that has failed; ``end`` ends the connection of a socket."""
        self._writer = writer
        self._publishing = publishing
        self._info_log = info_log
        self._counters = counters
        self._refuse = refuse
        self._end = end
        self._writes: list[MemberWrite] = []  # in the order in which they came

    def add(self, write: MemberWrite) -> None:
        """Queue a write for :meth:`commit_all`."""
        self._writes.append(write)

    def commit_all(self) -> None:
        """Commit what has come in, in its order, in groups that are not too large."""
        writes, self._writes = self._writes, []
        at = 0
        while at < len(writes):
            first = at
            size = 0
            while at < len(writes):
                size += len(writes[at].encoded)
                if size > _LARGEST_GROUP and at > first:
                    break
                at += 1
            self._commit_group(writes[first:at])

    def _commit_group(self, group: list[MemberWrite]) -> None:
        """Commit batches together; the log is synced if one of them asks for it."""
        failure = self.write(group, any(one.sync for one in group), _no_condition)
        if failure is not None and not isinstance(failure, Error) and len(group) > 1:
            for one in group:  # for example a key that the user's comparator cannot take
                self._commit_group([one])
        elif failure is not None:
            for one in group:
                self._refuse(one.member, one.request, failure)

    def write(
        self, group: list[MemberWrite], sync: bool, condition: Callable[[], None]
    ) -> BaseException | None:
        """Write the batches as one, and answer their members if it happens.

        Returns the error if it does not.  With a condition it joins no other batch.

        Fast path: the log has the members' bytes, so a batch's operations are only counted before,
        and decoded after the answer, unless the user's comparator looks at the keys.
        """
        encoded = [one.encoded for one in group]
        slots = [(one.member.slot, one.request, one.count) for one in group]
        if self._writer.probes_keys:
            operations = _operations(group)
            happened = partial(self._complete, group, None)
        else:
            operations = [_UNKNOWN] * sum([one.count for one in group])
            happened = partial(self._complete, group, operations)
        self._publishing.expect(operations, encoded, slots, happened)
        try:
            self._writer.write(operations, sync, condition)
        except Exception as error:
            if not group[0].answered:
                return error
            self._info_log.warn(
                f"A write of members has happened, but the call failed after it: {error!r}"
            )
        self._counters.writes += len(group) - 1  # the writer has counted one batch
        return None

    def _complete(
        self, group: list[MemberWrite], unknown: list[Operation] | None, sequence: int
    ) -> None:
        """Answer the members of a write that has just happened; then see to its operations."""
        self._acknowledge(group, sequence)
        if unknown is not None:
            unknown[:] = _operations(group)

    def _acknowledge(self, group: list[MemberWrite], sequence: int) -> None:
        """Tell members that their batches have happened, the last one with that sequence.

        Perhaps in the thread of another writer, which completes what was interrupted: where a
        member takes no answer, its connection ends, which the listener's thread sees.
        """
        last = NUMBER.pack(sequence)
        for one in group:
            if one.answered:
                continue
            one.answered = True
            one.member.asked = False
            content = frame(DONE, one.request, last)
            try:
                sent = one.member.socket.send(content, NO_SIGNAL)
            except OSError:
                sent = 0
            if sent < len(content):
                self._end(one.member.socket)


def _operations(group: list[MemberWrite]) -> list[Operation]:
    """The operations of all these batches."""
    if len(group) == 1:
        return group[0].operations()
    return [operation for one in group for operation in one.operations()]


def _no_condition() -> None:
    """Keeps a batch from being joined with others'."""
