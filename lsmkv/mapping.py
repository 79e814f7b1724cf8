"""A store as a mapping: ``lsmkv.open``, after the standard library's ``dbm``.

It uses only the public methods of ``DB``.  What reads, decides and writes is one transaction, so
threads, and processes that share the store, never act on the same state twice.

>>> import lsmkv
>>> with lsmkv.open(":memory:", "c") as animals:
...     animals["ant"] = "six legs"
...     animals[b"bee"] = b"wings"
...     sorted(animals.items())
[(b'ant', b'six legs'), (b'bee', b'wings')]
"""

from __future__ import annotations

import errno
import os
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MappingView,
    MutableMapping,
    ValuesView,
)
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar, Unpack, cast, overload

from lsmkv.engine.db.db import DB
from lsmkv.engine.db.opening.open import MEMORY
from lsmkv.engine.env.base import Env
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.env.place import make_directory, resolve
from lsmkv.engine.errors import Error, NotFoundError, ReadOnlyError, raise_typed
from lsmkv.engine.format.batch import WriteBatch
from lsmkv.engine.format.filenames import LOST, FileType, parse_filename
from lsmkv.engine.options import OptionArguments, make_options
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.copying import refuse_copy

__all__ = ["Items", "KeyValueMapping", "Keys", "Values", "open"]

BATCH_OPERATIONS = 4096
"""Keys in a batch of ``update`` and ``clear``, at most."""
BATCH_BYTES = 1 << 20
"""A batch of them is written once its keys and values have this many bytes."""

Flag = Literal["r", "w", "c", "n"]
Text = BytesLike | str
"""The type of keys and values given to a mapping: a ``str`` stands for its UTF-8 bytes."""

T = TypeVar("T")


class _Missing:
    """The type of a default that was not given; None is a valid default."""


_MISSING = _Missing()


class SupportsKeys(Protocol):
    """A source of keys and values for ``update`` that is not an iterable of pairs."""

    def keys(self) -> Iterable[Text]:
        """The keys."""
        ...

    def __getitem__(self, key: Any, /) -> Text: ...


def open(
    path: str | os.PathLike[str],
    flag: Flag = "r",
    mode: int = 0o666,
    *,
    shared: bool = False,
    **options: Unpack[OptionArguments],
) -> KeyValueMapping:
    """Open the store in directory ``path`` as a mapping, with the flags of ``dbm.open``.

    ========  ==================================================================================
    ``'r'``   an existing store, for reading: writes raise :class:`~lsmkv.ReadOnlyError`
    ``'w'``   an existing store, for reading and writing
    ``'c'``   the same, and the store is made if there is none
    ``'n'``   a new and empty store, always: one that is there is destroyed first
    ========  ==================================================================================

    ``'n'`` refuses a directory that holds files other than a store's, and changes nothing in it.
    ``mode`` applies to a directory that is created here.  Directories need ``x`` bits, so ``x`` is
    set wherever ``r`` is (``0o640`` gives ``rwxr-x---``).  The owner gets all three bits, and the
    process's umask applies.  A directory that exists keeps its mode.

    With ``shared`` other processes may also have the store open: it is a
    :class:`~lsmkv.SharedDB` (``'r'`` joins it as well, and refuses writes).

    ``options`` are the keywords of :class:`lsmkv.DB`, except those that the flag decides.
    ``':memory:'`` is always a new store: it takes ``'c'`` and ``'n'``.

    Raises ``ValueError`` for any other flag; :class:`~lsmkv.NotFoundError` (a
    ``FileNotFoundError``, so ``except dbm.error`` catches it) where ``'r'`` or ``'w'`` finds no
    store; :class:`~lsmkv.Error` where ``'n'`` finds other files; and what :class:`lsmkv.DB`
    raises.  Cost: that of opening a ``DB``; ``'n'`` removes the old files as well.

    >>> open("somewhere", "a")
    Traceback (most recent call last):
    ValueError: flag is 'r', 'w', 'c' or 'n', not 'a'
    """
    if flag not in ("r", "w", "c", "n"):
        raise ValueError(f"flag is 'r', 'w', 'c' or 'n', not {flag!r}")
    for decided in ("create_if_missing", "error_if_exists", "read_only"):
        if decided in options:
            raise TypeError(f"{decided} is decided by the flag, {flag!r}")
    where = os.fsdecode(path)
    env = options.get("env")
    in_memory = env is None and where == MEMORY
    if flag in "rw":
        if in_memory:
            reason = "a store in memory is always new: open it with 'c' or 'n'"
            raise NotFoundError(errno.ENOENT, reason, where)
        if flag == "r" and not shared:
            options["read_only"] = True
        try:
            return KeyValueMapping(_opened(where, shared, options), read_only=flag == "r")
        except NotFoundError as error:
            if not where:
                raise
            reason = f"no database here, and {flag=} does not create one: flag='c' does"
            raise NotFoundError(errno.ENOENT, reason, error.filename or where) from None
    if flag == "n" and not in_memory:
        make_options(**options)  # before the old store is removed, since DB would refuse it after
        where = where if env is not None else resolve(where)
        seconds = options.get("lock_timeout", 0.0)
        _remove_store(LocalEnv() if env is None else env, where, seconds)
    options["create_if_missing"] = True
    options["error_if_exists"] = flag == "n" and not shared
    made = env is None and not in_memory and make_directory(where, mode)
    try:
        return KeyValueMapping(_opened(where, shared, options))
    except BaseException:
        if made:
            with suppress(OSError):  # not empty: it stays
                LocalEnv().remove_directory(where)
        raise


def _opened(path: str, shared: bool, options: OptionArguments) -> DB:
    if not shared:
        return DB(path, **options)
    from lsmkv.shared.shared_db import SharedDB  # noqa: PLC0415 - most stores are not shared

    return SharedDB(path, **options)


class KeyValueMapping(MutableMapping[bytes, bytes]):
    """An open store as a ``MutableMapping`` of bytes to bytes, in the order of its keys.

    A ``str`` may stand for bytes, and means its UTF-8 bytes; keys and values are returned as
    ``bytes``.  Other types raise ``TypeError``, in lookups as well.  Every method raises
    :class:`~lsmkv.ClosedError` after :meth:`close`, and :class:`~lsmkv.CorruptionError` or
    :class:`~lsmkv.IOError` as the store does.

    An iteration sees the store as it was when the iteration began, whatever is written meanwhile,
    and holds only about a block in memory.  Any number of threads may use one mapping.
    ``setdefault``, ``pop``, ``popitem`` and ``del`` are transactions: a pair is popped once, and a
    default is set once, also while this process or another one that shares the store writes.

    ``len()`` reads all keys, and so do ``list(m)`` and ``tuple(m)`` before they begin (they ask
    for the length): ``list(iter(m))`` avoids that.  ``==`` loads both sides into memory.

    >>> with open(":memory:", "n") as m:
    ...     m.update({b"a": b"1", "b": "2"}, c="3")
    ...     m["b"], b"c" in m, "z" in m, len(m), list(reversed(m.keys()))
    (b'2', True, False, 3, [b'c', b'b', b'a'])
    >>> m.closed
    True
    """

    def __init__(self, db: DB, *, read_only: bool = False) -> None:
        """A mapping over ``db``, which it closes when it is closed.

        With ``read_only``, writes through the mapping raise :class:`~lsmkv.ReadOnlyError`.
        """
        self._db = db
        self._read_only = read_only

    @property
    def db(self) -> DB:
        """The store itself: ranges, snapshots, batches, statistics.  It takes only bytes as keys.

        >>> with open(":memory:", "n") as m:
        ...     m.update({"user:ann": "1", "user:bob": "2", "z": "3"})
        ...     list(m.db.iterator(prefix=b"user:", include_value=False))
        [b'user:ann', b'user:bob']
        """
        return self._db

    @property
    def read_only(self) -> bool:
        """True if writes are refused, because it was opened with ``'r'``.

        >>> with open(":memory:", "n") as m:
        ...     m.read_only, KeyValueMapping(m.db, read_only=True).read_only
        (False, True)
        """
        return self._read_only

    # Reading

    def __getitem__(self, key: Text) -> bytes:
        """The value of ``key``; ``KeyError`` if there is none.  Costs what ``DB.get`` costs."""
        value = self._db.get(_encode(key, "key"))
        if value is None:
            raise KeyError(key)
        return value

    @overload
    def get(self, key: Text) -> bytes | None: ...
    @overload
    def get(self, key: Text, default: T) -> bytes | T: ...
    def get(self, key: Text, default: T | None = None) -> bytes | T | None:
        """The value of ``key``, or ``default``.  Costs what ``DB.get`` costs.

        >>> with open(":memory:", "n") as m:
        ...     m.get("no such key"), m.get("no such key", "")
        (None, '')
        """
        return self._db.get(_encode(key, "key"), default)

    def __contains__(self, key: object) -> bool:
        """Return True if ``key`` exists.  Costs what ``DB.get`` costs, or less."""
        return _encode(key, "key") in self._db

    def __iter__(self) -> Iterator[bytes]:
        """The keys in order.  Values are not returned, but the blocks that hold them are read."""
        return self._db.iterator(include_value=False)

    def __reversed__(self) -> Iterator[bytes]:
        """The keys, from the last to the first."""
        return self._db.iterator(include_value=False, reverse=True)

    def __len__(self) -> int:
        """The number of keys.  O(n): an LSM tree keeps no count, so all are read.

        ``bool(m)`` says whether there is a key without counting them.
        """
        with self._db.iterator(include_value=False, fill_cache=False) as keys:
            return sum(1 for _ in keys)

    def __bool__(self) -> bool:
        """Return True if there is a key; reads only the first."""
        with self._db.iterator(include_value=False) as keys:
            return any(True for _ in keys)

    def keys(self) -> Keys:
        """A live view of the keys: a set that is iterated in order, either way.  O(1)."""
        return Keys(self)

    def values(self) -> Values:
        """A live view of the values, in the order of their keys.  O(1).

        >>> with open(":memory:", "n") as m:
        ...     m.update(a="1", b="2")
        ...     list(m.values())
        [b'1', b'2']
        """
        return Values(self)

    def items(self) -> Items:
        """A live view of the pairs of key and value, in the order of the keys.  O(1).

        >>> with open(":memory:", "n") as m:
        ...     m["k"] = "v"
        ...     {key.decode(): value.decode() for key, value in m.items()}
        {'k': 'v'}
        """
        return Items(self)

    # Writing

    def __setitem__(self, key: Text, value: Text) -> None:
        """Set ``key`` to ``value``; safe from a killed process, and from a power cut once synced.

        Costs what ``DB.put`` costs.  Raises :class:`~lsmkv.ReadOnlyError` as all writes do.
        """
        self._check_writable()
        self._db.put(_encode(key, "key"), _encode(value, "value"))

    def __delitem__(self, key: Text) -> None:
        """Remove ``key``; ``KeyError`` if it is not there.  Costs a lookup and a write."""
        self.pop(key)

    @overload
    def pop(self, key: Text) -> bytes: ...
    @overload
    def pop(self, key: Text, default: T) -> bytes | T: ...
    def pop(self, key: Text, default: T | _Missing = _MISSING) -> bytes | T:
        """Remove ``key`` and return its value, or ``default``; ``KeyError`` if there is neither.

        >>> with open(":memory:", "n") as m:
        ...     m["k"] = "v"
        ...     m.pop("k"), m.pop("k", None)
        (b'v', None)
        """
        self._check_writable()
        value = self._replace(_encode(key, "key"), lambda old: None)
        if value is not None:
            return value
        if isinstance(default, _Missing):
            raise KeyError(key)
        return default

    def popitem(self, last: bool = True) -> tuple[bytes, bytes]:
        """Remove the last pair in the order of keys, or the first, and return it.

        ``KeyError`` if the mapping is empty.  Costs a read of that end and a write; until a
        compaction, each call steps over the pairs removed before: to remove many, iterate or
        :meth:`clear`.

        >>> with open(":memory:", "n") as m:
        ...     m.update(a="1", b="2", c="3")
        ...     m.popitem(), m.popitem(last=False)
        ((b'c', b'3'), (b'a', b'1'))
        """
        self._check_writable()

        while True:
            with self._db.iterator(reverse=last, fill_cache=False) as pairs:
                pair = next(pairs, None)
            if pair is None:
                raise KeyError("popitem(): the mapping is empty")
            key, value = pair
            if self._replace(key, partial(_removed, value)) == value:
                return key, value

    def setdefault(self, key: Text, default: Text = b"") -> bytes:
        """The value of ``key``, which is set to ``default`` first if there is none.

        ``default`` is ``b""`` where it is left out, as in ``dbm``.  Costs a lookup, and a write if
        there was none.

        >>> with open(":memory:", "n") as m:
        ...     m.setdefault("k", "first"), m.setdefault("k", "second")
        (b'first', b'first')
        """
        self._check_writable()
        value = _encode(default, "value")
        present = self._replace(_encode(key, "key"), lambda old: value if old is None else old)
        return value if present is None else present

    def update(
        self,
        other: SupportsKeys | Iterable[tuple[Text, Text]] = (),
        /,
        **more: Text,
    ) -> None:
        """Set all keys of a mapping, or of an iterable of pairs, and of the keywords.

        Written in batches of at most ``BATCH_OPERATIONS`` keys and about ``BATCH_BYTES`` bytes,
        so the source may be larger than memory.  Each batch is applied whole or not at all; the
        update as a whole is not: after an error the batches before it are there.  (Use one
        ``m.db.write_batch()`` for keys that must change together.)
        """
        self._check_writable()
        pending = WriteBatch()
        for source in (_pairs(other), more.items()):
            for key, value in source:
                pending.put(_encode(key, "key"), _encode(value, "value"))
                self._write_when_full(pending)
        self._db.write(pending)

    def clear(self) -> None:
        """Remove all present keys.  O(n), in batches as :meth:`update` writes them.

        The space is freed by later compactions, or by :meth:`reorganize`.

        >>> with open(":memory:", "n") as m:
        ...     m.update(a="1", b="2")
        ...     m.clear()
        ...     bool(m)
        False
        """
        self._check_writable()
        pending = WriteBatch()
        with self._db.iterator(include_value=False, fill_cache=False) as keys:
            for key in keys:
                pending.delete(key)
                self._write_when_full(pending)
        self._db.write(pending)

    # The store

    def sync(self) -> None:
        """Make every write that has returned durable: one wait for the disk.

        It does nothing for a read-only mapping, and for a closed one, since closing syncs.

        >>> with open(":memory:", "n") as m:
        ...     m["k"] = "survives a killed process"
        ...     m.sync()  # and a power cut
        """
        if not self._read_only and not self._db.closed:
            self._db.sync()

    def reorganize(self) -> None:
        """Free the space of overwritten and removed values: ``DB.compact_range()``.

        O(size of the store), in time and, while it runs, in disk space.

        >>> with open(":memory:", "n") as m:
        ...     m["k"] = bytes(1_000_000)
        ...     del m["k"]
        ...     m.reorganize()
        ...     m.db.approximate_size(b"", b"z") < 1000
        True
        """
        self._check_writable()
        self._db.compact_range()

    @property
    def closed(self) -> bool:
        """True if the store was closed."""
        return self._db.closed

    def close(self) -> None:
        """Sync and close the store, as ``DB.close`` does.  A second close has no effect.

        >>> m = open(":memory:", "n")
        >>> m.close()
        >>> "k" in m
        Traceback (most recent call last):
        lsmkv.errors.ClosedError: the database is closed
        """
        self._db.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A mapping of a store that is shared, or open for reading only, is pickled as that is."""
        if not self._db.options.read_only and type(self._db) is DB:
            refuse_copy("a mapping of a store that is open for writing", "pass its path")
        return _mapping, (type(self), self._db, self._read_only)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else " (read-only)" if self._read_only else ""
        return f"<lsmkv.KeyValueMapping {self._db.path!r}{state}>"

    def _check_writable(self) -> None:
        if self._read_only:
            raise ReadOnlyError(f"{self._db.path}: opened with 'r'; to write, open it with 'w'")

    def _replace(
        self, key: bytes, function: Callable[[bytes | None], bytes | None]
    ) -> bytes | None:
        """Return the old value of ``key``, and set the function's result: see ``DB.update``.

        A nested call, by a signal handler or finalizer, cannot wait for its turn: it reads, and
        leaves its write to the call that it interrupts.
        """
        before: bytes | None = None

        def change(old: bytes | None) -> bytes | None:
            nonlocal before
            before = old
            return function(old)

        if not self._db._is_nested:
            self._db.update(key, change)
            return before
        after = change(self._db.get(key))
        if after is not before:
            if after is None:
                self._db.delete(key)
            else:
                self._db.put(key, after)
        return before

    def _write_when_full(self, batch: WriteBatch) -> None:
        if len(batch) >= BATCH_OPERATIONS or batch.approximate_size() >= BATCH_BYTES:
            self._db.write(batch)
            batch.clear()


class _View(MappingView):
    """A live view of a mapping."""

    def __init__(self, mapping: KeyValueMapping) -> None:
        super().__init__(mapping)
        self._store = mapping

    def __bool__(self) -> bool:
        """Return True if there is an entry; does not count them."""
        return bool(self._store)


class Keys(_View, KeysView[bytes]):
    """The keys of a mapping: a live, ordered view with the operators of a set.

    ``in`` costs a lookup, ``len()`` and comparisons read all keys; an operator's result is a
    ``set`` in memory.  Raises what the mapping raises.

    >>> with open(":memory:", "n") as m:
    ...     m.update(a="1", b="2")
    ...     m.keys() & {b"b", b"c"}, list(m.keys()), bool(m.keys())
    ({b'b'}, [b'a', b'b'], True)
    """

    def __iter__(self) -> Iterator[bytes]:
        """The keys in order."""
        return iter(self._store)

    def __reversed__(self) -> Iterator[bytes]:
        """The keys, from the last to the first."""
        return reversed(self._store)

    def __contains__(self, key: object) -> bool:
        """Return True if the mapping has ``key``.  Costs a lookup."""
        return key in self._store


class Values(_View, ValuesView[bytes]):
    """The values of a mapping, in the order of their keys.  ``in`` and ``len()`` are O(n).

    Raises what the mapping raises.

    >>> with open(":memory:", "n") as m:
    ...     m.update(a="1", b="2")
    ...     list(reversed(m.values())), "2" in m.values()
    ([b'2', b'1'], True)
    """

    def __iter__(self) -> Iterator[bytes]:
        """The values, in the order of their keys."""
        return self._store.db.iterator(include_key=False)

    def __reversed__(self) -> Iterator[bytes]:
        """The values, from the last key's to the first one's."""
        return self._store.db.iterator(include_key=False, reverse=True)

    def __contains__(self, value: object) -> bool:
        """Return True if a key has ``value``.  O(n): reads until it is found."""
        wanted = _comparable(value)
        with self._store.db.iterator(include_key=False, fill_cache=False) as values:
            return any(value == wanted for value in values)


class Items(_View, ItemsView[bytes, bytes]):
    """The pairs of a mapping: a live, ordered view with the operators of a set.

    ``in`` costs a lookup, ``len()`` and comparisons read everything; an operator's result is a
    ``set`` in memory.  Raises what the mapping raises.

    >>> with open(":memory:", "n") as m:
    ...     m.update(a="1", b="2")
    ...     list(reversed(m.items())), ("a", "1") in m.items(), (b"a", b"2") in m.items()
    ([(b'b', b'2'), (b'a', b'1')], True, False)
    """

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """The pairs, in the order of their keys."""
        return self._store.db.iterator()

    def __reversed__(self) -> Iterator[tuple[bytes, bytes]]:
        """The pairs, from the last key's to the first one's."""
        return self._store.db.iterator(reverse=True)

    def __contains__(self, item: object) -> bool:
        """Return True if ``item`` is a key and its value.  Costs a lookup."""
        if not isinstance(item, tuple) or len(item) != 2:
            return False
        value = self._store.get(item[0])
        return value is not None and value == _comparable(item[1])


def _mapping(cls: type[KeyValueMapping], db: DB, read_only: bool) -> KeyValueMapping:
    return cls(db, read_only=read_only)


def _encode(text: object, what: str) -> bytes:
    return str.encode(text) if isinstance(text, str) else as_bytes(text, what)


def _removed(value: bytes, old: bytes | None) -> bytes | None:
    """Return what remains of a key that is to be removed if it has this value."""
    return None if old == value else old


def _comparable(value: object) -> object:
    """The form of ``value`` that equals a stored one: bytes and str never compare equal."""
    return _encode(value, "value") if isinstance(value, (str, bytes)) else value


def _pairs(source: SupportsKeys | Iterable[tuple[Text, Text]]) -> Iterable[tuple[Text, Text]]:
    """The pairs of key and value in a source that ``dict.update`` takes."""
    if isinstance(source, Mapping):
        return source.items()
    if hasattr(source, "keys"):
        keyed = cast(SupportsKeys, source)
        return ((key, keyed[key]) for key in keyed.keys())  # noqa: SIM118 - it has no __iter__
    return source


def _remove_store(env: Env, path: str, lock_timeout: float) -> None:
    """Destroy the store in a directory, if there is one and nothing else is in there."""
    try:
        try:
            directory = env.open_directory(path)
        except FileNotFoundError:
            return
        with directory:
            names = directory.names()
    except OSError as error:
        raise_typed(error)
    is_store = False
    for name in names:
        parsed = parse_filename(name)
        if parsed is None and name != LOST:
            raise Error(f"{path}: 'n' replaces a store, but {name!r} is not a file of a store")
        # Files named like logs and tables alone may belong to another program.
        if parsed is not None and parsed[1] in (FileType.CURRENT, FileType.MANIFEST):
            is_store = True
    if is_store:
        from lsmkv.shared.destroying import destroy_db  # noqa: PLC0415 - few replace a store

        destroy_db(path, env=env, lock_timeout=lock_timeout)
