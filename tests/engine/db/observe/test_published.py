"""lsmkv.engine.db.observe.published: the file comes back as it was, and anything else is
refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from observing import owner_of

import lsmkv
from lsmkv import DB, CorruptionError
from lsmkv.engine.db.observe.histogram import Histogram
from lsmkv.engine.db.observe.processes import COUNTED, ProcessFigures
from lsmkv.engine.db.observe.published import (
    CompactionUnderWay,
    Owner,
    Published,
    decode,
    encode,
)
from lsmkv.engine.db.observe.trace import OPERATIONS
from lsmkv.engine.format.filenames import STATS
from lsmkv.engine.leased_name import LeasedName


@pytest.fixture
def published() -> Published:
    latencies = {operation: Histogram() for operation in OPERATIONS}
    latencies["get"].add(1234)
    with DB(":memory:") as db:
        db.put(b"k", b"v")
        db.get(b"k")
        stats = db.stats()
    return Published(
        pid=17,
        time=1000.5,
        opened=900.25,
        stats=stats,
        latencies=latencies,
        compaction=CompactionUnderWay(1, 2, 3, 4_000, 500, 0.25),
        flushing=True,
        stalled_seconds=0.0,
        row_cache_bytes=10,
        block_cache_capacity=1 << 70,
        write_buffer_size=1 << 22,
        trace="/tmp/\u00e9\x1b",
        epoch=3,
        processes=(
            ProcessFigures(17, "owner", dict.fromkeys(COUNTED, 7), Histogram(), Histogram()),
        ),
        leased_names=(LeasedName("Lock '\u00e9'", (17, None), (18, 18)),),
    )


def same(a: Published, b: Published) -> bool:
    def plain(one: Published) -> object:
        return one._replace(latencies={name: it.buckets() for name, it in one.latencies.items()})  # type: ignore[misc]

    return plain(a) == plain(b)


def test_it_comes_back(published: Published) -> None:
    assert same(decode(encode(published)), published)
    nothing = published._replace(compaction=None, trace=None)
    assert same(decode(encode(nothing)), nothing)
    assert encode(published).endswith(b"}\n")
    assert encode(published).isascii()


def store_with(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / STATS).write_bytes(content)
    return tmp_path


def damaged(published: Published) -> list[bytes]:
    sound = json.loads(encode(published))
    wrong: list[Any] = [[], 7, None, "text", {}, sound | {"format": 2}, sound | {"pid": -1}]
    wrong += [sound | {name: value} for name in sound for value in ("x", [], {}, 1e400)]
    later = {"epoch", "processes", "leased_names"}  # of which 0.2.0 publishes none
    wrong += [{k: v for k, v in sound.items() if k != name} for name in sound.keys() - later]
    process = sound["processes"][0]
    wrong += [sound | {"processes": [process | {name: "x"}]} for name in process.keys() - {"role"}]
    wrong.append(sound | {"stats": sound["stats"] | {"levels": sound["stats"]["levels"][:3]}})
    wrong.append(sound | {"stats": sound["stats"] | {"gets": True}})
    names = ([7], ["n", 7, []], ["n", [-1], []], ["n", [], [None]], ["n", [], [], []])
    wrong += [sound | {"leased_names": [one]} for one in names]
    wrong.append(sound | {"latencies": {"get": {"total": 0, "buckets": [[99999, 1]]}}})
    wrong.append(sound | {"latencies": {"get": {"total": 0, "buckets": [[1, 1, 1]]}}})
    texts = [json.dumps(one).encode() for one in wrong]
    return [*texts, b"{", b"\xff", b"[" * 100_000, b"\0" * 50, b"x" * (1 << 20) + b"x"]


def test_anything_else_is_damage(tmp_path: Path, published: Published) -> None:
    # Fields of which any value can be made something, and mappings and lists that may be empty.
    harmless = {"flushing", "trace", "latencies", "processes", "leased_names"}
    found = 0
    for content in damaged(published):
        store = store_with(tmp_path, content)
        try:
            owner = owner_of(store)
        except CorruptionError as error:
            found += error.path == f"{store}/{STATS}"
        else:
            assert owner.published is not None
            read = json.loads(encode(owner.published))
            sound = json.loads(encode(published))
            assert {name for name in sound if read[name] != sound[name]} <= harmless
    assert found > 50


def test_who_publishes(published: Published) -> None:
    assert Owner(17, published).publishes
    assert Owner(0, published).publishes  # the lock is held, and cannot be asked more
    assert not Owner(18, published).publishes
    assert not Owner(None, published).publishes
    assert not Owner(17, None).publishes


def test_nobody_and_somebody_else(tmp_path: Path, published: Published) -> None:
    store = tmp_path / "store"
    with DB(store, create_if_missing=True) as db:
        owner = owner_of(store)
        assert owner.pid is not None
        assert owner.published is None
        assert not owner.publishes
        store_with(store, encode(published))
        assert not owner_of(store).publishes  # another process wrote it, long ago
        db.put(b"k", b"v")
        db.flush()
        assert not (store / STATS).exists()  # so it goes
    assert owner_of(store) == Owner(None, None)


def test_a_link_is_not_followed(tmp_path: Path, published: Published) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(encode(published))
    (tmp_path / STATS).symlink_to(elsewhere)
    with pytest.raises(lsmkv.IOError, match="symbolic link"):
        owner_of(tmp_path)
