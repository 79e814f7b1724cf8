"""Carrying out a repair: new tables, a MANIFEST that names them, and what becomes of the old files.

Tables are made where nobody looks for any, and the store counts from the moment that its CURRENT is
there: a repair may be killed anywhere, and begun again.
"""

from __future__ import annotations

from collections.abc import Iterator

from librt.threading import Lock

from lsmkv.db.admin.staging import copy, link_or_copy
from lsmkv.db.flush import write_memtable
from lsmkv.db.memtable import MemTable
from lsmkv.db.merge import Cursor, KeyOrder, live_entries, merge_forward
from lsmkv.db.table_output import TableOutput
from lsmkv.db.version import max_bytes_for_level, total_size
from lsmkv.env.base import Directory
from lsmkv.errors import CorruptionError
from lsmkv.format.filenames import (
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
from lsmkv.format.keys import MAX_SEQUENCE, Entry, InternalKeyComparator, internal_options
from lsmkv.format.log import LogWriter
from lsmkv.format.version_edit import FileMetaData, VersionEdit
from lsmkv.options import Options
from lsmkv.repair.damaged_log import FoundBatch, read_batches
from lsmkv.repair.plan import (
    KEEP,
    REWRITE,
    RepairPlan,
    TablePlan,
    read_entries,
)
from lsmkv.repair.report import LogSurvey
from lsmkv.repair.survey import Progress
from lsmkv.stats import NUM_LEVELS

_COMPARE_CHUNK = 1024 * 1024


class RepairJob:
    """Carries out a plan once: ``run``."""

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
        self._options = internal_options(settings, self._comparator)
        self._order = KeyOrder(settings.comparator)
        self._next_number = plan.highest_number + 1
        self._edit = VersionEdit()
        self._made: list[str] = []  # in place: to be taken away again after a failure
        self._kept: set[str] = set()
        self._workshop = target  # where tables are made: in place, in ``lost``
        self._tables: list[str] = []
        self._aside: list[str] = []

    def run(self) -> None:
        """Write the new store; it counts from the moment that its CURRENT is there."""
        lost = self._open_lost()
        try:
            if self._in_place:
                assert lost is not None
                self._workshop = lost
            if lost is not None:
                self._number_above(lost)
            manifest = self._build(lost)
        except BaseException:
            for name in self._made:
                _remove_if_there(self._target, name)
            for name in self._aside:
                if lost is not None:
                    _remove_if_there(lost, name)
            raise
        finally:
            if lost is not None:
                if self._in_place:
                    for name in self._tables:
                        _remove_if_there(lost, name)
                lost.close()
        set_current(self._target, manifest)
        if self._in_place:
            self._remove_old_files()

    def _build(self, lost: Directory | None) -> int:
        """Tables are made where nobody looks for any: one that is not finished, or that no MANIFEST
        names, would be taken for damage or for data if the repair were killed now."""
        if self._plan.by_levels:
            self._place_tables(lost)
            self._replay_logs(self._plan.logs)
            manifest = self._write_manifest()
            self._target.sync()
            self._show_tables()
        else:
            self._merge_tables(lost)
            self._show_tables()
            manifest = self._write_manifest()
        if lost is not None:
            lost.sync()
        if self._in_place:
            assert lost is not None
            self._keep_old_files(lost)
        self._target.sync()
        return manifest

    def _show_tables(self) -> None:
        if self._workshop is not self._target:
            for name in self._tables:
                self._made.append(name)
                link_or_copy(self._workshop, name, self._target)

    def _number_above(self, lost: Directory) -> None:
        """Use no number of a file that an earlier repair left in ``lost``."""
        for name in lost.names():
            parsed = parse_filename(name)
            if parsed is not None:
                self._next_number = max(self._next_number, parsed[0] + 1)

    def _open_lost(self) -> Directory | None:
        if self._in_place or self._plan.stale > 0:
            return self._target.subdirectory(LOST, create=True)
        return None

    def _new_number(self) -> int:
        number = self._next_number
        if number > MAX_FILE_NUMBER:
            raise CorruptionError("the numbers of its files are used up", self._source.path)
        self._next_number += 1
        return number

    def _new_table(self) -> TableOutput:
        number = self._new_number()
        self._tables.append(table_name(number))
        return TableOutput(self._workshop, number, self._options)

    # Tables

    def _place_tables(self, lost: Directory | None) -> None:
        """Tables stay on their levels; those of level 0 are written in the order of their age."""
        used = self._used_tables()
        for done, plan in enumerate(used):
            survey = plan.survey
            if plan.action == KEEP:
                self._kept.add(survey.name)
                if not self._in_place:
                    link_or_copy(self._source, survey.name, self._target)
                file = FileMetaData(survey.number, survey.size, survey.smallest, survey.largest)
                self._edit.add_file(survey.level, file)
            elif plan.action == REWRITE:
                output = _Output(self)
                for entries in self._kept_entries(plan, lost):
                    output.add(entries, False)
                for file in output.finish():
                    self._edit.add_file(survey.level, file)
            self._tell(done + 1, len(used), "writing tables")
        state = self._plan.survey.manifest
        if state is not None:
            for level, key in sorted(state.state.compact_pointers.items()):
                self._edit.compact_pointers.append((level, key))

    def _merge_tables(self, lost: Directory | None) -> None:
        """One sorted run of everything, on the first level that has room for it."""
        used = self._used_tables()
        total = sum(plan.survey.size for plan in used)
        cursors: list[Cursor] = [self._chain(run, lost) for run in self._runs(used)]
        memtable = MemTable(self._settings.comparator, Lock())
        for log in self._plan.logs:
            for found in self._batches(log):
                memtable.add(found.sequence, found.operations, -1)
        cursors.append(memtable.scan(None))
        output = _Output(self)
        for entries in merge_forward(cursors, self._order):
            output.add(live_entries(entries, MAX_SEQUENCE, self._order, _drop), True)
            self._tell(min(output.size, total), total, "merging tables")
        files = output.finish()
        level = 1
        while level < NUM_LEVELS - 1 and total_size(files) > max_bytes_for_level(level):
            level += 1
        for file in files:
            self._edit.add_file(level, file)

    def _runs(self, tables: list[TablePlan]) -> list[list[TablePlan]]:
        """Lists of tables whose ranges follow each other, as few lists as possible.

        Reading a list holds one file open at a time.
        """
        order = self._order
        runs: list[list[TablePlan]] = []
        for table in sorted(tables, key=lambda plan: order.of(plan.survey.smallest[:-8])):
            first = table.survey.smallest[:-8]
            for run in runs:
                if order.compare(run[-1].survey.largest[:-8], first) < 0:
                    run.append(table)
                    break
            else:
                runs.append([table])
        return runs

    def _chain(self, run: list[TablePlan], lost: Directory | None) -> Iterator[list[Entry]]:
        for plan in run:
            yield from self._kept_entries(plan, lost)

    def _used_tables(self) -> list[TablePlan]:
        """The oldest first."""
        used = [plan for plan in self._plan.tables if plan.action in (KEEP, REWRITE)]
        return sorted(used, key=lambda plan: plan.survey.number)

    def _kept_entries(self, plan: TablePlan, lost: Directory | None) -> Iterator[list[Entry]]:
        """What is kept of a table; what is stale goes into a table of ``lost``."""
        aside: TableOutput | None = None
        for kept, stale in read_entries(plan, self._source, self._options):
            for user_key, rank, value in stale:
                if aside is None:
                    assert lost is not None
                    number = self._new_number()
                    self._aside.append(table_name(number))
                    aside = TableOutput(lost, number, self._options)
                aside.add(user_key, rank, value)
            yield kept
        if aside is not None:
            aside.finish()

    # Logs

    def _replay_logs(self, logs: list[LogSurvey]) -> None:
        """What the logs hold becomes tables of level 0, newer than all others."""
        memtable = MemTable(self._settings.comparator, Lock())
        for log in logs:
            for found in self._batches(log):
                memtable.add(found.sequence, found.operations, -1)
                if memtable.usage > self._settings.write_buffer_size:
                    self._flush(memtable)
                    memtable = MemTable(self._settings.comparator, Lock())
        self._flush(memtable)

    def _batches(self, log: LogSurvey) -> Iterator[FoundBatch]:
        # What is wrong with the log was noted when it was surveyed: these notes go nowhere.
        return read_batches(self._source, LogSurvey(log.name, log.number, log.size, log.needed))

    def _flush(self, memtable: MemTable) -> None:
        number = self._new_number()
        self._tables.append(table_name(number))
        file = write_memtable(
            memtable, self._workshop, number, self._options, self._order, MAX_SEQUENCE
        )
        if file is None:
            self._tables.pop()
        else:
            self._edit.add_file(0, file)

    # MANIFEST

    def _write_manifest(self) -> int:
        """A log with nothing in it, and the MANIFEST; returns its number."""
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
            if parsed is None or parsed[1] in (FileType.LOCK, FileType.INFO_LOG):
                continue
            if name not in new:
                old.append(name)
        return old

    def _keep_old_files(self, lost: Directory) -> None:
        """Before anything is replaced, every old file is in ``lost`` too."""
        for name in self._old_files():
            if not lost.exists(name):
                link_or_copy(self._source, name, lost)
            elif not _same(self._source, lost, name):
                self._keep_another(name, lost)
        lost.sync()

    def _keep_another(self, name: str, lost: Directory) -> None:
        """``lost`` has a file of this name, from an earlier repair: this one gets a number."""
        number = 1
        while lost.exists(f"{name}.{number}"):
            number += 1
        with self._source.open(name) as file:
            copy(file, lost, f"{name}.{number}", file.size)

    def _remove_old_files(self) -> None:
        """What stays although it should go is removed at the next open."""
        for name in self._old_files():
            if name != CURRENT:
                _remove_if_there(self._target, name)
        self._target.sync()

    def _tell(self, done: int, total: int, phase: str) -> None:
        if self._progress is not None:
            self._progress(done, total, phase)


class _Output:
    """A sorted run of tables in the making: ``add* finish``."""

    def __init__(self, job: RepairJob) -> None:
        self._job = job
        self._order = job._order
        self._limit = job._settings.max_file_size
        self._table: TableOutput | None = None
        self._files: list[FileMetaData] = []
        self._written = 0
        self._last: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._written + (0 if self._table is None else self._table.size)

    def add(self, entries: list[Entry], split: bool) -> None:
        """Append entries; with ``split`` a full table ends where a user key does."""
        for user_key, rank, value in entries:
            if (
                split
                and self._table is not None
                and self._table.size >= self._limit
                and (self._last is None or self._order.compare(self._last, user_key) != 0)
            ):
                self._end_table()
            if self._table is None:
                self._table = self._job._new_table()
            self._table.add(user_key, rank, value)
            self._last = user_key

    def finish(self) -> list[FileMetaData]:
        """The finished tables, durable but for their names."""
        self._end_table()
        return self._files

    def _end_table(self) -> None:
        if self._table is not None:
            file = self._table.finish()
            self._written += file.size
            self._files.append(file)
            self._table = None


def _same(one: Directory, other: Directory, name: str) -> bool:
    """Whether two directories have the same file of this name."""
    with one.open(name) as mine, other.open(name) as theirs:
        if mine.size != theirs.size:
            return False
        for offset in range(0, mine.size, _COMPARE_CHUNK):
            if mine.read(offset, _COMPARE_CHUNK) != theirs.read(offset, _COMPARE_CHUNK):
                return False
    return True


def _remove_if_there(directory: Directory, name: str) -> None:
    try:
        directory.remove(name)
    except OSError:
        pass


def _drop(_user_key: bytes) -> bool:
    return True
