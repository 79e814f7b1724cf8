"""Reads a log, a MANIFEST and CURRENT into records."""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv import files
from lsmkv.engine.errors import CorruptionError
from lsmkv.files import Damage, Edit, FileSource, Log, LogRecord, Manifest, Operation
from lsmkv.tools.dump.records import Current, Fault, fault_of


def read_log(source: FileSource) -> Iterator[LogRecord | Operation | Fault]:
    """The batches of a write-ahead log and their operations; one batch is in memory at a time."""
    for part in Log(source).walk():
        if isinstance(part, Damage):
            yield fault_of(part)
        else:
            yield from _read_batch(part)


def _read_batch(record: LogRecord) -> Iterator[LogRecord | Operation | Fault]:
    try:
        _ = record.batch.count  # raises for a record without a batch's header
        yield record
        yield from record.batch.operations()
    except CorruptionError as error:
        where = "" if error.offset is None else f", at byte {error.offset} of the record"
        yield Fault("damage", record.offset, error.reason + where)


def read_manifest(source: FileSource) -> Iterator[Edit | Fault]:
    """The version edits of a MANIFEST."""
    for part in Manifest(source).walk_edits():
        yield fault_of(part, "record") if isinstance(part, Damage) else part


def read_current(source: FileSource) -> Iterator[Current | Fault]:
    """The MANIFEST that CURRENT names."""
    file = files.Current(source)
    name = file.manifest
    if name is None:
        content = file.read(0, 64)
        yield Fault("damage", 0, f"it does not name a MANIFEST: {content!r}")
    else:
        yield Current(name)
