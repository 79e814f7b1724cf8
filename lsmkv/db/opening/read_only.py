"""Opening a store for reading only: nothing in its directory is written, and no lock is taken.

It works beside a live writer, which moves files while they are read.  What is read is consistent
all the same: a MANIFEST is read first, then the logs that it asks for; if a file is gone by then,
the writer has committed something newer, and all is read anew.
"""

from __future__ import annotations

import errno
import logging

from librt.threading import Lock

from lsmkv.db.info_log import InfoLog
from lsmkv.db.recovery import Recovered, Recovery
from lsmkv.db.store import Store
from lsmkv.env.base import Directory
from lsmkv.errors import CorruptionError, IOError
from lsmkv.format.filenames import CURRENT, LOST, read_current
from lsmkv.format.keys import InternalKeyComparator
from lsmkv.format.log import LogDamage
from lsmkv.options import Options
from lsmkv.stats import Counters

_ATTEMPTS = 500  # each a race against a writer that may commit every few milliseconds
_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


class _Moved(Exception):
    """A file that the MANIFEST asks for is not there."""


class ReadOnlyRecovery(Recovery):
    """Recovery into memory: what the logs hold stays in a memtable, however large."""

    log_may_be_missing = False

    def read(self) -> Recovered:
        """The store's state.  :class:`_Moved` if the only log needed is missing."""
        self._read_manifest(self._directory.names())
        # Named only now: a log begun before this MANIFEST was read must not be overlooked.
        self._replay_logs(self._directory.names())
        return Recovered(self._versions, self._memtable)

    def _when_full(self) -> None:
        pass

    def _report_tail(self, message: str, torn: bool) -> None:
        # Beside a live writer it is a write that goes on just now: nothing to warn of.
        self._info_log.write(message, logging.INFO if torn else logging.WARNING)

    def _report_missing_log(self, name: str) -> None:
        if not self.log_may_be_missing:
            raise _Moved(name)
        super()._report_missing_log(name)

    def _set_logs_aside(self, gap: LogDamage, logs: list[str]) -> None:
        if not self.log_may_be_missing:
            raise _Moved(logs[0])
        self._info_log.warn(
            f"{self._directory.path}/{logs[0]}: {gap.reason} at {gap.offset}, and writes are"
            f" missing there. Only what was written before is shown; opened for writing,"
            f" {', '.join(logs)} will be set aside in {LOST}/"
        )


def open_read_only(
    directory: Directory,
    options: Options,
    comparator: InternalKeyComparator,
    previous: Store | None = None,
) -> Store:
    """A store to read from, as it is now, every table of it open.

    ``previous`` is an earlier view of the same directory: tables that both have are not opened
    anew, and its counters go on.  Raises what opening raises, and :class:`~lsmkv.errors.IOError`
    that says how many descriptors are needed if they do not suffice.
    """
    log_may_be_missing = False
    for attempt in range(_ATTEMPTS):
        before = _state_of(directory)
        try:
            return _open_once(directory, options, comparator, previous, log_may_be_missing)
        except _Moved:
            # With nothing moved, it was missing before: a legitimate state, with a warning.
            log_may_be_missing = _state_of(directory) == before
        except (CorruptionError, FileNotFoundError):
            if attempt == _ATTEMPTS - 1 or _state_of(directory) == before:
                raise
    raise IOError(
        errno.EAGAIN, f"the database changed {_ATTEMPTS} times while it was read", directory.path
    )


def _open_once(
    directory: Directory,
    options: Options,
    comparator: InternalKeyComparator,
    previous: Store | None,
    log_may_be_missing: bool,
) -> Store:
    info_log = InfoLog(directory, to_file=False)
    lock = Lock()
    recovery = ReadOnlyRecovery(directory, options, comparator, info_log, lock)
    recovery.log_may_be_missing = log_may_be_missing
    recovered = recovery.read()
    files = [file for level in recovered.versions.current.levels for file in level]
    # None is ever evicted: its file may be gone when it is wanted again.
    roomy = options._replace(max_open_files=max(options.max_open_files, len(files) + 20))
    counters: Counters | None = None if previous is None else previous.counters
    store = Store(directory, roomy, comparator, recovered, info_log, lock, counters)
    try:
        if previous is not None:
            # Numbers begin anew in a store that was destroyed and made again in the same place.
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
    return store


def _state_of(directory: Directory) -> tuple[str, int, list[str]]:
    """What changes whenever a writer commits."""
    try:
        manifest = read_current(directory)
        return manifest, directory.size(manifest), sorted(directory.names())
    except FileNotFoundError:
        return CURRENT, 0, []
