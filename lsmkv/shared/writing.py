"""A member's writes: :class:`MemberWriter` sends them to the owner.

If the owner goes before it has answered, the handle joins the next owner, or becomes it
(:meth:`Membership._resolve`).  :func:`fate_of` says what became of the request:

===========  ===========================================  =========================================
fate         found                                        what follows
===========  ===========================================  =========================================
NOT_WRITTEN  it was not sent, or the owner has answered   the next owner is asked
             that it closes the store
NOT_WRITTEN  the page does not note it, and its owner is  the next owner is asked
             dead: it was killed before it began
NOT_WRITTEN  the page notes it with a sequence that the   the next owner is asked
             next owner has not recovered: the log did
             not hold it
WRITTEN      the page notes it with a sequence that the   it has happened; the log is synced if it
             next owner has recovered                     asks for that
UNKNOWN      there is no next owner                       :class:`OutcomeUnknownError`
UNKNOWN      the owner is the same one, so that its page  :class:`OutcomeUnknownError`
             may note another connection's request
UNKNOWN      too many owners came since: what the next    :class:`OutcomeUnknownError`
             one has recovered is not noted any more
===========  ===========================================  =========================================

Where there is no next owner, NOT_WRITTEN raises the error of the attempt to find one.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from lsmkv.engine.db.read.scan import Bounds
from lsmkv.engine.db.write.write_path import WritePath
from lsmkv.engine.errors import ConflictError, PermissionDeniedError
from lsmkv.engine.format.batch import Operation, encode_batch
from lsmkv.engine.util.progress import Progress
from lsmkv.shared.connection import OwnerGone, number_in, plain
from lsmkv.shared.frames import WRITE, commit_frame
from lsmkv.shared.joined import Joined
from lsmkv.shared.system.shared_page import SharedPage


class Membership(Protocol):
    """The part of a handle that its writer uses."""

    def _call_owner(
        self, method: str, arguments: dict[str, Any], progress: Progress | None = None
    ) -> Any:
        """Let the owner run a method of the store."""
        ...

    def _resolve(self, joined: Joined, gone: OwnerGone, sync: bool) -> WritePath | None:
        """Find out what became of a request whose owner has gone.

        Joins the next owner, or becomes it.  None if the request was carried out, and made durable
        if it asked for a ``sync``; else what writes from now on.
        """
        ...


class Fate(Enum):
    """The outcome of a request whose owner has gone; the module's table has the reasons."""

    NOT_WRITTEN = 0
    WRITTEN = 1
    UNKNOWN = 2


def fate_of(gone: OwnerGone, page: SharedPage, recovered: int | None) -> Fate:
    """Return the outcome of a request, from its owner's page, after another owner took over.

    ``recovered`` is the last sequence that the next owner has recovered; None if that is unknown.
    """
    if gone.is_undone:
        return Fate.NOT_WRITTEN
    if recovered is None:
        return Fate.UNKNOWN
    request, last = page.noted(gone.slot)
    return Fate.WRITTEN if request == gone.request and last <= recovered else Fate.NOT_WRITTEN


def fate_without_owner(gone: OwnerGone, page: SharedPage) -> Fate:
    """Return the outcome of a request, if there is no next owner."""
    if gone.is_undone or (page.superseded and page.noted(gone.slot)[0] != gone.request):
        return Fate.NOT_WRITTEN
    return Fate.UNKNOWN


class DeniedWriter(WritePath):
    """The writer of a process that may only read: it writes nothing."""

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def log_is_mapped(self) -> bool:
        return False

    def write(
        self,
        operations: list[Operation],
        sync: bool,
        condition: Callable[[], None] | None = None,
    ) -> None:
        raise denied(self._path)

    def write_unless_changed(
        self, operations: list[Operation], sequence: int, keys: list[bytes]
    ) -> None:
        raise denied(self._path)

    def sync(self) -> None:
        raise denied(self._path)

    def flush_memtable(self) -> None:
        raise denied(self._path)


def denied(path: str) -> PermissionDeniedError:
    """The error of a write by a process that may only read."""
    reason = "this process may read the store, but not write to its directory"
    return PermissionDeniedError(errno.EACCES, reason, path)


class MemberWriter(WritePath):
    """Writes of a member, in one epoch.  Any thread may call any method."""

    def __init__(self, joined: Joined, membership: Membership) -> None:
        self._joined = joined
        self._membership = membership

    @property
    def log_is_mapped(self) -> bool:
        return False

    def write(
        self,
        operations: list[Operation],
        sync: bool,
        condition: Callable[[], None] | None = None,
    ) -> None:
        if condition is not None:  # of a transaction that began when this process was the owner
            raise ConflictError("the owner of the store has gone since the transaction began")
        counting = self._joined.counting
        started = counting.now()
        instead = self._send(operations, sync)
        while isinstance(instead, MemberWriter):
            instead = instead._send(operations, sync)
        if instead is not None:
            instead.write(operations, sync)
        counting.wrote(started)

    def _send(self, operations: list[Operation], sync: bool) -> WritePath | None:
        """Write a batch; returns what is to write it instead, if its owner has gone before."""
        content = (b"\1" if sync else b"\0") + encode_batch(0, operations)
        joined = self._joined
        try:
            number_in(joined.ask(plain(WRITE, content), writes=True))
        except OwnerGone as gone:
            return self._membership._resolve(joined, gone, sync)
        return None

    def write_unless_changed(
        self, operations: list[Operation], sequence: int, keys: list[bytes]
    ) -> None:
        if not self.commit(0, operations, sequence, set(keys), [], False):
            raise ConflictError("the owner of the store has gone since the keys were read")

    def commit(
        self,
        transaction: int,
        operations: list[Operation],
        sequence: int,
        keys: set[bytes],
        ranges: list[Bounds],
        sync: bool,
    ) -> bool:
        """Commit a transaction.  False if its owner has gone and has not written it.

        With 0 there is none, and the owner checks the keys as :class:`UnchangedKeys` does.
        """
        batch = encode_batch(0, operations)
        joined = self._joined
        started = joined.counting.now()

        def make(request: int) -> bytes:
            return commit_frame(request, transaction, sequence, sync, keys, ranges, batch)

        try:
            number_in(joined.ask(make, writes=True))
        except OwnerGone as gone:
            if self._membership._resolve(joined, gone, sync) is not None:
                return False
        joined.counting.wrote(started)
        return True

    def sync(self) -> None:
        self._membership._call_owner("sync", {})

    def flush_memtable(self) -> None:
        self._membership._call_owner("flush", {})
