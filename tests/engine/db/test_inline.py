"""``background="inline"``: no thread; calls that write or wait flush and compact.

Interrupts come at any line of the work, as a signal handler's exception would.
"""

from __future__ import annotations

import errno
import gc
import os
import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hooked import HookedEnv
from nested_calls import Interrupted, at_line
from threads import run_threads

import lsmkv
from lsmkv import DB, MemoryEnv, TableWriter
from lsmkv.testing import FaultyEnv

LINES = int(os.environ.get("LSMKV_NESTED_LINES", "1"))
"""0: an interrupt at every line; otherwise at some."""
SMALL: dict[str, Any] = {
    "background": "inline",
    "create_if_missing": True,
    "max_file_size": 16384,
    "write_buffer_size": 4096,
}


def key(n: int) -> bytes:
    return b"%05d" % n


def fill(db: DB, numbers: range) -> None:
    for n in numbers:
        db.put(key(n), bytes(100))


def units(db: DB) -> int:
    """The jobs so far: flushes, compactions and trivial moves."""
    stats = db.stats()
    return int(stats.flushes + stats.compactions + stats.trivial_moves)


def files(env: MemoryEnv) -> dict[str, bytes]:
    """All files of the store but its LOG."""
    directory = env.open_directory("db", create=False)
    found = {}
    for name in directory.names():
        if not name.startswith("LOG"):
            with directory.open(name) as file:
                found[name] = file.read(0, file.size)
    return found


def test_everything_works_and_no_thread_is_started(tmp_path: Path) -> None:
    before = threading.active_count()
    with DB(tmp_path / "db", **SMALL) as db:
        model = {key(n): bytes(100) for n in range(3000)}
        for name, value in model.items():
            db.put(name, value)
        old = db.iterator()
        with db.snapshot() as snapshot:
            for n in range(0, 3000, 2):
                db.delete(key(n))
            assert snapshot.get(key(0)) == bytes(100)
            db.compact_range()
            assert dict(snapshot.iterator()) == model
        assert dict(old) == model  # its tables are kept
        db.flush()
        with db.transaction() as transaction:
            transaction.put(b"transaction", transaction.get(key(1)) or b"")
        with TableWriter(tmp_path / "bulk.ldb") as table:
            for n in range(5000, 6000):
                table.add(key(n), b"ingested")
        db.ingest([tmp_path / "bulk.ldb"])
        assert db.get(key(5500)) == b"ingested"
        db.checkpoint(tmp_path / "copy")
        assert threading.active_count() == before
        db.check()
        held = dict(db)
        assert len(held) == 1500 + 1000 + 1
    with DB(tmp_path / "copy", background="inline") as db:
        assert dict(db) == held


def test_a_put_does_at_most_one_job() -> None:
    with DB("db", env=MemoryEnv(), **SMALL) as db:
        seen = set()
        for n in range(4000):
            before = units(db)
            db.put(key(n * 7919 % 5000), bytes(100))
            seen.add(units(db) - before)
        assert seen == {0, 1}
        assert db.stats().stalls == 0


def test_reads_never_compact() -> None:
    """A compaction that seeks have made due waits for the next write."""
    options: Any = {**SMALL, "write_buffer_size": 1 << 20, "bloom_filter_bits": 0}
    with DB("db", env=MemoryEnv(), lru_cache_size=0, **options) as db:
        for part in range(3):  # on levels 2, 1 and 0
            for n in range(300):
                db.put(key(n), b"%d" % part)
            db.flush()
        before = units(db)
        for n in range(300):
            assert db.get(key(n % 299) + b"?") is None
        list(db)
        assert units(db) == before
        db.put(key(0), b"")
        assert units(db) == before + 1
        assert db.stats().seek_compactions == 1


@pytest.mark.parametrize("seed", range(50))
def test_the_same_run_writes_the_same_files(seed: int) -> None:
    def run() -> dict[str, bytes]:
        rng = random.Random(seed)
        env = MemoryEnv()
        with DB("db", env=env, **SMALL) as db:
            for _ in range(150):
                with db.write_batch() as batch:
                    for _ in range(rng.randrange(8)):
                        batch.put(key(rng.randrange(300)), rng.randbytes(rng.randrange(150)))
                    batch.delete(key(rng.randrange(300)))
                if rng.random() < 0.02:
                    db.compact_range(key(rng.randrange(300)))
        return files(env)

    assert run() == run()


def test_writers_of_several_threads() -> None:
    with DB("db", env=MemoryEnv(), **SMALL) as db:

        def write(start: int) -> None:
            for n in range(start, start + 800):
                db.put(key(n), bytes(100))

        assert run_threads(*[partial(write, 1000 * n) for n in range(4)]) == []
        assert len(list(db)) == 3200
        db.check()


def test_a_full_disk_and_room_again() -> None:
    """What waits at the level-0 stop compacts in the call, once there is room."""
    env = NoTables(errno.ENOSPC)
    with DB("db", env=env, **SMALL) as db:
        for n in range(200):
            db.put(key(n), bytes(100))
        before = units(db)
        env.armed = True
        with pytest.raises(lsmkv.IOError) as caught:
            fill(db, range(200, 10_000))
        assert caught.value.errno == errno.ENOSPC
        assert units(db) == before
        env.armed = False
        model = dict(db)
        for n in range(200):
            db.put(key(n), b"after")
            model[key(n)] = b"after"
        assert units(db) > before
        assert dict(db) == model
        db.check()


def test_an_error_of_the_work_is_kept() -> None:
    """The write that did the work has been done; the next ones raise."""
    env = NoTables(errno.EIO)
    db = DB("db", env=env, **SMALL)
    db.put(b"early", bytes(5000))
    env.armed = True
    db.put(b"late", b"")  # begins a log, and its table fails
    with pytest.raises(lsmkv.IOError, match="broken"):
        db.put(b"later", b"")
    env.armed = False
    db.close()
    with DB("db", env=env, **SMALL) as db:
        assert db.get(b"early") == bytes(5000)


class NoTables(FaultyEnv):
    """While ``armed``, no table can be made."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.armed = False

    def _strike(self, call: str, path: str) -> None:
        super()._strike(call, path)
        if self.armed and call == "create" and path.endswith(".ldb"):
            raise OSError(self.number, "broken", path)


WORK: dict[str, Callable[[DB], object]] = {
    "put that flushes": lambda db: db.put(b"late", b""),
    "flush": lambda db: db.flush(),
    "compact_range": lambda db: db.compact_range(),
    "ingest": lambda db: db.ingest(["bulk.ldb"]),
}


@pytest.mark.parametrize("fails_too", [False, True])
def test_an_ingest_that_is_interrupted_while_another_thread_closes(fails_too: bool) -> None:
    """The commit has begun: it comes to its end, or is given up, and nobody waits for it."""
    interrupted: list[str] = []

    def before(call: str, name: str) -> None:
        if call != "sync" or not name.startswith("MANIFEST") or interrupted or db is None:
            return
        background = db._background
        assert background is not None
        if any(publication.begun for publication in background._publications):
            interrupted.append(name)
            db._opened.store.closing = True  # as another thread does that closes the store
            if fails_too:
                background.error = lsmkv.IOError(errno.EIO, "a failing disk", name)
            raise KeyboardInterrupt

    db: DB | None = None
    env = HookedEnv(before)
    with TableWriter("bulk.ldb", env=env) as table:
        table.add(b"bulk", b"1")
    db = DB("store", env=env, **SMALL)
    db.put(b"k", b"v")
    with pytest.raises(KeyboardInterrupt):
        db.ingest(["bulk.ldb"])
    db.close()
    assert len(interrupted) == 1
    with DB("store", env=env, **SMALL) as again:
        assert again.get(b"k") == b"v"
        assert again.get(b"bulk") == b"1" or fails_too
        again.check()


@pytest.mark.skipif(lsmkv.COMPILED, reason="compiled code is not interrupted between two lines")
@pytest.mark.parametrize("call", WORK)
def test_an_interrupt_at_any_line(call: str) -> None:
    """Nothing is lost, the work is done later, and no file stays."""

    def begin(env: MemoryEnv) -> tuple[DB, dict[bytes, bytes]]:
        db = DB("db", env=env, **SMALL)
        with TableWriter("bulk.ldb", env=env) as table:
            table.add(b"ingested", b"1")
        model = {}
        for n in range(60):
            model[key(n)] = bytes(100)
            db.put(key(n), bytes(100))
        big = db.write_batch()
        for n in range(60):
            model[key(n)] = b"new"
            big.put(key(n), b"new")
        big.put(b"big", bytes(5000))
        model[b"big"] = bytes(5000)
        big.write()
        return db, model

    def nothing() -> None:
        pass

    def strike() -> None:
        raise Interrupted

    db, _ = begin(MemoryEnv())
    with at_line(1 << 40, nothing, raises=True) as place:
        WORK[call](db)
    db.close()
    last = int(place[0])
    rng = random.Random(call)
    lines = range(1, last + 1) if LINES == 0 else sorted(rng.sample(range(1, last + 1), 12))
    for line in lines:
        env = MemoryEnv()
        db, model = begin(env)
        with at_line(line, strike, raises=True) as place:
            try:
                WORK[call](db)
            except Interrupted:
                pass
        try:
            check(db, env, model)
        except BaseException as error:
            error.add_note(f"{call}, interrupted at {place[0]} (line {line})")
            raise


def check(db: DB, env: MemoryEnv, model: dict[bytes, bytes]) -> None:
    def held() -> dict[bytes, bytes]:
        return {name: value for name, value in db.iterator() if name not in (b"late", b"ingested")}

    assert held() == model
    for n in range(100, 160):
        model[key(n)] = bytes(100)
        db.put(key(n), bytes(100))
    db.flush()
    db.compact_range()
    assert held() == model
    gc.collect()
    db.put(b"late", bytes(5000))
    db.flush()
    db.check()
    live = {name for name in files(env) if name.endswith(".ldb")}
    assert live == {f"{table.number:06d}.ldb" for table in db.tables()}
    assert sum(name.startswith("MANIFEST") for name in files(env)) == 1
    db.close()
    with DB("db", env=env, background="inline") as again:
        assert {
            name: value for name, value in again.iterator() if name not in (b"late", b"ingested")
        } == model
