"""lsmkv.engine.format.key_order: the order of user keys in all its forms, and places between
them.
"""

from __future__ import annotations

from math import log2
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orders import COMPARATORS

from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.util.comparator import BYTEWISE, CallableComparator, Comparator

IN_EVERY_ORDER = pytest.mark.parametrize(
    "comparator", COMPARATORS, ids=[comparator.name for comparator in COMPARATORS]
)

user_keys = st.text(alphabet="aAbB\xff\0", max_size=4).map(lambda text: text.encode("latin-1"))


@IN_EVERY_ORDER
@given(user_keys, user_keys)
def test_keys_in_the_form_that_compares_right(comparator: Comparator, a: bytes, b: bytes) -> None:
    order = KeyOrder(comparator)
    compared = comparator.compare(a, b)
    assert order.compare(a, b) == compared
    x, y = order.of(a), order.of(b)
    assert (x < y, x == y, x > y) == (compared < 0, compared == 0, compared > 0)
    assert order.is_same(a, b) == (compared == 0)
    left, right = order.of_entry((a, b"value")), order.of_entry((b, None, 7))
    assert (left < right, left == right) == (compared < 0, compared == 0)


@IN_EVERY_ORDER
@given(st.lists(user_keys))
def test_many_keys_at_once(comparator: Comparator, keys: list[bytes]) -> None:
    order = KeyOrder(comparator)
    assert order.of_all(keys) == [order.of(key) for key in keys]


def test_bytewise_keys_are_their_own_order() -> None:
    order = KeyOrder(BYTEWISE)
    keys = [b"a", b"b"]
    assert order.of(keys[0]) is keys[0]
    assert order.of_all(keys) is keys
    assert order.of_entry((b"k", b"v")) == b"k"


def test_the_orders_that_are_known() -> None:
    found = [(order.is_bytewise, order.is_reverse) for order in map(KeyOrder, COMPARATORS)]
    assert found == [(True, False), (False, True), (False, False), (False, False)]


@IN_EVERY_ORDER
@given(user_keys, user_keys)
def test_a_position_lies_before_or_after_all_versions(
    comparator: Comparator, key: bytes, place: bytes
) -> None:
    order = KeyOrder(comparator)
    compared = comparator.compare(key, place)
    assert order.is_at_or_after(key, Position(place, after=False)) == (compared >= 0)
    assert order.is_at_or_after(key, Position(place, after=True)) == (compared > 0)


@IN_EVERY_ORDER
@given(st.lists(user_keys, max_size=20), st.lists(user_keys, max_size=4))
def test_how_many_lie_before_a_position(
    comparator: Comparator, keys: list[bytes], others: list[bytes]
) -> None:
    """Keys that are equal, as the versions of one key are, among them."""
    order = KeyOrder(comparator)
    keys = sorted(keys, key=order.of)
    forms: list[list[Any]] = [[(key, b"v") for key in keys], [(key, None, 1) for key in keys]]
    for entries in forms:
        for place in [*keys, *others]:
            for after in (False, True):
                position = Position(place, after)
                expected = sum(not order.is_at_or_after(key, position) for key in keys)
                assert order.count_before(entries, position) == expected


def test_counting_compares_a_logarithm() -> None:
    calls: list[bytes] = []

    def counting(a: bytes, b: bytes) -> int:
        calls.append(a)
        return BYTEWISE.compare(a, b)

    order = KeyOrder(CallableComparator(counting, "test.Counting"))
    entries = [(b"%04d" % number, b"") for number in range(1024)]
    for number in (0, 1, 500, 1023):
        for after in (False, True):
            calls.clear()
            found = order.count_before(entries, Position(b"%04d" % number, after))
            assert found == number + after
            assert len(calls) <= log2(len(entries)) + 1
