"""Laying sources over each other: what a reader sees of memtables and levels together.

A source is an iterator over lists of :data:`~lsmkv.db.merge.Seen`: of each key the newest version
that the reader may see, removals included.  Sources come newest first, and of a key that several
have, the first one's version counts: whatever lies deeper was written before.  Not so in level 0,
where LevelDB's repair puts tables in any order: entries from there bring their sequences along, and
among them those decide.

Going forward, lists follow each other in rising order; going back, each precedes the one before it,
and is itself in rising order.  No source is asked for more before its list is used up, so a short
scan reads little.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from lsmkv.db.keys import Entry
from lsmkv.db.merge import KeyOrder, Pair, Position, Seen, newest


class _Source:
    """A source, and what was taken from it but not used yet."""

    def __init__(self, lists: Iterator[list[Any]]) -> None:
        self._lists = lists
        self.buffer: list[Any] = []

    def fill(self) -> bool:
        """Whether there is anything left; the buffer holds some of it then."""
        while not self.buffer:
            try:
                self.buffer = next(self._lists)
            except StopIteration:
                return False
        return True

    def take_up_to(self, horizon: Any, order: KeyOrder) -> list[Any]:
        """What of the buffer lies up to a key, given as it compares."""
        buffer = self.buffer
        cut = len(buffer)
        if order.of(buffer[-1][0]) > horizon:
            cut = bisect_right(buffer, horizon, key=order.of_entry)
        self.buffer = buffer[cut:]
        return buffer[:cut]

    def take_from(self, horizon: Any, order: KeyOrder) -> list[Any]:
        """What of the buffer lies from a key on."""
        buffer = self.buffer
        cut = 0
        if order.of(buffer[0][0]) < horizon:
            cut = bisect_left(buffer, horizon, key=order.of_entry)
        self.buffer = buffer[:cut]
        return buffer[cut:]


class _Layers:
    """Sources, the newest first, less those that are used up."""

    def __init__(self, sources: list[Iterator[list[Any]]], order: KeyOrder) -> None:
        self._sources = [_Source(source) for source in sources]
        self._order = order

    def _filled(self) -> list[_Source]:
        """The sources, each with something in its buffer; ``StopIteration`` if none is left."""
        sources = [source for source in self._sources if source.fill()]
        self._sources = sources
        if not sources:
            raise StopIteration
        return sources


class Overlay(_Layers):
    """The pairs of several sources, in rising lists; none is empty."""

    def __iter__(self) -> Overlay:
        return self

    def __next__(self) -> list[Pair]:
        order = self._order
        pairs: list[Pair] = []
        while not pairs:
            sources = self._filled()
            # Up to the lowest last key, nothing new can turn up.
            horizon = min([order.of(source.buffer[-1][0]) for source in sources])
            pairs = _laid_over([source.take_up_to(horizon, order) for source in sources], order)
        return pairs


class OverlayBack(_Layers):
    """The mirror image: the last list first, each list rising."""

    def __iter__(self) -> OverlayBack:
        return self

    def __next__(self) -> list[Pair]:
        order = self._order
        pairs: list[Pair] = []
        while not pairs:
            sources = self._filled()
            horizon = max([order.of(source.buffer[0][0]) for source in sources])
            pairs = _laid_over([source.take_from(horizon, order) for source in sources], order)
        return pairs


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
    for entry in entries:
        candidate: tuple[Any, ...] = entry
        if best:
            key = candidate[0]
            if key == best[0] if bytewise else order.compare(key, best[0]) == 0:
                if len(candidate) == 3 and len(best) == 3 and candidate[2] > best[2]:
                    best = candidate
                continue
            if best[1] is not None:
                pairs.append(best if len(best) == 2 else best[:2])
        best = candidate
    if best and best[1] is not None:
        pairs.append(best if len(best) == 2 else best[:2])
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
