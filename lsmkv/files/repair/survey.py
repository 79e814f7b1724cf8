"""Surveys a store's directory: reads every file, without opening the store, and records its state.

Nothing is written, and no file is trusted to be intact.  ``lsmkv verify`` prints a survey, and a
repair is planned from one.  A survey takes no lock: a repair in place holds the store's lock around
it.  ``verify`` may run while another process writes, and files that it creates or removes look like
damage: if there is damage and the directory has changed, it is surveyed again
(:func:`survey_live`).
"""

from __future__ import annotations

import os
from typing import Unpack

from lsmkv.engine.db.opening.directory import open_remains
from lsmkv.engine.db.opening.lost import acknowledge, read_record
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import raise_typed
from lsmkv.engine.format.filenames import (
    LOCK,
    LOST_RECORD,
    FileType,
    log_name,
    parse_filename,
    table_name,
)
from lsmkv.engine.format.foreign import refuse_certain
from lsmkv.engine.format.keys import KIND_VALUE, TAG_SIZE, InternalKeyComparator, unpack
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import OptionArguments, Options, make_options
from lsmkv.engine.util.compression import NO_COMPRESSION
from lsmkv.engine.util.progress import Progress
from lsmkv.files.repair.damaged_table import Hole, Salvage
from lsmkv.files.repair.flipped_bits import flips_in_table
from lsmkv.files.repair.in_order import survey_in_order
from lsmkv.files.repair.log_survey import (
    note_gaps_between_logs,
    note_missing_log,
    survey_log,
    survey_lost,
)
from lsmkv.files.repair.manifest_survey import survey_manifests, table_file
from lsmkv.files.repair.ordering import bound_gaps, leave_out_foreign_logs, note_old_manifest
from lsmkv.files.repair.placing import place_tables
from lsmkv.files.repair.report import DAMAGED, FileSurvey, Survey, TableSurvey, open_mended

_ATTEMPTS = 500  # in each, the writer may be faster


def check_internal_keys(keys: list[bytes]) -> None:
    """Raise :class:`CorruptionError` unless all of ``keys`` are internal keys."""
    for key in keys:
        if len(key) < TAG_SIZE or key[-TAG_SIZE] > KIND_VALUE:
            unpack(key)  # which raises


def survey_db(
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    **options: Unpack[OptionArguments],
) -> Survey:
    """The state of every file of the store in ``path``, which may be too damaged to be opened.

    Nothing is written and no lock is taken; the store may be open, even for writing.  Options are
    those of :class:`DB`.  ``progress`` is called with the bytes done, the total, and the name of a
    file.  Damage is not raised; it is in the survey.  Raises :class:`NotFoundError`,
    :class:`ForeignFormatError`, :class:`ComparatorMismatchError`,
    :class:`UnsupportedCompressionError` and :class:`IOError`.  Cost: reads every file once, and
    again if it changes during the call.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"ant", b"six")
    ...     db.flush()
    >>> (table,) = survey_db("store", env=env).tables
    >>> table.name, table.level, table.entries, table.problems
    ('000006.ldb', 2, 1, [])
    """
    settings = make_options(**options)
    env = LocalEnv() if settings.env is None else settings.env
    try:
        with open_remains(env, os.fsdecode(path)) as directory:

            def look(settings: Options) -> Survey:
                return survey_live(directory, settings, progress)

            return survey_in_order(directory.path, options, look)[1]
    except OSError as error:
        raise_typed(error)


def acknowledge_lost(path: str | os.PathLike[str]) -> list[str]:
    """:meth:`lsmkv.DB.acknowledge_recovery` for a store that is not open; takes its lock.

    Returns the names of the logs in ``lost/`` that were not acknowledged before.  Raises
    :class:`NotFoundError`, :class:`LockedError`, :class:`CorruptionError` and :class:`IOError`.
    Cost: one small file is written, if there is such a log.

    >>> import lsmkv, tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     lsmkv.DB(path, create_if_missing=True).close()
    ...     acknowledge_lost(path)
    []
    """
    try:
        with open_remains(LocalEnv(), os.fsdecode(path)) as directory:
            lock = directory.lock(LOCK)
            try:
                return acknowledge(directory)
            finally:
                lock.close()
    except OSError as error:
        raise_typed(error)


def survey_live(directory: Directory, options: Options, progress: Progress | None = None) -> Survey:
    """:func:`survey` of one version of a store that its owner may be writing to.

    A file that a compaction has removed, or that was made since the names were listed, looks
    missing.  So damage counts only if two surveys have found the same, or if nothing has changed
    between them.  A table that was found intact is not read again.
    """
    known: dict[str, TableSurvey] = {}
    before: list[tuple[str, str]] = []
    for attempt in range(_ATTEMPTS):
        state = _state_of(directory)
        try:
            found = _Surveyor(directory, options, progress, known).run()
        except FileNotFoundError:
            if attempt == _ATTEMPTS - 1 or _state_of(directory) == state:
                raise
            continue
        if found.severity < DAMAGED or _state_of(directory) == state:
            return found
        damage = [(file.name, repr(file.problems)) for file in found.files if file.problems]
        if damage == before:
            return found
        before = damage
    return found


def _state_of(directory: Directory) -> list[tuple[str, int]]:
    """A value that changes whenever a writer commits: the names, and how long each MANIFEST is."""
    state: list[tuple[str, int]] = []
    for name in sorted(directory.names()):
        parsed = parse_filename(name)
        size = 0
        if parsed is not None and parsed[1] is FileType.MANIFEST:
            try:
                size = directory.size(name)
            except FileNotFoundError:
                pass
        state.append((name, size))
    return state


def survey(directory: Directory, options: Options, progress: Progress | None = None) -> Survey:
    """Survey every file of the store in ``directory``.

    ``progress`` is called with the bytes done and the total.  O(size of the store).  Raises
    :class:`ComparatorMismatchError`, :class:`ForeignFormatError`,
    :class:`UnsupportedCompressionError` and ``OSError``; damage is not raised but noted.
    """
    return _Surveyor(directory, options, progress, {}).run()


class _Surveyor:
    def __init__(
        self,
        directory: Directory,
        options: Options,
        progress: Progress | None,
        known: dict[str, TableSurvey],
    ) -> None:
        """``known`` are tables that were surveyed before; those surveyed now are added."""
        self._directory = directory
        self._known = known
        self._options = options
        self._comparator = InternalKeyComparator(options.comparator)
        self._progress = progress
        self._done = 0
        self._total = 0
        self._survey = Survey(directory.path)
        self._starts: dict[str, int] = {}  # of logs that count only in part

    def run(self) -> Survey:
        names = self._names()
        refuse_certain(self._directory.path, names)
        parsed = {name: parse_filename(name) for name in names}
        for name, kind in parsed.items():
            if kind is not None and kind[1] in (FileType.TABLE, FileType.LOG):
                self._total += self._directory.size(name)
        survey_manifests(self._directory, self._survey, self._comparator, names)
        by_number = sorted(parsed.items(), key=lambda item: item[1][0] if item[1] else 0)
        tables = {
            kind[0]: name
            for name, kind in by_number
            if kind is not None
            and kind[1] is FileType.TABLE
            and name == table_file(kind[0], parsed)
        }
        self._survey_tables(tables)
        for name, kind in by_number:
            if kind is None or name in tables.values():
                continue
            if kind[1] is FileType.TEMPORARY:
                self._note_leftover(name, "left over: a temporary file")
            elif kind[1] is FileType.LOG and name == log_name(kind[0]):
                start = self._starts.get(name, 0)
                log = survey_log(self._directory, self._survey.manifest, name, kind[0], start)
                self._survey.logs.append(log)
                self._report_progress(log.size, name)
            elif kind[1] in (FileType.TABLE, FileType.LOG):
                self._note_leftover(name, "left over: a store opens this file under another name")
        self._note_missing_tables()
        note_missing_log(self._survey)
        if self._survey.levels_known:
            leave_out_foreign_logs(self._survey)
        note_gaps_between_logs(self._survey.logs)
        if self._survey.levels_known:
            note_old_manifest(self._survey)
        if self._survey.levels_known:  # still
            bound_gaps(self._survey)
        survey_lost(self._directory, self._survey)
        self._survey.tables.sort(key=lambda table: (table.level, table.number))
        return self._survey

    def _names(self) -> list[str]:
        """The files to survey; in ``lost/`` itself these are the logs that recovery has set
        aside."""
        names = sorted(self._directory.names())
        if LOST_RECORD not in names:
            return names
        self._starts = {entry.log.name: entry.log.offset for entry in read_record(self._directory)}
        return [name for name in names if name in self._starts]

    def _note_leftover(self, name: str, remark: str) -> None:
        leftover = FileSurvey(name, self._directory.size(name), False)
        leftover.remarks.append(remark)
        self._survey.others.append(leftover)

    # Tables

    def _survey_tables(self, tables: dict[int, str]) -> None:
        for number, name in tables.items():
            self._survey_table(name, number)
        if self._survey.levels_known:
            place_tables(self._survey, self._comparator, self._read_table)
            if not self._survey.levels_known:
                self._survey.tables.clear()
                for number, name in tables.items():
                    self._survey_table(name, number)

    def _survey_table(self, name: str, number: int) -> None:
        size = self._directory.size(name)
        stated = self._stated(number)
        if not self._survey.levels_known and (
            number in self._survey.obsolete or self._survey.strangers
        ):
            stated = None
        known = self._known.get(name)
        if known is not None and known.intact and stated is not None and stated[1] == known._stated:
            known.level = stated[0]
            self._survey.tables.append(known)
            self._report_progress(size, name)
            return
        table = self._read_table(name, number, *(stated or (-1, None)))
        self._survey.tables.append(table)
        if stated is None and (number in self._survey.obsolete or self._survey.levels_known):
            table.remarks.append("left over: no version names it")
        elif stated is None:
            table.needed = True
        self._report_progress(size, name)

    def _read_table(
        self, name: str, number: int, level: int, stated: FileMetaData | None
    ) -> TableSurvey:
        """Read a table; if it is damaged, again without the bits that are known to have flipped."""
        table = self._read_without(name, number, level, stated, [])
        if table.problems:
            with self._directory.open(name) as file:
                flips = flips_in_table(file, self._options.max_block_bytes)
            if flips:
                table = self._read_without(name, number, level, stated, flips)
        self._known[name] = table
        return table

    def _read_without(
        self, name: str, number: int, level: int, stated: FileMetaData | None, flips: list[int]
    ) -> TableSurvey:
        size = self._directory.size(name)
        table = TableSurvey(name, number, size, level)
        table._stated = stated
        table.note_flips(flips)
        if stated is not None and size != stated.size:
            reason = f"{size} bytes, but the MANIFEST states {stated.size}"
            table.note(min(size, stated.size), 0, reason)
        with open_mended(self._directory, table) as file:
            self._read_pieces(table, Salvage(self._options, file, check_internal_keys))
        return table

    def _read_pieces(self, table: TableSurvey, salvage: Salvage) -> None:
        table.problems += salvage.problems
        table.metadata_intact = not salvage.problems
        for piece in salvage.pieces():
            table.reads_last = not isinstance(piece, Hole)
            if isinstance(piece, Hole):
                table.reads_first = table.reads_first and table.blocks > 0
                table.holes.append(piece)
                continue
            if table.codec == NO_COMPRESSION:
                table.codec = salvage.codec_of(piece)
            table.blocks += 1
            table._count([key[-TAG_SIZE:] for key in piece.keys])
            table.smallest = table.smallest or piece.keys[0]
            table.largest = piece.keys[-1]
        stated = table._stated
        if stated is not None:
            self._bound_holes(table, stated)
            _note_missing_end(table, stated)
        table.problems += table.holes
        if salvage.false_negatives > 0:
            table.note(
                0, 0, f"a filter wrongly says no to {salvage.false_negatives} of the table's keys"
            )
        if table.intact and table.entries == 0:
            table.note(0, table.size, "no entries")

    def _bound_holes(self, table: TableSurvey, stated: FileMetaData) -> None:
        """Bound holes at the beginning, and at the end if there is no index, by the table's
        keys."""
        if table.holes and table.holes[0].lower is None:
            table.holes[0].lower = stated.smallest
        if not table.holes or table.holes[-1].upper is not None:
            return
        last = table.holes[-1]
        compare = self._comparator.compare
        if table.blocks > 0 and last.lower is not None and compare(last.lower, stated.largest) >= 0:
            table.holes.pop()  # it lies after the data: it is an index or a filter
        else:
            last.upper = stated.largest

    def _stated(self, number: int) -> tuple[int, FileMetaData] | None:
        manifest = self._survey.manifest
        if manifest is None:
            return None
        for level, files in enumerate(manifest._state.levels):
            file = files.get(number)
            if file is not None:
                return level, file
        return None

    def _note_missing_tables(self) -> None:
        """Note the tables that the MANIFEST names and that do not exist."""
        manifest = self._survey.manifest
        if manifest is None or not manifest.whole:
            return
        present = {table.number for table in self._survey.tables if table.level >= 0}
        for level, files in enumerate(manifest._state.levels):
            for number, file in files.items():
                if number not in present:
                    table = TableSurvey(table_name(number), number, -1, level)
                    table._stated = file
                    table.metadata_intact = False
                    hole = Hole(0, 0, "missing", file.smallest, file.largest, [])
                    hole.missing = file.size
                    table.holes.append(hole)
                    table.note(0, file.size, "missing")
                    self._survey.tables.append(table)

    def _report_progress(self, size: int, name: str) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._total, name)


def _note_missing_end(table: TableSurvey, stated: FileMetaData) -> None:
    """Count the bytes that a file lacks, if its last data is among them."""
    if table.holes and table.size < stated.size:
        last = table.holes[-1]
        if last.offset + last.size >= table.size:
            last.missing = stated.size - table.size
