"""The part of a survey that asks of each table whether it is the one that the MANIFEST states.

A careless restore may exchange two tables, or add one from another store.  Its entries would then
count as newer or older than they are.  A MANIFEST states of each table its size and its first and
last internal keys, which have sequences in them, so that no two tables of a store agree in them.

:mod:`lsmkv.repair.survey` calls :func:`place_tables` once it has read all tables.  Nothing is
written, and no lock is taken.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.format.keys import TAG_SIZE, InternalKeyComparator
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.util.text import count, escape
from lsmkv.files.repair.report import ManifestSurvey, Survey, TableSurvey

Reread = Callable[[str, int, int, FileMetaData | None], TableSurvey]
"""Surveys a file again, as the table of a number, a level, and what the MANIFEST states of it."""


def place_tables(survey: Survey, comparator: InternalKeyComparator, reread: Reread) -> None:
    """Give each file to the table of the MANIFEST that it is, and leave out the others.

    If none of several tables is as the MANIFEST states, it is not the MANIFEST of these files, and
    no longer counts as whole.
    """
    manifest = survey.manifest
    assert manifest is not None
    stated = [table for table in survey.tables if table._stated is not None]
    misfits = [table for table in stated if not can_be_stated(table, comparator)]
    if not misfits:
        return
    fitting = {table.number for table in stated} - {table.number for table in misfits}
    strays = misfits + [table for table in survey.tables if table._stated is None]
    placed: list[TableSurvey] = []
    for level, files in enumerate(manifest._state.levels):
        for number, file in files.items():
            if number in fitting:
                continue
            found = next((one for one in strays if is_as_stated(one, file)), None)
            if found is not None:
                strays.remove(found)
                survey.tables.remove(found)
                table = reread(found.name, number, level, file)
                table.note(0, 0, f"it is table {number:06} of {manifest.name}, under another name")
                placed.append(table)
    survey.tables += placed
    left = [table for table in misfits if table in strays]
    if not fitting and not placed and len(left) > 1:
        survey.strangers = True
        manifest.whole = False
        manifest.note(0, 0, f"none of its {len(left)} tables is as it states")
        return
    for table in left:
        _leave_out(table, manifest)


def can_be_stated(table: TableSurvey, comparator: InternalKeyComparator) -> bool:
    """Return True if a file can be the table that the MANIFEST states, as far as it can be read."""
    stated = table._stated
    assert stated is not None
    if table.entries == 0:
        return True
    compare = comparator.compare
    if table.reads_first and table.smallest != stated.smallest:
        return False
    if table.reads_last and table.size >= stated.size and table.largest != stated.largest:
        return False
    return (
        compare(stated.smallest, table.smallest) <= 0
        and compare(table.largest, stated.largest) <= 0
    )


def is_as_stated(table: TableSurvey, file: FileMetaData) -> bool:
    """Return True if a file is exactly as the MANIFEST states a table."""
    return (table.size, table.smallest, table.largest) == (file.size, file.smallest, file.largest)


def _leave_out(table: TableSurvey, manifest: ManifestSurvey) -> None:
    """Take a file for no part of the store, and say what it holds."""
    first, last = escape(table.smallest[:-TAG_SIZE]), escape(table.largest[:-TAG_SIZE])
    table.level = -1
    table._stated = None
    table.needed = False
    table.problems = [one for one in table.problems if one.size > 0]
    table.stray = (
        f"not the table that {manifest.name} states: {count(table.entries, 'entry')},"
        f" writes {table.first_sequence:,} to {table.last_sequence:,},"
        f" keys from '{first}' to '{last}'"
    )
    table.remarks.append(table.stray)
