"""Every table is rewritten with other filters, and nothing else changes."""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.admin.rewrite_tables import plan_of_rewrite
from lsmkv.engine.db.compact.picking import rewrite_of_level
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.format.keys import InternalKeyComparator, pack
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import BackgroundWork, make_options
from lsmkv.engine.util.comparator import BYTEWISE
from lsmkv.testing.faulty import FaultyEnv

SHAPE: dict[str, Any] = {
    "write_buffer_size": 20_000,
    "max_file_size": 8_000,
    "block_size": 1_000,
}
POLICIES: list[Any] = [
    lsmkv.BloomFilterPolicy(14),
    lsmkv.Bloom64Policy(),
    lsmkv.BinaryFusePolicy(),
]


def fill(db: DB) -> dict[bytes, bytes]:
    """Several levels, with overwritten and deleted keys; returns the content."""
    source = random.Random(3)
    content: dict[bytes, bytes] = {}
    for number in range(6000):
        key = b"user%02d:%04d" % (source.randrange(40), source.randrange(3000))
        if source.random() < 0.2:
            db.delete(key)
            content.pop(key, None)
        else:
            content[key] = b"%d" % number * 5
            db.put(key, content[key])
        if number == 3000:
            db.compact_range()
    return content


def tables_of(db: DB) -> list[tuple[int, Any]]:
    """Level and open table of every file."""
    store: Any = db._store
    return [
        (level, store.tables.find(file))
        for level, files in enumerate(store.versions.current.levels)
        for file in files
    ]


def filters_of(db: DB) -> set[tuple[str, ...]]:
    """The policies and layouts of the filters of each table."""
    return {
        tuple(f"{reader.layout} {reader.policy.name}" for reader in table.filters.readers)
        for _, table in tables_of(db)
    }


def settle(db: DB) -> None:
    db.flush()
    background: Any = db._background
    background.wait_until_idle()


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("background", ["thread", "process"])
def test_every_table_gets_the_filters_asked_for(
    tmp_path: Path, policy: Any, background: BackgroundWork
) -> None:
    with DB(tmp_path, create_if_missing=True, **SHAPE) as db:
        content = fill(db)
    with DB(
        tmp_path, filter_policy=policy, prefix_extractor=b":", background=background, **SHAPE
    ) as db:
        before = db.stats()
        db.rewrite_tables()
        layout = policy.preferred_layout
        assert filters_of(db) == {(f"{layout} {policy.name}",)}
        assert all(table.prefix_filter is not None for _, table in tables_of(db))
        assert dict(db) == content
        assert all(db.get(key) == value for key, value in content.items())
        db.check()
        after = db.stats()
        assert after.levels[0].files == 0
        for level in range(2, NUM_LEVELS):
            assert (after.levels[level].files > 0) == (before.levels[level].files > 0)
    with DB(tmp_path) as db:
        assert dict(db) == content


def test_leveldb_reads_it_all(tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    with DB(tmp_path, create_if_missing=True, **SHAPE) as db:
        content = fill(db)
    with DB(tmp_path, filter_policy=lsmkv.BinaryFusePolicy(), prefix_extractor=4, **SHAPE) as db:
        db.rewrite_tables()
    leveldb = plyvel.DB(str(tmp_path), bloom_filter_bits=10)
    assert dict(leveldb) == content
    assert all(leveldb.get(key) == value for key, value in content.items())
    leveldb.close()


def test_filters_can_be_removed_and_brought_back() -> None:
    env = MemoryEnv()
    with DB("store", create_if_missing=True, env=env, **SHAPE) as db:
        content = fill(db)
    with DB("store", env=env, bloom_filter_bits=0, **SHAPE) as db:
        db.rewrite_tables()
    with DB("store", env=env, **SHAPE) as db:
        assert filters_of(db) == {()}
        db.rewrite_tables()
        assert filters_of(db) == {("block leveldb.BuiltinBloomFilter2",)}
        assert dict(db) == content


def test_snapshots_and_iterators_stay_good() -> None:
    with DB(":memory:", filter_policy=lsmkv.Bloom64Policy(), **SHAPE) as db:
        content = fill(db)
        snapshot = db.snapshot()
        iterator = db.iterator()
        first = next(iterator)
        for key in list(content)[::3]:
            db.delete(key)
        db.rewrite_tables()
        assert dict(snapshot) == content
        assert dict([first, *iterator]) == content
        db.check()
        snapshot.close()
        db.rewrite_tables()
        assert len(dict(db)) == len(content) - len(list(content)[::3])


def test_writers_go_on_meanwhile() -> None:
    with DB(":memory:", filter_policy=lsmkv.Bloom64Policy(), **SHAPE) as db:
        content = fill(db)
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                key = b"user%02d:%04d" % (number % 40, number % 3001)
                content[key] = b"new%d" % number
                db.put(key, content[key])
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                db.rewrite_tables()
        finally:
            stop.set()
            writer.join()
        assert dict(db) == content
        db.check()


def test_the_store_may_be_closed_meanwhile() -> None:
    env = MemoryEnv()
    with DB("store", create_if_missing=True, env=env, **SHAPE) as db:
        content = fill(db)
    db = DB("store", env=env, filter_policy=lsmkv.Bloom64Policy(), **SHAPE)
    begun = threading.Event()
    ended: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                db.rewrite_tables(progress=lambda *_: begun.set())
        except lsmkv.ClosedError as error:
            ended.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    begun.wait()
    db.close()
    worker.join()
    assert len(ended) == 1
    with DB("store", env=env, filter_policy=lsmkv.Bloom64Policy(), **SHAPE) as db:
        assert dict(db) == content
        db.check()


class Enough(Exception):
    """Ends the call."""


def ends_after(calls: int) -> Callable[[int, int, str], None]:
    left = calls

    def progress(done: int, total: int, phase: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Enough

    return progress


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 6, 8])
def test_an_interrupted_call_leaves_the_store_right(calls: int) -> None:
    env = MemoryEnv()
    with DB("store", create_if_missing=True, env=env, **SHAPE) as db:
        content = fill(db)
    with DB("store", env=env, filter_policy=lsmkv.Bloom64Policy(), **SHAPE) as db:
        with pytest.raises(Enough):
            db.rewrite_tables(progress=ends_after(calls))
        assert dict(db) == content
        db.check()
        db.rewrite_tables()
        assert filters_of(db) == {("table lsmkv.Bloom64",)}
        assert dict(db) == content
        db.check()


def test_progress_rises_to_the_total() -> None:
    with DB(":memory:", filter_policy=lsmkv.Bloom64Policy(), **SHAPE) as db:
        fill(db)
        settle(db)
        steps: list[tuple[int, int, str]] = []
        db.rewrite_tables(progress=lambda *step: steps.append(step))
        done = [step[0] for step in steps]
        assert done == sorted(done)
        total = steps[0][1]
        assert {step[1] for step in steps} == {total}
        assert steps[-1] == (total, total, "done")
        assert total > 0


SMALL: dict[str, Any] = SHAPE | {"write_buffer_size": 6_000, "max_file_size": 3_000}


def small_store(env: FaultyEnv) -> dict[bytes, bytes]:
    """A durable store of some tables on several levels; returns its content."""
    content = {b"key%03d" % n: b"%d" % n * 20 for n in range(300)}
    with DB("store", create_if_missing=True, env=env, **SMALL) as db:
        for key, value in content.items():
            db.put(key, value)
        db.compact_range()
        for key in list(content)[::7]:
            db.delete(key)
            del content[key]
    return content


def rewrite(env: FaultyEnv) -> None:
    with DB("store", env=env, filter_policy=lsmkv.Bloom64Policy(), **SMALL) as db:
        db.rewrite_tables()


def require_whole(env: Any, content: dict[bytes, bytes]) -> None:
    with DB("store", env=env, filter_policy=lsmkv.Bloom64Policy(), **SMALL) as db:
        assert dict(db) == content
        db.check()


def test_a_call_that_fails_is_reported_and_loses_nothing() -> None:
    """Every third call of the system fails in turn, once."""
    clean = FaultyEnv()
    content = small_store(clean)
    before = clean.calls
    rewrite(clean)
    full = 0
    for number in range(1, clean.calls - before + 1, 3):
        env = FaultyEnv()
        small_store(env)
        env.fail_at(number, OSError(errno.ENOSPC, "disk full"))
        try:
            rewrite(env)
        except lsmkv.Error as error:
            full += isinstance(error, lsmkv.IOError) and error.errno == errno.ENOSPC
        env.heal()
        require_whole(env, content)
    assert full > 5


def test_a_power_cut_or_a_kill_loses_nothing() -> None:
    env = FaultyEnv()
    content = small_store(env)
    crashed: list[Any] = []

    def crash(_done: int, _total: int, _phase: str) -> None:
        crashed.extend((env.power_cut(), env.kill()))

    with DB("store", env=env, filter_policy=lsmkv.Bloom64Policy(), **SMALL) as db:
        db.rewrite_tables(progress=crash)
        crashed.extend((env.power_cut(), env.kill()))
    assert len(crashed) > 10
    for left in crashed:
        require_whole(left, content)


def test_a_read_only_store_is_refused(tmp_path: Path) -> None:
    DB(tmp_path, create_if_missing=True).close()
    with DB(tmp_path, read_only=True) as db, pytest.raises(lsmkv.ReadOnlyError):
        db.rewrite_tables()


# What is rewritten at once.


def file(number: int, first: bytes, last: bytes, size: int = 100) -> FileMetaData:
    return FileMetaData(number, size, pack(first, 9, 1), pack(last, 8, 1))


def version(*files: FileMetaData) -> Version:
    levels: list[list[FileMetaData]] = [[] for _ in range(NUM_LEVELS)]
    levels[2] = list(files)
    return Version(InternalKeyComparator(BYTEWISE), levels)


def steps(of: Version, before: int, max_file_size: int = 1000) -> list[list[int]]:
    found: list[list[int]] = []
    after: bytes | None = None
    while True:
        options = make_options(max_file_size=max_file_size)
        picked = rewrite_of_level(of, 2, after, before, options)
        if picked is None:
            return found
        compaction, after = picked
        assert compaction.output_level == 2
        assert not compaction.is_trivial_move(options)
        found.append([one.number for one in compaction.inputs])


def test_a_step_takes_neighbors_up_to_the_size_of_a_table() -> None:
    of = version(*[file(n, b"%02d" % n, b"%02d~" % n, 600) for n in range(1, 6)])
    assert steps(of, 99) == [[1, 2], [3, 4], [5]]


def test_a_step_reaches_over_no_new_table() -> None:
    numbers = [1, 2, 50, 3, 51, 52, 4]
    of = version(*[file(n, b"%02d" % at, b"%02d~" % at) for at, n in enumerate(numbers)])
    assert steps(of, 50) == [[1, 2], [3], [4]]
    assert steps(of, 1) == []


def test_versions_of_a_key_in_two_tables_stay_together() -> None:
    of = version(file(1, b"a", b"k", 2000), file(2, b"k", b"p", 2000), file(3, b"q", b"z", 2000))
    assert steps(of, 99) == [[1, 2], [3]]


def test_the_plan_counts_level_0_once() -> None:
    of = version(file(1, b"a", b"k", 2000))
    assert [plan.to_read for plan in plan_of_rewrite(of)] == [0, 0, 2000, 0, 0, 0, 0]
