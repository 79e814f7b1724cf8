"""lsmkv.engine.db.write.write_delays: writes that wait for background work, and for readers."""

from __future__ import annotations

from typing import Any

from lsmkv import DB
from lsmkv.engine.counters import BLOCK_READS


def test_a_write_is_delayed_while_level_0_is_crowded(db: DB) -> None:
    store: Any = db._store
    db.put(b"k", b"v")
    assert db.stats().slowdowns == 0
    store.view.delay = 0.001
    db.put(b"k", b"v")
    assert db.stats().slowdowns == 1
    store.view.delay = 0.0
    db.put(b"k", b"v")
    assert db.stats().slowdowns == 1


def test_a_write_is_delayed_as_it_nears_a_wait_for_the_flush(path: str) -> None:
    """In the second half of a memtable, as long as the one before is flushed, if it is small."""
    with DB(path, create_if_missing=True, write_buffer_size=1 << 20) as db:
        store: Any = db._store
        slowdowns = []
        for size, times in ((200_000, 2), (15_000, 5), (20_000, 12), (15_000, 15)):
            before = db.stats().slowdowns
            store.view.immutable = store.view.memtable
            for _ in range(times):
                db.put(b"k", b"x" * size)
            store.view.immutable = None
            slowdowns.append(db.stats().slowdowns - before)
        assert slowdowns[:3] == [0, 0, 0]
        assert slowdowns[3] > 0


def test_a_writer_gives_way_to_readers_that_wait(db: DB) -> None:
    """Once for each turn, and not again before a read has ended: they may wait for the disk."""
    delays: Any = db._writer._delays  # type: ignore[union-attr]
    db.put(b"k", b"v")
    assert delays._turn_ends == 0.0  # no reader waits
    with BLOCK_READS:
        pass
    with BLOCK_READS:
        db.put(b"k", b"v")
        assert delays._turn_ends > 0.0
        delays._turn_ends = 0.0
        db.put(b"k", b"v")
        assert delays._turn_ends == 0.0
        with BLOCK_READS:
            pass
        db.put(b"k", b"v")
        assert delays._turn_ends > 0.0
