"""What a commit asks: only what came since the transaction began, and as little as it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lsmkv
from lsmkv import DB, FixedPrefix


def fill(db: DB, first: int, count: int, value: bytes = b"x" * 100) -> None:
    for number in range(first, first + count):
        db.put(b"k%04d" % number, value)


def reads(db: DB, commit: Callable[[], None]) -> tuple[int, int]:
    """Tables asked for a key, and blocks looked at, during a commit."""
    before = db.stats()
    commit()
    spent = db.stats() - before
    asked = sum(level.tables_asked for level in spent.levels)
    return asked, spent.blocks_read + spent.block_cache_hits


def by_name(transaction: lsmkv.Transaction) -> None:
    for number in range(0, 900, 50):
        transaction.get(b"k%04d" % number)


def by_range(transaction: lsmkv.Transaction) -> None:
    list(transaction.iterator(start=b"k0100", stop=b"k0800"))


def by_one_key(transaction: lsmkv.Transaction) -> None:
    list(transaction.iterator(start=b"k0100", stop=b"k0100", include_stop=True))


@pytest.mark.parametrize("read", [by_name, by_range], ids=lambda read: read.__name__)
def test_tables_that_were_there_before_cost_nothing(
    read: Callable[[lsmkv.Transaction], None],
) -> None:
    with DB(":memory:", lru_cache_size=0) as db:
        fill(db, 0, 900)
        db.flush()
        fill(db, 0, 900)
        db.flush()
        transaction = db.transaction()
        read(transaction)
        transaction.put(b"new", b"")
        db.put(b"another", b"")
        assert reads(db, transaction.commit) == (0, 0)


def test_tables_of_other_ranges_cost_nothing() -> None:
    with DB(":memory:", lru_cache_size=0) as db:
        fill(db, 0, 900)
        db.flush()
        transaction = db.transaction()
        by_range(transaction)
        transaction.put(b"new", b"")
        for first in (0, 850):
            fill(db, first, 50)
            db.flush()
        assert reads(db, transaction.commit) == (0, 0)


@pytest.mark.parametrize("read", [by_name, by_one_key], ids=lambda read: read.__name__)
def test_a_filter_saves_the_blocks_of_a_key(read: Callable[[lsmkv.Transaction], None]) -> None:
    with DB(":memory:", lru_cache_size=0, bloom_filter_bits=20) as db:
        transaction = db.transaction()
        read(transaction)
        transaction.put(b"new", b"")
        for number in range(900):
            db.put(b"k%04d absent" % number, b"")
        db.flush()
        asked, blocks = reads(db, transaction.commit)
        assert asked > 0
        assert blocks == 0


def test_a_prefix_filter_saves_the_blocks_of_a_range() -> None:
    with DB(":memory:", lru_cache_size=0, prefix_extractor=FixedPrefix(4)) as db:
        transaction = db.transaction()
        assert list(transaction.iterator(prefix=b"bbbb")) == []
        transaction.put(b"new", b"")
        db.put(b"aaaa1", b"")
        db.put(b"cccc1", b"")
        db.flush()
        assert reads(db, transaction.commit)[1] == 0


def test_a_block_at_a_time_of_the_range_is_read() -> None:
    """A compaction has rewritten everything: only the blocks of the range are read."""
    with DB(":memory:", lru_cache_size=0, compression=None, block_size=1024) as db:
        fill(db, 0, 900)
        transaction = db.transaction()
        list(transaction.iterator(start=b"k0100", stop=b"k0120"))
        transaction.put(b"new", b"")
        db.flush()
        db.compact_range()
        blocks = reads(db, transaction.commit)[1]
        assert 1 <= blocks <= 10


def deletes(db: DB) -> None:
    for number in range(40):
        db.delete(b"k%04d" % number)


def deletes_one(db: DB) -> None:
    db.delete(b"k0020")


def deletes_what_was_not_there(db: DB) -> None:
    db.delete(b"k0020 absent")


def puts_and_deletes(db: DB) -> None:
    db.put(b"k0020 new", b"")
    db.delete(b"k0020 new")


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("read", [b"k0020", None])
@pytest.mark.parametrize(
    "delete",
    [deletes, deletes_one, deletes_what_was_not_there, puts_and_deletes],
    ids=lambda delete: delete.__name__,
)
def test_no_compaction_hides_a_deletion(
    delete: Callable[[DB], None], read: bytes | None, inline: bool
) -> None:
    """The deletion is the only trace of the write once nothing older is left."""
    options: dict[str, Any] = {"background": "inline"} if inline else {}
    with DB(":memory:", **options) as db:
        fill(db, 0, 40)
        db.flush()
        transaction = db.transaction()
        list(transaction.iterator(start=read))
        transaction.put(b"new", b"")
        delete(db)
        for _ in range(3):
            db.flush()
            db.compact_range()
        with pytest.raises(lsmkv.ConflictError):
            transaction.commit()


def test_ingested_tables_conflict(tmp_path: Any) -> None:
    with lsmkv.TableWriter(tmp_path / "load.ldb") as table:
        table.add(b"k0005", b"new")
    with DB(tmp_path / "db", create_if_missing=True) as db:
        for start in (b"k0005", b"k0006"):
            fill(db, 0, 10)
            transaction = db.transaction()
            assert next(transaction.iterator(start=start))
            transaction.put(b"new", b"")
            db.ingest([tmp_path / "load.ldb"])
            if start == b"k0005":
                with pytest.raises(lsmkv.ConflictError, match="k0005"):
                    transaction.commit()
            else:
                transaction.commit()


class Order:
    """The bytewise order, which calls a function when a key is compared with itself."""

    def __init__(self) -> None:
        self.call: Callable[[], None] | None = None

    def __call__(self, a: bytes, b: bytes) -> int:
        call = self.call
        if call is not None and a == b == b"mark":
            self.call = None
            call()
        return (a > b) - (a < b)


def nothing(db: DB) -> None:
    pass


def flush(db: DB) -> None:
    db.flush()


def compact(db: DB) -> None:
    db.compact_range()


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("after", [nothing, flush, compact], ids=lambda after: after.__name__)
@pytest.mark.parametrize("before", [nothing, flush, compact], ids=lambda before: before.__name__)
def test_a_write_after_the_first_look_and_before_the_lock_conflicts(
    before: Callable[[DB], None], after: Callable[[DB], None], deletes: bool
) -> None:
    """A commit looks at its ranges before it takes the writers' lock, and again under it.

    In between it has the comparator take each of its keys, which is when another writes here.
    """
    order = Order()
    with DB(":memory:", comparator=order, comparator_name="calls") as db:
        fill(db, 0, 10)

        def meanwhile() -> None:
            if deletes:
                db.delete(b"k0005")
            else:
                db.put(b"k0005", b"theirs")
            after(db)

        for last, conflicts in ((b"k0005", True), (b"k0004", False)):
            transaction = db.transaction()
            list(transaction.iterator(stop=last, include_stop=True))
            transaction.put(b"mark", b"")
            fill(db, 7, 10)
            before(db)
            order.call = meanwhile
            if conflicts:
                with pytest.raises(lsmkv.ConflictError, match="k0005"):
                    transaction.commit()
            else:
                transaction.commit()
            assert order.call is None


def test_the_conflict_names_the_range_and_the_key() -> None:
    with DB(":memory:") as db:
        fill(db, 0, 10)
        transaction = db.transaction()
        keys = transaction.iterator(start=b"k0002", include_value=False)
        assert [next(keys), next(keys)] == [b"k0002", b"k0003"]
        transaction.put(b"new", b"")
        db.put(b"k0002+", b"")
        with pytest.raises(lsmkv.ConflictError) as error:
            transaction.commit()
        assert str(error.value) == (
            "b'k0002+' was written since the transaction began,"
            " which has read the range b'k0002' <= key <= b'k0003'"
        )
