"""The end of the interpreter while daemon threads use a store.

Nothing that is printed then may speak of damage: the store is sound, and its next open finds it so.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import WITH_HELPERS, run_python

import lsmkv

RUNS = 20
"""Programs of each kind and end, in the long test."""

HELD_FLUSH = """
import atexit, threading, time
exiting, flushing, written = threading.Event(), threading.Event(), threading.Event()

def look():
    keys = [b"%05d" % n for n in range(FIRST)]
    assert all(db.get(key) == bytes(100) for key in keys)
    assert db.verify() == []
    db.check()
    print("sound", others)

atexit.register(look)  # before the import, so that it runs after the store has been settled
import lsmkv
from hooked import HookedEnv

def hold(call, name):
    if call != "create" or not name.endswith(".ldb"):
        return
    if flushing.is_set():
        others.append(name)
    else:
        flushing.set()
        exiting.wait()
        time.sleep(0.1)  # the main thread waits for this flush now
        start.set()
        written.wait()

def write():
    start.wait()
    try:
        for n in range(100):
            db.put(b"later %03d" % n, b"v")
    finally:
        written.set()

others = []
start = threading.Event()
db = lsmkv.DB("db", create_if_missing=True, env=HookedEnv(hold), write_buffer_size=20_000)
atexit.register(exiting.set)
threading.Thread(target=write, daemon=True).start()
FIRST = 0
while not flushing.wait(0.001):
    db.put(b"%05d" % FIRST, bytes(100))
    FIRST += 1
"""


def test_writes_during_the_last_flush_of_the_thread_do_not_flush_as_well() -> None:
    """The exit waits for the background thread.  Until that has ended, calls do no work of it."""
    done = run_python("-P", "-c", HELD_FLUSH, env=WITH_HELPERS, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "sound []\n"


BUSY = """
import random, sys, threading, time
import lsmkv

kind, path, end, seed = sys.argv[1:]
OPTIONS = {"create_if_missing": True, "write_buffer_size": 20_000, "max_file_size": 10_000}
OPTIONS |= {"block_size": 500, "max_open_files": 20}
cache = None
if kind == "cache":
    cache = lsmkv.Cache(path)
    db = cache._db
else:
    db = (lsmkv.SharedDB if kind == "shared" else lsmkv.DB)(path, **OPTIONS)

def key(n):
    return b"%08d" % (n * 7919 % 2000)

def scan(n):
    for _ in db.iterator():
        pass

def compact(n):
    db.compact_range()

def flush(n):
    db.flush()

def batch(n):
    with db.write_batch(sync=n % 10 == 0) as batch:
        for more in range(10):
            batch.put(key(n + more), bytes(100))

def snapshot(n):
    with db.snapshot() as snapshot:
        snapshot.get(key(n))
        list(snapshot.iterator(start=key(n), stop=key(n) + b"1"))

steps = [lambda n: db.get(key(n)), scan, snapshot]
if cache is None:
    steps += [lambda n: db.put(key(n), bytes(100)), batch, flush, compact]
else:
    steps += [lambda n: cache.set(key(n), bytes(100)), lambda n: cache.set(n % 20, bytes(50_000)),
        lambda n: cache.pop(key(n)), lambda n: cache.cull()]

def work(step):
    n = 0
    try:
        while True:
            step(n)
            n += 1
    except lsmkv.ClosedError:
        pass

for step in steps * 2:
    threading.Thread(target=work, args=(step,), daemon=True).start()
time.sleep(0.05 + random.Random(seed).random() * 0.3)
if end == "closed":
    (cache or db).close()
"""


def ends_well(kind: str, path: Path, end: str, seed: int) -> None:
    done = run_python("-P", "-c", BUSY, kind, path, end, str(seed), timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if kind == "cache":
        with lsmkv.Cache(path) as cache:
            assert cache.check() == []
    else:
        with lsmkv.DB(path) as db:
            db.check()
            assert db.verify() == []


@pytest.mark.parametrize("kind", ["alone", "shared"])
def test_an_end_with_daemon_threads_at_work_reports_nothing(kind: str, tmp_path: Path) -> None:
    ends_well(kind, tmp_path / "store", "open", 0)


@pytest.mark.parametrize("kind", ["alone", "shared", "cache"])
def test_many_ends_with_daemon_threads_at_work(kind: str, tmp_path: Path) -> None:
    for seed in range(1, RUNS + 1):
        for end in ("open", "closed"):
            ends_well(kind, tmp_path / f"{end}{seed}", end, seed)
