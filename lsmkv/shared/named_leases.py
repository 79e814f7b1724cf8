"""Named leases of a shared store: its owner grants them, and the next owner knows of them.

``engine/db/handles/named_leases.py`` has the contract, and the queue.  The owner's own threads use
that queue directly.  A member sends a HOLD, which the owner answers when the lease is granted, and
keeps the connection for this lease alone until it sends RELEASE: if the connection ends before,
since its process has died or its thread was interrupted, the owner releases the lease, or drops the
wish.

**When the owner goes**, or is killed, members go on with what they hold.  Each lease of a member is
noted in the file ``SHARED``, by a lock that ends with the process, on a byte that stands for the
lease's name, permit and deadline.  The next owner grants no name that is noted there until the note
is gone or its deadline has passed; no process has to claim anything.  While a caller
waits for such a name, and only then, the owner looks fifty times a second.  A waiting caller asks
the next owner again: the order of arrival begins again with it.  What threads of the old owner held
ends with it: they can no longer write.

No two hold a name, whenever the owner dies.  A member notes its lease before it looks at the page;
the next owner ends the page before it looks at the notes.  So either the next owner sees the note,
or the member sees that its owner is gone, drops the lease, and asks again.

**Deadlocks.**  A HOLD says who asks, and which leases that caller has, so that each owner can find
circles, also among leases that an earlier one has granted.  A member that closes a circle is
answered by :class:`DeadlockError`.  An owner of revision 1 gets none of this, and members of
that revision send nothing: they wait as before.

Left out: a member that is stopped for longer than its limit has no lease any more, and does not
know before it asks (:attr:`NamedLease.held`).  Names are noted by a checksum of 29 bits: if a name
is noted, the next owner holds back all names with the same one.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from typing import Any, Final

from lsmkv.engine.db.handles.named_leases import (
    NEVER,
    Claim,
    LeaseEnd,
    NamedLease,
    NamedLeases,
    Request,
    Waiter,
    Wish,
    checked,
)
from lsmkv.engine.errors import CorruptionError, IOError
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import new_lock
from lsmkv.shared.connection import Connection, OwnerGone, number_in, plain, result_in
from lsmkv.shared.frames import HOLD, RELEASE, RESULT, error_frame, json_frame
from lsmkv.shared.group_commit import MemberConnection
from lsmkv.shared.joined import Joined
from lsmkv.shared.system.shared_file import MOMENTS, NAMES, SharedFile

FINDS_DEADLOCKS: Final = 2
"""The revision (``frames.py``) from which on members say who waits, and what that caller holds."""
_FOR_EVER: Final = MOMENTS - 1
_MOMENTS_OF_A_SECOND: Final = 10


def _number_of(name: bytes, permit: int) -> int:
    """The number by which a permit of a name is noted."""
    return zlib.crc32(b"%d:%s" % (permit, name)) % NAMES


def _moment_after(deadline: float) -> int:
    """The number of a moment that is not before a deadline."""
    if deadline >= NEVER:
        return _FOR_EVER
    return min(math.ceil(deadline * _MOMENTS_OF_A_SECOND) + 1, _FOR_EVER)


# The owner's half


class MemberWish(Wish):
    """A member's wish, and the connection through which it came."""

    def __init__(
        self,
        member: MemberConnection,
        request: int,
        name: bytes,
        permits: int,
        limit: float | None,
        until: float,
        wake: Callable[[Wish], None],
        waiter: Waiter,
    ) -> None:
        super().__init__(name, permits, limit, until, wake, waiter)
        self.member = member
        self.request = request

    @property
    def answer(self) -> bytes:
        """The frame for the member: permit and deadline; None if it has waited long enough."""
        if self.deadlock is not None:
            return error_frame(self.request, self.deadlock)
        result: list[Any] | None = None
        if self.permit >= 0:
            result = [self.permit, None if self.deadline >= NEVER else self.deadline]
        return json_frame(RESULT, self.request, {"result": result})


class OwnerLeases:
    """The queue of a shared store.  Except for :attr:`queue`, for the listener's thread only."""

    def __init__(self, file: SharedFile, ring: Callable[[], None]) -> None:
        """The members of the last owner know that it is gone.  ``ring`` wakes the listener."""
        self._file = file
        self._ring = ring
        inherits = file.is_any_name_leased()
        self.queue = NamedLeases(self._is_inherited if inherits else None, ring)
        """Any thread may use it."""
        self._wishes: dict[int, MemberWish] = {}  # by the slots of connections
        self._woken: list[Wish] = []
        self._used = False

    def ask(self, member: MemberConnection, request: int, asked: dict[str, Any]) -> None:
        """Handle a member's HOLD.  :class:`CorruptionError` for one that no member sends."""
        if member.slot in self._wishes:
            raise CorruptionError("a second lease by one connection")
        name, permits = asked.get("name"), asked.get("permits")
        limit, timeout = asked.get("limit"), asked.get("timeout")
        numbers = (
            limit is None or isinstance(limit, float),
            timeout is None or isinstance(timeout, float),
        )
        if not (isinstance(name, str) and isinstance(permits, int) and all(numbers)):
            raise CorruptionError("malformed request for a lease")
        try:
            plain = bytes.fromhex(name)
            checked(plain, permits, limit, timeout)
            waiter = _waiter_in(member.pid, asked)
        except ValueError as error:
            raise CorruptionError(f"malformed request for a lease: {error}") from error
        until = NEVER if timeout is None else time.monotonic() + timeout
        wish = MemberWish(member, request, plain, permits, limit, until, self._wake, waiter)
        self._used = True
        self._wishes[member.slot] = wish
        self.queue.ask(wish)

    def end(self, member: MemberConnection) -> bool:
        """Handle a member's RELEASE, or the end of its connection.  Returns True if it held a lease
        until now."""
        wish = self._wishes.pop(member.slot, None)
        return wish is not None and self.queue.end(wish)

    def answers(self) -> list[MemberWish]:
        """Return the wishes to answer now."""
        if not self._used:
            return []
        self.queue.advance()
        found: list[MemberWish] = []
        while self._woken:
            wish = self._woken.pop(0)
            assert isinstance(wish, MemberWish)
            if self._wishes.get(wish.member.slot) is wish:
                found.append(wish)
                if wish.permit < 0:
                    del self._wishes[wish.member.slot]
        return found

    def seconds(self) -> float:
        """Seconds until :meth:`answers` must be called again."""
        if not self._used:
            return NEVER
        if self._woken:
            return 0.0
        return max(0.0, self.queue.advance() - time.monotonic())

    @property
    def has_own(self) -> bool:
        """True if a thread of the owner holds a lease, or waits for one."""
        return self.queue.wishes > sum(not wish.over for wish in list(self._wishes.values()))

    def close(self) -> None:
        """Stop granting leases; members ask the next owner."""
        self._used = False
        self.queue.close()

    def _wake(self, wish: Wish) -> None:
        self._woken.append(wish)
        self._ring()

    def _is_inherited(self, name: bytes, permit: int) -> bool:
        now = int(time.monotonic() * _MOMENTS_OF_A_SECOND)
        return self._file.is_name_leased(_number_of(name, permit), now)


# The member's half


class Notes:
    """The leases that this process has noted in ``SHARED``.  Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._counts: dict[tuple[SharedFile, int, int], int] = {}

    def add(self, file: SharedFile, name: int, moment: int) -> None:
        """Note a lease.  ``OSError``."""
        with self._lock:
            key = file, name, moment
            count = self._counts.get(key, 0)
            if count == 0:
                file.lease_name(name, moment)
            self._counts[key] = count + 1

    def remove(self, file: SharedFile, name: int, moment: int) -> None:
        """Remove the note of a lease that has ended."""
        with self._lock:
            key = file, name, moment
            count = self._counts.pop(key, 0)
            if count > 1:
                self._counts[key] = count - 1
            elif count == 1:
                file.release_name(name, moment)


class MemberEnd(LeaseEnd):
    """A lease that the owner has granted to this process."""

    def __init__(
        self,
        joined: Joined,
        connection: Connection,
        notes: Notes,
        file: SharedFile,
        name: int,
        deadline: float,
    ) -> None:
        """Notes the lease.  ``OSError``, or ``ValueError`` if the file is closed."""
        self._joined = joined
        self._connection = connection
        self._notes = notes
        self._file = file
        self._name = name
        self._deadline = deadline
        self._moment = _moment_after(deadline)
        self._notes.add(file, name, self._moment)

    def is_open(self) -> bool:
        return not self._file.closed

    def end(self) -> bool:
        # The note first: the next holder may be a thread of this process, with the same note.
        held = time.monotonic() < self._deadline and not self._file.closed
        self.remove_note()
        self._connection.failed = True  # until it is answered: the lease also ends with it
        try:
            answer = deferred.interruptible(lambda: self._connection.ask(plain(RELEASE)))
            return number_in(answer) == 1
        except OwnerGone:
            return held  # the lease has ended with the note
        except IOError:
            return held  # the owner is stopped: it ends with the connection
        finally:
            self._connection.switches = self._joined.switches
            self._joined.give_back(self._connection)

    def remove_note(self) -> None:
        """Remove the note of the lease, which is no longer held."""
        self._notes.remove(self._file, self._name, self._moment)


def _waiter_in(pid: int, asked: dict[str, Any]) -> Waiter:
    """Return the caller that asks for a lease, as far as a member has named it.  ``ValueError``."""
    caller, label, claims = asked.get("caller", ""), asked.get("label", ""), asked.get("claims", [])
    if not (isinstance(caller, str) and isinstance(label, str) and isinstance(claims, list)):
        raise ValueError("the caller is missing or malformed")
    return Waiter(pid, f"{pid}:{caller}", label, tuple([_claim_in(pid, one) for one in claims]))


def _claim_in(pid: int, claim: object) -> Claim:
    if isinstance(claim, list) and len(claim) == len(Claim._fields):
        name, permit, caller = claim
        if isinstance(name, str) and isinstance(permit, int) and isinstance(caller, str):
            return Claim(bytes.fromhex(name), permit, f"{pid}:{caller}")
    raise ValueError("a malformed claim")


def hold(
    joined: Joined,
    notes: Notes,
    file: SharedFile,
    request: Request,
    timeout: float | None,
) -> NamedLease | None:
    """Ask the owner for a lease, and wait for it; None if it does not come in time.

    ``file`` is one that this process leases by.  Raises :class:`OwnerGone` if the lease is to be
    asked for again, at the next owner, or the wait was withdrawn; and :class:`DeadlockError`.
    Caller defers signals.
    """
    name, limit = request.name, request.limit
    asked: dict[str, Any] = {
        "name": name.hex(),
        "permits": request.permits,
        "limit": None if limit is None else float(limit),
        "timeout": None if timeout is None else float(timeout),
    }
    if joined.revision >= FINDS_DEADLOCKS:
        waiter = request.waiter()
        claims = [(one.name.hex(), one.permit, one.caller) for one in waiter.claims]
        asked |= {"caller": waiter.caller, "label": waiter.label, "claims": claims}
    connection = joined.take()
    connection.switches = False  # a nested call may not expect others in the middle of this
    kept = clean = False
    try:
        request.wait.can_end_by(connection.end)
        connection.look = joined.look
        answer = deferred.interruptible(
            lambda: connection.ask(lambda request: json_frame(HOLD, request, asked))
        )
        connection.look = None
        result = result_in(answer)
        if result is None:
            clean = True
            return None
        permit, until = result
        deadline = NEVER if until is None else float(until)
        end = MemberEnd(joined, connection, notes, file, _number_of(name, permit), deadline)
        if joined.page.superseded:
            end.remove_note()
            raise OwnerGone(connection.slot, left=True)
        lease = NamedLease(name, permit, deadline, end)
        kept = True
        return lease
    finally:
        request.wait.can_end_by(None)
        if not kept:
            connection.failed = not clean  # its end is the lease's end
            connection.look = None
            connection.switches = joined.switches
            joined.give_back(connection)
