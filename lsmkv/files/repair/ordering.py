"""The order of tables and logs that the MANIFEST proves: which of them are older than others.

A flush writes all that is in the logs before the current one.  So every write of a log is newer
than the tables whose edits came before it.  A survey finds by this which logs are not the store's,
and a repair how old a table is that is missing.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.util.text import count
from lsmkv.files.repair.lineage import Origin
from lsmkv.files.repair.placing import is_as_stated
from lsmkv.files.repair.report import LogSurvey, Survey


class Ordering:
    """The order of a survey's files, whose MANIFEST is whole."""

    def __init__(self, survey: Survey) -> None:
        assert survey.manifest is not None
        self._origins = survey.manifest._lineage.origins
        self._tables = {table.number: table for table in survey.tables if table.size >= 0}
        self._logs = [log for log in survey.logs if log.size >= 0 and log.batches > 0]

    def first_of_log(self, number: int) -> int:
        """Return a lower bound of the log's sequences, as far as older tables and logs show it."""
        logs = [log.last_sequence for log in self._logs if log.number < number]
        return max([self.last_before_log(number), *logs], default=-1) + 1

    def last_before_log(self, number: int) -> int:
        """The highest sequence in the tables that are older than the log; -1 if there is none."""
        return max(self._ends(lambda origin: 0 < origin.older_than_log <= number), default=-1)

    def first_of_table(self, number: int) -> int:
        """Return a lower bound of the sequences of entries kept or dropped in making the table.

        0 if nothing shows it.  On level 0 tables are made in the order of their numbers, and the
        entries of one are newer than all of those before it.
        """
        origin = self._origins.get(number)
        if origin is None:
            return 0
        first = self.first_of_log(origin.first_log) if origin.first_log > 0 else 0
        if origin.level == 0:
            older = self._ends(lambda before: before.level == 0 and before.file.number < number)
            first = max([first, *(last + 1 for last in older)])
        return first

    def _ends(self, is_older: Callable[[Origin], bool]) -> list[int]:
        """The highest sequences of the tables whose origins are older, if they are as stated."""
        return [
            table.last_sequence
            for table in self._tables.values()
            if (origin := self._origins.get(table.number)) is not None
            and is_older(origin)
            and is_as_stated(table, origin.file)
        ]


def leave_out_foreign_logs(survey: Survey) -> None:
    """Leave out logs whose writes have the sequences of older writes: they are another store's."""
    ordering = Ordering(survey)
    last = -1
    for log in survey._read_logs:
        before = max(last, ordering.last_before_log(log.number))
        if log.first_sequence <= before:
            log.needed = False
            log.remarks.append(
                f"not this store's: {count(log.operations, 'write')} with the sequences"
                f" {log.first_sequence} to {log.last_sequence}, but older ones end at {before}"
            )
        else:
            last = log.last_sequence


def bound_gaps(survey: Survey) -> None:
    """Bound what is missing before each log by what older tables and logs have."""
    ordering = Ordering(survey)
    for log in survey.logs:
        if log.gap_before is not None:
            first, last = log.gap_before
            first = max(first, ordering.first_of_log(log.number))
            log.gap_before = (first, last) if first <= last else None


def note_old_manifest(survey: Survey) -> None:
    """Note that a MANIFEST lacks records at its end, if files have later writes than it knows of.

    A table that it does not name is newer than all that it and the logs have, or has later writes
    than it, and the first log begins after a gap.  (A gap alone shows nothing: LevelDB leaves one
    after a write that failed.)
    """
    manifest = survey.manifest
    assert manifest is not None
    known = manifest._state.last_sequence
    logs = survey._read_logs
    latest = max([known, *(log.last_sequence for log in logs)])
    unnamed = [
        table
        for table in survey.tables
        if table.level < 0 and not table.stray and table.number not in survey.obsolete
    ]
    gap = (
        bool(logs)
        and logs[0].first_sequence > known + 1
        and any(table.last_sequence > known for table in unnamed)
    )
    if gap and logs[0].gap_before is None:
        logs[0].gap_before = known + 1, logs[0].first_sequence - 1
    if not gap and all(table.last_sequence <= latest for table in unnamed):
        return
    if manifest._state.tail is not None:
        survey._do_not_rely(manifest.size, "records are missing at its end", [*unnamed])
        for table in unnamed:
            table.remarks.clear()
    else:
        manifest.note(manifest.size, 0, "later writes are in files that it does not name")
        survey.unnamed |= {table.number for table in unnamed}


def sequences_without_files(survey: Survey, logs: list[LogSurvey]) -> list[tuple[int, int]]:
    """The first and last of the sequences, up to the highest, that no file of a store can have.

    Without a MANIFEST nothing else shows that a file is missing.  It may also be that all of these
    writes were replaced by later ones.
    """
    found = [(one.first_sequence, one.last_sequence) for one in survey.tables if one.needed]
    found += [(log.first_sequence, log.last_sequence) for log in logs]
    missing: list[tuple[int, int]] = []
    expected = 1
    for first, last in sorted(found):
        if first > expected:
            missing.append((expected, first - 1))
        expected = max(expected, last + 1)
    return missing
