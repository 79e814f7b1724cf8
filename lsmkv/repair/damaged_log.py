"""Reading a log that may be damaged: all that is in it, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.env.base import Directory
from lsmkv.errors import CorruptionError
from lsmkv.format.batch import Operation, decode_batch
from lsmkv.format.keys import MAX_SEQUENCE
from lsmkv.format.log import LogReader
from lsmkv.repair.damaged_table import Problem
from lsmkv.repair.report import LogSurvey


class FoundBatch(NamedTuple):
    """A batch in a log, and what lies between it and the one before it."""

    sequence: int
    operations: list[Operation]
    offset: int
    damage: Problem | None


def read_batches(directory: Directory, log: LogSurvey) -> Iterator[FoundBatch]:
    """The batches of a log that can be read, those behind damage included.

    What is wrong is noted in ``log``: as a remark where the sequence goes on behind it, so that
    only an unfinished write was there, or where it is the torn end; as a problem elsewhere.
    """
    expected: int | None = None
    doubt: Problem | None = None
    with directory.open(log.name) as file:
        reader = LogReader(file)
        for record in reader:
            if record.damage is not None and doubt is None:
                size = record.offset - record.damage.offset
                doubt = Problem(record.damage.offset, size, record.damage.reason)
            try:
                sequence, operations = decode_batch(record.payload)
                if sequence + len(operations) - 1 > MAX_SEQUENCE:
                    raise CorruptionError(f"a batch of write {sequence}")
            except CorruptionError as error:
                if doubt is None:
                    doubt = Problem(record.offset, record.end - record.offset, error.reason)
                continue
            if doubt is not None and sequence == expected:
                log.remarks.append(f"{doubt.reason} at {doubt.offset}: a write cut short")
                doubt = None
            if doubt is not None:
                if expected is not None and sequence > expected:
                    doubt.reason += f"; writes {expected} to {sequence - 1} are missing"
                log.problems.append(doubt)
            yield FoundBatch(sequence, operations, record.offset, doubt)
            doubt = None
            expected = sequence + len(operations)
        tail = reader.tail
        if doubt is not None:
            log.problems.append(doubt)
        elif tail is not None and tail.torn:
            log.remarks.append(f"ends at {tail.offset}: {tail.reason}")
        elif tail is not None:
            log.note(tail.offset, log.size - tail.offset, tail.reason)
