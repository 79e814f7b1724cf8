"""The store against a dict: any operations in any order, and many threads at once."""

from __future__ import annotations

import random
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

import pytest
from hooked import HookedEnv
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from threads import run_threads

from lsmkv import DB, BinaryFusePolicy, Bloom64Policy, MemoryEnv, Snapshot, WriteBatch
from lsmkv import Iterator as StoreIterator

# Few keys, so that they meet each other; some that sort at the edges; some that share prefixes.
KEYS = [b"", b"\0", b"\xff", b"\xff\xff", b"a", b"a\0", b"a\xff"]
KEYS += [b"k%02d" % n for n in range(23)]
keys_ = st.sampled_from(KEYS)
values_ = st.one_of(
    st.binary(max_size=8),
    st.builds(lambda byte, size: bytes([byte]) * size, st.integers(0, 255), st.integers(0, 700)),
)
bounds_ = st.one_of(st.none(), keys_)
FILTERS: list[dict[str, Any]] = [
    *({"bloom_filter_bits": bits} for bits in (0, 1, 10, "auto:10", [16, 0])),
    {"filter_policy": Bloom64Policy(10)},
    {"filter_policy": Bloom64Policy(10), "bloom_filter_bits": "auto:4"},
]
LAYOUTS: list[dict[str, Any]] = [{"filter_layout": name} for name in ("block", "table", "both")]
filters_ = st.one_of(
    st.builds(lambda one, other: one | other, st.sampled_from(FILTERS), st.sampled_from(LAYOUTS)),
    st.just({"filter_policy": BinaryFusePolicy()}),
)
settings_ = st.fixed_dictionaries(
    {
        "write_buffer_size": st.sampled_from([1024, 3000, 1 << 20]),
        "max_file_size": st.sampled_from([1024, 1500, 1 << 20]),
        "block_size": st.sampled_from([64, 256, 4096]),
        "block_restart_interval": st.sampled_from([1, 2, 16]),
        "compression": st.sampled_from([None, "snappy", "zstd"]),
        "filter_last_level": st.booleans(),
        "prefix_extractor": st.sampled_from([None, None, 1, 2, b"\xff", b"0"]),
        "lru_cache_size": st.sampled_from([0, 500, 1 << 20]),
        "reuse_logs": st.booleans(),
        "max_open_files": st.sampled_from([20, 1000]),
        "paranoid_checks": st.booleans(),
    }
)
options_ = st.builds(lambda one, other: one | other, settings_, filters_)

Model = dict[bytes, bytes]


def cut(model: Model, arguments: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    """What an iterator with these arguments returns."""
    keys = sorted(model)
    start, stop = arguments["start"], arguments["stop"]
    if start is not None:
        keys = keys[(bisect_left if arguments["include_start"] else bisect_right)(keys, start) :]
    if stop is not None:
        keys = keys[: (bisect_right if arguments["include_stop"] else bisect_left)(keys, stop)]
    if arguments["reverse"]:
        keys.reverse()
    return [(key, model[key]) for key in keys]


class StoreMachine(RuleBasedStateMachine):
    """Drives a store and a dict with the same operations."""

    def __init__(self) -> None:
        super().__init__()
        self.env = MemoryEnv()
        self.model: Model = {}
        self.snapshots: list[tuple[Snapshot, Model]] = []
        self.iterators: list[tuple[StoreIterator, list[tuple[bytes, bytes]]]] = []

    @initialize(options=options_)
    def begin(self, options: dict[str, Any]) -> None:
        self.db = DB("/db", create_if_missing=True, env=self.env, **options)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.let_go()
            self.db.close()

    def let_go(self) -> None:
        for snapshot, _ in self.snapshots:
            snapshot.close()
        for iterator, _ in self.iterators:
            iterator.close()
        self.snapshots = []
        self.iterators = []

    @rule(key=keys_, value=values_, sync=st.booleans())
    def put(self, key: bytes, value: bytes, sync: bool) -> None:
        self.db.put(key, value, sync=sync)
        self.model[key] = value

    @rule(key=keys_)
    def delete(self, key: bytes) -> None:
        self.db.delete(key)
        self.model.pop(key, None)

    @rule(operations=st.lists(st.tuples(keys_, st.one_of(st.none(), values_)), max_size=12))
    def write(self, operations: list[tuple[bytes, bytes | None]]) -> None:
        batch = WriteBatch()
        for key, value in operations:
            if value is None:
                batch.delete(key)
                self.model.pop(key, None)
            else:
                batch.put(key, value)
                self.model[key] = value
        self.db.write(batch)

    @rule(key=keys_, size=st.integers(0, 700))
    def overwrite_all(self, key: bytes, size: int) -> None:
        """Enough writes to fill a memtable or more."""
        value = key + bytes(size)
        for other in KEYS[::2]:
            self.db.put(other, value)
            self.model[other] = value

    @rule(key=st.one_of(keys_, st.binary(max_size=3)))
    def get(self, key: bytes) -> None:
        assert self.db.get(key) == self.model.get(key)
        assert self.db.get(key, b"default") == self.model.get(key, b"default")

    @rule(
        arguments=st.fixed_dictionaries(
            {
                "start": bounds_,
                "stop": bounds_,
                "include_start": st.booleans(),
                "include_stop": st.booleans(),
                "reverse": st.booleans(),
            }
        )
    )
    def iterate(self, arguments: dict[str, Any]) -> None:
        assert list(self.db.iterator(**arguments)) == cut(self.model, arguments)

    @rule(prefix=st.sampled_from([b"\xff", b"a", b"k", b"k0", b"k1", b"k05", b"x"]))
    def iterate_prefix(self, prefix: bytes) -> None:
        expected = sorted(pair for pair in self.model.items() if pair[0].startswith(prefix))
        assert list(self.db.iterator(prefix=prefix)) == expected
        assert list(self.db.iterator(prefix=prefix, reverse=True)) == expected[::-1]

    @rule(reverse=st.booleans())
    def begin_iterator(self, reverse: bool) -> None:
        entries = sorted(self.model.items(), reverse=reverse)
        self.iterators.append((self.db.iterator(reverse=reverse), entries))

    @precondition(lambda self: self.iterators)
    @rule(data=st.data(), steps=st.integers(1, 40))
    def advance_iterator(self, data: st.DataObject, steps: int) -> None:
        at = data.draw(st.integers(0, len(self.iterators) - 1))
        iterator, entries = self.iterators[at]
        for _ in range(steps):
            assert next(iterator, None) == (entries.pop(0) if entries else None)

    @rule()
    def take_snapshot(self) -> None:
        self.snapshots.append((self.db.snapshot(), dict(self.model)))

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data(), reverse=st.booleans())
    def read_snapshot(self, data: st.DataObject, reverse: bool) -> None:
        at = data.draw(st.integers(0, len(self.snapshots) - 1))
        snapshot, model = self.snapshots[at]
        assert list(snapshot.iterator(reverse=reverse)) == sorted(model.items(), reverse=reverse)
        for key in KEYS:
            assert snapshot.get(key) == model.get(key)

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def release_snapshot(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.snapshots) - 1))
        snapshot, _ = self.snapshots.pop(at)
        snapshot.close()

    @rule()
    def flush(self) -> None:
        self.db.flush()

    @rule(start=bounds_, stop=bounds_)
    def compact_range(self, start: bytes | None, stop: bytes | None) -> None:
        self.db.compact_range(start, stop)

    @rule()
    def check(self) -> None:
        self.db.check()
        assert dict(self.db) == self.model
        assert dict(self.db.iterator(reverse=True)) == self.model
        for key in KEYS:
            assert self.db.get(key) == self.model.get(key)

    @rule(options=options_)
    def reopen(self, options: dict[str, Any]) -> None:
        self.let_go()
        self.db.close()
        self.db = DB("/db", env=self.env, **options)
        assert dict(self.db) == self.model

    @invariant()
    def one_key_is_right(self) -> None:
        if hasattr(self, "db"):
            key = KEYS[len(self.model) % len(KEYS)]
            assert self.db.get(key) == self.model.get(key)


def test_a_store_is_a_dict() -> None:
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            deadline=None,
            max_examples=200,
            stateful_step_count=60,
            suppress_health_check=list(HealthCheck),
        ),
    )


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
