"""DB: the store's handle.  It only orchestrates."""

from __future__ import annotations

import atexit
import os
import threading
import warnings
import weakref
from collections.abc import Iterable
from dataclasses import replace
from types import TracebackType
from typing import TypeVar, Unpack, overload

from mypy_extensions import mypyc_attr

from lsmkv.db.background import Background, remove_obsolete_files
from lsmkv.db.batch import BytesLike, WriteBatch, as_bytes, encode_delete, encode_put
from lsmkv.db.directory import open_database_directory
from lsmkv.db.explain import Explainer, Explanation
from lsmkv.db.filenames import CURRENT, LOCK
from lsmkv.db.info_log import InfoLog
from lsmkv.db.iterator import Iterator, IteratorArguments
from lsmkv.db.keys import (
    MAX_SEQUENCE,
    InternalKeyComparator,
    internal_filter_policy,
    is_value,
    oldest_rank_hidden,
    sequence_of,
    unpack,
)
from lsmkv.db.lookup import TableLookup
from lsmkv.db.properties import approximate_size, collect_stats, get_property
from lsmkv.db.recovery import Recovery
from lsmkv.db.snapshot import Snapshot
from lsmkv.db.store import Store
from lsmkv.db.transaction import Transaction
from lsmkv.db.writer import Writer
from lsmkv.env.base import Directory, FileLock
from lsmkv.env.local import LocalEnv
from lsmkv.env.memory import MemoryEnv
from lsmkv.errors import (
    ClosedError,
    ConflictError,
    Error,
    ForkedError,
    raise_typed,
)
from lsmkv.options import OptionArguments, Options, make_options
from lsmkv.stats import Stats
from lsmkv.table.reader import SharedBlocks

MEMORY = ":memory:"

T = TypeVar("T")


@mypyc_attr(native_class=False)  # so that users may derive from it and refer to it weakly
class DB:
    """An ordered key-value store in a directory of LevelDB's files.

    Keys and values are ``bytes`` (other bytes-like objects are copied).  Any number of threads may
    use one handle; one handle, in one process, may have a directory open.  Use it in a ``with``
    block, or close it.

    >>> with DB(":memory:") as db:
    ...     db.put(b"k", b"v")
    ...     db.get(b"k")
    b'v'
    """

    _store: Store | None = None  # until it is open

    def __init__(
        self, path: str | os.PathLike[str], **options: Unpack[OptionArguments]
    ) -> None:
        """Open the store in directory ``path``, or ``':memory:'`` for one that is gone when closed.

        The keywords are those of :class:`~lsmkv.options.OptionArguments`.
        Raises :class:`NotFoundError` (nothing there, and not ``create_if_missing``),
        :class:`LockedError`, :class:`CorruptionError`, :class:`ComparatorMismatchError`,
        :class:`ForeignFormatError`, :class:`IOError`, and for wrong arguments ``TypeError`` or
        ``ValueError``.  Cost: replays the log, at most about ``write_buffer_size`` of it.
        """
        self._file_lock: FileLock | None = None
        self._directory: Directory | None = None
        self._pid = os.getpid()
        self._close_lock = threading.Lock()
        self.path: str = os.fsdecode(path)
        """The directory, as it was given."""
        self.options: Options = make_options(**options)
        """The settings in force."""
        try:
            self._open()
        except OSError as error:
            self._release()
            raise_typed(error)
        except BaseException:
            self._release()
            raise

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
        """
        value = self.get_at(MAX_SEQUENCE, as_bytes(key, "key"), fill_cache)
        return default if value is None else value

    def get_at(
        self,
        sequence: int,
        key: bytes,
        fill_cache: bool,
        shared: SharedBlocks | None = None,
        /,
    ) -> bytes | None:
        """The value of ``key`` as of ``sequence``, which is held live by the caller."""
        store = self._open_store()
        view = store.open_view()
        store.counters.gets += 1
        hidden = oldest_rank_hidden(sequence)
        version = view.memtable.get(key, hidden)
        if version is None and view.immutable is not None:
            version = view.immutable.get(key, hidden)
        if version is not None:
            store.counters.gets_from_memory += 1
            value = version[1] if version[0] & 1 else None
        else:
            lookup = TableLookup(store, view.version, fill_cache, shared)
            try:
                _, value = lookup.find(key, sequence)
            except OSError as error:
                store.open_view()  # closed meanwhile: that is the error then
                raise_typed(error)
            if lookup.compaction_due and store.options.seek_compaction:
                with store.lock:
                    self._background.schedule()
        if value is not None:
            store.counters.gets_found += 1
        return value

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
        names = [as_bytes(key, "key") for key in keys]
        store = self._open_store()
        _, sequence = store.pin()
        shared: SharedBlocks = {}
        try:
            values = {
                key: self.get_at(sequence, key, fill_cache, shared)
                for key in sorted(set(names), key=store.order.of)
            }
        finally:
            store.live.release(sequence)
        return [values[key] for key in names]

    def __contains__(self, key: object) -> bool:
        """Whether ``key`` is there.  Costs what a Get costs.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"")
        ...     b"k" in db, b"no such key" in db
        (True, False)
        """
        return self.get_at(MAX_SEQUENCE, as_bytes(key, "key"), True) is not None

    def may_contain(self, key: BytesLike) -> bool:
        """False only if ``key`` is not there; no data block is read.

        Asks memtables and filters alone.  True may be wrong: about 1 absent key in 100 passes a
        filter, a deletion in a table counts as a key, and without filters a table's range decides.
        """
        name = as_bytes(key, "key")
        view = self._open_store().open_view()
        hidden = oldest_rank_hidden(MAX_SEQUENCE)
        version = view.memtable.get(name, hidden)
        if version is None and view.immutable is not None:
            version = view.immutable.get(name, hidden)
        if version is not None:
            return is_value(version[0])
        try:
            return TableLookup(self._open_store(), view.version, False).may_contain(name)
        except OSError as error:
            raise_typed(error)

    def explain(self, key: BytesLike) -> Explanation:
        """How a Get of ``key`` goes, step by step: see :class:`Explanation`.

        Leaves no trace in counters and cache.  Costs a block for every table whose range covers
        the key.

        >>> with DB(":memory:") as db:
        ...     db.put(b"k", b"value")
        ...     print(db.explain(b"k"))
        get 'k': found, 5 bytes in memtable, write 1
          memtable: answers
          searched 0 data blocks (0 from the file, 0 bytes); without filters 0 (0 bytes)
        """
        name = as_bytes(key, "key")
        store = self._open_store()
        try:
            return Explainer(store).explain(name)
        except OSError as error:
            store.open_view()  # closed meanwhile: that is the error then
            raise_typed(error)

    def iterator(self, **arguments: Unpack[IteratorArguments]) -> Iterator:
        """An iterator over the store as it is now, or over a range of it.

        ``start`` and ``stop`` bound the keys (``include_start=True``, ``include_stop=False``), or
        ``prefix`` does; ``reverse`` turns the direction; ``include_key`` and ``include_value`` say
        what is returned; ``fill_cache=False`` spares the block cache.  See :class:`Iterator`.
        """
        store = self._open_store()
        view, sequence = store.pin()
        try:
            return Iterator(store, view, sequence, **arguments)
        except BaseException:
            store.live.release(sequence)
            raise

    def iterator_at(
        self, sequence: int, /, **arguments: Unpack[IteratorArguments]
    ) -> Iterator:
        """An iterator over the store as of ``sequence``, which is held live by the caller."""
        store = self._open_store()
        with store.lock:
            view = store.open_view()
            store.live.register(sequence)
        try:
            return Iterator(store, view, sequence, **arguments)
        except BaseException:
            store.live.release(sequence)
            raise

    def __iter__(self) -> Iterator:
        return self.iterator()

    def snapshot(self) -> Snapshot:
        """The store as it is now, to be read later."""
        store = self._open_store()
        _, sequence = store.pin()
        return Snapshot(self, sequence)

    def release_at(self, sequence: int, /) -> None:
        """A snapshot of ``sequence`` is gone."""
        store = self._store
        if store is not None:
            store.live.release(sequence)

    # Writing

    def put(self, key: BytesLike, value: BytesLike, *, sync: bool = False) -> None:
        """Set ``key`` to ``value``.

        Once it returns, a killed process does not lose the write; with ``sync=True`` neither does
        a power cut.  Cost: one write to the log; with ``sync`` one wait for the disk, shared with
        the writers that wait at the same time.
        """
        operation = as_bytes(key, "key"), as_bytes(value, "value")
        self._open_writer().write([operation], encode_put(*operation), sync)

    def delete(self, key: BytesLike, *, sync: bool = False) -> None:
        """Remove ``key``; no error if it is not there.  Costs what a put costs."""
        name = as_bytes(key, "key")
        self._open_writer().write([(name, None)], encode_delete(name), sync)

    def write(self, batch: WriteBatch, /, *, sync: bool = False) -> None:
        """Apply all operations of ``batch``, or none.  The batch keeps its content."""
        if not isinstance(batch, WriteBatch):
            raise TypeError(f"write takes a WriteBatch, not {type(batch).__name__}")
        writer = self._open_writer()
        if len(batch) > 0:
            writer.write(list(batch.operations), batch.encoded_operations(), sync)

    def write_batch(self, *, transaction: bool = True, sync: bool = False) -> WriteBatch:
        """A batch that writes to this store: ``write()``, or the end of a ``with`` block.

        With ``transaction`` (the default here, not in plyvel) a block that raises writes nothing.
        """
        self._open_store()
        return WriteBatch(self, transaction=transaction, sync=sync)

    def transaction(self, *, sync: bool = False) -> Transaction:
        """An optimistic transaction: see :class:`Transaction`."""
        snapshot = self.snapshot()
        return Transaction(snapshot, snapshot.sequence, self._commit_unless_changed, sync)

    def sync(self) -> None:
        """Make every write that has returned durable."""
        self._open_writer().sync()

    def flush(self) -> None:
        """Turn the memtable into a table, and wait for it."""
        self._open_writer().rotate()

    # The files

    def compact_range(
        self, start: BytesLike | None = None, stop: BytesLike | None = None
    ) -> None:
        """Compact the keys from ``start`` to ``stop``, both included; None is no bound.

        The memtable is flushed, then each level is merged into the next, down to the deepest one
        that holds any of the range: deleted and overwritten data goes, and reads get cheaper.
        Ctrl-C ends it at the next step; what is done stays done.
        """
        begin = None if start is None else as_bytes(start, "start key")
        end = None if stop is None else as_bytes(stop, "stop key")
        self.flush()
        store = self._open_store()
        # No version is held meanwhile: its files could not be removed.
        for level in range(store.open_view().version.deepest_level(begin, end)):
            self._background.compact_level(level, begin, end)

    def get_property(self, name: str | bytes) -> str | None:
        """A property by LevelDB's name for it, or None.

        ``leveldb.stats``, ``leveldb.sstables``, ``leveldb.num-files-at-level<N>``,
        ``leveldb.approximate-memory-usage``.
        """
        if isinstance(name, bytes):
            name = name.decode("utf-8", "replace")
        if not isinstance(name, str):
            raise TypeError(f"a property's name must be str or bytes, not {type(name).__name__}")
        return get_property(self._open_store(), name)

    def approximate_size(self, start: BytesLike, stop: BytesLike) -> int:
        """About how many bytes the tables use for keys from ``start`` up to ``stop``."""
        return self.approximate_sizes((start, stop))[0]

    def approximate_sizes(self, *ranges: tuple[BytesLike, BytesLike]) -> list[int]:
        """:meth:`approximate_size` of several ranges.  Indexes are read, data blocks are not."""
        store = self._open_store()
        try:
            return [
                approximate_size(store, as_bytes(start, "start key"), as_bytes(stop, "stop key"))
                for start, stop in ranges
            ]
        except OSError as error:
            raise_typed(error)

    def stats(self) -> Stats:
        """Counters since the store was opened, as data."""
        return collect_stats(self._open_store())

    def check(self) -> None:
        """Read every table and raise :class:`CorruptionError` unless the structure is sound.

        O(size of the store).
        """
        store = self._open_store()
        view, sequence = store.pin()
        try:
            view.version.check()
            view.memtable.check()
            for files in view.version.levels:
                for file in files:
                    store.tables.find(file).check()
        except OSError as error:
            raise_typed(error)
        finally:
            store.live.release(sequence)

    # Life

    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
        store = self._store
        return store is None or store.view is None

    def close(self) -> None:
        """Sync the log, stop background work at its next step, and give up the lock.

        Iterators and snapshots of the store raise :class:`ClosedError` from then on; a call that
        another thread is in ends first, or with that error.  Closing twice is harmless.
        """
        with self._close_lock:
            store = self._store
            if store is None or store.view is None:
                return
            if os.getpid() != self._pid:
                self._abandon(store)
                return
            with store.lock:
                store.closing = True
                store.changed.notify_all()
            self._background.stop()
            try:
                self._writer.close()
            except OSError as error:
                raise_typed(error)
            finally:
                store.view = None
                store.tables.clear()
                store.versions.close()
                store.info_log.close()
                self._release()

    def __enter__(self) -> DB:
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

    def __repr__(self) -> str:
        return f"<lsmkv.DB {self.path!r}{' (closed)' if self.closed else ''}>"

    def _commit_unless_changed(
        self, batch: WriteBatch, keys: set[bytes], sequence: int, sync: bool
    ) -> None:
        """Apply ``batch`` unless one of the keys was written after ``sequence``."""

        def refuse_changed() -> None:
            for key in sorted(keys):
                if self._newest_sequence(key) > sequence:
                    raise ConflictError(f"{key!r} was written since the transaction began")

        operations = list(batch.operations)
        self._open_writer().write(operations, batch.encoded_operations(), sync, refuse_changed)

    def _newest_sequence(self, key: bytes) -> int:
        """The sequence of the newest write to ``key`` that is still to be found; 0 for none."""
        store = self._open_store()
        view = store.open_view()
        hidden = oldest_rank_hidden(MAX_SEQUENCE)
        version = view.memtable.get(key, hidden)
        if version is None and view.immutable is not None:
            version = view.immutable.get(key, hidden)
        if version is not None:
            return sequence_of(version[0])
        lookup = TableLookup(store, view.version, True)
        lookup.find(key, MAX_SEQUENCE)
        return 0 if lookup.found is None else unpack(lookup.found)[1]

    # Opening

    def _open(self) -> None:
        options = self.options
        create = options.create_if_missing
        env = options.env
        if env is None and self.path == MEMORY:
            env = MemoryEnv()
            create = True
        elif env is None:
            env = LocalEnv()
        self._directory = directory = open_database_directory(env, self.path, create)
        self._file_lock = directory.lock(LOCK)
        if options.error_if_exists and directory.exists(CURRENT):
            raise Error(f"{self.path}: the database exists, and error_if_exists is true")
        comparator = InternalKeyComparator(options.comparator)
        policy = options.filter_policy
        table_options = replace(
            options,
            comparator=comparator,
            filter_policy=None if policy is None else internal_filter_policy(policy),
        )
        info_log = InfoLog(directory)
        lock = threading.Lock()
        try:
            recovery = Recovery(directory, options, table_options, comparator, info_log, lock)
            recovered = recovery.run()
        except BaseException as error:
            info_log.warn(f"Open failed: {error}")
            info_log.close()
            raise
        store = Store(directory, options, table_options, comparator, recovered, info_log, lock)
        self._background = Background(store)
        self._writer = Writer(store, self._background, recovered.wal)
        remove_obsolete_files(store, set())
        self._store = store
        _open_handles.add(self)
        with store.lock:
            self._background.schedule()

    def _open_store(self) -> Store:
        store = self._store
        if store is None or store.view is None:
            if self._pid != os.getpid():
                raise ForkedError("opened before a fork: open the store anew in this process")
            raise ClosedError("the database is closed")
        return store

    def _open_writer(self) -> Writer:
        self._open_store()
        return self._writer

    def _release(self) -> None:
        if self._file_lock is not None:
            self._file_lock.close()
            self._file_lock = None
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    def _abandon(self, store: Store) -> None:
        """In a forked child: let go of the parent's store, and write nothing.

        No lock is taken: the thread that held it at the fork does not exist here.
        """
        store.view = None
        self._release()


_open_handles: weakref.WeakSet[DB] = weakref.WeakSet()


def _close_handles_after_fork() -> None:
    """In a forked child: the parent goes on with its stores, the child must not touch them."""
    for db in list(_open_handles):
        if db._store is not None:
            db._abandon(db._store)


def _close_handles_at_exit() -> None:
    for db in list(_open_handles):
        db.close()


atexit.register(_close_handles_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_handles_after_fork)
