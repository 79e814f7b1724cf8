"""A member's view, which follows its owner: :class:`MemberFollower`, :class:`SharedReader`.

A member reads the owner's files itself, with the code of a store that is open for reading only, but
never beyond what the page says.  Before each read the page's sequence is compared with the view's.
If the view is behind, it reads the new records of the log, and takes over new versions, until it is
not.  So a read that begins after any process's write was acknowledged sees that write.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.opening.read_only import Follower, ReadOnlyRecovery
from lsmkv.engine.db.opening.store_tail import Bound, NotYet, StoreTail
from lsmkv.engine.db.read.reader import Reader
from lsmkv.engine.db.tree.log_holds import LogHolds
from lsmkv.engine.db.tree.pinned import Pin, PinnedSequences
from lsmkv.engine.db.tree.store import ReadView, Store, View
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import Error, StaleViewError
from lsmkv.engine.format.keys import MAX_SEQUENCE, InternalKeyComparator
from lsmkv.engine.options import Options
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import pause
from lsmkv.shared.counting import GETS, Counting
from lsmkv.shared.system.shared_file import SharedFile
from lsmkv.shared.system.shared_page import SEQUENCE, SUPERSEDED, VERSIONS, SharedPage

if TYPE_CHECKING:
    from mypy_extensions import i64

_ATTEMPTS = 10_000
_PAUSE = 0.0005
"""Seconds between two attempts to read what the owner is about to publish."""


@mypyc_attr(native_class=False)
class EpochOver(StaleViewError):
    """The owner of the page has gone, and another one has taken over."""

    def __str__(self) -> str:
        """Name the store."""
        return f"{self.path}: another process owns the store now"


class _LeasedLogs(LogHolds):
    """The logs that this process reads, the oldest of which it leases."""

    def __init__(self, file: SharedFile) -> None:
        super().__init__()
        self._file = file
        self._leased = -1

    def moved(self) -> None:
        oldest = self.oldest()
        number = -1 if oldest is None else oldest
        before = self._leased
        if number == before:
            return
        try:
            if number >= 0:
                self._file.lease_log(number)
            self._leased = number
            if before >= 0:
                self._file.release_log(before)
        except ValueError:
            pass  # the file is closed, and with it the leases


class Leases:
    """The versions that this process leases, each as long as this process may read it."""

    def __init__(self, file: SharedFile) -> None:
        """``file`` has its own descriptor."""
        self.file = file
        self.logs: LogHolds = _LeasedLogs(file)
        """The logs that it leases."""
        self._readers: dict[int, list[weakref.ref[set[int]]]] = {}
        self._newest = -1

    def close(self) -> None:
        """End them all."""
        self.logs.close()
        self.file.close()

    def __del__(self) -> None:
        if not self.file.closed:  # an interrupt has ended the finalizer of the handle
            self.file.close()

    def take(self, version: int) -> None:
        """Lease a version; :meth:`keep` or :meth:`drop` follows."""
        self.file.lease(version)

    def keep(self, version: int, numbers: set[int]) -> None:
        """Keep the lease as long as this set of numbers lives, which belongs to one version."""
        readers = self._readers.setdefault(version, [])
        if numbers:
            readers.append(weakref.ref(numbers))
        self._newest = version

    def drop(self, version: int) -> None:
        """End a lease that was just taken, unless it is needed by others."""
        if version not in self._readers:
            self.file.release(version)

    def forget_newest(self) -> None:
        """Keep only versions that have readers: this process no longer follows an owner."""
        self._newest = -1
        self.release_unread()

    def release_unread(self) -> None:
        """End the leases of versions without readers in this process."""
        for version, readers in list(self._readers.items()):
            readers[:] = [one for one in readers if one() is not None]
            if not readers and version != self._newest:
                del self._readers[version]
                self.file.release(version)
        self.logs.moved()


class _PageBound(Bound):
    """The upper limit of a member's view: as far as the page says, in the version that is
    leased."""

    def __init__(self, page: SharedPage, leases: Leases, path: str) -> None:
        self._page = page
        self._leases = leases
        self._path = path
        self._leased = -1
        self._shown = -1

    @property
    def is_newest(self) -> bool:
        """True if the version that is shown is the newest one."""
        return bool(self._page.words[VERSIONS] == self._shown)

    def lease(self) -> None:
        """Lease the newest version, before anything is read."""
        words = self._page.words
        while True:
            version = words[VERSIONS]
            self._leases.take(version)
            if words[VERSIONS] == version:
                break
            self._leases.drop(version)
        self._leased = version

    def give_up(self) -> None:
        """End the lease that was just taken, unless its version is shown."""
        if self._leased >= 0:
            self._leases.drop(self._leased)
            self._leased = -1
            self._leases.release_unread()

    def last(self) -> int:
        sequence: int = self._page.words[SEQUENCE]
        if sequence == SUPERSEDED:
            raise EpochOver(self._path)
        return sequence

    def confirm(self, version: Version, last: int) -> None:
        words = self._page.words
        if last > self.last() or words[VERSIONS] != self._leased:
            raise NotYet
        self._leases.keep(self._leased, version.lease)
        self._shown = self._leased


class MemberFollower(Follower):
    """Opens a store whose owner is another process, and keeps up with it."""

    def __init__(
        self,
        directory: Directory,
        options: Options,
        comparator: InternalKeyComparator,
        page: SharedPage,
        leases: Leases,
    ) -> None:
        super().__init__(directory, options, comparator)
        self._page = page
        self._leases = leases
        self._page_bound = _PageBound(page, leases, directory.path)
        self._bound = self._page_bound
        self._followed: Store | None = None

    def open(self) -> Store:
        self._followed = super().open()
        return self._followed

    def catch_up(self, store: Store) -> ReadView | None:
        """Let the store show every write that has happened before this call.

        A nested call, in the middle of what this thread does under the store's lock, gets a view of
        its own instead, for which the files are read from the beginning.

        Raises :class:`EpochOver` if another owner has taken over.
        """
        words = self._page.words
        target: int = words[SEQUENCE]
        if target == SUPERSEDED or store is not self._followed:
            raise EpochOver(self._directory.path)
        try:
            if store.lock.must_not_wait:
                return self._view_apart()
            self._follow_to(store, target)
        except OSError as error:
            store.raise_failure(error)
        except ValueError:
            store.open_view()  # its leases are closed
            raise
        return None

    def _view_apart(self) -> ReadView:
        apart = MemberFollower(
            self._directory, self._options, self._comparator, self._page, self._leases
        )
        found = apart._read()
        versions = found.recovered.versions
        view = View(found.recovered.memtable, found.older, versions.current)
        return ReadView(view, Pin(PinnedSequences(), versions.last_sequence), MAX_SEQUENCE)

    def _follow_to(self, store: Store, target: int) -> None:
        with self._lock:
            store.open_view()
            for attempt in range(_ATTEMPTS):
                if store.versions.last_sequence >= target:
                    return
                if attempt > 0:
                    pause(_PAUSE)
                self._move(store)
        raise Error(
            f"{self._directory.path}: write {target} has happened, but the log does not hold it"
        )

    def refresh(self, store: Store) -> None:
        """:meth:`catch_up`, and also take the newest version."""
        self.catch_up(store)
        if store.lock.must_not_wait:
            return
        with self._lock:
            store.open_view()
            if not self._page_bound.is_newest:
                self._move(store)

    def _move(self, store: Store) -> None:
        try:
            super()._move(store)
        except NotYet:
            pass  # to be tried again
        finally:
            self._page_bound.give_up()

    def _advance(self, tail: StoreTail, store: Store) -> bool:
        last = self._page_bound.last()
        if self._page_bound.is_newest and tail.follow(store, last):
            return True
        with deferred:
            self._page_bound.lease()
            try:
                return tail.advance(store, self._page_bound)
            except NotYet:
                # What was read is in the tail, which can go on.
                return True
            finally:
                self._page_bound.give_up()

    def _read(self) -> ReadOnlyRecovery:
        for _ in range(_ATTEMPTS):
            with deferred:
                self._page_bound.lease()
                try:
                    return super()._read()
                except NotYet:
                    deferred.deliver()
                finally:
                    self._page_bound.give_up()
            pause(_PAUSE)
        raise Error(f"{self._directory.path}: the store changes faster than it can be read")


class SharedReader(Reader):
    """A reader that first makes its store show every write that has happened."""

    def __init__(
        self,
        store: Store,
        background: Background | None,
        words: Any,
        catch_up: Callable[[Store], ReadView | None],
    ) -> None:
        """``catch_up`` is called when the page's sequence is not the store's.  It may return a view
        for this read alone."""
        super().__init__(store, background)
        self._words = words
        self._catch_up = catch_up

    def get(
        self, key: bytes, sequence: int, fill_cache: bool, view: View | None = None
    ) -> bytes | None:
        if view is None:
            happened: i64 = self._words[SEQUENCE]
            if happened != self.store.versions.last_sequence:
                own = self._catch_up(self.store)
                if own is not None:
                    return super().get(key, sequence, fill_cache, own.view)
        return super().get(key, sequence, fill_cache, view)

    def may_contain(self, key: bytes, view: View | None = None) -> bool:
        own = self._see_all()
        return super().may_contain(key, view if own is None else own.view)

    def snapshot_view(self) -> tuple[Reader, ReadView]:
        return self, self.read_view()  # whose lease keeps the tables

    def read_view(self, sequence: int = MAX_SEQUENCE, fixed: View | None = None) -> ReadView:
        if sequence == MAX_SEQUENCE:
            own = self._see_all()
            if own is not None:
                return own
        return super().read_view(sequence, fixed)

    def _see_all(self) -> ReadView | None:
        """Let the store show every write that has happened, or return a view that does."""
        if self._words[SEQUENCE] != self.store.versions.last_sequence:
            return self._catch_up(self.store)
        return None


class CountedReader(SharedReader):
    """A member's reader, whose owner publishes what it counts."""

    def __init__(
        self,
        store: Store,
        words: Any,
        catch_up: Callable[[Store], ReadView | None],
        counting: Counting,
    ) -> None:
        super().__init__(store, None, words, catch_up)
        self._counting = counting
        self._left: i64 = GETS

    def get(
        self, key: bytes, sequence: int, fill_cache: bool, view: View | None = None
    ) -> bytes | None:
        if self._left <= 0:
            self._left = GETS
            self._counting.copy()
        self._left -= 1
        if view is None and self._words[SEQUENCE] != self.store.versions.last_sequence:
            self._counting.copy_at_times()
            own = self._catch_up(self.store)
            if own is not None:
                view = own.view
        return Reader.get(self, key, sequence, fill_cache, view)

    def _see_all(self) -> ReadView | None:
        self._counting.copy_at_times()
        return super()._see_all()
