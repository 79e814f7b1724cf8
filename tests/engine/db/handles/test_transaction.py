"""Optimistic transactions: what conflicts, what does not, and that no update is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from orders import fold
from threads import run_threads

import lsmkv
from lsmkv import DB
from lsmkv.testing.faulty import FaultyEnv


@pytest.fixture
def db() -> Iterator[DB]:
    with DB(":memory:") as db:
        db.put(b"k", b"1")
        db.put(b"other", b"1")
        yield db


def put(db: DB) -> None:
    db.put(b"k", b"2")


def put_the_same(db: DB) -> None:
    db.put(b"k", b"1")


def delete(db: DB) -> None:
    db.delete(b"k")


def flushed(db: DB) -> None:
    db.put(b"k", b"2")
    db.flush()


def deleted_and_compacted(db: DB) -> None:
    db.flush()
    db.delete(b"k")
    db.compact_range()
    db.compact_range()


def put_and_compacted(db: DB) -> None:
    db.put(b"k", b"2")
    db.compact_range()


def by_a_transaction(db: DB) -> None:
    with db.transaction() as other:
        other.put(b"k", b"2")


def in_a_batch(db: DB) -> None:
    with db.write_batch() as batch:
        batch.put(b"elsewhere", b"2")
        batch.put(b"k", b"2")


CHANGES = [
    put,
    put_the_same,
    delete,
    flushed,
    deleted_and_compacted,
    put_and_compacted,
    by_a_transaction,
    in_a_batch,
]


@pytest.mark.parametrize("touch", ["read", "write", "delete", "read of a missing key"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("in_table", [False, True])
def test_conflicts(db: DB, change: Callable[[DB], None], touch: str, in_table: bool) -> None:
    if touch == "read of a missing key":
        db.delete(b"k")
    if in_table:
        db.flush()
    transaction = db.transaction()
    if touch.startswith("read"):
        seen = transaction.get(b"k")
        assert seen == (b"1" if touch == "read" else None)
        transaction.put(b"result", b"x")
    elif touch == "write":
        transaction.put(b"k", b"mine")
    else:
        transaction.delete(b"k")
    change(db)
    state = dict(db)
    with pytest.raises(lsmkv.ConflictError, match="'k'"):
        transaction.commit()
    assert dict(db) == state
    with pytest.raises(lsmkv.ClosedError):
        transaction.commit()


def nothing(db: DB) -> None:
    pass


def another_key(db: DB) -> None:
    db.put(b"other", b"2")
    db.delete(b"another")


def flush(db: DB) -> None:
    db.flush()


def compact(db: DB) -> None:
    db.put(b"kk", b"2")
    db.compact_range()


def write_between_others(db: DB) -> None:
    for n in range(50):
        db.put(b"k%d" % n, b"2")
    db.flush()


@pytest.mark.parametrize(
    "change", [nothing, another_key, flush, compact, write_between_others], ids=lambda c: c.__name__
)
@pytest.mark.parametrize("before", [nothing, flush, compact, delete], ids=lambda c: c.__name__)
def test_no_conflict(db: DB, before: Callable[[DB], None], change: Callable[[DB], None]) -> None:
    before(db)
    old = db.get(b"k")
    with db.transaction() as transaction:
        assert transaction.get(b"k") == old
        assert transaction.get(b"none of these", b"default") == b"default"
        change(db)
        transaction.put(b"k", b"mine")
        transaction.delete(b"gone")
    assert db.get(b"k") == b"mine"


def test_a_key_conflicts_beside_a_range_that_was_read(db: DB) -> None:
    transaction = db.transaction()
    assert transaction.get(b"k") == b"1"
    assert list(transaction.iterator(start=b"l")) == [(b"other", b"1")]
    transaction.put(b"result", b"x")
    db.put(b"k", b"2")
    with pytest.raises(lsmkv.ConflictError, match="'k'"):
        transaction.commit()


def test_reads_alone_never_conflict(db: DB) -> None:
    with db.transaction() as transaction:
        assert transaction.get(b"k") == b"1"
        db.put(b"k", b"2")
        assert transaction.get(b"k") == b"1"  # a snapshot


def test_reads_its_own_writes(db: DB) -> None:
    with db.transaction() as transaction:
        transaction.put(b"k", b"mine")
        assert transaction.get(b"k") == b"mine"
        transaction.delete(b"k")
        assert transaction.get(b"k") is None
        assert transaction.get(b"k", 5) == 5
        transaction.put(b"k", b"")
        assert transaction.get(b"k", b"default") == b""
        assert db.get(b"k") == b"1"
    assert db.get(b"k") == b""


def write_and_fail(transaction: lsmkv.Transaction) -> None:
    transaction.put(b"k", b"mine")
    raise ZeroDivisionError


def test_an_exception_discards_it(db: DB) -> None:
    state = dict(db)
    transaction = db.transaction()
    with pytest.raises(ZeroDivisionError), transaction:
        write_and_fail(transaction)
    assert dict(db) == state
    calls: list[Callable[[], object]] = [
        lambda: transaction.get(b"k"),
        lambda: transaction.put(b"k", b"v"),
        lambda: transaction.delete(b"k"),
        transaction.commit,
    ]
    for call in calls:
        with pytest.raises(lsmkv.ClosedError):
            call()
    transaction.rollback()


def test_over_after_commit_or_rollback(db: DB) -> None:
    for end in ("commit", "rollback"):
        with db.transaction() as transaction:
            transaction.put(b"k", end.encode())
            getattr(transaction, end)()
            with pytest.raises(lsmkv.ClosedError):
                transaction.put(b"k", b"late")
    assert db.get(b"k") == b"commit"


def test_the_store_closed_meanwhile(db: DB) -> None:
    transaction = db.transaction()
    transaction.put(b"k", b"mine")
    db.close()
    with pytest.raises(lsmkv.ClosedError):
        transaction.commit()


@pytest.mark.parametrize("wrong", ["k", None, 3])
def test_wrong_types(db: DB, wrong: Any) -> None:
    with db.transaction() as transaction:
        for call in (transaction.get, transaction.delete):
            with pytest.raises(TypeError):
                call(wrong)
        with pytest.raises(TypeError):
            transaction.put(b"k", wrong)
        with pytest.raises(TypeError):
            transaction.put(wrong, b"v")
    assert db.get(b"k") == b"1"


def test_a_commit_is_one_synced_batch() -> None:
    env = FaultyEnv()
    db = DB("/db", create_if_missing=True, env=env)
    with db.transaction(sync=True) as transaction:
        transaction.put(b"a", b"1")
        transaction.put(b"b", b"1")
    with DB("/db", env=env.power_cut()) as survivor:
        assert dict(survivor) == {b"a": b"1", b"b": b"1"}
    db.close()


def reads_by_name(transaction: lsmkv.Transaction) -> None:
    transaction.get(b"k")


def reads_a_range(transaction: lsmkv.Transaction) -> None:
    assert list(transaction) == [(b"k", b"1")]


@pytest.mark.parametrize("read", [reads_by_name, reads_a_range], ids=lambda one: one.__name__)
def test_an_error_of_the_conflict_check_is_raised(
    read: Callable[[lsmkv.Transaction], None],
) -> None:
    """Nothing is written then, and the store can still be used."""
    env = FaultyEnv()
    options: dict[str, Any] = {"env": env, "lru_cache_size": 0, "bloom_filter_bits": 0}
    with DB("/db", create_if_missing=True, **options) as db:
        db.put(b"k", b"1")
        transaction = db.transaction()
        read(transaction)
        transaction.put(b"new", b"2")
        db.flush()  # the tables that came since are asked
        env.fail_at(1, calls={"read", "open"})
        with pytest.raises(lsmkv.IOError):
            transaction.commit()
        assert dict(db) == {b"k": b"1"}
        with db.transaction() as again:
            again.put(b"k", b"3")
        assert db.get(b"k") == b"3"


def test_keys_that_compare_equal() -> None:
    with DB(":memory:", comparator=fold, comparator_name="no case") as db:
        transaction = db.transaction()
        transaction.put(b"KEY", b"mine")
        assert transaction.get(b"key") == b"mine"
        transaction.delete(b"Key")
        assert transaction.get(b"KEY") is None
        transaction.rollback()
        transaction = db.transaction()
        transaction.put(b"KEY", b"mine")
        db.put(b"key", b"theirs")
        with pytest.raises(lsmkv.ConflictError):
            transaction.commit()


def test_no_increment_is_lost() -> None:
    with DB(":memory:", write_buffer_size=2048, max_file_size=2048) as db:
        conflicts = [0] * 4

        def count(own: int) -> None:
            for _ in range(60):
                while True:
                    try:
                        with db.transaction() as transaction:
                            value = int(transaction.get(b"n", b"0"))
                            transaction.put(b"n", b"%d" % (value + 1))
                            transaction.put(b"by%d" % own, b"x" * 50)
                        break
                    except lsmkv.ConflictError:
                        conflicts[own] += 1

        assert run_threads(*[partial(count, own) for own in range(4)]) == []
        assert db.get(b"n") == b"240"
