"""The methods of a cache that are about one key: :class:`KeyedCache`.

What each changes is one step (:mod:`lsmkv.cache.atomic_steps`).  Any thread may call any method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from mypy_extensions import mypyc_attr

from lsmkv.cache.atomic_steps import Step
from lsmkv.cache.entries import put, remove, set_expiry
from lsmkv.cache.entry_head import BESIDE, CHUNKED, EXPIRES, RAW, START, Head, Pointer, parse
from lsmkv.cache.keys import PENDING, VALUE, decode_key, encode_key, head_key
from lsmkv.cache.memoizing import MISSING
from lsmkv.cache.opened import OpenCache
from lsmkv.cache.queues import admit
from lsmkv.cache.values import (
    BytesReader,
    MissingChunk,
    Readable,
    ValueReader,
    discard,
    load,
    pieces_in,
    pieces_of,
    store,
)
from lsmkv.engine.errors import CorruptionError, Error
from lsmkv.engine.util.introspection import described
from lsmkv.engine.util.signals import deferred

_AHEAD: Final = 1.0
"""Seconds that an entry may be ahead of the clock, which callers ask one after the other."""
_Releases = list[Callable[[], None]]
"""Calls that end the leases on the numbers of large values, once they are published."""
_DATA = START.size
"""The offset of a plain head's value."""
_VALUE_NUMBER = _DATA + 8
"""The offset, in such a head, of the number of a value beside it."""


@described
@mypyc_attr(native_class=False)
class KeyedCache(OpenCache):
    """The part of :class:`lsmkv.Cache` that is about one key.

    >>> import lsmkv
    >>> with lsmkv.Cache(shared=False) as cache:
    ...     cache.decr("left", default=5)
    4
    """

    # Reading

    def get(
        self,
        key: Any,
        default: Any = None,
        read: bool = False,
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """The value of ``key``; ``default`` if there is none, or it has expired.

        With ``expire_time`` or ``tag``, or both, a tuple of the value and of these (None if the
        entry has none).  With ``read``, a value of bytes is returned as a file that is open for
        reading.  ``retry`` changes nothing.  Cost: a Get, and one for each MiB of a large value.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     _ = cache.set("ant", 6, tag="insects")
        ...     cache.get("ant"), cache.get("ant", tag=True), cache.get("bee", 0)
        (6, (6, 'insects'), 0)
        """
        name = head_key(key, self._codec)
        try:
            data = self._get(name)
            if data is not None:
                flags = data[0]
                if not (flags & ~BESIDE or read or expire_time or tag):
                    stored: bytes | None = data[_DATA:]
                    if flags:
                        stored = self._get(VALUE + data[_VALUE_NUMBER:])
                    if stored is not None:
                        if self._tracks is not None:
                            self._tracks(data, 0.0)
                        value = self._decode(stored)
                        if self._statistics:
                            self._steps.hits += 1
                        return value
                now = self._clock() if flags & EXPIRES else 0.0
                head = parse(data)
                if not head.expired(now):
                    if head.expiry is not None and head.stored > now + _AHEAD:
                        head = self._stored_now(name, now, head)
                    value = self._value_of(name, data, head, read, key)
                    if value is not MISSING:
                        if self._tracks is not None:
                            self._tracks(data, now)
                        if self._statistics:
                            self._steps.hits += 1
                        return self._with(value, head, expire_time, tag)
        except (OSError, CorruptionError) as error:
            self._forgive(error)
        except IndexError:
            if data:
                raise  # of a user's codec
            self._forgive(CorruptionError(f"the head of {key!r} is empty"))
        if self._statistics:
            self._steps.misses += 1
        return nothing(default, expire_time, tag)

    def _stored_now(self, name: bytes, now: float, head: Head) -> Head:
        """Make an entry expire as if it were stored now: a clock has been set back since."""
        try:
            self._steps.run(partial(_store_now, name, now))
        except (Error, OSError):
            pass  # the next read tries again
        return _as_stored_at(head, now)

    def _with(self, value: Any, head: Head, expire_time: bool, tag: bool) -> Any:
        """Shape the result for an entry, or for a key and its value."""
        if not (expire_time or tag):
            return value
        shown = None if head.tag is None or not tag else decode_key(head.tag, self._codec)
        if expire_time and tag:
            return value, head.expiry, shown
        return (value, head.expiry) if expire_time else (value, shown)

    def _value_of(self, name: bytes, data: bytes, head: Head, read: bool, key: Any) -> Any:
        """The value of an entry; :data:`MISSING` if it is gone."""
        while head.pointer is not None:
            if read and head.flags & RAW and not head.pointer.beside:
                snapshot = self._db.snapshot()
                if snapshot.get(name) == data:
                    return ValueReader(snapshot, head.pointer, repr(key))
                snapshot.close()
            else:
                try:
                    whole = load(self._get, head.pointer)
                    return self._decoded(whole, head, read, key)
                except MissingChunk:
                    pass
            again = self._get(name)  # it has just been replaced
            if again is None or again == data:
                return MISSING
            data = again
            head = parse(data)
        return self._decoded(data[head.begin :], head, read, key)

    def _decoded(self, stored: bytes, head: Head, read: bool, key: Any) -> Any:
        value = stored if head.flags & RAW else self._decode(stored)
        return BytesReader(value, repr(key)) if read and isinstance(value, bytes) else value

    def __getitem__(self, key: Any) -> Any:
        """The value of ``key``; ``KeyError`` if there is none.  Costs as much as :meth:`get`."""
        value = self.get(key, MISSING)
        if value is MISSING:
            raise KeyError(key)
        return value

    def read(self, key: Any, retry: bool = False) -> Any:
        """The value of ``key`` as a file that is open for reading; ``KeyError`` if there is none.

        A value that is not bytes is returned as it is.

        >>> import io, lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     _ = cache.set("ant", io.BytesIO(b"six legs"), read=True)
        ...     with cache.read("ant") as reader:
        ...         reader.read(3)
        b'six'
        """
        value = self.get(key, MISSING, read=True)
        if value is MISSING:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        """True if there is an entry that has not expired.  Costs as much as a Get."""
        try:
            data = self._get(head_key(key, self._codec))
            if not data:
                return False
            return not data[0] & EXPIRES or not parse(data).expired(self._clock())
        except (OSError, CorruptionError) as error:
            self._forgive(error)
            return False

    # Writing

    def set(
        self,
        key: Any,
        value: Any,
        expire: float | None = None,
        read: bool = False,
        tag: Any = None,
        retry: bool = False,
    ) -> bool:
        """Store ``value`` under ``key``, and return True.

        It expires after ``expire`` seconds.  With ``read``, ``value`` is a file that is open for
        reading bytes, and these are stored.  ``retry`` changes nothing.  Values of more than 64 KiB
        are stored in chunks; 4 GiB is too large (``ValueError``).

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     cache.set("ant", 6, expire=3600)
        True
        """
        return self._set(key, value, expire, read, tag, False)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store ``value`` under ``key``.  Costs as much as :meth:`set`."""
        self._set(key, value, None, False, None, False)

    def add(
        self,
        key: Any,
        value: Any,
        expire: float | None = None,
        read: bool = False,
        tag: Any = None,
        retry: bool = False,
    ) -> bool:
        """Store ``value`` unless there is an entry that has not expired; True if it was stored.

        Of several callers at once, in any processes, one stores.  Arguments as for :meth:`set`.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     cache.add("ant", 6), cache.add("ant", 7), cache["ant"]
        (True, False, 6)
        """
        return self._set(key, value, expire, read, tag, True)

    def _set(
        self, key: Any, value: Any, expire: float | None, read: bool, tag: Any, only_new: bool
    ) -> bool:
        name = head_key(key, self._codec)
        try:
            return self._store(name, None, value, expire, read, tag, only_new)
        except (OSError, CorruptionError) as error:
            self._forgive(error)
            return False

    def _store(
        self,
        name: bytes,
        find: Callable[[Step], bytes] | None,
        value: Any,
        expire: float | None,
        read: bool,
        tag: Any,
        only_new: bool,
    ) -> bool:
        """Store an entry under a name, or under what ``find`` returns; True if it was stored."""
        held: _Releases = []
        try:
            now = self._clock()
            expiry = None if expire is None else now + expire
            encoded_tag = None if tag is None else encode_key(tag, self._codec)
            stored: bytes | Pointer
            if read:
                stored = self._store_file(value, now, held)
            else:
                stored = self._codec.encode(value)
                if len(stored) > self._most_small:
                    stored = self._store_large(pieces_of(stored), now, held)
            pointer = stored if isinstance(stored, Pointer) else None
            entry = now, expiry, encoded_tag, read, stored
            done = False
            try:
                done = self._steps.run(partial(self._store_step, name, find, entry, only_new))
            finally:
                if not done and pointer is not None:
                    discard(self._db, pointer.number, pointer.chunks)
            if done:
                self._written(now, expiry, len(stored) if pointer is None else pointer.size)
            return done
        finally:
            with deferred:
                for release in held:
                    release()

    def _store_step(
        self,
        name: bytes,
        find: Callable[[Step], bytes] | None,
        entry: tuple[float, float | None, bytes | None, bool, bytes | Pointer],
        only_new: bool,
        step: Step,
    ) -> bool:
        now, expiry, tag, raw, stored = entry
        if find is not None:
            name = find(step)
        old = step.get(name)
        if only_new and old is not None and not parse(old).expired(now):
            return False
        number = b""
        if old is None:
            number = self._steps.next_number(now)
            if find is None:
                admit(step, name, None)
        if isinstance(stored, Pointer):
            if step.get(PENDING + stored.number) is None:
                raise Error("a large value was removed before it was published")
            step.delete(PENDING + stored.number)
        elif len(stored) > self._most_inline:
            stored = step.put_beside(stored, now)
        at = self._steps.position(now)
        put(step, name, old, number, now, expiry, tag, raw, stored, self._by_count, at)
        return True

    def _store_file(self, file: Readable, now: float, held: _Releases) -> bytes | Pointer:
        pieces = pieces_in(file)
        first, second = next(pieces, b""), next(pieces, b"")
        if not second and len(first) <= self._most_small:
            return first
        return self._store_large(chain((first, second) if second else (first,), pieces), now, held)

    def _store_large(self, pieces: Iterator[bytes], now: float, held: _Releases) -> Pointer:
        number = self._number(now)
        with deferred:
            release = self._db._lease_number(int.from_bytes(number, "big"))
            if release is not None:
                held.append(release)
        return store(self._db, number, pieces, self._clock)

    def _number(self, now: float) -> bytes:
        with self._steps.lock:
            return self._steps.next_number(now)

    def touch(self, key: Any, expire: float | None = None, retry: bool = False) -> bool:
        """Make an entry expire after ``expire`` seconds from now, or never; True if there is one.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     cache["ant"] = 6
        ...     cache.touch("ant", 60), cache.touch("bee")
        (True, False)
        """
        name = head_key(key, self._codec)
        now = self._clock()
        expiry = None if expire is None else now + expire
        try:
            touched = self._steps.run(partial(_touch, name, now, expiry))
        except (OSError, CorruptionError) as error:
            self._forgive(error)
            return False
        if touched and expiry is not None:
            self._expires(expiry)
        return touched

    def incr(self, key: Any, delta: Any = 1, default: Any = 0, retry: bool = False) -> Any:
        """Add ``delta`` to the value of ``key``, and return the sum.

        A missing value is ``default``; if that is None, ``KeyError``.  No increment of another
        thread or process is lost.  The entry keeps its expiry and its tag.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     cache.incr("visits"), cache.incr("visits", 2), cache.decr("visits")
        (1, 3, 2)
        """
        name = head_key(key, self._codec)
        now = self._clock()
        total, is_new = self._steps.run(partial(self._add_step, name, key, delta, default, now))
        if is_new:
            self._written(now, None, 0)
        return total

    def _add_step(
        self, name: bytes, key: Any, delta: Any, default: Any, now: float, step: Step
    ) -> tuple[Any, bool]:
        """The sum, and True if the entry is new."""
        at = self._steps.position(now)
        data = step.get(name)
        head = None if data is None else parse(data)
        if data is None or head is None or head.expired(now):
            if default is None:
                raise KeyError(key)
            total = default + delta
            made = self._codec.encode(total)
            number = b""
            if data is None:
                number = self._steps.next_number(now)
                admit(step, name, None)
            put(step, name, data, number, now, None, None, False, made, self._by_count, at)
            return total, True
        if head.flags & (RAW | CHUNKED):
            raise TypeError(f"the value of {key!r} is not a number")
        total = self._decode(data[head.begin :]) + delta
        made = self._codec.encode(total)
        put(step, name, data, b"", now, head.expiry, head.tag, False, made, self._by_count, at)
        return total, False

    def decr(self, key: Any, delta: Any = 1, default: Any = 0, retry: bool = False) -> Any:
        """Subtract ``delta``: :meth:`incr` of ``-delta``."""
        return self.incr(key, -delta, default)

    def pop(
        self,
        key: Any,
        default: Any = None,
        expire_time: bool = False,
        tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """Remove an entry and return its value; ``default`` if there is none.

        Of several callers at once, one gets it.  Otherwise as :meth:`get`.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     cache["ant"] = 6
        ...     cache.pop("ant"), cache.pop("ant", 0)
        (6, 0)
        """
        name = head_key(key, self._codec)
        now = self._clock()
        result = self._steps.run(partial(self._pop_step, name, now, expire_time, tag))
        if result is not MISSING:
            return result
        return nothing(default, expire_time, tag)

    def _pop_step(self, name: bytes, now: float, expire_time: bool, tag: bool, step: Step) -> Any:
        entry = live(step, name, now)
        if entry is None:
            return MISSING
        data, head = entry
        try:
            value = self._taken(step, data, head)
        except MissingChunk:
            value = MISSING  # damage: or else the entry was replaced, and this step fails
        remove(step, name, data, head)
        return MISSING if value is MISSING else self._with(value, head, expire_time, tag)

    def _taken(self, step: Step, data: bytes, head: Head) -> Any:
        """The value of an entry, as a step sees it."""
        pointer = head.pointer
        stored = data[head.begin :] if pointer is None else load(step.get, pointer)
        return stored if head.flags & RAW else self._decode(stored)

    def delete(self, key: Any, retry: bool = False) -> bool:
        """Remove an entry; True if there was one that had not expired.

        >>> import lsmkv
        >>> with lsmkv.Cache(shared=False) as cache:
        ...     cache["ant"] = 6
        ...     cache.delete("ant"), cache.delete("ant")
        (True, False)
        """
        name = head_key(key, self._codec)
        return self._steps.run(partial(_delete, name, self._clock()))

    def __delitem__(self, key: Any) -> None:
        """Remove an entry; ``KeyError`` if there is none."""
        if not self.delete(key):
            raise KeyError(key)


def live(step: Step, name: bytes, now: float) -> tuple[bytes, Head] | None:
    """The data of an entry that has not expired, and its head; None if there is none."""
    data = step.get(name)
    if data is None:
        return None
    head = parse(data)
    return None if head.expired(now) else (data, head)


def nothing(default: Any, expire_time: bool, tag: bool) -> Any:
    """Shape the result for a missing entry."""
    if expire_time and tag:
        return default, None, None
    return (default, None) if expire_time or tag else default


def _touch(name: bytes, now: float, expiry: float | None, step: Step) -> bool:
    entry = live(step, name, now)
    if entry is None:
        return False
    data, head = entry
    set_expiry(step, name, data, head, expiry)
    return True


def _as_stored_at(head: Head, now: float) -> Head:
    """The head of an entry that expires, and was stored by a clock that was ahead."""
    assert head.expiry is not None
    return head._replace(stored=now, expiry=now + head.expiry - head.stored)


def _store_now(name: bytes, now: float, step: Step) -> None:
    entry = live(step, name, now)
    if entry is not None and entry[1].expiry is not None and entry[1].stored > now:
        data, head = entry
        expiry = _as_stored_at(head, now).expiry
        set_expiry(step, name, data, head._replace(stored=now), expiry)


def _delete(name: bytes, now: float, step: Step) -> bool:
    entry = live(step, name, now)
    if entry is None:
        return False
    data, head = entry
    remove(step, name, data, head)
    return True
