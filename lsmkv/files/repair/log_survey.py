"""The part of a survey that is about logs: those of the store, and those that recovery set aside.

:mod:`lsmkv.repair.survey` calls these functions once it has chosen the MANIFEST in force, and each
log before it compares them.  Nothing is written, and no lock is taken.
"""

from __future__ import annotations

from lsmkv.engine.db.opening.lost import read_lost
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.filenames import LOST, LOST_RECORD, log_name, parse_filename
from lsmkv.engine.format.log_zeros import zeros_text
from lsmkv.engine.util.text import count
from lsmkv.files.repair.damaged_log import read_batches
from lsmkv.files.repair.damaged_table import Problem
from lsmkv.files.repair.flipped_bits import flips_in_log
from lsmkv.files.repair.report import (
    FileSurvey,
    LogSurvey,
    LostLogSurvey,
    ManifestSurvey,
    Survey,
    open_mended,
)


def survey_log(
    directory: Directory, manifest: ManifestSurvey | None, name: str, number: int, start: int
) -> LogSurvey:
    """The state of a log of the store; ``start`` is :attr:`LogSurvey.start`."""
    needed = True
    if manifest is not None:
        state = manifest._state
        needed = number >= state.log_number or number == state.prev_log_number
    log = LogSurvey(name, number, directory.size(name), needed)
    log.start = start
    if not needed:
        log.remarks.append("left over: the MANIFEST says that its writes are in tables")
    _count_batches(directory, log)
    return log


def note_missing_log(survey: Survey) -> None:
    """Note the log that the MANIFEST names as the current one, if it does not exist."""
    manifest = survey.manifest
    if manifest is None or not manifest.whole or manifest._state.log_number == 0:
        return
    number = manifest._state.log_number
    if all(log.number != number for log in survey.logs):
        log = LogSurvey(log_name(number), number, -1, True)
        log.note(0, 0, "missing")
        survey.logs.insert(0, log)


def note_gaps_between_logs(logs: list[LogSurvey]) -> None:
    """Note the writes that are missing between two logs, by their sequences.

    If none are missing, damage at the end of the older log is a torn record, and zeros there are
    nothing.
    """
    expected: int | None = None
    zeros: list[LogSurvey] = []  # logs since the last batch that end in zeros
    open_ends: list[LogSurvey] = []  # logs since the last batch that end in damage
    unread = False  # whether a log before the first batch is missing, or nothing in it can be read
    for log in logs:
        if not log.needed:
            continue
        if log.batches > 0:
            if expected is not None:
                log.gap_before = None
            if expected is not None and log.first_sequence > expected:
                lost = f"writes {expected} to {log.first_sequence - 1} are missing"
                log.problems.insert(0, Problem(0, 0, lost))
                log.gap_before = expected, log.first_sequence - 1
            elif expected is not None and log.first_sequence == expected:
                for older in open_ends:
                    _take_for_torn(older)
                for older in zeros:
                    older.zeros = 0
            elif unread and expected is None and log.first_sequence > 1:
                log.gap_before = 0, log.first_sequence - 1
            open_ends = []
            zeros = []
            expected = log.last_sequence + 1
        elif log.damage:
            unread = True
        if log.tail is not None:
            open_ends.append(log)
        if log.zeros > 0:
            zeros.append(log)
    for log in zeros:
        log.remarks.append(zeros_text(log.size, log.zeros))


def survey_lost(directory: Directory, survey: Survey) -> None:
    """Survey the logs that recovery has set aside, unless the user has acknowledged them."""
    try:
        entries = read_lost(directory)
    except CorruptionError as error:
        record = FileSurvey(f"{LOST}/{LOST_RECORD}", 0, True)
        record.note(0, 0, error.reason)
        survey.others.append(record)
        return
    written = survey.last_sequence
    expected: int | None = None
    for entry in entries:
        name = entry.log.name
        parsed = parse_filename(name)
        assert parsed is not None
        log = LostLogSurvey(name, parsed[0], _size_in_lost(directory, name), entry.log.offset)
        log.is_newest = written <= entry.last_sequence
        survey.lost.append(log)
        if log.size >= 0:
            _count_batches(directory, log)
        if log.batches > 0 and log.is_newest:
            expected = entry.last_sequence + 1 if expected is None else expected
            missing_before = expected < log.first_sequence
            log.gap_before = (expected, log.first_sequence - 1) if missing_before else None
            expected = log.last_sequence + 1
        missing = entry.log.missing
        lost = "writes are missing" if missing is None else f"{count(missing, 'write')} missing"
        reason = f"set aside by recovery: {entry.log.reason}; {lost}"
        if log.size < 0:
            reason += "; the log itself is missing"
        later = [problem for problem in log.problems if problem.offset > entry.log.offset]
        log.problems = [Problem(entry.log.offset, 0, reason), *later]


def _count_batches(directory: Directory, log: LogSurvey) -> None:
    """Count its batches; if it is damaged, again without bits that are known to have flipped."""
    remarks = [*log.remarks]
    _count(directory, log)
    if not log.problems and log.remarks == remarks:
        return
    with open_mended(directory, log) as file:
        flips = flips_in_log(file)
    if flips:
        log.batches = log.operations = log.first_sequence = log.last_sequence = 0
        log.gaps, log.gap_before, log.tail, log.zeros = [], None, None, 0
        log.problems, log.remarks = [], remarks
        log.note_flips(flips)
        _count(directory, log)


def _count(directory: Directory, log: LogSurvey) -> None:
    for found in read_batches(directory, log):
        log.batches += 1
        log.operations += len(found.operations)
        if log.batches == 1:
            log.first_sequence = found.sequence
        log.last_sequence = max(log.last_sequence, found.sequence + len(found.operations) - 1)


def _take_for_torn(log: LogSurvey) -> None:
    tail = log.tail
    assert tail is not None
    log.problems.remove(tail)
    log.remarks.append(f"ends at {tail.offset}: {tail.reason}; no write is missing there")


def _size_in_lost(directory: Directory, name: str) -> int:
    with directory.subdirectory(LOST) as lost:
        return lost.size(name) if lost.exists(name) else -1
