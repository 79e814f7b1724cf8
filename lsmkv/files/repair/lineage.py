"""From which files each table was made, by the version edits of a MANIFEST.

A compaction's edit removes its inputs and adds its outputs.  A flush's edit adds a table, and sets
the number of the log that follows those which the table replaces.  So if a table is missing, and
all files from which it was made are there, these and nothing else have its entries
(:mod:`lsmkv.repair.rebuilding`).  A copy that was made while a store was in use is often such a
store: it has old files, and a MANIFEST that names newer ones.
"""

from __future__ import annotations

from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit


class Origin:
    """The edit that made a table."""

    def __init__(self, file: FileMetaData, level: int, last_sequence: int) -> None:
        self.file = file
        self.level = level
        self.last_sequence = last_sequence
        """No entry of the table has a higher sequence."""
        self.inputs: list[int] = []
        """The tables that a compaction merged."""
        self.first_log = 0
        self.next_log = 0
        """A flush wrote the logs from the first to the one before the next.  Both are 0 if they are
        unknown, as in the record with which a MANIFEST begins."""
        self.older_than_log = 0
        """Every write of this log, and of later ones, is newer than all entries of the table; 0 if
        no such log is known."""


class Lineage:
    """The origins of the tables of a MANIFEST.  Call order: ``note*``, in the order of records."""

    def __init__(self) -> None:
        self.origins: dict[int, Origin] = {}
        self._log = 0
        self._last_sequence = 0
        self._open: list[Origin] = []  # those that are older than the next log

    def note(self, edit: VersionEdit) -> None:
        """Note the tables that an edit adds.  Those that it moves to another level are known."""
        if edit.last_sequence is not None:
            self._last_sequence = edit.last_sequence
        begins_log = edit.log_number is not None and edit.log_number > self._log
        if begins_log:
            assert edit.log_number is not None
            for origin in self._open:
                origin.older_than_log = edit.log_number
            self._open.clear()
        removed = {number for _, number in edit.deleted_files}
        added = {file.number for _, file in edit.new_files}
        for level, file in edit.new_files:
            if file.number in self.origins or file.number in removed:
                continue
            origin = Origin(file, level, self._last_sequence)
            if removed:
                origin.inputs = sorted(removed - added)
                inputs = [self.origins.get(number) for number in origin.inputs]
                bounds = [0 if one is None else one.older_than_log for one in inputs]
                origin.older_than_log = max(bounds) if min(bounds, default=0) > 0 else 0
            elif edit.comparator is None and begins_log:
                assert edit.log_number is not None
                origin.older_than_log = edit.log_number
                if self._log > 0:
                    origin.first_log, origin.next_log = self._log, edit.log_number
            if origin.older_than_log == 0:
                self._open.append(origin)
            self.origins[file.number] = origin
        if edit.log_number is not None:
            self._log = edit.log_number
