"""The order of user keys, which the MANIFEST names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.options import own_comparator
from lsmkv.engine.util.comparator import Comparator


class Order(Protocol):
    """The part of a comparator that sorting needs; every comparator of a store has it.

    >>> class ByLength:
    ...     name = "example.ByLength"
    ...     def compare(self, a, b): return len(a) - len(b)
    >>> sorted([b"ccc", b"a"], key=key_order(ByLength()))
    [b'a', b'ccc']
    """

    @property
    def name(self) -> str:
        """The name that the MANIFEST stores."""
        ...

    def compare(self, a: bytes, b: bytes, /) -> int:
        """Negative, 0 or positive, as ``a`` comes before, with or after ``b``.  It raises nothing;
        its cost depends on the comparator."""
        ...


def key_order(order: Order | str) -> Callable[[bytes], Any]:
    """A function that makes sort keys from user keys; keys that a store calls equal get equal ones.

    ``order`` is a comparator, or the name of one that lsmkv provides.  Raises ``ValueError`` for
    any other name.  Costs nothing bytewise: a key is its own sort key.

    >>> sorted([b"a", b"b"], key=key_order("leveldb.ReverseBytewiseComparator"))
    [b'b', b'a']
    >>> key_order("example.ByLength")
    Traceback (most recent call last):
    ValueError: 'example.ByLength' is not one of lsmkv's comparators
    """
    comparator = own_comparator(order) if isinstance(order, str) else cast(Comparator, order)
    if comparator is None:
        raise ValueError(f"{order!r} is not one of lsmkv's comparators")
    return KeyOrder(comparator).of
