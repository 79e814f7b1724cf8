"""The logs that iterators over committed batches still need: :class:`LogHolds`.

A log is obsolete once a table has its writes; it is then removed, unless an iterator still reads
it.
"""

from __future__ import annotations

import weakref

from mypy_extensions import mypyc_attr

from lsmkv.engine.format.log_tail import LogTail


@mypyc_attr(native_class=False)  # which allows weak references
class LogHold:
    """The position of one iterator: it needs the log of this number, and all later ones."""

    number = 0
    tail: LogTail | None = None
    """The reader of that log; None before the first, and once the store is closed."""
    holds: LogHolds | None = None
    """The registry that has it."""

    def move(self, number: int, tail: LogTail | None) -> None:
        """Read on in another log."""
        self.number = number
        self.tail = tail
        if self.holds is not None:
            self.holds.moved()

    def end(self) -> None:
        """Release all logs."""
        self.tail = None
        if self.holds is not None:
            self.holds.remove(self)


class LogHolds:
    """The holds of one store, each as long as its iterator lives.  Any thread may call any method.

    Fast path: a store without such iterators has an empty list.
    """

    def __init__(self) -> None:
        self._holds: list[weakref.ref[LogHold]] = []

    def add(self, hold: LogHold) -> None:
        """Keep the logs that ``hold`` needs, from now on."""
        before = hold.holds
        if before is self:
            return
        self.oldest()  # which forgets those whose iterators are gone
        self._holds.append(weakref.ref(hold))
        hold.holds = self
        self.moved()
        if before is not None:
            before._drop(hold)

    def remove(self, hold: LogHold) -> None:
        """Forget a hold."""
        hold.holds = None
        self._drop(hold)

    def move_to(self, others: LogHolds) -> None:
        """Move the holds to ``others``, which keep the logs: this process no longer writes to the
        store."""
        for reference in list(self._holds):
            hold = reference()
            if hold is not None:
                others.add(hold)

    def oldest(self) -> int | None:
        """The number of the oldest log that is needed; None if none is."""
        oldest: int | None = None
        for reference in list(self._holds):
            hold = reference()
            if hold is None:
                self._discard(reference)
            elif oldest is None or hold.number < oldest:
                oldest = hold.number
        return oldest

    def moved(self) -> None:
        """Hook that is called when a hold was added or removed, or needs other logs."""

    def close(self) -> None:
        """Drop the readers of the logs: the store is closed."""
        for reference in list(self._holds):
            hold = reference()
            if hold is not None:
                hold.tail = None

    def _drop(self, hold: LogHold) -> None:
        for reference in list(self._holds):
            if reference() is hold:
                self._discard(reference)
        self.moved()

    def _discard(self, reference: weakref.ref[LogHold]) -> None:
        try:
            self._holds.remove(reference)
        except ValueError:
            pass  # another thread has removed it
