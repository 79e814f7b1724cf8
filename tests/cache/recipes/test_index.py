"""Index, beside ``OrderedDict`` and over processes."""

from __future__ import annotations

import collections
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cache_users import CacheUser

from lsmkv.cache.cache import Cache
from lsmkv.cache.recipes import Index


@pytest.fixture
def index() -> Iterator[Index]:
    with Cache(shared=False, eviction="none") as cache:
        yield Index.fromcache(cache)


def test_it_does_what_an_ordered_dict_does(index: Index) -> None:
    numbers = random.Random(5)
    model: collections.OrderedDict[Any, Any] = collections.OrderedDict()
    for step in range(500):
        key = numbers.choice([1, "a", b"b", (1, "x"), None, 2.5])
        name = numbers.choice(["set", "del", "pop", "popitem", "first", "setdefault", "get"])
        outcomes = [_done(one, name, key, step) for one in (model, index)]
        assert outcomes[0] == outcomes[1], name
        assert list(index.items()) == list(model.items())
        assert list(reversed(index)) == list(reversed(model))
        assert len(index) == len(model)
        assert index == model
        assert index == dict(reversed(model.items()))


def _done(one: Any, name: str, key: Any, step: int) -> object:
    try:
        if name == "set":
            one[key] = step
        elif name == "del":
            del one[key]
        elif name == "pop":
            return one.pop(key)
        elif name == "popitem":
            return one.popitem()
        elif name == "first":
            return one.popitem(last=False)
        elif name == "setdefault":
            return one.setdefault(key, step)
        else:
            return one.get(key), key in one
    except KeyError:
        return "KeyError"
    return None


def test_equality(index: Index) -> None:
    index.update(a=1, b=2)
    assert index == {"b": 2, "a": 1}
    assert index != {"b": 2}
    assert index != {"b": 2, "a": 2}
    assert index != {"b": 2, "c": 1}
    assert index != [("a", 1), ("b", 2)]
    assert index == collections.OrderedDict(a=1, b=2)
    assert index != collections.OrderedDict(b=2, a=1)


def test_pop_without_the_key(index: Index) -> None:
    assert index.pop("a", 7) == 7
    with pytest.raises(KeyError, match="a"):
        index.pop("a")
    with pytest.raises(KeyError):
        index.popitem()
    with pytest.raises(KeyError):
        index.peekitem()


def test_how_it_is_made(tmp_path: Path) -> None:
    for made in (
        Index(tmp_path / "a", {"a": 1}, b=2),
        Index(tmp_path / "b", [("a", 1), ("b", 2)]),
        Index({"a": 1, "b": 2}),
        Index(None, a=1, b=2),
    ):
        with made:
            assert dict(made) == {"a": 1, "b": 2}
            assert made.peekitem() == ("b", 2)
            again = pickle.loads(pickle.dumps(made))
            assert again == made
            again.close()


def test_processes_set_a_default_once(shared_cache: Cache, user: Callable[[], CacheUser]) -> None:
    others = [user() for _ in range(3)]
    for number, one in enumerate(others):
        one.ask(f"result = Index.fromcache(cache).setdefault('k', {number})")
    assert len({one.answer() for one in others}) == 1
    mine = Index.fromcache(shared_cache)
    with mine.transact():
        mine["k"] = 9
    assert others[0]("result = Index.fromcache(cache)['k']") == 9


def test_processes_lose_no_write_to_a_pair_that_another_one_pops(
    shared_cache: Cache, user: Callable[[], CacheUser]
) -> None:
    others = [user() for _ in range(4)]
    for number, one in enumerate(others):
        if number < 2:
            one.ask("for _ in range(150): cache.incr('n')")
        else:
            one.ask("""
index, result = Index.fromcache(cache), 0
for _ in range(150):
    try: result += index.popitem()[1]
    except KeyError: pass
""")
    popped = sum(one.answer() or 0 for one in others)
    assert popped + shared_cache.get("n", 0) == 300


def test_a_default_is_set_once_by_each_call(
    shared_cache: Cache, user: Callable[[], CacheUser]
) -> None:
    others = [user() for _ in range(4)]
    for number, one in enumerate(others):
        if number == 0:
            one.ask("""
result = None
for n in range(1000): Index.fromcache(cache).setdefault('k', n)
""")
        else:
            one.ask("result = [cache.pop('k') for _ in range(3000)]")
    popped = [value for one in others for value in one.answer() or () if value is not None]
    assert len(popped) == len(set(popped))
