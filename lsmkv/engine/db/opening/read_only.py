"""Opens a store for reading only: nothing in its directory is written, and no lock is taken.

``open.py`` makes a :class:`Follower`.  A writer may have the store open and may remove
files.  The result is still consistent: the MANIFEST is read first, then the logs that it
names.  If a file is missing, the writer has committed a newer version, and everything is
read again.

Tables are opened when they are needed.  If the writer has removed one, the view is too old:
:class:`~lsmkv.errors.StaleViewError`.  The handle moves it forward and reads again, except for a
snapshot or an iterator.

A refresh reads on where the view ends (``store_tail.py``), and everything again only where that
does not do.
"""

from __future__ import annotations

import errno

from lsmkv.engine.db.opening.damage_policy import TABLE_MISSING, ReadAgain
from lsmkv.engine.db.opening.dropped import RecoveryReport, warn_of
from lsmkv.engine.db.opening.manifest_tail import ManifestTail
from lsmkv.engine.db.opening.recovery import Recovered, Recovery
from lsmkv.engine.db.opening.store_tail import Bound, FollowedLog, StoreTail
from lsmkv.engine.db.tree.checkpoint_source import CheckpointSource
from lsmkv.engine.db.tree.info_log import InfoLog
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store import Store, View
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import CorruptionError, DirectoryReplacedError, Error, IOError
from lsmkv.engine.format.filenames import (
    CURRENT,
    FileType,
    log_name,
    parse_filename,
    read_current,
    table_name,
)
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.format.log import LogDamage
from lsmkv.engine.format.log_tail import LogTail
from lsmkv.engine.options import Options
from lsmkv.engine.util.threads import new_reentrant_lock

_ATTEMPTS = 500  # in each, the writer may be faster: it may commit every few milliseconds


class ReadOnlyRecovery(Recovery):
    """Recovery that writes nothing: the logs' entries stay in memory, whatever their size.

    The newest log has its own memtable, and all older logs share another.
    """

    bound: Bound | None = None
    """The limit of the read, if there is one."""
    _read_only = True

    def read(self) -> None:
        """Read everything.  Raises :class:`ReadAgain`, ``FileNotFoundError``, and what opening
        raises."""
        self.older: MemTable | None = None
        """The memtable of all logs but the newest."""
        self._logs: list[int] = []
        self._ends: list[tuple[int, int]] = []  # where each log's last record ends and starts
        self._read_manifest(self._directory.names())
        # Listed only now, so that a log begun before this MANIFEST was read is not overlooked.
        names = self._directory.names()
        self._check_tables(names)
        if self.bound is not None:
            self._most = self.bound.last()
        self._replay_logs(names)
        if self.bound is not None:
            self.bound.confirm(self._versions.current, self._versions.last_sequence)
        self.recovered = Recovered(self._versions, self._memtable)
        self.tail = self._make_tail()
        """Continues to read where this recovery ended; None if damage makes that impossible."""

    @property
    def manifest_number(self) -> int:
        """The number of the MANIFEST that was read."""
        parsed = parse_filename(self._manifest_name)
        return 0 if parsed is None else parsed[0]

    def _make_tail(self) -> StoreTail | None:
        if self.report.dropped or self._manifest is None:
            return None
        if self._directory.immutable:
            return None  # there will never be anything to read
        if self._unjudged is not None and self._unjudged[0] != self._logs[-1]:
            return None  # the torn record is not where the next one will be written
        manifest = ManifestTail(self._directory, self._manifest_name, self._manifest)
        logs: list[FollowedLog] = []
        for number, (end, last) in zip(self._logs, self._ends, strict=True):
            file = self._directory.open(log_name(number))
            logs.append(FollowedLog(number, LogTail(file, end, last), None))
        if logs:
            logs[-1].memtable = self._memtable
        if len(logs) > 1:
            logs[-2].memtable = self.older
        return StoreTail(self._directory, self._comparator, manifest, logs, self._expected)

    def _check_tables(self, names: list[str]) -> None:
        """Raise for a table that is missing; none is opened."""
        present: set[int] = set()
        for name in names:
            parsed = parse_filename(name)
            if parsed is not None and parsed[1] is FileType.TABLE:
                present.add(parsed[0])
        for number in sorted(self._versions.current.numbers - present):
            self.policy.meet(TABLE_MISSING, "the table is missing", table_name(number))

    def _needed_logs(self, names: list[str]) -> list[int]:
        self._logs = super()._needed_logs(names)
        return self._logs

    def _replay(self, number: int) -> LogDamage | None:
        if number == self._logs[-1] and not self._memtable.empty:
            self.older = self._memtable
            self._memtable = MemTable(self._comparator.user_comparator, self._lock)
        gap = super()._replay(number)
        if gap is None:
            self._ends.append((self._log_end, self._log_last))
        return gap

    def _when_full(self) -> None:
        pass


class Follower:
    """Opens one directory for reading only, and keeps the store up to date.

    Any thread may call it; refreshes exclude each other.  Code that interrupts a refresh (for
    example a signal handler) may also refresh: it reads everything, and the refresh that it
    interrupted changes nothing more.
    """

    _bound: Bound | None = None

    def __init__(
        self, directory: Directory, options: Options, comparator: InternalKeyComparator
    ) -> None:
        self._directory = directory
        self._options = options
        self._comparator = comparator
        self._lock = new_reentrant_lock()
        self._info_log = InfoLog(directory, to_file=False)
        self._store_lock = StoreLock()
        self._tail: StoreTail | None = None  # None while it is at work, and where it cannot be
        self._at_work: StoreTail | None = None
        self._turn = 0
        self._was_destroyed = False
        self._manifest = 0  # the number of the MANIFEST read last
        self.report = RecoveryReport(directory.path)
        """Report of writes that the store does not show, because their log is damaged."""

    def open(self) -> Store:
        """A store in its present state.  Raises what opening raises.

        In an immutable directory every table is opened now, and stays open.
        """
        found = self._read()
        self._report(found.report)
        recovered = found.recovered
        options = self._options
        if self._directory.immutable:
            most = max(options.max_open_files, len(recovered.versions.current.numbers) + 20)
            options = options._replace(max_open_files=most)
        store = Store(
            self._directory,
            options,
            self._comparator,
            recovered.versions,
            recovered.memtable,
            self._info_log,
            self._store_lock,
        )
        store.counters.make_room(len(recovered.versions.current.levels))
        store.view = View(recovered.memtable, found.older, recovered.versions.current)
        self._tail = found.tail
        self._manifest = found.manifest_number
        if self._directory.immutable:
            for level in recovered.versions.current.levels:
                for file in level:
                    store.tables.find(file)
        return store

    def refresh(self, store: Store) -> None:
        """Let the store show what the directory holds now.

        Snapshots, iterators and reads that have begun keep their state.  Where nothing is new, it
        costs a few system calls, else a look at the names and what was written since; only where
        the writer has begun a new MANIFEST, or something looks damaged, that of opening.

        Raises :class:`DirectoryReplacedError`, and what opening raises; in that case the
        view stays as it is.
        """
        if self._directory.immutable:
            return
        with self._lock:
            if self._directory.replaced():
                raise DirectoryReplacedError(self._directory.path)
            tail = self._tail
            if tail is not None and not tail.unread():
                return
            if self._was_destroyed or (tail is not None and tail.was_destroyed()):
                self._was_destroyed = True
                raise DirectoryReplacedError(self._directory.path, destroyed=True)
            self._move(store)

    def _move(self, store: Store) -> None:
        """Read what is new, from where the view ends, or everything.  Caller holds the lock."""
        tail = self._tail
        if self._at_work is not None:
            self._at_work.superseded = True
        self._turn += 1
        turn = self._turn
        self._tail = None
        self._at_work = tail
        try:
            if tail is not None and self._advance(tail, store):
                self._tail = tail
            elif turn == self._turn:
                self._read_again(store, turn)
        finally:
            if turn == self._turn:
                self._at_work = None

    def _advance(self, tail: StoreTail, store: Store) -> bool:
        """Read on where the view ends; returns False if everything has to be read."""
        return tail.advance(store)

    def hold(self, store: Store) -> CheckpointSource:
        """The files of a checkpoint of what the store shows.

        Raises :class:`Error` if that is less than the files hold, since a log is damaged.
        """
        with self._lock:
            if self._tail is None:
                self.refresh(store)
            view = store.open_view()
            tail = self._tail
            if tail is None:
                reason = "its log is damaged: repair the store, or open it for writing, first"
                raise Error(f"{self._directory.path}: no checkpoint, {reason}")
            logs = [(log.number, log.tail.file, int(log.tail.end)) for log in tail.logs]
            return CheckpointSource(view, store.versions.last_sequence, logs)

    def close(self) -> None:
        """Close the MANIFEST and the logs, once no refresh is under way in another thread."""
        with self._lock:
            self._tail = None

    def _report(self, report: RecoveryReport) -> None:
        """Keep what a reading has left out, with a warning if it is new."""
        if report.dropped and report != self.report:
            warn_of(report)
        self.report = report

    def _read_again(self, store: Store, turn: int) -> None:
        # A number may be used twice if the store was destroyed and created again.
        known = {file for level in store.versions.current.levels for file in level}
        try:
            found = self._read()
        except FileNotFoundError:
            raise DirectoryReplacedError(self._directory.path, destroyed=True) from None
        if found.manifest_number < self._manifest:  # numbers ascend as long as a store lives
            raise DirectoryReplacedError(self._directory.path, destroyed=True)
        self._report(found.report)
        recovered = found.recovered
        version = recovered.versions.current
        changed = {file.number for level in version.levels for file in level if file not in known}
        store.counters.make_room(len(version.levels))
        with store.lock.nested, store.lock.guard:
            store.open_view()
            if turn != self._turn:
                return
            store.forget_ranges()
            recovered.versions.inherit(store.versions)
            store.versions = recovered.versions
            store.view = View(recovered.memtable, found.older, version)
        store.tables.keep_only(store.versions.live_numbers() - changed)
        self._tail = found.tail
        self._manifest = found.manifest_number

    def _read(self) -> ReadOnlyRecovery:
        """Read everything, until no file that is needed was removed during the read."""
        directory = self._directory
        seen_before = False
        failure = ""
        for attempt in range(_ATTEMPTS):
            before = _state_of(directory)
            recovery = ReadOnlyRecovery(
                directory, self._options, self._comparator, self._info_log, self._store_lock
            )
            recovery.policy.seen_before = seen_before
            recovery.bound = self._bound
            try:
                recovery.read()
                return recovery
            except ReadAgain:
                seen_before = _state_of(directory) == before
            except (CorruptionError, FileNotFoundError) as error:
                # A writer that goes over from one log to the next while they are read makes a gap
                # that is not there, and need change no name: damage is what is seen twice.
                is_same = str(error) == failure and _state_of(directory) == before
                if attempt == _ATTEMPTS - 1 or is_same:
                    raise
                failure = str(error)
        raise IOError(
            errno.EAGAIN,
            f"the database changed {_ATTEMPTS} times while it was read",
            directory.path,
        )


def _state_of(directory: Directory) -> tuple[str, int, list[str]]:
    """A value that changes whenever a writer commits."""
    try:
        manifest = read_current(directory)
        return manifest, directory.size(manifest), sorted(directory.names())
    except FileNotFoundError:
        return CURRENT, 0, []
