"""What every engine of ``lsmkv bench`` must do that can do it: a store of three entries."""

from __future__ import annotations

from pathlib import Path

from lsmkv.tools.bench.engines.base import Engine, Store
from lsmkv.tools.bench.settings import Settings

SMALL = Settings(num=100, write_buffer_size=64 * 1024)
ROWS = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]


def filled(engine: Engine, path: Path, sync: bool = False) -> Store:
    """An open store with :data:`ROWS`, and a key that was deleted."""
    store = engine.open(str(path), SMALL, sync)
    put = store.putter()
    for key, value in [*ROWS[::-1], (b"d", b"4")]:
        put(key, value)
    store.deleter()(b"d")
    return store


def check_keys(engine: Engine, path: Path) -> None:
    """Check puts, Gets and deletes, before and after the store is opened again."""
    store = filled(engine, path)
    for _ in range(2):
        get = store.getter(live=False)
        assert [get(key) for key, _ in ROWS] == [value for _, value in ROWS]
        assert get(b"d") is None
        store.close()
        store = engine.open(str(path), SMALL)
    store.close()


def check_order(engine: Engine, path: Path) -> None:
    """Check batches, scans, seeks and ranges."""
    store = filled(engine, path)
    store.batch_writer()([(b"e", b"5"), (b"b", b"20")])
    rows = [(b"a", b"1"), (b"b", b"20"), (b"c", b"3"), (b"e", b"5")]
    assert list(store.scan(reverse=False)) == rows
    assert list(store.scan(reverse=True)) == rows[::-1]
    seek = store.seeker()
    assert [seek(key) for key in (b"", b"b", b"d", b"f")] == [b"a", b"b", b"e", None]
    read = store.range_reader(2)
    assert [read(key) for key in (b"", b"d", b"f")] == [2, 1, 0]
    live = store.getter(live=True)
    store.putter()(b"a", b"new")
    assert live(b"a") == b"new"
    store.close()
