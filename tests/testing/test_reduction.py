"""Delta debugging: the smallest list that still fails."""

from __future__ import annotations

import pytest

from lsmkv.testing.reduction import reduce_list


@pytest.mark.parametrize("needed", [set(), {0}, {31}, {3, 4}, {0, 15, 31}, set(range(32))])
def test_what_is_needed_is_left(needed: set[int]) -> None:
    found = reduce_list(list(range(32)), lambda some: needed <= set(some), 10_000)
    assert found == sorted(needed)


def test_it_stops_when_the_tries_are_used_up() -> None:
    calls = 0

    def fails(some: list[int]) -> bool:
        nonlocal calls
        calls += 1
        return {5, 90} <= set(some)

    found = reduce_list(list(range(100)), fails, 7)
    assert calls <= 7
    assert {5, 90} <= set(found)
    assert len(found) < 100


def test_a_few_items_that_are_close_together_take_few_tries() -> None:
    calls = 0

    def fails(some: list[int]) -> bool:
        nonlocal calls
        calls += 1
        return {610, 613} <= set(some)

    assert reduce_list(list(range(800)), fails, 40) == [610, 613]
    assert calls <= 40
