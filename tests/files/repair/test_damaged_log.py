"""lsmkv.repair.damaged_log: the batches of a log that can be read, and the damage between them."""

from __future__ import annotations

import pytest
from stores import rewrite

from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.format.log import LogWriter
from lsmkv.files.repair.damaged_log import FoundBatch, read_batches
from lsmkv.files.repair.report import DAMAGED, REMARKABLE, SOUND, LogSurvey


class Log:
    """A log of batches, with the offset where each record ends."""

    def __init__(self, *records: bytes) -> None:
        self.directory: Directory = MemoryEnv().open_directory("db", create=True)
        self.ends: list[int] = []
        with self.directory.create("000003.log") as file:
            writer = LogWriter(file)
            for record in records:
                writer.add_record(record)
                self.ends.append(writer.end)

    def change(self, offset: int, data: bytes) -> None:
        whole = bytearray(self.directory.read_file("000003.log", 1 << 20))
        whole[offset : offset + len(data)] = data
        self.rewrite(bytes(whole))

    def cut(self, length: int) -> None:
        self.rewrite(self.directory.read_file("000003.log", 1 << 20)[:length])

    def rewrite(self, data: bytes) -> None:
        rewrite(self.directory, "000003.log", data)

    def read(self) -> tuple[list[FoundBatch], LogSurvey]:
        survey = LogSurvey("000003.log", 3, self.directory.size("000003.log"), True)
        return list(read_batches(self.directory, survey)), survey


def batch(sequence: int, size: int = 10) -> bytes:
    return encode_batch(sequence, [(b"%d" % sequence, bytes(size))])


def test_every_batch_of_a_sound_log_is_found() -> None:
    log = Log(batch(5), batch(6), batch(9))  # LevelDB leaves gaps after a write that failed
    found, survey = log.read()
    assert [one.sequence for one in found] == [5, 6, 9]
    assert [one.operations for one in found] == [[(b"%d" % n, bytes(10))] for n in (5, 6, 9)]
    assert [one.offset for one in found] == [0, *log.ends[:2]]
    assert all(one.damage is None for one in found)
    assert survey.severity == SOUND


def test_batches_behind_damage_are_found_and_the_missing_writes_are_named() -> None:
    # A damaged record hides the rest of its block of 32 KiB.
    log = Log(batch(1), batch(2, 40_000), batch(3), batch(4))
    log.change(log.ends[0] + 20, b"damage")
    found, survey = log.read()
    assert [one.sequence for one in found] == [1, 3, 4]
    assert [one.damage is None for one in found] == [True, False, True]
    (problem,) = survey.problems
    assert problem is found[1].damage
    assert problem.offset == log.ends[0]
    assert problem.reason.endswith("writes 2 to 2 are missing")
    assert survey.severity == DAMAGED


def test_damage_that_no_write_is_missing_behind_is_a_remark() -> None:
    """A write that was cut short, and a log that was gone on with."""
    log = Log(batch(1), batch(77, 40_000), batch(2))
    log.change(log.ends[0] + 20, b"damage")
    found, survey = log.read()
    assert [one.sequence for one in found] == [1, 2]
    assert survey.problems == []
    assert ["a torn record" in remark for remark in survey.remarks] == [True]
    assert survey.severity == REMARKABLE


def test_a_torn_end_is_a_remark() -> None:
    log = Log(batch(1), batch(2))
    log.cut(log.ends[1] - 3)
    found, survey = log.read()
    assert [one.sequence for one in found] == [1]
    assert survey.problems == []
    assert [remark.startswith(f"ends at {log.ends[0]}: ") for remark in survey.remarks] == [True]


@pytest.mark.parametrize(
    "record", [b"no batch", batch(MAX_SEQUENCE + 1), encode_batch(MAX_SEQUENCE, [(b"k", b"")] * 2)]
)
def test_a_record_that_is_no_batch_is_a_problem(record: bytes) -> None:
    log = Log(batch(1), record, batch(9))
    found, survey = log.read()
    assert [one.sequence for one in found] == [1, 9]
    (problem,) = survey.problems
    assert (problem.offset, problem.size) == (log.ends[0], log.ends[1] - log.ends[0])
    _, survey = Log(batch(1), record).read()
    assert [one.offset for one in survey.problems] == [log.ends[0]]


def test_zeros_before_other_batches_are_counted() -> None:
    log = Log(batch(1), *(batch(number, 9000) for number in range(2, 20)), batch(20))
    log.change(log.ends[0], bytes(2 * 32768))
    found, survey = log.read()
    assert [one.sequence for one in found][-1] == 20
    (problem,) = survey.problems
    assert problem.reason.endswith(" bytes of zeros; writes 2 to 9 are missing")
    assert survey.severity == DAMAGED
    assert survey.zeros == 0


def test_zeros_up_to_the_end_are_counted() -> None:
    log = Log(*(batch(number, 90) for number in range(1, 500)))
    whole = log.directory.size("000003.log")
    log.change(log.ends[249], bytes(whole - log.ends[249]))
    found, survey = log.read()
    assert len(found) == 250
    assert survey.zeros == whole - log.ends[249]
    assert survey.problems == []
