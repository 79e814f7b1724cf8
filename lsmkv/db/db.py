"""DB: the handle of a store.

Each method checks that the store is open and calls the module that does the work; nothing of the
engine is here.  Any thread may call any method.  ``_close_lock`` makes closing and refreshing
exclude each other.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from mypy_extensions import mypyc_attr

from lsmkv.db.admin.checkpoint import hold, write_checkpoint
from lsmkv.db.admin.compact_range import compact_range
from lsmkv.db.admin.ingest import Ingestion, as_paths
from lsmkv.db.admin.properties import (
    TableInfo,
    approximate_size,
    collect_stats,
    get_property,
    list_tables,
    written_keys,
)
from lsmkv.db.admin.verify import verify_tables
from lsmkv.db.opening.open import MEMORY, OpenStore, open_store, view_now
from lsmkv.db.reader import Reader
from lsmkv.db.scan.iterator import Iterator, IteratorArguments
from lsmkv.db.scan.raw_iterator import RawIterator
from lsmkv.db.store import Store
from lsmkv.db.views.prefixed import PrefixedDB
from lsmkv.db.views.snapshot import Snapshot
from lsmkv.db.views.transaction import ConflictCheck, Transaction
from lsmkv.db.writer import Writer
from lsmkv.env.local import LocalEnv
from lsmkv.errors import (
    ClosedError,
    CorruptionError,
    ReadOnlyError,
    raise_typed,
)
from lsmkv.format.batch import BytesLike, WriteBatch, as_bytes, as_deletion, as_put
from lsmkv.format.keys import (
    MAX_SEQUENCE,
)
from lsmkv.options import OptionArguments, Options
from lsmkv.util.introspection import described
from lsmkv.util.progress import Progress

if TYPE_CHECKING:
    from lsmkv.db.views.explain import Explanation
    from lsmkv.stats import Stats

T = TypeVar("T")


@described
@mypyc_attr(native_class=False)  # so that users may derive from it and refer to it weakly
class DB:
    """An ordered key-value store in a directory of LevelDB's files.

    ``help(lsmkv.Options)`` explains the keywords of opening, such as ``create_if_missing=True``;
    ``docs/api.md`` has all options, methods and errors on one page.

    Keys and values are ``bytes`` (other bytes-like objects are copied).  Any number of threads may
    use one handle; one handle, in one process, may have a directory open.  Use it in a ``with``
    block, or close it.

    Every method raises :class:`ClosedError` once the store is closed (:class:`ForkedError` in a
    child process), and :class:`IOError` when the file system fails.  Writes raise
    :class:`ReadOnlyError` in a store that is open for reading only.  A write that the log has no
    room for leaves it as it was, and the next one may succeed.  Three failures are final, and
    raised by every later write until the store is opened anew: of a sync of the log, of cutting
    the log back after a failed write, and of a flush or compaction.

    >>> with DB(":memory:") as db:
    ...     db.put(b"k", b"v")
    ...     db.get(b"k")
    b'v'
    """

    _store: Store | None = None  # until it is open
    _reader: Reader | None = None

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[OptionArguments]) -> None:
        """Open the store in directory ``path``, or ``':memory:'`` for one that is gone when closed.

        The keywords are explained by :class:`~lsmkv.Options`; a misspelt one is a ``TypeError``
        that names the nearest.
        Raises :class:`NotFoundError` (no store there, and not ``create_if_missing``),
        :class:`LockedError`, :class:`CorruptionError`, :class:`ComparatorMismatchError`,
        :class:`ForeignFormatError`, :class:`IOError`, and for wrong arguments ``TypeError`` or
        ``ValueError``.  Cost: replays the log, at most about ``write_buffer_size`` of it.
        """
        self._pid = os.getpid()
        self._close_lock = threading.Lock()
        self._arguments = options
        self.path: str = os.fsdecode(path)
        """The directory, as it was given."""
        self._superseded: list[Store] = []  # earlier views of a read-only store
        try:
            self._opened = open_store(self.path, options)
        except OSError as error:
            raise_typed(error)
        self.options: Options = self._opened.options
        """The settings in force."""
        self._adopt(self._opened)
        _open_handles.add(self)

    # Reading

    @overload
    def get(
        self,
        key: BytesLike,
        default: None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | None: ...

    @overload
    def get(
        self,
        key: BytesLike,
        default: T,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T: ...

    def get(
        self,
        key: BytesLike,
        default: T | None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T | None:
        """The value of ``key``, or ``default``.

        ``fill_cache=False`` leaves the block cache as it is.  Checksums are verified in any case;
        ``verify_checksums`` is here for plyvel's sake.  Cost: a hash of the key, a filter for each
        table whose range covers it, and as a rule at most one block.  Raises
        :class:`CorruptionError` when a block that it needs is damaged.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.get(b"k"), db.get(b"no such key"), db.get(b"no such key", b"")
        (b'v', None, b'')
        """
        reader = self._reader
        if reader is None:
            reader = self._open_reader()
        value = reader.get(
            key if isinstance(key, bytes) else as_bytes(key, "key"), MAX_SEQUENCE, fill_cache
        )
        return default if value is None else value

    def multi_get(
        self, keys: Iterable[BytesLike], *, fill_cache: bool = True
    ) -> list[bytes | None]:
        """The values of many keys, in their order, all at one moment; None for a key that is not
        there.

        They are looked up in the order of the store, so that neighbours share blocks, and each is
        hashed once.  Cost: that of the Gets, less the blocks that are shared.

        >>> with DB(":memory:") as db:
        ...     db.put(b"a", b"1")
        ...     db.multi_get([b"b", b"a"])
        [None, b'1']
        """
        user_keys = [as_bytes(key, "key") for key in keys]
        values = self._open_reader().multi_get(user_keys, fill_cache)
        return [values[key] for key in user_keys]

    def __contains__(self, key: object) -> bool:
        """Whether ``key`` is there.  Costs what a Get costs.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"")
        ...     b"k" in db, b"no such key" in db
        (True, False)
        """
        return self._open_reader().get(as_bytes(key, "key"), MAX_SEQUENCE, True) is not None

    def may_contain(self, key: BytesLike) -> bool:
        """False only if ``key`` is not there; no data block is read.

        Asks memtables and filters only.  True may be wrong: about 1 absent key in 100 passes a
        filter, a deletion in a table counts as a key, and without filters a table's range decides.
        Costs a hash of the key, and a filter for each table whose range covers it.

        >>> with DB(":memory:") as db:
        ...     for key in (b"ant", b"cow"):
        ...         db.put(key, b"")
        ...     db.flush()
        ...     db.may_contain(b"ant"), db.may_contain(b"bee"), db.stats().blocks_read
        (True, False, 0)
        """
        return self._open_reader().may_contain(as_bytes(key, "key"))

    def explain(self, key: BytesLike) -> Explanation:
        """How a Get of ``key`` goes, step by step: see :class:`Explanation`.

        Changes neither counters nor caches.  Costs a block for every table whose range covers
        the key.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"value")
        ...     print(db.explain(b"k"))
        get 'k': found, 5 bytes in memtable, write 1
          memtable: answers
          searched 0 data blocks (0 from the file, 0 bytes); without filters 0 (0 bytes)
        """
        from lsmkv.db.views.explain import Explainer  # noqa: PLC0415 - dataclasses comes with it

        store = self._open_store()
        try:
            return Explainer(store).explain(as_bytes(key, "key"))
        except OSError as error:
            store.raise_failure(error)

    def iterator(self, **arguments: Unpack[IteratorArguments]) -> Iterator:
        """An iterator over the store as it is now, or over a range of it.

        ``start`` and ``stop`` bound the keys (``include_start=True``, ``include_stop=False``), or
        ``prefix`` does; ``reverse`` reverses the direction; ``include_key`` and ``include_value``
        say what is returned; ``fill_cache=False`` leaves the block cache as it is.  See
        :class:`Iterator`.  Raises ``TypeError`` for wrong arguments.  Cost: O(1) until it is used,
        then a seek in each table that may hold some of the range, and a block at a time.

        >>> with DB(":memory:") as db:
        ...     for key in (b"a", b"b", b"c"):
        ...         db.put(key, key.upper())
        ...     list(db.iterator(start=b"b")), list(db.iterator(reverse=True, include_value=False))
        ([(b'b', b'B'), (b'c', b'C')], [b'c', b'b', b'a'])
        """
        reader = self._reader
        if reader is None:
            reader = self._open_reader()
        return reader.iterator(self, arguments)

    def __iter__(self) -> Iterator:
        """:meth:`iterator` over everything."""
        return self.iterator()

    def raw_iterator(
        self,
        *,
        prefix: BytesLike | None = None,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> RawIterator:
        """A :class:`RawIterator` over the store as it is now, or over the keys with ``prefix``.

        It stands on no entry at first.  ``verify_checksums`` and ``fill_cache`` are those of
        :meth:`get`.  Errors and cost are those of :meth:`iterator`.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     raw = db.raw_iterator()
        ...     raw.seek_to_last()
        ...     raw.valid(), raw.item()
        (True, (b'k', b'v'))
        """
        return self._open_reader().raw_iterator(self, prefix, fill_cache)

    def prefixed_db(self, prefix: BytesLike) -> PrefixedDB[Self]:
        """The part of the store whose keys begin with ``prefix``, with keys that lack the prefix.

        O(1): nothing is read.

        >>> with DB(":memory:") as db:
        ...     db.put(b"user:ann", b"1")
        ...     db.prefixed_db(b"user:").get(b"ann")
        b'1'
        """
        return PrefixedDB(db=self, prefix=prefix)

    def snapshot(self) -> Snapshot:
        """The store as it is now, to be read later.  O(1); close it when it is no longer needed.

        >>> with DB(":memory:") as db, db.snapshot() as before:
        ...     db.put(b"k", b"v")
        ...     before.get(b"k"), db.get(b"k")
        (None, b'v')
        """
        reader = self._open_reader()
        pin = reader.store.read_view().pin
        return Snapshot(reader, pin, self)

    # Writing

    def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """Set ``key`` to ``value``.

        Once it returns, a killed process does not lose the write; with ``sync=True`` neither does
        a power cut.  Cost: one write to the log; with ``sync`` one wait for the disk, shared with
        the writers that wait at the same time.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"old")
        ...     db.put(b"k", b"new", sync=True)
        ...     db.get(b"k")
        b'new'
        """
        writer = self._writer
        if writer is None:
            writer = self._open_writer()
        writer.write([as_put(key, value)], sync)

    def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """Remove ``key``; no error if it is not there.  Costs what a put costs.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.delete(b"k")
        ...     b"k" in db
        False
        """
        writer = self._writer
        if writer is None:
            writer = self._open_writer()
        writer.write([as_deletion(key)], sync)

    def write(self, batch: WriteBatch, /, *, sync: bool = False) -> None:
        """Apply all operations of ``batch``, or none.  The batch keeps its content.

        Cost: one write to the log, however many there are.

        >>> batch = WriteBatch()
        >>> batch.put(b"new", b"v")
        >>> batch.delete(b"old")
        >>> with DB(":memory:") as db:
        ...     db.put(b"old", b"v")
        ...     db.write(batch)
        ...     list(db)
        [(b'new', b'v')]
        """
        if not isinstance(batch, WriteBatch):
            raise TypeError(f"write takes a WriteBatch, not {type(batch).__name__}")
        writer = self._open_writer()
        if len(batch) > 0:
            writer.write(list(batch.operations), sync)

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """A batch that writes to this store: ``write()``, or the end of a ``with`` block.

        With ``transaction`` (the default here, not in plyvel) a block that raises writes nothing.

        >>> with DB(":memory:") as db:
        ...     with db.write_batch() as batch:
        ...         batch.put(b"a", b"1")
        ...         batch.put(b"b", b"2")
        ...     db.stats().log_writes
        1
        """
        self._open_store()
        return WriteBatch(self, transaction=transaction, sync=sync)

    def transaction(self, *, sync: bool = False) -> Transaction:
        """An optimistic transaction: see :class:`Transaction`.

        Its end raises :class:`~lsmkv.ConflictError` if another writer wrote a key that it touched.

        >>> with DB(":memory:") as db:
        ...     with db.transaction() as transaction:
        ...         count = int(transaction.get(b"visits", b"0"))
        ...         transaction.put(b"visits", b"%d" % (count + 1))
        ...     db.get(b"visits")
        b'1'
        """
        snapshot = self.snapshot()
        return Transaction(
            snapshot,
            snapshot.sequence,
            self._commit_unless_changed,
            sync,
            self.options.comparator,
        )

    def sync(self) -> None:
        """Make every write that has returned durable.  Cost: one wait for the disk.

        >>> with DB(":memory:") as db:
        ...     for n in range(3):
        ...         db.put(b"k%d" % n, b"v")
        ...     db.sync()
        ...     db.stats().log_syncs
        1
        """
        self._open_writer().sync()

    def flush(self) -> None:
        """Turn the memtable into a table, and wait for it.

        Cost: the memtable is sorted already; its bytes are written, and synced.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.flush()
        ...     sum(level.files for level in db.stats().levels)
        1
        """
        self._open_writer().rotate()

    # The files

    def compact_range(
        self,
        start: BytesLike | None = None,
        stop: BytesLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Compact the keys from ``start`` to ``stop``, both included; None is no bound.

        The memtable is flushed, then each level is merged into the next, down to the deepest one
        that holds any of the range: deleted and overwritten data above it goes, and reads get
        cheaper.  The deepest level is not rewritten by itself, as in LevelDB.
        ``progress`` is called in this thread while it works: bytes read, bytes to read (estimated
        at the start) and the level; at last with ``(total, total, "done")``.  An exception from
        it, or Ctrl-C, ends the call at the next step; finished compactions stay.

        O(bytes of the range), in time and, while it runs, in disk space.

        >>> with DB(":memory:") as db:
        ...     for value in (b"old", b"new"):
        ...         db.put(b"k", value)
        ...         db.flush()
        ...     db.compact_range()
        ...     sum(level.files for level in db.stats().levels)
        1
        """
        begin = None if start is None else as_bytes(start, "start key")
        end = None if stop is None else as_bytes(stop, "stop key")
        self.flush()
        background = self._background
        assert background is not None
        compact_range(self._open_store(), background, begin, end, progress)

    def checkpoint(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        """Make a second store at ``path`` that holds what this one holds now.

        Tables are shared by hard links (copied onto another file system), so it costs next to
        nothing; the log is copied.  All of it is durable when this returns.  Writers wait only
        while the logs are opened.  :class:`IOError` with ``errno.EEXIST`` if ``path`` is taken;
        :class:`ReadOnlyError` for a store that is open for reading only.

        >>> from lsmkv.env.memory import MemoryEnv
        >>> env = MemoryEnv()  # on disk, leave it out
        >>> with DB("store", create_if_missing=True, env=env) as db:
        ...     db.put(b"k", b"v")
        ...     db.checkpoint("store-backup")
        >>> with DB("store-backup", env=env) as backup:
        ...     backup.get(b"k")
        b'v'
        """
        writer = self._open_writer()
        if self.path == MEMORY and self.options.env is None:
            raise ValueError("a store in memory has no file system to put a checkpoint on")
        try:
            source = hold(self._open_store(), writer)
            try:
                write_checkpoint(
                    self._open_store(), self._opened.env, source, os.fsdecode(path), progress
                )
            finally:
                source.close()
        except OSError as error:
            raise_typed(error)

    def ingest(
        self, files: Iterable[str | os.PathLike[str]], *, progress: Progress | None = None
    ) -> None:
        """Write the content of tables made by :class:`~lsmkv.TableWriter`, all at once.

        It is one write: all entries become visible together, newer than everything written before
        this returns, and durable.  Where several files have a key, the later one in the list
        wins.  The files stay as they are.  They are read through the store's ``env`` (the local
        one for ``':memory:'``).

        Every block is verified, and its entries are written anew, so it costs about what a
        compaction of that many bytes does; other writers wait only at the end, while the memtable
        is flushed.  ``progress`` is called with the bytes read, how many there are, and the phase.
        After an exception, Ctrl-C included, either all of it is there or nothing.

        Raises :class:`CorruptionError` for a damaged file or one whose keys do not rise in this
        store's order, ``ValueError`` for one that :class:`~lsmkv.TableWriter` did not make,
        :class:`IOError`, and :class:`ReadOnlyError`.

        >>> import lsmkv
        >>> env = lsmkv.MemoryEnv()
        >>> with lsmkv.TableWriter("/bulk.ldb", env=env) as table:
        ...     table.add(b"a", b"1")
        >>> with DB("/db", create_if_missing=True, env=env) as db:
        ...     db.ingest(["/bulk.ldb"])
        ...     dict(db)
        {b'a': b'1'}
        """
        writer = self._open_writer()
        background = self._background
        assert background is not None
        paths = as_paths(files)
        env = self._opened.env
        if self.path == MEMORY and self.options.env is None:
            env = LocalEnv()  # a caller cannot put a file into the memory env of the store
        try:
            Ingestion(self._open_store(), background, env, paths, progress).run(writer)
        except OSError as error:
            self._open_store().raise_failure(error)

    def refresh(self) -> None:
        """Make a store that is open for reading only show the current state on disk.

        Earlier iterators and snapshots keep their state.  In a store that is open for writing it
        does nothing, since that always shows the current state.  Cost: that of opening it.

        >>> from lsmkv.env.memory import MemoryEnv
        >>> env = MemoryEnv()
        >>> writer = DB("store", create_if_missing=True, env=env)
        >>> with writer, DB("store", read_only=True, env=env) as reader:
        ...     writer.put(b"k", b"v")
        ...     before = reader.get(b"k")
        ...     reader.refresh()
        ...     before, reader.get(b"k")
        (None, b'v')
        """
        store = self._open_store()
        if self._writer is not None:
            return
        with self._close_lock:
            store = self._open_store()
            try:
                view_now(self._opened, store)
            except OSError as error:
                raise_typed(error)
            self._superseded = [old for old in self._superseded if len(old.pinned) > 0]
            self._superseded.append(store)
            self._adopt(self._opened)

    @overload
    def get_property(self, name: str) -> str | None: ...

    @overload
    def get_property(self, name: bytes) -> bytes | None: ...

    def get_property(self, name: str | bytes) -> str | bytes | None:
        """A property by LevelDB's name for it, or None; bytes for a name in bytes, as in plyvel.

        ``leveldb.stats``, ``leveldb.sstables``, ``leveldb.num-files-at-level<N>``,
        ``leveldb.approximate-memory-usage``.  Reads no file.

        >>> with DB(":memory:") as db:
        ...     db.get_property("leveldb.num-files-at-level0"), db.get_property(b"no such one")
        ('0', None)
        """
        if isinstance(name, bytes):
            value = get_property(self._open_store(), name.decode("utf-8", "replace"))
            return None if value is None else value.encode()
        if not isinstance(name, str):
            raise TypeError(f"a property's name must be str or bytes, not {type(name).__name__}")
        return get_property(self._open_store(), name)

    def approximate_size(self, start: BytesLike, stop: BytesLike) -> int:
        """About how many bytes the tables use for keys from ``start`` up to ``stop``.

        Costs a look into an index for each table that holds one of the two ends.

        >>> with DB(":memory:", compression=None) as db:
        ...     db.put(b"k", bytes(100_000))
        ...     db.flush()
        ...     db.approximate_size(b"a", b"z") // 1000
        100
        """
        return self.approximate_sizes((start, stop))[0]

    def approximate_sizes(self, *ranges: tuple[BytesLike, BytesLike]) -> list[int]:
        """:meth:`approximate_size` of several ranges.  Indexes are read, data blocks are not.

        >>> with DB(":memory:") as db:
        ...     db.approximate_sizes((b"a", b"m"), (b"m", b"z"))
        [0, 0]
        """
        store = self._open_store()
        try:
            return [
                approximate_size(store, as_bytes(start, "start key"), as_bytes(stop, "stop key"))
                for start, stop in ranges
            ]
        except OSError as error:
            self._open_store().raise_failure(error)

    def tables(self) -> list[TableInfo]:
        """The store's tables as they are now: level by level, and in the order of their level.

        Level 0 has the newest first; on other levels tables are disjoint and in the order of keys.
        The newest writes may be in no table yet.  Costs a listing of the directory.

        >>> with DB(":memory:") as db:
        ...     db.put(b"a", b"1")
        ...     db.put(b"b", b"2")
        ...     db.flush()
        ...     [(table.level, table.smallest, table.largest) for table in db.tables()]
        [(2, b'a', b'b')]
        """
        store = self._open_store()
        try:
            return list_tables(store)
        except OSError as error:
            store.raise_failure(error)

    def written_keys(self, tables: Iterable[TableInfo] = ()) -> list[bytes]:
        """The keys of all writes, deletions too, in the memtables and in these tables; in order.

        A key that is in neither has its versions in the other tables only.  ``ValueError`` for a
        table that the store does not hold any more.  Costs a scan of those tables, and the memory
        of their keys.

        >>> with DB(":memory:") as db:
        ...     db.put(b"a", b"1")
        ...     db.flush()
        ...     db.delete(b"b")
        ...     db.written_keys(), db.written_keys(db.tables())
        ([b'b'], [b'a', b'b'])
        """
        store = self._open_store()
        try:
            return written_keys(store, frozenset(table.number for table in tables))
        except OSError as error:
            store.raise_failure(error)

    def stats(self) -> Stats:
        """Counters since the store was opened, as data: see :class:`~lsmkv.Stats`.  Reads no file.

        >>> with DB(":memory:") as db:
        ...     db.get(b"k")
        ...     stats = db.stats()
        ...     stats.gets, stats.gets_found
        (1, 0)
        """
        return collect_stats(self._open_store())

    def verify(self, *, progress: Progress | None = None) -> list[CorruptionError]:
        """Read every block of every table; the damage found, one error a table, or [].

        ``progress`` is called with the bytes done, how many there are, and the phase.
        O(size of the store).

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.flush()
        ...     db.verify()
        []
        """
        try:
            return verify_tables(self._open_store(), progress)
        except OSError as error:
            self._open_store().raise_failure(error)

    def check(self) -> None:
        """Raise the first :class:`CorruptionError` of :meth:`verify`, if there is any damage.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.check()
        """
        self._open_store().open_view().memtable.check()
        for error in self.verify():
            raise error

    # Life

    @property
    def name(self) -> str:
        """The directory, as it was given: plyvel's name for ``path``.

        >>> with DB(":memory:") as db:
        ...     db.name
        ':memory:'
        """
        return self.path

    @property
    def closed(self) -> bool:
        """Whether the store was closed.

        >>> with DB(":memory:") as db:
        ...     db.closed
        False
        >>> db.closed
        True
        """
        store = self._store
        return store is None or store.view is None

    def close(self) -> None:
        """Sync the log, stop background work at its next step, and give up the lock.

        Iterators and snapshots of the store raise :class:`ClosedError` from then on; a running call
        of another thread ends before, or raises that error.  Closing twice is harmless.  Cost: one
        wait for the disk; a running compaction is abandoned, not waited for.

        Raises :class:`IOError` if the log cannot be synced: the newest writes may not be durable
        then.  The store is closed all the same.  The error of a failed flush or compaction is
        not raised here: the logger ``lsmkv`` has reported it, and nothing is lost, since a write
        that is in no table is in a synced log, which the next open replays.

        >>> db = DB(":memory:")
        >>> db.close()
        >>> db.get(b"k")
        Traceback (most recent call last):
        lsmkv.errors.ClosedError: the database is closed
        """
        if self._writer is None or not self._writer.is_ingesting():
            with self._close_lock:
                self._close()
        # Else the progress callback of an ingest closes, and another thread may be closing already
        # and waiting for the ingest.
        elif self._close_lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._close_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        store = self._store
        if store is not None and store.view is not None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __reduce__(self) -> tuple[Callable[..., DB], tuple[str, dict[str, Any]]]:
        """A store that is open for reading only is pickled as its path and options.

        It is opened anew where it is unpickled, in a worker process, say.
        """
        if self._writer is not None:
            raise TypeError(
                "a store that is open for writing cannot be pickled: pass its path, or open it"
                " with read_only=True"
            )
        arguments = dict(self._arguments)
        arguments.pop("block_cache", None)  # a cache belongs to one process
        return _reopen, (self.path, arguments)

    def __repr__(self) -> str:
        return f"<lsmkv.DB {self.path!r}{' (closed)' if self.closed else ''}>"

    def _commit_unless_changed(
        self, batch: WriteBatch, keys: set[bytes], sequence: int, sync: bool
    ) -> None:
        """Apply ``batch`` unless one of the keys was written after ``sequence``."""
        check = ConflictCheck(self._open_reader(), keys, sequence)
        self._open_writer().write(list(batch.operations), sync, check.raise_if_changed)

    # Opening

    def _adopt(self, opened: OpenStore) -> None:
        self._store = opened.store
        self._reader = opened.reader
        self._writer = opened.writer
        self._background = opened.background
        if opened.background is not None:
            opened.background.owner = weakref.ref(self)

    def _open_store(self) -> Store:
        store = self._store
        if store is None:
            raise ClosedError("the database is closed")
        store.open_view()
        return store

    def _open_reader(self) -> Reader:
        reader = self._reader
        if reader is None:
            raise ClosedError("the database is closed")
        reader.store.open_view()
        return reader

    def _open_writer(self) -> Writer:
        self._open_store()
        if self._writer is None:
            raise ReadOnlyError(f"{self.path} is open for reading only")
        return self._writer

    def _close(self) -> None:
        """See :meth:`close`.  Caller holds ``_close_lock``."""
        store = self._store
        if store is None or store.view is None:
            return
        if os.getpid() != self._pid:
            self._abandon(store)
            return
        with store.lock:
            store.closing = True
            store.changed.notify_all()
        try:
            if self._background is not None:
                self._background.stop()
            if self._writer is not None:
                self._writer.close()
        except OSError as error:
            raise_typed(error)
        finally:
            for view in (*self._superseded, store):
                view.view = None
                view.tables.clear()
            self._superseded = []
            store.versions.close()
            store.info_log.close()
            self._opened.release()

    def _abandon(self, store: Store) -> None:
        """In a forked child: drop the parent's store, and write nothing.

        No lock is taken: the thread that held it at the fork does not exist here.
        """
        store.forked = True
        store.view = None
        if self._background is not None:
            self._background.abandon()
        self._opened.release()


def _reopen(path: str, arguments: dict[str, Any]) -> DB:
    return DB(path, **arguments)


_open_handles: weakref.WeakSet[DB] = weakref.WeakSet()


def _close_handles_after_fork() -> None:
    """In a forked child: the stores belong to the parent, and the child must not touch them."""
    for db in list(_open_handles):
        if db._store is not None:
            db._abandon(db._store)


def _close_handles_at_exit() -> None:
    for db in list(_open_handles):
        db.close()


atexit.register(_close_handles_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_handles_after_fork)
