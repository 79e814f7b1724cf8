"""Moves the view of a read-only store forward, by what its writer has written since.

:class:`StoreTail` reads on where the view ends: new edits of the MANIFEST, new records of the logs.
It handles what a writer does in normal operation.  Anything else (another MANIFEST, bytes that are
not a record, a gap between two batches) is left to recovery, which reads everything from the
beginning: ``read_only.py``.

The order matters.  The MANIFEST is read before the logs are listed, so that each write which its
tables lack is in a log of the list.  Logs are read newest first, and applied oldest first: if the
newer one has any record, the older one is complete.
"""

from __future__ import annotations

from lsmkv.engine.db.opening.damage_policy import ReadAgain
from lsmkv.engine.db.opening.manifest_tail import ManifestTail
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store import Store, View
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.batch import Operation, decode_batch
from lsmkv.engine.format.filenames import FileType, log_name, parse_filename
from lsmkv.engine.format.keys import MAX_SEQUENCE, InternalKeyComparator
from lsmkv.engine.format.log_tail import MAX_BYTES, LogTail

_AT_ONCE = 128 * 1024
"""Bytes of batches that are read before they are applied.  With very many objects alive at a time,
the garbage collector would take twice the time of all else."""
_MEMTABLES = 2
"""A writer has at most this many memtables, each with its own log, and so does a view."""


class NotYet(Exception):
    """The state must not be shown: a part of it has not happened yet, or may be removed."""


class Bound:
    """The upper limit of a view.  Without bounds, as here: as far as the files reach."""

    def last(self) -> int:
        """The sequence of the last write that may be shown."""
        return MAX_SEQUENCE

    def confirm(self, version: Version, last: int) -> None:
        """Called when everything has been read.  Raises :class:`NotYet` unless the version may be
        shown, with writes up to ``last``."""


class FollowedLog:
    """A log that no table covers, or none did so far, and the memtable of its writes."""

    def __init__(self, number: int, tail: LogTail, memtable: MemTable | None) -> None:
        self.number = number
        self.tail = tail
        self.memtable = memtable
        """None before the first write.  That of older logs may be in the memtable of a newer one;
        the newest log has its own."""


class _LogBatches:
    """Batches read from one log, each with the sequence of its first operation."""

    def __init__(self, log: FollowedLog) -> None:
        self.log = log
        self.begun = log.tail.end > 0
        """True if the log already had batches."""
        self.found: list[tuple[int, list[Operation]]] = []


class StoreTail:
    """The end of a store's view, and the means to advance it.

    One thread at a time calls it.  After an error, or an interrupt, its state is unusable.
    """

    def __init__(
        self,
        directory: Directory,
        comparator: InternalKeyComparator,
        manifest: ManifestTail,
        logs: list[FollowedLog],
        expected: int | None,
    ) -> None:
        """``logs`` are those that the view needs, oldest first.  ``expected`` is the sequence at
        which the next batch must start, if that is known."""
        self._directory = directory
        self._comparator = comparator
        self._manifest = manifest
        self.logs = logs
        """The logs that the view needs, oldest first."""
        self._expected = expected
        self._edited = False  # whether the state of the MANIFEST is newer than what is shown
        self._mark: object = None  # of the directory, before its names were listed
        self.superseded = False
        """Set by code that interrupted this and moved the view itself: then nothing is applied."""

    def unread(self) -> bool:
        """Return True if there may be anything new: a look at the directory, at the MANIFEST and at
        each log, of a few system calls."""
        mark = self._directory.change_mark()
        if mark is None or mark != self._mark or self._manifest.unread():
            return True
        return any(log.tail.unread() for log in self.logs)

    def was_destroyed(self) -> bool:
        """Return True if another store has replaced this one, in the same directory."""
        return self._manifest.was_replaced()

    def follow(self, store: Store, last: int) -> bool:
        """Let the store show the writes up to ``last``, if its newest log has them all.

        Returns False if there is more to it, or only recovery can decide.  Raises ``OSError``.
        """
        if self._edited or not self.logs:
            return False
        log = self.logs[-1]
        view = store.view
        if log.tail.end == 0 or view is None or log.memtable is not view.memtable:
            return False
        try:
            while True:
                batches = self._read_log(log, last, _AT_ONCE)
                self._check_sequences([batches])
                shown = self._apply(store, [batches])
                if shown >= last or not batches.found:
                    return shown >= last
        except (ReadAgain, CorruptionError):
            return False

    def advance(self, store: Store, bound: Bound | None = None) -> bool:
        """Let the store show what was written since.

        Returns False if only recovery can decide; then the store shows some of it, or nothing.
        Raises ``OSError``, and :class:`NotYet` as ``bound`` does.
        """
        try:
            self._advance(store, Bound() if bound is None else bound)
        except (ReadAgain, CorruptionError, FileNotFoundError):
            return False
        return True

    def _advance(self, store: Store, bound: Bound) -> None:
        mark = self._directory.change_mark()
        edited = self._manifest.read() or self._edited
        self._edited = edited
        if edited or mark is None or mark != self._mark:
            if not self._manifest.is_in_force():
                raise ReadAgain
            self._find_logs()
        read = self._read_logs(bound.last())
        version = store.versions.current
        state = self._manifest.state
        if edited:
            state.check(self._comparator)
            version = state.version(self._comparator)
        last = self._apply(store, read)
        shown = [log.memtable for log in self.logs if self._is_needed(log.number)]
        memtables = [one for one in reversed(shown) if one is not None and not one.empty]
        if len(memtables) > _MEMTABLES:
            raise ReadAgain
        last = max(last, state.last_sequence, 0 if self._expected is None else self._expected - 1)
        bound.confirm(version, last)
        self.logs = [log for log in self.logs if self._is_needed(log.number)]
        self._show(store, version, memtables, last)
        self._edited = False
        if edited:
            store.tables.keep_only(store.versions.live_numbers())
        self._mark = mark

    def _is_needed(self, number: int) -> bool:
        state = self._manifest.state
        return number >= state.log_number or number == state.prev_log_number

    def _find_logs(self) -> None:
        """Open the logs that were begun since."""
        held = [log.number for log in self.logs]
        needed: list[int] = []
        for name in self._directory.names():
            parsed = parse_filename(name)
            if parsed is None or parsed[1] is not FileType.LOG or name != log_name(parsed[0]):
                continue
            if self._is_needed(parsed[0]):
                needed.append(parsed[0])
        oldest = self._manifest.state.log_number
        if oldest > 0 and oldest not in needed and oldest not in held:
            raise ReadAgain  # its writer has continued since, or the log is missing
        for number in sorted(set(needed) - set(held)):
            if held and number < held[-1]:
                raise ReadAgain
            tail = LogTail(self._directory.open(log_name(number)))
            self.logs.append(FollowedLog(number, tail, None))

    def _read_logs(self, last: int) -> list[_LogBatches]:
        """The new batches of each log, oldest first: each starts where the one before ended."""
        read: list[_LogBatches] = []
        for log in reversed(self.logs):
            read.append(self._read_log(log, last))
        read.reverse()
        self._check_sequences(read)
        return read

    def _read_log(self, log: FollowedLog, last: int, most: int = MAX_BYTES) -> _LogBatches:
        batches = _LogBatches(log)
        for record in log.tail.read(last, most):
            batches.found.append(decode_batch(record.payload))
        if log.tail.unclear:
            raise ReadAgain
        return batches

    def _check_sequences(self, read: list[_LogBatches]) -> None:
        expected = self._expected
        is_oldest = True
        for batches in read:
            # Tables cover what comes before the oldest log that is needed; it may start later.
            may_start_later = is_oldest and not batches.begun
            is_oldest = is_oldest and not self._is_needed(batches.log.number)
            for sequence, operations in batches.found:
                goes_on = expected is None or sequence == expected
                if not goes_on and (not may_start_later or sequence < (expected or 0)):
                    raise ReadAgain
                may_start_later = False
                expected = sequence + len(operations)
                if expected - 1 > MAX_SEQUENCE:
                    raise ReadAgain
        self._expected = expected

    def _apply(self, store: Store, read: list[_LogBatches]) -> int:
        """Apply the batches to the memtables of their logs; returns the last sequence.

        A memtable that the store shows already is read meanwhile, as one that is written to.
        """
        versions = store.versions
        last = versions.last_sequence
        for batches in read:
            log = batches.log
            if log.memtable is None and batches.found:
                log.memtable = store.new_memtable(log.number)
            for sequence, operations in batches.found:
                memtable = log.memtable
                assert memtable is not None
                last = sequence + len(operations) - 1
                with store.lock.nested, store.lock.guard:
                    view = store.open_view()
                    if self.superseded:
                        raise ReadAgain
                    shown = memtable is view.memtable or memtable is view.immutable
                    if shown and store.empty_ranges.active:
                        store.empty_ranges.note(operations)
                    newest = store.pinned.newest() if shown else -1
                    memtable.add(sequence, operations, newest, store.pinned.in_order())
                    if shown:
                        versions.last_sequence = max(versions.last_sequence, last)
                    memtable.applying = None
        return last

    def _show(self, store: Store, version: Version, memtables: list[MemTable], last: int) -> None:
        """Replace the store's view.  ``memtables`` are those of the view, the newest one first."""
        view = store.open_view()
        newest = memtables[0] if memtables else view.memtable
        if not memtables and not newest.empty:
            newest = store.new_memtable(0)
        older = memtables[1] if len(memtables) > 1 else None
        with store.lock.nested, store.lock.guard:
            store.open_view()
            if self.superseded:
                raise ReadAgain
            versions = store.versions
            if last > versions.last_sequence or version is not view.version:
                store.forget_ranges()
            versions.load(self._manifest.state)
            versions.last_sequence = max(versions.last_sequence, last)
            if version is not versions.current:
                versions.install(version)
            if (
                version is not view.version
                or newest is not view.memtable
                or (older is not view.immutable)
            ):
                store.view = View(newest, older, version)
