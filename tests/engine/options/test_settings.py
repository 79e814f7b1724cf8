"""lsmkv.engine.options.settings: what the settings do, and which are refused."""

from __future__ import annotations

import asyncio
import os
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from orders import fold
from policies import LastByte
from stores import ENTRIES, TINY, contents, fill

import lsmkv
import lsmkv.aio
import lsmkv.plyvel
from lsmkv import DB, LocalEnv, MemoryEnv
from lsmkv.engine.filter.prefix import CallablePrefix


class Derived(LocalEnv):
    """An environment of a program's own, which only this process has."""


FIRST = CallablePrefix(lambda key: key[:1], "test.First")


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "db")


@pytest.mark.parametrize("compression", ["auto", "snappy", "zstd", "zlib", "zlib-raw", None])
@pytest.mark.parametrize("layout", ["block", "table", "both"])
def test_compressions_and_filter_layouts(path: str, compression: Any, layout: Any) -> None:
    with DB(
        path, create_if_missing=True, compression=compression, filter_layout=layout, **TINY
    ) as db:
        fill(db)
        db.compact_range()
    for reading in ("block", "table", "both"):  # readers use what they find
        with DB(path, filter_layout=reading, lru_cache_size=0) as db:
            assert dict(db) == ENTRIES
            for key, value in list(ENTRIES.items())[::10]:
                assert db.get(key) == value
                assert db.get(key + b"x") is None
            asked = db.stats().filters_asked
            assert asked >= 30
            db.check()


def reverse(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


@pytest.mark.parametrize("step", ["none", "flush", "compact", "reopen"])
def test_a_custom_comparator(path: str, step: str) -> None:
    options: dict[str, Any] = {"comparator": reverse, "comparator_name": "test.reverse"}
    db = DB(path, create_if_missing=True, **TINY, **options)
    fill(db)
    db.delete(b"key0007")
    if step == "flush":
        db.flush()
    elif step == "compact":
        db.compact_range()
    elif step == "reopen":
        db.close()
        db = DB(path, **TINY, **options)
    expected = sorted(ENTRIES.items(), reverse=True)
    expected.remove((b"key0007", ENTRIES[b"key0007"]))
    with db:
        assert list(db) == expected
        assert list(db.iterator(reverse=True)) == expected[::-1]
        got = list(db.iterator(start=b"key0200", stop=b"key0100", include_value=False))
        assert got == [b"key%04d" % n for n in range(200, 100, -1)]
        assert db.get(b"key0007") is None
        assert db.get(b"key0008") == ENTRIES[b"key0008"]
        db.check()


@pytest.mark.parametrize("flushed", [False, True])
def test_a_comparator_that_calls_different_bytes_equal(path: str, flushed: bool) -> None:
    with DB(
        path, create_if_missing=True, comparator=fold, comparator_name="test.fold", **TINY
    ) as db:
        db.put(b"Key", b"1")
        db.put(b"other", b"2")
        if flushed:
            db.flush()
        assert db.get(b"kEY") == b"1"
        with db.snapshot() as snapshot:
            db.put(b"KEY", b"3")
            if flushed:
                db.flush()
            assert db.get(b"key") == b"3"
            assert [value for _, value in db] == [b"3", b"2"]
            assert snapshot.get(b"key") == b"1"
            assert [value for _, value in snapshot] == [b"1", b"2"]
        db.delete(b"key")
        if flushed:
            db.compact_range()
        assert db.get(b"Key") is None
        assert dict(db) == {b"other": b"2"}
        assert db.stats().filters_asked == 0


def test_a_comparator_object_with_its_own_name(path: str) -> None:
    with DB(path, create_if_missing=True, comparator=lsmkv.ReverseBytewiseComparator()) as db:
        fill(db)
        db.compact_range()
        assert [key for key, _ in db] == sorted(ENTRIES, reverse=True)
        assert db.get(b"key0001x") is None
        assert db.stats().filters_asked > 0
    with pytest.raises(lsmkv.ComparatorMismatchError) as caught:
        DB(path, comparator=lsmkv.BytewiseComparator())
    assert "leveldb.BytewiseComparator" in str(caught.value)
    assert "leveldb.ReverseBytewiseComparator" in str(caught.value)


def test_a_block_cache_may_be_shared(tmp_path: pathlib.Path) -> None:
    """Two stores whose tables bear the same numbers."""
    cache: lsmkv.LRUCache[tuple[int, int], Any] = lsmkv.LRUCache(1 << 20)
    stores = [DB(tmp_path / name, create_if_missing=True, block_cache=cache) for name in ("a", "b")]
    for n, db in enumerate(stores):
        db.put(b"k", b"%d" % n)
        db.flush()
    for _ in range(2):
        assert [db.get(b"k") for db in stores] == [b"0", b"1"]
    assert [db.stats().block_cache_hits for db in stores] == [1, 1]
    for db in stores:
        db.close()


@pytest.mark.parametrize(
    ("options", "error", "hint"),
    [
        ({"blok_size": 4096}, TypeError, r"lsmkv\.DB.*'blok_size': did you mean 'block_size'\?"),
        ({"verify_checksums": True}, TypeError, r"lsmkv\.DB has no option 'verify_checksums'$"),
        ({"compression": "lz4"}, ValueError, r"unknown compression 'lz4'.*snappy.*zstd"),
        ({"compression": 1}, TypeError, "compression must be a str or None, not int"),
        ({"compression": ["snappy"]}, TypeError, "compression must be a str"),
        ({"filter_layout": "page"}, ValueError, r"filter_layout.*'page'"),
        ({"background": "fiber"}, ValueError, r"background.*'fiber'"),
        ({"background": "process", "env": MemoryEnv()}, ValueError, "background='process'"),
        ({"background": "process", "env": Derived()}, ValueError, "background='process'"),
        ({"background": "process", "filter_policy": LastByte()}, ValueError, "another process"),
        ({"background": "process", "prefix_extractor": FIRST}, ValueError, "another process"),
        (
            {"background": "process", "comparator": reverse, "comparator_name": "reverse"},
            ValueError,
            "another process",
        ),
        ({"block_size": "4k"}, TypeError, r"block_size must be an int, not str"),
        ({"write_buffer_size": -1}, ValueError, "write_buffer_size cannot be negative"),
        ({"max_open_files": True}, TypeError, "max_open_files must be an int, not bool"),
        ({"env": "disk"}, TypeError, r"env must derive from .*Env, not str"),
        ({"filter_policy": object()}, TypeError, "filter_policy lacks 'name'"),
        ({"filter_policy": LastByte(), "bloom_filter_bits": 5}, ValueError, "not both"),
        ({"comparator": 5}, TypeError, "comparator must be a function"),
        ({"comparator": reverse}, ValueError, "needs a comparator_name"),
        ({"comparator_name": "x"}, ValueError, "without a comparator"),
    ],
)
def test_wrong_options(
    path: str, options: dict[str, Any], error: type[Exception], hint: str
) -> None:
    with pytest.raises(error, match=hint):
        DB(path, create_if_missing=True, **options)
    assert not os.path.exists(path)
    with DB(path, create_if_missing=True) as db:
        fill(db)
    before = contents(path)
    with pytest.raises(error, match=hint):
        DB(path, **options)
    assert contents(path) == before


@pytest.mark.parametrize(
    ("opens", "taker"),
    [
        (DB, "DB"),
        (lsmkv.open, "DB"),
        (lsmkv.repair_db, "DB"),
        (lsmkv.plan_repair, "DB"),
        (lsmkv.plyvel.DB, r"plyvel\.DB"),
        (lsmkv.TableWriter, "TableWriter"),
        (lambda path, **options: asyncio.run(lsmkv.aio.DB(path, **options).open()), "DB"),
    ],
)
def test_a_misspelt_option_is_refused_with_a_hint(
    path: str, opens: Callable[..., object], taker: str
) -> None:
    """Wherever options are taken, and what is no option there is not one of another's."""
    with pytest.raises(TypeError, match=rf"lsmkv\.{taker} .*'blok_size'.* mean 'block_size'\?$"):
        opens(path, block_restart_interval=4, blok_size=4096)
    with pytest.raises(TypeError, match=rf"lsmkv\.{taker} has no option 'kept'$"):
        opens(path, kept=1)
    assert not os.path.exists(path)


def test_options_of_others_are_refused(path: str) -> None:
    for opens in (lsmkv.plyvel.DB, lsmkv.TableWriter):
        with pytest.raises(TypeError, match=r"has no option 'background'$"):
            opens(path, background="thread")
    assert not os.path.exists(path)
