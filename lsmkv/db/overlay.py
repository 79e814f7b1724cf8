"""Laying sources over each other: what a reader sees of memtables and levels together.

A source is an iterator over lists of :data:`~lsmkv.db.merge.Seen`: of each key the newest version
that the reader may see, removals included.  Sources come newest first, and of a key that several
have, the first one's version counts: whatever lies deeper was written before.  Not so in level 0,
where LevelDB's repair puts tables in any order: entries from there bring their sequences along, and
among them those decide.

Going forward, lists follow each other in rising order; going back, each precedes the one before it,
and is itself in rising order.  A list that was handed over is the overlay's own, to change.  A
source is asked for more when its list is used up, or when it holds the others back: then it is read
ahead, no further than the scan has come already, so a short scan reads little.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from lsmkv.db.keys import Entry
from lsmkv.db.merge import KeyOrder, Pair, Position, Seen, newest

if TYPE_CHECKING:
    from mypy_extensions import i64

_MOST: Final = 512
"""Entries of a source that are laid over the others at once."""


class _Source:
    """A source, and what was taken from it but not used yet: ``buffer[low:high]``."""

    __slots__ = ("_lists", "buffer", "high", "low")

    def __init__(self, lists: Iterator[list[Any]]) -> None:
        self._lists = lists
        self.buffer: list[Any] = []
        self.low: i64 = 0
        self.high: i64 = 0

    @property
    def size(self) -> i64:
        """Entries in the buffer."""
        return self.high - self.low

    def first(self, order: KeyOrder) -> Any:
        """The buffer's first key, as it compares."""
        return order.of(self.buffer[self.low][0])

    def last(self, order: KeyOrder) -> Any:
        """The buffer's last key, as it compares."""
        return order.of(self.buffer[self.high - 1][0])

    def fill(self) -> bool:
        """Whether there is anything left; the buffer holds some of it then."""
        return self.size > 0 or self._put(self._next())

    def extend(self) -> bool:
        """Have another list behind what the buffer holds; False if there is none."""
        more = self._next()
        if not more:
            return False
        buffer = self.buffer
        del buffer[: self.low]
        buffer += more
        return self._put(buffer)

    def extend_back(self) -> bool:
        """Have another list before what the buffer holds; False if there is none."""
        more = self._next()
        return bool(more) and self._put(more + self.buffer[self.low : self.high])

    def take_up_to(self, horizon: Any, order: KeyOrder) -> list[Any]:
        """What of the buffer lies up to a key, given as it compares."""
        buffer = self.buffer
        low = self.low
        if self.first(order) > horizon:
            return []
        cut = self.high
        if self.last(order) > horizon:
            cut = bisect_right(buffer, horizon, low, cut, key=order.of_entry)
        self.low = cut
        return buffer[low:cut]

    def take_from(self, horizon: Any, order: KeyOrder) -> list[Any]:
        """What of the buffer lies from a key on."""
        buffer = self.buffer
        high = self.high
        if self.last(order) < horizon:
            return []
        cut = self.low
        if self.first(order) < horizon:
            cut = bisect_left(buffer, horizon, cut, high, key=order.of_entry)
        self.high = cut
        return buffer[cut:high]

    def _next(self) -> list[Any]:
        """The source's next list that is not empty; [] if there is none."""
        for some in self._lists:
            if some:
                return some
        return []

    def _put(self, buffer: list[Any]) -> bool:
        self.buffer = buffer
        self.low = 0
        self.high = len(buffer)
        return self.high > 0


class _Layers:
    """Sources, the newest first, less those that are used up."""

    def __init__(self, sources: list[Iterator[list[Any]]], order: KeyOrder) -> None:
        self._sources = [_Source(source) for source in sources]
        self._order = order
        self._enough: i64 = 0
        """So many entries of a source are laid over the others at once, if it has them: more and
        more, for each time costs as much as some entries do."""

    def _filled(self) -> list[_Source]:
        """The sources, each with something in its buffer; ``StopIteration`` if none is left."""
        sources = [source for source in self._sources if source.fill()]
        self._sources = sources
        if not sources:
            raise StopIteration
        return sources

    def _laid_over(self, lists: list[list[Any]]) -> list[Pair]:
        pairs = _laid_over(lists, self._order)
        self._enough = min(2 * max(self._enough, len(pairs)), _MOST)
        return pairs


class Overlay(_Layers):
    """The pairs of several sources, in rising lists; none is empty."""

    def __iter__(self) -> Overlay:
        return self

    def __next__(self) -> list[Pair]:
        order = self._order
        pairs: list[Pair] = []
        while not pairs:
            sources = self._filled()
            horizon = self._horizon(sources)
            pairs = self._laid_over([source.take_up_to(horizon, order) for source in sources])
        return pairs

    def _horizon(self, sources: list[_Source]) -> Any:
        """The lowest last key of a buffer: up to there, nothing new can turn up."""
        order = self._order
        lowest = sources[0]
        horizon = lowest.last(order)
        if len(sources) == 1:
            return horizon
        second: Any = None
        for source in sources[1:]:
            last = source.last(order)
            if last < horizon:
                second = horizon
                horizon = last
                lowest = source
            elif second is None or last < second:
                second = last
        while lowest.size < self._enough and horizon < second and lowest.extend():
            horizon = lowest.last(order)
        return min(horizon, second)


class OverlayBack(_Layers):
    """The mirror image: the last list first, each list rising."""

    def __iter__(self) -> OverlayBack:
        return self

    def __next__(self) -> list[Pair]:
        order = self._order
        pairs: list[Pair] = []
        while not pairs:
            sources = self._filled()
            horizon = self._horizon(sources)
            pairs = self._laid_over([source.take_from(horizon, order) for source in sources])
        return pairs

    def _horizon(self, sources: list[_Source]) -> Any:
        """The highest first key of a buffer."""
        order = self._order
        highest = sources[0]
        horizon = highest.first(order)
        if len(sources) == 1:
            return horizon
        second: Any = None
        for source in sources[1:]:
            first = source.first(order)
            if horizon < first:
                second = horizon
                horizon = first
                highest = source
            elif second is None or second < first:
                second = first
        while highest.size < self._enough and second < horizon and highest.extend_back():
            horizon = highest.first(order)
        return max(horizon, second)


def _laid_over(lists: list[list[Any]], order: KeyOrder) -> list[Pair]:
    """All pairs in order: of each key the first list's, and no removals."""
    # Of anything: compiled, what is known to be a pair is taken apart and put together again.
    pairs: list[Any] = []
    entries: list[Any] = []
    for some in lists:
        entries += some
    if len(entries) > len(lists[0]):
        entries.sort(key=order.of_entry)  # stable: what comes from the newer source stays first
    bytewise = order.is_bytewise
    best: tuple[Any, ...] = ()
    last = b""  # its key
    for entry in entries:
        candidate: tuple[Any, ...] = entry
        key: bytes = candidate[0]
        if best and (key == last if bytewise else order.compare(key, last) == 0):
            if len(candidate) == 2 or len(best) == 2 or candidate[2] < best[2]:
                continue
            if best[1] is not None:
                pairs.pop()
        best = candidate
        last = key
        if candidate[1] is not None:
            pairs.append(candidate if len(candidate) == 2 else candidate[:2])
    return pairs


def seen(
    cursor: Iterator[list[Entry]], hidden: int, order: KeyOrder, upper: Position | None
) -> Iterator[list[Seen]]:
    """A source of a cursor of entries, up to a bound; versions above ``hidden`` are seen."""
    held: list[Entry] = []  # of the last key, of which the next list may have more
    for entries in cursor:
        entries = held + entries
        if upper is not None and order.is_at_or_after(entries[-1][0], upper):
            yield newest(entries[: order.count_before(entries, upper)], hidden, order)
            return
        cut = order.count_before(entries, Position(entries[-1][0], after=False))
        held = entries[cut:]
        yield newest(entries[:cut], hidden, order)
    yield newest(held, hidden, order)


def seen_back(
    cursor: Iterator[list[Entry]], hidden: int, order: KeyOrder, lower: Position | None
) -> Iterator[list[Seen]]:
    """The mirror image."""
    held: list[Entry] = []  # of the first key
    for entries in cursor:
        entries = entries + held
        if lower is not None and not order.is_at_or_after(entries[0][0], lower):
            yield newest(entries[order.count_before(entries, lower) :], hidden, order)
            return
        cut = order.count_before(entries, Position(entries[0][0], after=True))
        held = entries[:cut]
        yield newest(entries[cut:], hidden, order)
    yield newest(held, hidden, order)
