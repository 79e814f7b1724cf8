"""A store takes no more descriptors, memory and room on the disk than what is in it asks for.

It is opened and closed again and again; it has many more tables than it may open files; a few keys
are written over a great many times; iterators and snapshots are forgotten instead of closed.
"""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from study import Outcome, Say

import lsmkv
from lsmkv import DB, MemoryEnv

KIB = 1024
MIB = 1024 * KIB

CYCLES = 20
OVERWRITES = 10_000
KEYS = 1_000
TABLES = (150, 500)
DESCRIPTORS = 64
MAX_OPEN_FILES = 40
OTHER_FILES = 10
"""So many of ``max_open_files`` are for other files than tables."""


def run(size: float, seed: int, say: Say) -> Outcome:
    """Cycles and overwrites grow with ``size``."""
    outcome = Outcome()
    open_and_close(outcome, max(CYCLES, int(size * CYCLES)))
    say("opened and closed")
    many_tables(outcome, TABLES[size >= 100])
    say("many tables")
    overwrite(outcome, max(OVERWRITES, int(size * OVERWRITES)), random.Random(seed))
    say("written over")
    long_manifest(outcome, max(600, int(size * 100)))
    say("committed")
    forget(outcome)
    return outcome


def descriptors() -> dict[str, str]:
    """The open descriptors of this process, and what they are of."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            pass  # that of the listing itself
    return found


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """Tells how many bytes Python objects take, garbage left out."""

    def now() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    begun = not tracemalloc.is_tracing()
    if begun:
        tracemalloc.start()
    try:
        yield now
    finally:
        if begun:
            tracemalloc.stop()


# Opening and closing


def open_and_close(outcome: Outcome, cycles: int) -> None:
    """A store on disk, used a little each time, with things left open that it must close."""
    with tempfile.TemporaryDirectory() as path, traced() as memory:
        marks: list[int] = []
        before: dict[str, str] = {}
        threads = 0
        for cycle in range(cycles):
            if cycle == cycles // 4:
                before, threads = descriptors(), threading.active_count()
            if cycle >= cycles // 4 and (cycle - cycles // 4) % max(1, cycles // 4) == 0:
                marks.append(memory())
            use_once(path, cycle)
            outcome.count("cycles")
        marks.append(memory())
        gc.collect()
        leaked = {fd: what for fd, what in descriptors().items() if before.get(fd) != what}
        if leaked:
            outcome.violations.append(f"{cycles} cycles leak descriptors: {leaked}")
        if threading.active_count() > threads:
            outcome.violations.append(f"{cycles} cycles leak threads: {threading.enumerate()}")
        growth = marks[-1] - marks[0]
        if growth > 256 * KIB:
            outcome.violations.append(f"{cycles} cycles leak {growth:,} bytes")


def use_once(path: str, cycle: int) -> None:
    """One life of a store; every third ends with an error."""
    db = DB(f"{path}/db", create_if_missing=True, background="thread", mapped_log=cycle % 2 == 0)
    try:
        for n in range(5):
            db.put(b"%d" % n, b"%d" % cycle * 100)
        if cycle % 4 == 0:
            db.flush()
        iterator = db.iterator()
        next(iterator)
        snapshot = db.snapshot()
        snapshot.get(b"1")
        if cycle % 3 == 0:
            DB(f"{path}/db")
    except lsmkv.LockedError:
        pass
    finally:
        db.close()
    if cycle % 5 == 0:
        with DB(f"{path}/db", read_only=True) as db:
            list(db)
    try:
        DB(f"{path}/none")
    except lsmkv.NotFoundError:
        pass


# Many tables


def many_tables(outcome: Outcome, tables: int) -> None:
    """In a process of its own, which may open few files."""
    path = [str(Path(lsmkv.__file__).parent.parent), str(Path(__file__).parent)]
    done = subprocess.run(
        [sys.executable, __file__, str(tables)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        outcome.violations.append(f"{tables} tables: {done.stdout} {done.stderr[-2000:]}")
        return
    most, count = done.stdout.split()
    outcome.count("tables", int(count))
    outcome.count("tables open at once", int(most))
    if int(most) > MAX_OPEN_FILES - OTHER_FILES:
        outcome.violations.append(f"{most} tables are open, max_open_files is {MAX_OPEN_FILES}")
    if int(count) < tables:
        outcome.violations.append(f"there were {count} tables only")


def with_many_tables(tables: int) -> None:
    """The process: prints how many tables were open at most, and how many there were."""
    import resource  # not on every platform

    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    most = 0

    def look() -> None:
        nonlocal most
        open_tables = [what for what in descriptors().values() if what.endswith(".ldb")]
        most = max(most, len(open_tables))

    with tempfile.TemporaryDirectory() as path:
        options: dict[str, Any] = {
            "max_open_files": MAX_OPEN_FILES, "max_file_size": 1024, "block_size": 1024,
            "write_buffer_size": 32 * KIB, "compression": None, "background": "thread",
            "lru_cache_size": 0,
        }  # fmt: skip
        count = tables * 9
        with DB(f"{path}/db", create_if_missing=True, **options) as db:
            for n in range(count):
                db.put(b"%06d" % (n * 7919 % count), b"v" * 150)
            db.flush()
            db.compact_range()
            look()
            found = len(db.tables())
            for n in range(0, count, 3):
                if db.get(b"%06d" % n) is None:
                    raise AssertionError(f"{n} is lost")
                if n % 50 == 0:
                    look()
            for reverse in (False, True):
                for at, _ in enumerate(db.iterator(reverse=reverse)):
                    if at % 100 == 0:
                        look()
                if at != count - 1:
                    raise AssertionError(f"{at + 1} entries of {count}")
            if db.verify():
                raise AssertionError("damage")
            look()
    print(most, found)


# Writing over


def overwrite(outcome: Outcome, writes: int, rng: random.Random) -> None:
    """A thousand keys, in a store whose directory and memory are measured now and then."""
    buffer = 64 * KIB
    value = 100
    data = KEYS * (value + 30)
    with tempfile.TemporaryDirectory() as path, traced() as memory:
        marks = []
        largest = 0
        with DB(
            f"{path}/db", create_if_missing=True, write_buffer_size=buffer, max_file_size=buffer,
            background="thread", lru_cache_size=256 * KIB,
        ) as db:  # fmt: skip
            for n in range(writes):
                db.put(b"%04d" % rng.randrange(KEYS), b"%d" % n * (value // len(b"%d" % n)))
                if n % (writes // 40) == 0:
                    size = directory_size(f"{path}/db")
                    largest = max(largest, size)
                if n % (writes // 4) == writes // 4 - 1:
                    db.get(b"0000")
                    marks.append(memory())
            outcome.count("overwrites", writes)
            db.compact_range()
            rest = sum(table.size for table in db.tables())
        # At most a dozen tables of level 0, a memtable and its log twice, and what a compaction
        # reads and writes; one version of each key in the end.
        if largest > 40 * buffer + 4 * data:
            outcome.violations.append(f"{writes} overwrites take {largest:,} bytes on disk")
        if rest > 2 * data:
            outcome.violations.append(f"{rest:,} bytes of tables are left of {KEYS} keys")
        growth = marks[-1] - marks[0]
        if growth > 4 * MIB:
            outcome.violations.append(f"{writes} overwrites leak {growth:,} bytes: {marks}")


def directory_size(path: str) -> int:
    """Bytes of its files.  Some go while one looks."""
    total = 0
    for name in os.listdir(path):
        try:
            total += os.stat(f"{path}/{name}").st_size
        except FileNotFoundError:
            pass
    return total


def long_manifest(outcome: Outcome, commits: int) -> None:
    """Each flush is a commit; keys are long, so that the MANIFEST would grow fast."""
    env = MemoryEnv()
    largest = 0
    with DB("/db", create_if_missing=True, env=env, background="thread") as db:
        for n in range(commits):
            db.put(b"k" * 4000 + b"%d" % (n % 3), b"v")
            db.flush()
            with env.open_directory("/db") as directory:
                sizes = [
                    directory.size(name)
                    for name in directory.names()
                    if name.startswith("MANIFEST-") and directory.exists(name)
                ]
            largest = max(largest, sum(sizes))
            outcome.count("commits")
    if largest > 3 * MIB:
        outcome.violations.append(f"{commits} commits make a MANIFEST of {largest:,} bytes")


# Forgetting


def forget(outcome: Outcome) -> None:
    """Iterators and snapshots that nobody closes hold nothing once nobody has them."""
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env, background="thread") as db:
        held: list[Any] = []
        for n in range(60):
            for key in range(10):
                db.put(b"%d" % key, b"%d" % n * 500)
            held += [db.snapshot(), db.iterator(), db.iterator(reverse=True), db.raw_iterator()]
            next(held[-3])
            held[-1].seek_to_first()
            outcome.count("forgotten", 4)
            if n % 10 == 9:
                db.flush()
        db.compact_range()
        if tables_in(env) < 2:
            outcome.violations.append("what iterators read from was removed under them")
        before = sum(table.size for table in db.tables())
        held.clear()
        gc.collect()
        # A commit, after which what nobody holds any more is removed, and versions are merged.
        db.put(b"0", b"last" * 100)
        db.flush()
        db.compact_range()
        after = sum(table.size for table in db.tables())
        if after * 4 > before:
            outcome.violations.append(f"forgotten snapshots keep versions: {before} -> {after}")
        if tables_in(env) != len(db.tables()):
            outcome.violations.append(
                f"{tables_in(env)} tables on disk, {len(db.tables())} in the store"
            )


def tables_in(env: MemoryEnv) -> int:
    """How many there are on disk."""
    with env.open_directory("/db") as directory:
        return sum(name.endswith(".ldb") for name in directory.names())


if __name__ == "__main__":
    with_many_tables(int(sys.argv[1]))
