"""lsmkv.engine.db.write.wal: whole records or none, and no acknowledgement from a poisoned log."""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import ModuleType

import pytest

import lsmkv
from lsmkv.engine.db.write import wal
from lsmkv.engine.db.write.wal import WriteAheadLog
from lsmkv.engine.env.base import WritableFile
from lsmkv.engine.format import log as log_module
from lsmkv.engine.format.log import LogReader
from lsmkv.errors import IOError as LsmkvIOError
from lsmkv.testing.faulty import FaultyEnv


class Bench:
    """A log on a disk that fails on demand."""

    def __init__(self) -> None:
        self.env = FaultyEnv()
        self.directory = self.env.open_directory("db", create=True)
        self.log = WriteAheadLog(self.directory.create("000003.log"), 3)
        self.directory.sync()

    def payloads(self, env: FaultyEnv | None = None) -> list[bytes]:
        """The records that a reader finds; there is no damage."""
        directory = (env or self.env).open_directory("db")
        with directory.open("000003.log") as file:
            reader = LogReader(file)
            records = list(reader)
            assert reader.tail is None
            assert reader.end == file.size
        assert all(record.damage is None for record in records)
        return [record.payload for record in records]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_append_survives_a_killed_process(bench: Bench) -> None:
    assert bench.log.number == 3
    assert bench.log.end == 0
    for record in (b"one", b"two", b"x" * 100_000):
        bench.log.append(record)
    assert bench.payloads(bench.env.kill()) == [b"one", b"two", b"x" * 100_000]
    assert bench.payloads(bench.env.power_cut()) == []
    assert bench.log.end == bench.directory.size("000003.log")


def test_each_append_is_one_write(bench: Bench) -> None:
    before = bench.env.calls
    bench.log.append(b"two" * 50_000)
    assert bench.env.history[before:] == ["append"]


def test_sync_makes_records_durable_and_is_not_repeated(bench: Bench) -> None:
    assert not bench.log.sync()
    assert bench.env.history.count("sync") == 0
    bench.log.append(b"one")
    assert bench.log.sync()
    assert not bench.log.sync()
    assert bench.env.history.count("sync") == 1
    bench.log.append(b"two")
    assert bench.payloads(bench.env.power_cut()) == [b"one"]
    assert bench.log.sync()
    assert bench.payloads(bench.env.power_cut()) == [b"one", b"two"]


def test_a_log_is_continued(bench: Bench) -> None:
    bench.log.append(b"one")
    bench.log.close()
    file = bench.directory.append_to("000003.log")
    log = WriteAheadLog(file, 3, file.size())
    assert log.end == 10
    log.append(b"two")
    assert bench.payloads() == [b"one", b"two"]


def test_what_a_killed_process_has_left_is_synced_before_it_counts(bench: Bench) -> None:
    bench.log.append(b"one")
    assert bench.payloads(bench.env.power_cut()) == []
    end = bench.directory.size("000003.log")
    log = WriteAheadLog(bench.directory.append_to("000003.log"), 3, end)
    assert log.sync()
    assert not log.sync()
    assert bench.payloads(bench.env.power_cut()) == [b"one"]


# A failed append


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_append_leaves_the_log_as_it_was(bench: Bench, short: bool, code: int) -> None:
    bench.log.append(b"one")
    end = bench.log.end
    bench.env.fail_at(1, OSError(code, "no"), short=short, calls=["append"])
    with pytest.raises(LsmkvIOError) as caught:
        bench.log.append(b"lost" * 20_000)
    assert caught.value.errno == code
    assert caught.value.filename == "db/000003.log"
    assert bench.log.end == end
    assert bench.payloads() == [b"one"]
    bench.log.append(b"two")  # the disk has room again
    bench.log.sync()
    assert bench.payloads(bench.env.power_cut()) == [b"one", b"two"]


@pytest.mark.parametrize("call", ["truncate", "file_size"])
def test_a_log_that_cannot_be_cut_back_is_poisoned(bench: Bench, call: str) -> None:
    bench.log.append(b"one")
    # After a short write its length is known; otherwise the file is asked for its size.
    bench.env.fail_at(1, sticky=True, short=call == "truncate", calls=["append", call])
    with pytest.raises(LsmkvIOError):
        bench.log.append(b"lost")
    bench.env.heal()
    size = bench.directory.size("000003.log")
    for _ in range(2):
        with pytest.raises(LsmkvIOError, match="reopen the store") as caught:
            bench.log.append(b"two")
        assert caught.value.errno == errno.EIO
        with pytest.raises(LsmkvIOError, match="reopen the store"):
            bench.log.sync()
        bench.log.cut_back()
    assert bench.directory.size("000003.log") == size


# A failed sync


def test_a_failed_sync_is_final(bench: Bench) -> None:
    bench.log.append(b"one")
    bench.log.sync()
    bench.log.append(b"two")
    bench.env.fail_at(1, calls=["sync"])
    with pytest.raises(LsmkvIOError) as caught:
        bench.log.sync()
    assert caught.value.errno == errno.EIO
    calls = bench.env.calls
    for _ in range(2):
        with pytest.raises(LsmkvIOError, match="reopen the store"):
            bench.log.sync()  # though a second fsync may succeed
        with pytest.raises(LsmkvIOError, match="reopen the store"):
            bench.log.append(b"three")
    bench.log.cut_back()
    assert bench.env.calls == calls
    assert bench.payloads(bench.env.power_cut()) == [b"one"]


# Every call fails in turn


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("sticky", [False, True])
def test_no_acknowledged_record_is_lost(short: bool, sticky: bool) -> None:
    n = 0
    failed = True
    while failed:
        n += 1
        bench = Bench()
        bench.env.fail_at(n, sticky=sticky, short=short)
        acknowledged: list[bytes] = []
        durable = 0
        for number in range(6):
            payload = b"%d" % number * 9000 * (number % 3)
            try:
                bench.log.append(payload)
                acknowledged.append(payload)
                if number % 2:
                    bench.log.sync()
                    durable = len(acknowledged)
            except LsmkvIOError:
                pass
        failed = bench.env.failures > 0
        directory = bench.env.kill().open_directory("db")
        with directory.open("000003.log") as file:
            found = [record.payload for record in LogReader(file)]
        assert found[: len(acknowledged)] == acknowledged
        if not sticky and not short:
            assert found == acknowledged
        survived = bench.payloads(bench.env.power_cut())
        assert survived == acknowledged[: len(survived)]
        assert len(survived) >= durable
    assert n > 6


# Interrupts


class InterruptedFile(WritableFile):
    """Passes calls on to another file, and makes one of the test's in the middle of an append."""

    def __init__(self, file: WritableFile) -> None:
        self._file = file
        self.path = file.path
        self.before: Callable[[], None] | None = None
        self.after: Callable[[], None] | None = None

    def append(self, data: bytes) -> None:
        if self.before is not None:
            self._file.append(data[: len(data) // 2])
            self.before()
        self._file.append(data)
        if self.after is not None:
            self.after()

    def size(self) -> int:
        return self._file.size()

    def truncate(self, length: int) -> None:
        self._file.truncate(length)

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("cut_back", [True, False])
def test_an_interrupted_append_is_cut_back(when: str, cut_back: bool) -> None:
    bench = Bench()
    file = InterruptedFile(bench.directory.append_to("000003.log"))
    log = WriteAheadLog(file, 3, file.size())
    log.append(b"one")
    setattr(file, when, interrupt)
    with pytest.raises(KeyboardInterrupt):
        log.append(b"interrupted")
    setattr(file, when, None)
    assert log.end == 10
    assert bench.directory.size("000003.log") > 10
    if cut_back:
        log.cut_back()
        assert bench.payloads() == [b"one"]
    log.append(b"two")  # cuts back otherwise
    assert bench.payloads() == [b"one", b"two"]


@pytest.mark.parametrize("call", ["truncate", "file_size"])
def test_an_interrupted_append_that_cannot_be_cut_back_poisons_the_log(call: str) -> None:
    bench = Bench()
    file = InterruptedFile(bench.directory.append_to("000003.log"))
    log = WriteAheadLog(file, 3, file.size())
    log.append(b"one")
    file.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        log.append(b"interrupted")
    file.before = None
    size = bench.directory.size("000003.log")
    bench.env.fail_at(1, calls=[call])
    with pytest.raises(LsmkvIOError):
        log.append(b"two")
    with pytest.raises(LsmkvIOError):
        log.append(b"three")
    assert log.end == 10
    assert bench.directory.size("000003.log") == size


@pytest.mark.skipif(getattr(lsmkv, "COMPILED", False), reason="compiled code is not traced")
@pytest.mark.parametrize("module", [wal, log_module], ids=["wal", "log"])
def test_interrupt_at_any_line_of_append(
    module: ModuleType,
    interrupted_at: Callable[[ModuleType, int, Callable[[], object]], bool],
) -> None:
    """``end`` says whether the record counts, and the file and ``sync`` agree."""
    line = 0
    outcomes: set[int] = set()
    interrupted = True
    while interrupted:
        line += 1
        bench = Bench()
        bench.log.append(b"one")
        bench.log.sync()
        interrupted = interrupted_at(module, line, lambda log=bench.log: log.append(b"two"))  # type: ignore[misc]
        outcomes.add(bench.log.end)
        expected = [b"one", b"two"] if bench.log.end == 20 else [b"one"]
        bench.log.cut_back()
        assert bench.payloads() == expected
        bench.log.sync()
        assert bench.payloads(bench.env.power_cut()) == expected, line
        bench.log.append(b"three")
        assert bench.payloads() == [*expected, b"three"]
    assert line > 5
    assert outcomes == {10, 20}
