"""lsmkv.engine.db.compact.worker: it makes the same files as the thread, byte for byte.

The worker runs in this process.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsmkv import DB, WriteBatch
from lsmkv.engine.db.compact.compaction import CompactionJob
from lsmkv.engine.db.compact.flush import write_memtable
from lsmkv.engine.db.compact.messages import CompactionRequest, FlushRequest, Report
from lsmkv.engine.db.compact.picking import compaction_of_range
from lsmkv.engine.db.compact.worker import Worker
from lsmkv.engine.env import process
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.env.process import Port, ProcessEnded
from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.format.filenames import log_name, table_name, worker_table_name
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.format.log import frame
from lsmkv.engine.util.comparator import REVERSE_BYTEWISE
from lsmkv.engine.util.compression import ZLIB
from lsmkv.errors import CorruptionError, IOError

TOKEN = "0123456789abcdef"


class Lines(Port):
    """A port that has all requests at once and keeps the reports."""

    def __init__(self, *requests: bytes, ends: bool = False) -> None:
        self.requests = deque(requests)
        self.reports: list[Report] = []
        self.ends = ends
        self.listened = 0

    def receive(self, seconds: float) -> bytes | None:
        if self.requests:
            return self.requests.popleft()
        if self.ends:
            raise ProcessEnded
        return None

    def listen(self) -> None:
        self.listened += 1
        if self.ends:
            raise ProcessEnded

    def send(self, line: bytes) -> None:
        self.reports.append(Report.decode(line))


def report_on(db: DB, request: FlushRequest | CompactionRequest) -> Report:
    """The last report of a worker on a request, whose options are those of the tables.

    The worker's own have another codec and no filters, which nothing depends on.
    """
    port = Lines(request.encode())
    own = db.options._replace(compression=ZLIB, filter_policy=None, block_size=1000)
    Worker(port, directory_of(db), TOKEN, own).serve()
    assert port.reports[0] == Report(0)
    assert all(not report.is_last for report in port.reports[:-1])
    return port.reports[-1]


def store_of(db: DB) -> Any:
    return db._store


def directory_of(db: DB) -> Directory:
    directory: Directory = store_of(db).directory
    return directory


def content(directory: Directory, name: str) -> bytes:
    return directory.read_file(name, 1 << 30)


def worker_names(directory: Directory) -> list[str]:
    return sorted(name for name in directory.names() if name.startswith(".worker-"))


def flush_request(db: DB) -> FlushRequest:
    store = store_of(db)
    memtable = store.view.memtable
    with store.lock.guard:
        live = store.pinned.all()
    return FlushRequest(1, db.options, memtable.log_number, memtable.usage, live)


def flushed_here(db: DB, request: FlushRequest) -> bytes:
    """The table that the thread makes of the memtable."""
    store = store_of(db)
    directory = MemoryEnv().open_directory("elsewhere", create=True)
    oldest = min(request.pinned, default=store.versions.last_sequence)
    files = write_memtable(
        *(store.view.memtable, directory, lambda: 1, store.options, store.order, oldest)
    )
    assert files
    return content(directory, table_name(1))


OPTIONS: list[dict[str, Any]] = [
    {},
    {"compression": None, "filter_layout": "both", "block_size": 200},
    {"comparator": REVERSE_BYTEWISE, "bloom_filter_bits": 0, "compression": "zstd"},
]

keys = st.integers(0, 30).map(lambda n: b"%02d" % n)
operations = st.lists(st.tuples(keys, st.none() | st.binary(max_size=40)), min_size=1, max_size=12)
steps = st.lists(operations | st.sampled_from(["snapshot", "sync"]), min_size=1, max_size=30)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(steps=steps, options=st.sampled_from(OPTIONS))
def test_a_flush_makes_the_same_file(steps: list[Any], options: dict[str, Any]) -> None:
    with DB("store", create_if_missing=True, env=MemoryEnv(), **options) as db:
        db.put(b"15", b"first")
        snapshots = []
        for step in steps:
            if step == "snapshot":
                snapshots.append(db.snapshot())
            elif step == "sync":
                db.sync()
            else:
                batch = WriteBatch()
                for key, value in step:
                    if value is None:
                        batch.delete(key)
                    else:
                        batch.put(key, value)
                db.write(batch)
        request = flush_request(db)
        report = report_on(db, request)
        assert report.files is not None, report
        directory = directory_of(db)
        made = content(directory, worker_table_name(TOKEN, report.files[0].number))
        assert made == flushed_here(db, request)
        assert report.files[0].size == len(made)
        del snapshots


@pytest.mark.parametrize("order", [{}, {"comparator": REVERSE_BYTEWISE}])
@pytest.mark.parametrize("last", [b"9", b"01499", b"01498", b"00000"])
@pytest.mark.parametrize("count", [1, 512, 513, 1500])
def test_a_flush_of_rising_keys(count: int, last: bytes, order: dict[str, Any]) -> None:
    """All but the last, which may be the key before once more, or lie before it."""
    with DB("store", create_if_missing=True, env=MemoryEnv(), **order) as db:
        for n in range(count):
            db.put(b"%05d" % n, b"%d" % n)
        db.put(last, b"last")
        request = flush_request(db)
        report = report_on(db, request)
        assert report.files is not None, report
        name = worker_table_name(TOKEN, report.files[0].number)
        assert content(directory_of(db), name) == flushed_here(db, request)


def test_a_flush_drops_versions_of_released_snapshots() -> None:
    """The memtable still has them: the files differ by versions that no reader sees."""
    with DB("store", create_if_missing=True, env=MemoryEnv()) as db:
        db.put(b"other", b"")
        with db.snapshot():
            db.put(b"k", b"old")
            with db.snapshot() as later:
                db.put(b"k", b"new")
                assert later.get(b"k") == b"old"
            request = flush_request(db)
            report = report_on(db, request)
            assert report.files is not None
            name = worker_table_name(TOKEN, report.files[0].number)
            assert b"old" in flushed_here(db, request)
            assert b"old" not in content(directory_of(db), name)


def test_a_flush_of_a_continued_log() -> None:
    env = MemoryEnv()
    with DB("store", create_if_missing=True, env=env) as db:
        db.put(b"a", b"1")
    with DB("store", env=env, reuse_logs=True) as db:
        db.put(b"b", b"2")
        request = flush_request(db)
        report = report_on(db, request)
        assert report.files is not None
        name = worker_table_name(TOKEN, report.files[0].number)
        assert content(directory_of(db), name) == flushed_here(db, request)


def damage(directory: Directory, name: str, change: Any) -> None:
    data = bytearray(content(directory, name))
    data = change(data)
    directory.remove(name)
    with directory.create(name) as file:
        file.append(bytes(data))


def flip(at: int) -> Any:
    def change(data: bytearray) -> bytearray:
        data[at] ^= 1
        return data

    return change


BATCH = len(frame(encode_batch(1, [(b"key0", b"value" * 3)]), 0))


@pytest.mark.parametrize(
    "change",
    [
        flip(30),
        flip(-1),
        lambda data: data[:-1],
        lambda data: data[: len(data) // 3],
        lambda data: b"",
        lambda data: data + b"\x01",
        lambda data: data[:BATCH] + bytes(7) + data[BATCH:],  # every record, and a hole
        lambda data: data[len(data) // 2 :],
        lambda data: data + data[:BATCH],  # a batch twice
        lambda data: data[BATCH : 2 * BATCH] + data[:BATCH] + data[2 * BATCH :],  # out of order
    ],
)
def test_a_damaged_log_is_declined(change: Any) -> None:
    with DB("store", create_if_missing=True, env=MemoryEnv()) as db:
        for n in range(9):
            db.put(b"key%d" % n, b"value" * 3)
        request = flush_request(db)
        directory = directory_of(db)
        damage(directory, log_name(request.log), change)
        report = report_on(db, request)
        assert report.declined is not None
        assert log_name(request.log) in report.declined
        assert worker_names(directory) == []


def test_a_log_that_is_missing_or_lacks_batches_is_declined() -> None:
    with DB("store", create_if_missing=True, env=MemoryEnv()) as db:
        db.put(b"key", b"value")
        request = flush_request(db)
        assert report_on(db, request._replace(log=77)).declined
        assert "memtable" in str(report_on(db, request._replace(usage=request.usage + 1)).declined)
        db.put(b"key", b"value")
        assert "memtable" in str(report_on(db, request).declined)


@pytest.mark.parametrize(
    "sequence", [MAX_SEQUENCE - 1, MAX_SEQUENCE, MAX_SEQUENCE + 1, 2**63 - 1, 2**63, 2**64 - 1]
)
def test_a_log_with_sequences_out_of_range_is_declined(sequence: int) -> None:
    with DB("store", create_if_missing=True, env=MemoryEnv()) as db:
        db.put(b"key", b"value")
        request = flush_request(db)
        record = frame(encode_batch(sequence, [(b"key", b"value")]), 0)
        damage(directory_of(db), log_name(request.log), lambda data: record)
        report = report_on(db, request)
        if sequence < MAX_SEQUENCE:
            assert report.files is not None
            assert report.files[0].smallest[-7:] == sequence.to_bytes(7, "little")
        else:
            assert str(sequence) in str(report.declined)


def test_entries_of_a_flush_are_freed_after_the_report() -> None:
    """The owner does not wait for that, and they are not kept until the next flush."""
    held: list[bool] = []

    class Watching(Lines):
        def send(self, line: bytes) -> None:
            super().send(line)
            held.append(worker._entries is not None)

    with DB("store", create_if_missing=True, env=MemoryEnv()) as db:
        db.put(b"k", b"v")
        port = Watching(flush_request(db).encode())
        worker = Worker(port, directory_of(db), TOKEN, db.options)
        worker.serve()
        assert port.reports[-1].is_last
        assert held == [False, True]
        assert worker._entries is None


def test_a_flush_of_an_empty_log_makes_no_table() -> None:
    with DB("store", create_if_missing=True, env=MemoryEnv()) as db:
        report = report_on(db, flush_request(db))
        assert report.files == []
        assert worker_names(directory_of(db)) == []


# Compactions


def levels(rng: random.Random, db: DB, kept: list[Any]) -> None:
    """A store of several levels, with deletions, and old versions that snapshots see."""
    for _ in range(9):
        for _ in range(60):
            key = b"%03d" % rng.randrange(150)
            if rng.random() < 0.3:
                db.delete(key)
            else:
                db.put(key, rng.randbytes(rng.randrange(60)))
            if rng.random() < 0.02:
                kept.append(db.snapshot())
        db.flush()
        if rng.random() < 0.3:
            db.compact_range(b"%03d" % rng.randrange(150), None)
        if rng.random() < 0.3 and kept:
            kept.pop(rng.randrange(len(kept))).close()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(8))
def test_a_compaction_makes_the_same_files(seed: int, options: dict[str, Any]) -> None:
    rng = random.Random(seed)
    merged = 0
    env = MemoryEnv()
    with DB("store", create_if_missing=True, env=env, max_file_size=1500, **options) as db:
        kept: list[Any] = []
        levels(rng, db, kept)
        db._background.wait_until_idle()  # type: ignore[union-attr]
        store = store_of(db)
        directory = directory_of(db)
        for level in range(6):
            picked = compaction_of_range(
                store.versions.current, level, b"%03d" % rng.randrange(150), None, db.options
            )
            if picked is None:
                continue
            with store.lock.guard:
                oldest_pinned = store.pinned.oldest(store.versions.last_sequence)
            here = env.open_directory(f"here{level}", create=True)
            for name in directory.names():
                if name.endswith(".ldb"):
                    directory.link(name, here)
            numbers = iter(range(10_000, 20_000))
            job = CompactionJob(
                picked[0],
                here,
                store.tables,
                store.options,
                lambda numbers=numbers: next(numbers),  # type: ignore[misc]
                oldest_pinned,
            )
            expected = job.run(lambda: None)
            report = report_on(db, CompactionRequest.of(4, db.options, picked[0], oldest_pinned))
            assert report.files is not None, report.error
            assert len(report.files) == len(expected)
            for file, other in zip(report.files, expected, strict=True):
                made = content(directory, worker_table_name(TOKEN, file.number))
                assert made == content(here, table_name(other.number))
                assert (file.size, file.smallest, file.largest) == (
                    other.size,
                    other.smallest,
                    other.largest,
                )
            inputs = len(picked[0].inputs + picked[0].next_inputs)
            assert report.opened["tables_opened"] == inputs
            assert report.opened["metadata_reads"] >= inputs
            assert report.opened["identity_check_reads"] == inputs
            merged += len(expected)
            for name in worker_names(directory):
                directory.remove(name)
    assert merged > 0


def test_a_compaction_of_a_damaged_table_fails_and_leaves_no_file() -> None:
    with DB("store", create_if_missing=True, env=MemoryEnv(), max_file_size=2000) as db:
        for n in range(300):
            db.put(b"%05d" % n, random.Random(n).randbytes(50))
        db.flush()
        store = store_of(db)
        directory = directory_of(db)
        level = next(at for at, files in enumerate(store.versions.current.levels) if files)
        picked = compaction_of_range(store.versions.current, level, None, None, db.options)
        assert picked is not None
        name = table_name(picked[0].inputs[0].number)
        request = CompactionRequest.of(4, db.options, picked[0], 1000)
        size = len(content(directory, name))
        damage(directory, name, flip(size // 2))
        error = report_on(db, request).error
        assert isinstance(error, CorruptionError)
        assert error.path is not None
        assert error.path.endswith(name)
        assert worker_names(directory) == []
        directory.remove(name)
        assert isinstance(report_on(db, request).error, CorruptionError)


def test_a_compaction_reports_its_progress() -> None:
    class Slow(Lines):
        def listen(self) -> None:
            time.sleep(0.06)

    with DB("store", create_if_missing=True, env=MemoryEnv()) as db:
        for n in range(3000):
            db.put(b"%05d" % n, random.Random(n).randbytes(50))
        db.flush()
        version = store_of(db).versions.current
        picked = compaction_of_range(version, 2, None, None, db.options)
        assert picked is not None
        port = Slow(CompactionRequest.of(4, db.options, picked[0], 10_000).encode())
        Worker(port, directory_of(db), TOKEN, db.options).serve()
        reported = [report.bytes_read for report in port.reports[1:-1]]
        assert len(reported) > 1
        assert reported[0] > 0
        assert reported == sorted(reported)
        assert reported[-1] <= picked[0].input_size


def test_a_worker_ends_when_its_owner_ends_during_a_compaction() -> None:
    with DB("store", create_if_missing=True, env=MemoryEnv()) as db:
        for n in range(3000):
            db.put(b"%05d" % n, random.Random(n).randbytes(50))
        db.flush()
        store = store_of(db)
        picked = compaction_of_range(store.versions.current, 2, None, None, db.options)
        assert picked is not None
        port = Lines(CompactionRequest.of(4, db.options, picked[0], 10_000).encode(), ends=True)
        with pytest.raises(ProcessEnded):
            Worker(port, directory_of(db), TOKEN, db.options).serve()
        assert port.listened == 1
        assert worker_names(directory_of(db)) == []


def test_errors_of_the_file_system_are_reported(tmp_path: Path) -> None:
    with DB(tmp_path, create_if_missing=True) as db:
        db.put(b"key", b"value")
        request = flush_request(db)
        taken = worker_table_name(TOKEN, 1)
        directory_of(db).create(taken).close()
        report = report_on(db, request)
        assert isinstance(report.error, IOError)
        assert str(report.error.filename).endswith(taken)


def test_each_request_gets_tables_of_new_numbers() -> None:
    with DB("store", create_if_missing=True, env=MemoryEnv()) as db:
        db.put(b"key", b"value")
        request = flush_request(db)
        port = Lines(request.encode(), request._replace(job=2).encode())
        Worker(port, directory_of(db), TOKEN, db.options).serve()
        assert [report.job for report in port.reports] == [0, 1, 2]
        first, second = port.reports[1].files, port.reports[2].files
        assert first is not None
        assert second is not None
        assert first[0].number != second[0].number


def test_a_worker_imports_only_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush waits for its start: each of these modules would cost 1 to 10 ms of some 35."""
    boot, work, _ = process._BOOT.partition(".main(")
    assert work
    monkeypatch.setattr(process, "_BOOT", f"{boot}\nprint(*sys.modules)")
    command = process._command("lsmkv.engine.db.compact.worker", 0, ".")
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    imported = set(done.stdout.split())
    assert "lsmkv.engine.db.compact.compaction" in imported
    assert not imported & {
        *("dataclasses", "inspect", "traceback", "logging", "subprocess", "site"),
        "sortedcontainers",
        *("lsmkv.engine.db.tree.memtable", "lsmkv.engine.db.db", "lsmkv.engine.stats"),
    }
