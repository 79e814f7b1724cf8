"""The methods of a cache that are about one key."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path
from typing import Any

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.codecs import PickleCodec
from lsmkv.cache.keys import ORDER, head_key
from lsmkv.errors import CorruptionError, UnsupportedValueError

LARGE = os.urandom(1000) * 2500
"""Three chunks."""


@pytest.mark.parametrize("value", [None, True, 7, 2.5, "text", b"bytes", (1, [2]), {"a": b"b"}])
def test_a_value_comes_back(cache: lsmkv.Cache, value: Any) -> None:
    cache["k"] = value
    assert cache["k"] == value
    assert type(cache.get("k")) is type(value)


def test_a_missing_key(cache: lsmkv.Cache) -> None:
    assert cache.get("k") is None
    assert cache.get("k", 1, expire_time=True) == (1, None)
    assert cache.get("k", tag=True, expire_time=True) == (None, None, None)
    with pytest.raises(KeyError):
        cache["k"]
    with pytest.raises(KeyError):
        cache.read("k")
    with pytest.raises(KeyError):
        del cache["k"]
    assert "k" not in cache


def test_a_value_that_the_codec_does_not_take(cache: lsmkv.Cache) -> None:
    with pytest.raises(UnsupportedValueError):
        cache["k"] = {1, object()}
    assert len(cache) == 0


def test_an_entry_expires(cache: lsmkv.Cache, clock: StillClock) -> None:
    assert cache.set("k", 1, expire=10, tag="t")
    assert cache.get("k", expire_time=True, tag=True) == (1, clock.now + 10, "t")
    clock.now += 9.9
    assert "k" in cache
    clock.now += 0.1
    assert cache.get("k", 0) == 0
    assert "k" not in cache
    assert len(cache) == 1  # it is still there
    assert cache.pop("k", 0, tag=True) == (0, None)
    assert not cache.touch("k")
    assert not cache.delete("k")
    clock.now += 0.1
    assert cache.expire() == 1
    assert len(cache) == 0


def test_an_entry_that_never_expires(cache: lsmkv.Cache, clock: StillClock) -> None:
    cache.set("k", 1, expire=math.inf)
    clock.now += 1e12
    assert cache["k"] == 1


def test_storing_again_replaces_everything(cache: lsmkv.Cache, clock: StillClock) -> None:
    cache.set("k", b"x" * 100, expire=10, tag="t")
    cache.set("k", b"y", tag="u")
    clock.now += 11
    assert cache.get("k", tag=True, expire_time=True) == (b"y", None, "u")
    assert cache.expire() == cache.evict("t") == 0
    assert len(cache) == 1
    small = cache.volume()
    cache.set("k", b"x" * 100)
    assert cache.volume() == small + 99 - 4  # the tag is gone


def test_touch_moves_the_expiry_alone(cache: lsmkv.Cache, clock: StillClock) -> None:
    cache.set("k", LARGE, expire=10, tag="t")
    assert cache.touch("k", 100)
    clock.now += 50
    assert cache.get("k", expire_time=True, tag=True) == (LARGE, clock.now + 50, "t")
    assert cache.touch("k")
    clock.now += 1000
    assert cache.expire() == 0
    assert cache["k"] == LARGE


def test_add_only_what_is_not_there(cache: lsmkv.Cache, clock: StillClock) -> None:
    assert cache.add("k", 1, expire=10)
    assert not cache.add("k", 2)
    clock.now += 10
    assert cache.add("k", LARGE)
    assert not cache.add("k", LARGE[::-1])
    assert cache["k"] == LARGE


def test_counting(cache: lsmkv.Cache, clock: StillClock) -> None:
    assert cache.incr("k", default=5) == 6
    assert cache.decr("k", 2) == 4
    assert cache.incr("k", 0.5) == 4.5
    cache.set("k", 10, expire=10, tag="t")
    assert cache.incr("k") == 11
    assert cache.get("k", expire_time=True, tag=True) == (11, clock.now + 10, "t")
    clock.now += 10
    with pytest.raises(KeyError):
        cache.incr("k", default=None)
    assert cache.incr("k") == 1
    assert cache.get("k", expire_time=True, tag=True) == (1, None, None)


def test_what_cannot_be_counted(cache: lsmkv.Cache) -> None:
    cache["text"] = "1"
    cache["large"] = LARGE
    for key in ("text", "large"):
        with pytest.raises(TypeError):
            cache.incr(key)
    assert cache["text"] == "1"


def test_pop(cache: lsmkv.Cache) -> None:
    cache.set("k", LARGE, expire=10, tag="t")
    value, _, tag = cache.pop("k", expire_time=True, tag=True)
    assert (value, tag) == (LARGE, "t")
    assert cache.pop("k", 7) == 7
    assert cache.volume() == 0


def test_delete(cache: lsmkv.Cache) -> None:
    cache["k"] = LARGE
    assert cache.delete("k")
    assert not cache.delete("k")
    assert list(cache._db.iterator(prefix=b"v")) == []


def test_a_file_is_stored_and_read(cache: lsmkv.Cache) -> None:
    for value in (b"", b"small", LARGE):
        cache.set("k", io.BytesIO(value), read=True)
        assert cache["k"] == value
        with cache.read("k") as reader:
            assert reader.read() == value
            assert reader.name == "'k'"
            assert reader.size == len(value)
        assert cache.pop("k") == value


def test_bytes_are_read_as_a_file_and_others_are_not(cache: lsmkv.Cache) -> None:
    cache["bytes"], cache["text"] = LARGE, "text"
    assert cache.get("bytes", read=True).read() == LARGE
    assert cache.get("text", read=True) == "text"


def test_a_reader_keeps_what_it_reads(cache: lsmkv.Cache) -> None:
    cache.set("k", io.BytesIO(LARGE), read=True)
    with cache.read("k") as reader:
        del cache["k"]
        assert reader.read() == LARGE


def test_a_file_that_fails_leaves_nothing(cache: lsmkv.Cache) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 1_000_000:
                raise OSError("no more")
            return super().read(size)

    with pytest.raises(OSError, match="no more"):
        cache.set("k", Failing(LARGE), read=True)
    assert "k" not in cache
    assert list(cache._db.iterator(prefix=b"v")) == list(cache._db.iterator(prefix=b"p")) == []


def test_hits_and_misses_are_counted_once_asked_for(cache: lsmkv.Cache) -> None:
    cache["k"] = 1
    cache.get("k"), cache.get("no")
    assert cache.stats() == (0, 0)
    cache.get("k"), cache.get("k", tag=True), cache.get("no")
    assert cache.stats(enable=False, reset=True) == (2, 1)
    cache.get("k")
    assert cache.stats() == (0, 0)


def test_an_int_and_an_equal_float_are_one_key(cache: lsmkv.Cache) -> None:
    cache[1], cache[True] = "one", "true"
    assert cache[1.0] == "one"
    assert len(cache) == 2


def test_nothing_is_unpickled_unless_asked(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, shared=False, codec=PickleCodec()) as cache:
        cache["k"] = {1, 2}
    with lsmkv.Cache(tmp_path, shared=False) as cache, pytest.raises(CorruptionError):
        cache["k"]
    with lsmkv.Cache(tmp_path, shared=False, on_error="skip") as cache:
        assert cache.get("k", 0) == 0
    with lsmkv.Cache(tmp_path, shared=False, codec=PickleCodec()) as cache:
        assert cache["k"] == {1, 2}


def test_a_value_that_is_replaced_while_it_is_read(cache: lsmkv.Cache) -> None:
    cache["k"] = LARGE
    name = head_key("k", cache.codec)
    old = [cache._db.get(name)]
    cache["k"] = LARGE[::-1]  # the chunks of the old value are gone
    get = cache._db.get
    cache._get = lambda key: old.pop() if key == name and old else get(key)  # type: ignore[assignment]
    assert cache.get("k") == LARGE[::-1]
    assert old == []


def test_an_entry_keeps_its_place(cache: lsmkv.Cache) -> None:
    cache["a"], cache["b"], cache["a"] = 1, 2, 3
    assert list(cache) == ["a", "b"]
    assert len(list(cache._db.iterator(prefix=ORDER))) == 2


def test_an_entry_from_a_clock_that_was_ahead_expires(
    cache: lsmkv.Cache, clock: StillClock
) -> None:
    """Its time counts from the first read after the clock was set back."""
    clock.now += 1e7
    cache.set("k", "v", expire=60, tag="t")
    cache.set("plain", "v")
    clock.now -= 1e7
    assert cache.get("k", expire_time=True, tag=True) == ("v", clock.now + 60, "t")
    clock.now += 30
    assert cache.get("k", expire_time=True) == ("v", clock.now + 30)
    clock.now += 31
    assert cache.get("k") is None
    assert cache["plain"] == "v"
    assert cache.expire() == 1


def test_an_entry_that_is_a_moment_ahead_stays_as_it_is(
    cache: lsmkv.Cache, clock: StillClock
) -> None:
    cache.set("k", "v", expire=60)
    stored = clock.now
    clock.now -= 0.5
    assert cache.get("k", expire_time=True) == ("v", stored + 60)
