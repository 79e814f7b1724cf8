"""VersionSet: the current version, and the MANIFEST that records it.

The order of durability (``docs/reference/format.md``): a table is durable before an edit names it;
the edit is durable before the version becomes current; a new MANIFEST is durable before CURRENT
names it, and only then are files removed that it no longer needs.  After a failed write the content
of the MANIFEST is unknown, so no edit is committed and no file removed until the store is reopened.
"""

from __future__ import annotations

import weakref
from typing import Any

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.tree.manifest import Manifest
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.env.base import Directory, WritableFile
from lsmkv.engine.errors import Error, io_error, raise_typed
from lsmkv.engine.format.filenames import MAX_FILE_NUMBER, manifest_name, set_current
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.format.version_edit import VersionEdit
from lsmkv.engine.options import Options

_MANIFEST_GROWTH = 4
"""A new MANIFEST is begun when the old one is this many times as large as its first record."""

_SMALLEST_ROLLOVER = 1024 * 1024
"""While a store is open, a MANIFEST smaller than this is not replaced."""


class VersionSet:
    """The current version, and the counters of file numbers and sequences, each used only once.

    One thread at a time calls ``log_and_apply``: recovery's, then the one that does background
    work.  Any thread may read ``current``.
    """

    def __init__(
        self, directory: Directory, options: Options, comparator: InternalKeyComparator
    ) -> None:
        self._directory = directory
        self._options = options
        self._comparator = comparator
        self.current = Version(comparator, [[] for _ in range(NUM_LEVELS)])
        self._free_numbers: Any = iter(range(2, MAX_FILE_NUMBER))
        """Taking one is a single step of C: two threads, or a nested call, never get the same."""
        self.last_sequence = 0
        """The sequence of the last write that is visible, in the memtable or in a table."""
        self.log_number = 0
        """Logs of smaller numbers are obsolete."""
        self.prev_log_number = 0
        self.compact_pointers: list[bytes | None] = [None] * NUM_LEVELS
        """The key at which each level's next compaction begins, so that compactions go through all
        keys in turn."""
        self.manifest_number = 0
        self._manifest: WritableFile | None = None
        self._manifest_log: LogWriter | None = None
        self._snapshot_size = 0  # bytes of the MANIFEST's first record
        self._named: tuple[int, WritableFile] | None = None
        """The number and the empty file of the next MANIFEST, if its name is durable."""
        self.failure: BaseException | None = None
        """The error of a write of the MANIFEST, after which nothing is committed."""
        self._applying: tuple[VersionEdit, Version] | None = None
        """The last edit, and the version that it makes."""
        self.unsettled = False
        """True if an edit is being written, or an interrupt came while it was: the MANIFEST may
        name its tables or not, and the next record begins a new one."""
        self._leases: list[weakref.ref[set[int]]] = []
        self._lease(self.current)

    def new_file_number(self) -> int:
        """A number that no file ever had.  Any thread may call this."""
        number: int = next(self._free_numbers, 0)
        if number == 0:  # in a hostile directory: no MANIFEST may hold more
            raise Error("file numbers exhausted: a store has 2^63 of them")
        return number

    @property
    def next_file_number(self) -> int:
        """The number of the next file."""
        # operator.length_hint() raises where a machine word has 32 bits.
        return int(MAX_FILE_NUMBER - self._free_numbers.__length_hint__())

    def mark_file_number_used(self, number: int) -> None:
        """Make sure that no new file gets ``number`` or any number below it.

        Recovery calls this before any other thread knows of the store.
        """
        if self.next_file_number <= number:
            self._free_numbers = iter(range(number + 1, MAX_FILE_NUMBER))

    def inherit(self, other: VersionSet) -> None:
        """Take over the versions of ``other``, which this set replaces."""
        self._leases = other._leases + self._leases

    def load(self, manifest: Manifest) -> None:
        """Take over the counters of a MANIFEST, except the last sequence."""
        for level, key in manifest.compact_pointers.items():
            if level < NUM_LEVELS:  # goleveldb keeps those of levels that it has emptied
                self.compact_pointers[level] = key
        self.mark_file_number_used(manifest.next_file_number - 1)
        self.log_number = manifest.log_number
        self.prev_log_number = manifest.prev_log_number
        self.mark_file_number_used(max(manifest.log_number, manifest.prev_log_number))

    def install(self, version: Version) -> None:
        """Make ``version`` current without writing to the MANIFEST, from which recovery read it."""
        self.current = version
        self._lease(version)

    def name_manifest(self) -> str:
        """Create the file of the next MANIFEST, and return its name.

        The caller syncs the directory before the next commit, which then need not do so.
        """
        number = self.new_file_number()
        name = manifest_name(number)
        self._named = number, self._directory.create(name)
        return name

    def log_and_apply(self, edit: VersionEdit) -> Version:
        """Commit ``edit``: make it durable, then its version current.  Returns that version.

        Raises :class:`~lsmkv.errors.IOError`, after which :attr:`failure` is set for good.  After
        an interrupt, which is not an :class:`Exception`, the next call must pass the same edit, and
        completes it.
        """
        if self.failure is not None:
            raise self.failure
        applying = self._applying
        if applying is not None and applying[0] is edit:
            version = applying[1]
            if self.current is version:
                return version
        else:
            version = self._apply(edit)
        try:
            self._write(edit)
        except OSError as error:
            self.failure = io_error(error)
            raise_typed(error)
        except Exception as error:
            self.failure = error
            raise
        assert edit.log_number is not None
        assert edit.prev_log_number is not None
        self.log_number = edit.log_number
        self.prev_log_number = edit.prev_log_number
        self.install(version)
        self.unsettled = False
        return version

    def _apply(self, edit: VersionEdit) -> Version:
        """The version that the edit makes; the edit gets the fields that every edit has."""
        if edit.log_number is None:
            edit.log_number = self.log_number
        if edit.prev_log_number is None:
            edit.prev_log_number = self.prev_log_number
        # The edit of an ingest has a sequence beyond the last one, which counts once it is durable.
        edit.last_sequence = max(self.last_sequence, edit.last_sequence or 0)
        version = self.current.apply(edit)
        version.check()
        for level, key in edit.compact_pointers:
            self.compact_pointers[level] = key
        self._applying = (edit, version)
        return version

    def live_numbers(self) -> set[int]:
        """The tables that a version names, the current one or one that a reader holds."""
        alive: set[int] = set()
        for numbers in self.live():
            alive |= numbers
        return alive

    def live(self) -> list[set[int]]:
        """The tables of each version that is the current one, or that a reader holds."""
        alive: list[set[int]] = []
        leases: list[weakref.ref[set[int]]] = []
        for lease in self._leases:
            numbers = lease()
            if numbers is not None:
                alive.append(numbers)
                leases.append(lease)
        self._leases = leases
        return alive

    def close(self) -> None:
        """Close the MANIFEST."""
        named, self._named = self._named, None
        if named is not None:
            named[1].close()
        if self._manifest is not None:
            self._manifest.close()
            self._manifest = None
            self._manifest_log = None

    def _lease(self, version: Version) -> None:
        if version.numbers:
            self._leases.append(weakref.ref(version.lease))

    def _write(self, edit: VersionEdit) -> None:
        """Append the edit to the MANIFEST; to a new one if there is none or it has grown large."""
        file = self._manifest
        log = self._manifest_log
        most = max(_SMALLEST_ROLLOVER, _MANIFEST_GROWTH * self._snapshot_size)
        again = self.unsettled
        self.unsettled = True
        if again or file is None or log is None or log.end > most:
            self._begin_manifest(edit)
            return
        edit.next_file_number = self.next_file_number
        log.add_record(edit.encode())
        file.sync()

    def _begin_manifest(self, edit: VersionEdit) -> None:
        """Begin a new MANIFEST with the current version, then the edit; let CURRENT name it."""
        named, self._named = self._named, None
        number = self.new_file_number() if named is None else named[0]
        edit.next_file_number = self.next_file_number
        file = self._directory.create(manifest_name(number)) if named is None else named[1]
        try:
            writer = LogWriter(file)
            writer.add_record(self._snapshot().encode())
            self._snapshot_size = writer.end
            writer.add_record(edit.encode())
            file.sync()
            if named is None:
                self._directory.sync()
            set_current(self._directory, number)
            self.close()
            self._manifest = file
            self._manifest_log = writer
            self.manifest_number = number
        except BaseException:
            file.close()
            raise

    def _snapshot(self) -> VersionEdit:
        """One edit that makes the current version from an empty one."""
        edit = VersionEdit()
        edit.comparator = self._comparator.user_comparator.name
        for level, key in enumerate(self.compact_pointers):
            if key is not None:
                edit.compact_pointers.append((level, key))
        for level, files in enumerate(self.current.levels):
            for file in files:
                edit.add_file(level, file)
        return edit
