"""Named leases: locks with names, which the holder of a store grants in the order of arrival.

They do not restrict access to the store.  They are for programs that agree on a name: a cache
computes a value once, or keeps other callers out of a ``with`` block.  :class:`NamedLeases` is the
queue of one store, at the process that has it open for writing; :class:`NamedLease` is what a
caller holds.  ``lsmkv/shared/named_leases.py`` is what the members of a shared store also need.

**The contract.**

* At most ``permits`` callers hold a name at one moment: one, unless they say otherwise.  All who
  use a name say the same number.
* The caller that has waited longest gets it first.  A caller that gives up, or dies, leaves the
  queue.
* A lease ends with :meth:`NamedLease.release`; with its ``limit``, which counts from the grant;
  with the handle that it was taken by; and with the process.  A holder whose limit has passed is
  not stopped: it asks :attr:`NamedLease.held`, or takes a limit that is longer than its work.
* A caller that names a ``holder`` gets a lease which it has already once more, at no cost; that
  many releases end it.  Each handle has its own holders.
* A waiting thread sleeps until it is woken.
* A wait that cannot end raises :class:`DeadlockError`: all who hold the name wait themselves, and
  at last for what this caller holds.

**Deadlocks.**  A thread, or a task, waits for one lease at a time: a :class:`Caller`.  A wish says
which leases its caller holds (:class:`Claim`), so the waits of a name are all that the queue needs
to find a cycle, also just after the owner has changed.  Only a caller that holds something can
close one: the search begins with its wish, and costs nothing to those that hold nothing.  A lease
counts that its own caller is going to release, for example a ``with`` block.  One that any thread
may release does not.  Left out: cycles through the leases of two stores, and through other locks.

No lock is held while a caller waits or is answered.  A signal handler or finalizer may release a
lease; it may not take one, since its own thread may be in the middle of this.

**Interrupts.**  Taking and releasing are sections in which signals wait (``util/signals.py``); only
the wait for a lease is interrupted.  A caller begins its section before it takes a lease, and has
noted the lease when the section ends: else an exception in between would lose it.
"""

from __future__ import annotations

import heapq
import itertools
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from lsmkv.engine.errors import ClosedError, DeadlockError, NestedCallError
from lsmkv.engine.leased_name import LeasedName
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import ThreadLocal, ThreadLock
from lsmkv.engine.util.ticket import Ticket

NEVER: Final = float("inf")
_LOOK_EVERY: Final = 0.5
"""Seconds after which a waiting thread checks for signals."""
_LOOK_AT_INHERITED: Final = 0.02
"""Seconds between two checks for ended leases of earlier owners."""
_MOST_STALE: Final = 64
"""Events that are no longer needed, before they are dropped."""
LONGEST_NAME: Final = 1024
"""Bytes."""
MOST_PERMITS: Final = 1 << 20

Inherited = Callable[[bytes, int], bool]
"""A predicate: True if a lease granted by an earlier owner holds this permit of this name."""


_MOST_CLAIMS: Final = 64
"""Leases of one caller that are looked at for deadlocks."""
_LONGEST_LABEL: Final = 200


class Claim(NamedTuple):
    """A lease that a waiting caller holds."""

    name: bytes
    permit: int
    caller: str


class Waiter(NamedTuple):
    """A caller that wants a lease."""

    pid: int
    caller: str = ""
    """The caller's name, unique among all processes."""
    label: str = ""
    """The purpose of the lease, as messages name it."""
    claims: tuple[Claim, ...] = ()
    """The leases that the caller holds while it waits."""


class Wish:
    """A caller's place in the queue of a name, and its lease once it is granted."""

    def __init__(
        self,
        name: bytes,
        permits: int,
        limit: float | None,
        until: float,
        wake: Callable[[Wish], None],
        waiter: Waiter | None = None,
    ) -> None:
        """``wake`` is called once, when the wish is granted or over."""
        self.waiter: Waiter = Waiter(os.getpid()) if waiter is None else waiter
        self.deadlock: DeadlockError | None = None
        """The deadlock that ended the wait, if one did."""
        self.name = name
        self.permits = permits
        self.limit = limit
        self.until = until
        """The time at which the caller gives up (``time.monotonic``)."""
        self.wake = wake
        self.permit = -1
        """Index of the granted permit; -1 while it waits."""
        self.deadline = NEVER
        """The time at which the lease expires, once it is granted."""
        self.over = False
        """True if the caller gave up, or the lease has ended."""


class _Name:
    """Holders of a name, and the queue for it."""

    def __init__(self) -> None:
        self.holders: dict[int, Wish] = {}  # by permit
        self.queue: list[Wish] = []
        self.look = 0.0
        """The next time to check for inherited leases that have ended."""


class NamedLeases:
    """The queue of one store.  Any thread may call any method."""

    def __init__(
        self,
        inherited: Inherited | None = None,
        changed: Callable[[], None] | None = None,
    ) -> None:
        """``changed`` is called when :meth:`advance` has to be called earlier than it has said."""
        self._lock = ThreadLock()
        self._names: dict[bytes, _Name] = {}
        self._events: list[tuple[float, bytes]] = []  # a heap: when to look at which name
        self._wishes = 0
        self._closed = False
        self._inherited = inherited
        self._changed = changed

    def ask(self, wish: Wish) -> None:
        """Queue up; the wish is woken once it is granted or over, perhaps before this returns.

        Raises :class:`ClosedError` after :meth:`close`.
        """
        self._refuse_nested()
        woken: list[Wish] = []
        with self._lock.guard:
            if self._closed:
                raise ClosedError("the database is closed")
            first = self._first_event()
            name = self._names.get(wish.name)
            if name is None:
                name = self._names[wish.name] = _Name()
            name.queue.append(wish)
            self._wishes += 1
            if wish.until < NEVER:
                heapq.heappush(self._events, (wish.until, wish.name))
            self._settle(wish.name, time.monotonic(), woken)
            if wish.waiter.claims and wish.permit < 0 and not wish.over:
                self._refuse_deadlock(wish, name, woken)
            earlier = self._first_event() < first
        self._finish(woken, earlier)

    def end(self, wish: Wish) -> bool:
        """Release the lease, or leave the queue.  Returns True if it was held until now."""
        self._refuse_nested()
        woken: list[Wish] = []
        with self._lock.guard:
            first = self._first_event()
            now = time.monotonic()
            held = wish.permit >= 0 and not wish.over and now < wish.deadline
            name = self._names.get(wish.name)
            if name is not None and not wish.over:
                wish.over = True
                self._wishes -= 1
                if wish.permit >= 0:
                    if name.holders.get(wish.permit) is wish:
                        del name.holders[wish.permit]
                elif wish in name.queue:
                    name.queue.remove(wish)
                self._settle(wish.name, now, woken)
            earlier = self._first_event() < first
        self._finish(woken, earlier)
        return held

    def advance(self) -> float:
        """Let limits and patience pass, and grant what has become free.

        Returns when to call it again (``time.monotonic``).
        """
        woken: list[Wish] = []
        with self._lock.guard:
            now = time.monotonic()
            while self._events and self._events[0][0] <= now:
                self._settle(heapq.heappop(self._events)[1], now, woken)
            if len(self._events) > 4 * self._wishes + _MOST_STALE:
                self._drop_stale_events()
            first = self._first_event()
        self._finish(woken, False)
        return first

    def close(self) -> None:
        """Give up all wishes: waiting callers are woken, and later requests are refused."""
        woken: list[Wish] = []
        with self._lock.guard:
            self._closed = True
            for name in self._names.values():
                for wish in name.holders.values():
                    wish.over = True
                for wish in name.queue:
                    wish.over = True
                    woken.append(wish)
            self._names.clear()
            self._events.clear()
            self._wishes = 0
        self._finish(woken, False)

    @property
    def closed(self) -> bool:
        """True if it was closed."""
        return self._closed

    @property
    def wishes(self) -> int:
        """Number of leases that are held or waited for."""
        return self._wishes

    def waiting(self, name: bytes) -> int:
        """Return the number of callers that wait for a name."""
        state = self._names.get(name)
        return 0 if state is None else len(state.queue)

    def names(self) -> list[LeasedName]:
        """Return the holders and waiters of each name, names with waiting callers first."""
        with self._lock.guard:
            found = [_described(key, name) for key, name in self._names.items()]
        return sorted(found, key=_by_waiters)

    def check(self) -> None:
        """Raise ``AssertionError`` unless the queue is as it must be; for tests."""
        waiting = 0
        for name, state in self._names.items():
            assert state.holders or state.queue, f"no caller wants {name!r}"
            for permit, wish in state.holders.items():
                assert 0 <= permit < wish.permits, f"permit {permit} of {wish.permits}"
                assert wish.permit == permit, "a permit of another"
                assert not wish.over, "a lease that is over"
            assert all(wish.permit < 0 and not wish.over for wish in state.queue), "a queue"
            waiting += len(state.queue) + len(state.holders)
        assert waiting == self._wishes, f"{waiting} wishes, not {self._wishes}"

    def _refuse_nested(self) -> None:
        if self._lock.mine():
            raise NestedCallError(
                "a signal handler or finalizer has interrupted a call for a lease, and may not take"
                " or release one"
            )

    def _finish(self, woken: list[Wish], earlier: bool) -> None:
        """Wake the callers whose wishes are granted or over, without the lock."""
        for wish in woken:
            wish.wake(wish)
        if earlier and self._changed is not None:
            self._changed()

    def _first_event(self) -> float:
        return self._events[0][0] if self._events else NEVER

    def _settle(self, key: bytes, now: float, woken: list[Wish]) -> None:
        """Let time pass for a name, and grant it.  Caller holds the lock."""
        name = self._names.get(key)
        if name is None:
            return
        for permit, wish in list(name.holders.items()):
            if wish.deadline <= now:
                wish.over = True
                self._wishes -= 1
                del name.holders[permit]
        patient: list[Wish] = []
        for wish in name.queue:
            # A caller that asks for a free name gets it, even with a timeout of 0.
            permit = -1 if patient else self._free_permit(name, wish, now)
            if permit >= 0:
                wish.permit = permit
                name.holders[permit] = wish
                if wish.limit is not None:
                    wish.deadline = now + wish.limit
                    heapq.heappush(self._events, (wish.deadline, key))
                woken.append(wish)
            elif wish.until <= now:
                wish.over = True
                self._wishes -= 1
                woken.append(wish)
            else:
                patient.append(wish)
        name.queue = patient
        if not name.holders and not name.queue:
            del self._names[key]

    def _refuse_deadlock(self, wish: Wish, name: _Name, woken: list[Wish]) -> None:
        """Give up a wish that closes a cycle.  Caller holds the lock."""
        claimed: dict[tuple[bytes, int], Wish] = {}
        for state in self._names.values():
            for one in state.queue:
                for claim in one.waiter.claims:
                    if self._is_held(claim):
                        claimed[claim.name, claim.permit] = one
        # Each wish is granted when one permit of its name is released: all have to be stuck.
        stuck = [wish]
        for one in stuck:
            for permit in range(one.permits):
                holder = claimed.get((one.name, permit))
                if holder is None:
                    return
                if holder not in stuck:
                    stuck.append(holder)
        cycle: list[Wish] = []
        at = wish
        while at not in cycle:
            cycle.append(at)
            at = claimed[at.name, 0]
        wish.deadlock = DeadlockError([(one.waiter.pid, _label(one)) for one in cycle])
        wish.over = True
        self._wishes -= 1
        name.queue.remove(wish)
        if not name.holders and not name.queue:
            del self._names[wish.name]
        woken.append(wish)

    def _is_held(self, claim: Claim) -> bool:
        """Return True if the caller of a claim holds that lease, from this queue or from an earlier
        owner's."""
        name = self._names.get(claim.name)
        holder = None if name is None else name.holders.get(claim.permit)
        if holder is not None:
            return holder.waiter.caller == claim.caller
        return self._inherited is not None and self._inherited(claim.name, claim.permit)

    def _free_permit(self, name: _Name, wish: Wish, now: float) -> int:
        """A permit for a wish; -1 if there is none."""
        if len(name.holders) >= wish.permits:
            return -1
        inherited = self._inherited
        for permit in range(wish.permits):
            if permit not in name.holders:
                if inherited is None or not inherited(wish.name, permit):
                    return permit
                if name.look <= now:
                    name.look = now + _LOOK_AT_INHERITED
                    heapq.heappush(self._events, (name.look, wish.name))
        return -1

    def _drop_stale_events(self) -> None:
        """Keep one event for each time that matters.  Caller holds the lock."""
        events: list[tuple[float, bytes]] = []
        for key, name in self._names.items():
            times = [one.deadline for one in name.holders.values()]
            times += [one.until for one in name.queue]
            if name.look > 0:
                times.append(name.look)
            events += [(when, key) for when in times if when < NEVER]
        heapq.heapify(events)
        self._events = events

    # Waiting in this process

    def take(self, request: Request, timeout: float | None) -> NamedLease | None:
        """Wait for a lease; None if it does not come within ``timeout`` seconds, or the request is
        withdrawn.

        Raises :class:`ClosedError` if the queue is closed, before or meanwhile, and
        :class:`DeadlockError`.
        """
        until = NEVER if timeout is None else time.monotonic() + timeout
        ticket = Ticket()
        name, permits, limit = request.name, request.permits, request.limit
        wish = Wish(name, permits, limit, until, _Waker(ticket).wake, request.waiter())
        with deferred:
            try:
                self.ask(wish)
                request.wait.can_end_by(partial(self.end, wish))
                while wish.permit < 0 and not wish.over:
                    seconds = self.advance() - time.monotonic()
                    wait = partial(ticket.acquire_soon, max(0.0, min(seconds, _LOOK_EVERY)))
                    deferred.interruptible(wait)
            except BaseException:
                self.end(wish)
                raise
        if wish.deadlock is not None:
            raise wish.deadlock
        if wish.permit >= 0:
            return NamedLease(name, wish.permit, wish.deadline, LocalEnd(self, wish))
        if self._closed:
            raise ClosedError("the database is closed")
        return None


def _label(wish: Wish) -> str:
    return wish.waiter.label or repr(wish.name)


def _described(key: bytes, name: _Name) -> LeasedName:
    wishes = [*name.holders.values(), *name.queue]
    held: list[int | None] = [one.waiter.pid for one in name.holders.values()]
    waiters = tuple([one.waiter.pid for one in name.queue])
    if waiters and len(held) < name.queue[0].permits:
        held.append(None)  # its caller waits for an inherited lease, although a permit is free
    return LeasedName(_label(wishes[0]), tuple(held), waiters)


def _by_waiters(one: LeasedName) -> tuple[int, str]:
    return -len(one.waiters), one.name


class _Waker:
    """Wakes the thread that waits for a ticket."""

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket

    def wake(self, wish: Wish) -> None:
        self._ticket.lock.release()


class LeaseEnd:
    """The end of a lease, at the queue that granted it."""

    def is_open(self) -> bool:
        """Return True if the queue that granted the lease still exists."""
        raise NotImplementedError

    def end(self) -> bool:
        """Release it; called once.  Returns True if it was held until now."""
        raise NotImplementedError


class LocalEnd(LeaseEnd):
    """A lease of the queue of this process."""

    def __init__(self, leases: NamedLeases, wish: Wish) -> None:
        self._leases = leases
        self._wish = wish

    def is_open(self) -> bool:
        return not self._leases.closed

    def end(self) -> bool:
        return self._leases.end(self._wish)


class Caller:
    """A thread, or a task: what holds leases, and waits for one at a time."""

    def __init__(self, thread: Caller | None = None) -> None:
        """``thread`` is the one in which a task runs: while it waits, the task does not go on."""
        self._number: int = next(_numbers)
        self._of_thread = thread
        self.leases: list[NamedLease] = []
        """Leases that it is going to release."""

    def note(self, lease: NamedLease) -> None:
        """Note a lease that the caller has taken."""
        self.leases.append(lease)
        if self._of_thread is not None:
            self._of_thread.note(lease)

    def drop(self, lease: NamedLease) -> None:
        """Forget a lease that was released."""
        if lease in self.leases:
            self.leases.remove(lease)
        if self._of_thread is not None:
            self._of_thread.drop(lease)

    @property
    def name(self) -> str:
        """The caller's name, unique among all processes."""
        return f"{os.getpid()}.{self._number}"

    def claims(self, place: object) -> tuple[Claim, ...]:
        """Return the leases held by this caller that were granted at ``place``."""
        held = [one for one in list(self.leases) if one.place == place and one.held]
        return tuple([Claim(one.name, one.permit, one.caller) for one in held[-_MOST_CLAIMS:]])


_numbers: Final = itertools.count()
_this_thread: Final[Any] = ThreadLocal()


def thread_caller() -> Caller:
    """The calling thread."""
    caller: Caller | None = getattr(_this_thread, "caller", None)
    if caller is None:
        caller = _this_thread.caller = Caller()
    return caller


class Wait:
    """A caller's wait for a lease, which another thread may withdraw."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.withdrawn = False
        self._lock = ThreadLock()
        self._end: Callable[[], object] | None = None

    def can_end_by(self, end: Callable[[], object] | None) -> None:
        """Set the function that ends the wait that has just begun; None once the wait is over."""
        with self._lock.guard:
            self._end = end
            if self.withdrawn and end is not None:
                end()

    def withdraw(self) -> None:
        """Leave the queue now; the waiting thread returns soon."""
        with self._lock.guard:
            self.withdrawn = True
            if self._end is not None:
                self._end()


class Request:
    """A request for a lease, perhaps sent to one owner after the other."""

    def __init__(
        self,
        name: bytes,
        permits: int,
        limit: float | None,
        label: str,
        wait: Wait,
        place: object,
    ) -> None:
        self.name = name
        self.permits = permits
        self.limit = limit
        self.wait = wait
        self._label = label
        self._place = place

    def waiter(self) -> Waiter:
        """Return the caller that asks for the lease, with the leases that it holds now."""
        caller, label = self.wait.caller, self._label[:_LONGEST_LABEL]
        return Waiter(os.getpid(), caller.name, label, caller.claims(self._place))


class NamedLease:
    """A named lease that this process holds, until :meth:`release`."""

    def __init__(self, name: bytes, permit: int, deadline: float, end: LeaseEnd) -> None:
        self.name = name
        self.permit = permit
        """Index of the permit: 0 if the name has one permit."""
        self.deadline = deadline
        """The time at which the lease expires (``time.monotonic``)."""
        self._end: LeaseEnd | None = end
        self._count = 1
        self._pid = os.getpid()
        self._noted: tuple[dict[tuple[bytes, bytes], NamedLease], tuple[bytes, bytes]] | None = None
        self._owner: Caller | None = None
        self.caller = ""
        """The name of the caller that is going to release it."""
        self.place: object = None
        """The place that granted it, if there is such a caller."""

    @property
    def held(self) -> bool:
        """True if it is held: not released, and not expired."""
        end = self._end
        if end is None or self._pid != os.getpid():
            return False
        return time.monotonic() < self.deadline and end.is_open()

    def again(self) -> NamedLease:
        """Hold it once more, by the same holder."""
        self._count += 1
        return self

    def note_in(self, leases: dict[tuple[bytes, bytes], NamedLease], holder: bytes) -> None:
        """Register the lease there for its holder, until it is released."""
        key = self.name, holder
        leases[key] = self
        self._noted = leases, key

    def belong_to(self, caller: Caller, place: object) -> None:
        """Note the caller that is going to release it."""
        self.caller, self.place, self._owner = caller.name, place, caller
        caller.note(self)

    def release(self) -> bool:
        """Release it; call it as often as it was taken.  Returns True if it was held until now.

        A release too many has no effect, and neither has one in a forked child.  If a signal
        handler raises, the lease is released once less often, or nothing has happened.
        """
        with deferred:
            if self._count > 1:
                self._count -= 1
                return self.held
            end, self._end = self._end, None
            if end is None or self._pid != os.getpid():
                return False
            noted = self._noted
            if noted is not None:
                leases, key = noted
                if leases.get(key) is self:
                    del leases[key]
            if self._owner is not None:
                self._owner.drop(self)
            return end.end()


class Holders:
    """The leases of one handle, by name and holder."""

    def __init__(self) -> None:
        self._leases: dict[tuple[bytes, bytes], NamedLease] = {}

    def held(self, name: bytes, holder: bytes | None) -> NamedLease | None:
        """Return the lease that a holder has, taken once more; None if it has none."""
        if holder is None:
            return None
        lease = self._leases.get((name, holder))
        return lease.again() if lease is not None and lease.held else None

    def note(self, lease: NamedLease, holder: bytes | None) -> None:
        """Note a lease that a holder has taken."""
        if holder is not None:
            lease.note_in(self._leases, holder)


def checked(name: bytes, permits: int, limit: float | None, timeout: float | None) -> None:
    """Check the arguments of a lease; ``ValueError`` if one of them is invalid."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise ValueError(f"the name of a lease has 1 to {LONGEST_NAME:,} bytes")
    if not 1 <= permits <= MOST_PERMITS:
        raise ValueError(f"a lease has 1 to {MOST_PERMITS:,} permits, not {permits:,}")
    if limit is not None and not 0 < limit < NEVER:
        raise ValueError(f"limit is a number of seconds above 0, not {limit}")
    if timeout is not None and not 0 <= timeout < NEVER:
        raise ValueError(f"timeout is a number of seconds, not {timeout}")
