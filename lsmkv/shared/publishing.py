"""Publication by the owner of a shared store: :class:`Publishing`.

The engine calls it at the moments that matter (:class:`~lsmkv.engine.db.tree.sharing.Sharing`), and
it writes them into the page.  Storing the page's sequence is the one moment at which a write
happens for every process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from lsmkv.engine.db.tree.sharing import Sharing
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.batch import Operation, batch_header
from lsmkv.engine.format.filenames import SHARED
from lsmkv.engine.leased_name import LeasedName
from lsmkv.shared.counting import MemberCounts
from lsmkv.shared.system.shared_file import VERSIONS_OF_EPOCH, Head, SharedFile
from lsmkv.shared.system.shared_page import SEQUENCE, VERSIONS, SharedPage
from lsmkv.shared.system.system import System

_Expected = tuple[
    list[Operation], list[memoryview], list[tuple[int, int, int]], Callable[[int], None]
]
"""Arguments of :meth:`Publishing.expect`."""


class Publishing(Sharing):
    """The page of an epoch, and what members still need of earlier versions."""

    def __init__(
        self,
        system: System,
        directory: Directory,
        file: SharedFile,
        head: Head,
        listening: Any = None,
    ) -> None:
        """``file`` is of a descriptor that no member of this process leases by.  ``OSError``.

        ``listening`` is the socket that members connect to."""
        super().__init__()
        self.listening = listening
        self._system = system
        self._directory = directory
        self._leaving = self._handing_over = False
        self._closed = False
        self.file = file
        self.head = head
        self.page: SharedPage
        self.page, self.reading = system.pages.make_page(head.epoch, head.token)
        """``reading`` is a descriptor for members."""
        self._version = head.epoch * VERSIONS_OF_EPOCH
        self._numbers: frozenset[int] = frozenset()
        self._born: dict[int, int] = {}  # table: the first version that has it
        self._died: dict[int, int] = {}  # table: the first version that lacks it
        self._expected: _Expected | None = None
        self._noted: list[int] = []  # the slots of the batch that is being committed
        self.epoch = head.epoch
        self.counts = MemberCounts(system)
        """Counters of the members."""
        self.waiting = False
        """True if a member waits for the next write."""
        self.names: Callable[[], list[LeasedName]] | None = None
        """Returns the owner's named leases."""
        self.release_unread: Callable[[], None] | None = None
        """Ends the leases that this process has taken as a member, and no longer needs."""
        self.wake: Callable[[], None] | None = None
        """Called after a write for which a member waits."""

    def attach(self, sequence: int, numbers: frozenset[int]) -> None:
        self._numbers = numbers
        words = self.page.words
        words[VERSIONS] = self._version
        words[SEQUENCE] = sequence

    def expect(
        self,
        operations: list[Operation],
        encoded: list[memoryview],
        slots: list[tuple[int, int, int]],
        happened: Callable[[int], None],
    ) -> None:
        """Expect the next batch of exactly this list from members: their slots, the numbers of
        their requests, and how many operations each has.  ``encoded`` are the parts of the batch's
        record after its header.

        ``happened`` is called with the batch's last sequence as soon as the batch has happened,
        before the memtable has it: no member reads there, and a thread of this process that reads
        waits for it.  It may exchange the operations of the list, whose number stays.  It runs
        under the store's lock, in whichever thread completes the batch, and again if it raises.
        """
        self._expected = operations, encoded, slots, happened

    def begin(self, operations: list[Operation], sequence: int) -> bytes | None:
        expected = self._expected
        if expected is None or expected[0] is not operations:
            return None
        _, encoded, slots, _ = expected
        self._noted = [slot for slot, _, _ in slots]
        first = sequence
        for slot, request, count in slots:
            self.page.note(slot, request, first, count)
            first += count
        return b"".join((batch_header(sequence, len(operations)), *encoded))

    def publish(self, sequence: int) -> None:
        self.page.words[SEQUENCE] = sequence
        if self._noted:  # else the batch is the owner's own, and that of members is still to come
            if self._expected is not None:
                self._expected[3](sequence)
            self._noted = []
            self._expected = None
        super().publish(sequence)
        if self.waiting and self.wake is not None:
            self.wake()

    def withdraw(self) -> None:
        for slot in self._noted:
            self.page.clear(slot)
        self._noted = []

    def leased_names(self) -> list[LeasedName]:
        return [] if self.names is None else self.names()

    def installed(self, numbers: frozenset[int]) -> None:
        before = self._numbers
        if numbers == before:
            return
        version = self._version + 1
        for number in numbers - before:
            # A member that leases the version before may have read the edit that names it.
            self._born[number] = version - 1
        for number in before - numbers:
            self._died[number] = version
        self._numbers = numbers
        self._version = version
        self.page.words[VERSIONS] = version

    def is_leased(self, number: int) -> bool:
        if self.release_unread is not None:
            self.release_unread()
        last = self._died.get(number, self.head.epoch * VERSIONS_OF_EPOCH) - 1
        if self.file.is_leased(self._born.get(number, 0), last):
            return True
        self._born.pop(number, None)
        self._died.pop(number, None)
        return False

    def is_kept_by(self, number: int, versions: list[int]) -> bool:
        """Return True if the leases of these versions keep a table that the store does not need."""
        first = self._born.get(number, 0)
        last = self._died.get(number, self.head.epoch * VERSIONS_OF_EPOCH) - 1
        return any(first <= version <= last for version in versions)

    def is_log_leased(self, number: int) -> bool:
        if self.release_unread is not None:
            self.release_unread()
        return self.file.is_log_leased(number)

    def counted(self) -> list[tuple[int, str, list[int]]]:
        return self.counts.rows()

    def hand_over(self) -> None:
        """Let every process look for the next owner once the store is closed, including this
        one."""
        self._handing_over = True

    def leave(self) -> None:
        """Let ``SHARED`` be removed when the store is closed, unless a member still reads."""
        self._leaving = True

    def close(self) -> None:
        """Give up the page; members keep theirs."""
        if self._closed:
            return
        self._closed = True
        if self.listening is not None:
            self.listening.close()
        if os.getpid() != self.head.pid:
            self._leaving = self._handing_over = False  # in a forked child: the parent is alive
        removes = self._leaving and not self.file.is_leased_at_all()
        if removes or self._handing_over:
            # A member that is just joining would never learn of the owner after this one.
            self.page.end()
        if removes:
            try:
                self._directory.remove(SHARED)
            except OSError:
                pass  # the next owner goes on with it
        self.file.close()
        self.page.close()
        fd, self.reading = self.reading, -1
        if fd >= 0:
            self._system.pages.close_descriptor(fd)


def begin_publishing(system: System, directory: Directory, file: SharedFile) -> Publishing:
    """Begin an epoch; caller holds ``LOCK``.

    The socket has its name before the file states it: no other process can take it first.
    """
    sockets: Any = system.sockets
    listening: list[Any] = []

    def listen(token: int, epoch: int) -> None:
        listening.append(sockets.listen(sockets.address_of(token, epoch)))

    try:
        return Publishing(system, directory, file, file.begin_epoch(listen), listening[-1])
    except BaseException:
        for one in listening:
            one.close()
        raise
