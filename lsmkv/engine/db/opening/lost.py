"""The subdirectory ``lost/``: logs that recovery has set aside, and a record of them.

The record, ``RECOVERY.json``, says what each log holds that the store does not, and whether the
user has acknowledged it: until then ``verify`` names it.  Recovery writes it, under the store's
lock, before it commits; ``verify`` and repair read it, without a lock.  LevelDB does not look into
the subdirectory.  ``docs/reference/format.md`` has the fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lsmkv.engine.db.opening.dropped import DroppedLog, RecoveryReport
from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.filenames import (
    LOST,
    LOST_RECORD,
    LOST_RECORD_NEW,
    FileType,
    parse_filename,
)
from lsmkv.engine.format.keys import MAX_SEQUENCE

_FORMAT = 1
_FIELDS = (
    *("log", "offset", "reason", "batches", "operations", "missing"),  # as in DroppedLog
    *("last_sequence", "acknowledged"),
)
_LARGEST = 1 << 20  # bytes of the record; a log takes about two hundred
_COPY_CHUNK = 1 << 20


class LostLog(NamedTuple):
    """One log of the record."""

    log: DroppedLog
    last_sequence: int
    """The store's last sequence when the log was set aside: a higher one was written since."""
    acknowledged: bool


def set_aside(directory: Directory, report: RecoveryReport, last_sequence: int) -> None:
    """Copy the logs of ``report`` into ``lost/``, and add them to the record, durably.

    It may be killed and run again.  A record that cannot be read is replaced.
    """
    names = {log.name for log in report.dropped}
    with directory.subdirectory(LOST, create=True) as lost:
        for name in sorted(names):
            if lost.exists(name):
                lost.remove(name)  # left by a recovery that did not commit
            with directory.open(name) as source, lost.create(name) as target:
                for offset in range(0, source.size, _COPY_CHUNK):
                    target.append(source.read(offset, _COPY_CHUNK))
                target.sync()
        try:
            known = [entry for entry in read_record(lost) if entry.log.name not in names]
        except CorruptionError:
            known = []
        new = [LostLog(log, last_sequence, False) for log in report.dropped]
        _write_record(lost, known + new)
    directory.sync()


def read_lost(directory: Directory) -> list[LostLog]:
    """The logs that were set aside and not acknowledged, the oldest first.

    Raises :class:`CorruptionError` if the record holds anything else than a record.
    """
    try:
        if not directory.exists(LOST):
            return []
        with directory.subdirectory(LOST) as lost:
            return [entry for entry in read_record(lost) if not entry.acknowledged]
    except (FileNotFoundError, NotADirectoryError):
        return []


def acknowledge(directory: Directory, only: set[str] | None = None) -> list[str]:
    """Note that the user knows of these logs, or of all; returns those that were not known.

    Their names are such as ``lost/000003.log``.  The caller holds the store's lock.  The logs
    themselves stay.  Raises what :func:`read_lost` raises.
    """
    names = {f"{LOST}/{entry.log.name}" for entry in read_lost(directory)}
    if only is not None:
        names &= only
    if names:
        with directory.subdirectory(LOST) as lost:
            entries: list[LostLog] = []
            for entry in read_record(lost):
                known = entry.acknowledged or entry.log.kept_as in names
                entries.append(entry._replace(acknowledged=known))
            _write_record(lost, entries)
    return sorted(names)


def lost_damage(directory: Directory, report: RecoveryReport) -> list[CorruptionError]:
    """Return one error for each log with writes that are missing and not acknowledged; [] if none.

    ``report`` is that of the opening.  Its logs count if they lie where they were: the store is
    only read.
    """
    try:
        logs = [entry.log for entry in read_lost(directory)]
    except CorruptionError as error:
        return [error]
    logs += [log for log in report.dropped if log.kept_as is None]
    path = directory.path
    return [
        CorruptionError(str(log), f"{path}/{log.kept_as or log.name}", log.offset) for log in logs
    ]


def read_record(lost: Directory) -> list[LostLog]:
    """All logs of the record in this directory; [] if it has none."""
    if not lost.exists(LOST_RECORD):
        return []
    import json  # noqa: PLC0415 - for damaged stores alone

    path = f"{lost.path}/{LOST_RECORD}"
    try:
        fields = json.loads(lost.read_file(LOST_RECORD, _LARGEST))
        if fields["format"] != _FORMAT:
            raise ValueError(f"format {fields['format']!r}")
        return [_entry(one) for one in fields["logs"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"not a record of recovery: {type(error).__name__}: {error}"
        raise CorruptionError(reason, path, 0) from None


def _entry(fields: dict[str, Any]) -> LostLog:
    name, reason, acknowledged = fields["log"], fields["reason"], fields["acknowledged"]
    parsed = parse_filename(name)
    if parsed is None or parsed[1] is not FileType.LOG:
        raise ValueError(f"{name!r} is not a log")
    if not isinstance(reason, str) or not isinstance(acknowledged, bool):
        raise TypeError("a field of another type")
    missing = None if fields["missing"] is None else _number(fields["missing"])
    log = DroppedLog(
        name,
        _number(fields["offset"]),
        reason,
        _number(fields["batches"]),
        _number(fields["operations"]),
        missing,
        f"{LOST}/{name}",
    )
    return LostLog(log, _number(fields["last_sequence"]), acknowledged)


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value <= MAX_SEQUENCE:
        raise ValueError(f"{value!r} is not a number of bytes or writes")
    return value


def _write_record(lost: Directory, entries: list[LostLog]) -> None:
    import json  # noqa: PLC0415 - for damaged stores alone

    logs: list[dict[str, Any]] = []
    for entry in entries:
        values = (*entry.log[:6], entry.last_sequence, entry.acknowledged)
        logs.append(dict(zip(_FIELDS, values, strict=True)))
    if lost.exists(LOST_RECORD_NEW):
        lost.remove(LOST_RECORD_NEW)
    with lost.create(LOST_RECORD_NEW) as file:
        file.append(json.dumps({"format": _FORMAT, "logs": logs}, indent=1).encode("ascii"))
        file.sync()
    lost.rename(LOST_RECORD_NEW, LOST_RECORD)
    lost.sync()
