"""The methods that maintain a store's files: compaction, copies, loading, statistics, checks.

Most of them call just one module of ``lsmkv/engine/db/admin``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, overload

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.admin.checkpoint import hold, write_checkpoint
from lsmkv.engine.db.admin.compact_range import compact_range
from lsmkv.engine.db.admin.delete_range import delete_range
from lsmkv.engine.db.admin.ingest import Ingestion, as_paths
from lsmkv.engine.db.admin.properties import (
    TableInfo,
    approximate_size,
    get_property,
    list_tables,
    written_keys,
)
from lsmkv.engine.db.admin.rewrite_tables import rewrite_tables
from lsmkv.engine.db.admin.verify import verify_tables
from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.handle import Handle
from lsmkv.engine.db.opening.lost import acknowledge, lost_damage
from lsmkv.engine.db.opening.open import MEMORY
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.tree.store_stats import collect_stats
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import ClosedError, CorruptionError, StaleViewError
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.introspection import described
from lsmkv.engine.util.progress import Progress

if TYPE_CHECKING:
    from lsmkv.engine.db.observe.openmetrics import Measured
    from lsmkv.engine.stats import Stats


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class Maintenance(Handle):
    """Maintains the files of an open store."""

    def compact_range(
        self,
        start: BytesLike | None = None,
        stop: BytesLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Compact the keys from ``start`` to ``stop``, both included; None means no bound.

        The memtable is flushed.  Then each level is merged into the next, down to the deepest one
        that holds keys of the range.  This removes deleted and overwritten data above that level
        and makes reads cheaper.  As in LevelDB, the deepest level is not rewritten by itself.
        ``progress`` is called in this thread with the bytes read, the bytes to read (estimated at
        the start) and the level; the last call is ``(total, total, "done")``.  An exception from
        it, or Ctrl-C, ends the call at the next step; finished compactions stay.
        Raises :class:`IOError` on a full disk; nothing is lost, and it can be called again.

        O(bytes of the range), in time and, while it runs, in disk space.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     for value in (b"old", b"new"):
        ...         db.put(b"k", value)
        ...         db.flush()
        ...     db.compact_range()
        ...     sum(level.files for level in db.stats().levels)
        1
        """
        begin = None if start is None else as_bytes(start, "start key")
        end = None if stop is None else as_bytes(stop, "stop key")
        store, background = self._own_work()
        self._open_writer().flush_memtable()
        compact_range(store, background, begin, end, progress)

    def delete_range(
        self,
        start: BytesLike | None,
        stop: BytesLike | None,
        *,
        prefix: BytesLike | None = None,
        tables_only: bool = False,
    ) -> None:
        """Delete the keys from ``start`` up to ``stop``, which is not included; None is no bound.
        With ``prefix``, only those of them that begin with it.

        Tables whose keys all lie in the range go as a whole, unread, and their space is free soon
        after.  What is in other tables, or in memory, is deleted key by key, in batches.  Each
        batch is atomic, the whole is not: a crash or an exception leaves a part deleted, and what
        is written to the range meanwhile stays or goes.  The deletion is durable when this returns
        if tables went.

        With ``tables_only`` only the tables go, and nothing else is read or written: for keys that
        are written once.  An older value of a key would reappear.

        Snapshots and iterators from before still see the range, and keep its tables until they are
        closed.  A transaction from before that has read a key of the range, absent or not, or that
        writes one, raises :class:`ConflictError` at its commit if tables went.  So :meth:`batches`
        from before raises :class:`SequenceTooOldError` there.

        Cost: a scan of the keys in the two tables at the ends of the range, on each level, and in
        memory; two waits for the disk; and no compaction starts during the call.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     for number in range(5):
        ...         db.put(b"%d" % number, b"")
        ...     db.delete_range(b"1", b"4")
        ...     [key for key, _ in db]
        [b'0', b'4']
        """
        store, background = self._own_work()
        try:
            delete_range(store, background, self._own_writer(), start, stop, prefix, tables_only)
        except OSError as error:
            self._open_store().raise_failure(error)

    def rewrite_tables(self, *, progress: Progress | None = None) -> None:
        """Rewrite every table with the filters and blocks that the options ask for.

        Call it after opening a store with another ``filter_policy``, ``prefix_extractor``,
        ``block_size`` or ``compression``.  Without it, each table changes only when it is next
        compacted.  Keys, values and levels stay as they are, except that the memtable is flushed
        and level 0 is compacted into level 1.
        ``progress`` is called as by :meth:`compact_range`.  An exception from it, or Ctrl-C, ends
        the call at the next step; tables that were written stay.

        O(bytes of the store) in time; in disk space, a few tables' worth.  Raises the errors of
        reading and writing tables, and :class:`ReadOnlyError` for a store that is open for reading
        only.

        >>> import lsmkv
        >>> env = lsmkv.MemoryEnv()  # on disk, leave it out
        >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
        ...     db.put(b"k", b"v")
        >>> with lsmkv.DB("store", env=env, filter_policy=lsmkv.Bloom64Policy()) as db:
        ...     db.rewrite_tables()
        ...     db.explain(b"k").tables[0].filters[0].policy
        'lsmkv.Bloom64'
        """
        store, background = self._own_work()
        self._open_writer().flush_memtable()
        rewrite_tables(store, background, progress)

    def _own_work(self) -> tuple[Store, Background]:
        """The store, and its background work, of this process."""
        self._open_writer()
        opened = self._opened
        if opened.background is None:
            raise ClosedError("the database is closed")  # another process goes on with it
        return opened.store, opened.background

    def checkpoint(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        """Make a second store at ``path`` that holds what this one holds now.

        Tables are shared through hard links, or copied if ``path`` is on another file system; the
        log is copied.  With hard links it costs next to nothing.  The checkpoint is durable when
        this returns.  Writers wait only while the logs are opened.  Raises :class:`IOError` with
        ``errno.EEXIST`` if ``path`` exists.

        In a store that is open for reading only, the checkpoint holds what the store shows, and
        another process may continue writing.  If that process has removed a table, the store is
        refreshed first.  Raises :class:`Error` if the store's log is damaged.

        >>> import lsmkv
        >>> from lsmkv.engine.env.memory import MemoryEnv
        >>> env = MemoryEnv()  # on disk, leave it out
        >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
        ...     db.put(b"k", b"v")
        ...     db.checkpoint("store-backup")
        >>> with lsmkv.DB("store-backup", env=env) as backup:
        ...     backup.get(b"k")
        b'v'
        """
        self._open_store()
        if self.path == MEMORY and self.options.env is None:
            raise ValueError("a store in memory has no file system to put a checkpoint on")
        while True:
            try:
                self._write_checkpoint(os.fsdecode(path), progress)
                return
            except StaleViewError as error:
                self._move_on(error)
            except OSError as error:
                self._open_store().raise_failure(error)

    def _write_checkpoint(self, path: str, progress: Progress | None) -> None:
        store = self._open_store()
        follower = self._opened.follower
        if follower is not None:
            source = follower.hold(store)  # whose files are the follower's
            write_checkpoint(store, self._opened.env, source, path, progress)
            return
        writer = self._own_writer()
        source = hold(store, writer)
        try:
            write_checkpoint(store, self._opened.env, source, path, progress)
        finally:
            source.close()

    def ingest(
        self, files: Iterable[str | os.PathLike[str]], *, progress: Progress | None = None
    ) -> None:
        """Write the content of tables made by :class:`~lsmkv.TableWriter`, atomically.

        It is one write: all entries become visible together, newer than everything written before
        this returns, and durable.  Where several files have a key, the later one in the list
        wins.  The files stay as they are.  They are read through the store's ``env`` (the local
        one for ``':memory:'``).

        Every block is verified and its entries are rewritten, so the cost is about that of a
        compaction of as many bytes.  Other writers wait only at the end, while the memtable is
        flushed.  ``progress`` is called with the bytes read, the total, and the phase.
        After an exception, Ctrl-C included, the store holds either all of the entries or none.

        Raises :class:`CorruptionError` for a damaged file or one whose keys do not ascend in this
        store's order, ``ValueError`` for one that :class:`~lsmkv.TableWriter` did not make,
        :class:`IOError`, and :class:`ReadOnlyError`.

        >>> import lsmkv
        >>> env = lsmkv.MemoryEnv()
        >>> with lsmkv.TableWriter("/bulk.ldb", env=env) as table:
        ...     table.add(b"a", b"1")
        >>> with lsmkv.DB("/db", create_if_missing=True, env=env) as db:
        ...     db.ingest(["/bulk.ldb"])
        ...     dict(db)
        {b'a': b'1'}
        """
        self._ingest(as_paths(files), None, progress)

    def _ingest(
        self, paths: list[str], ends: list[bytes] | None, progress: Progress | None
    ) -> None:
        """:meth:`ingest`; ``ends`` are those of the files, if another process has named them."""
        writer = self._own_writer()
        background = self._background
        assert background is not None
        env = self._opened.env
        if self.path == MEMORY and self.options.env is None:
            env = LocalEnv()  # a caller cannot put a file into the memory env of the store
        try:
            Ingestion(self._open_store(), background, env, paths, progress, ends).run(writer)
        except OSError as error:
            self._open_store().raise_failure(error)

    def refresh(self) -> None:
        """Make a store that is open for reading only show the current state on disk.

        Earlier iterators and snapshots keep their state; they raise :class:`StaleViewError` if
        they later need a table that the writer has removed.  In a store that is open for writing
        this does nothing, since such a store always shows the current state.

        Cost: a few system calls if nothing is new, else a read of what was written since.  If the
        writer has started a new MANIFEST, it costs as much as opening the store.  Raises
        :class:`DirectoryReplacedError` if the path now leads to another directory, and the errors
        of opening.

        >>> import lsmkv
        >>> from lsmkv.engine.env.memory import MemoryEnv
        >>> env = MemoryEnv()
        >>> writer = lsmkv.DB("store", create_if_missing=True, env=env)
        >>> with writer, lsmkv.DB("store", read_only=True, env=env) as reader:
        ...     writer.put(b"k", b"v")
        ...     before = reader.get(b"k")
        ...     reader.refresh()
        ...     before, reader.get(b"k")
        (None, b'v')
        """
        store = self._open_store()
        follower = self._opened.follower
        if follower is not None and not store.lock.must_not_wait:  # else the next call shows it all
            try:
                follower.refresh(store)
            except OSError as error:
                store.raise_failure(error)

    @overload
    def get_property(self, name: str) -> str | None: ...

    @overload
    def get_property(self, name: bytes) -> bytes | None: ...

    def get_property(self, name: str | bytes) -> str | bytes | None:
        """The property with this LevelDB name, or None; bytes for a name in bytes, as in plyvel.

        ``leveldb.stats``, ``leveldb.sstables``, ``leveldb.num-files-at-level<N>``,
        ``leveldb.approximate-memory-usage``.  Reads no file.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.get_property("leveldb.num-files-at-level0"), db.get_property(b"no such one")
        ('0', None)
        """
        if isinstance(name, bytes):
            text = as_bytes(name, "property's name").decode("utf-8", "replace")
            value = get_property(self._open_store(), text)
            return None if value is None else value.encode()
        if not isinstance(name, str):
            raise TypeError(f"a property's name must be str or bytes, not {type(name).__name__}")
        return get_property(self._open_store(), name)

    def approximate_size(self, start: BytesLike, stop: BytesLike) -> int:
        """About how many bytes the tables use for keys from ``start`` up to ``stop``.

        Cost: a search in the index of each table whose range holds one of the two ends.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:", compression=None) as db:
        ...     db.put(b"k", bytes(100_000))
        ...     db.flush()
        ...     db.approximate_size(b"a", b"z") // 1000
        100
        """
        return self.approximate_sizes((start, stop))[0]

    def approximate_sizes(self, *ranges: tuple[BytesLike, BytesLike]) -> list[int]:
        """:meth:`approximate_size` of several ranges.  Indexes are read, data blocks are not.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.approximate_sizes((b"a", b"m"), (b"m", b"z"))
        [0, 0]
        """
        store = self._open_store()
        keys = [
            (as_bytes(start, "start key"), as_bytes(stop, "stop key")) for start, stop in ranges
        ]
        while True:
            try:
                return [approximate_size(store, start, stop) for start, stop in keys]
            except StaleViewError as error:
                self._move_on(error)
            except OSError as error:
                self._open_store().raise_failure(error)

    def tables(self) -> list[TableInfo]:
        """The store's current tables: level by level, and within a level in its order.

        Level 0 lists the newest first; on other levels tables are disjoint and sorted by key.
        The newest writes may not be in a table yet.  Cost: a listing of the directory.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
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
        """The keys of all writes in the memtables and in these tables, with deletions; in order.

        All versions of any other key are in the other tables.  Raises ``ValueError`` for a table
        that the store no longer holds.  Cost: a scan of those tables, and memory for their keys.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"a", b"1")
        ...     db.flush()
        ...     db.delete(b"b")
        ...     db.written_keys(), db.written_keys(db.tables())
        ([b'b'], [b'a', b'b'])
        """
        store = self._open_store()
        numbers = frozenset(table.number for table in tables)
        while True:
            try:
                return written_keys(store, numbers)
            except StaleViewError as error:
                self._move_on(error)
            except OSError as error:
                store.raise_failure(error)

    def stats(self) -> Stats:
        """Counters since the store was opened, as data: see :class:`~lsmkv.Stats`.  Reads no file.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.get(b"k")
        ...     stats = db.stats()
        ...     stats.gets, stats.gets_found
        (1, 0)
        """
        store = self._open_store()
        writer = self._writer
        if writer is not None:
            return collect_stats(store, writer.log_is_mapped)
        return collect_stats(store, store.options.mapped_log and store.directory.maps_logs)

    @staticmethod
    def _import_for_methods() -> None:
        import lsmkv.engine.db.observe.openmetrics  # noqa: F401, PLC0415 - and ``lsmkv.engine.stats``

    def metrics_text(self, *, store: str | None = None) -> str:
        """The counters of :meth:`stats` in the OpenMetrics text format, which Prometheus reads.

        Every metric has the label ``store``: the path, or the name given here.  Counters end in
        ``_total`` and never fall while the store is open.  With ``publish_stats=True`` or a
        ``trace``, it includes a histogram of latencies for each operation.
        ``lsmkv.metrics_text`` does the same for several stores, and ``docs/monitoring.md`` has
        recipes.  Takes no lock and reads no file of the store.  Cost: about a millisecond in pure
        Python (140 series, 290 with latencies); the first call also reads lsmkv's sources, for the
        help of the metrics.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     text = db.metrics_text()
        >>> [line for line in text.splitlines() if "lsmkv_writes" in line]
        ['# TYPE lsmkv_writes counter', \
'# HELP lsmkv_writes Batches written; a put or a delete is a batch of one.', \
'lsmkv_writes_total{store=":memory:"} 1']
        """
        from lsmkv.engine.db.observe.openmetrics import exposition  # noqa: PLC0415 - most stores have none

        return exposition([self._measure(store)])

    def _measure(self, store: str | None) -> Measured:
        """The figures of :meth:`metrics_text`."""
        from lsmkv.engine.db.observe.openmetrics import Measured  # noqa: PLC0415 - most stores have none

        stats = self.stats()
        observation = self._opened.observation
        latencies = {} if observation is None else observation.latencies()
        return Measured(self.path if store is None else store, stats, latencies)

    def verify(self, *, progress: Progress | None = None) -> list[CorruptionError]:
        """Read every block of every table, and return the damage: one error per table, or [].

        If the store is open for reading only, its writer may remove tables during the call; the
        store is then refreshed, and the tables of the newer version are verified.

        The list also has one error for each log that this or an earlier recovery has set aside in
        ``lost/``, until :meth:`acknowledge_recovery` is called.  ``progress`` is called with the
        bytes done, the total, and the phase.  O(size of the store).

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.flush()
        ...     db.verify()
        []
        """
        store = self._open_store()
        try:
            damage = verify_tables(store, progress, self._move_on)
            return damage + lost_damage(store.directory, self.recovery)
        except OSError as error:
            self._open_store().raise_failure(error)

    def acknowledge_recovery(self) -> list[str]:
        """Record that the user knows of the logs in ``lost/``, and return those that were new.

        :meth:`verify` and ``lsmkv verify`` report a log that recovery has set aside.  They stop
        after this call, or after ``lsmkv verify --acknowledge``.  The logs stay in ``lost/``.
        Raises :class:`CorruptionError` if the record of them is damaged.  Cost: a write of one
        small file, and a sync.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.acknowledge_recovery()
        []
        """
        self._open_writer()
        try:
            return acknowledge(self._open_store().directory)
        except OSError as error:
            self._open_store().raise_failure(error)

    def check(self) -> None:
        """Raise the first :class:`CorruptionError` that :meth:`verify` finds in a table.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     db.check()
        """
        store = self._open_store()
        store.open_view().memtable.check()
        try:
            damage = verify_tables(store, None, self._move_on)
        except OSError as error:
            self._open_store().raise_failure(error)
        for found in damage:
            raise found
