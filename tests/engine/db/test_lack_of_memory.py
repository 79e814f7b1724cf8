"""MemoryError in the middle of opening and closing: the store can be opened again at once."""

from __future__ import annotations

import contextlib
import itertools

from hooked import HookedEnv, ignore

import lsmkv
from lsmkv import DB


class Failing:
    """Raises ``MemoryError`` instead of the call with a number, counted from now on."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.failed = ""

    def __call__(self, call: str, name: str) -> None:
        self.left -= 1
        if self.left < 0 and not self.failed:
            self.failed = f"{call} {name}"
            raise MemoryError


def filled() -> HookedEnv:
    """A store with a table and a log."""
    env = HookedEnv()
    with DB("db", env=env, create_if_missing=True, max_open_files=20) as db:
        db.put(b"k", b"v")
        db.flush()
        db.put(b"l", b"w")
    return env


def reads_all(env: HookedEnv) -> None:
    """Open the store, which holds no lock, and read it."""
    env.before = ignore
    with DB("db", env=env) as db:
        assert list(db) == [(b"k", b"v"), (b"l", b"w")]
        db.check()


def test_an_opening_that_fails_at_any_call_holds_no_lock() -> None:
    for number in itertools.count():
        env = filled()
        env.before = failing = Failing(number)
        with contextlib.suppress(MemoryError):
            DB("db", env=env).close()
        reads_all(env)
        if not failing.failed:
            break
    assert number > 10


def test_a_closing_that_fails_at_any_call_holds_no_lock() -> None:
    for number in itertools.count():
        env = filled()
        db = DB("db", env=env, write_buffer_size=1000)
        db.put(b"k", b"v")
        env.before = failing = Failing(number)
        try:
            db.close()
        except MemoryError:
            db.close()
        assert db.closed
        reads_all(env)
        if not failing.failed:
            break
    assert number > 0


def test_a_cache_that_fails_to_open_at_any_call_holds_no_lock() -> None:
    for number in itertools.count():
        env = HookedEnv()
        with lsmkv.Cache("cache", shared=False, env=env) as cache:
            cache["k"] = "v"
        env.before = failing = Failing(number)
        with contextlib.suppress(MemoryError):
            lsmkv.Cache("cache", shared=False, env=env).close()
        env.before = ignore
        with lsmkv.Cache("cache", shared=False, env=env) as cache:
            assert cache["k"] == "v"
        if not failing.failed:
            break
    assert number > 10
