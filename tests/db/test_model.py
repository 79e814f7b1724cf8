"""The store against a dict: any operations in any order (``tests/stress/model_study.py``), and many
threads at once."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import model_study
import pytest
from hooked import HookedEnv
from study import Outcome
from threads import run_threads

from lsmkv import DB, MemoryEnv


@pytest.mark.parametrize("seed", range(10))
def test_a_store_is_a_dict(seed: int) -> None:
    outcome = Outcome()
    model_study.run_once(seed, outcome, "/db", ["lsmkv"], 1000)
    assert outcome.violations == []
    assert outcome.figures["operations"] == 900  # whole turns


# Threads


@pytest.mark.usefixtures("quick_switches")
def test_overwrites_are_never_stale_or_missing() -> None:
    """Each thread owns a key, which it overwrites and reads; and reads others', that only rise."""
    with DB(":memory:", create_if_missing=True, write_buffer_size=2048) as db:
        for thread in range(8):
            db.put(b"%d" % thread, b"%08d" % 0)

        def overwrite(thread: int) -> Callable[[], None]:
            key, other = b"%d" % thread, b"%d" % ((thread + 1) % 8)

            def run() -> None:
                seen = b"%08d" % 0
                for n in range(800):
                    value = b"%08d" % n
                    db.put(key, value)
                    assert db.get(key) == value
                    theirs = db.get(other)
                    assert theirs is not None
                    assert theirs >= seen
                    seen = theirs
                    if n % 10 == 0:
                        entries = dict(db)
                        assert len(entries) == 8
                        assert entries[key] == value
                        assert entries[other] >= seen
                        assert dict(db.iterator(reverse=True, start=key))[key] == value

            return run

        assert run_threads(*[overwrite(thread) for thread in range(8)]) == []
        assert set(dict(db).values()) == {b"%08d" % 799}
        db.check()


@pytest.mark.usefixtures("quick_switches")
def test_batches_are_whole_in_snapshots() -> None:
    """Four writers set all keys to one value in a batch; a snapshot never sees two values."""
    keys = [b"%d" % n for n in range(5)]
    with DB(":memory:", create_if_missing=True, write_buffer_size=2048) as db:
        done = threading.Event()

        def write(thread: int) -> Callable[[], None]:
            def run() -> None:
                for n in range(300):
                    with db.write_batch() as batch:
                        for key in keys:
                            batch.put(key, b"%d-%d" % (thread, n))

            return run

        def read() -> None:
            while not done.is_set():
                with db.snapshot() as snapshot:
                    values = {snapshot.get(key) for key in keys}
                    assert len(values) == 1, values
                    assert {value for _, value in snapshot} | {None} == values | {None}
                assert len({value for _, value in db.iterator(reverse=True)}) <= 1

        def writers() -> None:
            try:
                assert run_threads(*[write(thread) for thread in range(4)]) == []
            finally:
                done.set()

        assert run_threads(writers, read, read) == []
        assert db.stats().writes == 1200
        db.check()


@pytest.mark.usefixtures("quick_switches")
def test_readers_and_compactions() -> None:
    """Keys that are never written again stay readable while everything round them moves."""
    fixed = {b"%04d" % n: b"fixed %d" % n for n in range(0, 200, 2)}
    with DB(
        ":memory:", create_if_missing=True, write_buffer_size=1024, max_file_size=1024,
        max_open_files=20, lru_cache_size=2000,
    ) as db:  # fmt: skip
        for key, value in fixed.items():
            db.put(key, value)
        done = threading.Event()

        def churn() -> None:
            try:
                for n in range(10):
                    for m in range(1, 200, 2):
                        db.put(b"%04d" % m, b"%d" % n * 20)
                    db.compact_range()
            finally:
                done.set()

        def read(reverse: bool) -> Callable[[], None]:
            def run() -> None:
                rng = random.Random(reverse)
                while not done.is_set():
                    for key in rng.sample(sorted(fixed), 10):
                        assert db.get(key) == fixed[key]
                    found = dict(db.iterator(reverse=reverse))
                    assert fixed.items() <= found.items()

            return run

        assert run_threads(churn, read(False), read(True)) == []
        db.check()


class SlowSyncEnv(HookedEnv):
    """A disk whose syncs wait until several writers stand in line, or nobody else comes."""

    def __init__(self) -> None:
        super().__init__(self._wait)
        self.syncs = 0

    def _wait(self, call: str, name: str) -> None:
        if call == "sync" and name.endswith(".log"):
            self.syncs += 1
            threading.Event().wait(0.001)


def test_group_commit() -> None:
    """Four threads that ask for syncs share them."""
    env = SlowSyncEnv()
    with DB("/db", create_if_missing=True, env=env) as db:

        def write(thread: int) -> Callable[[], None]:
            def run() -> None:
                for n in range(50):
                    db.put(b"%d-%02d" % (thread, n), b"v", sync=True)

            return run

        assert run_threads(*[write(thread) for thread in range(4)]) == []
        stats = db.stats()
        assert stats.writes == 200
        assert stats.log_syncs == stats.log_writes == env.syncs < 150
        assert len(list(db)) == 200
    with DB("/db", env=env) as db:
        assert len(list(db)) == 200


def test_mixed_writers() -> None:
    """Batches of all sizes, with and without sync, from several threads, and then a reopening."""
    env = MemoryEnv()
    expected: dict[bytes, bytes] = {}
    with DB("/db", create_if_missing=True, env=env, write_buffer_size=65536) as db:

        def write(thread: int) -> Callable[[], None]:
            rng = random.Random(thread)

            def run() -> None:
                for n in range(60):
                    with db.write_batch(sync=rng.random() < 0.3) as batch:
                        for m in range(rng.randrange(1, 5)):
                            key = b"%d-%d-%d" % (thread, n, m)
                            value = rng.randbytes(rng.choice([0, 10, 3000]))
                            batch.put(key, value)
                            expected[key] = value
                    if rng.random() < 0.02:
                        db.flush()
                    if rng.random() < 0.1:
                        db.sync()

            return run

        assert run_threads(*[write(thread) for thread in range(4)]) == []
        assert dict(db) == expected
        db.check()
    with DB("/db", env=env) as db:
        assert dict(db) == expected
