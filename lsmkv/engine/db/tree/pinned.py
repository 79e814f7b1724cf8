"""Pinned sequences: the points in time that snapshots and iterators still read at.

Writes, flushes and compactions keep every version that is visible at a pinned sequence.  The store
registers sequences under its lock; a :class:`Pin` releases one from any thread, without a lock.
"""

from __future__ import annotations

from bisect import bisect_left, insort


class PinnedSequences:
    """A multiset of sequences, each held by a :class:`Pin`.

    ``register``, ``newest``, ``oldest`` and ``all`` are called under the store's lock.  ``release``
    takes no lock, since finalizers call it and may run at any moment: it appends the sequence to a
    list, and the next call under the lock removes it.  ``register_nested`` does likewise.
    """

    def __init__(self) -> None:
        self._sequences: list[int] = []  # ascending: sequences are registered as they are made
        self._registered: list[int] = []  # by nested calls
        self._released: list[int] = []

    def register(self, sequence: int) -> None:
        """Pin ``sequence``: what is visible at it is kept.  Caller holds the lock."""
        if self._registered:
            self._settle()
        while self._released:
            gone = self._released.pop()
            if gone == sequence:
                return  # it is registered already
            self._remove(gone)
        if self._sequences and self._sequences[-1] > sequence:
            at = bisect_left(self._sequences, sequence)
            self._sequences.insert(at, sequence)
        else:
            self._sequences.append(sequence)

    def register_nested(self, sequence: int) -> None:
        """:meth:`register` for a nested call, whose thread holds the lock.

        Interrupted calls may have read which sequences are pinned: this one is the newest of all,
        or pinned already.
        """
        self._registered.append(sequence)

    def release(self, sequence: int) -> None:
        """Undo one :meth:`register`.  Any thread, any time."""
        self._released.append(sequence)

    def newest(self) -> int:
        """The newest pinned sequence, or -1.  Caller holds the lock."""
        if self._released or self._registered:
            self._settle()
        return self._sequences[-1] if self._sequences else -1

    def in_order(self) -> list[int]:
        """The pinned sequences, in ascending order, as :meth:`newest` has left them: the list
        itself, which the caller only reads.  Caller holds the lock."""
        return self._sequences

    def oldest(self, otherwise: int) -> int:
        """The oldest pinned sequence, or ``otherwise``.  Caller holds the lock."""
        if self._released or self._registered:
            self._settle()
        return self._sequences[0] if self._sequences else otherwise

    def all(self) -> list[int]:
        """The pinned sequences, in ascending order, each once.  Caller holds the lock."""
        self._settle()
        return sorted(set(self._sequences))

    def __len__(self) -> int:
        return len(self._sequences) + len(self._registered) - len(self._released)

    def _settle(self) -> None:
        # First: a sequence that was released again is in both lists.
        while self._registered:
            insort(self._sequences, self._registered.pop())
        while self._released:
            self._remove(self._released.pop())

    def _remove(self, sequence: int) -> None:
        at = bisect_left(self._sequences, sequence)
        if at < len(self._sequences) and self._sequences[at] == sequence:
            del self._sequences[at]


class Pin:
    """Keeps a sequence pinned until it is released or collected.

    A reader at a sequence holds a pin of it.  Only the pin releases what it has registered, and
    only once, however often :meth:`release` is called: a second release would unpin the sequence of
    another reader.  One gap remains, in interpreted code: Ctrl-C within the few steps of
    registering or releasing may leave the sequence pinned until the store is closed, which costs
    some space and harms no reader.
    """

    _pinned: PinnedSequences | None = None  # until there is something to release

    def __init__(self, pinned: PinnedSequences, sequence: int, nested: bool = False) -> None:
        """Register ``sequence``.  Caller holds the store's lock; if ``nested``, an outer call."""
        self.sequence = sequence
        if nested:
            pinned.register_nested(sequence)
        else:
            pinned.register(sequence)
        self._pinned = pinned

    def release(self) -> None:
        """Unpin the sequence.  Any thread, any time; a second call has no effect."""
        pinned = self._pinned
        if pinned is not None:
            self._pinned = None  # first, so that a call that comes in between does nothing
            pinned.release(self.sequence)

    def __del__(self) -> None:
        self.release()
