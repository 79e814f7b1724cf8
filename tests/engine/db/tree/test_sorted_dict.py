"""lsmkv.engine.db.tree.sorted_dict: a dict whose keys are put in order late, against ``sorted``."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cmp_to_key, partial

import pytest
from orders import FOLDING, InterruptedOrder, lies_before
from sortedcontainers import sortedlist

import lsmkv
from lsmkv.engine.db.tree import sorted_dict as module
from lsmkv.engine.db.tree.key_list import KeyList
from lsmkv.engine.db.tree.sorted_dict import SortedDict
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.util.comparator import (
    BYTEWISE,
    REVERSE_BYTEWISE,
    Comparator,
)

every_comparator = pytest.mark.parametrize(
    "comparator", [BYTEWISE, REVERSE_BYTEWISE, FOLDING], ids=lambda each: each.name
)


def written(keys: SortedDict, newest: dict[bytes, bytes], *names: bytes) -> None:
    """As a memtable writes: another version of each key."""
    keys.note([(name, b"") for name in names])
    newest.update((name, b"%d" % len(newest) + newest.get(name, b"")) for name in names)


def listed(*names: bytes) -> tuple[SortedDict, dict[bytes, bytes], KeyList]:
    """Keys that have a list."""
    keys = SortedDict(BYTEWISE)
    newest = keys.content
    newest.update(dict.fromkeys(names, b""))
    every = keys.listed(1 << 20)
    assert every is not None
    return keys, newest, every


@every_comparator
@pytest.mark.parametrize("seed", range(20))
def test_keys_beyond_a_position(comparator: Comparator, seed: int) -> None:
    rng = random.Random(seed)
    keys = SortedDict(comparator)
    newest = keys.content
    for _ in range(40):
        if rng.random() < 0.5:
            written(
                keys, newest, *(b"%03d" % rng.randrange(400) for _ in range(rng.choice([1, 9])))
            )
        if newest and comparator is FOLDING and rng.random() < 0.2:
            keys.catch_up()
            keys.remove(rng.choice(list(newest)))
        if rng.random() < 0.2:
            keys.listed(rng.randrange(2000))
        ordered = sorted(newest, key=cmp_to_key(comparator.compare))
        edge, upper = (
            rng.choice([None, Position(b"%03d" % rng.randrange(400), rng.random() < 0.5)])
            for _ in range(2)
        )
        before = [key for key in ordered if edge is None or lies_before(key, edge, comparator)]
        after = ordered if edge is None else ordered[len(before) :]
        count = rng.choice([1, 7, 1000])
        assert keys.beyond(edge, count, True) == before[-count:]
        assert keys.beyond(edge, count, False) == after[:count]
        within = [key for key in after if upper is None or lies_before(key, upper, comparator)]
        assert keys.beyond(edge, count, False, upper) == within[:count]
        assert keys.every() == (ordered or None)
        keys.check()


def test_a_key_that_compares_equal_is_found() -> None:
    keys = SortedDict(FOLDING)
    newest = keys.content
    newest.update({b"b": b"", b"Key": b""})
    assert keys.equal_to(b"kEY") == b"Key"
    assert [keys.equal_to(name) for name in (b"a", b"c", b"z")] == [None, None, None]
    newest[b"a"] = b""
    assert keys.equal_to(b"A") == b"a"


def test_nothing_is_put_in_order_before_it_is_asked_for() -> None:
    keys = SortedDict(BYTEWISE)
    newest = keys.content
    newest.update({b"b": b"", b"a": b""})
    assert keys.every() is None
    keys.catch_up()
    assert keys.every() == [b"a", b"b"]


def test_an_interrupted_change_is_made_up_for() -> None:
    """Ctrl-C comes at each comparison of some steps; the dict is right all the time."""
    order = InterruptedOrder()
    for n in range(1, 200):
        order.left = -1
        keys = SortedDict(order.comparator)
        newest = keys.content
        newest.update({b"%03d" % (2 * number): b"" for number in range(20)})
        keys.catch_up()
        newest.update((b"%03d" % number, b"") for number in (7, 400, 3))
        order.left = n
        interrupted = 0
        try:
            keys.catch_up()
            keys.remove(b"020")
        except KeyboardInterrupt:
            interrupted += 1
        order.left = -1
        assert keys.every() == sorted(newest)
        keys.check()
        if not interrupted:
            break
    assert n > 10


@pytest.mark.untraced  # a tracer of its own
@pytest.mark.skipif(lsmkv.COMPILED, reason="compiled code is not interrupted between two steps")
@pytest.mark.parametrize("step", ["catch_up", "remove"])
def test_a_change_can_be_interrupted_anywhere(
    step: str, interrupted_at: Callable[..., bool]
) -> None:
    line = 0
    interrupted = True
    while interrupted:
        line += 1
        keys = SortedDict(REVERSE_BYTEWISE)
        newest = keys.content
        newest.update({b"%02d" % number: b"" for number in range(40)})
        keys.catch_up()
        newest.update({b"200": b"", b"100": b""})
        call = keys.catch_up if step == "catch_up" else partial(keys.remove, b"20")
        interrupted = interrupted_at(module, line, call, sortedlist)
        assert keys.every() == sorted(newest, reverse=True)
        keys.check()
    assert line > 10


# The list of all keys


def test_a_list_is_updated_after_a_few_writes_and_dropped_after_many() -> None:
    names = [b"%03d" % number for number in range(0, 200, 2)]
    keys, newest, every = listed(*names)
    written(keys, newest, b"003", b"010", b"003")
    assert keys.listed(1) is every
    assert every.keys == sorted([*names, b"003"])
    keys.check()
    assert [key for key in names if newest[key]] == [b"010"]
    for _ in range(2):
        written(keys, newest, *names[:8])
    assert keys.listed(1) is every
    written(keys, newest, *names[:9])
    written(keys, newest, *names[:8])
    assert keys.listed(1) is None
    for _ in range(1, 100 // 32):
        assert keys.listed(1) is None
    again = keys.listed(1)
    assert again is not None
    keys.check()


def test_a_key_of_a_write_that_was_interrupted_is_not_listed() -> None:
    keys, _, every = listed(b"a", b"c")
    keys.note([(b"b", b""), (b"c", b"")])
    assert keys.listed(1) is every
    assert every.keys == [b"a", b"c"]
    keys.check()


def test_other_orders_have_no_list() -> None:
    keys = SortedDict(REVERSE_BYTEWISE)
    keys.content[b"a"] = b""
    assert keys.listed(1 << 20) is None


def test_check_finds_keys_out_of_order() -> None:
    keys, newest, every = listed(b"a", b"b")
    every.keys.reverse()
    with pytest.raises(AssertionError, match="a list of other keys"):
        keys.check()
    every.keys.reverse()
    every.tagged[0] = b"old"
    with pytest.raises(AssertionError, match="a list of other versions"):
        keys.check()
    every.tagged[0] = b""
    del newest[b"a"]
    newest[b"0"] = b""
    with pytest.raises(AssertionError, match="other keys than the dict's"):
        keys.check()
