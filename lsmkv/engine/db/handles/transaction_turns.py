"""Turns: callers whose transactions conflict again and again go one after the other.

``DB.run`` and ``DB.update`` run a function in a transaction, and once more after each conflict.
With optimistic transactions alone, one caller may lose any number of times.  So a call makes its
first attempts at once, with a growing random pause after each conflict, and then queues up for a
*turn*.  While a call has a turn or waits for one, others also queue up before each of their
attempts; one that has not lost as often gives its turn up as soon as it has come, and only then
makes its attempt.  What can make a caller in its turn conflict is an attempt that began before the
turn: one for each other thread.  So with n threads a function is called at most ``FREE_ATTEMPTS +
n`` times.

* The turns of calls that name one key (``update``) exclude only each other and the calls that name
  none (``run``), which may touch any key.
* A turn ends after :data:`LONGEST_TURN`, whatever its owner does, so that a function that hangs, or
  a thread that has died, does not stop the others.  Its owner queues up again if it conflicts.
* A call inside a call on the same thread (by the function itself, a signal handler, a finalizer, or
  another greenlet) has no turn and waits for none: its thread may have the turn already.  That goes
  for all handles of one store.

No lock is held while a function runs.  What others write by ``put``, ``write`` or a transaction of
their own takes no turn, and can make any attempt conflict: after :data:`MOST_ATTEMPTS` the conflict
is raised.  It comes to that if a function writes, by another call, what its own transaction reads.

Where processes share a store, a call whose turn has come in its own process takes it among them,
too, before it has it: :class:`SharedQueue`, which is ``lsmkv/shared/turns.py``.  ``lsmkv.aio`` has
a queue of this kind as well, whose callers are tasks (``aio/transaction_turns.py``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

from librt.threading import Lock

from lsmkv.engine.errors import ConflictError
from lsmkv.engine.util.threads import get_ident, pause
from lsmkv.engine.util.ticket import Ticket

T = TypeVar("T")

FREE_ATTEMPTS: Final = 5
"""Attempts that a call makes before it queues up for a turn."""
MOST_ATTEMPTS: Final = 1000
"""After this many conflicts the last one is raised."""
LONGEST_TURN: Final = 3.0
"""Seconds.  An attempt that began before a turn, and makes one of the turn conflict, may end at
the end of its own function, and the one that conflicts at the end of another.  So a turn is long
enough for any function that takes less than a third of it."""

_FIRST_PAUSE = 0.0001
_LONGEST_PAUSE = 0.01
"""Seconds: the longest pause after the first conflict, and after any."""
_LOOK_EVERY = 0.5
"""Seconds after which a call that waits for other processes checks for signals."""
_NEVER: Final = float("inf")

_inside: Final[set[tuple[int, int, object]]] = set()
"""Processes, threads and stores of the running calls; each thread changes only its own."""


class Place:
    """A call's place in the queue of the processes that share a store."""

    def wait(self, seconds: float) -> bool:
        """Wait for the turn, for so long at most.  Returns True if it has come."""
        raise NotImplementedError

    def holds(self) -> bool:
        """Return True if the turn has come, and not ended."""
        raise NotImplementedError

    def end(self) -> None:
        """End the turn, or leave the queue.  A second call has no effect."""
        raise NotImplementedError


class SharedQueue:
    """The queue of the processes that share a store."""

    def is_free(self, key: bytes | None) -> bool:
        """Return True if a call about ``key`` may begin an attempt outside of a turn."""
        raise NotImplementedError

    def place(self, key: bytes | None) -> Place | None:
        """A place in the queue; None if there is no queue, or this process writes nothing."""
        raise NotImplementedError


class Turn:
    """One call's place in the queue."""

    __slots__ = ("key", "since", "wake")

    def __init__(self, key: bytes | None, wake: Callable[[], object]) -> None:
        self.key = key
        """The key that the call is about; None if it may be about any."""
        self.wake = wake
        """Called once, when the turn has come, by any thread and under the queue's lock."""
        self.since = 0.0
        """The time at which it came (``time.monotonic``); 0 before that, and infinite while it
        still has to come among the processes."""

    def excludes(self, key: bytes | None) -> bool:
        """Return True if a call about ``key`` has to wait for the end of this turn."""
        return self.key is None or key is None or self.key == key


class Turns:
    """The queue of one store.  Any thread may call any method."""

    def __init__(self, store: object = None, shared: SharedQueue | None = None) -> None:
        """``store`` is what several handles of one store have in common, if there are several."""
        self._lock = Lock()
        self._queue: list[Turn] = []
        self.store: object = object() if store is None else store
        self.shared = shared
        """The queue of the processes, if they share the store."""
        self.longest = LONGEST_TURN
        """Seconds that a turn may last."""

    def call(self, key: bytes | None, attempt: Callable[[], T]) -> T:
        """Call ``attempt`` until it raises no :class:`ConflictError`, and return its result."""
        own = os.getpid(), get_ident(), self.store
        nested = own in _inside
        attempts = Attempts(self, key, nested)
        try:
            if not nested:
                _inside.add(own)
            while True:
                if attempts.need_turn():
                    self._wait(attempts)
                try:
                    return attempt()
                except ConflictError as conflict:
                    seconds = attempts.pause_after(conflict)
                if seconds > 0:
                    pause(seconds)
        finally:
            try:
                attempts.end()
            finally:  # last: until then, a signal handler must not wait for this thread's turn
                if not nested:
                    _inside.discard(own)

    def _wait(self, attempts: Attempts) -> None:
        """Wait until the turn of these attempts has come."""
        ticket = Ticket()
        attempts.queue_up(ticket.lock.release)
        while not ticket.acquire_soon():
            self.advance()
        while not attempts.begin_turn(_LOOK_EVERY):
            pass

    def is_free(self, key: bytes | None) -> bool:
        """Return True if a call about ``key`` may begin an attempt outside of a turn."""
        if self._queue:
            with self._lock:
                self._advance()
                if any(turn.excludes(key) for turn in self._queue):
                    return False
        return self.shared is None or self.shared.is_free(key)

    def holds(self, turn: Turn) -> bool:
        """Return True if the turn has come, and not ended."""
        with self._lock:
            self._advance()
            return turn.since > 0 and turn in self._queue

    def begin(self, turn: Turn) -> None:
        """Note that the turn has also come among the processes."""
        with self._lock:
            turn.since = time.monotonic()

    def join(self, turn: Turn) -> None:
        """Queue up.  ``turn.wake`` is called when its turn has come, perhaps immediately."""
        with self._lock:
            self._queue.append(turn)
            self._advance()

    def leave(self, turn: Turn) -> None:
        """End the turn, or leave the queue.  A second call has no effect."""
        with self._lock:
            if turn in self._queue:
                self._queue.remove(turn)
            self._advance()

    def advance(self) -> None:
        """End the turns that last too long.  A waiting caller calls it periodically."""
        with self._lock:
            self._advance()

    def _advance(self) -> None:
        """Start the turns that are no longer excluded.  Caller holds the lock."""
        now = time.monotonic()
        self._queue = [
            turn for turn in self._queue if turn.since == 0 or now - turn.since < self.longest
        ]
        self._changed()
        for at, turn in enumerate(self._queue):
            before = self._queue[:at]
            if turn.since == 0 and not any(one.excludes(turn.key) for one in before):
                turn.since = now if self.shared is None else _NEVER
                turn.wake()

    def _changed(self) -> None:
        """Hook that is called before turns come, under the lock."""


class Attempts:
    """The attempts of one call: how many there were, and its turn.

    Call order: ``(need_turn (queue_up begin_turn+)? pause_after?)* end``.
    """

    def __init__(self, turns: Turns, key: bytes | None, nested: bool) -> None:
        self._turns = turns
        self._key = key
        self._nested = nested
        self._conflicts = 0
        self._turn: Turn | None = None
        self._place: Place | None = None

    def need_turn(self) -> bool:
        """Return True if the next attempt has to wait for a turn."""
        if self._nested:
            return False
        if self._turn is not None:
            place = self._place
            if self._turns.holds(self._turn) and (place is None or place.holds()):
                return False
            self.end()  # it has lasted too long
            return True
        return self._conflicts >= FREE_ATTEMPTS or not self._turns.is_free(self._key)

    def queue_up(self, wake: Callable[[], object]) -> None:
        """Queue up for a turn; ``wake`` is called when it has come, perhaps immediately."""
        self._turn = turn = Turn(self._key, wake)
        self._turns.join(turn)

    def begin_turn(self, seconds: float) -> bool:
        """Wait until the turn, which has come in this process, has come among all processes, for so
        long at most.  Returns True if it has.  May be called by any thread."""
        turn, shared = self._turn, self._turns.shared
        assert turn is not None
        if self._place is None and shared is not None:
            self._place = shared.place(self._key)
        if self._place is not None and not self._place.wait(seconds):
            return False
        self._turns.begin(turn)
        if self._conflicts < FREE_ATTEMPTS:
            self.end()  # it has waited for those before it
        return True

    def pause_after(self, conflict: ConflictError) -> float:
        """Seconds to wait before the next attempt; raises the conflict if it is one too many."""
        self._conflicts += 1
        if self._conflicts >= MOST_ATTEMPTS:
            raise conflict
        if self._turn is not None:
            return 0.0
        longest: float = min(_FIRST_PAUSE * 2 ** min(self._conflicts - 1, 10), _LONGEST_PAUSE)
        return longest * int.from_bytes(os.urandom(4), "big") / (1 << 32)

    def end(self) -> None:
        """Give up the turn, or the place in the queue."""
        place, self._place = self._place, None
        turn, self._turn = self._turn, None
        try:
            if place is not None:
                place.end()
        finally:
            if turn is not None:
                self._turns.leave(turn)
