"""Reads a write-ahead log that may be damaged: every batch in it, and what is wrong with it.

Surveys and repairs call it, without a lock: the log is only read, and its store is not open.
Recovery does not use it: opening a store keeps only what was written before the damage, while a
repair also keeps the batches after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.engine.env.base import Directory, RandomAccessFile
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.batch import Operation, decode_batch
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.format.log import BLOCK_SIZE, LogReader
from lsmkv.engine.format.log_zeros import SECTOR, lost_in_zeros
from lsmkv.engine.util.text import count
from lsmkv.files.repair.damaged_table import Problem
from lsmkv.files.repair.report import LogSurvey, open_mended


class FoundBatch(NamedTuple):
    """A batch of a log, and the damage between it and the batch before it."""

    sequence: int
    operations: list[Operation]
    offset: int
    damage: Problem | None


def read_batches(directory: Directory, log: LogSurvey) -> Iterator[FoundBatch]:
    """Yield the batches of a log that can be read, including those after damage.

    Damage is recorded in ``log``.  It is a remark where no write is lost: at a torn end, and where
    the next batch has the expected sequence, which shows that only a torn record was there.
    Anywhere else it is a problem.
    """
    expected: int | None = None
    damage: Problem | None = None
    with open_mended(directory, log) as file:
        reader = LogReader(file, reserved=True)
        for record in reader:
            if record.offset < log.start:
                continue
            if record.damage is not None and damage is None:
                size = record.offset - record.damage.offset
                damage = Problem(record.damage.offset, size, record.damage.reason)
                damage.reason += _zeros_in(file, damage)
            try:
                sequence, operations = decode_batch(record.payload)
                if sequence + len(operations) - 1 > MAX_SEQUENCE:
                    raise CorruptionError(f"a batch that begins with write {sequence}")
            except CorruptionError as error:
                if damage is None:
                    damage = Problem(record.offset, record.end - record.offset, error.reason)
                continue
            if damage is not None and sequence == expected:
                log.remarks.append(f"{damage.reason} at {damage.offset}: a torn record")
                damage = None
            if damage is not None:
                if expected is not None and sequence > expected:
                    damage.reason += f"; writes {expected} to {sequence - 1} are missing"
                    log.gaps.append((expected, sequence - 1))
                elif expected is None and sequence > 1:
                    log.gap_before = 0, sequence - 1
                log.problems.append(damage)
            yield FoundBatch(sequence, operations, record.offset, damage)
            damage = None
            expected = sequence + len(operations)
        log.zeros = lost_in_zeros(file, reader.end)
        tail = reader.tail
        if damage is None and tail is not None:
            if tail.torn:
                log.remarks.append(f"ends at {tail.offset}: {tail.reason}")
            else:
                damage = Problem(tail.offset, log.size - tail.offset, tail.reason)
        if damage is not None:
            log.problems.append(damage)
            log.tail = damage


def _zeros_in(file: RandomAccessFile, damage: Problem) -> str:
    """Describe how much of the damage is zeros, counted by log blocks."""
    zeros, at, end = 0, damage.offset, damage.offset + damage.size
    while at < end:
        stop = min(end, at - at % BLOCK_SIZE + BLOCK_SIZE)
        if not file.read(at, stop - at).strip(b"\0"):
            zeros += stop - at
        at = stop
    return f"; {count(zeros, 'byte')} of zeros" if zeros >= SECTOR else ""
