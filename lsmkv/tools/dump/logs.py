"""Reads a log, a MANIFEST and CURRENT into records."""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError
from lsmkv.format.batch import HEADER_SIZE
from lsmkv.format.batch import Operation as BatchOperation
from lsmkv.format.filenames import FileType, parse_filename
from lsmkv.format.log import LogDamage, LogReader
from lsmkv.format.version_edit import MAX_LEVELS, VersionEdit
from lsmkv.tools.dump.records import Batch, Current, Edit, Fault, Operation
from lsmkv.tools.text import count
from lsmkv.util.coding import decode_fixed32, decode_fixed64, decode_string

_LONGEST_CURRENT = 64


def read_log(file: RandomAccessFile) -> Iterator[Batch | Operation | Fault]:
    """The batches of a write-ahead log and their operations; one batch is in memory at a time."""
    reader = LogReader(file, reserved=True)
    for record in reader:
        if record.damage is not None:
            yield _fault(record.damage)
        yield from _read_batch(record.payload, record.offset, record.end)
    if reader.tail is not None:
        yield _fault(reader.tail)


def _read_batch(payload: bytes, offset: int, end: int) -> Iterator[Batch | Operation | Fault]:
    if len(payload) < HEADER_SIZE:
        length = count(len(payload), "byte")
        yield Fault("damage", offset, f"a record of {length}, too short for a batch")
        return
    batch = Batch(offset, end, decode_fixed64(payload, 0), decode_fixed32(payload, 8))
    yield batch
    done = 0
    try:
        for key, value in operations(payload):
            yield Operation(offset, batch.sequence + done, key, value)
            done += 1
    except CorruptionError as error:
        yield Fault("damage", offset, f"{error.reason}, at byte {error.offset} of the record")
        return
    if done != batch.operations:
        told = count(done, "operation")
        yield Fault("damage", offset, f"a batch of {told} states {batch.operations:,}")


def operations(payload: bytes) -> Iterator[BatchOperation]:
    """The operations of a batch, one by one; :class:`CorruptionError` after the last sound one."""
    at = HEADER_SIZE
    while at < len(payload):
        kind = payload[at]
        if kind > 1:
            raise CorruptionError(f"a batch operation of kind {kind}", None, at)
        key, at = decode_string(payload, at + 1)
        if kind == 0:
            yield key, None
        else:
            value, at = decode_string(payload, at)
            yield key, value


def read_manifest(file: RandomAccessFile) -> Iterator[Edit | Fault]:
    """The version edits of a MANIFEST."""
    reader = LogReader(file)
    for record in reader:
        if record.damage is not None:
            yield _fault(record.damage)
        try:
            yield Edit(record.offset, record.end, VersionEdit.decode(record.payload, MAX_LEVELS))
        except CorruptionError as error:
            reason = f"{error.reason}, at byte {error.offset} of the record"
            yield Fault("damage", record.offset, reason)
    if reader.tail is not None:
        yield _fault(reader.tail)


def read_current(file: RandomAccessFile) -> Iterator[Current | Fault]:
    """The MANIFEST that CURRENT names."""
    content = file.read(0, _LONGEST_CURRENT)
    name = manifest_named(content)
    if name is None or file.size > len(content):
        yield Fault("damage", 0, f"it does not name a MANIFEST: {content!r}")
    else:
        yield Current(name)


def manifest_named(content: bytes) -> str | None:
    """The MANIFEST that CURRENT's bytes name; None unless they are its name and a newline."""
    try:
        name = content.decode("ascii")
    except UnicodeDecodeError:
        return None
    parsed = parse_filename(name[:-1])
    named = name.endswith("\n") and parsed is not None and parsed[1] is FileType.MANIFEST
    return name[:-1] if named else None


def _fault(damage: LogDamage) -> Fault:
    return Fault("torn" if damage.torn else "damage", damage.offset, damage.reason)
