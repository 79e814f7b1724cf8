"""The expiry queue: earliest first, and never twice over what was taken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ranges import WatchedDB

from lsmkv import DB, MemoryEnv
from lsmkv.server.encoding import EXPIRY, U64
from lsmkv.server.expiry import ExpiryQueue
from lsmkv.server.records import Records


@pytest.fixture
def records() -> Iterator[Records]:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        yield Records(db)


def test_the_earliest_come_first_up_to_a_limit(records: Records) -> None:
    queue = ExpiryQueue(records)
    for time in (30, 10, 20, 40):
        queue.add(time, 1, b"%d" % time)
    assert queue.take_due(9, 5) == []
    assert queue.take_due(30, 2) == [(10, 1, b"10"), (20, 1, b"20")]
    assert queue.take_due(30, 2) == [(30, 1, b"30")]
    queue.remove(40, 1, b"40")
    assert queue.take_due(50, 2) == []


def test_a_time_before_the_bound_is_found(records: Records) -> None:
    queue = ExpiryQueue(records)
    queue.add(100, 1, b"late")
    assert len(queue.take_due(100, 5)) == 1
    queue.add(50, 1, b"early")
    records.commit()
    assert ExpiryQueue(records).take_due(60, 5) == [(50, 1, b"early")]


def test_what_is_undone_is_due_again(records: Records) -> None:
    queue = ExpiryQueue(records)
    queue.add(1, 1, b"a")
    records.keep()
    assert len(queue.take_due(5, 5)) == 1
    records.undo()
    queue.reload()
    assert queue.take_due(5, 5) == [(1, 1, b"a")]


def test_no_scan_goes_over_what_has_expired() -> None:
    with WatchedDB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        records = Records(db)
        queue = ExpiryQueue(records)
        for time in range(100_000):
            queue.add(time, 1, b"key")
        queue.add(200_000, 1, b"key")
        records.commit()
        assert len(queue.take_due(100_000, 100_000)) == 100_000
        records.commit()
        db.ranges.clear()
        assert queue.take_due(150_000, 10) == []
        assert db.ranges == []
        for one in (queue, ExpiryQueue(records)):
            one.take_due(199_999 if one is not queue else 200_000, 10)
        assert len(db.ranges) == 2
        assert all(start >= EXPIRY + U64.pack(99_999) for start, _ in db.ranges)
