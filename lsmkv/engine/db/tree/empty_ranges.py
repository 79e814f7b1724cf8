"""Empty ranges: where scans have found nothing, so that later ones need not look again.

A scan over deleted keys reads the deletions, and what they hide, each time; at the head of a queue
that would be more with every entry that is taken.  So a scan that has read for long without
finding an entry notes the range, and later scans continue after it.

A range states: a reader at its sequence, or at a later one, sees no key there.  It does not
say where the deletions are, so flushes and compactions do not matter to it, and neither do other
deletions.  A put into it splits it before readers see the put.

A scan reads at the sequence at which it was made, while others write.  So it *begins* a
range while nothing has been written since; puts from then on are noted, and split the range when
the scan *ends* it.

The store's writer and its scans share one :class:`EmptyRanges`.  It is changed under the store's
lock; its list is replaced as a whole, so scans read it without the lock.  Where other keys come
into view than by writes, as by an ingest, the store begins with another one: scans from before read
the old one, and no longer add to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.key_order import KeyOrder, Position

if TYPE_CHECKING:
    from mypy_extensions import i64

MOST: Final = 64
"""Number of ranges that are kept: those that saved the most reads."""
SHORTEST: Final = 2
"""Empty reads that a range has to save."""
MOST_PUTS: Final = 10_000
"""Number of puts that are noted for one scan; after more, the findings of that scan are discarded.
"""


class EmptyRange:
    """A range without a visible key, from one position to another; None is an end of the store."""

    __slots__ = ("lower", "reads", "sequence", "upper")

    def __init__(
        self, lower: Position | None, upper: Position | None, sequence: i64, reads: i64
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.sequence: i64 = sequence
        """Readers at this sequence and at later ones see no key of the range."""
        self.reads: i64 = reads
        """Approximate number of reads that it saves a scan."""


class EmptyRanges:
    """The empty ranges that are known of a store.  Methods whose caller holds the store's lock say
    so."""

    def __init__(self, order: KeyOrder, shortest: i64 = SHORTEST) -> None:
        self._order = order
        self._known: list[EmptyRange] = []  # ascending; between two there may be a key
        self._searches: list[list[bytes]] = []  # for each, the keys that were put since
        self.shortest: i64 = shortest
        """After so many empty reads a scan begins a range; one that saves fewer is forgotten."""
        self.active = False
        """True if puts have to be noted."""

    def known(self) -> list[EmptyRange]:
        """The ranges, in ascending order."""
        return self._known

    def next_from(self, edge: Position | None, sequence: i64, back: bool) -> EmptyRange | None:
        """The first range that a scan from a position meets, or is in, if it reads at this
        sequence.  O(log of their number)."""
        known = self._known
        at = self._count_before(known, edge, back) - (1 if back else 0)
        step: i64 = -1 if back else 1
        while 0 <= at < len(known):
            if known[at].sequence <= sequence:
                return known[at]
            at += step
        return None

    def _count_before(self, known: list[EmptyRange], edge: Position | None, back: bool) -> i64:
        """Return the number of ranges that end before a position, or with ``back`` begin before
        it."""
        low: i64 = 0
        high: i64 = len(known)
        while low < high:
            middle = (low + high) >> 1
            end = known[middle].lower if back else known[middle].upper
            if edge is None or end is None:
                before = back
            elif back:
                before = self._order.is_before(end, edge)
            else:
                before = not self._order.is_before(edge, end)
            if before:
                low = middle + 1
            else:
                high = middle
        return low

    def begin(self, search: list[bytes]) -> None:
        """Begin a search: append the keys that are put from now on to this list.  Caller holds the
        lock, and nothing was written after the sequence of its scan."""
        self._searches.append(search)
        self.active = True

    def end(self, search: list[bytes], found: EmptyRange | None) -> None:
        """End a search, with a range in which the scan has found nothing, or None.  Caller holds
        the lock."""
        others = [other for other in self._searches if other is not search]
        is_known = len(others) < len(self._searches)
        self._searches = others
        if is_known and found is not None and len(search) <= MOST_PUTS:
            known = self._with(self._known, found)
            for key in search:
                known = self._without(known, key)
            self._known = known
        self.active = bool(self._known or others)

    def note(self, operations: list[Operation]) -> None:
        """Split the ranges into which these operations put keys.  Caller holds the lock, and then
        makes the operations visible."""
        for key, value in operations:
            if value is not None:
                for search in self._searches:
                    if len(search) <= MOST_PUTS:
                        search.append(key)
                self._known = self._without(self._known, key)

    def _with(self, known: list[EmptyRange], found: EmptyRange) -> list[EmptyRange]:
        """These ranges and another one, which is joined to those that it touches.

        The bounds of a scan may be the wrong way round: then it has found nothing out.
        """
        if self._is_empty(found):
            return known
        before: list[EmptyRange] = []
        after: list[EmptyRange] = []
        for other in known:
            if _is_below(other.upper, found.lower, self._order):
                before.append(other)
            elif _is_below(found.upper, other.lower, self._order):
                after.append(other)
            else:
                found = self._joined(found, other)
        return _trimmed([*before, found, *after])

    def _is_empty(self, some: EmptyRange) -> bool:
        """Return True if no key can be in a range."""
        lower, upper = some.lower, some.upper
        if lower is None or upper is None:
            return False
        return not self._order.is_before(lower, upper)

    def _joined(self, one: EmptyRange, other: EmptyRange) -> EmptyRange:
        """Two ranges that touch, as one."""
        lower, upper = one.lower, one.upper
        if other.lower is None or (lower is not None and self._order.is_before(other.lower, lower)):
            lower = other.lower
        if other.upper is None or (upper is not None and self._order.is_before(upper, other.upper)):
            upper = other.upper
        sequence = max(one.sequence, other.sequence)
        return EmptyRange(lower, upper, sequence, max(one.reads, other.reads))

    def _without(self, known: list[EmptyRange], key: bytes) -> list[EmptyRange]:
        """These ranges, without a key in any.

        Where keys are put in ascending order, the ranges between them are worth little, and the
        one after them keeps its worth.
        """
        edge = Position(key, after=False)
        at = self._count_before(known, edge, False)
        if at == len(known):
            return known
        found = known[at]
        if found.lower is not None and self._order.is_before(edge, found.lower):
            return known
        beyond = Position(key, after=True)
        parts = [
            EmptyRange(found.lower, edge, found.sequence, found.reads >> 1),
            EmptyRange(beyond, found.upper, found.sequence, found.reads - 1),
        ]
        left = [part for part in parts if part.reads >= self.shortest and not self._is_empty(part)]
        return _trimmed([*known[:at], *left, *known[at + 1 :]])


def _trimmed(known: list[EmptyRange]) -> list[EmptyRange]:
    """As many of these as are kept."""
    while len(known) > MOST:
        known.remove(min(known, key=_reads_of))
    return known


def _is_below(end: Position | None, begin: Position | None, order: KeyOrder) -> bool:
    """Return True if a range that ends at one position lies before one that begins at another;
    there may be keys between them."""
    return end is not None and begin is not None and order.is_before(end, begin)


def _reads_of(some: EmptyRange) -> int:
    return some.reads
