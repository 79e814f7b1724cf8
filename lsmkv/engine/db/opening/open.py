"""Opens a store: its directory, its lock, recovery, and the objects that work on the result.

``DB`` calls :func:`open_store`.
"""

from __future__ import annotations

import threading  # noqa: F401 - imported first in a thread, it would take that for the main one
from collections.abc import Callable
from typing import TYPE_CHECKING

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.compact.obsolete import remove_obsolete_files
from lsmkv.engine.db.opening.directory import open_database_directory, take_lock
from lsmkv.engine.db.opening.dropped import RecoveryReport
from lsmkv.engine.db.opening.read_only import Follower
from lsmkv.engine.db.opening.recovery import Recovery
from lsmkv.engine.db.read.reader import Reader
from lsmkv.engine.db.tree.info_log import InfoLog
from lsmkv.engine.db.tree.sharing import Sharing
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.db.write.writer import Writer
from lsmkv.engine.env.base import Directory, Env, FileLock
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import (
    ComparatorMismatchError,
    CorruptionError,
    Error,
    ForeignFormatError,
    raise_typed,
)
from lsmkv.engine.format.filenames import CURRENT
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.options import OptionArguments, Options, in_stored_order, make_options

if TYPE_CHECKING:
    from lsmkv.engine.db.observe.observation import Observation

MEMORY = ":memory:"


class Share:
    """Hooks by which the process that owns a shared store opens it."""

    def __init__(
        self,
        take_lock: Callable[[Directory], FileLock],
        begin: Callable[[Directory], Sharing],
    ) -> None:
        """``take_lock`` takes the store's lock; ``begin`` is called once it is held, and returns
        what publishes the store to other processes."""
        self.take_lock = take_lock
        self.begin = begin


class OpenStore:
    """The parts of an open store.  ``writer`` and ``background`` are None if it is read-only."""

    def __init__(
        self, env: Env, directory: Directory, file_lock: FileLock | None, options: Options
    ) -> None:
        self.options = options
        self.env = env
        self.directory = directory
        self.file_lock = file_lock
        self.info_log: InfoLog | None = None
        self.writer: Writer | None = None
        self.background: Background | None = None
        self.observation: Observation | None = None
        self.sharing: Sharing | None = None
        """Publishes the store to other processes, if it is shared."""
        self.released = False
        """True if :meth:`release` has completed."""
        self.follower: Follower | None = None
        """Refreshes the store, if it is read-only."""
        self._report = RecoveryReport(directory.path)

    @property
    def recovery(self) -> RecoveryReport:
        """Report of writes that are missing, because their log is damaged."""
        return self._report if self.follower is None else self.follower.report

    def start(self, store: Store, writer: Writer | None, background: Background | None) -> None:
        """Set the parts of a recovered store."""
        self.store = store
        self.writer = writer
        self.background = background
        self.reader = Reader(store, background)
        if self.observation is not None:
            self.observation.attach(store)

    def end_observation(self) -> None:
        """Stop publishing and tracing."""
        if self.observation is not None:
            self.observation.close()

    def close(self) -> None:
        """Sync the log, stop background work at its next step, and release everything.

        One thread at a time calls it, and defers signals.  The store is closed whatever it raises,
        unless a signal ends the wait for other threads: then nothing is, and a second call goes on.
        """
        store = self.store
        self._stop_work()
        try:
            self._close_writer()
        finally:
            store.view = None
            if self.follower is not None:
                self.follower.close()
            store.tables.clear()
            store.log_holds.close()
            store.lock.closer = None
            store.versions.close()
            store.info_log.close()
            self.release()

    def retire(self, keep: Callable[[], None]) -> None:
        """:meth:`close`, but what has been read from the store stays readable: another process will
        write to it.  ``keep`` is called when no table comes or goes any more, and keeps them."""
        self._stop_work()
        try:
            self._close_writer()
        finally:
            self.store.versions.close()
            self.store.info_log.close()
            self.end_observation()
            self.observation = None  # from now on it is not part of STATS.json
            try:
                keep()
            finally:
                if self.sharing is not None:
                    self.sharing.close()
                if self.file_lock is not None:
                    self.file_lock.close()

    def _stop_work(self) -> None:
        store = self.store
        with store.lock.nested, store.lock.guard:
            store.closing = True
            store.changed.notify_all()
        if self.background is not None:
            self.background.stop()
        if self.writer is not None:
            self.writer.wait_for_ingests()

    def _close_writer(self) -> None:
        try:
            if self.writer is not None:
                self.writer.close()
        except OSError as error:
            raise_typed(error)

    def release(self) -> None:
        """End the observation, and release the lock and the directory."""
        try:
            self.end_observation()
        finally:
            if self.sharing is not None:
                self.sharing.close()
            if self.file_lock is not None:
                self.file_lock.close()
            self.directory.close()
            self.released = True


def open_store(path: str, arguments: OptionArguments, share: Share | None = None) -> OpenStore:
    """Open the store in ``path``; after an error nothing stays open.

    ``arguments`` are the keywords of ``lsmkv.DB``.  Where they name no comparator, the store's own
    name for its order decides.  With ``share`` other processes share it.  Damage is raised with a
    note that says what to do next: tracebacks show it, and the message itself stays as it is.
    """
    options = make_options(**arguments)
    create = options.create_if_missing
    env = options.env
    if env is None and path == MEMORY:
        from lsmkv.engine.env.memory import MemoryEnv  # noqa: PLC0415 - most stores are on disk

        env = MemoryEnv()
        create = True
    elif env is None:
        env = LocalEnv()
    try:
        return _open(env, path, create, options, arguments, share)
    except CorruptionError as error:
        if isinstance(env, LocalEnv):
            error.add_note(f"To see what can be read of it: lsmkv rescue {path} (lsmkv.repair)")
        raise


def _open(
    env: Env,
    path: str,
    create: bool,
    options: Options,
    arguments: OptionArguments,
    share: Share | None,
) -> OpenStore:
    directory = open_database_directory(env, path, create and not options.read_only)
    opened = OpenStore(env, directory, None, options)
    try:
        if not options.read_only:
            take = None if share is None else share.take_lock
            opened.file_lock = take_lock(directory, options.lock_timeout, take)
            if share is not None:
                opened.sharing = share.begin(directory)
        if options.publish_stats or options.trace is not None:
            opened.observation = _observe(directory, options)
        try:
            _start(opened, path)
        except ComparatorMismatchError as error:
            opened.options = in_stored_order(arguments, error)
            _start(opened, path)
    except BaseException as error:
        if opened.info_log is not None:
            if not isinstance(error, ForeignFormatError):  # its LOG is not LevelDB's
                opened.info_log.warn(f"Open failed: {error}")
            opened.info_log.close()
        opened.release()
        raise
    return opened


def import_late_parts(arguments: OptionArguments) -> None:
    """Import what an open store may need later, and importing lsmkv leaves out."""
    import json  # noqa: F401, PLC0415 - for logs that are damaged
    import logging  # noqa: F401, PLC0415 - for warnings

    if arguments.get("publish_stats") or arguments.get("trace") is not None:
        import lsmkv.engine.db.observe.observation  # noqa: F401, PLC0415 - a new owner, too, observes


def _observe(directory: Directory, options: Options) -> Observation:
    from lsmkv.engine.db.observe.observation import Observation  # noqa: PLC0415 - most stores have none

    return Observation(directory, options)


def _start(opened: OpenStore, path: str) -> None:
    options = opened.options
    if not options.read_only:
        _recover(opened, path)
        return
    comparator = InternalKeyComparator(options.comparator)
    follower = Follower(opened.directory, options, comparator)
    opened.start(follower.open(), None, None)
    opened.follower = follower


def _recover(opened: OpenStore, path: str) -> None:
    directory = opened.directory
    options = opened.options
    if options.error_if_exists and directory.exists(CURRENT):
        raise Error(f"{path}: the database exists, and error_if_exists is true")
    comparator = InternalKeyComparator(options.comparator)
    info_log = opened.info_log
    if info_log is None:
        info_log = InfoLog(directory)
        opened.info_log = info_log
    lock = StoreLock()
    recovery = Recovery(directory, options, comparator, info_log, lock)
    recovered, wal = recovery.run()
    options = recovery.options
    opened.options = options
    opened._report = recovery.report
    store = Store(
        directory, options, comparator, recovered.versions, recovered.memtable, info_log, lock
    )
    background = Background(store)
    writer = Writer(store, background, wal)
    opened.start(store, writer, background)
    if opened.sharing is not None:
        store.sharing = opened.sharing
        store.sharing.attach(store.versions.last_sequence, store.versions.current.numbers)
    if recovered.versions.manifest_number > 0:  # else nothing was committed, and nothing replaced
        remove_obsolete_files(store, background.pending_outputs)
    with store.lock.nested, store.lock.guard:
        background.schedule()
    if opened.observation is not None and options.publish_stats:
        opened.observation.publish(store, background, writer)
