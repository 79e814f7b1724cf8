"""lsmkv.engine.db.compact.pool: the store is the same, whatever becomes of its worker processes."""

from __future__ import annotations

import errno
import gc
import logging
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stores import settle
from waiting import wait_until

from lsmkv import DB, BlockCache, CorruptionError, IOError, MemoryEnv
from lsmkv.engine.db.compact import pool as workers
from lsmkv.engine.env import process
from lsmkv.engine.env.process import ProcessEnded, can_start
from lsmkv.engine.format.filenames import log_name, worker_table_name, worker_token
from lsmkv.engine.util import threads
from lsmkv.engine.util.comparator import CallableComparator

pytestmark = pytest.mark.skipif(not can_start(), reason="no interpreter to start")

PROCESS: dict[str, Any] = {"create_if_missing": True, "background": "process"}
SMALL: dict[str, Any] = {**PROCESS, "write_buffer_size": 30_000, "max_file_size": 20_000}
_PATIENCE = 30.0  # seconds; only a fault takes that long


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def pool_of(db: DB) -> Any:
    assert db._background is not None
    return db._background.workers


def pids_of(pool: Any) -> list[int]:
    """The process ids of the workers that run: at most two."""
    workers = [pool._flush_worker, pool._compaction_worker]
    return [worker.process.pid for worker in workers if worker.process and worker.is_running]


def temporaries(path: str) -> list[str]:
    return [name for name in os.listdir(path) if worker_token(name) is not None]


def tables(path: str) -> dict[str, bytes]:
    return {
        name: Path(path, name).read_bytes() for name in os.listdir(path) if name.endswith(".ldb")
    }


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def start_both(db: DB) -> int:
    """See that there are two workers; returns the process id of the one that compacts."""
    for seed in (1, 2):
        fill(db, 300, seed)
        db.flush()
    db.compact_range()
    _, compacting = pids_of(pool_of(db))
    return int(compacting)


def fill(db: DB, count: int, seed: int, size: int = 60) -> dict[bytes, bytes]:
    rng = random.Random(seed)
    model: dict[bytes, bytes] = {}
    for _ in range(count):
        key = b"%06d" % rng.randrange(count)
        if rng.random() < 0.1:
            db.delete(key)
            model.pop(key, None)
        else:
            model[key] = rng.randbytes(size)
            db.put(key, model[key])
    return model


# The same store


def build(db: DB, seed: int) -> None:
    """A store of several levels; each step waits for the background work of the one before."""
    rng = random.Random(seed)
    kept: list[Any] = []
    for _ in range(12):
        for _ in range(80):
            key = b"%03d" % rng.randrange(200)
            if rng.random() < 0.3:
                db.delete(key)
            else:
                db.put(key, rng.randbytes(rng.randrange(80)))
        if rng.random() < 0.5:
            kept.append(db.snapshot())
        db.flush()
        settle(db)
        if rng.random() < 0.3:
            db.compact_range(b"%03d" % rng.randrange(200), None)
            settle(db)
        if kept and rng.random() < 0.4:
            kept.pop(0).close()
    db.compact_range()
    settle(db)


@pytest.mark.parametrize(
    "options",
    [{}, {"compression": None, "filter_layout": "both"}, {"bloom_filter_bits": 0}],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_workers_make_the_same_store_as_the_thread(
    tmp_path: Path, seed: int, options: dict[str, Any]
) -> None:
    """The names and bytes of its tables and its counters are equal."""
    made: list[dict[str, bytes]] = []
    stats: list[dict[str, Any]] = []
    for background in ("thread", "process"):
        path = str(tmp_path / background)
        more: Any = {"background": background, "max_file_size": 2000, **options}
        with DB(path, create_if_missing=True, **more) as db:
            build(db, seed)
            assert len(pids_of(pool_of(db))) == (2 if background == "process" else 0)
            counted = db.stats().to_dict()
        for name in ("tables_opened", "metadata_reads", "metadata_bytes_read"):
            assert counted.pop(name) > 0  # the thread finds some tables open
        for level in counted["levels"]:
            del level["compaction_seconds"], level["flush_seconds"]
        stats.append(counted)
        made.append(tables(path))
    assert made[0].keys() == made[1].keys()
    assert made[0] == made[1]
    assert stats[0] == stats[1]


def test_writes_during_flushes_and_compactions(path: str) -> None:
    with DB(path, **SMALL) as db:
        model = fill(db, 20_000, 1)
        settle(db)
        assert len(pids_of(pool_of(db))) == 2
        assert db.stats().flushes > 20
        assert db.stats().compactions > 2
        assert temporaries(path) == []
        assert dict(db) == model
        db.check()
    with DB(path) as db:
        assert dict(db) == model


def test_a_flush_does_not_wait_for_a_compaction(path: str) -> None:
    with DB(path, **PROCESS, max_file_size=20_000) as db:
        compacting = start_both(db)
        fill(db, 5000, 3)
        db.flush()
        os.kill(compacting, signal.SIGSTOP)
        thread = threading.Thread(target=db.compact_range)
        thread.start()
        try:
            wait_until(lambda: db._background.jobs.compaction is not None)  # type: ignore[union-attr]
            flushes = db.stats().flushes
            db.put(b"more", b"")
            db.flush()
            assert db.stats().flushes == flushes + 1
            assert thread.is_alive()
        finally:
            os.kill(compacting, signal.SIGCONT)
            thread.join()
        db.check()


# Which stores have workers


@pytest.mark.skipif(workers.processors() < 2, reason="needs two processors")
def test_stores_that_are_written_to_a_lot_have_a_worker(path: str) -> None:
    with DB(path, create_if_missing=True, write_buffer_size=1_000_000) as db:
        model = fill(db, 10_000, 1, size=1000)
        wait_until(lambda: pids_of(pool_of(db)))
        model |= fill(db, 10_000, 2, size=1000)
        settle(db)
        log = Path(path, "LOG").read_text()
        assert "Worker process" in log
        assert "lost" not in log
        pids = pids_of(pool_of(db))
        assert pids
    assert not any(alive(pid) for pid in pids)


LARGE = 16_000_000
"""Bytes of values: enough to make a worker pay."""


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (600_000, {"write_buffer_size": 50_000}),
        (LARGE, {"env": MemoryEnv(), "place": "store"}),
        (LARGE, {"comparator": CallableComparator(lambda a, b: (a > b) - (a < b), "plain")}),
        (LARGE, {"background": "thread"}),
        (100, {"background": "process", "place": ":memory:"}),
        (100, {"background": "process", "frozen": True}),
    ],
    ids=["small", "in memory", "a comparator", "the thread", "asked for in memory", "frozen"],
)
def test_stores_that_have_no_workers(
    path: str, size: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    if "frozen" in options:
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    settings: dict[str, Any] = {"write_buffer_size": 1_000_000, "place": path, **options}
    settings.pop("frozen", None)
    with DB(settings.pop("place"), create_if_missing=True, **settings) as db:
        length = 1000 if size == LARGE else 60
        model = fill(db, max(100, size // length), 1, size=length)
        db.compact_range()
        assert dict(db) == model
        assert pids_of(pool_of(db)) == []


def test_jobs_soon_after_each_other_start_a_worker(path: str) -> None:
    """A store that is written to slowly gets none."""
    with DB(path, create_if_missing=True) as db:
        mine = pool_of(db)
        mine._enabled = True  # whatever the number of processors
        worker = mine._flush_worker
        size = workers._PAYS_FROM * 2 // 3
        mine._last_job -= 60
        assert not mine._start_if_it_pays(worker, size)
        mine._last_job -= 60
        assert not mine._start_if_it_pays(worker, size)
        assert pids_of(mine) == []
        mine._last_job -= 2
        assert mine._start_if_it_pays(worker, size)
        assert len(pids_of(mine)) == 1
        mine._last_job -= 60
        assert mine._start_if_it_pays(worker, 1)  # it is there


def test_a_large_job_at_once_after_another_starts_a_worker(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        mine = pool_of(db)
        mine._enabled = True
        mine._last_job = time.monotonic()
        assert not mine._start_if_it_pays(mine._flush_worker, workers._PAYS_FROM // 2 - 1)
        mine._bytes = 0
        mine._last_job -= 2
        assert not mine._start_if_it_pays(mine._flush_worker, workers._PAYS_FROM // 2)
        mine._bytes = 0
        assert mine._start_if_it_pays(mine._flush_worker, workers._PAYS_FROM // 2)


SLEEPS = "import time; time.sleep(1000)"  # instead of a worker that starts


def put_until_full(db: DB, part: float, size: int = 10_000) -> None:
    """Fill this part of a memtable."""
    writer = db._writer
    assert writer is not None
    wanted = part * writer._room.size
    while db._store.view.memtable.usage <= wanted:  # type: ignore[union-attr]
        db.put(b"k", bytes(size))
    db.put(b"k", b"")  # the first write that finds it so full


def put_until_immutable(db: DB) -> None:
    """Fill a memtable of a few puts until it is immutable."""
    while db._store.view.immutable is None:  # type: ignore[union-attr]
        db.put(b"k", bytes(1000))


def let_next_job_start_worker(db: DB) -> Any:
    """Let the next job start a worker, whatever the number of processors."""
    mine = pool_of(db)
    mine._enabled = True
    mine._bytes = workers._PAYS_FROM
    mine._last_job = time.monotonic()
    return mine


IN_A_PROCESS = """
import errno, sys, threading
from lsmkv import DB
from lsmkv.engine.db.compact import pool as workers

workers._AT_ONCE = 1000.0
threads, asked = [], []

class Importing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "subprocess":
            threads.append(threading.get_ident())
            if sys.argv[2] == "fails":
                raise OSError(errno.EMFILE, "Too many open files")

sys.meta_path.insert(0, Importing)
with DB(sys.argv[1], create_if_missing=True) as db:
    db._background.workers._enabled = True
    for n in range(75):
        db.put(b"%d" % n, bytes(10_000))
    assert threads == [], threads
    for n in range(75, 300):
        db.put(b"%d" % n, bytes(10_000))
    assert threads and (sys.argv[2] == "fails" or set(threads) == {threading.get_ident()}), threads
    assert sum(1 for _ in db) == 300
"""


@pytest.mark.parametrize("outcome", ["works", "fails"])
def test_the_writer_thread_imports_subprocess(path: str, outcome: str) -> None:
    """When a flush is expected: the import takes several times as long in the background thread.
    Where it fails, a later write may succeed in it, and without a worker there is the thread."""
    subprocess.run([sys.executable, "-c", IN_A_PROCESS, path, outcome], check=True)


@pytest.mark.parametrize("slowly", [True, False])
@pytest.mark.parametrize("idle_before", [0, 60])
def test_a_memtable_that_fills_fast_starts_a_worker_at_a_quarter(
    path: str, slowly: bool, idle_before: int
) -> None:
    size = workers._PAYS_FROM // 2
    with DB(path, create_if_missing=True, write_buffer_size=size) as db:
        mine = pool_of(db)
        mine._enabled = True  # whatever the number of processors
        for _ in range(2):
            mine._last_job -= idle_before
            put_until_full(db, 0.125)
            if slowly:
                db._writer._room._eighth_full -= 60  # type: ignore[union-attr]
            settle(db)
            assert pids_of(mine) == []
            put_until_full(db, 0.25)
            settle(db)
            assert len(pids_of(mine)) == (0 if slowly else 1)
            db.flush()
            mine.kill()
            mine._bytes = 0


def test_a_worker_that_has_ended_is_replaced(path: str) -> None:
    size = workers._PAYS_FROM // 2
    with DB(path, create_if_missing=True, write_buffer_size=size) as db:
        mine = pool_of(db)
        mine._enabled = True
        for _ in range(2):
            assert pids_of(mine) == []
            put_until_full(db, 0.25)
            settle(db)
            (pid,) = pids_of(mine)
            db.flush()
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: pids_of(mine) == [])
        assert temporaries(path) == []


@pytest.mark.parametrize(("less", "value"), [(1, 10_000), (0, 3 << 20)])
def test_a_small_memtable_or_one_large_batch_starts_no_worker(
    path: str, less: int, value: int
) -> None:
    size = workers._PAYS_FROM // 2 - less
    with DB(path, create_if_missing=True, write_buffer_size=size) as db:
        pool_of(db)._enabled = True
        put_until_full(db, 0.5, value)
        settle(db)
        assert pids_of(pool_of(db)) == []


def test_failing_to_start_a_worker_ahead_is_no_error(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    size = workers._PAYS_FROM // 2
    with DB(path, create_if_missing=True, write_buffer_size=size) as db:
        pool_of(db)._enabled = True
        with monkeypatch.context() as patch:
            patch.setattr(threads.system, "start_new_thread", refuse)
            put_until_full(db, 0.75)
        assert pids_of(pool_of(db)) == []
        db.put(b"k", b"v")
        db.flush()
        assert db.get(b"k") == b"v"
        assert db.stats().flushes == 1


def test_a_flush_that_no_thread_waits_for_waits_for_its_worker(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_LONGEST_START", 1000.0)
    boot = f"import os, time\nwhile not os.path.exists({path + '/go'!r}): time.sleep(0.01)\n"
    monkeypatch.setattr(process, "_BOOT", boot + process._BOOT)
    with DB(path, create_if_missing=True, write_buffer_size=10_000) as db:
        let_next_job_start_worker(db)
        put_until_immutable(db)
        wait_until(lambda: pids_of(pool_of(db)))
        assert pool_of(db)._jobs == 0
        Path(path, "go").touch()
        wait_until(lambda: db.stats().flushes)
        assert pool_of(db)._jobs == 1


@pytest.mark.parametrize("waiter", ["flush", "put"])
def test_a_flush_that_a_thread_waits_for_does_not_wait_for_a_worker(
    path: str, monkeypatch: pytest.MonkeyPatch, waiter: str
) -> None:
    monkeypatch.setattr(workers, "_LONGEST_START", 1000.0)
    monkeypatch.setattr(process, "_BOOT", SLEEPS)
    with DB(path, create_if_missing=True, write_buffer_size=10_000) as db:
        let_next_job_start_worker(db)

        def write() -> None:
            db.put(b"k", b"v")
            if waiter == "flush":
                db.flush()
            else:
                for _ in range(50):
                    db.put(b"k", bytes(1000))

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        wait_until(lambda: not thread.is_alive())
        assert len(pids_of(pool_of(db))) == 1
        assert pool_of(db)._jobs == 0
        assert db.stats().flushes >= 1


def test_closing_does_not_wait_for_a_worker_to_start(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_LONGEST_START", 1000.0)
    monkeypatch.setattr(process, "_BOOT", SLEEPS)
    db = DB(path, create_if_missing=True, write_buffer_size=10_000)
    let_next_job_start_worker(db)
    put_until_immutable(db)
    wait_until(lambda: pids_of(pool_of(db)))
    thread = threading.Thread(target=db.close, daemon=True)
    thread.start()
    wait_until(lambda: not thread.is_alive())
    assert len(tables(path)) == 1  # the thread had time for its flush, since it did not wait
    with DB(path) as db:
        assert db.get(b"k") == bytes(1000)


def test_a_worker_that_takes_too_long_to_start_is_not_waited_for(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_LONGEST_START", 0.01)
    monkeypatch.setattr(process, "_BOOT", SLEEPS)
    with DB(path, create_if_missing=True, write_buffer_size=10_000) as db:
        mine = let_next_job_start_worker(db)
        for flushes in (1, 2):
            put_until_immutable(db)
            wait_until(lambda: not db._background.busy)  # type: ignore[union-attr]
            assert db.stats().flushes >= flushes
            assert mine._jobs == 0
            # It had its time: no flush waits for this process any more.
            monkeypatch.setattr(mine._flush_worker, "started", time.monotonic() - 1000)
            monkeypatch.setattr(workers, "_LONGEST_START", 900.0)


def test_renamed_tables_are_durable_before_the_commit(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    with DB(path, **PROCESS) as db:
        store = db._store
        assert store is not None
        directory = store.directory
        rename, sync = directory.rename, directory.sync
        monkeypatch.setattr(
            directory, "rename", lambda old, new: (calls.append("rename"), rename(old, new))
        )
        monkeypatch.setattr(directory, "sync", lambda: (calls.append("sync"), sync()))
        db.put(b"k", b"v")
        db.flush()
        db.close()
    assert calls[-2:] == ["rename", "sync"]


# Failures of a worker


def test_a_worker_that_cannot_be_started(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The pool tries three times, and then no more."""
    program = tmp_path / "python3"
    program.write_text("#!/no/such/program\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with DB(path, **PROCESS) as db:
        for n in range(6):
            db.put(b"%d" % n, b"")
            db.flush()
        assert len(dict(db)) == 6
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 3
    assert all("done in a thread" in message for message in warnings)
    assert "from now on" in warnings[-1]


@pytest.mark.parametrize(
    ("boot", "said"),
    [
        ("import os; os._exit(3)", "is lost"),
        ("import time; print('nonsense', flush=True); time.sleep(60)", "malformed report"),
        ("", "could not be started: Broken pipe"),
    ],
    ids=["dies at once", "sends nonsense", "ends before its settings arrive"],
)
def test_a_worker_that_never_works(
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    boot: str,
    said: str,
) -> None:
    def refuse(*_: object) -> None:
        raise ProcessEnded("Broken pipe")

    if boot:
        monkeypatch.setattr("lsmkv.engine.env.process._BOOT", boot)
    else:
        monkeypatch.setattr("lsmkv.engine.env.process.Process.send", refuse)
    with DB(path, **PROCESS) as db:
        model = fill(db, 1000, 1)
        db.flush()
        assert dict(db) == model
        assert pids_of(pool_of(db)) == []
    assert said in caplog.text


def test_a_worker_that_does_not_answer(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with DB(path, **PROCESS) as db:
        db.put(b"k", b"1")
        db.flush()
        [pid] = pids_of(pool_of(db))
        os.kill(pid, signal.SIGSTOP)
        monkeypatch.setattr(workers, "_LONGEST_SILENCE", 0.3)
        db.put(b"k", b"2")
        db.flush()
        assert db.get(b"k") == b"2"
        assert not alive(pid)
    assert "no report for" in caplog.text


def test_obsolete_files_are_removed_during_the_next_flush(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = f"""
import os, time
from lsmkv.engine.env.process import Port
send = Port.send
def pausing(port, line):
    send(port, line)
    while b"files" in line and not os.path.exists({path + "/go"!r}):
        time.sleep(0.01)
Port.send = pausing
"""
    boot = process._BOOT.replace("__import__(", pause + "__import__(")
    monkeypatch.setattr(process, "_BOOT", boot)
    with DB(path, **PROCESS, write_buffer_size=10_000) as db:
        log = log_name(db._store.view.memtable.log_number)

        def write() -> None:
            for n in range(40):
                db.put(b"%d" % n, bytes(1000))

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        wait_until(lambda: pool_of(db)._jobs == 2)
        wait_until(lambda: not os.path.exists(os.path.join(path, log)))
        assert pool_of(db)._jobs == 2
        assert db.stats().flushes == 1
        Path(path, "go").touch()
        wait_until(lambda: not thread.is_alive())
        assert len(dict(db)) == 40


def test_an_idle_worker_may_end_while_a_request_is_on_its_way(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lsmkv.engine.env.process._BOOT", "import os; os.read(0, 100000)")
    with DB(path, **PROCESS) as db:
        model = fill(db, 1000, 1)
        db.flush()
        assert dict(db) == model
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_an_idle_worker_that_has_ended_is_replaced(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its end is no failure."""
    with DB(path, **PROCESS) as db:
        db.put(b"k", b"1")
        db.flush()
        [first] = pids_of(pool_of(db))
        os.kill(first, signal.SIGSTOP)
        pool_of(
            db
        )._flush_worker.process._process.stdin.close()  # it ends by itself once it continues
        os.kill(first, signal.SIGCONT)
        wait_until(lambda: pids_of(pool_of(db)) == [])
        db.put(b"k", b"2")
        db.flush()
        [second] = pids_of(pool_of(db))
        assert second != first
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("seed", range(3))
def test_workers_killed_at_random_lose_no_write(path: str, seed: int) -> None:
    rng = random.Random(seed)
    model: dict[bytes, bytes] = {}
    ended = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        while not ended.wait(rng.uniform(0.0, 0.15)):
            for pid in pids_of(pool_of(db)):
                if rng.random() < 0.5:
                    try:
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
                    except ProcessLookupError:
                        pass

    with DB(path, **SMALL) as db:
        pool_of(db)._failures = -10_000
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            for part in range(8):
                model |= fill(db, 5000, part)
                for key in [key for key in model if rng.random() < 0.1]:
                    db.delete(key)
                    del model[key]
                if part % 3 == 2:
                    db.compact_range()
        finally:
            ended.set()
            killer.join()
        assert killed
        expected = dict(db)
        settle(db)
        db.check()
    assert temporaries(path) == []
    with DB(path) as db:
        assert dict(db) == expected
        db.check()


def test_a_damaged_log_is_flushed_from_the_memtable(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with DB(path, **PROCESS) as db:
        model = fill(db, 1000, 1)
        [log] = [name for name in os.listdir(path) if name.endswith(".log")]
        with open(f"{path}/{log}", "r+b") as file:
            file.seek(5000)
            file.write(b"\xff\x00\xff")
        db.flush()
        assert dict(db) == model
    assert f"{log}: " in caplog.text
    with DB(path) as db:
        assert dict(db) == model


def test_a_damaged_table_is_reported_with_its_path_and_offset(path: str) -> None:
    with DB(path, **PROCESS, compression=None) as db:
        fill(db, 2000, 1)
        db.flush()
        [name] = tables(path)
        with open(f"{path}/{name}", "r+b") as file:
            file.seek(40_000)
            file.write(b"\xff\x00\xff")
        db.put(b"000500", b"")
        db.flush()
        with pytest.raises(CorruptionError) as caught:
            db.compact_range()
        assert caught.value.path == f"{path}/{name}"
        assert caught.value.offset is not None
        assert 35_000 < caught.value.offset <= 40_000
        with pytest.raises(CorruptionError):
            db.put(b"k", b"v")
    assert temporaries(path) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs prlimit")
@pytest.mark.parametrize("job", ["flush", "compaction"])
def test_a_full_disk(path: str, job: str) -> None:
    """Simulated by a limit on the size of files, for the workers alone."""
    import resource

    with DB(path, **PROCESS) as db:
        start_both(db)
        model = fill(db, 5000, 1)
        call = db.flush
        if job == "compaction":
            db.flush()
            call = db.compact_range
        for pid in pids_of(pool_of(db)):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (10_000, 10_000))
        with pytest.raises(IOError, match="too large") as caught:
            call()
        assert caught.value.errno == errno.EFBIG
        assert worker_token(os.path.basename(caught.value.filename)) is not None
        with pytest.raises(IOError):
            db.put(b"k", b"v")
    with DB(path) as db:
        assert all(db.get(key) == model[key] for key in model)
        assert temporaries(path) == []


def test_a_rename_that_fails(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with DB(path, **PROCESS) as db:
        model = fill(db, 100, 1)

        def refuse(old: str, new: str) -> None:
            raise OSError(errno.EIO, "refused", new)

        monkeypatch.setattr(db._store.directory, "rename", refuse)  # type: ignore[union-attr]
        with pytest.raises(IOError, match="refused"):
            db.flush()
        monkeypatch.undo()
    with DB(path) as db:
        assert dict(db) == model


# Ends


def big(db: DB) -> None:
    """A store whose compaction takes a while."""
    for part in range(3):
        fill(db, 30_000, part, size=200)
        db.flush()


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_close_does_not_wait_for_a_compaction(path: str, state: str) -> None:
    db = DB(path, **PROCESS, seek_compaction=False)
    big(db)
    expected = dict(db)
    thread = threading.Thread(target=swallow, args=(db.compact_range,))
    thread.start()
    wait_until(lambda: len(pids_of(pool_of(db))) == 2 and temporaries(path))
    pids = pids_of(pool_of(db))
    if state == "stopped":
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    db.close()
    thread.join()
    assert not any(alive(pid) for pid in pids)
    assert temporaries(path) == []
    with DB(path) as db:
        assert dict(db) == expected


def swallow(call: Callable[[], None]) -> None:
    try:
        call()
    except Exception:
        pass


def test_close_does_not_wait_for_a_worker_that_hangs(path: str) -> None:
    with DB(path, **PROCESS) as db:
        db.put(b"k", b"v")
        db.flush()
        [pid] = pids_of(pool_of(db))
        os.kill(pid, signal.SIGSTOP)
        db.put(b"k", b"w")
        thread = threading.Thread(target=swallow, args=(db.flush,))
        thread.start()
        wait_until(lambda: db._store.view.immutable is not None)  # type: ignore[union-attr]
        db.close()
        thread.join()
        assert not alive(pid)
    assert "heard" not in Path(path, "LOG").read_text()  # close did not wait for it
    assert temporaries(path) == []
    with DB(path) as db:
        assert dict(db) == {b"k": b"w"}


def test_a_compaction_reports_its_progress(path: str) -> None:
    reported: list[int] = []
    with DB(path, **PROCESS, seek_compaction=False) as db:
        big(db)
        db.compact_range(progress=lambda done, total, phase: reported.append(done))
        assert reported == sorted(reported)
        assert len(set(reported)) > 2
        db.check()


@pytest.mark.usefixtures("signals_are_heard")
def test_an_interrupted_range_compaction_is_given_up(path: str) -> None:
    """By KeyboardInterrupt, though the worker does not answer."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with DB(path, **PROCESS) as db:
        compacting = start_both(db)
        model = fill(db, 5000, 3)
        db.flush()
        os.kill(compacting, signal.SIGSTOP)
        old = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3, 1.0)
            with pytest.raises(KeyboardInterrupt):
                db.compact_range()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        wait_until(lambda: not alive(compacting))
        db.put(b"k", b"v")
        db.compact_range()
        assert compacting not in pids_of(pool_of(db))
        assert len(pids_of(pool_of(db))) == 2
        assert all(db.get(key) == model[key] for key in model)


def test_a_handle_that_is_garbage_collected_kills_its_worker(path: str) -> None:
    db = DB(path, **PROCESS)
    db.put(b"k", b"v")
    db.flush()
    [pid] = pids_of(pool_of(db))
    handles = [db]
    del db
    with pytest.warns(ResourceWarning, match="unclosed"):
        handles.clear()
    assert not alive(pid)


def test_tables_of_dead_workers_are_removed_at_open_and_after_commits(path: str) -> None:
    with DB(path, **PROCESS) as db:
        db.put(b"k", b"v")
    token = "0123456789abcdef"
    for number in (1, 7):
        Path(path, worker_table_name(token, number)).write_bytes(b"half a table")
    kept = [".worker-0123-1.tmp", f".worker-{token}-1.tmp.gz", "worker.tmp"]
    for name in kept:
        Path(path, name).write_bytes(b"not the engine's")
    with DB(path, read_only=True) as db:
        assert len(temporaries(path)) == 2
    with DB(path, **PROCESS) as db:
        assert temporaries(path) == []
        Path(path, worker_table_name(token, 2)).write_bytes(b"by a worker of an owner before")
        db.put(b"k", b"w")
        db.flush()
        assert temporaries(path) == []
        assert pids_of(pool_of(db))
    assert set(kept) <= set(os.listdir(path))


def test_leveldb_ignores_tables_of_dead_workers(path: str) -> None:
    plyvel = pytest.importorskip("plyvel")
    with DB(path, **PROCESS) as db:
        model = fill(db, 100, 1)
        db.flush()
    Path(path, worker_table_name("0123456789abcdef", 1)).write_bytes(b"half a table")
    with plyvel.DB(path) as other:
        assert dict(other) == model


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_touch_the_worker(path: str) -> None:
    with DB(path, **PROCESS) as db:
        db.put(b"k", b"v")
        db.flush()
        pids = pids_of(pool_of(db))
        worker = pool_of(db)._flush_worker.process
        pipe = worker._input
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with pytest.raises(OSError, match="Bad file"):
                    os.fstat(pipe)
                db.close()
                del db
                gc.collect()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        db.put(b"k", b"w")
        db.flush()
        # Or it has ended by itself: on a busy machine the child may take longer than it waits.
        assert pids_of(pool_of(db)) == pids or worker.status == 0


def test_a_shared_block_cache_works_with_workers(path: str) -> None:
    with DB(path, **PROCESS, block_cache=BlockCache(1 << 20)) as db:
        model = fill(db, 1000, 1)
        db.compact_range()
        assert dict(db) == model


OWNER = """
    import os, sys, threading
    import lsmkv
    {before}
    db = lsmkv.DB({path!r}, **{options!r})
    report = os.open({report!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    n = 0
    while n < {limit}:
        db.put(b"%08d" % (n * 7919 % 1000003), b"%08d" % n * 12)
        n += 1
        if n % 500 == 0:
            pool = db._background.workers
            workers = [pool._flush_worker, pool._compaction_worker]
            pids = [one.process.pid for one in workers if one.process and one.is_running]
            os.write(report, b"%d %s\\n" % (n, " ".join(map(str, pids)).encode()))
    {after}
"""


def owner(
    path: str, report: Path, limit: int, before: str = "", after: str = "", **more: Any
) -> subprocess.Popen[bytes]:
    options = {**SMALL, "write_buffer_size": 100_000, **more}
    program = textwrap.dedent(OWNER).format(
        path=path, report=str(report), limit=limit, before=before, after=after, options=options
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def written(report: Path) -> tuple[int, list[int]]:
    """How far the owner has come, and the workers that it reported last."""
    lines = report.read_text().splitlines() if report.exists() else []
    if not lines:
        return 0, []
    count, *pids = lines[-1].split()
    return int(count), [int(pid) for pid in pids]


@pytest.mark.parametrize("seed", range(4))
def test_the_owner_is_killed(path: str, tmp_path: Path, seed: int) -> None:
    """The store can be opened at once, nothing is lost, and temporary tables are removed."""
    report = tmp_path / "report"
    process = owner(path, report, 10**9)
    wait_until(lambda: len(written(report)[1]) == 2)
    time.sleep(random.Random(seed).uniform(0, 0.5))
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()
    count, pids = written(report)
    with DB(path) as db:
        for n in range(count):
            key = b"%08d" % (n * 7919 % 1000003)
            assert db.get(key) == b"%08d" % n * 12
        died = time.monotonic()
        wait_until(lambda: not any(alive(pid) for pid in pids))
        assert time.monotonic() - died < 30
        db.put(b"k", b"v")
        db.flush()
        assert temporaries(path) == []
        db.check()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "db.close()"),
        ("", ""),
        ("for fd in 0, 1: os.close(fd)", "db.close()"),
        ("os.chdir('/')", ""),
        ("", "threading.Thread(target=db.compact_range, daemon=True).start()"),
    ],
)
def test_the_owner_ends(path: str, tmp_path: Path, before: str, after: str) -> None:
    """In any way: it does so quietly, and its workers end too."""
    report = tmp_path / "report"
    process = owner(path, report, 20_000, before, after)
    try:
        _, errors = process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    if "Thread" in after:
        assert b"ResourceWarning" not in errors
    else:
        assert (process.returncode, errors) == (0, b"")
    count, pids = written(report)
    assert count == 20_000
    assert len(pids) == 2
    assert not any(alive(pid) for pid in pids)
    assert temporaries(path) == []


@pytest.mark.usefixtures("signals_are_heard")
def test_ctrl_c_at_any_moment(path: str) -> None:
    """Acknowledged writes are there, and no worker is lost.

    A key whose put was interrupted has the value of that put or the one before; if several puts of
    it in a row were interrupted, it has the value of any of these.
    """

    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    rng = random.Random(1)
    model: dict[bytes, bytes] = {}
    uncertain: dict[bytes, list[bytes]] = {}
    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        with DB(path, **SMALL) as db:
            for _ in range(150):
                key = value = b""
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.02), 1.0)
                    while True:
                        key, value = b"%04d" % rng.randrange(3000), rng.randbytes(100)
                        db.put(key, value)
                        model[key] = value
                        uncertain.pop(key, None)
                        if rng.random() < 0.001:
                            db.flush()
                        elif rng.random() < 0.0005:
                            db.compact_range()
                except Interrupted:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    uncertain.setdefault(key, []).append(value)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            settle(db)
            found = dict(db)
            for key in model.keys() | uncertain.keys():
                assert found.get(key) in [model.get(key), *uncertain.get(key, [])]
            db.check()
            assert "lost" not in Path(path, "LOG").read_text()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert temporaries(path) == []
