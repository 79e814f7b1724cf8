"""lsmkv.engine.db.admin.delete_range: what a range deletion leaves, and to whom."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from stores import GatedEnv, fill, settle
from threads import background_of
from waiting import wait_until

import lsmkv
from lsmkv import DB, ConflictError, MemoryEnv, SequenceTooOldError
from lsmkv.engine.db.compact.background_jobs import RangeCompaction
from lsmkv.engine.util.comparator import REVERSE_BYTEWISE, CallableComparator, Comparator
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import FaultyEnv

SMALL: lsmkv.OptionArguments = {
    "create_if_missing": True,
    "write_buffer_size": 2048,
    "max_file_size": 1024,
    "block_size": 100,
    "background": "inline",
}


def levels(db: DB) -> list[int]:
    """The level of each table."""
    return [table.level for table in db.tables()]


def two_levels(*, deleted: bool = False) -> DB:
    """Keys 10 to 29 in two tables of level 2, and above that a newer table of only 15."""
    db = DB(":memory:", background="inline", max_file_size=1024, compression=None)
    for number in range(10, 30):
        db.put(b"%d" % number, b"old" * 30)
    db.flush()
    if deleted:
        db.delete(b"15")
    else:
        db.put(b"15", b"new")
    db.flush()
    return db


# Against "scan and delete"


def drawn_key(rng: random.Random) -> bytes:
    return b"%03d" % rng.randrange(300)


def drawn_range(rng: random.Random, is_reverse: bool) -> tuple[bytes | None, bytes | None]:
    bounds = sorted([drawn_key(rng), drawn_key(rng)], reverse=is_reverse)
    if rng.random() < 0.1:
        bounds.reverse()  # which holds nothing
    start, stop = [None if rng.random() < 0.2 else bound for bound in bounds]
    return start, stop


def without(model: dict[bytes, bytes], start: bytes | None, stop: bytes | None, sign: int) -> Any:
    def has(key: bytes) -> bool:
        from_start = start is None or (key >= start if sign > 0 else key <= start)
        return from_start and (stop is None or (key < stop if sign > 0 else key > stop))

    return {key: value for key, value in model.items() if not has(key)}


@pytest.mark.parametrize("background", ["inline", "thread"])
@pytest.mark.parametrize("seed", range(8))
def test_a_drawn_history(seed: int, background: str) -> None:
    rng = random.Random(seed)
    sign = -1 if seed % 4 == 3 else 1
    env = MemoryEnv()
    options = SMALL | {"env": env, "background": background, "reuse_logs": seed % 2 == 0}
    if sign < 0:
        options["comparator"] = REVERSE_BYTEWISE
    db = DB("/db", **options)  # type: ignore[arg-type]
    model: dict[bytes, bytes] = {}
    held: list[tuple[Any, dict[bytes, bytes]]] = []
    try:
        for _ in range(1500):
            step = rng.random()
            if step < 0.80:
                with db.write_batch() as batch:
                    for _ in range(rng.randrange(1, 8)):
                        key = drawn_key(rng)
                        if rng.random() < 0.2:
                            batch.delete(key)
                            model.pop(key, None)
                        else:
                            model[key] = rng.randbytes(rng.randrange(60))
                            batch.put(key, model[key])
            elif step < 0.88:
                start, stop = drawn_range(rng, sign < 0)
                db.delete_range(start, stop)
                model = without(model, start, stop, sign)
                assert dict(db) == model
            elif step < 0.93:
                held.append((db.snapshot(), dict(model)))
            elif step < 0.96 and held:
                one, then = held.pop(rng.randrange(len(held)))
                assert dict(one.iterator()) == then
                one.close()
            elif step < 0.97:
                db.compact_range(*drawn_range(rng, sign < 0))
            elif step < 0.98:
                for one, then in held:
                    assert dict(one.iterator()) == then
                    one.close()
                held = []
                db.close()
                db = DB("/db", **options)  # type: ignore[arg-type]
            else:
                key = drawn_key(rng)
                assert db.get(key) == model.get(key)
                for one, then in held:
                    assert one.get(key) == then.get(key)
        assert dict(db) == model
        db.check()
        for one, _ in held:
            one.close()
        db.flush()
        settle(db)
        assert db._store is not None
        assert db._store.drops == []
    finally:
        db.close()


# Dropped tables


def test_tables_in_the_range_go_unread() -> None:
    with two_levels() as db:
        before = db.stats()
        db.delete_range(b"10", b"30")
        assert db.tables() == []
        assert list(db) == []
        after = db.stats()
        assert after.bytes_read == before.bytes_read
        assert after.block_cache_hits == before.block_cache_hits
        assert after.log_writes - before.log_writes <= 2
        assert db.sequence == 22
        assert db.written_keys() == [b"10"]  # one deletion, of the drop


@pytest.mark.parametrize("deleted", [True, False])
def test_nothing_older_reappears_below_a_dropped_table(deleted: bool) -> None:
    with two_levels(deleted=deleted) as db:
        assert db.get(b"15") == (None if deleted else b"new")
        db.delete_range(b"14", b"17")
        assert db.get(b"15") is None
        db.flush()
        db.compact_range()
        assert [key for key, _ in db] == [b"%d" % n for n in range(10, 30) if n not in (14, 15, 16)]


def test_keys_in_memory_are_deleted_one_by_one() -> None:
    with DB(":memory:") as db:
        for number in range(3):
            db.put(b"%d" % number, b"")
        since = db.sequence
        db.delete_range(b"0", b"2")
        (batch,) = db.batches(since)
        assert batch.operations == [(b"0", None), (b"1", None)]


def test_an_empty_range_and_an_empty_store() -> None:
    with two_levels() as db:
        before = dict(db)
        db.delete_range(b"30", b"40")
        db.delete_range(b"20", b"20")
        db.delete_range(b"20", b"10")
        assert dict(db) == before
    with DB(":memory:") as db:
        db.delete_range(None, None)
        assert db.sequence == 0


@pytest.mark.parametrize("order", [None, REVERSE_BYTEWISE])
@pytest.mark.parametrize("flushed", [False, True])
def test_a_prefix(order: Comparator | None, flushed: bool) -> None:
    with DB(":memory:", comparator=order) as db:
        part, inner = db.prefixed_db(b"b"), db.prefixed_db(b"").prefixed_db(b"b1")
        for key in (b"a", b"b", b"b0", b"b1", b"b12", b"b13", b"b\xff\xff", b"c"):
            db.put(key, b"")
        if flushed:
            db.flush()
        inner.delete_range(b"2", b"3") if order is None else inner.delete_range(b"2", b"1")
        assert sorted(dict(part)) == [b"", b"0", b"1", b"13", b"\xff\xff"]
        part.delete_range(None, None, prefix=b"1")
        assert sorted(dict(part)) == [b"", b"0", b"\xff\xff"]
        part.delete_range(None, None)
        assert sorted(dict(db)) == [b"a", b"c"]
        db.prefixed_db(b"").delete_range(None, None)
        assert dict(db) == {}


def test_wrong_arguments(tmp_path: Path) -> None:
    folding = CallableComparator(lambda a, b: (a > b) - (a < b), "test.Custom")
    with DB(":memory:", comparator=folding) as db:
        with pytest.raises(ValueError, match="prefix requires the bytewise order"):
            db.delete_range(None, None, prefix=b"a")
        with pytest.raises(TypeError, match="start key"):
            db.delete_range(1, None)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            db.delete_range()  # type: ignore[call-arg]
    with pytest.raises(lsmkv.ClosedError):
        db.delete_range(None, None)
    DB(tmp_path, create_if_missing=True).close()
    with DB(tmp_path, read_only=True) as reader, pytest.raises(lsmkv.ReadOnlyError):
        reader.delete_range(None, None)


# Readers and writers from before


def test_readers_from_before_see_the_range_until_they_are_closed() -> None:
    with two_levels() as db:
        before = dict(db)
        snapshot, iterator, raw = db.snapshot(), db.iterator(), db.raw_iterator()
        db.delete_range(None, b"20")
        between = db.snapshot()
        db.delete_range(None, None)
        db.put(b"15", b"later")
        for _ in range(2):
            assert dict(snapshot.iterator()) == before
            assert snapshot.get(b"15") == b"new"
            assert between.get(b"15") is None
            assert len(list(between)) == 10
            assert dict(db) == {b"15": b"later"}
            db.flush()
            db.compact_range()
        assert dict(iterator) == before
        raw.seek(b"15")
        assert raw.value() == b"new"
        tables = lambda: [n for n in names(db) if n.endswith(".ldb")]  # noqa: E731
        assert len(tables()) > len(db.tables())
        for reader in (snapshot, iterator, raw, between):
            reader.close()
        db.put(b"z", b"")
        db.flush()
        assert len(tables()) == len(db.tables())


def names(db: DB) -> list[str]:
    assert db._store is not None
    return db._store.directory.names()


def test_a_transaction_from_before_conflicts() -> None:
    with two_levels() as db:
        readers: list[Any] = [
            lambda t: t.get(b"12"),
            lambda t: t.get(b"125"),  # absent, before and after
            lambda t: list(t.iterator(start=b"12", stop=b"14")),
            lambda t: list(t.iterator(stop=b"105")),
            lambda t: list(t.iterator(start=b"28")),
            lambda t: t.put(b"12", b""),
        ]
        begun = []
        for read in readers:
            transaction = db.transaction()
            transaction.put(b"other", b"")
            read(transaction)
            begun.append(transaction)
        outside = db.transaction()
        outside.get(b"05")
        assert list(outside.iterator(start=b"30")) == []
        outside.put(b"05", b"kept")
        db.delete_range(b"10", b"30")
        for transaction in begun:
            with pytest.raises(ConflictError):
                transaction.commit()
        outside.commit()
        with db.transaction() as after:
            assert after.get(b"12") is None
            after.put(b"12", b"")
        assert dict(db) == {b"05": b"kept", b"12": b""}


def test_an_update_from_before_is_tried_again() -> None:
    with two_levels() as db:
        seen = []

        def function(value: bytes | None) -> bytes:
            if not seen:
                db.delete_range(b"10", b"30")
            seen.append(value)
            return b"set"

        db.update(b"12", function)
        assert seen == [b"old" * 30, None]


def test_batches_that_span_it_raise() -> None:
    with two_levels() as db:
        db.put(b"04", b"")
        since = db.sequence
        with db.batches(since - 1) as batches, db.batches() as at_the_end:
            next(batches)
            db.put(b"05", b"")
            assert next(batches).operations == [(b"05", b"")]
            assert next(at_the_end).operations == [(b"05", b"")]
            db.delete_range(b"10", b"30")
            after = db.sequence
            db.put(b"06", b"")
            for each in (batches, at_the_end, db.batches(since + 1)):
                with pytest.raises(SequenceTooOldError):
                    next(each)
            assert [one.operations for one in db.batches(after)] == [[(b"06", b"")]]


# Durability

PATH = "/db"
OUTSIDE = {b"key%05d" % n: b"v" for n in (*range(10), *range(40, 50))}
INSIDE = {b"key%05d" % n: b"value" * 20 for n in range(10, 40)}


def base_store() -> FaultyEnv:
    """Tables in the range, over it, and at its ends, where one has an older value of a key."""
    env = FaultyEnv()
    with DB(PATH, env=env, **SMALL) as db:
        for some in (OUTSIDE, {b"key00005": b"v", b"key00015": b"older"}, INSIDE):
            with db.write_batch() as batch:
                for key, value in some.items():
                    batch.put(key, value)
            db.flush()
        db.put(b"key00020", b"log")
        assert sorted(levels(db))[-1] == 2
    return env.kill()


def run_through(env: FaultyEnv, done: list[str]) -> None:
    db = DB(PATH, env=env, **SMALL)
    try:
        db.put(b"before", b"")
        done.append("before")
        db.delete_range(b"key00010", b"key00040")
        done.append("range")
        db.put(b"key00030", b"after")
        done.append("after")
    finally:
        try:
            db.close()
        except lsmkv.IOError:
            pass


def judge(env: FaultyEnv, least: list[str]) -> None:
    with DB(PATH, env=env, paranoid_checks=True, **SMALL) as db:
        db.check()
        found = dict(db)
        assert len([n for n in names(db) if n.endswith(".ldb")]) == len(db.tables())
    assert found.items() >= OUTSIDE.items()
    inside = {key: value for key, value in found.items() if b"key00010" <= key < b"key00040"}
    after = inside.pop(b"key00030", None)
    assert after in (None, b"after", INSIDE[b"key00030"])
    if after == INSIDE[b"key00030"]:
        inside[b"key00030"] = after
    # Nothing older than what was deleted, and a later write only after the whole range has gone.
    assert inside.items() <= (INSIDE | {b"key00020": b"log"}).items()
    if after == b"after" or "range" in least:
        assert inside == {}
    if inside != INSIDE | {b"key00020": b"log"} or "before" in least:
        assert b"before" in found
    if "after" in least:
        assert after == b"after"


def test_kills_and_power_cuts_at_every_call() -> None:
    base = base_store()
    n = 0
    while True:
        n += 1
        env = base.kill()
        env.fail_at(n, sticky=True, short=n % 2 == 0)
        done: list[str] = []
        try:
            run_through(env, done)
        except lsmkv.IOError:
            pass
        judge(env.kill(), done)
        for model in NameModel:
            cut = env.power_cut(model, random.Random(n), tails=list(Tails)[n % 4])
            judge(cut, [one for one in done if one == "range"])
        if env.failures == 0:
            break
    assert n > 40


# Compactions meanwhile


def test_a_running_compaction_does_not_bring_the_range_back() -> None:
    """It has read the tables, which must not be dropped before it has ended."""
    env = GatedEnv()
    entries = {b"a%03d" % n: b"v" * 50 for n in range(300)}
    with DB(PATH, create_if_missing=True, env=env) as db:
        for _ in range(2):
            fill(db, entries)
            db.flush()
        env.open.clear()
        env.waiting.clear()
        compacting, errors = background_of(db.compact_range)
        assert env.waiting.wait(60)
        deleting, more_errors = background_of(lambda: db.delete_range(b"a", b"b"))
        wait_until(lambda: bool(db._background and db._background._publications))
        assert db.get(b"a100") == entries[b"a100"]
        env.open.set()
        for thread in (compacting, deleting):
            thread.join(60)
        assert errors == more_errors == []
        assert dict(db) == {}
        db.compact_range()
        assert dict(db) == {}


def test_compactions_start_again_once_it_is_done() -> None:
    with two_levels() as db:
        assert db._background is not None
        db._background.run_range_compaction(RangeCompaction.slot())
        slot = db._background._range_compactions[0]
        for _ in range(5):
            db.put(b"15", b"")
            db.flush()
        assert levels(db).count(0) == 5
        for _ in range(4):  # here a compaction is due in any case
            db.put(b"15", b"")
            db.flush()
        assert levels(db).count(0) < 8
        db._background.release_slot(slot)
        db.compact_range()
        assert db._background._range_compactions == []
        assert levels(db).count(0) == 0
