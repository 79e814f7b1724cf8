"""Cache: the handle that users hold.

:mod:`lsmkv.cache.opened` opens and closes it, :mod:`lsmkv.cache.keyed` has the methods that are
about one key, and this module those that are about many: queues, removal, order, functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, ParamSpec, TypeVar

from lsmkv.cache.atomic_steps import Step
from lsmkv.cache.culling import remove_all
from lsmkv.cache.entries import remove
from lsmkv.cache.entry_head import parse
from lsmkv.cache.keyed import live, nothing
from lsmkv.cache.keys import (
    EXPIRY,
    HEAD,
    ORDER,
    POSITION_SIZE,
    decode_key,
    encode_key,
    head_key,
    moment,
    tag_prefix,
)
from lsmkv.cache.leased import Flights, LeasedCache
from lsmkv.cache.memoizing import MISSING, Memoized, memoized
from lsmkv.cache.queues import QueueKeys, Side, admit
from lsmkv.cache.values import MissingChunk
from lsmkv.engine.errors import ConflictError
from lsmkv.engine.util.comparator import after_prefix
from lsmkv.engine.util.introspection import described

P = ParamSpec("P")
R = TypeVar("R")


class _ChangedError(Exception):
    """The value is another one."""


@described
class Cache(LeasedCache):
    """Values on disk by keys, with expiry, tags and a limit on their size.

    Any number of threads, and of processes of one machine, may have a directory open; with
    ``shared=False`` one process has it alone, and writes cost less.  Names, arguments and results
    are those of ``diskcache.Cache`` where its documentation states them; ``docs/guides/caching.md``
    has the differences.  Nothing that is found on disk is unpickled unless the codec is a
    :class:`~lsmkv.cache.codecs.PickleCodec`.

    A key is a str, bytes, int, float, bool, None, or a tuple of these, or anything else that the
    codec takes.  A value is what the codec takes.  :meth:`get` costs a Get of the store, and no
    write.  A write is one atomic batch: a Get, and a put for the entry and for each index.

    Methods raise :class:`~lsmkv.UnsupportedValueError` for a value that the codec does not take,
    :class:`~lsmkv.CorruptionError` for damage, :class:`~lsmkv.IOError` if the file system fails,
    and :class:`~lsmkv.ClosedError` once the cache is closed.  With ``on_error="skip"`` a failing
    store is a cache that forgets: reads return the default, and :meth:`set` and :meth:`add` return
    False.

    >>> import lsmkv
    >>> with lsmkv.Cache(shared=False) as cache:
    ...     cache["ant"] = {"legs": 6}
    ...     _ = cache.set("bee", b"wings", expire=60, tag="insects")
    ...     cache["ant"], cache.get("cow"), "bee" in cache, len(cache), cache.evict("insects")
    ({'legs': 6}, None, True, 2, 1)
    >>> with lsmkv.Cache(shared=False) as cache:
    ...     key = cache.push("job")
    ...     same = cache.peek() == cache.pull() == (key, "job")
    ...     same, cache.expire(), cache.cull(), cache.clear()
    (True, 0, 0, 0)
    """

    # Queues

    def push(
        self,
        value: Any,
        prefix: str | None = None,
        side: Side = "back",
        expire: float | None = None,
        read: bool = False,
        tag: Any = None,
        retry: bool = False,
    ) -> int | str:
        """Store ``value`` at a side of a queue, and return its key.

        The keys of a queue are integers around 500 trillion, or such integers after ``prefix-``.
        Other arguments as for :meth:`set`.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     cache.push("first"), cache.push("job", prefix="jobs"), cache.pull(), cache.pull()
        (500000000000000, 'jobs-500000000000000', (500000000000000, 'first'), (None, None))
        """
        keys = QueueKeys(prefix, self._codec)

        found: list[int | str] = []

        def find(step: Step) -> bytes:
            key, follows = keys.next(step, side)
            found.append(key)
            name = head_key(key, self._codec)
            admit(step, name, side if follows else None)
            return name

        self._store(b"", find, value, expire, read, tag, False)
        return found[-1]

    def pull(
        self,
        prefix: str | None = None,
        default: Any = (None, None),
        side: Side = "front",
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """Remove the entry at a side of a queue, and return its key and value, or ``default``.

        Entries that have expired are passed over, and removed.  Otherwise as :meth:`pop`.
        """
        return self._end_of_queue(prefix, default, side, expire_time, tag, True)

    def peek(
        self,
        prefix: str | None = None,
        default: Any = (None, None),
        side: Side = "front",
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """The key and value at a side of a queue, as :meth:`pull`, but the entry stays."""
        return self._end_of_queue(prefix, default, side, expire_time, tag, False)

    def _end_of_queue(
        self,
        prefix: str | None,
        default: Any,
        side: Side,
        expire_time: bool,
        tag: bool,
        removes: bool,
    ) -> Any:
        keys = QueueKeys(prefix, self._codec)

        def take(step: Step) -> Any:
            found = keys.at(step, side)
            taken = self._take(step, found, expire_time, tag, removes)
            if removes and found is not None:
                keys.pass_by(step, found[0], side)
            return taken

        result = MISSING
        while result is None or result is MISSING:
            result = self._steps.run(take)
            if result is None:
                return nothing(default, expire_time, tag)
        return result

    def _take(
        self,
        step: Step,
        found: tuple[bytes, Any] | None,
        expire_time: bool,
        tag: bool,
        removes: bool,
    ) -> Any:
        """A key and its value; :data:`MISSING` if it was removed instead; None if none is there."""
        if found is None:
            return None
        name, key = found
        data = step.get(name)
        if data is None:
            raise ConflictError("the entry has just been removed")
        head = parse(data)
        if head.expired(self._clock()):
            remove(step, name, data, head)
            return MISSING
        try:
            value = self._taken(step, data, head)
        except MissingChunk:
            remove(step, name, data, head)
            return MISSING
        if removes:
            remove(step, name, data, head)
        return self._with((key, value), head, expire_time, tag)

    def peekitem(
        self, last: bool = True, expire_time: bool = False, tag: bool = False, retry: bool = False
    ) -> Any:
        """The key and value that were stored last, or first; ``KeyError`` for an empty cache.

        Entries that have expired are passed over, and removed.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     cache["ant"], cache["bee"] = 6, 5
        ...     cache.peekitem(), cache.peekitem(last=False)
        (('bee', 5), ('ant', 6))
        """
        return self._end_of_all(last, expire_time, tag)

    def _end_of_all(
        self, last: bool, expire_time: bool = False, tag: bool = False, removes: bool = False
    ) -> Any:
        """Return what :meth:`peekitem` returns; ``removes``: remove it in the same step."""

        def find(step: Step) -> Any:
            found = None
            for name, entry in step.scan(prefix=ORDER, reverse=last, limit=1):
                key = entry[POSITION_SIZE:]
                found = HEAD + key, decode_key(key, self._codec)
                if step.get(HEAD + key) is None:  # only after a repair
                    step.delete(name)
                    step.changed = True
                    return MISSING
            return self._take(step, found, expire_time, tag, removes)

        result = MISSING
        while result is MISSING:
            result = self._steps.run(find)
        if result is None:
            raise KeyError("the cache is empty")
        return result

    # One key, if it has not changed

    def _replace(self, key: Any, value: Any) -> None:
        """Store ``value`` if there is an entry; ``KeyError`` if not."""
        name = head_key(key, self._codec)

        def find(step: Step) -> bytes:
            if live(step, name, self._clock()) is None:
                raise KeyError(key)
            return name

        self._store(name, find, value, None, False, None, False)

    def _set_equal(self, key: Any, before: Any, value: Any, expire: float | None) -> bool:
        """Store ``value`` if the present one equals ``before``; None stands for none."""
        name = head_key(key, self._codec)

        def find(step: Step) -> bytes:
            if self._value_in(step, name, None) != before:
                raise _ChangedError
            return name

        try:
            return self._store(name, find, value, expire, False, None, False)
        except _ChangedError:
            return False

    def _delete_equal(self, key: Any, value: Any) -> bool:
        """Remove the entry if its value equals ``value``; whether it was removed."""
        name = head_key(key, self._codec)

        def delete(step: Step) -> bool:
            found = self._value_in(step, name, MISSING)
            if found is MISSING or found != value:
                return False
            data = step.get(name)
            assert data is not None
            remove(step, name, data, parse(data))
            return True

        return self._steps.run(delete)

    def _value_in(self, step: Step, name: bytes, default: Any) -> Any:
        """The value of an entry as a step sees it."""
        entry = live(step, name, self._clock())
        if entry is None:
            return default
        data, head = entry
        try:
            return self._taken(step, data, head)
        except MissingChunk:
            return default  # it has just been replaced, or is damaged

    # Removing many

    def expire(self, now: float | None = None, retry: bool = False) -> int:
        """Remove the entries that have expired at ``now``, by default this moment; how many.

        Each step removes 100 at most.  Cost: for each entry two Gets, and its deletions.
        """
        when = self._clock() if now is None else now
        count = remove_all(self._steps, EXPIRY, EXPIRY + moment(when))
        self._removed()
        return count

    def evict(self, tag: Any, retry: bool = False) -> int:
        """Remove the entries with a tag; how many there were.  Cost as for :meth:`expire`."""
        first = tag_prefix(encode_key(tag, self._codec))
        count = remove_all(self._steps, first, after_prefix(first))
        self._removed()
        return count

    def clear(self, retry: bool = False) -> int:
        """Remove all entries; how many there were.  Cost as for :meth:`expire`."""
        count = remove_all(self._steps, ORDER, after_prefix(ORDER))
        self._removed()
        return count

    def cull(self, retry: bool = False) -> int:
        """Remove entries that have expired, and the first ones in the order of eviction until the
        cache is within its limit; how many there were.  Cost as for :meth:`expire`."""
        count = self.expire()
        return count if self.eviction_policy == "none" else count + self._evict_to_limit()

    # Iterating

    def __iter__(self) -> Iterator[Any]:
        """The keys in the order in which they were first stored, as of now, with expired ones."""
        return self._keys_in_order(False)

    def __reversed__(self) -> Iterator[Any]:
        """The keys, the last one first."""
        return self._keys_in_order(True)

    def _keys_in_order(self, reverse: bool) -> Iterator[Any]:
        entries = self._db.iterator(prefix=ORDER, include_key=False, reverse=reverse)
        codec = self._codec
        return (decode_key(entry[POSITION_SIZE:], codec) for entry in entries)

    def iterkeys(self, reverse: bool = False) -> Iterator[Any]:
        """The keys in their own order: numbers, str, bytes, tuples, and what the codec makes.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     for key in ("bee", 2.5, "ant", 2, b"cow"):
        ...         cache[key] = None
        ...     list(cache), list(cache.iterkeys())
        (['bee', 2.5, 'ant', 2, b'cow'], [2, 2.5, 'ant', 'bee', b'cow'])
        """
        names = self._db.iterator(prefix=HEAD, include_value=False, reverse=reverse)
        codec = self._codec
        return (decode_key(name[len(HEAD) :], codec) for name in names)

    # Functions

    def memoize(
        self,
        name: str | None = None,
        typed: bool = False,
        expire: float | None = None,
        tag: Any = None,
        ignore: Collection[int | str] = (),
        lock: bool = False,
        timeout: float | None = None,
    ) -> Callable[[Callable[P, R]], Memoized[P, R]]:
        """A decorator that keeps the results of a function by its arguments.

        A coroutine function is awaited, and its result is kept.  Arguments are keys of the cache:
        what the codec takes.  ``name`` replaces the function's name in the keys.  ``typed``
        distinguishes 3 from 3.0.  ``ignore`` has positions and names of arguments that make no
        difference: those of a method begin with ``self``.  With ``expire=0`` nothing is stored.
        ``f.__wrapped__`` is the function, and ``f.__cache_key__(...)`` the key of a result.

        ``ValueError`` without ``name`` for a function whose name others may have: a lambda, one
        that is defined in a function, or a method of one instance.

        With ``lock``, of several callers that want one result at once, in threads, tasks and
        processes, one computes it, and the others wait for it.  If that one raises or dies, the
        next one computes.  Where functions call each other in a circle, or an ``async`` one calls
        itself for what it computes, the call that closes the circle raises
        :class:`~lsmkv.DeadlockError`.  A task is not known to wait for tasks that it has made
        (``asyncio.gather``): ``timeout`` is the seconds that a caller waits before it raises
        :class:`~lsmkv.IOError` with ``errno.ETIMEDOUT``, a ``TimeoutError``.  A miss then costs two
        more messages at a member of a shared store.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     @cache.memoize(expire=60)
        ...     def square(number: int) -> int:
        ...         print("computing")
        ...         return number * number
        ...     square(3), square(3), cache[square.__cache_key__(3)]
        computing
        (9, 9, 9)
        """
        if callable(name):
            raise TypeError("name is callable: write @cache.memoize(), with parentheses")
        if timeout is not None and not lock:
            raise ValueError("timeout= requires lock=True")

        def decorate(function: Callable[P, R]) -> Memoized[P, R]:
            turns = Flights(lambda: self, timeout) if lock else None
            return memoized(self, function, name, typed, expire, tag, ignore, turns)

        return decorate
