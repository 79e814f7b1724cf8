"""Iterator: plyvel's kind of iterator, which is between two entries and moves both ways.

``DB.iterator`` and ``Snapshot.iterator`` make it; one thread at a time uses it.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypedDict, cast

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.read.base_iterator import BaseIterator
from lsmkv.engine.db.read.scan import bounds_of
from lsmkv.engine.db.read.window import Window
from lsmkv.engine.db.tree.store import ReadView, Store
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.entry_type import Entry_co


class RangeArguments(TypedDict, total=False):
    """The keywords of ``DB.iterator`` that say which entries it returns, and how it reads them."""

    reverse: bool
    """Go from the last key to the first."""
    start: BytesLike | None
    stop: BytesLike | None
    include_start: bool
    """True if the range includes ``start`` itself; True if omitted."""
    include_stop: bool
    """True if the range includes ``stop`` itself; False if omitted."""
    prefix: BytesLike | None
    """Only keys that begin with this; with ``start`` and ``stop``, of those in that range."""
    limit: int | None
    """The most entries to return, counted from where the iterator was placed last."""
    verify_checksums: bool
    """Accepted for plyvel's sake: checksums are verified in any case."""
    fill_cache: bool
    """True if blocks that are read go into the block cache.  In the bytewise order a scan fills
    about a quarter of it, and leaves the rest alone."""


class IteratorArguments(RangeArguments, total=False):
    """The keywords of ``DB.iterator`` and ``Snapshot.iterator``: plyvel's, with its defaults, and
    ``limit``."""

    include_key: bool
    include_value: bool


_KEYWORDS: Final = frozenset(
    {
        *("reverse", "start", "stop", "include_start", "include_stop", "prefix", "limit"),
        *("include_key", "include_value", "verify_checksums", "fill_cache"),
    }
)
_BOUNDS: Final = {"start": "start key", "stop": "stop key", "prefix": "prefix"}


def checked_arguments(arguments: IteratorArguments) -> IteratorArguments:
    """The keywords for an iterator that is made later, with keys that can no longer change.

    Raises what making it would: ``TypeError``, or ``ValueError`` for a negative limit.
    """
    checked: dict[str, Any] = {}
    for name, value in cast(dict[str, Any], arguments).items():
        if name not in _KEYWORDS:
            raise _unexpected(name)
        if name in _BOUNDS and value is not None:
            checked[name] = as_bytes(value, _BOUNDS[name])
        elif name == "limit" and value is not None:
            checked[name] = checked_limit(value)
        else:
            checked[name] = value
    return cast(IteratorArguments, checked)


def checked_limit(limit: object) -> int:
    """Check that ``limit`` is a non-negative int, and return it."""
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise TypeError(f"limit must be an int or None, not {type(limit).__name__}")
    if limit < 0:
        raise ValueError(f"limit cannot be negative: {limit}")
    return limit


def _unexpected(name: str) -> TypeError:
    return TypeError(f"iterator() got an unexpected keyword argument {name!r}")


@mypyc_attr(allow_interpreted_subclasses=True)  # users may derive from it
class Iterator(BaseIterator, Generic[Entry_co]):
    """Iterates over a range of a store as it was when the iterator was made.

    It is *between* entries, as plyvel's is: ``next`` returns the entry after the gap and
    steps over it, ``prev`` steps back over the entry before the gap and returns it.  With
    ``reverse`` the two change places.  Both raise ``StopIteration`` at the end of the range.

    Entries are read ahead, a block or so at a time.  Close it, or use it in a ``with`` block, to
    release the versions that it keeps alive; collecting it does the same.  Not safe for use by
    several threads at once.

    Cost: a seek in each table that may hold some of the range; a step within what was read ahead
    costs no IO.  Once iterator or store is closed, every method that
    reads raises :class:`~lsmkv.ClosedError`; damage raises :class:`~lsmkv.CorruptionError`.

    >>> import lsmkv
    >>> db = lsmkv.DB(":memory:")
    >>> for key in (b"a", b"b", b"c"):
    ...     db.put(key, b"")
    >>> keys = db.iterator(include_value=False)
    >>> keys.seek(b"b")
    >>> keys.next(), keys.prev(), keys.prev()
    (b'b', b'b', b'a')
    >>> keys.seek_to_stop()
    >>> keys.prev()
    b'c'
    >>> keys.seek_to_start()
    >>> list(keys)
    [b'a', b'b', b'c']
    >>> keys.close()
    >>> keys.closed
    True
    >>> db.close()
    """

    def __init__(
        self,
        store: Store,
        read: ReadView,
        owner: object,
        arguments: IteratorArguments,
    ) -> None:
        """Only this iterator uses ``read``; ``owner`` is kept from being collected.

        Not called by users: they ask a store or a snapshot for an iterator.
        """
        reverse = False
        start: BytesLike | None = None
        stop: BytesLike | None = None
        prefix: BytesLike | None = None
        include_start = True
        include_stop = False
        include_key = True
        include_value = True
        fill_cache = True
        # Flags of any type are taken by their truth, as interpreted code takes them.
        for name, value in cast(dict[str, Any], arguments).items():
            if name == "start":
                start = value
            elif name == "stop":
                stop = value
            elif name == "prefix":
                prefix = value
            elif name == "reverse":
                reverse = bool(value)
            elif name == "include_start":
                include_start = bool(value)
            elif name == "include_stop":
                include_stop = bool(value)
            elif name == "include_key":
                include_key = bool(value)
            elif name == "include_value":
                include_value = bool(value)
            elif name == "fill_cache":
                fill_cache = bool(value)
            elif name not in ("verify_checksums", "limit"):  # a LimitedIterator counts
                raise _unexpected(name)
        bounds = bounds_of(start, stop, include_start, include_stop, prefix, store.order)
        window = Window(store, reverse, include_key, include_value)
        super().__init__(store, read, owner, bounds, fill_cache, window)
        self._place(bounds.upper if reverse else bounds.lower, at_end=reverse)

    def __iter__(self) -> Iterator[Entry_co]:
        """The iterator itself, at its current position."""
        return self

    def __next__(self) -> Entry_co:
        """The next entry, in the iterator's direction: ``(key, value)``, or the half asked for."""
        pair = self._window.next()
        if pair is not None:
            return cast(Entry_co, pair)
        pair = self._step_back() if self._window.reverse else self._step()
        if pair is None:
            raise StopIteration
        return cast(Entry_co, self._window.shape(pair))

    def next(self) -> Entry_co:
        """As ``next(iterator)``."""
        return self.__next__()

    def prev(self) -> Entry_co:
        """The entry before, against the iterator's direction."""
        pair = self._step() if self._window.reverse else self._step_back()
        if pair is None:
            raise StopIteration
        return cast(Entry_co, self._window.shape(pair))

    def seek(self, target: BytesLike) -> None:
        """Go to the gap before ``target``, or before where it would be; held to the range."""
        self._open_scan()
        position = Position(self._prefix + as_bytes(target, "target"), after=False)
        self._place(self._within_bounds(position))

    def seek_to_start(self) -> None:
        """Go to the lower end of the range, whatever the iterator's direction."""
        self._open_scan()
        self._place(self._bounds.lower)

    def seek_to_stop(self) -> None:
        """Go to the upper end of the range, whatever the iterator's direction."""
        self._open_scan()
        self._place(self._bounds.upper, at_end=True)

    def hide_prefix(self, prefix: bytes, /) -> None:
        """Show keys without this prefix, which all keys of the range have; targets also lack it.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"user:ann", b"1")
        ...     users = db.iterator(prefix=b"user:")
        ...     users.hide_prefix(b"user:")
        ...     list(users)
        [(b'ann', b'1')]
        """
        super().hide_prefix(prefix)
        self._window.hide(len(self._prefix))

    def __repr__(self) -> str:
        return self._described("Iterator", ", reverse" if self._window.reverse else "")

    def _step(self) -> Any:
        """Step over the pair after the gap, and return it; None at the end of the range."""
        scan = self._open_scan()
        window = self._window
        while window.at == len(window.pairs):
            if not self._read_ahead(scan):
                return None
        window.at += 1
        return window.pairs[window.at - 1]

    def _step_back(self) -> Any:
        """Step back over the pair before the gap, and return it; None at the start of the range."""
        scan = self._open_scan()
        window = self._window
        while window.at == 0:
            if not self._read_behind(scan):
                return None
        window.at -= 1
        return window.pairs[window.at]


@mypyc_attr(allow_interpreted_subclasses=True)  # as what it derives from
class LimitedIterator(Iterator[Entry_co]):
    """An iterator that returns at most ``limit`` entries from where it was placed last.

    It is placed when it is made, and by each seek.  A step back gives its entry back.  It is a
    separate class, so that a step of other iterators has nothing to count.
    """

    def __init__(
        self,
        store: Store,
        read: ReadView,
        owner: object,
        arguments: IteratorArguments,
        limit: int,
    ) -> None:
        super().__init__(store, read, owner, arguments)
        self._limit = limit
        self._left = limit

    def __next__(self) -> Entry_co:
        """As in the base class, until the limit is reached."""
        if self._left <= 0:
            self._open_scan()
            raise StopIteration
        entry = super().__next__()
        self._left -= 1
        return entry

    def prev(self) -> Entry_co:
        """As in the base class."""
        entry = super().prev()
        self._left += 1
        return entry

    def seek(self, target: BytesLike) -> None:
        """As in the base class; the limit counts from here."""
        super().seek(target)
        self._was_placed()

    def seek_to_start(self) -> None:
        """As in the base class; the limit counts from here."""
        super().seek_to_start()
        self._was_placed()

    def seek_to_stop(self) -> None:
        """As in the base class; the limit counts from here."""
        super().seek_to_stop()
        self._was_placed()

    def _was_placed(self) -> None:
        self._left = self._limit
