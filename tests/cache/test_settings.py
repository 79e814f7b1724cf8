"""Settings: stored, checked, and read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.cache.codecs import DefaultCodec
from lsmkv.cache.keys import LAYOUT, SETTING
from lsmkv.cache.settings import DEFAULTS, Settings
from lsmkv.errors import CorruptionError


def test_what_was_set_is_found_again(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, shared=False) as cache:
        assert {name: getattr(cache, name) for name in DEFAULTS} == DEFAULTS
        assert cache.reset("eviction", "none") == "none"
        assert cache.reset("cull_limit", 3) == 3
    with lsmkv.Cache(tmp_path, shared=False, size_limit=1 << 20, statistics=True) as cache:
        assert (cache.eviction_policy, cache.cull_limit) == ("none", 3)
    with lsmkv.Cache(tmp_path, shared=False) as cache:
        assert (cache.size_limit, cache.statistics) == (1 << 20, 1)


def test_another_handle_sees_a_change_when_it_asks(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path) as cache, lsmkv.Cache(tmp_path) as other:
        cache.reset("cull_limit", 3)
        assert other.cull_limit == 10
        assert other.reset("cull_limit") == 3 == other.cull_limit


def test_counters_are_read(cache: lsmkv.Cache) -> None:
    cache["k"] = 1
    assert cache.reset("count") == 1
    assert cache.reset("size") == cache.volume()
    with pytest.raises(ValueError, match="counted"):
        cache.reset("hits", 5)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("sqlite_mmap_size", 1, ValueError),
        ("size_limit", -1, ValueError),
        ("size_limit", "1", TypeError),
        ("eviction", "random", ValueError),
    ],
)
def test_what_cannot_be_set(
    cache: lsmkv.Cache, name: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        cache.reset(name, value)


def test_a_store_of_something_else_is_refused(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path, create_if_missing=True) as db:
        db.put(b"k", b"v")
    with pytest.raises(lsmkv.Error, match="not a cache"):
        lsmkv.Cache(tmp_path, shared=False)
    with lsmkv.DB(tmp_path) as db:
        db.put(LAYOUT, b"3")
    with pytest.raises(lsmkv.Error, match="later version"):
        lsmkv.Cache(tmp_path, shared=False)


def test_damaged_settings() -> None:
    with lsmkv.DB(":memory:") as db:
        settings = Settings()
        settings.read(db)
        db.put(SETTING + b"unknown", b"?")
        settings.read(db)
        db.put(SETTING + b"cull_limit", DefaultCodec().encode("ten"))
        with pytest.raises(CorruptionError):
            settings.read(db)
