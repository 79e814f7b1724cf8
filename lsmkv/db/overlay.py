"""Laying sources over each other: what a reader sees of memtables and levels together.

A source is an iterator over lists of :data:`~lsmkv.db.merge.Seen`: of each key the newest version
that the reader may see, removals included.  Sources come newest first, and of a key that several
have, the first one's version counts: whatever lies deeper was written before.  Not so in level 0,
where LevelDB's repair puts tables in any order: entries from there bring their sequences along, and
among them those decide.

Going forward, lists follow each other in rising order; going back, each precedes the one before
it, and is itself in rising order.  A source is asked for more when its list is used up, or when it
holds the others back: then it is read ahead, no further than the scan has come already, so a short
scan reads little.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from lsmkv.db.keys import Entry
from lsmkv.db.merge import KeyOrder, Pair, Position, Seen, joined, newest
from lsmkv.errors import Error

if TYPE_CHECKING:
    from mypy_extensions import i64

_MOST: Final = 512
"""Entries of a source that are laid over the others at once."""


class _Source:
    """A source, and what was taken from it but not used yet: ``buffer[low:high]``."""

    __slots__ = ("_back", "_buffer", "_error", "_high", "_lists", "_low", "_order")

    def __init__(self, lists: Iterator[list[Any]], order: KeyOrder, back: bool) -> None:
        self._lists = lists
        self._order = order
        self._back = back
        self._buffer: list[Any] = []
        self._low: i64 = 0
        self._high: i64 = 0
        self._error: Exception | None = None

    def fill(self) -> bool:
        """Whether there is anything left; the buffer holds some of it then."""
        if self._low == self._high:
            self._put(self._next())
        return self._low < self._high

    def edge(self) -> Any:
        """The key that the buffer reaches to, as it compares: the last, going back the first."""
        return self._order.of(self._buffer[self._low if self._back else self._high - 1][0])

    def read_ahead(self, enough: i64, limit: Any) -> Any:
        """Have ``enough`` in the buffer, if there is so much this side of a key; the new edge.

        What fails here is raised when the buffer is used up: what lies before damage is handed out.
        """
        parts: list[list[Any]] = []
        size = self._high - self._low
        edge = self.edge()
        while size < enough and _is_nearer(edge, limit, self._back):
            try:
                more = self._next()
            except (Error, OSError) as error:
                self._error = error
                break
            if not more:
                break
            parts.append(more)
            size += len(more)
            edge = self._order.of(more[0 if self._back else -1][0])
        if parts:
            parts.insert(0, self._buffer[self._low : self._high])
            if self._back:
                parts.reverse()
            self._put(joined(parts))
        return edge

    def take(self, horizon: Any) -> list[Any]:
        """What of the buffer lies this side of a key, or at it."""
        buffer = self._buffer
        low = self._low
        high = self._high
        first = self._order.of(buffer[low][0])
        last = self._order.of(buffer[high - 1][0])
        if self._back:
            if last < horizon:
                return []
            if first < horizon:
                low = bisect_left(buffer, horizon, low, high, key=self._order.of_entry)
            self._high = low
        else:
            if horizon < first:
                return []
            if horizon < last:
                high = bisect_right(buffer, horizon, low, high, key=self._order.of_entry)
            self._low = high
        return buffer[low:high]

    def _next(self) -> list[Any]:
        """The source's next list that is not empty; [] if there is none."""
        if self._error is not None:
            raise self._error
        for some in self._lists:
            if some:
                return some
        return []

    def _put(self, buffer: list[Any]) -> None:
        self._buffer = buffer
        self._low = 0
        self._high = len(buffer)


class Overlay:
    """The pairs of several sources, in rising lists, none of them empty."""

    def __init__(
        self, sources: list[Iterator[list[Any]]], order: KeyOrder, back: bool = False
    ) -> None:
        """The newest source first; ``back`` says which way they go."""
        self._sources = [_Source(source, order, back) for source in sources]
        """Those that are not used up."""
        self._order = order
        self._back = back
        self._enough: i64 = 0
        """So many entries of a source are laid over the others at once, if it has them: more and
        more, for each time costs as much as some entries do."""

    def __iter__(self) -> Overlay:
        return self

    def __next__(self) -> list[Pair]:
        pairs: list[Pair] = []
        while not pairs:
            sources = [source for source in self._sources if source.fill()]
            self._sources = sources
            if not sources:
                raise StopIteration
            horizon = self._horizon(sources)
            pairs = _laid_over([source.take(horizon) for source in sources], self._order)
            self._enough = min(2 * max(self._enough, len(pairs)), _MOST)
        return pairs

    def _horizon(self, sources: list[_Source]) -> Any:
        """The nearest of the edges: up to there, nothing new can turn up."""
        back = self._back
        nearest = sources[0]
        horizon = nearest.edge()
        if len(sources) == 1:
            return horizon
        second: Any = None
        for source in sources[1:]:
            edge = source.edge()
            if _is_nearer(edge, horizon, back):
                second = horizon
                horizon = edge
                nearest = source
            elif second is None or _is_nearer(edge, second, back):
                second = edge
        horizon = nearest.read_ahead(self._enough, second)
        return second if _is_nearer(second, horizon, back) else horizon


def _is_nearer(a: Any, b: Any, back: bool) -> bool:
    """Whether one key, as it compares, comes before another on the way."""
    return bool(b < a if back else a < b)


def _laid_over(lists: list[list[Any]], order: KeyOrder) -> list[Pair]:
    """All pairs in order: of each key the first list's, and no removals."""
    # Of anything, and no length told by len(): what is known to be a pair, compiled, is taken apart
    # and put together again.
    pairs: list[Any] = []
    entries = joined(lists)
    if len(entries) > len(lists[0]):
        entries.sort(key=order.of_entry)  # stable: what comes from the newer source stays first
    bytewise = order.is_bytewise
    best: tuple[Any, ...] = ()
    last = b""  # its key
    for entry in entries:
        candidate: tuple[Any, ...] = entry
        key: bytes = candidate[0]
        size: i64 = len(candidate)
        if best and (key == last if bytewise else order.compare(key, last) == 0):
            if size == 2 or len(best) == 2 or candidate[2] <= best[2]:
                continue
            if best[1] is not None:
                pairs.pop()
        best = candidate
        last = key
        if candidate[1] is not None:
            pairs.append(entry if size == 2 else candidate[:2])
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
