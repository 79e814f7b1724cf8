"""The inspected store: open for reading only, and kept up to date with its writer.

It takes no lock and writes nothing.  A store that is too damaged to open is surveyed in a thread
instead, as by ``lsmkv verify``.  The page shows what is readable, and where the damage is.

A source stands for one store.  If the directory is deleted, or another store takes its place, every
question raises :class:`~lsmkv.errors.DirectoryReplacedError`: the other store is never shown under
the first one's name.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import lsmkv
from lsmkv import Directory
from lsmkv.engine.db.opening.directory import open_remains
from lsmkv.engine.errors import DirectoryReplacedError, Error
from lsmkv.engine.util.progress import Progress
from lsmkv.files import (
    Current,
    Edit,
    FileKind,
    Manifest,
    Readable,
    Table,
    key_order,
    make_name,
    parse_name,
)
from lsmkv.files.repair import Survey, survey_db
from lsmkv.tools.inspect.background import Work
from lsmkv.tools.inspect.plain import NotThereError, Plain, shown_key

_BYTEWISE = "leveldb.BytewiseComparator"
_CURRENT = make_name("current")
SortKey = Callable[[bytes], Any]
"""Turns user keys into sort keys."""


class _Stamp(NamedTuple):
    """The files of a damaged store: it is read again once they have changed."""

    manifest: str
    size: int
    logs: tuple[tuple[str, int], ...]


class _Ended(Exception):
    """Ends a survey that was cancelled, or whose source is being closed."""


class Check(NamedTuple):
    """The progress of the survey of all files."""

    running: bool
    done: int
    total: int
    """Bytes."""
    survey: Survey | None
    error: str
    """The reason for which there is no survey; empty if there is one, or none was requested."""
    change: int = 0
    """:attr:`Source.change` when it began."""
    time: float = 0.0
    """The time at which it ended: seconds since 1970."""


class Standing(NamedTuple):
    """The relation of a source to the current content of its path."""

    change: int
    """Increases whenever the store is seen to have changed."""
    replaced: str
    """A description of the store's removal or replacement; empty while it exists."""
    another: bool
    """True if another store can be opened in its place."""


class Source:
    """One store, for any number of threads.  ``NotFoundError`` if there is none in ``path``."""

    def __init__(self, path: str, env: lsmkv.Env | None = None) -> None:
        """``env``: the file system of ``path``, if not the local one."""
        self._place = path
        self._env = lsmkv.LocalEnv() if env is None else env
        self.directory: Directory = open_remains(self._env, path)
        self.path = path if env is None else self.directory.path
        """For messages."""
        self._lock = threading.Lock()
        self._db: lsmkv.DB | None = None
        self._stamp: _Stamp | None = None
        self._failure: Error | None = None
        self._seen: object = None
        self.change = 0
        """Increases whenever the store is seen to have changed: by a write, a flush or a
        compaction."""
        self._check = Check(False, 0, 0, None, "")
        self._checker: Work | None = None
        self._ending = False  # the survey that runs
        self._order_key: str | None = None  # in the MANIFEST, if the store cannot be opened

    def close(self) -> None:
        """Close the store and its directory; a running survey ends at its next file."""
        self.end_check()
        self.finish_check()
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None
            self.directory.close()

    def db(self) -> lsmkv.DB:
        """The store, as of its last write.

        Raises what opening it raises, and :class:`~lsmkv.errors.DirectoryReplacedError`.  Costs a
        few system calls if nothing was written since the last call; otherwise it reads the changes.
        """
        with self._lock:
            self._follow()
            if self._failure is not None:
                raise self._failure
            assert self._db is not None
            return self._db

    def standing(self) -> Standing:
        """Return the state of the store, and a number that increases when it changes.

        Costs what :meth:`db` does.  Does not raise errors of the store.
        """
        with self._lock:
            try:
                self._follow()
            except DirectoryReplacedError as error:
                words, another = self._what_happened(error)
                return Standing(self.change, words, another)
            return Standing(self.change, "", False)

    def require(self) -> None:
        """Raise :class:`~lsmkv.errors.DirectoryReplacedError` if the store no longer exists.

        Costs what :meth:`db` does.
        """
        with self._lock:
            self._follow()

    def level_of(self, name: str) -> int | None:
        """The level of a table; None if the store no longer has one of this name, or cannot be
        opened.  O(tables)."""
        with contextlib.suppress(Error):
            for table in self.db().tables():
                if table.name == name:
                    return table.level
        return None

    def _follow(self) -> None:
        """Bring the view up to date.  Raises :class:`DirectoryReplacedError` alone."""
        if self.directory.replaced():
            raise DirectoryReplacedError(self.path)
        if self._db is None or self._failure is not None or self._db.recovery.dropped:
            # With damage nothing can be continued: the changed files are read again.
            stamp = self._state()
            if stamp == self._stamp:
                return
            self._stamp = stamp
        self._failure = None
        try:
            if self._db is None:
                self._db = lsmkv.DB(self._place, read_only=True, env=self._env)
            else:
                self._db.refresh()
        except DirectoryReplacedError:
            raise
        except Error as error:
            self._failure = error
            self._order_key = self._named_order()
            seen: object = self._stamp
        else:
            versions = self._db._open_store().versions
            levels = versions.current.levels
            seen = [[file.number for file in files] for files in levels], versions.last_sequence
        if seen != self._seen:
            self._seen = seen
            self.change += 1

    def _what_happened(self, error: DirectoryReplacedError) -> tuple[str, bool]:
        """Describe the store's removal; also return True if another one is in its place."""
        if not self.directory.replaced():  # the directory is the same
            another = self.directory.exists(_CURRENT)
            made = ", and another was made in its directory" if another else ""
            return f"The store in {self.path} was destroyed{made}.", another
        try:
            there = self._env.open_directory(self._place)
        except (OSError, Error):
            return f"The directory {self.path} was deleted, or renamed.", False
        try:
            another = there.exists(_CURRENT)
        finally:
            there.close()
        what = "another store is there now" if another else "there is no store now"
        return (
            f"The directory {self.path} was deleted and made again, or replaced: {what}.",
            another,
        )

    def _state(self) -> _Stamp:
        logs = [(name, self._size(name)) for _, name in self.named("log")]
        manifest = self._current() or _CURRENT
        return _Stamp(manifest, self._size(manifest), tuple(sorted(logs)))

    def _size(self, name: str) -> int:
        try:
            return self.directory.size(name)
        except OSError:  # a writer has just removed it
            return -1

    # Files

    def named(self, *kinds: FileKind) -> list[tuple[int, str]]:
        """The numbers and the names of the files of these kinds, in the order of the numbers."""
        return sorted(
            (parsed.number, name)
            for name in self.directory.names()
            if (parsed := parse_name(name)) is not None and parsed.kind in kinds
        )

    def open_table(self, name: str) -> Table:
        """A table of the store, opened for inspection.

        Raises ``NotThereError`` for another kind of name, or if the table no longer exists.
        """
        return Table(self._open_file(name, "table"))

    def open_manifest(self, name: str) -> Manifest:
        """A MANIFEST of the store, opened for inspection; ``NotThereError`` as for tables."""
        return Manifest(self._open_file(name, "manifest"))

    def _open_file(self, name: str, kind: FileKind) -> Readable:
        parsed = parse_name(name)
        if parsed is None or parsed.kind != kind:
            raise NotThereError(f"{name!r} is not the name of a {kind}")
        try:
            return self.directory.open(name)
        except FileNotFoundError:
            raise NotThereError(f"{name} does not exist, or no longer exists") from None

    def table_namer(self) -> Callable[[int], str]:
        """A function that names the file of a table; those of old stores end in ``.sst``.

        Costs one listing of the directory.
        """
        names = frozenset(self.directory.names())

        def name_of(number: int) -> str:
            name, old = make_name("table", number), make_name("table", number, old=True)
            return old if name not in names and old in names else name

        return name_of

    def manifest_name(self) -> str:
        """The current MANIFEST; the newest one if CURRENT names none."""
        named = self._current()
        if named is not None and self.directory.exists(named):
            return named
        found = self.named("manifest")
        if not found:
            raise NotThereError("the store has no MANIFEST")
        return found[-1][1]

    def _current(self) -> str | None:
        """The MANIFEST that CURRENT names; None if it cannot be read."""
        try:
            with Current(self.directory.open(_CURRENT)) as current:
                return current.manifest
        except OSError:
            return None

    @property
    def comparator(self) -> str | None:
        """The name of the key order, if known."""
        if self._db is not None:
            return self._db.options.comparator.name
        survey = self._check.survey
        manifest = None if survey is None else survey.manifest
        return self._order_key if manifest is None else manifest.comparator

    def _named_order(self) -> str | None:
        """The name of the key order in the MANIFEST; None if none can be read there."""
        with (
            contextlib.suppress(NotThereError, Error, OSError),
            self.open_manifest(self.manifest_name()) as manifest,
        ):
            for part in manifest.walk_edits():
                if isinstance(part, Edit) and part.comparator is not None:
                    return part.comparator
        return None

    def order(self) -> SortKey:
        """The order of the store's keys; found by the comparator's name if the store cannot be
        opened."""
        if self._db is not None:
            return key_order(self._db.options.comparator)
        try:
            return key_order(self.comparator or _BYTEWISE)
        except ValueError:
            return key_order(_BYTEWISE)

    def shown_key(self, key: bytes) -> Plain:
        """A key of the store, for the page: see :func:`~lsmkv.tools.inspect.plain.shown_key`."""
        return shown_key(key, self.comparator)

    # The survey

    @property
    def check(self) -> Check:
        """The progress of the survey, or its result."""
        return self._check

    def start_check(self, progress: Progress | None = None) -> None:
        """Begin a survey of every file in a thread, unless one is running.  O(size of the store).

        Files that a writer removes during the survey look like damage.  ``progress`` is called in
        that thread.
        """
        with self._lock:
            if self._check.running:
                return
            self._ending = False
            self._check = Check(True, 0, 0, None, "", self.change)
            self._checker = Work(lambda: self._survey(progress), "lsmkv-check")

    def end_check(self) -> None:
        """End the running survey at its next file, without a result."""
        self._ending = True

    def finish_check(self) -> Check:
        """Wait for the survey that runs, and return it."""
        if self._checker is not None:
            self._checker.join()
        return self._check

    def _survey(self, progress: Progress | None) -> None:
        change = self._check.change

        def report(done: int, total: int, name: str) -> None:
            if self._ending:
                raise _Ended
            self._check = Check(True, done, total, None, "", change)
            if progress is not None:
                progress(done, total, name)

        survey: Survey | None = None
        try:
            survey = survey_db(self._place, progress=report, env=self._env)
            error = ""
            if self.directory.replaced():
                survey, error = None, "the directory was replaced during the check"
        except _Ended:
            error = "the check was ended"
        except Error as failure:
            error = str(failure)
        done = 0 if survey is None else 1
        self._check = Check(False, done, done, survey, error, change, time.time())
