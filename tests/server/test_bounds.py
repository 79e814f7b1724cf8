"""The bounds of a sorted set: reads at an end do not go over what was removed there."""

from __future__ import annotations

import pytest
from ranges import WatchedDB

from lsmkv import MemoryEnv
from lsmkv.server.check import check
from lsmkv.server.commands import COMMANDS
from lsmkv.server.encoding import RANKED, SORTED_SET, ranked_prefix
from lsmkv.server.engine import Engine
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.settings import Settings


@pytest.mark.parametrize("pop", [b"ZPOPMIN", b"ZPOPMAX"])
def test_a_read_starts_behind_what_was_removed(pop: bytes) -> None:
    with WatchedDB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        engine = Engine(db, Keyspace(db), COMMANDS, Settings())
        engine.schedule = lambda callback: None
        session = engine.open_session()
        words = [word for n in range(10_100) for word in (b"%d" % n, b"m%05d" % n)]
        engine.run(session, [b"ZADD", b"z", *words])
        engine.commit()
        order = [name for name, _ in db.iterator(prefix=RANKED)]
        for _ in range(100):
            engine.run(session, [pop, b"z", b"100"])
            engine.commit()
        assert check(db) == []
        db.ranges.clear()
        name = b"ZRANGE" if pop == b"ZPOPMIN" else b"ZREVRANGE"
        engine.run(session, [name, b"z", b"0", b"-1"])
        entry = engine.space.find(engine.space.databases[0], b"z", SORTED_SET)
        assert entry is not None
        assert entry.size == 100
        assert order[0].startswith(ranked_prefix(entry))
        ((start, stop),) = db.ranges
        passed = sum(start <= place < stop for place in order)
        assert 100 <= passed < 300, "of 10,100 places, deleted or not"
