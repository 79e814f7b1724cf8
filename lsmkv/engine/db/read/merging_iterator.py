"""The merging iterator: merges the memtable iterators and level iterators of a scan.

Its sources return chunks of :data:`~lsmkv.engine.db.read.internal_iterator.Seen`: for each key the
newest visible version in that source, deletions included.  The newest source comes first, and where
several have a key, the first one's version counts, since deeper levels are older.  Level 0 is an
exception, because LevelDB's repair puts tables there in any order: its entries carry their
sequences, and among them the highest counts.

A scan makes it; one thread at a time uses it, and no lock is held.  Left out: a heap.  There are
only a few sources, and usually one of them has several keys in a row.

Fast paths: a source is asked for its next chunk only when the last one is exhausted and the pairs
before that are fewer than wanted: one at first, then twice as many each time.  So a short scan
reads little.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final

from lsmkv.engine.db.read.internal_iterator import InternalIterator
from lsmkv.engine.errors import Error
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.table.deletion_run import NOTHING, SHORTEST_RUN, DeletionRun, Unneeded, run_in

if TYPE_CHECKING:
    from mypy_extensions import i64

_MOST: Final = 512
"""The most pairs in a chunk."""
_IDLE: Final = 2
"""After so many empty reads a chunk that has pairs ends: a stretch is before one, not within."""


class _Source:
    """A source, and what was taken from it but not used yet."""

    __slots__ = (
        "_back",
        "_buffer",
        "_order",
        "_place",
        "_run",
        "_run_at",
        "age",
        "chunks",
        "key",
        "left",
    )

    def __init__(self, chunks: InternalIterator, order: KeyOrder, back: bool, age: i64) -> None:
        self.age: i64 = age
        """Number of newer sources."""
        self.chunks = chunks
        self._order = order
        self._back = back
        self._buffer: list[Any] = []
        self._place: i64 = 0
        """Index of the next entry in the buffer."""
        self._run: DeletionRun | None = None
        """The next entry, if it is a run of deletions."""
        self._run_at: i64 = 0
        """Index of the next deletion in that run."""
        self.left: i64 = 0
        """Number of entries left in the buffer; a run counts as one."""
        self.key: Any = None
        """The sort key of the next entry's user key."""

    def fill(self) -> bool:
        """Read the next chunk, once the last one is exhausted; False if there is none."""
        some = self.chunks.next_chunk()
        if not some:
            return False
        self._buffer = some
        self.left = len(some)
        self._arrive(self.left - 1 if self._back else 0)
        return True

    def coming_run(self) -> DeletionRun | None:
        """The next run of deletions, perhaps after a few deletions that it also holds."""
        if self._run is not None or self._back:
            return self._run
        at = self._place
        stop: i64 = min(at + SHORTEST_RUN + 1, len(self._buffer))
        while at < stop:
            entry: tuple[Any, ...] = self._buffer[at]
            if entry[1] is not None:
                return None
            if len(entry) == 4:
                return run_in(entry)
            at += 1
        return None

    def step(self) -> Any:
        """Step over the next entry, and return it; a deletion in a run is returned as a separate
        entry."""
        run = self._run
        entry = self._buffer[self._place]
        if run is not None:
            at = self._run_at
            if run.sequences is None:
                entry = (run.keys[at], None)
            else:
                entry = (run.keys[at], None, run.sequences[at])
            if self._is_in_run(run, at - 1 if self._back else at + 1):
                return entry
        self.left -= 1
        if self.left > 0:
            self._arrive(self._place + (-1 if self._back else 1))
        return entry

    def pour(self, pairs: list[Any], limit: Any, most: i64) -> None:
        """Append the pairs before the key ``limit``, or all if it is None, without deletions.

        It steps over one entry at least, ``most`` at most, and none beyond the buffer.
        """
        buffer = self._buffer
        order = self._order
        plain = order.is_bytewise
        back = self._back
        step: i64 = -1 if back else 1
        run = self._run
        if run is not None:
            if self._is_in_run(run, self._next_beyond(run, limit)):
                return
            self.left -= 1
            if self.left > 0:
                self._arrive(self._place + step)
            return
        place = self._place
        left = self.left
        key = self.key
        entry: tuple[Any, ...] = buffer[place]
        while True:
            if entry[1] is not None:
                size: i64 = len(entry)
                pairs.append(entry if size == 2 else entry[:2])
            elif len(entry) == 4:
                break
            left -= 1
            most -= 1
            if left == 0:
                break
            place += step
            entry = buffer[place]
            key = entry[0] if plain else order.of(entry[0])
            if most == 0 or (limit is not None and not (limit < key if back else key < limit)):
                break
        self._place = place
        self.left = left
        self.key = key
        if left > 0 and entry[1] is None:
            self._arrive(place)  # it may be a run, whose key depends on the direction

    def _arrive(self, place: i64) -> None:
        """Stand before the entry at an index of the buffer."""
        self._place = place
        entry: tuple[Any, ...] = self._buffer[place]
        run = run_in(entry)
        self._run = run
        if run is None:
            self.key = self._order.of(entry[0])
        else:
            self._is_in_run(run, len(run.keys) - 1 if self._back else run.first)

    def _is_in_run(self, run: DeletionRun, at: i64) -> bool:
        """Stand before the deletion at an index of the run; False, and no change, past its end."""
        if at < run.first or at >= len(run.keys):
            return False
        self._run_at = at
        self.key = self._order.of(run.keys[at])
        return True

    def _next_beyond(self, run: DeletionRun, limit: Any) -> i64:
        """Index of the first deletion after this one that does not come before the key ``limit``,
        in the direction of the scan; one past the end of the run if there is none, or no limit."""
        keys = run.keys
        if limit is None:
            return -1 if self._back else len(keys)
        of = None if self._order.is_bytewise else self._order.of
        if self._back:
            return bisect_right(keys, limit, 0, self._run_at, key=of) - 1
        return bisect_left(keys, limit, self._run_at + 1, key=of)


class MergingIterator(InternalIterator):
    """The pairs of several sources; each chunk is in ascending order."""

    def __init__(
        self, sources: list[InternalIterator], order: KeyOrder, back: bool = False
    ) -> None:
        """The newest source comes first; ``back`` is the direction of all of them."""
        self._new = [_Source(source, order, back, age) for age, source in enumerate(sources)]
        """The sources that have not been read yet."""
        self._queue: list[_Source] = []
        """The others, by their next keys; those with an empty buffer come first."""
        self._back = back
        self._is_bytewise = order.is_bytewise
        self._enough: i64 = 1
        """A chunk has this many pairs, and more if no source has to be read for them."""
        self._error: Exception | None = None

    def next_chunk(self) -> list[Any]:
        """The next pairs.  After an error the pairs before it come first, and then always the
        error."""
        if self._error is not None:
            raise self._error
        # list[Any]: in compiled code, a list[Pair] would take each tuple apart and build it again.
        pairs: list[Any] = []
        try:
            self._merge(pairs)
        except (Error, OSError) as error:
            # The pairs before the damage are returned first.
            self._error = error
            # Cleared, not replaced: the error's frames refer to these lists, and would keep all
            # sources alive.
            self._new.clear()
            self._queue.clear()
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
        """Append the next pairs; none if nothing is left.

        The source with the next key gives all pairs before the next key of the second source, and
        is put back into the queue.  That costs one comparison a pair while one source has several
        keys in a row, and one more for each source that it is moved past.  It is slow only if a
        dozen sources alternate.
        """
        queue = self._queue
        while self._new:
            source = self._new.pop()
            if source.fill():
                queue.insert(0, source)
                self._move_back(0)
        back = self._back
        bytewise = self._is_bytewise
        enough = self._enough
        count: i64 = 0
        before: i64 = 0  # the pairs at the last read
        stretch = self.stretch
        while count < _MOST and queue:
            first = queue[0]
            if first.left == 0:
                if count >= enough:
                    return
                if bytewise:
                    first.chunks.may_skip(self._unneeded_of(first))
                if stretch is not None:
                    stretch.has_pairs = count > 0
                    if count > before:
                        stretch.later = 0
                if count == before:
                    self.note_empty_read()
                before = count
                if first.fill():
                    self._move_back(0)
                else:
                    queue.pop(0)
                if stretch is not None and stretch.later >= _IDLE:
                    return
            elif len(queue) == 1:
                first.pour(pairs, None, _MOST - count)
            else:
                limit = queue[1].key
                if limit < first.key if back else first.key < limit:
                    first.pour(pairs, limit, _MOST - count)
                    self._move_back(0)
                else:
                    self._choose(pairs)
            count = len(pairs)

    def _move_back(self, at: i64) -> None:
        """Move the source at ``at`` to its place; the queue after it is in order.

        A source with an empty buffer stays where it is, before the others, wherever its next chunk
        begins: otherwise a table whose keys are out of order could cause an endless loop.
        """
        queue = self._queue
        back = self._back
        source = queue[at]
        if source.left == 0:
            return
        key = source.key
        at += 1
        while at < len(queue):
            other = queue[at]
            if other.left > 0 and not (key < other.key if back else other.key < key):
                break
            queue[at - 1] = other
            at += 1
        queue[at - 1] = source

    def _unneeded_of(self, source: _Source) -> Unneeded:
        """Return the entries that the next chunk of a source, the first of the queue, may omit
        (:mod:`lsmkv.engine.table.deletion_run`)."""
        queue = self._queue
        at: i64 = 1
        while at < len(queue):
            run = queue[at].coming_run() if queue[at].age < source.age else None
            if run is not None:
                return Unneeded(run)
            at += 1
        # A source whose buffer is empty may have keys anywhere.
        if self._back or (at > 1 and queue[1].left == 0):
            return NOTHING
        return Unneeded(None, True, None if at == 1 else queue[1].key)

    def _choose(self, pairs: list[Any]) -> None:
        """Step over a key that several sources have, and append its newest pair."""
        queue = self._queue
        key = queue[0].key
        best: tuple[Any, ...] = ()
        age: i64 = -1  # of the source that has it
        same: i64 = 0
        while same < len(queue):
            source = queue[same]
            if same > 0 and source.key != key:
                break
            entry: tuple[Any, ...] = source.step()
            if age < 0:
                newer = True
            elif len(entry) == 3 and len(best) == 3 and entry[2] != best[2]:
                newer = entry[2] > best[2]
            else:
                newer = source.age < age
            if newer:
                best = entry
                age = source.age
            same += 1
        if best[1] is not None:
            pairs.append(best[:2])
        for at in range(same - 1, -1, -1):
            self._move_back(at)
