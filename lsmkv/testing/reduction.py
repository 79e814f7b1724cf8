"""The smallest list that still fails: delta debugging.

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
