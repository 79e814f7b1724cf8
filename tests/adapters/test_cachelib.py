"""The class with cachelib's interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from plain_values import NOON, PLAIN
from still_clocks import StillClock

from lsmkv.cache.cachelib import LsmkvCache


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def cache(tmp_path: Path, clock: StillClock) -> Iterator[LsmkvCache]:
    made = LsmkvCache(tmp_path / "c", default_timeout=300, shared=False, clock=clock)
    yield made
    made.close()


def test_its_methods_do_what_those_of_cachelib_do(cache: LsmkvCache) -> None:
    assert cache.set("a", 1)
    assert cache.add("a", 2) is False
    assert cache.add("b", [2]) is True
    assert cache.get_many("a", "b", "c") == [1, [2], None]
    assert cache.get_dict("a", "c") == {"a": 1, "c": None}
    assert cache.set_many({"c": 3, "d": 4}) == ["c", "d"]
    assert cache.delete("d") is True
    assert cache.delete("d") is False
    assert cache.delete_many("c", "x") == ["c"]
    assert cache.has("a")
    assert not cache.has("c")
    assert (cache.inc("n"), cache.inc("n", 5), cache.dec("n", 2)) == (1, 6, 4)
    assert cache.clear() is True
    assert cache.get("a") is None


def test_values_are_those_that_its_file_backend_returns(cache: LsmkvCache, tmp_path: Path) -> None:
    theirs = pytest.importorskip("cachelib").FileSystemCache(str(tmp_path / "theirs"))
    for other in (cache, theirs):
        assert other.set("session", PLAIN)
        assert other.set_many(PLAIN)
        assert other.add("at", {NOON})
    assert cache.get("session") == theirs.get("session") == PLAIN
    assert cache.get_dict(*PLAIN) == theirs.get_dict(*PLAIN) == PLAIN
    assert cache.get("at") == theirs.get("at")


def test_timeouts(cache: LsmkvCache, clock: StillClock) -> None:
    cache.set("default", 1)
    cache.set("none", 1, timeout=0)
    cache.set("soon", 1, timeout=1)
    assert cache.cache.get("default", expire_time=True) == (1, clock.now + 300)
    assert cache.cache.get("none", expire_time=True) == (1, None)
    assert cache.get("soon") == 1
    clock.now += 1
    assert cache.get("soon") is None


def test_it_has_all_methods_of_cachelib() -> None:
    base = pytest.importorskip("cachelib").BaseCache
    public = {name for name in vars(base) if not name.startswith("_")}
    assert public <= set(dir(LsmkvCache))
