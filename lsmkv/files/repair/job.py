"""Carries out the plan of a repair: writes new tables and a MANIFEST, and keeps the old files.

``repair.py`` calls it; for a repair in place it holds the store's lock.  In place, tables are made
in ``lost/``, where no store looks for tables, and the new store takes effect once its CURRENT
exists.  So a repair may be killed at any point and run again.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.admin.staging import copy, link_or_copy
from lsmkv.engine.db.compact.flush import write_memtable
from lsmkv.engine.db.opening.lost import acknowledge
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.db.tree.table_output import TableOutput
from lsmkv.engine.db.tree.version import max_bytes_for_level, total_size
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.filenames import (
    CURRENT,
    LOST,
    MAX_FILE_NUMBER,
    FileType,
    log_name,
    manifest_name,
    parse_filename,
    set_current,
    table_name,
)
from lsmkv.engine.format.keys import MAX_SEQUENCE, Entry, InternalKeyComparator
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.options import Options
from lsmkv.engine.util.progress import Progress
from lsmkv.files.repair.damaged_log import FoundBatch
from lsmkv.files.repair.merging import merged_pairs
from lsmkv.files.repair.plan import KEEP, REBUILD, REWRITE, SET_ASIDE, RepairPlan, TablePlan
from lsmkv.files.repair.planning import read_entries
from lsmkv.files.repair.rebuilding import batches_of_all

_COMPARE_CHUNK = 1024 * 1024
_NO_LIMIT = 1 << 62
_NOT_DATA = (FileType.LOCK, FileType.INFO_LOG, FileType.STATS, FileType.TRACE, FileType.SHARED)


class RepairJob:
    """Carries out one plan.  ``run`` is called once."""

    def __init__(
        self,
        source: Directory,
        target: Directory,
        plan: RepairPlan,
        settings: Options,
        progress: Progress | None,
    ) -> None:
        self._source = source
        self._target = target
        self._in_place = source is target
        self._plan = plan
        self._settings = settings
        self._progress = progress
        self._comparator = InternalKeyComparator(settings.comparator)
        self._order = self._comparator.order
        self._next_number = plan.highest_number + 1
        self._edit = VersionEdit()
        self._made: list[str] = []  # files to remove after a failure
        self._kept: set[str] = set()
        self._table_directory = target  # where tables are made: ``lost`` for a repair in place
        self._tables: list[str] = []  # file names of the tables made there
        self._stale_tables: list[str] = []  # those of stale entries, in ``lost``
        self._opened: Directory | None = None  # ``lost``, if anything goes there

    def run(self) -> None:
        """Write the new store; it takes effect once its CURRENT exists."""
        if self._in_place or self._plan.stale > 0:
            self._opened = self._target.subdirectory(LOST, create=True)
        try:
            if self._in_place:
                self._table_directory = self._lost
            if self._opened is not None:
                self._skip_numbers_in(self._opened)
            manifest = self._build()
        except BaseException:
            _remove_all(self._target, self._made)
            if self._opened is not None:
                _remove_all(self._opened, self._stale_tables)
            raise
        finally:
            if self._opened is not None:
                if self._in_place:
                    _remove_all(self._opened, self._tables)
                self._opened.close()
        set_current(self._target, manifest)
        if self._in_place:
            self._remove_old_files()
            added = {log.name for log in self._plan.logs if log.folder}
            if added:
                acknowledge(self._target, added)

    @property
    def _lost(self) -> Directory:
        """The directory of what is replaced or set aside."""
        assert self._opened is not None
        return self._opened

    def _build(self) -> int:
        """Write the tables and the MANIFEST; returns the MANIFEST's number.

        In place, an unfinished table, or one that no MANIFEST names yet, must not be in the store's
        directory: after a kill it would be taken for damage, or for data.
        """
        if self._plan.by_levels:
            self._place_tables()
            self._replay_logs()
            manifest = self._write_manifest()
            self._target.sync()
            self._link_tables()
        else:
            self._merge_tables()
            self._link_tables()
            manifest = self._write_manifest()
        if self._opened is not None:
            self._set_tables_aside(self._opened)
            self._opened.sync()
        if self._in_place:
            self._keep_old_files(self._lost)
        self._target.sync()
        return manifest

    def _link_tables(self) -> None:
        if self._table_directory is not self._target:
            for name in self._tables:
                self._made.append(name)
                link_or_copy(self._table_directory, name, self._target)

    def _skip_numbers_in(self, lost: Directory) -> None:
        """Do not use the number of a file that an earlier repair left in ``lost``."""
        for name in lost.names():
            parsed = parse_filename(name)
            if parsed is not None:
                self._next_number = max(self._next_number, parsed[0] + 1)

    def _new_number(self) -> int:
        number = self._next_number
        if number > MAX_FILE_NUMBER:
            raise CorruptionError("file numbers exhausted", self._source.path)
        self._next_number += 1
        return number

    def _new_table(self, directory: Directory, names: list[str]) -> TableOutput:
        """Begin a table in a directory, whose name is added to ``names``."""
        number = self._new_number()
        names.append(table_name(number))
        return TableOutput(directory, number, self._settings)

    def _write(
        self, memtable: MemTable, directory: Directory, names: list[str]
    ) -> FileMetaData | None:
        """Write a memtable to a table, whose name is added to ``names``, unless it is empty."""
        number = self._new_number()
        if not memtable.empty:
            names.append(table_name(number))
        settings = self._settings._replace(flush_prefix="")  # one table for each log
        files = write_memtable(
            memtable, directory, lambda: number, settings, self._order, MAX_SEQUENCE
        )
        return files[0] if files else None

    # Tables

    def _place_tables(self) -> None:
        """Write tables to their old levels; those of level 0 in the order of their age."""
        used = self._used_tables()
        for done, plan in enumerate(used):
            survey = plan.survey
            if plan.action == KEEP:
                self._kept.add(survey.name)
                if not self._in_place:
                    link_or_copy(self._source, survey.name, self._target)
                file = FileMetaData(survey.number, survey.size, survey.smallest, survey.largest)
                self._edit.add_file(survey.level, file)
            elif plan.action in (REWRITE, REBUILD):
                output = _Output(self, _NO_LIMIT)
                for entries in self._kept_entries(plan):
                    output.add(*_columns(entries))
                for file in output.finish():
                    self._edit.add_file(survey.level, file)
            self._report_progress(done + 1, len(used), "writing tables")
        state = self._plan.survey.manifest
        if state is not None:
            for level, key in sorted(state._state.compact_pointers.items()):
                self._edit.compact_pointers.append((level, key))

    def _merge_tables(self) -> None:
        """Merge tables and logs into one sorted run, on the first level that has room for it."""
        used = self._used_tables()
        total = sum(plan.survey.size for plan in used)
        output = _Output(self, self._settings.max_file_size)
        kept = self._kept_batches()
        for pairs in merged_pairs(used, self._kept_entries, kept, self._settings):
            output.add(*pairs)
            self._report_progress(min(output.size, total), total, "merging tables")
        files = output.finish()
        level = 1
        while level < NUM_LEVELS - 1 and total_size(files) > max_bytes_for_level(level):
            level += 1
        for file in files:
            self._edit.add_file(level, file)

    def _used_tables(self) -> list[TablePlan]:
        """The tables that are kept or rewritten, the oldest first."""
        used = [plan for plan in self._plan.tables if plan.is_used]
        return sorted(used, key=lambda plan: plan.survey.number)

    def _kept_entries(self, plan: TablePlan) -> Iterator[list[Entry]]:
        """The entries of a table that are kept; the stale ones go into a table in ``lost``."""
        stale_table: TableOutput | None = None
        for kept, stale in read_entries(plan, self._source, self._settings):
            if stale and stale_table is None:
                stale_table = self._new_table(self._lost, self._stale_tables)
            if stale_table is not None:
                stale_table.add_entries(*_columns(stale), 0, len(stale), _NO_LIMIT)
            yield kept
        if stale_table is not None:
            stale_table.finish()

    def _set_tables_aside(self, lost: Directory) -> None:
        """Link or copy tables that go into ``lost/`` whole; in place all old files do."""
        for plan in self._plan.tables:
            if plan.action == SET_ASIDE and not self._in_place:
                self._stale_tables.append(plan.survey.name)
                link_or_copy(self._source, plan.survey.name, lost)

    # Logs

    def _replay_logs(self) -> None:
        """Write the logs' entries to tables of level 0, newer than all others."""
        memtable = MemTable(self._settings.comparator, StoreLock())
        for found in self._kept_batches():
            memtable.add(found.sequence, found.operations, -1)
            if memtable.usage > self._settings.write_buffer_size:
                self._flush(memtable)
                memtable = MemTable(self._settings.comparator, StoreLock())
        self._flush(memtable)

    def _kept_batches(self) -> Iterator[FoundBatch]:
        """The batches of the logs that are kept; the stale ones go into a table in ``lost``."""
        stale = MemTable(self._settings.comparator, StoreLock())
        for found in batches_of_all(self._plan.logs, self._source):
            if self._plan._keeps(found):
                yield found
            else:
                stale.add(found.sequence, found.operations, -1)
        if not stale.empty:
            self._write(stale, self._lost, self._stale_tables)

    def _flush(self, memtable: MemTable) -> None:
        file = self._write(memtable, self._table_directory, self._tables)
        if file is not None:
            self._edit.add_file(0, file)

    # MANIFEST

    def _write_manifest(self) -> int:
        """Write an empty log and the MANIFEST; returns the number of the MANIFEST."""
        edit = self._edit
        log = self._new_number()
        manifest = self._new_number()
        edit.comparator = self._settings.comparator.name
        edit.log_number = log
        edit.prev_log_number = 0
        edit.next_file_number = self._next_number
        edit.last_sequence = self._plan.last_sequence
        self._made += [log_name(log), manifest_name(manifest)]
        with self._target.create(log_name(log)) as file:
            file.sync()
        with self._target.create(manifest_name(manifest)) as file:
            LogWriter(file).add_record(edit.encode())
            file.sync()
        return manifest

    # In place

    def _old_files(self) -> list[str]:
        """The engine's files that are not part of the new store."""
        new = {*self._made, *self._kept}
        old: list[str] = []
        for name in sorted(self._source.names()):
            parsed = parse_filename(name)
            if parsed is not None and parsed[1] not in _NOT_DATA and name not in new:
                old.append(name)
        return old

    def _keep_old_files(self, lost: Directory) -> None:
        """Link or copy every old file into ``lost`` before any of them is replaced."""
        for name in self._old_files():
            if not lost.exists(name):
                link_or_copy(self._source, name, lost)
            elif not _same(self._source, lost, name):
                self._keep_under_numbered_name(name, lost)
        lost.sync()

    def _keep_under_numbered_name(self, name: str, lost: Directory) -> None:
        """Copy a file under a numbered name, since ``lost`` has another file of its name."""
        number = 1
        while lost.exists(f"{name}.{number}"):
            number += 1
        with self._source.open(name) as file:
            copy(file, lost, f"{name}.{number}", file.size)

    def _remove_old_files(self) -> None:
        """Remove the old files; those that cannot be removed now are removed at the next open."""
        _remove_all(self._target, [name for name in self._old_files() if name != CURRENT])
        self._target.sync()

    def _report_progress(self, done: int, total: int, phase: str) -> None:
        if self._progress is not None:
            self._progress(done, total, phase)


class _Output:
    """Writes a sorted run of tables.  Call order: ``add* finish``."""

    def __init__(self, job: RepairJob, limit: int) -> None:
        """A table ends once it has ``limit`` bytes."""
        self._job = job
        self._limit = limit
        self._table: TableOutput | None = None
        self._files: list[FileMetaData] = []
        self._written = 0

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._written + (0 if self._table is None else self._table.size)

    def add(self, user_keys: list[bytes], tagged: list[bytes]) -> None:
        """Append entries: their user keys, and their tagged values.

        If there is a limit, no two entries have the same user key, so a table may end anywhere.
        """
        at = 0
        while at < len(user_keys):
            if self._table is None:
                self._table = self._job._new_table(self._job._table_directory, self._job._tables)
            at = self._table.add_entries(user_keys, tagged, at, len(user_keys), self._limit)
            if self._table.size >= self._limit:
                self._end_table()

    def finish(self) -> list[FileMetaData]:
        """The finished tables: their contents are durable, but not yet their names."""
        self._end_table()
        return self._files

    def _end_table(self) -> None:
        if self._table is not None:
            file = self._table.finish()
            self._written += file.size
            self._files.append(file)
            self._table = None


def _same(one: Directory, other: Directory, name: str) -> bool:
    """Return True if a file has the same contents in two directories."""
    with one.open(name) as mine, other.open(name) as theirs:
        if mine.size != theirs.size:
            return False
        for offset in range(0, mine.size, _COMPARE_CHUNK):
            if mine.read(offset, _COMPARE_CHUNK) != theirs.read(offset, _COMPARE_CHUNK):
                return False
    return True


def _remove_all(directory: Directory, names: list[str]) -> None:
    """Remove the files that are there and can be removed."""
    for name in names:
        try:
            directory.remove(name)
        except OSError:
            pass


def _columns(entries: list[Entry]) -> tuple[list[bytes], list[bytes]]:
    """The user keys of entries, and their tagged values."""
    return [entry[0] for entry in entries], [entry[1] for entry in entries]
