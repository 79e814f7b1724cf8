"""An iterator over the shards of one version; like a store's, it moves both ways."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Never, Self

from lsmkv.engine.db.read.iterator import Iterator, IteratorArguments, checked_arguments
from lsmkv.engine.db.read.scan import bounds_of
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.comparator import BYTEWISE
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.entry_type import Entry_co
from lsmkv.shards.open_shards import OpenShard, OpenShards

_BYTEWISE = KeyOrder(BYTEWISE)


class ShardIterator(Generic[Entry_co]):
    """Iterates over the shards that a range touches, one after another.

    It has the methods of :class:`lsmkv.Iterator`.  It opens a shard when it gets there.  The
    version that it reads stays readable while it is in use, also after ``refresh``.  Only one
    thread at a time may use it.  Errors are those of a Get.  Costs a seek in each shard that it
    reaches, and a request for each window of blocks.

    >>> import lsmkv.bulk, lsmkv.shards, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"%d" % n, b"") for n in range(9)], here, shards=3)
    ...     with lsmkv.shards.open(here) as s, s.iterator(include_value=False) as keys:
    ...         keys.seek(b"4")
    ...         keys.next(), keys.next(), keys.prev(), keys.prev(), keys.prev()
    ...         keys.seek_to_stop()
    ...         last = keys.prev()
    ...         keys.seek_to_start()
    ...         last, next(keys), keys.closed
    ...     keys.close()
    ...     keys.closed
    (b'4', b'5', b'5', b'4', b'3')
    (b'8', b'0', False)
    True
    """

    def __init__(
        self, shards: OpenShards, arguments: IteratorArguments, check_open: Callable[[], None]
    ) -> None:
        """``check_open`` raises an error once the reader is closed."""
        self._shards: OpenShards | None = shards
        self._arguments = checked_arguments(arguments)
        self._limit = self._arguments.pop("limit", None)
        self._left = self._limit  # entries that may still be returned; None for no limit
        self._check_open = check_open
        self._reverse = bool(arguments.get("reverse", False))
        first, last = _touched(shards.firsts, self._arguments)
        self._range = range(first, last + 1)
        self._at = last if self._reverse else first
        self._shard: OpenShard | None = None  # keeps the version's files open
        self._inner: Iterator[Entry_co] | None = None

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self._shards is None

    def __iter__(self) -> Self:
        """The iterator itself, at its current position."""
        return self

    def __next__(self) -> Entry_co:
        """The next entry, in the iterator's direction: ``(key, value)``, or the requested part."""
        while True:
            inner = self._current()
            if inner is None or self._left == 0:
                raise StopIteration
            for found in inner:
                self._count(-1)
                return found
            if not self._move(-1 if self._reverse else 1):
                raise StopIteration

    def next(self) -> Entry_co:
        """:func:`next` as a method; ``StopIteration`` at the end."""
        return self.__next__()

    def prev(self) -> Entry_co:
        """The previous entry, which ``next`` then returns again; ``StopIteration`` at the
        beginning."""
        while True:
            inner = self._current()
            if inner is None:
                raise StopIteration
            try:
                found = inner.prev()
            except StopIteration:
                if not self._move(1 if self._reverse else -1):
                    raise
            else:
                self._count(1)
                return found

    def seek(self, target: BytesLike) -> None:
        """Move to the gap before the first entry at or after ``target``, in key order."""
        key = as_bytes(target, "target")
        index = self._readable().index_for(key)
        if self._range:
            self._stand_on(min(max(index, self._range[0]), self._range[-1]))
        inner = self._current()
        if inner is not None:
            inner.seek(key)
        self._left = self._limit

    def seek_to_start(self) -> None:
        """Move before the first entry of the range, in key order."""
        if self._range:
            self._stand_on(self._range[0])
        inner = self._current()
        if inner is not None:
            inner.seek_to_start()
        self._left = self._limit

    def seek_to_stop(self) -> None:
        """Move after the last entry of the range, in key order."""
        if self._range:
            self._stand_on(self._range[-1])
        inner = self._current()
        if inner is not None:
            inner.seek_to_stop()
        self._left = self._limit

    def close(self) -> None:
        """Release the version.  A second close has no effect."""
        self._leave()
        self._shards = None

    def __reduce__(self) -> Never:
        refuse_copy(
            "an iterator", "an iterator holds open shards: create another one in that process"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _count(self, entries: int) -> None:
        if self._left is not None:
            self._left += entries

    def _current(self) -> Iterator[Entry_co] | None:
        """The iterator of the current shard; None if the range touches no shard."""
        if self._inner is not None:
            return self._inner
        shards = self._readable()
        if not self._range:
            return None
        self._shard = shards.shard(self._at)
        self._inner = self._shard.db.iterator(**self._arguments)
        return self._inner

    def _readable(self) -> OpenShards:
        if self._shards is None:
            raise ClosedError("the iterator is closed")
        self._check_open()
        return self._shards

    def _stand_on(self, index: int) -> None:
        if index != self._at:
            self._leave()
            self._at = index

    def _move(self, step: int) -> bool:
        """Move to the near end of the next shard in a direction; False if there is none."""
        if self._at + step not in self._range:
            return False
        self._stand_on(self._at + step)
        inner = self._current()
        assert inner is not None
        if step > 0:
            inner.seek_to_start()
        else:
            inner.seek_to_stop()
        return True

    def _leave(self) -> None:
        if self._inner is not None:
            self._inner.close()
        self._inner = None
        self._shard = None


def _touched(firsts: list[bytes], arguments: IteratorArguments) -> tuple[int, int]:
    """The first and last shard that a range may touch; no shard if the last is smaller."""
    bounds = bounds_of(
        arguments.get("start"),
        arguments.get("stop"),
        True,
        True,
        arguments.get("prefix"),
        _BYTEWISE,
    )
    first, last = 0, len(firsts) - 1
    if bounds.lower is not None:
        first = max(0, bisect_right(firsts, bounds.lower.user_key) - 1)
    if bounds.upper is not None:
        # A shard that begins at stop contains stop, which the range may contain.
        last = bisect_right(firsts, bounds.upper.user_key) - 1
    return first, last
