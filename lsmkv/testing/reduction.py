"""The smallest list that still fails: delta debugging.

What comes after the failure, or long before it, is cut off first, by bisection: most failures need
a few items that are close together, and delta debugging would spend its tries on the others.
(Source: Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, IEEE TSE 2002.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def reduce_list(items: list[T], fails: Callable[[list[T]], bool], tries: int) -> list[T]:
    """A part of ``items``, in their order, for which ``fails`` is true, but false without any one
    of its items.  If ``fails`` was called ``tries`` times before that was certain, the smallest
    part found.

    ``fails(items)`` is assumed to be true.  Usually calls ``fails`` O(n log n) times, O(n^2) at
    most.

    >>> reduce_list(list(range(100)), lambda some: {7, 93} <= set(some), 1000)
    [7, 93]
    """
    parts = 2
    if not items or (tries > 0 and fails([])):
        return []
    tries -= 1
    for cut in (_start, _end):
        least, most = 1, len(items)
        while least < most and tries > 0:
            size = (least + most) // 2
            tries -= 1
            if fails(cut(items, size)):
                most = size
            else:
                least = size + 1
        items = cut(items, most)
    while len(items) >= 2:
        size = -(-len(items) // parts)
        for at in range(0, len(items), size):
            if tries <= 0:
                return items
            rest = items[:at] + items[at + size :]
            tries -= 1
            if fails(rest):
                items = rest
                parts = max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(items))
    return items


def _start(items: list[T], size: int) -> list[T]:
    return items[:size]


def _end(items: list[T], size: int) -> list[T]:
    return items[len(items) - size :]
