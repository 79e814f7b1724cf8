"""The part of a survey that is about CURRENT and MANIFESTs: the state of each, and which is in
force.

:mod:`lsmkv.repair.survey` calls these functions before it reads tables and logs.  Nothing is
written, and no lock is taken.
"""

from __future__ import annotations

from collections.abc import Container

from lsmkv.engine.db.tree.manifest import Manifest
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import ComparatorMismatchError, CorruptionError
from lsmkv.engine.format.filenames import (
    CURRENT,
    FileType,
    log_name,
    old_table_name,
    parse_filename,
    read_current,
    table_name,
)
from lsmkv.engine.format.foreign import refuse_foreign, unknown_field
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.format.log import LogReader
from lsmkv.engine.format.version_edit import MAX_LEVELS, VersionEdit, unknown_tag
from lsmkv.files.repair.flipped_bits import flips_in_log
from lsmkv.files.repair.report import ManifestSurvey, Survey, open_mended


def survey_manifests(
    directory: Directory, survey: Survey, comparator: InternalKeyComparator, names: list[str]
) -> None:
    """Survey CURRENT and every MANIFEST among ``names``, and choose the one in force.

    Raises :class:`ComparatorMismatchError` and :class:`ForeignFormatError`.  O(their size).
    """
    _survey_current(directory, survey)
    for name in names:
        parsed = parse_filename(name)
        if parsed is not None and parsed[1] is FileType.MANIFEST:
            _survey_manifest(directory, survey, name, parsed[0])
    survey.manifests.sort(key=lambda manifest: manifest.number)
    chosen = _choose_manifest(directory, survey, names)
    if chosen is None:
        if survey.manifests:
            refuse_foreign(survey.path, names)
        return
    chosen.needed = True
    ours = comparator.user_comparator.name
    state = chosen._state
    if state.comparator is not None and state.comparator != ours:
        raise ComparatorMismatchError(state.path, state.comparator, ours)
    if not state.complete:
        refuse_foreign(survey.path, names)
        chosen.whole = False
        chosen.note(0, chosen.size, "the fields that every MANIFEST begins with are missing")
    else:
        try:
            state.check(comparator)
            state.version(comparator)
        except CorruptionError as error:
            chosen.whole = False
            chosen.note(0, chosen.size, error.reason)
        _compare_with_tables(survey, chosen, names)
    survey.manifest = chosen
    for other in survey.manifests:
        if other is not chosen:
            other.remarks.append("left over: not the MANIFEST in force")


def table_file(number: int, names: Container[str]) -> str:
    """The file name under which a store finds the table."""
    name = old_table_name(number)
    return name if table_name(number) not in names and name in names else table_name(number)


def _survey_current(directory: Directory, survey: Survey) -> None:
    current = survey.current
    try:
        current.size = directory.size(CURRENT)
        read_current(directory)
    except FileNotFoundError:
        current.note(0, 0, "missing")
    except CorruptionError as error:
        current.note(0, current.size, error.reason)


def _survey_manifest(directory: Directory, survey: Survey, name: str, number: int) -> None:
    manifest = _read_manifest(directory, survey, name, number, [])
    if manifest.problems or manifest._state.tail is not None:
        with directory.open(name) as file:
            flips = flips_in_log(file)
        if flips:
            manifest = _read_manifest(directory, survey, name, number, flips)
    survey.manifests.append(manifest)


def _read_manifest(
    directory: Directory, survey: Survey, name: str, number: int, flips: list[int]
) -> ManifestSurvey:
    state = Manifest(f"{directory.path}/{name}")
    manifest = ManifestSurvey(name, number, directory.size(name), False, state)
    manifest.note_flips(flips)
    first_bad = -1
    with open_mended(directory, manifest) as file:
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
                    raise unknown_field(state.path, directory.names(), tag) from None
                first_bad = record.offset if first_bad < 0 else first_bad
                manifest.note(record.offset, record.end - record.offset, error.reason)
                continue
            manifest.records += 1
            state.apply(edit)
            manifest._lineage.note(edit)
            # A table that an edit adds to another level is not removed for good.
            added = {file.number for _, file in edit.new_files}
            survey.obsolete |= {number for _, number in edit.deleted_files} - added
    manifest.whole = manifest.records > 0 and first_bad < 0
    tail = reader.tail
    if tail is not None:
        manifest.remarks.append(f"ends at {tail.offset}: {tail.reason}")
        state.tail = tail
    return manifest


def _choose_manifest(
    directory: Directory, survey: Survey, names: list[str]
) -> ManifestSurvey | None:
    chosen: ManifestSurvey | None = None
    current = survey.current
    if not current.problems:
        wanted = read_current(directory)
        chosen = next((one for one in survey.manifests if one.name == wanted), None)
        if chosen is None:
            current.note(0, current.size, f"names {wanted}, which is missing")
    if chosen is None or _missing(chosen, names):
        other = _best_other(survey, chosen, names)
        if chosen is not None and other is not None:
            reason = f"names {chosen.name}, whose tables are missing; {other.name} has all of its"
            current.note(0, current.size, reason)
        chosen = other or chosen
    return chosen


def _best_other(
    survey: Survey, chosen: ManifestSurvey | None, names: list[str]
) -> ManifestSurvey | None:
    """The newest intact MANIFEST; one whose tables are all present is preferred.

    Every MANIFEST begins with the complete state of the store.  A MANIFEST replaces ``chosen`` only
    if it is newer and its tables are all present.
    """
    whole = [one for one in survey.manifests if one.whole and one._state.complete]
    fitting = [one for one in whole if not _missing(one, names)]
    if chosen is not None:
        fitting = [one for one in fitting if one.number > chosen.number]
        return fitting[-1] if fitting else None
    best = fitting or whole
    return best[-1] if best else None


def _compare_with_tables(survey: Survey, manifest: ManifestSurvey, names: list[str]) -> None:
    """Note that records are missing at the end of a MANIFEST, if the store's files show it.

    A MANIFEST that was cut short names tables, or a log, that a lost record removed and that no
    longer exist.  A missing file alone does not prove this: the end of the MANIFEST must also
    be damaged.  If it is sound, tables that no MANIFEST names are noted: a copy that was made while
    the store was in use has such tables too, and they may hold keys that were deleted.
    """
    unnamed = _tables_present(names) - _tables_named(manifest) - survey.obsolete
    for other in survey.manifests:
        if other.whole and other.number > manifest.number:
            unnamed -= _tables_named(other)  # made by a repair that was not finished
    log = manifest._state.log_number
    if not _missing(manifest, names) and (log == 0 or log_name(log) in names):
        return
    if manifest._state.tail is not None:
        manifest.whole = False
        manifest.note(manifest.size, 0, "records are missing at its end")
    else:
        survey.unnamed = unnamed


def _missing(manifest: ManifestSurvey, names: list[str]) -> set[int]:
    return _tables_named(manifest) - _tables_present(names)


def _tables_present(names: list[str]) -> set[int]:
    numbers: set[int] = set()
    known = set(names)
    for name in names:
        parsed = parse_filename(name)
        if (
            parsed is not None
            and parsed[1] is FileType.TABLE
            and name == table_file(parsed[0], known)
        ):
            numbers.add(parsed[0])
    return numbers


def _tables_named(manifest: ManifestSurvey) -> set[int]:
    return {number for level in manifest._state.levels for number in level}
