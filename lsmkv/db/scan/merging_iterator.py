"""Merges the parts of a scan: what a reader sees of memtables and levels together.

The sources give chunks of :data:`~lsmkv.db.scan.internal_iterator.Seen`: for each key the newest
version in that place that the reader may see, deletions included.  They come newest first, and of a
key that several have, the first one's version counts: what lies deeper was written before.  Level 0
is an exception, since LevelDB's repair puts tables there in any order: entries from there bring
their sequences along, and among them those decide.

A source is asked for more only when its chunk is used up and fewer pairs lie before that than are
wanted: one at first, then twice as many as the time before.  So a short scan reads little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lsmkv.db.scan.internal_iterator import InternalIterator
from lsmkv.errors import Error
from lsmkv.format.key_order import KeyOrder

if TYPE_CHECKING:
    from mypy_extensions import i64

_MOST: Final = 512
"""Pairs that are handed out at once, at most."""


class _Source:
    """A source, and what was taken from it but not used yet."""

    __slots__ = ("_back", "_buffer", "_chunks", "_order", "_place", "age", "head", "left")

    def __init__(self, chunks: InternalIterator, order: KeyOrder, back: bool, age: int) -> None:
        self.age = age
        """How many sources are newer."""
        self._chunks = chunks
        self._order = order
        self._back = back
        self._buffer: list[Any] = []
        self._place: i64 = 0
        """Of the next entry in the buffer."""
        self.left: i64 = 0
        """How many entries the buffer has left;"""
        self.head: Any = None
        """the next one's key, as it compares."""

    def fill(self) -> bool:
        """Take the next chunk, once the last one is used up; False if there is none."""
        some = self._chunks.next_chunk()
        if not some:
            return False
        self._buffer = some
        self.left = len(some)
        self._place = self.left - 1 if self._back else 0
        self.head = self._order.of(some[self._place][0])
        return True

    def step(self) -> Any:
        """Step over the next entry, and return it."""
        entry = self._buffer[self._place]
        self.left -= 1
        if self.left > 0:
            self._place += -1 if self._back else 1
            self.head = self._order.of(self._buffer[self._place][0])
        return entry

    def pour(self, pairs: list[Any], limit: Any, most: i64) -> None:
        """Hand out what comes before the key ``limit``, or all if that is None; no deletions.

        One entry at least, ``most`` of them at most, and none beyond the buffer.
        """
        buffer = self._buffer
        order = self._order
        plain = order.is_bytewise
        back = self._back
        step: i64 = -1 if back else 1
        place = self._place
        left = self.left
        head = self.head
        entry: tuple[Any, ...] = buffer[place]
        while True:
            if entry[1] is not None:
                size: i64 = len(entry)
                pairs.append(entry if size == 2 else entry[:2])
            left -= 1
            most -= 1
            if left == 0:
                break
            place += step
            entry = buffer[place]
            head = entry[0] if plain else order.of(entry[0])
            if most == 0 or (limit is not None and not (limit < head if back else head < limit)):
                break
        self._place = place
        self.left = left
        self.head = head


class MergingIterator(InternalIterator):
    """The pairs of several sources; each chunk is in rising order."""

    def __init__(
        self, sources: list[InternalIterator], order: KeyOrder, back: bool = False
    ) -> None:
        """The newest source first; ``back`` says which way they go."""
        self._new = [_Source(source, order, back, age) for age, source in enumerate(sources)]
        """Those that nothing was taken from yet."""
        self._line: list[_Source] = []
        """The others by their heads, the next one first; one that is empty stands before all."""
        self._back = back
        self._enough: i64 = 1
        """So many pairs are handed out at once, and more if no source is to be asked for them."""
        self._error: Exception | None = None

    def next_chunk(self) -> list[Any]:
        """The next pairs; after an error, once what lies before it was given, always that error."""
        if self._error is not None:
            raise self._error
        # Of anything: what is known to be a pair, compiled, is taken apart and put together again.
        pairs: list[Any] = []
        try:
            self._merge(pairs)
        except (Error, OSError) as error:
            # What lies before damage is handed out.
            self._error = error
            # Emptied, not replaced: the error's frames know them, and those would keep all sources.
            self._new.clear()
            self._line.clear()
            if not pairs:
                raise
        if not pairs:
            return pairs
        count: i64 = len(pairs)
        self._enough = min(2 * count, _MOST)
        if self._back:
            pairs.reverse()
        return pairs

    def _merge(self, pairs: list[Any]) -> None:
        """Add the next pairs; none if nothing is left.

        The source whose key comes next is poured up to the key that comes second, and gets in line
        again.  That takes a comparison a pair while a source has a stretch of keys for itself, and
        one for each source that it lets pass at the end of that: dear where a dozen take turns.
        """
        line = self._line
        while self._new:
            source = self._new.pop()
            if source.fill():
                line.insert(0, source)
                self._move_back(0)
        back = self._back
        enough = self._enough
        count: i64 = 0
        while count < _MOST and line:
            first = line[0]
            if first.left == 0:
                if count >= enough:
                    return
                if first.fill():
                    self._move_back(0)
                else:
                    line.pop(0)
            elif len(line) == 1:
                first.pour(pairs, None, _MOST - count)
            else:
                limit = line[1].head
                if limit < first.head if back else first.head < limit:
                    first.pour(pairs, limit, _MOST - count)
                    self._move_back(0)
                else:
                    self._choose(pairs)
            count = len(pairs)

    def _move_back(self, at: i64) -> None:
        """Put the source at ``at`` in its place: behind it, the line is in order.

        One that is empty stays before all that are not, wherever its next chunk begins: tables
        whose keys are out of order must not lead round in circles.
        """
        line = self._line
        back = self._back
        source = line[at]
        if source.left == 0:
            return
        head = source.head
        at += 1
        while at < len(line):
            other = line[at]
            if other.left > 0 and not (head < other.head if back else other.head < head):
                break
            line[at - 1] = other
            at += 1
        line[at - 1] = source

    def _choose(self, pairs: list[Any]) -> None:
        """Step over a key that several sources have, and hand the pair out that counts."""
        line = self._line
        key = line[0].head
        same = [source for source in line if not (source.head < key or key < source.head)]
        best: tuple[Any, ...] = ()
        for source in sorted(same, key=_age_of):
            entry: tuple[Any, ...] = source.step()
            size: i64 = len(entry)
            if not best or (size == 3 and len(best) == 3 and entry[2] > best[2]):
                best = entry
        if best[1] is not None:
            pairs.append(best[:2])
        for at in range(len(same) - 1, -1, -1):
            self._move_back(at)


def _age_of(source: _Source) -> int:
    return source.age
