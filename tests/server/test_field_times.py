"""The times of the fields of a hash."""

from __future__ import annotations

from lsmkv import DB, MemoryEnv
from lsmkv.server.encoding import HASH, Entry
from lsmkv.server.field_times import FieldTimes
from lsmkv.server.records import Records


def test_times_by_field_and_in_order() -> None:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        times = FieldTimes(Records(db), Entry(HASH, version=5))
        assert (times.earliest(), times.get(b"a")) == (0, 0)
        for field, time in ((b"a", 30), (b"b", 10), (b"c", 20)):
            assert not times.set(field, time)
        assert (times.earliest(), times.get(b"a")) == (10, 30)
        assert times.due(9, 5) == []
        assert times.due(20, 5) == [b"b", b"c"]
        assert times.due(30, 2) == [b"b", b"c"]
        assert times.set(b"b", 40)
        assert times.set(b"c", 0)
        assert not times.set(b"c", 0)
        assert (times.earliest(), times.get(b"b"), times.get(b"c")) == (30, 40, 0)
        assert FieldTimes(Records(db), Entry(HASH, version=6)).earliest() == 0
