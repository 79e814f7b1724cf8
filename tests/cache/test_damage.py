"""A directory that a stranger has written: each call returns, misses, or raises lsmkv's errors.

Each key and value of a store is damaged at each byte, and everything is called on what is left.
"""

from __future__ import annotations

import builtins
import pickle
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from still_clocks import StillClock

import lsmkv
from lsmkv.cache.codecs import DefaultCodec, PickleCodec
from lsmkv.cache.counters import BASE
from lsmkv.cache.entry_head import Pointer, make
from lsmkv.cache.keys import HEAD, MOST, PENDING, SETTING, head_key, order_key
from lsmkv.testing.faulty import FaultyEnv

Cache = lsmkv.Cache


def _count(cache: Cache, key: Any) -> None:
    with suppress(TypeError):  # the value is not a number
        cache.incr(key)


KEYS = ["a", "b", "big", ("t", 1.5, None), 500_000_000_000_000, "q-500000000000000"]
READS: list[Callable[[Cache, Any], Any]] = [
    lambda cache, key: cache.get(key),
    lambda cache, key: cache.get(key, expire_time=True, tag=True),
    lambda cache, key: _close(cache.get(key, read=True)),
    lambda cache, key: key in cache,
]
WRITES: list[Callable[[Cache, Any], Any]] = [
    lambda cache, key: cache.touch(key, 50),
    _count,
    lambda cache, key: cache.add(key, 1),
    lambda cache, key: cache.set(key, 1, tag="t"),
    lambda cache, key: cache.pop(key, tag=True),
    lambda cache, key: cache.delete(key),
]
ALL: list[Callable[[Cache], Any]] = [
    len,
    list,
    lambda cache: list(cache.iterkeys()),
    lambda cache: list(reversed(cache)),
    lambda cache: (cache.volume(), cache.stats()),
    lambda cache: (cache.peekitem(), cache.peekitem(last=False)),
    lambda cache: (cache.peek(), cache.pull(), cache.push(1)),
    lambda cache: (cache.peek("q"), cache.pull("q"), cache.push(1, "q")),
    lambda cache: cache.evict("t"),
    lambda cache: cache.reset("size_limit"),
    lambda cache: cache.reset("eviction", "least-frequently-used"),
    lambda cache: cache.get("a"),
    lambda cache: cache.reset("eviction", "least-recently-stored"),
    lambda cache: cache.expire(),
    lambda cache: (cache.reset("size_limit", 500), cache.set("more", bytes(600)), cache.cull()),
    lambda cache: cache.check(),
    lambda cache: cache.check(fix=True),
    lambda cache: cache.check(),
    lambda cache: cache.clear(),
    lambda cache: cache.set("new", 1),
    lambda cache: cache.close(),
]


def _close(value: Any) -> None:
    if hasattr(value, "read"):
        with value as file:
            file.read()


@pytest.fixture
def env(clock: StillClock) -> FaultyEnv:
    """A store with all kinds of keys; its entries are in memory, or in its log."""
    env = FaultyEnv()
    codec = PickleCodec()
    with Cache("c", shared=False, env=env, clock=clock, codec=codec, statistics=True) as cache:
        cache["a"], cache["big"] = 300, bytes(70_000)
        cache.set("b", b"bytes", expire=5, tag="t")
        cache.set(("t", 1.5, None), {"list": [1]}, tag=("t", 2))
        cache.push("job"), cache.push("job", "q")
        cache.reset("size_limit", 1 << 20)
        cache._db.put(PENDING + b"number of 12", bytes(16))
    return env


def opened(env: FaultyEnv, clock: StillClock, **arguments: Any) -> Cache:
    return Cache("c", shared=False, env=env, clock=clock, recency=0, **arguments)


def use(env: FaultyEnv, clock: StillClock, put: tuple[bytes, bytes], delete: bytes) -> None:
    """Do everything with a store that has another pair in place of a key."""
    damaged = env.kill()
    with lsmkv.DB("c", env=damaged) as db:
        db.delete(delete)
        db.put(*put)
    try:
        cache = opened(damaged, clock)
    except lsmkv.Error:
        return
    with cache:
        calls: list[Callable[[], Any]] = [cache._recency.write]
        calls += [lambda k=key, c=call: c(cache, k) for call in READS for key in KEYS]  # type: ignore[misc]
        calls += [lambda c=call: c(cache) for call in ALL[:8]]  # type: ignore[misc]
        calls += [lambda k=key, c=call: c(cache, k) for key in KEYS for call in WRITES]  # type: ignore[misc]
        calls += [lambda c=call: c(cache) for call in ALL]  # type: ignore[misc]
        for call in calls:
            with suppress(lsmkv.Error, KeyError):
                call()


def changed(data: bytes, rng: random.Random) -> Iterator[bytes]:
    """The bytes cut, lengthened, and with each byte changed; of long ones, some."""
    most = min(len(data), 80)
    yield from (data[:end] for end in range(most))
    yield from (data + b"\0", data + data, b"\xff" * len(data), bytes(len(data)))
    for at in range(most):
        for byte in (data[at] ^ 0x80, rng.randrange(256)):
            yield data[:at] + bytes([byte]) + data[at + 1 :]


def damages(env: FaultyEnv) -> list[tuple[tuple[bytes, bytes], bytes]]:
    """All of them: the pair that is put, and the key that it replaces."""
    rng = random.Random(0)
    with lsmkv.DB("c", env=env.kill()) as db:
        pairs = list(db)
    made = [((key, value), key) for key, old in pairs for value in changed(old, rng)]
    return made + [((new, value), key) for key, value in pairs for new in changed(key, rng) if new]


def test_some_damage_of_a_store(env: FaultyEnv, clock: StillClock) -> None:
    clock.now += 3
    for put, delete in random.Random(1).sample(damages(env), 40):
        use(env, clock, put, delete)


@pytest.mark.parametrize("part", range(4))
def test_damage_of_any_byte_of_a_store(env: FaultyEnv, clock: StillClock, part: int) -> None:
    for put, delete in damages(env)[part::4]:
        use(env, clock, put, delete)


class Evil:
    """A pickle of it runs code."""

    def __reduce__(self) -> Any:
        return exec, ("import builtins; builtins.stranger_ran = True",)


def head_of(value: bytes | Pointer) -> bytes:
    return make(b"number of 12", 1e9, None, None, False, value)


A = head_key("a", DefaultCodec())
HOSTILE: dict[str, tuple[bytes, bytes]] = {
    "an empty head": (A, b""),
    "a short head": (A, b"\0\1\2"),
    "a pickle": (A, head_of(pickle.dumps(Evil()))),
    "a pickle of PickleCodec": (A, head_of(b"P" + pickle.dumps(Evil()))),
    "a value that is too large": (A, head_of(Pointer((1 << 64) - 1, b"number of 13"))),
    "a value without chunks": (A, head_of(Pointer((1 << 32) - 1, b"number of 13"))),
    "lists 10,000 deep": (A, head_of(b"[\1" * 10_000 + b"n")),
    "a key 10,000 deep": (HEAD + b"\x40" * 10_000, head_of(b"n")),
    "a time that is none": (A, make(b"number of 12", nan, nan, None, False, b"n")),
    "a time without end": (A, make(b"number of 12", inf, -inf, None, False, b"n")),
    "a number of the year 2500": (order_key(b"\xff" * 12), bytes(8) + A[1:]),
    "no entry in the order": (order_key(b"\0" * 12), bytes(8) + b"\x20gone"),
    "a short position": (order_key(b"number of 12"), b"\1"),
    "many entries": (BASE, struct.pack(">qqqq", MOST, MOST, MOST, MOST)),
    "fewer entries than none": (BASE, struct.pack(">qqqq", -MOST, -MOST, -MOST, -MOST)),
    "a limit beyond floats": (SETTING + b"size_limit", DefaultCodec().encode(10**400)),
    "a limit of entries": (SETTING + b"cull_limit", DefaultCodec().encode(MOST)),
    "a policy that is a list": (SETTING + b"eviction_policy", b"[\0"),
    "a process that cannot be": (PENDING + b"number of 13", b"\xff" * 16),
    "a large value of no number": (PENDING, bytes(16)),
    "a key of no queue": (head_key("q-5x", DefaultCodec()), head_of(b"n")),
    "the last key of a queue": (head_key("q-999999999999998", DefaultCodec()), head_of(b"n")),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_a_stranger_may_write(env: FaultyEnv, clock: StillClock, hostile: str) -> None:
    use(env, clock, HOSTILE[hostile], b"nothing")
    assert not hasattr(builtins, "stranger_ran")


def test_large_values_stay_though_a_pending_one_has_no_number(
    env: FaultyEnv, clock: StillClock
) -> None:
    with lsmkv.DB("c", env=env) as db:
        db.put(PENDING, bytes(16))
    with opened(env, clock, codec=PickleCodec()) as cache:
        assert cache["big"] == bytes(70_000)


def test_an_entry_of_the_order_that_leads_nowhere_is_passed_over(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        cache["k"] = 1
        cache._db.put(order_key(b"\0" * 12), bytes(8) + b"\x20gone")
        assert cache.peekitem(last=False) == ("k", 1)


def test_a_damaged_entry_is_a_miss_where_errors_are_skipped(
    env: FaultyEnv, clock: StillClock
) -> None:
    with lsmkv.DB("c", env=env) as db:
        db.put(A, b"\2damaged")
        db.put(head_key("b", DefaultCodec()), b"")
    with opened(env, clock, on_error="skip") as cache:
        assert [cache.get("a", 0), cache.get("b", 0), "a" in cache, "b" in cache] == [
            0,
            0,
            False,
            False,
        ]
        assert [cache.set("a", 1), cache.touch("a"), cache.add("a", 1)] == [False, False, False]
        cache.check(fix=True)
        assert cache.set("a", 1)
        assert cache["a"] == 1
