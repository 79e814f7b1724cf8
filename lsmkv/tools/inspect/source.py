"""The store that is inspected: open for reading only, and reopened when a writer has moved on.

It takes no lock and writes nothing.  A store that is too damaged to be opened is surveyed instead,
as ``lsmkv verify`` does it, in a thread: what can be shown is shown, and where it is damaged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import lsmkv
from lsmkv.db.opening.directory import open_remains
from lsmkv.env.base import Directory, Env, RandomAccessFile
from lsmkv.env.local import LocalEnv
from lsmkv.errors import CorruptionError, Error
from lsmkv.format.filenames import (
    CURRENT,
    FileType,
    old_table_name,
    parse_filename,
    read_current,
    table_name,
)
from lsmkv.format.key_order import KeyOrder
from lsmkv.options import own_comparator
from lsmkv.repair.report import Survey
from lsmkv.repair.survey import survey_db
from lsmkv.tools.inspect.plain import NotThereError
from lsmkv.util.comparator import BYTEWISE


class _Stamp(NamedTuple):
    """A value that changes whenever a writer commits; ``logs`` changes with every write."""

    manifest: str
    size: int
    logs: tuple[tuple[str, int], ...]


class _Ended(Exception):
    """The source was closed while a survey ran."""


class Check(NamedTuple):
    """How far the survey of all files is."""

    running: bool
    done: int
    total: int
    """Bytes."""
    survey: Survey | None
    error: str
    """Why there is no survey; empty if there is one, or none was asked for."""


class Source:
    """One store, for any number of threads.  ``NotFoundError`` if there is none in ``path``."""

    def __init__(self, path: str, env: Env | None = None) -> None:
        """``env``: where ``path`` is, if that is not the local file system."""
        self._place = path
        self._env = LocalEnv() if env is None else env
        self.directory: Directory = open_remains(self._env, path)
        self.path = path if env is None else self.directory.path
        """For people."""
        self._lock = threading.Lock()
        self._db: lsmkv.DB | None = None
        self._stamp: _Stamp | None = None
        self._failure: Error | None = None
        self._check = Check(False, 0, 0, None, "")
        self._checker: threading.Thread | None = None
        self._closing = False

    def close(self) -> None:
        """Close the store and its directory; a running survey ends at its next file."""
        self._closing = True
        checker = self._checker
        if checker is not None:
            checker.join()
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None
            self.directory.close()

    def db(self, *, newest: bool = False) -> lsmkv.DB:
        """The store, as of its last flush or compaction; with ``newest`` as of its last write.

        Raises what opening it raises.  Costs two small reads, and an opening when it has moved.
        """
        with self._lock:
            stamp = self._state()
            if not _same(stamp, self._stamp, newest):
                self._reopen()
                self._stamp = stamp
            if self._failure is not None:
                raise self._failure
            assert self._db is not None
            return self._db

    def _reopen(self) -> None:
        self._failure = None
        try:
            if self._db is None:
                self._db = lsmkv.DB(self._place, read_only=True, env=self._env)
            else:
                self._db.refresh()
        except Error as error:
            self._failure = error

    def _state(self) -> _Stamp:
        names = self.directory.names()
        logs: list[tuple[str, int]] = []
        for name in names:
            parsed = parse_filename(name)
            if parsed is not None and parsed[1] is FileType.LOG:
                logs.append((name, self._size(name)))
        try:
            manifest = read_current(self.directory)
        except (OSError, CorruptionError):
            manifest = CURRENT
        return _Stamp(manifest, self._size(manifest), tuple(sorted(logs)))

    def _size(self, name: str) -> int:
        try:
            return self.directory.size(name)
        except OSError:  # a writer has removed it meanwhile
            return -1

    # Files

    def open_file(self, name: str, kind: FileType) -> RandomAccessFile:
        """A file of the store; ``NotThereError`` for a name of another kind, or if it is gone."""
        parsed = parse_filename(name)
        if parsed is None or parsed[1] is not kind:
            raise NotThereError(f"{name!r} is not the name of a {kind.value}")
        try:
            return self.directory.open(name)
        except FileNotFoundError:
            raise NotThereError(f"{name} does not exist, or does so no more") from None

    def table_namer(self) -> Callable[[int], str]:
        """A function that names the file of a table; those of old stores end in ``.sst``.

        Costs one listing of the directory.
        """
        names = frozenset(self.directory.names())

        def name_of(number: int) -> str:
            name, old = table_name(number), old_table_name(number)
            return old if name not in names and old in names else name

        return name_of

    def manifest_name(self) -> str:
        """The MANIFEST in force; the newest one if CURRENT does not name any."""
        try:
            name = read_current(self.directory)
            if self.directory.exists(name):
                return name
        except (OSError, CorruptionError):
            pass
        found = [
            (parsed[0], name)
            for name in self.directory.names()
            if (parsed := parse_filename(name)) is not None and parsed[1] is FileType.MANIFEST
        ]
        if not found:
            raise NotThereError("the store has no MANIFEST")
        return max(found)[1]

    def order(self, comparator: str | None = None) -> KeyOrder:
        """The order of the store's keys; by the comparator's name if it cannot be opened."""
        if self._db is not None:
            return KeyOrder(self._db.options.comparator)
        return KeyOrder(own_comparator(comparator or BYTEWISE.name) or BYTEWISE)

    # The survey

    @property
    def check(self) -> Check:
        """How far the survey is, or its result."""
        return self._check

    def start_check(self) -> None:
        """Begin a survey of every file in a thread, unless one is running.  O(size of the store).

        Files that a writer removes meanwhile look like damage.
        """
        with self._lock:
            if self._check.running:
                return
            self._check = Check(True, 0, 0, None, "")
            self._checker = threading.Thread(target=self._survey, name="lsmkv-check", daemon=True)
            self._checker.start()

    def finish_check(self) -> Check:
        """Wait for the survey that runs, and return it."""
        if self._checker is not None:
            self._checker.join()
        return self._check

    def _survey(self) -> None:
        def report(done: int, total: int, _: str) -> None:
            if self._closing:
                raise _Ended
            self._check = Check(True, done, total, None, "")

        try:
            survey = survey_db(self._place, progress=report, env=self._env)
        except _Ended:
            self._check = Check(False, 0, 0, None, "ended")
        except Error as error:
            self._check = Check(False, 0, 0, None, str(error))
        else:
            self._check = Check(False, 1, 1, survey, "")


def _same(now: _Stamp, before: _Stamp | None, newest: bool) -> bool:
    return now == before if newest else before is not None and now[:2] == before[:2]
