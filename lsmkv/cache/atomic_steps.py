"""Atomic batches of one call's changes: :class:`Step`, and :class:`Steps`, which runs them.

A step reads, collects writes, and commits.  In a store of several processes the commit raises
:class:`~lsmkv.errors.ConflictError` if another process has written a key that the step has read,
and the step runs again.  Every change of an entry reads and writes its head or its key in the order
of storing, so two changes of one entry never both happen.  In a store of one process the lock of
:class:`Steps` is enough.

The reads of a step need not be of one moment: if any of them changed before the commit, it fails.
So a step that changes nothing depends on one read.  A step that has failed twice is a transaction.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, Final, TypeVar

from lsmkv.cache.counters import BASE, ZERO, Counters
from lsmkv.cache.entry_head import Pointer
from lsmkv.cache.keys import (
    COUNTERS,
    FLOOR,
    MICROSECOND,
    MOST,
    NUMBER_SIZE,
    POSITION_SIZE,
    number_moment,
)
from lsmkv.engine.db.db import DB
from lsmkv.engine.errors import ClosedError, ConflictError
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.util.threads import new_reentrant_lock, pause

T = TypeVar("T")

_FREE_ATTEMPTS: Final = 2
"""Attempts before the first pause."""
_LONGEST_PAUSE: Final = 0.01
"""Seconds."""
_MOST_PARTS: Final = 8
"""Counters of handles that were killed, before their sum replaces them."""


class Step:
    """The reads and writes of one call.  A caller that writes sets :attr:`changed`."""

    __slots__ = ("_get", "_steps", "changed", "count", "operations", "reads", "scan", "size")

    def __init__(
        self, steps: Steps, get: Callable[[bytes], bytes | None], scan: Callable[..., Any]
    ) -> None:
        self._steps = steps
        self._get = get
        self.scan = scan
        """:meth:`lsmkv.DB.iterator`."""
        self.reads: list[bytes] = []
        """The keys that :meth:`get` was called with."""
        self.operations: list[Operation] = []
        """The operations to write."""
        self.changed = False
        """True if there is anything to commit."""
        self.count = 0
        """Entries that the step adds."""
        self.size = 0
        """Bytes that it adds."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key before the step."""
        self.reads.append(key)
        return self._get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set a key when the step is committed."""
        self.operations.append((key, value))

    def delete(self, key: bytes) -> None:
        """Remove a key when the step is committed."""
        self.operations.append((key, None))

    @property
    def keeps_values(self) -> bool:
        """True if the value beside a removed head is left for :mod:`lsmkv.cache.front`."""
        return self._steps.keeps_values

    def position(self, now: float) -> bytes:
        """See :meth:`Steps.position`."""
        return self._steps.position(now)

    def put_beside(self, value: bytes, now: float) -> Pointer:
        """Store a value after all others, and return its place."""
        floor = self.get(FLOOR)
        if floor is not None:
            self._steps.begin_after(floor + bytes(NUMBER_SIZE - len(floor)))
        pointer = Pointer(len(value), self._steps.next_number(now, MICROSECOND), True)
        self.put(pointer.key(0), value)
        return pointer


class Steps:
    """Runs the steps of one handle, one at a time, and counts what they change."""

    def __init__(self, db: DB, shared: bool) -> None:
        self.db = db
        self.shared = shared
        self.lock: Any = new_reentrant_lock()
        self._pid = os.getpid()
        self._key = COUNTERS + os.urandom(4) if shared else BASE
        self._own = ZERO if shared else Counters.decode(db.get(BASE))
        self._others = ZERO
        self.hits = 0
        """Reads that found an entry, and are not in the counters yet."""
        self.misses = 0
        self.keeps_values = False
        """See :class:`Step`."""
        self._last = 0

    def run(self, function: Callable[[Step], T]) -> T:
        """The result of a function, whose writes are committed; it is called again in a conflict.

        Raises what the function raises, and then writes nothing.
        """
        if not self.shared:
            with self.lock:
                return self._run_alone(function)
        if os.getpid() != self._pid:
            self._begin_in_child()
        attempts = 0
        with self.lock:
            while True:
                try:
                    if attempts >= _FREE_ATTEMPTS:
                        return self._run_in_transaction(function)
                    return self._run_once(function)
                except ConflictError:
                    attempts += 1
                    if attempts > _FREE_ATTEMPTS:
                        pause(random.random() * min(attempts * 0.0005, _LONGEST_PAUSE))

    def _run_alone(self, function: Callable[[Step], T]) -> T:
        db = self.db
        step = Step(self, db.get, db.iterator)
        result = function(step)
        if step.changed:
            before = self._own
            part = self._count(step, before)
            db._open_writer().write(step.operations, False)
            self._counted(before, part)
        return result

    def _run_once(self, function: Callable[[Step], T]) -> T:
        db = self.db
        writer = db._open_writer()  # first: a sequence of before belongs to its epoch, or fails
        sequence = db.sequence
        step = Step(self, db.get, db.iterator)
        result = function(step)
        if step.changed:
            before = Counters.decode(step.get(self._key))  # another may have merged it
            part = self._count(step, before)
            writer.write_unless_changed(step.operations, sequence, step.reads)
            self._counted(before, part)
        return result

    def _run_in_transaction(self, function: Callable[[Step], T]) -> T:
        transaction = self.db.transaction(isolation="snapshot")
        try:
            step = Step(self, transaction.get, transaction.iterator)
            result = function(step)
            if step.changed:
                before = Counters.decode(step.get(self._key))
                part = self._count(step, before)
                for key, value in step.operations:
                    if value is None:
                        transaction.delete(key)
                    else:
                        transaction.put(key, value)
                transaction.commit()
                self._counted(before, part)
            return result
        finally:
            transaction.rollback()

    def _count(self, step: Step, before: Counters) -> Counters:
        """The part of this handle after the step, which becomes one of the step's operations."""
        part = before.plus(Counters(step.count, step.size, self.hits, self.misses))
        step.put(self._key, part.encode())
        return part

    def _counted(self, before: Counters, part: Counters) -> None:
        """Subtract a committed step's counts; reads counted during the commit are left."""
        self._own = part
        self.hits -= part.hits - before.hits
        self.misses -= part.misses - before.misses

    # Numbers

    def next_number(self, now: float, step: int = 1) -> bytes:
        """A number for an entry or a value, at least ``step`` after all that this handle has
        given."""
        nano = max(int(now * 1e9), self._last + step)
        self._last = nano
        return nano.to_bytes(8, "big") + self._key[1:]

    def begin_after(self, number: bytes) -> None:
        """Give numbers after this one only: a clock may have been set back.

        One from after the year 2262 is damage, after which few numbers are left.
        """
        nano = int.from_bytes(number[:8], "big")
        if len(number) == NUMBER_SIZE and nano <= MOST:
            self._last = max(self._last, nano)

    def position(self, now: float) -> bytes:
        """A position in the order of eviction, after all that this handle has given or seen.

        An entry that was stored while the clock was ahead is thus before those that are stored
        after it was set back, as the order of storing has it.
        """
        return number_moment(self.next_number(now, MICROSECOND))

    def see_position(self, position: bytes) -> None:
        """Give positions after this one only, unless it is damage."""
        number = int.from_bytes(position, "big")
        if len(position) == POSITION_SIZE and number <= MOST // MICROSECOND:
            self._last = max(self._last, number * MICROSECOND)

    # Counters

    @property
    def size(self) -> int:
        """The bytes of all entries, as far as this handle knows what other processes change."""
        return self._own[1] + self._others[1]

    def totals(self) -> Counters:
        """The counters of the cache.  Cost: a seek, and a step for each handle that is open."""
        if self.shared:
            self.refresh()
        elif self.db.closed:
            raise ClosedError("the cache is closed")
        return self._own.plus(self._others).plus(Counters(0, 0, self.hits, self.misses))

    def refresh(self) -> None:
        """Read what all handles have added."""
        with self.lock:
            own = others = ZERO
            for key, value in self.db.iterator(prefix=COUNTERS):
                if key == self._key:
                    own = Counters.decode(value)
                else:
                    others = others.plus(Counters.decode(value))
            self._own, self._others = own, others

    def clear_reads(self) -> None:
        """Set the numbers of hits and misses to 0, in all handles."""
        with self.lock:
            self.hits = self.misses = 0
            self._change_parts(lambda part: part._replace(hits=0, misses=0))

    def correct(self, count: int, size: int) -> None:
        """Set the numbers of entries and bytes."""
        with self.lock:
            totals = self.totals()
            change = Counters(count - totals.entries, size - totals.size)
            self._change_parts(lambda part: part, change)

    def _change_parts(
        self, function: Callable[[Counters], Counters], change: Counters = ZERO
    ) -> None:
        """Apply a function to the part of each handle, and add a change to this handle's."""
        while True:
            try:
                made: Any = self.db.transaction(isolation="snapshot")  # as in DB: for mypyc
                with made as transaction:
                    own = ZERO
                    for key, value in list(transaction.iterator(prefix=COUNTERS)):
                        part = function(Counters.decode(value))
                        if key == self._key:
                            own = part
                        else:
                            transaction.put(key, part.encode())
                    own = own.plus(change)
                    transaction.put(self._key, own.encode())
                self._own = own
                return
            except ConflictError:
                pass

    def merge_if_many(self) -> None:
        """Add the counters of other handles to those of handle 0, if there are many."""
        keys = [key for key, _ in self.db.iterator(prefix=COUNTERS) if key not in (BASE, self._key)]
        if len(keys) > _MOST_PARTS:
            self._merge(keys)

    def settle(self) -> None:
        """Add the handle's counters to those of handle 0, before it is closed."""
        with self.lock:
            if not self.shared:
                if self.hits or self.misses:
                    self.run(_change_nothing)
            elif os.getpid() == self._pid and (self.hits or self.misses or self._own != ZERO):
                self.run(_change_nothing)
                self._merge([self._key])
                self._own = ZERO

    def _merge(self, keys: list[bytes]) -> None:
        while True:
            try:
                made: Any = self.db.transaction(isolation="snapshot")  # as in DB: for mypyc
                with made as transaction:
                    total = Counters.decode(transaction.get(BASE))
                    for key in keys:
                        total = total.plus(Counters.decode(transaction.get(key)))
                        transaction.delete(key)
                    transaction.put(BASE, total.encode())
                return
            except ConflictError:
                pass

    def _begin_in_child(self) -> None:
        """Make a copy in a forked child a separate handle."""
        self.lock = new_reentrant_lock()
        self._pid = os.getpid()
        self._others = self._others.plus(self._own)
        self._own = ZERO
        self.hits = self.misses = 0
        self._key = COUNTERS + os.urandom(4)


def _change_nothing(step: Step) -> None:
    """Commit the counters alone."""
    step.changed = True
