"""Opens a store for reading only: nothing in its directory is written, and no lock is taken.

``open.py`` calls it.  A writer may have the store open and may remove files meanwhile.  The result
is consistent all the same: the MANIFEST is read first, then the logs that it names.  If a file is
missing by then, the writer has committed a newer version, and everything is read again.
"""

from __future__ import annotations

import errno

from librt.threading import Lock

from lsmkv.counters import Counters
from lsmkv.db.dropped import RecoveryReport
from lsmkv.db.info_log import INFO, InfoLog
from lsmkv.db.recovery import Recovered, Recovery
from lsmkv.db.store import Store
from lsmkv.env.base import Directory
from lsmkv.errors import CorruptionError, IOError
from lsmkv.format.filenames import CURRENT, read_current
from lsmkv.format.keys import InternalKeyComparator
from lsmkv.format.log import LogDamage
from lsmkv.options import Options

_ATTEMPTS = 500  # in each, the writer may be faster: it may commit every few milliseconds
_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


class _FileMissing(Exception):
    """A file that the MANIFEST names does not exist."""


class ReadOnlyRecovery(Recovery):
    """Recovery that writes nothing: the logs' entries stay in one memtable of any size."""

    log_may_be_missing = False
    _keeps_lost_logs = False

    def read(self) -> Recovered:
        """The store's state.  Raises :class:`_FileMissing` if the only log needed is missing."""
        self._read_manifest(self._directory.names())
        # Listed only now, so that a log begun before this MANIFEST was read is not overlooked.
        self._replay_logs(self._directory.names())
        return Recovered(self._versions, self._memtable)

    def _when_full(self) -> None:
        pass

    def _report_torn(self, message: str) -> None:
        # It may be a write that a live writer has not finished: no warning.
        self._info_log.write(message, INFO)

    def _report_missing_log(self, name: str) -> None:
        if not self.log_may_be_missing:
            raise _FileMissing(name)
        super()._report_missing_log(name)

    def _drop(self, damage: LogDamage, logs: list[str]) -> None:
        if not self.log_may_be_missing:
            raise _FileMissing(logs[0])
        super()._drop(damage, logs)


def open_read_only(
    directory: Directory,
    options: Options,
    comparator: InternalKeyComparator,
    previous: Store | None = None,
) -> tuple[Store, RecoveryReport]:
    """A read-only store in its present state, with every table open, and what it leaves out.

    ``previous`` is an earlier state of the same directory: its counters continue, and its open
    tables are used again.  Raises what opening raises, and :class:`~lsmkv.errors.IOError` with the
    number of descriptors that are needed if there are too few.
    """
    log_may_be_missing = False
    failure = ""
    for attempt in range(_ATTEMPTS):
        before = _state_of(directory)
        try:
            return _open_once(directory, options, comparator, previous, log_may_be_missing)
        except _FileMissing:
            # If nothing has changed, the log was missing before: a valid state, with a warning.
            log_may_be_missing = _state_of(directory) == before
        except (CorruptionError, FileNotFoundError) as error:
            # A writer that goes over from one log to the next while they are read makes a gap that
            # is not there, and need change no name: damage is what is seen twice.
            is_same = str(error) == failure and _state_of(directory) == before
            if attempt == _ATTEMPTS - 1 or is_same:
                raise
            failure = str(error)
    raise IOError(
        errno.EAGAIN, f"the database changed {_ATTEMPTS} times while it was read", directory.path
    )


def _open_once(
    directory: Directory,
    options: Options,
    comparator: InternalKeyComparator,
    previous: Store | None,
    log_may_be_missing: bool,
) -> tuple[Store, RecoveryReport]:
    info_log = InfoLog(directory, to_file=False)
    lock = Lock()
    recovery = ReadOnlyRecovery(directory, options, comparator, info_log, lock)
    recovery.log_may_be_missing = log_may_be_missing
    recovered = recovery.read()
    files = [file for level in recovered.versions.current.levels for file in level]
    # No table is evicted: its file may be removed before it is needed again.
    roomy = options._replace(max_open_files=max(options.max_open_files, len(files) + 20))
    counters: Counters | None = None if previous is None else previous.counters
    store = Store(directory, roomy, comparator, recovered, info_log, lock, counters)
    try:
        if previous is not None:
            # A number may be used twice if the store was destroyed and created again.
            known = {file for level in previous.versions.current.levels for file in level}
            store.tables.share(previous.tables, [file.number for file in files if file in known])
        for file in files:
            store.tables.find(file)
    except OSError as error:
        store.tables.clear()
        if error.errno in _DESCRIPTORS:
            raise IOError(
                error.errno,
                f"a view of this database needs {len(files)} descriptors, one for each table;"
                " raise the limit (ulimit -n) or compact the database",
                directory.path,
            ) from error
        raise
    except BaseException:
        store.tables.clear()
        raise
    return store, recovery.report


def _state_of(directory: Directory) -> tuple[str, int, list[str]]:
    """A value that changes whenever a writer commits."""
    try:
        manifest = read_current(directory)
        return manifest, directory.size(manifest), sorted(directory.names())
    except FileNotFoundError:
        return CURRENT, 0, []
