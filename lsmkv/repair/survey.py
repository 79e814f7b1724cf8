"""Surveys a store's directory: reads every file, without opening the store, and records its state.

Nothing is written, and no file is trusted to be intact.  ``lsmkv verify`` prints a survey, and a
repair is planned from one.  A survey takes no lock: a repair in place holds the store's lock around
it.  ``verify`` may run while another process writes, and files that it creates or removes look like
damage: if there is damage and the directory has changed, it is surveyed again
(:func:`survey_live`).
"""

from __future__ import annotations

import os
from collections.abc import Container
from typing import Unpack

from lsmkv.db.opening.directory import open_remains
from lsmkv.db.opening.lost import acknowledge, read_record
from lsmkv.db.tree.manifest import Manifest
from lsmkv.env.base import Directory
from lsmkv.env.local import LocalEnv
from lsmkv.errors import ComparatorMismatchError, CorruptionError, raise_typed
from lsmkv.format.filenames import (
    CURRENT,
    LOCK,
    LOST_RECORD,
    FileType,
    log_name,
    old_table_name,
    parse_filename,
    read_current,
    table_name,
)
from lsmkv.format.foreign import refuse_certain, refuse_foreign, unknown_field
from lsmkv.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    TAG_SIZE,
    InternalKeyComparator,
    unpack,
)
from lsmkv.format.log import LogReader
from lsmkv.format.version_edit import MAX_LEVELS, FileMetaData, VersionEdit, unknown_tag
from lsmkv.options import OptionArguments, Options, in_stored_order, make_options
from lsmkv.repair.damaged_table import Hole, Salvage
from lsmkv.repair.log_survey import (
    note_gaps_between_logs,
    note_missing_log,
    survey_log,
    survey_lost,
)
from lsmkv.repair.report import DAMAGED, FileSurvey, ManifestSurvey, Survey, TableSurvey
from lsmkv.util.compression import NO_COMPRESSION
from lsmkv.util.progress import Progress

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

    Nothing is written and no lock is taken; the store may be open, for writing too.  Options are
    those of :class:`DB`.  ``progress`` is called with the bytes done, the total, and the name of a
    file.  Damage is not raised; it is in the survey.  Raises :class:`NotFoundError`,
    :class:`ForeignFormatError`, :class:`ComparatorMismatchError`,
    :class:`UnsupportedCompressionError` and :class:`IOError`.  Cost: reads every file once, and
    files that change meanwhile again.

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
            try:
                return _survey(directory, settings, progress)
            except ComparatorMismatchError as error:
                return _survey(directory, in_stored_order(options, error), progress)
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


def _survey(directory: Directory, settings: Options, progress: Progress | None) -> Survey:
    comparator = InternalKeyComparator(settings.comparator)
    return survey_live(directory, settings, comparator, progress)


def survey_live(
    directory: Directory,
    options: Options,
    comparator: InternalKeyComparator,
    progress: Progress | None = None,
) -> Survey:
    """:func:`survey` of one version of a store that its owner may be writing to.

    A file that a compaction has removed, or that was made since the names were listed, looks
    missing.  So damage counts only if two surveys have found the same, or if nothing has changed
    meanwhile.  A table that was found intact is not read again.
    """
    known: dict[str, TableSurvey] = {}
    before: list[tuple[str, str]] = []
    for attempt in range(_ATTEMPTS):
        state = _state_of(directory)
        try:
            found = _Surveyor(directory, options, comparator, progress, known).run()
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


def survey(
    directory: Directory,
    options: Options,
    comparator: InternalKeyComparator,
    progress: Progress | None = None,
) -> Survey:
    """Survey every file of the store in ``directory``.

    ``progress`` is called with the bytes done and the total.  O(size of the store).  Raises
    :class:`ComparatorMismatchError`, :class:`ForeignFormatError`,
    :class:`UnsupportedCompressionError` and ``OSError``; damage is not raised but noted.
    """
    return _Surveyor(directory, options, comparator, progress, {}).run()


class _Surveyor:
    def __init__(
        self,
        directory: Directory,
        options: Options,
        comparator: InternalKeyComparator,
        progress: Progress | None,
        known: dict[str, TableSurvey],
    ) -> None:
        """``known`` are tables that were surveyed before; those surveyed now are added."""
        self._directory = directory
        self._known = known
        self._options = options
        self._comparator = comparator
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
        self._survey_current()
        for name, kind in parsed.items():
            if kind is not None and kind[1] is FileType.MANIFEST:
                self._survey_manifest(name, kind[0])
        self._survey.manifests.sort(key=lambda manifest: manifest.number)
        self._choose_manifest(names)
        for name, kind in sorted(parsed.items(), key=lambda item: item[1][0] if item[1] else 0):
            if kind is None:
                continue
            if kind[1] is FileType.TEMPORARY:
                self._note_leftover(name, "left over: a temporary file")
            elif kind[1] is FileType.TABLE and name == _table_of(kind[0], parsed):
                self._survey_table(name, kind[0])
            elif kind[1] is FileType.LOG and name == log_name(kind[0]):
                start = self._starts.get(name, 0)
                log = survey_log(self._directory, self._survey.manifest, name, kind[0], start)
                self._survey.logs.append(log)
                self._report_progress(log.size, name)
            elif kind[1] in (FileType.TABLE, FileType.LOG):
                self._note_leftover(name, "left over: a store opens this file under another name")
        self._note_missing_tables()
        note_missing_log(self._survey)
        note_gaps_between_logs(self._survey.logs)
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

    # CURRENT and MANIFEST

    def _survey_current(self) -> None:
        current = self._survey.current
        try:
            current.size = self._directory.size(CURRENT)
            read_current(self._directory)
        except FileNotFoundError:
            current.note(0, 0, "missing")
        except CorruptionError as error:
            current.note(0, current.size, error.reason)

    def _survey_manifest(self, name: str, number: int) -> None:
        state = Manifest(f"{self._directory.path}/{name}")
        manifest = ManifestSurvey(name, number, self._directory.size(name), False, state)
        self._survey.manifests.append(manifest)
        first_bad = -1
        with self._directory.open(name) as file:
            reader = LogReader(file)
            for record in reader:
                if record.damage is not None:
                    first_bad = record.damage.offset if first_bad < 0 else first_bad
                    manifest.note(record.damage.offset, 0, record.damage.reason)
                try:
                    edit = VersionEdit.decode(record.payload, MAX_LEVELS)
                except CorruptionError as error:
                    tag = unknown_tag(record.payload, error)
                    if tag > 0:
                        raise unknown_field(state.path, self._directory.names(), tag) from None
                    first_bad = record.offset if first_bad < 0 else first_bad
                    manifest.note(record.offset, record.end - record.offset, error.reason)
                    continue
                manifest.records += 1
                state.apply(edit)
                manifest._lineage.note(edit)
                self._note_removed_tables(edit)
        manifest.whole = manifest.records > 0 and first_bad < 0
        tail = reader.tail
        if tail is not None:
            manifest.remarks.append(f"ends at {tail.offset}: {tail.reason}")
            state.tail = tail

    def _note_removed_tables(self, edit: VersionEdit) -> None:
        """Note the tables that an edit removes for good: those it does not add to another level."""
        added = {file.number for _, file in edit.new_files}
        self._survey.obsolete |= {number for _, number in edit.deleted_files} - added

    def _choose_manifest(self, names: list[str]) -> None:
        found = self._survey
        chosen: ManifestSurvey | None = None
        if not found.current.problems:
            wanted = read_current(self._directory)
            chosen = next((one for one in found.manifests if one.name == wanted), None)
            if chosen is None:
                found.current.note(0, found.current.size, f"names {wanted}, which is missing")
        if chosen is None or self._missing(chosen, names):
            other = self._best_other(chosen, names)
            if chosen is not None and other is not None:
                reason = (
                    f"names {chosen.name}, whose tables are missing; {other.name} has all of its"
                )
                found.current.note(0, found.current.size, reason)
            chosen = other or chosen
        if chosen is None:
            if found.manifests:
                refuse_foreign(found.path, names)
            return
        chosen.needed = True
        ours = self._comparator.user_comparator.name
        state = chosen._state
        if state.comparator is not None and state.comparator != ours:
            raise ComparatorMismatchError(state.path, state.comparator, ours)
        if not state.complete:
            refuse_foreign(found.path, names)
            chosen.whole = False
            chosen.note(0, chosen.size, "the fields that every MANIFEST begins with are missing")
        else:
            try:
                state.check(self._comparator)
                state.version(self._comparator)
            except CorruptionError as error:
                chosen.whole = False
                chosen.note(0, chosen.size, error.reason)
            self._compare_with_tables(chosen, names)
        found.manifest = chosen
        for other in found.manifests:
            if other is not chosen:
                other.remarks.append("left over: not the MANIFEST in force")

    def _best_other(self, chosen: ManifestSurvey | None, names: list[str]) -> ManifestSurvey | None:
        """The newest intact MANIFEST; one whose tables are all present is preferred.

        Every MANIFEST begins with the complete state of the store.  A MANIFEST replaces ``chosen``
        only if it is newer and its tables are all present.
        """
        whole = [one for one in self._survey.manifests if one.whole and one._state.complete]
        fitting = [one for one in whole if not self._missing(one, names)]
        if chosen is not None:
            fitting = [one for one in fitting if one.number > chosen.number]
            return fitting[-1] if fitting else None
        best = fitting or whole
        return best[-1] if best else None

    def _missing(self, manifest: ManifestSurvey, names: list[str]) -> set[int]:
        return _tables_named(manifest) - _tables_present(names)

    def _compare_with_tables(self, manifest: ManifestSurvey, names: list[str]) -> None:
        """Note that records are missing at the end of a MANIFEST, if the store's files show it.

        A MANIFEST that was cut short names tables, or a log, that a lost record removed and that no
        longer exist.  A missing file alone does not prove this: the end of the MANIFEST must be
        damaged too.  If it is sound, tables that no MANIFEST names are noted: a copy that was made
        while the store was in use has such tables too, and they may hold keys that were deleted.
        """
        unnamed = _tables_present(names) - _tables_named(manifest) - self._survey.obsolete
        for other in self._survey.manifests:
            if other.whole and other.number > manifest.number:
                unnamed -= _tables_named(other)  # made by a repair that was not finished
        log = manifest._state.log_number
        if not self._missing(manifest, names) and (log == 0 or log_name(log) in names):
            return
        if manifest._state.tail is not None:
            manifest.whole = False
            manifest.note(manifest.size, 0, "records are missing at its end")
        else:
            self._survey.unnamed = unnamed

    # Tables

    def _survey_table(self, name: str, number: int) -> None:
        size = self._directory.size(name)
        stated = self._stated(number)
        if number in self._survey.obsolete and not self._survey.levels_known:
            stated = None
        known = self._known.get(name)
        if known is not None and known.intact and stated is not None and stated[1] == known._stated:
            known.level = stated[0]
            self._survey.tables.append(known)
            self._report_progress(size, name)
            return
        table = TableSurvey(name, number, size, -1 if stated is None else stated[0])
        self._survey.tables.append(table)
        if stated is not None:
            table._stated = stated[1]
            if size != stated[1].size:
                reason = f"{size} bytes, but the MANIFEST states {stated[1].size}"
                table.note(min(size, stated[1].size), 0, reason)
        elif number in self._survey.obsolete or self._survey.levels_known:
            table.remarks.append("left over: no version names it")
        else:
            table.needed = True
        with self._directory.open(name) as file:
            self._read_table(table, Salvage(self._options, file, check_internal_keys))
        self._known[name] = table
        self._report_progress(size, name)

    def _read_table(self, table: TableSurvey, salvage: Salvage) -> None:
        table.problems += salvage.problems
        table.metadata_intact = not salvage.problems
        for piece in salvage.pieces():
            if isinstance(piece, Hole):
                table.holes.append(piece)
                continue
            if table.codec == NO_COMPRESSION:
                table.codec = salvage.codec_of(piece)
            table.blocks += 1
            table.entries += len(piece.keys)
            tags = [int.from_bytes(key[-TAG_SIZE:], "little") for key in piece.keys]
            table.deletions += sum([tag & 0xFF == KIND_DELETION for tag in tags])
            table.last_sequence = max(table.last_sequence, max(tags) >> 8)
            table.smallest = table.smallest or piece.keys[0]
            table.largest = piece.keys[-1]
        stated = table._stated
        if stated is not None:
            self._bound_last_hole(table, stated)
            _note_missing_end(table, stated)
        table.problems += table.holes
        if salvage.false_negatives > 0:
            table.note(
                0, 0, f"a filter wrongly says no to {salvage.false_negatives} of the table's keys"
            )
        if not table.intact:
            return
        if table.entries == 0:
            table.note(0, table.size, "no entries")
        elif stated is not None and (table.smallest, table.largest) != (
            stated.smallest,
            stated.largest,
        ):
            table.note(0, 0, "its first or last key is not the one that the MANIFEST states")

    def _bound_last_hole(self, table: TableSurvey, stated: FileMetaData) -> None:
        """Bound a hole at the end, found without an index, by the table's largest key."""
        if not table.holes or table.holes[-1].upper is not None:
            return
        last = table.holes[-1]
        compare = self._comparator.compare
        if last.lower is not None and compare(last.lower, stated.largest) >= 0:
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
        present = {table.number for table in self._survey.tables}
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


def _table_of(number: int, names: Container[str]) -> str:
    """The file name under which a store finds the table."""
    name = old_table_name(number)
    return name if table_name(number) not in names and name in names else table_name(number)


def _tables_present(names: list[str]) -> set[int]:
    numbers: set[int] = set()
    known = set(names)
    for name in names:
        parsed = parse_filename(name)
        if (
            parsed is not None
            and parsed[1] is FileType.TABLE
            and name == _table_of(parsed[0], known)
        ):
            numbers.add(parsed[0])
    return numbers


def _tables_named(manifest: ManifestSurvey) -> set[int]:
    return {number for level in manifest._state.levels for number in level}


def _note_missing_end(table: TableSurvey, stated: FileMetaData) -> None:
    """Count the bytes that a file lacks, if its last data is among them."""
    if table.holes and table.size < stated.size:
        last = table.holes[-1]
        if last.offset + last.size >= table.size:
            last.missing = stated.size - table.size
