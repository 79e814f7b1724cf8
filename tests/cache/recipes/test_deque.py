"""Deque, beside ``collections.deque`` and over processes."""

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
from lsmkv.cache.codecs import PickleCodec
from lsmkv.cache.recipes import Deque


@pytest.fixture
def deque() -> Iterator[Deque]:
    with Cache(shared=False, eviction="none") as cache:
        yield Deque.fromcache(cache)


NAMES = (
    *("append", "appendleft", "pop", "popleft", "rotate", "reverse", "remove", "insert"),
    *("extend", "extendleft", "get", "set", "del", "count"),
)


@pytest.mark.parametrize("maxlen", [None, 5])
def test_it_does_what_a_deque_of_the_standard_library_does(maxlen: int | None) -> None:
    numbers = random.Random(3)
    model: collections.deque[int] = collections.deque(maxlen=maxlen)
    with Cache(shared=False, eviction="none") as cache:
        deque = Deque.fromcache(cache, maxlen=maxlen)
        for step in range(400):
            name = numbers.choice(NAMES)
            arguments: tuple[Any, ...] = {
                "append": (step,),
                "appendleft": (step,),
                "rotate": (numbers.randint(-9, 9),),
                "remove": (numbers.randint(0, 400),),
                "insert": (numbers.randint(-9, 9), step),
                "extend": ([step, -step],),
                "extendleft": ([step, -step],),
                "count": (step,),
            }.get(name, ())
            at = numbers.randint(-7, 7)
            outcomes = [_done(one, name, arguments, at, step) for one in (model, deque)]
            assert outcomes[0] == outcomes[1], name
            assert list(deque) == list(model), name
            assert list(reversed(deque)) == list(reversed(model))
            assert len(deque) == len(model)


def _done(one: Any, name: str, arguments: tuple[Any, ...], at: int, step: int) -> object:
    try:
        if name == "get":
            return one[at]
        if name == "set":
            one[at] = step
            return None
        if name == "del":
            del one[at]
            return None
        return getattr(one, name)(*arguments)
    except (IndexError, ValueError) as error:
        return type(error)


def test_comparisons(deque: Deque) -> None:
    deque += [1, 2, 3]
    assert deque == [1, 2, 3] == deque
    assert deque == (1, 2, 3)
    assert deque != [1, 2]
    assert deque != {1, 2, 3}
    assert deque < [1, 2, 4]
    assert deque < [1, 2, 3, 0]
    assert deque >= [1, 2, 3]
    assert deque > [1, 2]
    with pytest.raises(TypeError):
        assert deque < {1}
    with pytest.raises(TypeError):
        hash(deque)


def test_a_limit_that_is_set_later(deque: Deque) -> None:
    deque.extend(range(6))
    assert deque.maxlen == float("inf")
    deque.maxlen = 2
    assert list(deque) == [4, 5]
    deque.appendleft(3)
    assert list(deque) == [3, 4]
    with pytest.raises(ValueError, match="maxlen"):
        Deque.fromcache(deque.cache, maxlen=-1)


def test_a_pickled_deque_is_the_same_one(tmp_path: Path) -> None:
    deque = Deque([{1}], tmp_path / "d", 3, codec=PickleCodec())
    for again in (pickle.loads(pickle.dumps(deque)), deque.copy()):
        assert again.maxlen == 3
        again.append("more")
        assert deque.pop() == "more"
        again.close()
    assert repr(deque) == f"Deque(directory={str(tmp_path / 'd')!r})"
    deque.close()


def test_processes_take_each_item_once(shared_cache: Cache, user: Callable[[], CacheUser]) -> None:
    deque = Deque.fromcache(shared_cache, range(60))
    others = [user(), user()]
    for one in others:
        one.ask("""
deque, result = Deque.fromcache(cache), []
while True:
    try: result.append(deque.popleft())
    except IndexError: break
""")
    taken = [one.answer() for one in others]
    assert sorted(taken[0] + taken[1]) == list(range(60))
    assert len(deque) == 0


def test_no_item_is_lost_or_doubled_by_other_processes(
    shared_cache: Cache, user: Callable[[], CacheUser]
) -> None:
    """Some take items while others change the order."""
    deque = Deque.fromcache(shared_cache, range(160))
    others = [user() for _ in range(4)]
    for one, call in zip(others, ("popleft()", "pop()", "pop(1)", ""), strict=True):
        taking = f"""
while len(result) < 30:
    try: result.append(deque.{call})
    except IndexError: pass
"""
        changing = """
for _ in range(6):
    deque.reverse()
    deque.rotate(3)
    deque.insert(2, -1)
    deque.remove(-1)
"""
        one.ask("deque, result = Deque.fromcache(cache), []" + (taking if call else changing))
    taken = [item for one in others for item in one.answer()]
    assert sorted(item for item in [*taken, *deque] if item != -1) == list(range(160))
    assert shared_cache.check() == []


def test_an_item_that_another_process_has_taken_is_not_replaced(
    shared_cache: Cache, user: Callable[[], CacheUser]
) -> None:
    deque = Deque.fromcache(shared_cache, range(150))
    others = [user() for _ in range(4)]
    for number, one in enumerate(others):
        call = "result += deque.popleft() is not None" if number < 2 else "deque[0] = -1"
        one.ask(f"""
deque, result = Deque.fromcache(cache), 0
while True:
    try: {call}
    except IndexError: break
""")
    assert sum(one.answer() for one in others) + len(deque) == 150
    assert len(deque) == 0


def test_an_item_is_not_taken_while_a_full_deque_is_cut(
    shared_cache: Cache, user: Callable[[], CacheUser]
) -> None:
    """Or the one that adds an item would remove one too many."""
    deque = Deque.fromcache(shared_cache, range(50), maxlen=50)
    other = user()
    with deque.transact():
        other.ask("result = Deque.fromcache(cache, maxlen=50).popleft()")
        for _ in range(1000):
            assert deque.peekleft() == 0
        deque.append(50)
        assert len(deque) == 50
    assert other.answer() == 1
    assert list(deque) == list(range(2, 51))
