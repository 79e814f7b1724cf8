"""Whatever line a KeyboardInterrupt strikes, log, memtable and sequences agree."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

import lsmkv
from lsmkv import DB, WriteBatch
from lsmkv.engine.db.compact import background, background_jobs
from lsmkv.engine.db.tree import store
from lsmkv.engine.db.write import commit, log_rotation, write_queue, writer
from lsmkv.testing.faulty import FaultyEnv

Interrupted = Callable[[ModuleType, int, Callable[[], object]], bool]

interpreted = pytest.mark.skipif(
    lsmkv.COMPILED, reason="compiled code is not interrupted between two steps"
)
BEFORE = {b"before": bytes(2000)}
BATCH = {b"first": b"1", b"second": b"2"}
AFTER = {b"after": b"3"}


def write_between(call: Callable[[DB], bool], **options: int) -> tuple[bool, bool]:
    """Write BEFORE, make the call, write AFTER.  Returns what the call returned, and whether BATCH
    is there; either all of it is or nothing, now and after a power cut."""
    env = FaultyEnv()
    with DB("db", create_if_missing=True, env=env, **options) as db:
        db.put(b"before", BEFORE[b"before"])
        interrupted = call(db)
        db.put(b"after", AFTER[b"after"], sync=True)
        state = dict(db)
        assert state in (BEFORE | AFTER, BEFORE | BATCH | AFTER)
        db.check()
        survived = env.power_cut()
    with DB("db", env=survived) as db:
        assert dict(db) == state
        db.check()
        assert "lost" not in survived.open_directory("db").names()
    return interrupted, b"first" in state


@interpreted
@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("module", [writer, write_queue, commit, log_rotation])
@pytest.mark.parametrize("switches_memtable", [False, True])
def test_interrupt_at_any_line_of_a_write(
    module: ModuleType, sync: bool, switches_memtable: bool, interrupted_at: Interrupted
) -> None:
    batch = WriteBatch()
    for key, value in BATCH.items():
        batch.put(key, value)
    size = 1024 if switches_memtable else 1 << 20
    line = 0
    outcomes: set[bool] = set()
    interrupted = True
    while interrupted:
        line += 1

        def call(db: DB, line: int = line) -> bool:
            return interrupted_at(module, line, lambda: db.write(batch, sync=sync))

        interrupted, written = write_between(call, write_buffer_size=size)
        assert written or interrupted
        outcomes.add(written)
    if module is commit:
        assert outcomes == {False, True}
        assert line > 30


@interpreted
@pytest.mark.parametrize("module", [writer, commit, log_rotation, background])
def test_interrupt_at_any_line_of_a_publication(
    module: ModuleType, interrupted_at: Interrupted
) -> None:
    line = 0
    outcomes: set[bool] = set()
    interrupted = True
    while interrupted:
        line += 1

        def call(db: DB, line: int = line) -> bool:
            env = db.options.env
            assert env is not None
            with lsmkv.TableWriter("bulk.ldb", env=env) as table:
                for key, value in sorted(BATCH.items()):
                    table.add(key, value)
            return interrupted_at(module, line, lambda: db.ingest(["bulk.ldb"]))

        interrupted, written = write_between(call)
        assert written or interrupted
        outcomes.add(written)
    assert outcomes == {False, True}
    assert line > 10


def test_a_batch_that_fails_is_neither_logged_nor_applied() -> None:
    env = FaultyEnv()
    with DB("db", create_if_missing=True, env=env) as db:
        db.put(b"before", b"1")
        for _ in range(2):
            env.fail_at(1, short=True, calls={"append"})
            with pytest.raises(lsmkv.IOError):
                db.put(b"k", b"v")
            assert dict(db) == {b"before": b"1"}
        db.put(b"after", b"1", sync=True)
        assert db.stats().writes == 2
        survived = env.power_cut()
    with DB("db", env=survived) as db:
        assert dict(db) == {b"before": b"1", b"after": b"1"}


@interpreted
@pytest.mark.parametrize("background", ["thread", "inline"])
@pytest.mark.parametrize("module", [writer, commit, background, background_jobs, store])
def test_interrupt_at_any_line_of_a_drop(
    module: ModuleType, background: str, interrupted_at: Interrupted
) -> None:
    """The table is there or not, for all readers from then on; its first key may be deleted."""
    line = 0
    kept: set[int] = set()
    interrupted = True
    while interrupted:
        line += 1
        env = FaultyEnv()
        with DB("db", create_if_missing=True, env=env, background=background) as db:  # type: ignore[arg-type]
            for key, value in BATCH.items():
                db.put(key, value)
            db.flush()
            db.put(b"before", BEFORE[b"before"])
            with db.snapshot() as snapshot:
                whole = dict(snapshot)
                interrupted = interrupted_at(
                    module, line, lambda db=db: db.delete_range(b"first", b"secone")
                )
                db.put(b"after", AFTER[b"after"], sync=True)
                assert dict(snapshot) == whole
                assert snapshot.get(b"first") == BATCH[b"first"]
            state = dict(db)
            assert len({b"before", b"after"} & state.keys()) == 2
            assert state.items() <= (BEFORE | BATCH | AFTER).items()
            assert b"first" not in state or b"second" in state
            kept.add(len(BATCH.keys() & state.keys()))
            assert interrupted or not BATCH.keys() & state.keys()
            db.compact_range()
            db.check()
            survived = env.power_cut()
        with DB("db", env=survived) as db:
            assert dict(db) == state
            db.check()
    assert kept > {0}
    assert line > 9
