"""The cache as a whole: order, copies, forks, errors, and a model under random operations."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from still_clocks import StillClock

import lsmkv


def test_the_order_of_storing(cache: lsmkv.Cache) -> None:
    for key in ("b", ("g",), "a", 1):
        cache[key] = key
    iterator = iter(cache)
    cache["h"] = 7
    assert list(iterator) == ["b", ("g",), "a", 1]
    assert list(reversed(cache)) == ["h", 1, "a", ("g",), "b"]
    assert list(cache.iterkeys(reverse=True)) == [("g",), "h", "b", "a", 1]


def test_peekitem(cache: lsmkv.Cache, clock: StillClock) -> None:
    with pytest.raises(KeyError):
        cache.peekitem()
    cache["a"] = 1
    cache.set("b", 2, tag="t")
    cache.set("c", 3, expire=1)
    clock.now += 1
    assert cache.peekitem(tag=True, expire_time=True) == (("b", 2), None, "t")
    assert cache.peekitem(last=False) == ("a", 1)
    assert len(cache) == 2


def test_an_empty_cache_is_true(cache: lsmkv.Cache) -> None:
    assert len(cache) == 0
    assert cache


def test_a_pickled_cache_is_the_same(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, recency=5.0) as cache:
        cache["k"] = 1
        with pickle.loads(pickle.dumps(cache)) as other:
            assert other["k"] == 1
            assert other.recency == 5.0


def test_a_directory_of_its_own() -> None:
    with lsmkv.Cache(shared=False) as cache:
        assert Path(cache.directory).is_dir()


def test_directories_above_are_made(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path / "a" / "b", shared=False) as cache:
        cache["k"] = 1
    (tmp_path / "file").write_text("")
    with pytest.raises(lsmkv.IOError):
        lsmkv.Cache(tmp_path / "file" / "b" / "c", shared=False)


def test_closing(tmp_path: Path) -> None:
    cache = lsmkv.Cache(tmp_path, shared=False)
    assert not cache.closed
    assert repr(cache) == f"<lsmkv.Cache {str(tmp_path)!r}>"
    cache.close()
    cache.close()
    assert cache.closed
    assert repr(cache).endswith(" (closed)>")
    for call in (lambda: cache.get("k"), lambda: cache.set("k", 1), lambda: len(cache)):
        with pytest.raises(lsmkv.ClosedError):
            call()


@pytest.mark.parametrize("wrong", [{"on_error": "ignore"}, {"recency": -1}, {"no_option": 1}])
def test_wrong_arguments(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        lsmkv.Cache(tmp_path, shared=False, **wrong)


def test_threads_lose_no_increment(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path) as cache:

        def count() -> None:
            for number in range(50):
                cache.incr("visits")
                cache.set(number, number)

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cache["visits"] == 200
        assert len(cache) == 51
        assert cache.check() == []


def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path, clock: StillClock) -> None:
    with lsmkv.Cache(tmp_path, shared=False, clock=clock) as cache:
        cache["a"] = 1
    clock.now -= 1000
    with lsmkv.Cache(tmp_path, shared=False, clock=clock) as cache:
        cache["b"] = 2
        assert list(cache) == ["a", "b"]


KEYS = st.sampled_from(["a", "b", b"a", 1, 2.5, ("t", 1), None])
EXPIRY = st.none() | st.integers(0, 20)
TAGS = st.none() | st.sampled_from(["x", 1])
SIZES = st.sampled_from([0, 10, 70_000])


class Model(RuleBasedStateMachine):
    """A cache beside a dict; time passes when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = StillClock()
        self.env = lsmkv.MemoryEnv()
        self.policy = "least-recently-used"
        self.entries: dict[Any, tuple[Any, float | None, Any]] = {}
        self.open()

    def open(self) -> None:
        self.cache = lsmkv.Cache(
            "cache", shared=False, clock=self.clock, env=self.env, cull_limit=0
        )

    def live(self, key: Any) -> bool:
        if key not in self.entries:
            return False
        expiry = self.entries[key][1]
        return expiry is None or expiry > self.clock.now

    def expiry(self, expire: int | None) -> float | None:
        return None if expire is None else self.clock.now + expire

    @rule(key=KEYS, size=SIZES, expire=EXPIRY, tag=TAGS)
    def set(self, key: Any, size: int, expire: int | None, tag: Any) -> None:
        self.cache.set(key, bytes(size), expire=expire, tag=tag)
        self.entries[key] = (bytes(size), self.expiry(expire), tag)

    @rule(key=KEYS, size=SIZES, expire=EXPIRY)
    def add(self, key: Any, size: int, expire: int | None) -> None:
        is_new = not self.live(key)
        assert self.cache.add(key, bytes(size), expire=expire) == is_new
        if is_new:
            self.entries[key] = (bytes(size), self.expiry(expire), None)

    @rule(key=KEYS)
    def get(self, key: Any) -> None:
        expected = self.entries[key] if self.live(key) else (0, None, None)
        assert self.cache.get(key, 0, expire_time=True, tag=True) == expected
        assert (key in self.cache) == self.live(key)

    @rule(key=KEYS, expire=EXPIRY)
    def touch(self, key: Any, expire: int | None) -> None:
        assert self.cache.touch(key, expire) == self.live(key)
        if self.live(key):
            value, _, tag = self.entries[key]
            self.entries[key] = (value, self.expiry(expire), tag)

    @rule(key=KEYS)
    def delete(self, key: Any) -> None:
        assert self.cache.delete(key) == self.live(key)
        if self.live(key):
            del self.entries[key]

    @rule(key=KEYS)
    def pop(self, key: Any) -> None:
        assert self.cache.pop(key) == (self.entries[key][0] if self.live(key) else None)
        if self.live(key):
            del self.entries[key]

    @rule(tag=TAGS.filter(lambda tag: tag is not None))
    def evict(self, tag: Any) -> None:
        gone = [key for key, entry in self.entries.items() if entry[2] == tag]
        assert self.cache.evict(tag) == len(gone)
        for key in gone:
            del self.entries[key]

    @rule()
    def expire(self) -> None:
        gone = [key for key, entry in self.entries.items() if (entry[1] or 1e12) < self.clock.now]
        assert self.cache.expire() == len(gone)
        for key in gone:
            del self.entries[key]

    @rule(seconds=st.integers(0, 100))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds + 0.5

    @rule(policy=st.sampled_from(["least-recently-used", "least-frequently-used", "none"]))
    def change(self, policy: str) -> None:
        self.cache.reset("eviction_policy", policy)

    @rule(killed=st.booleans())
    def reopen(self, killed: bool) -> None:
        if not killed:
            self.cache.close()
        else:
            self.cache._db.close()
        self.open()

    @invariant()
    def agree(self) -> None:
        assert self.cache.check() == []
        assert list(self.cache) == list(self.entries)
        assert len(self.cache) == len(self.entries)

    def teardown(self) -> None:
        self.cache.close()


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_is_a_handle_of_its_own(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path) as cache:
        cache["a"] = 1
        child = os.fork()
        if child == 0:
            try:
                cache["b"] = cache.incr("a")
                cache.close()
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert (cache["a"], cache["b"], len(cache)) == (2, 2, 2)
        assert cache.check() == []
