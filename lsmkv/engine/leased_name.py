"""A lease with a name, as reports show it: :class:`LeasedName`."""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.engine.util.introspection import described


@described
class LeasedName(NamedTuple):
    """A lease with a name: who holds it, and who waits for it.  Plain data.

    >>> LeasedName("Lock 'report'", holders=(4711,), waiters=()).holders
    (4711,)
    """

    name: str
    """The name that the lease is for."""
    holders: tuple[int | None, ...]
    """The process ids of those who hold it; None for those to which an earlier owner of a shared
    store has granted it."""
    waiters: tuple[int, ...]
    """The process ids of those who wait for it, in the order of arrival."""
