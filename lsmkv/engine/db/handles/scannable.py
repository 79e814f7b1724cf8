"""The method that stores, snapshots and parts of a store have in common: ``iterator``.

Its keywords decide what an iterator returns, and so its type: the overloads are only here.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.read.iterator import Iterator, IteratorArguments, RangeArguments
from lsmkv.engine.util.introspection import described


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class Scannable:
    """Base class of what can be iterated over.  A subclass has ``_iterator``."""

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        **arguments: Unpack[RangeArguments],
    ) -> Iterator[tuple[bytes, bytes]]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[False],
        **arguments: Unpack[RangeArguments],
    ) -> Iterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False],
        include_value: Literal[True] = True,
        **arguments: Unpack[RangeArguments],
    ) -> Iterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False],
        include_value: Literal[False],
        **arguments: Unpack[RangeArguments],
    ) -> Iterator[None]: ...

    @overload
    def iterator(self, **arguments: Unpack[IteratorArguments]) -> Iterator[Any]: ...

    def iterator(self, **arguments: Unpack[IteratorArguments]) -> Iterator[Any]:
        """An iterator over the store as it is now (a snapshot's: as it was), or over a range of it.

        ``start`` and ``stop`` bound the keys (``include_start=True``, ``include_stop=False``), and
        so does ``prefix``; together they are the range within the prefix.  ``limit`` bounds the
        number of entries, ``reverse`` reverses the direction, ``include_key`` and
        ``include_value`` say what is returned; ``fill_cache=False`` leaves the block cache as it
        is.  See :class:`Iterator`.  Raises ``TypeError`` for wrong arguments, and ``ValueError``
        for a negative limit.  Cost: O(1) until it is used, then a seek in each table that may hold
        some of the range, and a block at a time.

        In a store that is open for reading only, the tables of the range are opened at once and
        held; if there are very many, each is opened when it is needed, and the iterator raises
        :class:`~lsmkv.StaleViewError` if the store's writer has removed it.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     for key in (b"a", b"b", b"c"):
        ...         db.put(key, key.upper())
        ...     list(db.iterator(start=b"b")), list(db.iterator(reverse=True, include_value=False))
        ...     list(db.iterator(limit=1))
        ([(b'b', b'B'), (b'c', b'C')], [b'c', b'b', b'a'])
        [(b'a', b'A')]
        """
        return self._iterator(arguments)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """:meth:`iterator` over everything."""
        return self.iterator()

    def _iterator(self, arguments: IteratorArguments) -> Iterator[Any]:
        raise NotImplementedError
