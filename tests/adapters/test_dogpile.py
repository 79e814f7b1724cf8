"""The backend for dogpile.cache."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from interrupts import interrupted_at_each_step
from plain_values import PLAIN
from processes import python
from threads import background_of

pytest.importorskip("dogpile.cache")

from dogpile.cache import make_region, register_backend
from dogpile.cache.api import NO_VALUE

from lsmkv.cache.dogpile import LsmkvBackend, Mutex


def region(directory: Path, **arguments: Any) -> Any:
    register_backend("lsmkv", "lsmkv.cache.dogpile", "LsmkvBackend")
    return make_region().configure("lsmkv", arguments={"directory": directory, **arguments})


def test_values_of_a_region(tmp_path: Path) -> None:
    made = region(tmp_path / "c", expire=1000)
    calls: list[int] = []

    def create() -> dict[str, int]:
        calls.append(1)
        return {"n": len(calls)}

    assert made.get("k") is NO_VALUE
    assert made.get_or_create("k", create) == made.get_or_create("k", create) == {"n": 1}
    made.set_multi({"a": 1, "b": 2})
    assert made.get_multi(["a", "b", "c"]) == [1, 2, NO_VALUE]
    made.delete_multi(["a", "k"])
    made.delete("b")
    assert made.get_or_create("k", create) == {"n": 2}
    made.invalidate()
    assert made.get_or_create("k", create) == {"n": 3}
    made.backend.cache.set("k", "something else")
    assert made.backend.get("k") is NO_VALUE
    made.backend.cache.close()


def test_values_are_those_that_its_file_backend_returns(tmp_path: Path) -> None:
    ours = region(tmp_path / "c")
    theirs = make_region().configure(
        "dogpile.cache.dbm", arguments={"filename": str(tmp_path / "theirs.dbm")}
    )
    for made in (ours, theirs):
        assert made.get_or_create("k", lambda: PLAIN) == PLAIN
        assert made.get("k") == PLAIN
        made.set_multi(PLAIN)
        assert made.get_multi(list(PLAIN)) == list(PLAIN.values())
    ours.backend.cache.close()


def test_one_caller_creates(tmp_path: Path) -> None:
    made = region(tmp_path / "c")
    calls: list[int] = []
    begun, go = threading.Event(), threading.Event()

    def create() -> str:
        calls.append(1)
        begun.set()
        go.wait()
        return "made"

    results: list[str] = []
    threads = [background_of(lambda: results.append(made.get_or_create("k", create)))]
    begun.wait()
    threads += [background_of(lambda: results.append(made.get_or_create("k", create)))]
    go.set()
    for thread, errors in threads:
        thread.join()
        assert errors == []
    assert (results, calls) == (["made", "made"], [1])
    made.backend.cache.close()


def test_the_mutex(tmp_path: Path) -> None:
    backend = LsmkvBackend({"directory": tmp_path / "c"})
    one, other = backend.get_mutex("k"), Mutex(backend.cache, "k")
    assert one.acquire()
    assert not other.acquire(wait=False)
    assert other.locked()
    one.release()
    one.release()
    assert not one.locked()
    assert other.acquire(wait=True)
    other.release()
    backend.cache.close()


def test_without_dogpile_the_error_says_what_to_install() -> None:
    script = """
import sys
sys.modules["dogpile.cache.api"] = None
try:
    import lsmkv.cache.dogpile
except ImportError as error:
    print(error)
"""
    assert python(script).stdout == "lsmkv.cache.dogpile needs it: pip install dogpile.cache\n"


def test_an_interrupted_mutex_is_not_held(tmp_path: Path) -> None:
    cache = region(tmp_path / "c").backend.cache
    keys = count()

    def take(mutex: Mutex) -> None:
        mutex.acquire()
        mutex.release()

    interrupts = 0
    for mutex, interrupted in interrupted_at_each_step(lambda: Mutex(cache, str(next(keys))), take):
        interrupts += interrupted
        mutex.release()  # an interrupt may come between the two calls
        assert not mutex.locked(), f"held after an interrupt at step {interrupts}"
    assert interrupts > 20
    cache.close()
