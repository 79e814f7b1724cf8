"""The sequences that someone still looks at, and what holds each of them."""

from __future__ import annotations

from bisect import bisect_left


class PinnedSequences:
    """A multiset of sequences, each held by a :class:`Pin`.

    ``register``, ``newest`` and ``oldest`` are called under the store's lock.  ``release`` takes
    no lock at all, since finalizers call it and may run at any moment: what is released is noted,
    and taken into account by the next call under the lock.
    """

    def __init__(self) -> None:
        self._sequences: list[int] = []  # rising: sequences are registered as they are made
        self._released: list[int] = []

    def register(self, sequence: int) -> None:
        """Keep what is visible at ``sequence``.  Caller holds the lock."""
        while self._released:
            gone = self._released.pop()
            if gone == sequence:
                return  # it is there, and stays
            self._remove(gone)
        if self._sequences and self._sequences[-1] > sequence:
            at = bisect_left(self._sequences, sequence)
            self._sequences.insert(at, sequence)
        else:
            self._sequences.append(sequence)

    def release(self, sequence: int) -> None:
        """Undo one :meth:`register`.  Any thread, any time."""
        self._released.append(sequence)

    def newest(self) -> int:
        """The newest live sequence, or -1.  Caller holds the lock."""
        if self._released:
            self._settle()
        return self._sequences[-1] if self._sequences else -1

    def oldest(self, otherwise: int) -> int:
        """The oldest live sequence, or ``otherwise``.  Caller holds the lock."""
        if self._released:
            self._settle()
        return self._sequences[0] if self._sequences else otherwise

    def all(self) -> list[int]:
        """The live sequences, rising, each once.  Caller holds the lock."""
        self._settle()
        return sorted(set(self._sequences))

    def __len__(self) -> int:
        return len(self._sequences) - len(self._released)

    def _settle(self) -> None:
        while self._released:
            self._remove(self._released.pop())

    def _remove(self, sequence: int) -> None:
        at = bisect_left(self._sequences, sequence)
        if at < len(self._sequences) and self._sequences[at] == sequence:
            del self._sequences[at]


class Pin:
    """Keeps a sequence live until it is released, or forgotten.

    Who reads at a sequence holds its pin.  The pin alone releases what was registered for it, and
    does so once, whoever asks for it and how often: a second release would take the sequence from
    another reader.  One gap remains, in interpreted code: Ctrl-C within this module's few steps of
    registering or releasing may leave the sequence live until the store is closed, which costs
    some room and harms no reader.
    """

    _live: PinnedSequences | None = None  # until there is something to release

    def __init__(self, live: PinnedSequences, sequence: int) -> None:
        """Register ``sequence``.  Caller holds the store's lock."""
        self.sequence = sequence
        live.register(sequence)
        self._live = live

    def release(self) -> None:
        """Let go of the sequence.  Any thread, any time; more than once does no harm."""
        live = self._live
        if live is not None:
            self._live = None  # first, so that whatever comes in between finds it done
            live.release(self.sequence)

    def __del__(self) -> None:
        self.release()
