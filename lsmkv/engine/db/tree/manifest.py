"""Reading a MANIFEST: the state that its version edits add up to.

Recovery, repair and ``lsmkv verify`` read it here; ``VersionSet`` writes it.
"""

from __future__ import annotations

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import ComparatorMismatchError, CorruptionError
from lsmkv.engine.format.filenames import MAX_FILE_NUMBER
from lsmkv.engine.format.foreign import unknown_field
from lsmkv.engine.format.keys import MAX_SEQUENCE, InternalKeyComparator
from lsmkv.engine.format.log import LogDamage, LogReader
from lsmkv.engine.format.version_edit import MAX_LEVELS, FileMetaData, VersionEdit, unknown_tag


class Manifest:
    """The state after all records: counters, and the files of each level."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.comparator: str | None = None
        self.log_number = 0
        self.prev_log_number = 0
        self.next_file_number = 0
        self.last_sequence = 0
        self.compact_pointers: dict[int, bytes] = {}
        self.levels: list[dict[int, FileMetaData]] = [{} for _ in range(NUM_LEVELS)]
        """The files of each level, by number: seven levels, or more in a store of goleveldb."""
        self.tail: LogDamage | None = None
        """The bad bytes after the last good record, if there are any."""
        self.end = 0
        """End of the last good record."""
        self.last = -1
        """Start of the last good record."""
        self._seen: set[str] = set()

    def apply(self, edit: VersionEdit) -> None:
        """Apply one edit to the state."""
        if edit.comparator is not None:
            self.comparator = edit.comparator
        if edit.log_number is not None:
            self.log_number = edit.log_number
            self._seen.add("log number")
        if edit.prev_log_number is not None:
            self.prev_log_number = edit.prev_log_number
        if edit.next_file_number is not None:
            self.next_file_number = edit.next_file_number
            self._seen.add("next file number")
        if edit.last_sequence is not None:
            self.last_sequence = edit.last_sequence
            self._seen.add("last sequence")
        for level, key in edit.compact_pointers:
            self.compact_pointers[level] = key
        for level, number in edit.deleted_files:
            if level < len(self.levels):
                self.levels[level].pop(number, None)
        for level, file in edit.new_files:
            while level >= len(self.levels):
                self.levels.append({})
            self.levels[level][file.number] = file

    @property
    def deepest(self) -> int:
        """The last level that has files; 0 if none has."""
        return max((level for level, files in enumerate(self.levels) if files), default=0)

    @property
    def complete(self) -> bool:
        """Return True if it had all counters that a MANIFEST must have."""
        return {"next file number", "log number", "last sequence"} <= self._seen

    def check(self, comparator: InternalKeyComparator) -> None:
        """Raise for another comparator, for a missing counter, and for a counter out of range."""
        ours = comparator.user_comparator.name
        if self.comparator is not None and self.comparator != ours:
            raise ComparatorMismatchError(self.path, self.comparator, ours)
        for what in ("next file number", "log number", "last sequence"):
            if what not in self._seen:
                raise CorruptionError(f"the MANIFEST has no {what}", self.path)
        highest = max(self.next_file_number, self.log_number, self.prev_log_number)
        if highest > MAX_FILE_NUMBER or self.last_sequence > MAX_SEQUENCE:
            raise CorruptionError("a number in the MANIFEST is out of range", self.path)

    def version(self, comparator: InternalKeyComparator) -> Version:
        """The levels as a version, which has passed :meth:`Version.check`."""
        used = self.levels[: max(NUM_LEVELS, self.deepest + 1)]
        version = Version(comparator, [list(files.values()) for files in used])
        try:
            version.check()
        except CorruptionError as error:
            raise error.located(self.path) from None
        return version


def read_manifest(directory: Directory, name: str) -> Manifest:
    """The state after all records of the MANIFEST ``name``.

    Raises :class:`CorruptionError` for a bad record that others follow.  A bad *last* record may be
    a torn one: it is noted in ``tail``, for the caller to judge.  An intact record with a field
    that LevelDB does not have raises :class:`ForeignFormatError`.
    """
    manifest = Manifest(f"{directory.path}/{name}")
    with directory.open(name) as file:
        reader = LogReader(file)
        for record in reader:
            if record.damage is not None:
                damage = record.damage
                raise CorruptionError(damage.reason, manifest.path, damage.offset)
            try:
                manifest.apply(VersionEdit.decode(record.payload, MAX_LEVELS))
            except CorruptionError as error:
                tag = unknown_tag(record.payload, error)
                if tag > 0:
                    raise unknown_field(manifest.path, directory.names(), tag) from None
                raise error.located(manifest.path, record.offset) from None
        manifest.tail = reader.tail
        manifest.end = reader.end
        manifest.last = reader.last
    return manifest
